// The kernels of one transformer layer on one tensor-parallel rank, cut where communication may happen.
//
// A layer is six pieces in order; between attention-side and mlp-side pieces a tensor-parallel layout
// communicates (models/parallel decides). tokens = micro_batch * sequence / cp; with sequence parallelism the norm
// and residual pieces see tokens / tp.
//
//   norm_attention -> attention -> residual_attention -> norm_mlp -> mlp -> residual_mlp
//
// In a mixture-of-experts layer `mlp` is moe_shared (shared experts), moe_route (router, permutation into send order),
// moe_experts (grouped products over the tokens this rank received) and moe_combine (back into token order, weighted);
// `mlp` is empty there and the moe pieces in a dense layer. Between route, experts and combine models/parallel dispatches
// and combines. The shared experts' first product reads what `mlp` would: all tokens of the tensor-parallel group.
//
// Tokens of experts: a rank routes R = tokens / tp with sequence parallelism (every tp rank its own part), else all
// tokens, and sends R top_k copies. Its experts receive R top_k expert_load g copies, g = etp with sequence parallelism
// (the etp ranks that share an expert each bring what they routed), so R = tokens / tp, g = 1 with etp 1 and all tokens
// with etp = tp; without sequence parallelism the tp ranks route the same tokens and g = max(1, etp / tp).
//
// Latent attention: attention_input_width stands for the hidden width in what is gathered in front of `attention` with
// sequence parallelism. Parallel blocks: residual_attention is empty, residual_mlp sums both branches, norm_mlp is empty
// unless the block has separate norms; implementations reduce the sum of both branches once.
//
// Bytes per element and FLOPs: heads of the .cpp, with sources.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/compute/kernel.hpp"
#include "models/transformer/architecture.hpp"

