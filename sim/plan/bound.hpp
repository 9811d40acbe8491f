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
// and for schedules that run down the stages; recomputation is not counted in it).
//
// Times of a layer come from the same templates and prices as the program's (a pipeline of one layer a stage, one and two
// micro-batches); what depends on dp (gradient traffic, optimizer) is left out. work and fill are bounds up to rounding.
//
// Two parts are heuristics, not bounds, and a plan that cuts says so (bound_assumptions):
//
//   kGatherSlack  0.97  gathers of ZeRO-3 in many calls take so much or more of one gather of all bytes; smaller calls have
//                       lower rates and more start-ups, but chunks and protocols differ by size
//   kNearBusiest  0.8   one GPU of the busiest stage is slower (models/compute/spread.hpp), and which stage that is hangs on the
//                       optimizer too: it is taken to have so much of the most work(s) or more, and the slowness is counted
//                       for the stage among these that gains least by it
//
// Neither is fitted: they are margins, and where one is too small a layout might be cut that belongs into the table.
// tests/sim/plan/bound_test.cpp holds the bound against every run of small spaces, ZeRO-3, sharding groups and an oversubscribed
// network among them; `--no-prune` simulates all.
#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include "sim/plan/plan_cluster.hpp"

namespace fabricast::plan {

inline constexpr double kNearBusiest = 0.8, kGatherSlack = 0.97;

/// What the bound takes for granted without proof, in sentences.
std::vector<std::string> bound_assumptions();

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
