// A decoder, dense or mixture of experts: shapes, parameters, FLOPs. Knows nothing of parallel layouts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fabricast {

/// grouped: query heads share key and value heads (multi-head when equal, multi-query when one); latent: queries, keys
/// and values are projected up from compressed vectors (DeepSeek's MLA).
enum class AttentionKind : std::uint8_t { grouped, latent };

/// Mixture of experts: in every `every`-th layer from `first_dense` on, the MLP is replaced by routed experts.
struct Moe {
    std::int64_t experts = 0;  ///< 0 = a dense model
    std::int64_t top_k = 0;
    std::int64_t ffn = 0;         ///< width of one routed expert
    std::int64_t shared_ffn = 0;  ///< width of all shared experts together; 0 = none
    std::int64_t first_dense = 0;
    std::int64_t every = 1;  ///< 2: every second layer is MoE, the others dense (the last of each `every` is MoE)
    bool router_bias = false, shared_gate = false, expert_bias = false;
    bool score_bias = false;  ///< added to scores to pick experts, set by load and not by gradients (DeepSeek-V3)
};

struct Architecture {
    std::string name;    ///< "llama-70b"
    std::string family;  ///< "llama" or "gpt"
    std::int64_t layers = 0, hidden = 0, heads = 0, kv_heads = 0, head_dim = 0, ffn = 0;
    std::int64_t vocab = 0;             ///< as the tokenizer has it; padded_vocab() is what is computed
    std::int64_t vocab_multiple = 128;  ///< padding unit per tensor-parallel rank (Megatron: 128)
    std::int64_t max_positions = 0;     ///< learned position embeddings; 0 = none (rotary)
    bool gated = true;                  ///< SwiGLU: three MLP matrices
    bool rms_norm = true;               ///< false: LayerNorm
    bool norm_bias = true;              ///< LayerNorm adds a shift
    bool biases = false;                ///< on all linear layers
    bool qkv_bias = false;
    bool tied_embeddings = false;
    bool rotary = true;
    bool alibi = false;  ///< linear biases on scores: neither rotary nor learned positions
    Moe moe;
    AttentionKind attention = AttentionKind::grouped;
    // latent attention; head_dim = nope + rope is the width of a query and key head
    std::int64_t query_rank = 0;  ///< 0 = queries are projected in one step
    std::int64_t key_value_rank = 0, rope_dim = 0, value_dim = 0;
    std::int64_t window = 0;                   ///< sliding attention window in tokens; 0 = none
    std::int64_t full_every = 0;               ///< with a window: every n-th layer attends in full; 0 = none does
    bool projection_bias = false;              ///< bias of the attention output alone
    bool qk_norm = false, post_norms = false;  ///< norms of q and k per head; norms behind both blocks
    bool parallel_block = false;               ///< attention and MLP read the same input, one sum at the end (Falcon)
    bool separate_norms = false;               ///< with parallel_block: each through a norm of its own (GPT-NeoX)
    bool attention_sinks = false;              ///< a learned logit per head (GPT-OSS)
    std::int64_t mtp_layers = 0;               ///< multi-token prediction modules
    std::string source;                        ///< where the shape comes from
};

/// What distinguishes one layer from another of the same model.
struct LayerShape {
    bool moe = false;
    std::int64_t window = 0;  ///< 0 = full attention
    bool operator==(const LayerShape&) const = default;
};
/// Layers from a.layers on are prediction modules, shaped as the last layer.
LayerShape layer_shape(const Architecture& a, std::int64_t layer);

/// Vocabulary rounded up to vocab_multiple * tensor_parallel.
std::int64_t padded_vocab(const Architecture& a, std::int64_t tensor_parallel);

/// Parameters of one layer, by how a layout cuts them.
struct LayerParameters {
    std::int64_t attention = 0;   ///< projections from and to heads, sinks: over tp
    std::int64_t mlp = 0;         ///< the dense MLP, or all shared experts: over tp
    std::int64_t experts = 0;     ///< all routed experts together: over ep and etp
    std::int64_t norms = 0;       ///< on every rank
    std::int64_t replicated = 0;  ///< on every rank: router, shared gate, latent attention's down projections
    std::int64_t total() const { return attention + mlp + experts + norms + replicated; }
};
LayerParameters layer_parameters(const Architecture& a, const LayerShape& layer);

struct ParameterCount {
    std::int64_t attention = 0, mlp = 0, norms = 0;  ///< one dense layer; layer_parameters knows the other kinds
    std::int64_t embedding = 0, positions = 0, final_norm = 0, head = 0;  ///< head 0 when tied
    std::int64_t layers = 0;                                              ///< all layers
    std::int64_t idle = 0;  ///< what meets no token: experts it does not visit, score biases; all layers
    std::int64_t mtp = 0;   ///< prediction modules, on top of the total; embedding and head are the model's
    std::int64_t layer() const { return attention + mlp + norms; }
    /// As published: without prediction modules.
    std::int64_t total() const { return layers + embedding + positions + final_norm + head; }
    std::int64_t active() const { return total() - idle; }  ///< that a token meets
    /// Active without embeddings and head ("non-embedding" of model cards).
    std::int64_t active_layers() const { return active() - embedding - positions - head; }
};
/// Exact parameters with the given vocabulary (pass a.vocab for the published count).
ParameterCount count_parameters(const Architecture& a, std::int64_t vocab);

/// Model FLOPs of forward + backward of `sequences` sequences of `length` tokens, attention counted in full
/// (not halved for causality; a windowed layer counts its window), no recomputation. A dense model:
/// 12 B s L h^2 [(1 + g/a + s/h) q + (f/h) gm + V/(2 L h)], q = head_dim heads / hidden, gm = 3/2 gated else 1;
/// the other families at the head of model_flops.cpp.
/// document: of packed sequences (packing.hpp), keys that count a token; 0 = the whole sequence.
double model_flops(const Architecture& a, double sequences, double length, std::int64_t padded_vocabulary,
                   double document = 0);
/// The part of model_flops that is attention scores (QK^T and AV).
double attention_flops(const Architecture& a, double sequences, double length, double document = 0);
/// What model_flops counts for this model, as a sentence for reports.
std::string flops_convention(const Architecture& a, double document = 0);

/// Presets ("llama-70b", "gpt3-175b" ...); nullptr when unknown.
const Architecture* find_architecture(std::string_view name);
const std::vector<Architecture>& architectures();

}  // namespace fabricast
