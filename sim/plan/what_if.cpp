#include "sim/plan/what_if.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "sim/scenario/fields.hpp"
#include "sim/scenario/units.hpp"

namespace fabricast::plan {
namespace {

constexpr double kSwing = 0.2, kSame = 1e-6;

// Keys that change no step, and those that a row of the ranking says itself.
std::string refusal(std::string_view key) {
    const auto below = [&](std::string_view section) {
        return key == section || (key.starts_with(section) && key[section.size()] == '.');
    };
    if (below("training.software"))
        return {};
    if (below("training") || below("comm.compression"))
        return "every row of the ranking has its own; write it into the scenario, or vary it under `plan:`";
    if (below("plan") || below("expect") || key == "name" || key == "extends" || key == "seed")
        return "it changes no layout's step; write it into the scenario";
    for (const std::string_view section : {"data", "faults", "monitor"}) {
        if (below(section))
            return fmt::format("a plan prices steps without `{}`; ask `run` about a single layout", section);
    }
    if (below("run") && key != "run.price" && key != "run.tokens")
        return "a plan prices steps alone; of a run it reads tokens and price";
    return {};
}

std::string key_of(const std::string& name, const std::string& text) {
    constexpr std::pair<std::string_view, std::string_view> kShort[] = {
        {"nic", "cluster.fabric.nic"},
        {"oversubscription", "cluster.fabric.oversubscription"},
        {"nodes", "cluster.nodes"},
        {"price", "run.price"}};
    for (const auto& [word, key] : kShort) {
        if (name == word)
            return std::string(key);
    }
    const bool top = name == "name" || name == "extends" || name == "seed";
    if (top || (name.find('.') != std::string::npos && find_field(name) != nullptr)) {
        if (const std::string why = refusal(name); !why.empty())
            throw ScenarioError(fmt::format("fabricast plan: what-if `{}`: {} cannot be asked: {}", text, name, why));
        return name;
    }
    throw ScenarioError(
        fmt::format("fabricast plan: what-if `{}`: `{}` is not nic, oversubscription, nodes, price or a key "
                    "of the scenario, such as cluster.node.nvlink",
                    text, name));
}

// The unit of a value: what follows its first space.
std::string unit_of(const std::string& value) {
    const std::size_t space = value.find(' ');
    return space == std::string::npos ? "" : value.substr(space);
}

std::unique_ptr<PlanCluster> with(const PlanCluster& cluster, Scenario scenario) {
    return std::make_unique<PlanCluster>(std::move(scenario), cluster.changes());
}

}  // namespace

Change::Change(const std::string& whole) : text(without_blanks(whole)) {
    const std::size_t arrow = text.find("->"), space = text.find(' ');
    if (arrow == std::string::npos || space == std::string::npos || space > arrow)
        throw ScenarioError(fmt::format(
            "fabricast plan: what-if `{}`: write it like `nic 400 -> 200 Gb/s` or `oversubscription 1 -> 2`", text));
    key = key_of(text.substr(0, space), text);
    const std::string_view all = text;
    from = without_blanks(all.substr(space, arrow - space));
    to = without_blanks(all.substr(arrow + 2));
    if (to.empty())
        throw ScenarioError(fmt::format("fabricast plan: what-if `{}`: nothing stands behind ->", text));
    if (!from.empty() && unit_of(from).empty())
        from += unit_of(to);
}

std::string Change::other(const PlanCluster& cluster) const {
    const Scenario& s = cluster.scenario();
    const bool rate = key == "cluster.fabric.nic", price = key == "run.price";
    double has = 0;
    if (rate)
        has = s.node.nic_bits_per_s / 8;
    else if (key == "cluster.fabric.oversubscription")
        has = s.oversubscription;
    else if (key == "cluster.nodes")
        has = s.nodes;
    else if (price)
        has = s.price_per_gpu_hour;
    if (from.empty() || (has == 0 && !price))
        return {};
    std::string problem, currency = s.currency;
    double said = -1;
    if (rate || price) {
        const auto quantity = rate ? parse_quantity(from, fabricast::Dimension::rate, "Gb/s", problem)
                                   : parse_quantity(from, fabricast::Dimension::price, s.currency + "/GPU-h", problem);
        if (quantity)
            said = quantity->value;
        if (quantity && price)
            currency = quantity->unit;
    } else {
        said = parse_number(from, problem).value_or(-1);
    }
    if (!problem.empty())
        throw ScenarioError(fmt::format("fabricast plan: what-if `{}`: `{}` {}", text, from, problem));
    if (std::abs(said - has) <= kSame * has && currency == s.currency)
        return {};
    return rate               ? fmt::format("{:g} Gb/s", has * 8e-9)
           : price && has > 0 ? fmt::format("{:g} {}/GPU-h", has, s.currency)
           : price            ? std::string("no price")
                              : fmt::format("{:g}", has);
}

std::unique_ptr<PlanCluster> changed(const PlanSource& source, const PlanSpec& spec, const PlanCluster& cluster,
                                     const Change& change) {
    std::vector<std::string> all = cluster.changes();
    all.push_back(change.override_text());
    Scenario s = source.load(all);
    if (change.key != "run.price")
        s.price_per_gpu_hour = price_of(s, spec).value;
    return std::make_unique<PlanCluster>(std::move(s), cluster.changes());
}

std::vector<std::unique_ptr<PlanCluster>> changed_clusters(const PlanSource& source, const PlanSpec& spec,
                                                           const std::vector<std::unique_ptr<PlanCluster>>& clusters,
                                                           const Change& change) {
    std::vector<std::unique_ptr<PlanCluster>> out;
    std::string has;
    bool any = false;
    for (const auto& cluster : clusters) {
        const std::string other = change.other(*cluster);
        if (!other.empty() && has.find(other) == std::string::npos)
            has += (has.empty() ? "" : ", ") + other;
        out.push_back(other.empty() ? changed(source, spec, *cluster, change) : nullptr);
        any = any || out.back() != nullptr;
    }
    if (!any)
        throw ScenarioError(fmt::format("fabricast plan: what-if `{}`: the scenario has {}", change.text, has));
    return out;
}

std::vector<Swing> swings(const PlanCluster& cluster) {
    const Scenario& s = cluster.scenario();
    std::vector<Swing> out;
    const auto add = [&](const char* what, const char* low, const char* high, auto edit, double down, double up) {
        Swing swing{what, low, high, nullptr, nullptr};
        for (const bool is_low : {true, false}) {
            const double factor = is_low ? down : up;
            if (factor < 0)
                continue;
            Scenario copy = s;
            edit(copy, factor);
            (is_low ? swing.with_low : swing.with_high) = with(cluster, std::move(copy));
        }
        out.push_back(std::move(swing));
    };
    if (s.nodes > 1 && !s.fabric_is_listed() && s.node.nic_bits_per_s > 0) {
        add(
            "network adapters", "half", "double", [](Scenario& c, double f) { c.node.nic_bits_per_s *= f; }, 0.5, 2);
        add(
            "oversubscription", "doubled", "", [](Scenario& c, double f) { c.oversubscription *= f; }, 2, -1);
    }
    if (s.gpu.nvlink_nominal_bytes_per_s > 0 && s.node.gpus > 1)
        add(
            "NVLink", "-20 %", "+20 %",
            [](Scenario& c, double f) {
                c.gpu.nvlink_nominal_bytes_per_s *= f;
                c.gpu.nvlink_achieved_bytes_per_s *= f;
                c.gpu.nvlink_nccl_bytes_per_s *= f;
            },
            1 - kSwing, 1 + kSwing);
    add(
        "memory bandwidth", "-20 %", "+20 %", [](Scenario& c, double f) { c.gpu.hbm_bytes_per_s *= f; }, 1 - kSwing,
        1 + kSwing);
    add(
        "matrix products", "-20 %", "+20 %", [](Scenario& c, double f) { c.gpu.gemm.sustained *= f; }, 1 - kSwing,
        1 + kSwing);
    if (s.gpu_spread > 0)
        add(
            "spread of GPU speeds", "doubled", "none", [](Scenario& c, double f) { c.gpu_spread *= f; }, 2, 0);
    return out;
}

}  // namespace fabricast::plan
