// A lower bound on the step time of a layout, without a run.
//
// With M micro-batches a replica, stage s of layers l:
//
//   work(s)  = sum over l of [ once(l) + M (forward(l) + backward(l)) ]      compute and tensor-parallel collectives in line
//   path(s)  = end of stage s on the longest path through the passes of all stages (pass_path.hpp), each of which begins
//              with its optimizer: bubbles and messages of the schedule itself. A pass is the longest path through its layers,
//              tensor-parallel collectives on their stream included
//   tail     = what stage 0 still has to do after its last backward pass: the reductions that wait for it; overlapped ones of
//              a chunk follow each other from its last backward pass on
//   wire(s)  = what gathers and reductions of a step put on a link over its capacity, of the link with most
//   step    >= max over s of max(work(s), path(s) + (tail at stage 0), wire(s))
//
// because a stage computes one piece at a time, pieces alone on the GPU at their quickest, collectives and messages alone on
// the network, and ranks of a pipeline meet at the gradient norm, so that a step cannot overlap the next. Paths count only
// where ranks meet so, and for schedules that run down the stages. One GPU of the busiest stage is slower
// (models/compute/spread.hpp), as in the run; of stages that nearly tie for the busiest, the one that gains least counts.
//
// Times of a layer come from the same templates and prices as the program's (a pipeline of one layer a stage, one and two
// micro-batches); those of optimizer, gathers and reductions from the templates of stages at their true dp. Admissible up to
// rounding: kSlack.
//
// One part is a heuristic, and a plan that cuts says so (bound_assumptions): which stage is the busiest, hence has the slowest
// GPU, is told from these figures. All stages with kNearlyTied of the most work may be it; where paths do not count, those with
// kNearBusiest of the most work in passes. Neither is fitted. tests/sim/plan/bound_test.cpp holds the bound against every run of
// small spaces, ZeRO-3, sharding groups, an oversubscribed network and twelve stacks among them; `--no-prune` simulates all. Not
// counted: the CPU, so that a stack it holds up is bounded loosely (a small model on nanotron's by a third of its step).
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/plan/pass_path.hpp"
#include "sim/plan/plan_cluster.hpp"

namespace fabricast::plan {

inline constexpr double kNearlyTied = 0.999, kNearBusiest = 0.8;

/// What the bound takes for granted without proof, in sentences.
std::vector<std::string> bound_assumptions();

class BoundBook {
public:
    explicit BoundBook(const PlanCluster& cluster) : cluster_(cluster) {}

    /// Seconds of a step at least; 0: nothing is known. The plan has passed check_layout.
    double step_s(const TrainingPlan& plan);

    /// Bytes that the fullest stage holds at least: weights, gradients, optimizer state.
    Bytes memory(const TrainingPlan& plan) const;

    /// Longest path through a pass, seconds: compute, and collectives it waits for.
    struct Pass {
        double forward = 0, backward = 0;
        void add(const Pass& other) {
            forward += other.forward;
            backward += other.backward;
        }
    };

private:
    using Key = std::array<std::int64_t, 10>;
    /// Of a layer with what stands at its end of the model, seconds.
    struct Piece {
        double once = 0, forward = 0, backward = 0, recompute = 0;  ///< compute
        double once_tp = 0, each_tp = 0;   ///< collectives in line, once a step and a micro-batch
        Pass nominal, slow;                ///< on a nominal GPU and on the slowest
        Pass nominal_beside, slow_beside;  ///< the same while a message waits or moves

        void add(const Piece& other);
    };
    using Pieces = std::vector<Piece>;  ///< by layer

    /// Of a stage with its true replicas, seconds: what is not a pass.
    struct Ends {
        double before = 0, other = 0;  ///< compute: before the first pass; in all that is not in passes
        double after = 0;              ///< behind the last pass: compute and blocking reductions
        double gathered = 0;           ///< parameters beside the first passes
        std::vector<double> reduced;   ///< gradients beside backward passes: by chunk in order of their last passes
        double last_reduced = 0;       ///< the last of them
        double network = 0;            ///< data-parallel calls of the template on the link that carries most of them
        Bytes message = 0;             ///< of one sequence
    };
    using Work = std::vector<std::vector<Piece>>;  ///< [stage][chunk]: sums over layers

    const Pieces& pieces(const TrainingPlan& plan);
    Pieces make_pieces(const TrainingPlan& plan);
    Piece measure(const TrainingPlan& narrow, std::int64_t stage);
    double slowest() const;
    const Ends& ends(const TrainingPlan& plan, std::int64_t stage);
    Ends measure_ends(const TrainingPlan& plan, std::int64_t stage);
    double path_s(const TrainingPlan& plan, const Work& work, std::size_t slow_stage);
    double alone_s(Collective kind, const std::vector<std::uint32_t>& members, Bytes bytes);
    double message_s(std::uint32_t from, std::uint32_t to, Bytes bytes);
    double quickest_s(const CommGroup& group, Collective kind, Bytes bytes, std::map<LinkId, double>& load);
    const PassLists& lists(const TrainingPlan& plan);

    const PlanCluster& cluster_;
    std::map<Key, Pieces> pieces_;
    std::map<std::vector<std::int64_t>, double> alone_, messages_;
    std::map<std::vector<std::int64_t>, Ends> ends_;
    std::vector<std::int64_t> lists_of_;  ///< what lists_ are of
    std::optional<PassLists> lists_;
};

}  // namespace fabricast::plan
