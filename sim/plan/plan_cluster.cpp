#include "sim/plan/plan_cluster.hpp"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "sim/step/build_cluster.hpp"
#include "sim/step/forecast.hpp"

namespace fabricast::plan {
namespace {

std::string lower(std::string text) {
    for (char& c : text)
        c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return text;
}

// Each value of a dimension as overrides; none: one choice that changes nothing.
using Choices = std::vector<std::vector<std::string>>;

Choices or_nothing(Choices choices) {
    if (choices.empty())
        choices.emplace_back();
    return choices;
}

Choices of_words(const std::vector<std::string>& words, std::string_view key) {
    Choices out;
    for (const std::string& word : words)
        out.push_back({fmt::format("{}={}", key, word)});
    return or_nothing(std::move(out));
}

std::vector<std::string> joined(std::vector<std::string> a, const std::vector<std::string>& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

}  // namespace

PlanCluster::PlanCluster(Scenario scenario, std::vector<std::string> changes)
    : scenario_(std::move(scenario)),
      changes_(std::move(changes)),
      compute_(build_compute(scenario_)),
      cluster_(build_cluster(scenario_)),
      comm_(std::make_unique<CommModel>(cluster_, comm_facts(scenario_, cluster_), scenario_.comm)) {}

std::int64_t PlanCluster::nvlink_domain() const {
    const std::int64_t servers = scenario_.node.nvlink_domain > 0 ? scenario_.node.nvlink_domain : 1;
    return std::min<std::int64_t>(gpus(), servers * scenario_.node.gpus);
}

Scenario PlanSource::load(const std::vector<std::string>& more) const {
    const std::vector<std::string> all = joined(overrides, more);
    return text.empty() ? load_scenario(file, all, Scope::plan, calibration)
                        : parse_scenario(text, file, all, Scope::plan, calibration);
}

Price price_of(const Scenario& s, const PlanSpec& spec) {
    Price price;
    if (s.price_per_gpu_hour > 0)
        price = {s.price_per_gpu_hour, "run.price"};
    std::size_t longest = 0;
    for (const auto& [name, value] : spec.prices) {
        const std::string wanted = lower(name);
        const bool fits =
            lower(s.gpu.name).find(wanted) != std::string::npos || lower(s.node.name).find(wanted) != std::string::npos;
        if (fits && name.size() >= longest) {
            longest = name.size();
            price = {value, "plan.price." + name};
        }
    }
    return price;
}

std::vector<std::unique_ptr<PlanCluster>> plan_clusters(const PlanSource& source, const PlanSpec& spec) {
    const Choices nodes = of_words(spec.nodes, "cluster.node"), nics = of_words(spec.nics, "cluster.fabric.nic"),
                  precisions = of_words(spec.precisions, "training.precision");
    Choices blocked;
    for (const double ratio : spec.oversubscription)
        blocked.push_back({fmt::format("cluster.fabric.oversubscription={}", ratio)});
    blocked = or_nothing(std::move(blocked));
    std::vector<std::int64_t> sizes = spec.gpus;
    if (sizes.empty())
        sizes.push_back(0);
    std::vector<std::unique_ptr<PlanCluster>> out;
    for (const std::int64_t gpus : sizes) {
        for (const auto& node : nodes) {
            std::vector<std::string> size;
            if (gpus > 0) {
                const Scenario one = source.load(joined(node, {"cluster.nodes=1"}));
                if (gpus % one.node.gpus != 0)
                    throw ScenarioError(
                        fmt::format("{}: plan.gpus: {} GPUs are no whole number of {} with {} each; {} or "
                                    "{} are",
                                    source.file, gpus, one.node.name, one.node.gpus,
                                    gpus / one.node.gpus * one.node.gpus, (gpus / one.node.gpus + 1) * one.node.gpus));
                size.push_back(fmt::format("cluster.nodes={}", gpus / one.node.gpus));
            }
            for (const auto& nic : nics) {
                for (const auto& ratio : blocked) {
                    for (const auto& precision : precisions) {
                        const std::vector<std::string> changes =
                            joined(joined(joined(joined(node, size), nic), ratio), precision);
                        Scenario s = source.load(changes);
                        s.price_per_gpu_hour = price_of(s, spec).value;
                        out.push_back(std::make_unique<PlanCluster>(std::move(s), changes));
                    }
                }
            }
        }
    }
    return out;
}

}  // namespace fabricast::plan
