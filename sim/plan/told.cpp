#include "sim/plan/told.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace fabricast::plan {

std::string rule_text(const std::string& rule) {
    constexpr std::pair<std::string_view, std::string_view> kRules[] = {
        {"same", "the same job as another layout"},
        {"gpus", "tp x cp x pp does not divide the GPUs"},
        {"memory", "does not fit in memory"},
        {"failed", "fits and does not run"},
        {"training.global_batch", "the batch cannot be cut into dp x micro-batch"},
        {"training.schedule", "the schedule asks for other stages or micro-batches"},
        {"training.layout.pp", "the layers cannot be cut into pp stages"},
        {"training.layout.vpp", "the layers cannot be cut into pp x vpp chunks"},
        {"training.layout.tp", "tp does not divide heads or widths"},
        {"training.layout.ep", "ep does not divide experts or ranks"},
        {"training.layout.cp", "the sequence cannot be cut over cp"},
        {"training.layout.shard_group", "sharding groups do not divide the ranks"},
        {"training.layout.sp", "experts with tp need sequence parallelism"}};
    for (const auto& [name, text] : kRules) {
        if (rule == name)
            return std::string(text);
    }
    return rule;
}

std::string nothing_left(const PlanResult& r) {
    if (!r.ranking.empty())
        return {};
    std::string text = "no layout is left";
    if (!r.found.contradiction.empty())
        text += ": " + r.found.contradiction;
    std::uint64_t most = 0;
    std::string rule;
    for (const auto& [name, removed] : r.found.removed) {
        if (name != "same" && removed.count > most) {
            most = removed.count;
            rule = name;
        }
    }
    std::uint64_t same = 0;
    if (const auto at = r.found.removed.find("same"); at != r.found.removed.end())
        same = at->second.count;
    if (r.found.size == same)
        return text + fmt::format("; all {} of the list are the same jobs under other names", same);
    text += fmt::format("; of {} layouts", r.found.size - same);
    bool first = true;
    for (const auto& [name, removed] : r.found.removed) {
        if (name == "same")
            continue;
        text += fmt::format("{} {} {} ({})", first ? "" : ",", removed.count, rule_text(name), removed.example);
        first = false;
    }
    if (!rule.empty())
        text += fmt::format("; `{}` removed most", rule_text(rule));
    return text;
}

std::string prices_text(const PlanResult& r) {
    std::vector<std::string> told;
    bool any = false;
    for (const auto& cluster : r.clusters) {
        const Scenario& s = cluster->scenario();
        const Price price = price_of(s, r.spec);
        any = any || price.value > 0;
        std::string one = price.value > 0
                              ? fmt::format("{} {:.2f} {} ({})", s.gpu.name, price.value, s.currency, price.from)
                              : fmt::format("{} without a price", s.gpu.name);
        if (std::find(told.begin(), told.end(), one) == told.end())
            told.push_back(std::move(one));
    }
    return any ? fmt::format("a GPU-hour: {}", fmt::join(told, ", ")) : std::string();
}

std::vector<std::string> plan_overrides(const PlanResult& r, std::uint32_t cluster, const TrainingPlan& p) {
    const Layout& l = p.layout;
    const Scenario& s = r.clusters[cluster]->scenario();
    std::vector<std::string> out;
    for (const std::string& key : r.source.overrides) {
        if (!key.starts_with("plan.") && !key.starts_with("plan="))
            out.push_back(key);
    }
    const std::vector<std::string>& changes = r.clusters[cluster]->changes();
    out.insert(out.end(), changes.begin(), changes.end());
    if (!r.spec.prices.empty() && s.price_per_gpu_hour > 0)
        out.push_back(fmt::format("run.price={} {}/GPU-h", s.price_per_gpu_hour, s.currency));
    const auto add = [&](std::string_view key, const auto& value) {
        out.push_back(fmt::format("training.{}={}", key, value));
    };
    add("layout.tp", l.tp);
    add("layout.sp", l.sequence_parallel);
    add("layout.cp", l.cp);
    if (l.cp > 1)
        add("layout.cp_exchange", context_exchange_name(p.context));
    add("layout.ep", l.ep);
    add("layout.pp", l.pp);
    add("layout.vpp", l.vpp);
    add("layout.dp", l.dp);
    add("layout.zero", l.zero);
    add("layout.shard_group", l.shard_group);
    add("layout.order", l.order);
    if (!l.stage_layers.empty() || !s.training.layout.stage_layers.empty())
        add("layout.stage_layers", fmt::format("[{}]", fmt::join(l.stage_layers, ", ")));
    add("schedule", schedule_name(l.schedule));
    add("global_batch", fmt::format("{} sequences", p.global_batch));
    add("micro_batch", p.micro_batch);
    add("recompute", recompute_name(p.recompute));
    if (p.recompute_layers != s.training.recompute_layers)
        add("recompute_layers", p.recompute_layers);
    add("overlap.grad_reduce", p.overlap_grad_reduce);
    add("overlap.param_gather", p.overlap_param_gather);
    return out;
}

}  // namespace fabricast::plan
