// A parallel layout: how a model is cut over ranks. Pure data; checked by check_layout.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/parallel/compressed_traffic.hpp"
#include "models/parallel/offload.hpp"
#include "models/transformer/layer.hpp"
#include "models/transformer/optimizer.hpp"

namespace fabricast {

enum class Schedule : std::uint8_t { gpipe, one_f_one_b, interleaved, zb_h1, zb_h2, zb_v, dual_pipe };
std::string_view schedule_name(Schedule schedule);  ///< "zb-h2", as scenarios write it
enum class ContextExchange : std::uint8_t { ring, all_gather, ulysses };
std::string_view context_exchange_name(ContextExchange exchange);  ///< "all_gather", as scenarios write it
enum class ExpertDispatch : std::uint8_t { all_to_all, all_gather, node_aware };
enum class ReduceEvery : std::uint8_t { step, micro_batch };

struct Layout {
    std::int64_t tp = 1, cp = 1, ep = 1, pp = 1, dp = 1, vpp = 1;
    bool sequence_parallel = false;
    std::int64_t etp = 0;          ///< tensor parallelism of routed experts; 0 = tp
    int zero = 0;                  ///< ZeRO stage 0..3; FSDP is 3
    std::int64_t shard_group = 0;  ///< ranks of dp that share one sharded copy (HSDP); 0 = all of dp (and cp)
    Schedule schedule = Schedule::one_f_one_b;
    std::string order = "tp-cp-ep-dp-pp";  ///< fastest-varying first
    std::vector<std::int64_t> stage_layers =
        {};  ///< layers of every model chunk in model order, pp vpp of them; empty = even
    std::int64_t world() const { return tp * cp * pp * dp; }
    std::int64_t expert_tp() const { return etp > 0 ? etp : tp; }
};

struct TrainingPlan {
    Layout layout;
    std::int64_t sequence = 0;      ///< tokens
    std::int64_t global_batch = 0;  ///< sequences
    std::int64_t micro_batch = 1;
    Precision precision = Precision::bf16;
    Recompute recompute = Recompute::none;
    std::int64_t recompute_layers = 0;  ///< layers of a chunk that are recomputed; 0 = all
    ContextExchange context = ContextExchange::ring;
    bool context_balanced = true;  ///< false: ranks hold the sequence in order, and the last works most
    ExpertDispatch dispatch = ExpertDispatch::all_to_all;
    double capacity_factor = 0;         ///< tokens an expert takes at most / mean; 0 = no dropping
    double expert_imbalance = 1;        ///< hottest rank's tokens / mean
    bool reshard_after_forward = true;  ///< ZeRO-3: parameters are gathered again for the backward
    bool overlap_grad_reduce = false;
    bool overlap_param_gather = false;
    ReduceEvery reduce_every = ReduceEvery::step;
    std::int64_t bucket_bytes = 0;     ///< cap of a gradient bucket; 0 = library default
    std::vector<double> bucket_split;  ///< explicit: bucket sizes in given proportion units (MB); empty = by cap
    bool clip_gradients = true;        ///< global gradient norm every step
    Optimizer optimizer;
    Offload offload;
    CompressedTraffic compression;
    std::int64_t document = 0;  ///< packed sequences: tokens of a token's document (models/transformer/packing.hpp)
    std::int64_t micro_batches() const { return global_batch / (micro_batch * layout.dp); }
};

/// First broken rule of optimizer, offload and compression, as check_layout, which ends with it.
std::string check_methods(const TrainingPlan& plan, std::string& field);

/// First violated rule as a sentence ("layers 80 cannot be cut into pp 3 x vpp 1 equal chunks"), or empty.
/// `field` receives the scenario key it belongs to ("training.layout.pp").
std::string check_layout(const Architecture& a, const TrainingPlan& plan, std::int64_t gpus, std::string& field);

}  // namespace fabricast
