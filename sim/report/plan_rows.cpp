#include "sim/report/plan_rows.hpp"

#include <fmt/format.h>

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
        text += fmt::format(", {}", schedule_name(p.layout.schedule));
    text += fmt::format("; micro-batch {}", p.micro_batch);
    if (p.recompute != Recompute::none)
        text += fmt::format(", {} recompute", recompute_name(p.recompute));
    if (!p.overlap_grad_reduce || !p.overlap_param_gather)
        text += p.overlap_grad_reduce    ? ", only gradients overlap"
                : p.overlap_param_gather ? ", only parameters overlap"
                                         : ", no overlap";
    return text;
}

}  // namespace report

}  // namespace fabricast
