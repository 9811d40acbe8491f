#include "sim/report/plan_rows.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "sim/report/plan_views.hpp"
#include "sim/report/text.hpp"

namespace fabricast {
namespace report {

StepInterval interval_of(const plan::PlanResult& r, const plan::PlanRow& row) {
    return step_interval(r.clusters[row.cluster]->scenario(), row.figures.step_s);
}

bool is_tie(const plan::PlanResult& r, const plan::PlanRow& a, const plan::PlanRow& b) {
    const StepInterval x = interval_of(r, a), y = interval_of(r, b);
    if (x.runs == 0 || y.runs == 0)
        return false;
    const double s = a.figures.days / a.figures.step_s, t = b.figures.days / b.figures.step_s;
    return x.low_s * s <= y.high_s * t && y.low_s * t <= x.high_s * s;
}

std::string plan_layout_text(const TrainingPlan& p) {
    std::string text = layout_text(p.layout);
    if (p.layout.shard_group > 0)
        text += fmt::format(", groups of {}", p.layout.shard_group);
    if (p.layout.pp > 1)
        text += fmt::format(", {}", schedule_text(p.layout.schedule));
    text += fmt::format("; micro-batch {}, recompute {}", p.micro_batch, recompute_text(p.recompute));
    if (!p.overlap_grad_reduce || !p.overlap_param_gather)
        text += p.overlap_grad_reduce    ? ", only gradients overlap"
                : p.overlap_param_gather ? ", only parameters overlap"
                                         : ", no overlap";
    return text;
}

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

bool has_price(const plan::PlanResult& r) {
    return std::all_of(r.clusters.begin(), r.clusters.end(), [](const auto& c) { return c->price() > 0; });
}

}  // namespace report

std::string nothing_left(const plan::PlanResult& r) {
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
        text += fmt::format("{} {} {} ({})", first ? "" : ",", removed.count, report::rule_text(name), removed.example);
        first = false;
    }
    if (!rule.empty())
        text += fmt::format("; `{}` removed most", report::rule_text(rule));
    return text;
}

std::vector<std::string> plan_overrides(const plan::PlanResult& r, std::uint32_t cluster, const TrainingPlan& p) {
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
    constexpr std::string_view kSchedules[] = {"gpipe", "1f1b", "interleaved", "zb-h1", "zb-h2", "zb-v", "dual-pipe"};
    add("schedule", kSchedules[static_cast<std::size_t>(l.schedule)]);
    add("global_batch", fmt::format("{} sequences", p.global_batch));
    add("micro_batch", p.micro_batch);
    add("recompute", p.recompute == Recompute::none ? "none" : p.recompute == Recompute::full ? "full" : "selective");
    add("overlap.grad_reduce", p.overlap_grad_reduce);
    add("overlap.param_gather", p.overlap_param_gather);
    return out;
}

}  // namespace fabricast
