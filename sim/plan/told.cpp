#include "sim/plan/told.hpp"

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

std::vector<std::string> plan_overrides(const PlanResult& r, std::uint32_t cluster, const TrainingPlan& p) {
    const Layout& l = p.layout;
    std::vector<std::string> out = r.clusters[cluster]->changes();
    const auto add = [&](std::string_view key, const auto& value) {
        out.push_back(fmt::format("training.{}={}", key, value));
    };
    add("layout.tp", l.tp);
    add("layout.sp", l.sequence_parallel);
    add("layout.cp", l.cp);
    if (l.cp > 1)
        add("layout.cp_exchange", p.context == ContextExchange::ring         ? "ring"
                                  : p.context == ContextExchange::all_gather ? "all_gather"
                                                                             : "ulysses");
    add("layout.ep", l.ep);
    add("layout.pp", l.pp);
    add("layout.vpp", l.vpp);
    add("layout.dp", l.dp);
    add("layout.zero", l.zero);
    add("layout.shard_group", l.shard_group);
    add("layout.order", l.order);
    if (!l.stage_layers.empty())
        add("layout.stage_layers", fmt::format("[{}]", fmt::join(l.stage_layers, ", ")));
    add("schedule", schedule_name(l.schedule));
    add("global_batch", fmt::format("{} sequences", p.global_batch));
    add("micro_batch", p.micro_batch);
    add("recompute", p.recompute == Recompute::none ? "none" : p.recompute == Recompute::full ? "full" : "selective");
    add("overlap.grad_reduce", p.overlap_grad_reduce);
    add("overlap.param_gather", p.overlap_param_gather);
    return out;
}

}  // namespace fabricast::plan
