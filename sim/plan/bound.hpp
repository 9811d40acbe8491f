// A lower bound on the step time of a layout, without a run.
//
// With M micro-batches a replica, stage s of layers l:
//
//   work(s)  = sum over l of [ once(l) + M (forward(l) + backward(l)) ]      compute and blocking tensor-parallel collectives
//   fill(s)  = sum over stages j before s of forward(j) + backward(j) of their first chunk: the first micro-batch has
//              come through them before s begins, the last gradient still has to when s is through
//   gather   = M times (twice with resharding) the time of an all-gather of all a stage holds, with ZeRO-3
//   step    >= max over s of max(work(s) + fill(s), gather(s))
//
// because a stage computes one piece at a time, pieces alone on the GPU at their quickest, collectives alone on the network,
// and ranks of a pipeline meet at the gradient norm, so that a step cannot overlap the next (fill counts only where they do,
// and for schedules that run down the stages; recomputation is not counted in it). One GPU of the busiest stage is slower
// (models/compute/spread.hpp); its share is counted for the stage that gains least among those near the busiest.
//
// Times of a layer come from the same templates and prices as the program's (a pipeline of one layer a stage, one and two
// micro-batches); what depends on dp (gradient traffic, optimizer) is left out. Admissible up to rounding: kSlack.
// tests/sim/plan/bound_test.cpp compares it with every run of small spaces.
#pragma once

#include <array>
#include <map>
#include <vector>

#include "sim/plan/plan_cluster.hpp"

namespace fabricast::plan {

class BoundBook {
public:
    explicit BoundBook(const PlanCluster& cluster) : cluster_(cluster) {}

    /// Seconds of a step at least; 0: nothing is known. The plan has passed check_layout.
    double step_s(const TrainingPlan& plan);

    /// Bytes that the fullest stage holds at least: weights, gradients, optimizer state.
    Bytes memory(const TrainingPlan& plan) const;

private:
    using Key = std::array<std::int64_t, 10>;
    /// Of a layer with what stands at its end of the model, seconds.
    struct Piece {
        double once = 0, forward = 0, backward = 0, recompute = 0;  ///< compute
        double once_tp = 0, each_tp = 0;                            ///< collectives, once a step and a micro-batch
        double forward_tp = 0;                                      ///< of each_tp
    };
    using Pieces = std::vector<Piece>;  ///< by layer

    const Pieces& pieces(const TrainingPlan& plan);
    Pieces make_pieces(const TrainingPlan& plan);
    Piece measure(const TrainingPlan& narrow, std::int64_t stage);
    double alone_s(Collective kind, const std::vector<std::uint32_t>& members, Bytes bytes);
    double gather_s(const TrainingPlan& plan, std::int64_t stage);

    const PlanCluster& cluster_;
    std::map<Key, Pieces> pieces_;
    std::map<std::vector<std::int64_t>, double> alone_;
};

}  // namespace fabricast::plan
