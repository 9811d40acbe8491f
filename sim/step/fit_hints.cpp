#include "sim/step/fit_hints.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "models/parallel/compiler.hpp"

namespace fabricast {

std::vector<std::string> what_would_fit(const Scenario& s, const ComputeModel& compute) {
    constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;
    const double capacity = static_cast<double>(s.gpu.memory_mib) / 1024.0;
    const std::int64_t gpus = s.training.layout.world();
    std::vector<std::string> out;
    const auto attempt = [&](const std::string& change, TrainingPlan plan) {
        std::string field;
        if (!check_layout(s.model, plan, gpus, field).empty())
            return false;
        std::int64_t most = 0;
        for (const StageSummary& stage : stage_memory(s.model, plan, s.software, compute))
            most = std::max<std::int64_t>(most, stage.memory.total);
        const double gib = static_cast<double>(most) / kGiB;
        if (gib > capacity)
            return false;
        out.push_back(fmt::format("{} fits: {:.1f} of {:.1f} GiB{}", change, gib, capacity,
                                  gib > kTightUse * capacity ? ", tight" : ""));
        return true;
    };
    const TrainingPlan& now = s.training;
    if (!now.layout.sequence_parallel && now.layout.tp > 1) {
        TrainingPlan plan = now;
        plan.layout.sequence_parallel = true;
        attempt("layout.sp: true", plan);
    }
    for (int zero = now.layout.zero + 1; zero <= 3 && now.layout.dp > 1; ++zero) {
        TrainingPlan plan = now;
        plan.layout.zero = zero;
        if (attempt(fmt::format("zero: {}", zero), plan))
            break;
    }
    if (now.recompute == Recompute::none) {
        TrainingPlan plan = now;
        plan.recompute = Recompute::selective;
        attempt("recompute: selective", plan);
    }
    for (std::int64_t micro = now.micro_batch / 2; micro >= 1; micro /= 2) {
        TrainingPlan plan = now;
        plan.micro_batch = micro;
        if (attempt(fmt::format("micro_batch: {}", micro), plan))
            break;
    }
    if (now.recompute != Recompute::full) {
        TrainingPlan plan = now;
        plan.recompute = Recompute::full;
        attempt("recompute: full", plan);
    }
    for (std::int64_t tp = now.layout.tp * 2; tp <= s.node.gpus; tp *= 2) {
        TrainingPlan plan = now;
        if (now.layout.dp % (tp / now.layout.tp) != 0)
            break;
        plan.layout.tp = tp;
        plan.layout.dp = now.layout.dp * now.layout.tp / tp;
        if (attempt(fmt::format("layout.tp: {}, dp: {}", tp, plan.layout.dp), plan))
            break;
    }
    for (std::int64_t pp = now.layout.pp * 2; pp <= 64; pp *= 2) {
        TrainingPlan plan = now;
        if (now.layout.dp % (pp / now.layout.pp) != 0)
            break;
        plan.layout.pp = pp;
        plan.layout.dp = now.layout.dp * now.layout.pp / pp;
        if (attempt(fmt::format("layout.pp: {}, dp: {}", pp, plan.layout.dp), plan))
            break;
    }
    if (out.empty() && !now.offload.active() && now.layout.dp > 1) {
        TrainingPlan plan = now;
        plan.layout.zero = std::max(now.layout.zero, 2);
        plan.offload.optimizer = 1;
        plan.offload.host_bytes_per_s =
            s.node.host_memory_bytes_per_s * s.software.host_update_share / static_cast<double>(s.node.gpus);
        attempt(fmt::format("zero: {} and offload: cpu together", plan.layout.zero), plan);
    }
    if (out.empty()) {  // two changes at once
        TrainingPlan plan = now;
        plan.recompute = Recompute::full;
        plan.micro_batch = 1;
        if (now.layout.dp > 1)
            plan.layout.zero = 3;
        attempt(fmt::format("zero: {}, recompute: full and micro_batch: 1 together", plan.layout.zero), plan);
    }
    if (out.empty())
        out.push_back("no single change of zero, recompute, micro_batch, tp or pp fits; use more or larger GPUs");
    return out;
}

}  // namespace fabricast
