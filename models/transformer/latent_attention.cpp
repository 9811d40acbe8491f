// Latent attention: queries, keys and values through compressed vectors (DeepSeek's MLA).
//
//   c_q = norm(x W_qa), q = c_q W_qb       or q = x W_q without compression
//   c, k_r = x W_kva, [k_n, v] = norm(c) W_kvb; k = [k_n, rotary(k_r)], one k_r for all heads
// The down projections W_qa and W_kva are whole on every tensor-parallel rank and see the tokens it has outside the
// sharded region (T/t with sequence parallelism); what is gathered in front of the column-parallel W_qb and W_kvb is
// compressed (attention_input_width in layer.hpp). Keys are put together from both parts and values taken apart: 4 bytes
// an element of K and V each way; queries turn in place on a fused stack, else they are joined as well. Backward of k_r
// sums over heads.
// Training multiplies W_qb and W_kvb out; the absorbed form is for inference.
// Sources: arXiv:2405.04434 section 2.1; Megatron-LM multi_latent_attention.py (where projections are duplicated, what
// is gathered, the fused rotary kernels).
#include "models/transformer/kernel_list.hpp"

namespace fabricast::detail {

namespace {

struct Latent {
    Linear query_down, query, key_value_down, key_value;
    std::int64_t rows, tokens, heads;
};

Latent latent(const Architecture& a, const LocalSizes& n) {
    Latent l;
    l.query_down = {n.hidden, {a.query_rank}, Cut::none, false};
    l.query = {a.query_rank > 0 ? a.query_rank : n.hidden, {n.query}, Cut::column, false};
    l.key_value_down = {n.hidden, {a.key_value_rank + a.rope_dim}, Cut::none, false};
    l.key_value = {a.key_value_rank, {n.heads * (a.head_dim - a.rope_dim) + n.value}, Cut::column, false};
    l.rows = n.norm_tokens;
    l.tokens = n.tokens;
    l.heads = n.heads;
    return l;
}

/// Rotary part and the copies around it, either direction.
void assemble(KernelList& list, const Architecture& a, const SoftwareFeatures& f, const Latent& l) {
    list.rotary(l.tokens * l.heads * a.rope_dim, l.tokens * a.rope_dim);
    if (f.fusion != Fusion::fused)
        list.pass(4, l.tokens * list.sizes().query);
    list.pass(4, l.tokens * (list.sizes().query + list.sizes().value));
}

}  // namespace

void append_latent_forward(KernelList& list, const Architecture& a, const SoftwareFeatures& f) {
    const Latent l = latent(a, list.sizes());
    if (a.query_rank > 0) {
        list.linear_forward(l.query_down);
        list.norm_forward(a.rms_norm, l.rows, a.query_rank);
    }
    list.linear_forward(l.query);
    list.linear_forward(l.key_value_down);
    list.norm_forward(a.rms_norm, l.rows, a.key_value_rank);
    list.linear_forward(l.key_value);
    assemble(list, a, f, l);
}

void append_latent_data(KernelList& list, const Architecture& a, const SoftwareFeatures& f) {
    const Latent l = latent(a, list.sizes());
    assemble(list, a, f, l);
    list.pass(2, l.tokens * l.heads * a.rope_dim);  // k_r over heads
    list.linear_data(l.key_value);
    list.norm_data(a.rms_norm, l.rows, a.key_value_rank);
    list.linear_data(l.key_value_down);
    list.linear_data(l.query);
    if (a.query_rank > 0) {
        list.norm_data(a.rms_norm, l.rows, a.query_rank);
        list.linear_data(l.query_down);
    }
    list.pass(6, l.rows * list.sizes().hidden);  // both gradients of x
}

void append_latent_weight(KernelList& list, const Architecture& a) {
    const Latent l = latent(a, list.sizes());
    list.linear_weight(l.key_value);
    list.norm_weight(a.rms_norm, l.rows, a.key_value_rank);
    list.linear_weight(l.key_value_down);
    list.linear_weight(l.query);
    if (a.query_rank > 0) {
        list.norm_weight(a.rms_norm, l.rows, a.query_rank);
        list.linear_weight(l.query_down);
    }
}

}  // namespace fabricast::detail
