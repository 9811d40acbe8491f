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
};

struct Architecture {
    std::string name;    ///< "llama-70b"
    std::string family;  ///< "llama" or "gpt"
    std::int64_t layers = 0, hidden = 0, heads = 0, kv_heads = 0, head_dim = 0, ffn = 0;
    std::int64_t vocab = 0;             ///< as the tokenizer has it; padded_vocab() is what is computed
    std::int64_t vocab_multiple = 128;  ///< padding unit per tensor-parallel rank (Megatron: 128)
    std::int64_t max_positions = 0;     ///< learned position embeddings; 0 = none (rotary)
    bool gated = true;                  ///< SwiGLU: three MLP matrices
    bool rms_norm = true;               ///< false: LayerNorm with bias
    bool biases = false;                ///< on all linear layers
    bool qkv_bias = false;
    bool tied_embeddings = false;
    bool rotary = true;
    Moe moe;
    AttentionKind attention = AttentionKind::grouped;
    // latent attention; head_dim = nope + rope is the width of a query and key head
    std::int64_t query_rank = 0;  ///< 0 = queries are projected in one step
    std::int64_t key_value_rank = 0, rope_dim = 0, value_dim = 0;
    std::int64_t window = 0;                   ///< sliding attention window in tokens; 0 = none
    std::int64_t full_every = 0;               ///< with a window: every n-th layer attends in full; 0 = none does
    bool projection_bias = false;              ///< bias of the attention output alone
    bool qk_norm = false, post_norms = false;  ///< norms of q and k per head; norms behind both blocks
    bool parallel_block = false;               ///< attention and MLP read one norm (Falcon)
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
LayerShape layer_shape(const Architecture& a, std::int64_t layer);

/// Vocabulary rounded up to vocab_multiple * tensor_parallel.
std::int64_t padded_vocab(const Architecture& a, std::int64_t tensor_parallel);

struct ParameterCount {
    std::int64_t attention = 0, mlp = 0, norms = 0;                       ///< one layer
    std::int64_t embedding = 0, positions = 0, final_norm = 0, head = 0;  ///< head 0 when tied
    std::int64_t layer() const { return attention + mlp + norms; }
    std::int64_t total(std::int64_t layers) const {
        return layers * layer() + embedding + positions + final_norm + head;
    }
};
/// Exact parameters with the given vocabulary (pass a.vocab for the published count).
ParameterCount count_parameters(const Architecture& a, std::int64_t vocab);

/// Model FLOPs of forward + backward of `sequences` sequences of `length` tokens, attention counted in full
/// (not halved for causality), no recomputation:
/// 12 B s L h^2 [(1 + g/a + s/h) q + (f/h) gm + V/(2 L h)], q = head_dim heads / hidden, gm = 3/2 gated else 1.
double model_flops(const Architecture& a, double sequences, double length, std::int64_t padded_vocabulary);
/// The part of model_flops that is attention scores (QK^T and AV).
double attention_flops(const Architecture& a, double sequences, double length);

/// Presets ("llama-70b", "gpt3-175b" ...); nullptr when unknown.
const Architecture* find_architecture(std::string_view name);
const std::vector<Architecture>& architectures();

}  // namespace fabricast