namespace fabricast {

/// Delayed scaling in fp8: ranks that agree on the largest values of their tensors, by an all-reduce behind every pass of a
/// model chunk: nobody; the ranks that hold parts of one replica's tensors (tp, cp); all that run a stage (tp, cp, dp).
enum class LargestValues : std::uint8_t { own, replica, stage };

/// What a software stack does; selected by name (models/transformer/software.hpp).
struct SoftwareFeatures {
    std::string name;               ///< "megatron-core-2024"
    std::string attention = "fa2";  ///< "unfused", a key of GpuSpec::attention, or "auto" (resolve_attention)
    Fusion fusion = Fusion::fused;  ///< norms, activations, residuals
    bool dropout = false;
    bool placeholder_gradients = false;  ///< 16-bit gradients nobody fills beside the fp32 ones (memory.hpp)
    bool tensor_replay = false;          ///< memory by replaying every tensor (models/parallel/eager_replay.hpp)
    bool fp32_gradients = true;          ///< weight gradients accumulate in fp32 in the GEMM
    bool fp32_reduce = true;             ///< gradients travel in fp32
    bool accumulate_apart = false;       ///< the product writes a 16-bit gradient, a pass of its own adds it to the sum
    bool fused_norms = false;            ///< eager: RMSNorm and rotary are single kernels all the same
    bool packed_copies = false;          ///< flash on q and a packed k, v: copies between layouts around it
    bool split_projections = false;      ///< q, k, v and gate, up are GEMMs of their own
    double loss_bytes_per_logit = 24;    ///< whole forward + backward of the loss, memory traffic
    double logits_memory_per_logit = 6;  ///< bytes held at the peak of the loss (6: bf16 logits + fp32 softmax)
    double fsdp_copy_bytes = 15;         ///< per unsharded parameter and micro-batch: flat-buffer copies, casts
    double host_per_kernel_s = 12e-6;    ///< CPU time to issue one kernel
    double host_per_layer_s = 0;         ///< and per layer pass
    double host_backward_share = 1;      ///< of that in a backward pass: autograd walks its graph in C++
    double host_per_step_s = 0;          ///< and per step, with the GPU idle: loss and norm read, log, next batch
    double host_per_shard_s = 0;         ///< ZeRO-1: and per tensor and rank, copied out of what was gathered
    bool cuda_graphs = false;            ///< host cost is nil
    bool p2p_overlap = false;            ///< interleaved schedule: sends and receives off the compute stream
    bool p2p_scatter_gather = true;      ///< without SP: send 1/tp, all-gather inside the node
    bool tp_backward_overlap = false;    ///< backward TP reduction runs beside the weight gradient
    double tp_hidden_fraction = 0;       ///< of TP traffic, by chunked GEMMs; not 0: stands for all TP overlap
    bool recompute_stops_early =
        false;                         ///< full: the last product of a layer is not run again, nothing reads its output
    bool recompute_keeps_qkv = false;  ///< full: outputs of the query, key and value products are kept
    bool selective_by_product =
        false;  ///< selective: every second product and pointwise kernels, not the attention core
    std::int64_t head_weight_deferred = 0;  ///< pipelines: head weight gradients of so many last micro-batches wait
    bool fp8_tensor_gather = false;         ///< in fp8, tensor-parallel gathers move what the products read: one byte
    bool fp8_parameter_gather = false;      ///< in fp8, gathered layer parameters travel in one byte
    LargestValues fp8_largest = LargestValues::own;  ///< in fp8: who agrees on scales after every pass
    std::int64_t bucket_parameters = 0;              ///< of overlapped reductions and gathers; 0: max(40e6, 1e6 ranks)
    bool buckets_on_first_stage = false;  ///< pipelines: only the model's first chunk has buckets, any other is one
    bool gathers_beside_update =
        false;  ///< interleaved: each first chunk is updated and gathered before the others, no
                ///< chunk has buckets
    bool host_waits_for_messages = false;  ///< the CPU waits for every pipeline exchange
    bool host_waits_for_passes = false;    ///< and for every forward and backward pass of a micro-batch
    bool autocast = false;  ///< parameters and gradients in fp32, cast from and to 16 bit by kernels of their own
    bool forwards_first =
        false;  ///< interleaved with as many micro-batches as stages: all forwards, then all backwards
    bool owner_broadcasts =
        false;  ///< ZeRO-1 deals whole tensors to ranks; after the update each owner broadcasts its own
    bool edges_regathered = false;  ///< sharded states: embedding and head are given back after each forward of theirs
    bool allocator_expandable = true;
    double host_update_share = 0.26;  ///< of the server's memory bandwidth that an update on the CPU reaches
    std::vector<std::string> sources;
};

struct Shard {
    std::int64_t tp = 1;
    bool sequence_parallel = false;
    std::int64_t micro_batch = 1;
    std::int64_t sequence = 0;  ///< tokens of the whole sequence, before context parallelism cuts it
    Precision precision = Precision::bf16;
    std::int64_t cp = 1;           ///< a rank holds sequence / cp tokens in a causally balanced cut
    bool ulysses = false;          ///< cp by exchanging heads: the core sees heads / cp and the whole sequence
    std::int64_t ep = 1, etp = 1;  ///< experts over ep ranks, each expert cut over etp
    double expert_load = 1;        ///< tokens this rank's experts receive / the mean
    std::int64_t document = 0;     ///< packed sequences: packing.hpp; 0 = a sequence is one document
    std::int64_t tokens() const { return micro_batch * sequence / cp; }
};

enum class Piece : std::uint8_t {
    norm_attention,
    attention,
    residual_attention,
    norm_mlp,
    mlp,
    residual_mlp,
    moe_shared,
    moe_route,
    moe_experts,
    moe_combine,
    count
};
enum class Recompute : std::uint8_t { none, selective, full };
std::string_view recompute_name(Recompute recompute);  ///< "selective", as scenarios write it

/// Forward kernels of a piece.
std::vector<Kernel> forward_kernels(const Architecture& a, const Shard& s, const SoftwareFeatures& f, Piece piece,
                                    const LayerShape& layer = {});
/// Backward kernels that produce the input gradient / the weight gradients. For attention the core's backward is
/// in the data part.
std::vector<Kernel> backward_data_kernels(const Architecture& a, const Shard& s, const SoftwareFeatures& f, Piece piece,
                                          const LayerShape& layer = {});
std::vector<Kernel> backward_weight_kernels(const Architecture& a, const Shard& s, const SoftwareFeatures& f,
                                            Piece piece, const LayerShape& layer = {});
/// The kernels selective recomputation runs again (scores, softmax, dropout, context; or the flash forward).
std::vector<Kernel> attention_core_forward(const Architecture& a, const Shard& s, const SoftwareFeatures& f,
                                           const LayerShape& layer = {});

/// Width of the vector in front of the column-parallel products of attention: hidden, or the compressed vectors.
std::int64_t attention_input_width(const Architecture& a);

/// What precedes the layer of a multi-token prediction module: embedding of the next token, norms of both inputs, their
/// projection 2 hidden -> hidden (column-parallel, its output gathered). Behind the layer: head_forward once more.
std::vector<Kernel> mtp_forward(const Architecture& a, const Shard& s, const SoftwareFeatures& f);
std::vector<Kernel> mtp_backward(const Architecture& a, const Shard& s, const SoftwareFeatures& f);

/// Embedding lookup of a micro-batch, final norm, head GEMM and loss on tokens (head is vocab / tp wide).
std::vector<Kernel> embedding_forward(const Architecture& a, const Shard& s, const SoftwareFeatures& f);
std::vector<Kernel> embedding_backward(const Architecture& a, const Shard& s, const SoftwareFeatures& f);
std::vector<Kernel> head_forward(const Architecture& a, const Shard& s, const SoftwareFeatures& f);
std::vector<Kernel> head_backward(const Architecture& a, const Shard& s, const SoftwareFeatures& f);
/// head_backward in two parts: loss, input gradient and norm; weight gradient of the head.
std::vector<Kernel> head_backward_data(const Architecture& a, const Shard& s, const SoftwareFeatures& f);
std::vector<Kernel> head_backward_weight(const Architecture& a, const Shard& s, const SoftwareFeatures& f);

/// Activation bytes one layer keeps for backward of one micro-batch; table at the head of activation.cpp.
struct ActivationBytes {
    std::int64_t kept = 0;     ///< under the recompute setting, between forward and backward
    std::int64_t working = 0;  ///< extra while one layer is being processed (full set when recomputed)
};
ActivationBytes layer_activation(const Architecture& a, const Shard& s, const SoftwareFeatures& f, Recompute r,
                                 const LayerShape& layer = {});
/// Held between the pass for input gradients and the pass for weight gradients: inputs and output gradients of the linear
/// layers (weight_inputs.cpp). Instead of, not on top of, layer_activation().kept.
std::int64_t weight_gradient_bytes(const Architecture& a, const Shard& s, const SoftwareFeatures& f,
                                   const LayerShape& layer = {});
/// The same for the head: its input and the gradients of the logits.
std::int64_t head_weight_gradient_bytes(const Architecture& a, const Shard& s, const SoftwareFeatures& f);
/// Token ids and the dropout mask of the embedding.
std::int64_t embedding_activation(const Architecture& a, const Shard& s, const SoftwareFeatures& f);
/// Held by the last stage while one micro-batch is in head and loss: inputs of final norm and head, logits.
std::int64_t logits_bytes(const Architecture& a, const Shard& s, const SoftwareFeatures& f);

/// Software feature sets by name; nullptr when unknown.
const SoftwareFeatures* find_software(std::string_view name);
const std::vector<SoftwareFeatures>& software_stacks();

}  // namespace fabricast
