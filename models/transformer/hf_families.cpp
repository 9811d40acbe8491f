#include "models/transformer/hf_families.hpp"

#include <fmt/format.h>

namespace fabricast::detail {
namespace {

/// Keys nearly all families share; RMSNorm, rotary, gated, head of its own.
void llama_like(HfKeys& k, HfConfig& c, bool tied = false) {
    Architecture& a = c.model;
    a.layers = k.integer("num_hidden_layers");
    a.hidden = k.integer("hidden_size");
    a.heads = k.integer("num_attention_heads");
    a.kv_heads = k.integer("num_key_value_heads", a.heads);
    a.head_dim = k.integer("head_dim", a.heads > 0 ? a.hidden / a.heads : 0);
    a.ffn = k.integer("intermediate_size");
    a.vocab = k.integer("vocab_size");
    a.tied_embeddings = k.flag("tie_word_embeddings", tied);
    k.text("hidden_act");
}

void attention_bias(HfKeys& k, Architecture& a) { a.qkv_bias = a.projection_bias = k.flag("attention_bias", false); }

void window(HfKeys& k, Architecture& a) { a.window = k.integer("sliding_window", 0); }

/// Per-layer list of window and full attention -> the period an Architecture can say.
void layer_types(HfKeys& k, Architecture& a) {
    const std::vector<std::string> types = k.texts("layer_types");
    if (types.empty())
        return;
    const auto full = [&](std::size_t i) { return types[i] == "full_attention"; };
    std::size_t first = 0;
    while (first < types.size() && !full(first))
        ++first;
    if (a.window == 0 || first == 0) {
        for (std::size_t i = 0; i < types.size(); ++i)
            if (!full(i))
                k.fail(
                    "layer_types begins with full attention and goes on with windows; only a full layer at the end "
                    "of every group can be said");
        a.window = 0;
        return;
    }
    a.full_every = first == types.size() ? 0 : static_cast<std::int64_t>(first) + 1;
    for (std::size_t i = 0; i < types.size(); ++i) {
        const bool expected = a.full_every > 0 && (static_cast<std::int64_t>(i) + 1) % a.full_every == 0;
        if (full(i) != expected)
            k.fail(fmt::format("layer_types has no period: layer {} is `{}`", i, types[i]));
    }
}

void read_llama(HfKeys& k, HfConfig& c) {
    llama_like(k, c);
    attention_bias(k, c.model);
    if (k.flag("mlp_bias", false))
        k.fail("mlp_bias: true cannot be said; a bias is on all linear layers (`biases`) or on attention alone");
}

void read_mistral(HfKeys& k, HfConfig& c) {
    llama_like(k, c);
    window(k, c.model);
}

void read_mixtral(HfKeys& k, HfConfig& c) {
    read_mistral(k, c);
    Moe& moe = c.model.moe;
    moe.experts = k.integer("num_local_experts");
    moe.top_k = k.integer("num_experts_per_tok");
    moe.ffn = c.model.ffn;
}

/// sliding_window counts only when use_sliding_window says so, and then from layer max_window_layers on.
void qwen_window(HfKeys& k, HfConfig& c) {
    const bool used = k.flag("use_sliding_window", false);
    const std::int64_t from = k.integer("max_window_layers", 0), size = k.integer("sliding_window", 0);
    if (!used)
        return;
    c.model.window = size;
    if (size > 0 && from > 0 && from < c.model.layers)
        c.notes.push_back(fmt::format("windows begin at layer {} there; here all layers have them", from));
    if (from >= c.model.layers)
        c.model.window = 0;
}

void read_qwen2(HfKeys& k, HfConfig& c) {
    llama_like(k, c);
    c.model.qkv_bias = true;
    qwen_window(k, c);
    layer_types(k, c.model);
}

void read_qwen3(HfKeys& k, HfConfig& c) {
    llama_like(k, c);
    attention_bias(k, c.model);
    c.model.qk_norm = true;
    c.model.head_dim = k.integer("head_dim", 128);
    qwen_window(k, c);
    layer_types(k, c.model);
}

void qwen_experts(HfKeys& k, HfConfig& c) {
    Moe& moe = c.model.moe;
    moe.experts = k.integer("num_experts");
    moe.top_k = k.integer("num_experts_per_tok");
    moe.ffn = k.integer("moe_intermediate_size");
    moe.every = k.integer("decoder_sparse_step", 1);
    const std::vector<std::int64_t> dense = k.integers("mlp_only_layers");
    for (std::size_t i = 0; i < dense.size(); ++i)
        if (dense[i] != static_cast<std::int64_t>(i))
            k.fail("mlp_only_layers: only the first layers can be dense");
    moe.first_dense = static_cast<std::int64_t>(dense.size());
}

void read_qwen2_moe(HfKeys& k, HfConfig& c) {
    read_qwen2(k, c);
    qwen_experts(k, c);
    c.model.moe.shared_ffn = k.integer("shared_expert_intermediate_size");
    c.model.moe.shared_gate = true;
}

void read_qwen3_moe(HfKeys& k, HfConfig& c) {
    read_qwen3(k, c);
    qwen_experts(k, c);
}

void softcaps(HfKeys& k, HfConfig& c) {
    const bool scores = k.has("attn_logit_softcapping"), logits = k.has("final_logit_softcapping");
    if (scores || logits)
        c.notes.emplace_back("soft caps on scores and logits: their passes are not counted");
}

void read_gemma(HfKeys& k, HfConfig& c) {
    llama_like(k, c, true);
    c.model.head_dim = k.integer("head_dim", 256);
    attention_bias(k, c.model);
    k.text("hidden_activation");
}

void read_gemma2(HfKeys& k, HfConfig& c) {
    read_gemma(k, c);
    c.model.post_norms = true;
    window(k, c.model);
    c.model.full_every = c.model.window > 0 ? 2 : 0;
    layer_types(k, c.model);
    softcaps(k, c);
}

void read_gemma3(HfKeys& k, HfConfig& c) {
    read_gemma(k, c);
    c.model.post_norms = c.model.qk_norm = true;
    window(k, c.model);
    c.model.full_every = c.model.window > 0 ? k.integer("sliding_window_pattern", 6) : 0;
    layer_types(k, c.model);
    softcaps(k, c);
}

void read_deepseek(HfKeys& k, HfConfig& c) {
    llama_like(k, c);
    Architecture& a = c.model;
    if (k.flag("attention_bias", false))
        k.fail("attention_bias: true cannot be said with latent attention");
    a.attention = AttentionKind::latent;
    a.kv_heads = a.heads;
    a.query_rank = k.integer("q_lora_rank", 0);
    a.key_value_rank = k.integer("kv_lora_rank");
    a.rope_dim = k.integer("qk_rope_head_dim");
    a.head_dim = k.integer("qk_nope_head_dim") + a.rope_dim;
    a.value_dim = k.integer("v_head_dim");
    if (k.integer("n_routed_experts", 0) == 0)
        return;
    a.moe.experts = k.integer("n_routed_experts");
    a.moe.top_k = k.integer("num_experts_per_tok");
    a.moe.ffn = k.integer("moe_intermediate_size");
    a.moe.shared_ffn = a.moe.ffn * k.integer("n_shared_experts", 0);
    a.moe.first_dense = k.integer("first_k_dense_replace", 0);
    if (k.integer("moe_layer_freq", 1) != 1)
        k.fail("moe_layer_freq other than 1 cannot be said here");
    const std::int64_t groups = k.integer("n_group", 1), limit = k.integer("topk_group", 1);
    if (groups > 1)
        c.notes.push_back(
            fmt::format("a token's experts come from {} of {} groups (topk_group, n_group); routing here "
                        "is over all experts",
                        limit, groups));
}

void read_deepseek_v3(HfKeys& k, HfConfig& c) {
    read_deepseek(k, c);
    c.model.moe.score_bias = k.text("topk_method", "noaux_tc") == "noaux_tc" && c.model.moe.experts > 0;
    c.model.mtp_layers = k.integer("num_nextn_predict_layers", 0);
}

/// LayerNorm, GeLU MLP, biases.
void plain(Architecture& a) {
    a.rms_norm = a.gated = false;
    a.biases = true;
}

void read_gpt2(HfKeys& k, HfConfig& c) {
    Architecture& a = c.model;
    plain(a);
    a.layers = k.integer({"n_layer", "num_hidden_layers"});
    a.hidden = k.integer({"n_embd", "hidden_size"});
    a.heads = a.kv_heads = k.integer({"n_head", "num_attention_heads"});
    a.head_dim = a.heads > 0 ? a.hidden / a.heads : 0;
    a.ffn = k.integer("n_inner", 4 * a.hidden);
    a.vocab = k.integer("vocab_size");
    a.max_positions = k.integer({"n_positions", "max_position_embeddings"});
    a.rotary = false;
    a.tied_embeddings = k.flag("tie_word_embeddings", true);
    k.text("activation_function");
}

void read_opt(HfKeys& k, HfConfig& c) {
    Architecture& a = c.model;
    plain(a);
    a.layers = k.integer("num_hidden_layers");
    a.hidden = k.integer("hidden_size");
    a.heads = a.kv_heads = k.integer("num_attention_heads");
    a.head_dim = a.heads > 0 ? a.hidden / a.heads : 0;
    a.ffn = k.integer("ffn_dim");
    a.vocab = k.integer("vocab_size");
    a.max_positions = k.integer("max_position_embeddings") + 2;  // the class adds an offset of two
    a.rotary = false;
    a.tied_embeddings = k.flag("tie_word_embeddings", true);
    if (k.integer("word_embed_proj_dim", a.hidden) != a.hidden || !k.flag("do_layer_norm_before", true))
        k.fail("word_embed_proj_dim other than hidden_size (OPT-350m) cannot be said");
}

void read_gpt_neox(HfKeys& k, HfConfig& c) {
    llama_like(k, c);
    plain(c.model);
    c.model.kv_heads = c.model.heads;
    c.model.parallel_block = c.model.separate_norms = k.flag("use_parallel_residual", true);
    if (!k.flag("attention_bias", true))
        k.fail("attention_bias: false beside biased MLPs cannot be said");
}

void read_falcon(HfKeys& k, HfConfig& c) {
    Architecture& a = c.model;
    plain(a);
    a.layers = k.integer({"num_hidden_layers", "n_layer"});
    a.hidden = k.integer("hidden_size");
    a.heads = k.integer({"num_attention_heads", "n_head"});
    a.head_dim = a.heads > 0 ? a.hidden / a.heads : 0;
    a.ffn = k.integer("ffn_hidden_size", 4 * a.hidden);
    a.vocab = k.integer("vocab_size");
    a.biases = k.flag("bias", false);
    a.tied_embeddings = k.flag("tie_word_embeddings", true);
    a.alibi = k.flag("alibi", false);
    a.rotary = !a.alibi;
    const bool grouped = k.flag("new_decoder_architecture", c.model_type == "RefinedWeb");
    const bool multi_query = k.flag("multi_query", true);
    const bool one_norm = k.integer("num_ln_in_parallel_attn", grouped ? 2 : 1) == 1;
    if (grouped)
        a.kv_heads = k.has("num_kv_heads") ? k.integer("num_kv_heads") : k.integer("n_head_kv", a.heads);
    else
        a.kv_heads = multi_query ? 1 : a.heads;
    a.parallel_block = grouped || k.flag("parallel_attn", true);
    a.separate_norms = a.parallel_block && !one_norm;
}

void read_gpt_oss(HfKeys& k, HfConfig& c) {
    llama_like(k, c);
    Architecture& a = c.model;
    attention_bias(k, a);
    a.attention_sinks = true;
    a.moe.experts = k.integer({"num_local_experts", "num_experts"});
    a.moe.top_k = k.integer({"num_experts_per_tok", "experts_per_token"});
    k.integer("experts_per_token", 0);
    a.moe.ffn = a.ffn;
    a.moe.router_bias = a.moe.expert_bias = true;
    window(k, a);
    a.full_every = a.window > 0 ? 2 : 0;
    layer_types(k, a);
}

void read_mpt(HfKeys& k, HfConfig& c) {
    Architecture& a = c.model;
    plain(a);
    a.layers = k.integer("n_layers");
    a.hidden = k.integer("d_model");
    a.heads = k.integer("n_heads");
    a.head_dim = a.heads > 0 ? a.hidden / a.heads : 0;
    a.ffn = a.hidden * k.integer("expansion_ratio", 4);
    a.vocab = k.integer("vocab_size");
    a.biases = a.norm_bias = !k.flag("no_bias", true);
    a.tied_embeddings = k.flag("tie_word_embeddings", true);
    a.rotary = false;
    a.kv_heads = a.heads;
    if (const auto* attention = k.map("attn_config")) {
        const auto integer = [&](const char* key) {
            return attention->contains(key) ? (*attention)[key].get<int>() : 0;
        };
        a.alibi = attention->contains("alibi") && (*attention)["alibi"] == true;
        if (integer("kv_n_heads") > 0)
            a.kv_heads = integer("kv_n_heads");
        if (attention->contains("attn_type") && (*attention)["attn_type"] == "multiquery_attention")
            a.kv_heads = 1;
    }
    const bool learned = k.flag("learned_pos_emb", true) && !a.alibi;
    const std::int64_t positions = k.integer("max_seq_len", 2048);
    a.max_positions = learned ? positions : 0;
}

void read_internlm(HfKeys& k, HfConfig& c) {
    llama_like(k, c);
    c.model.qkv_bias = c.model.projection_bias = k.flag("bias", true);
}

void read_internlm2(HfKeys& k, HfConfig& c) {
    llama_like(k, c);
    if (k.flag("bias", true))
        c.model.qkv_bias = c.model.projection_bias = true;
}

void read_nemotron(HfKeys& k, HfConfig& c) {
    read_llama(k, c);
    c.model.gated = c.model.rms_norm = false;
}

void read_llama4(HfKeys& k, HfConfig& c) {
    k.enter("text_config");
    if (c.model_type == "llama4")
        c.notes.emplace_back("only the text model is read, not the vision tower");
    llama_like(k, c);
    Architecture& a = c.model;
    attention_bias(k, a);
    a.moe.experts = k.integer("num_local_experts");
    a.moe.top_k = k.integer("num_experts_per_tok");
    a.moe.ffn = a.moe.shared_ffn = a.ffn;
    a.moe.every = k.integer("interleave_moe_layer_step", 1);
    a.ffn = k.integer("intermediate_size_mlp", a.ffn);
    a.window = k.integer("attention_chunk_size", 0);
    a.full_every = a.window > 0 ? 4 : 0;
    if (a.window > 0)
        c.notes.push_back(
            fmt::format("attention in chunks of {} tokens is taken as a window, every fourth layer in full", a.window));
    if (k.flag("use_qk_norm", false))
        c.notes.emplace_back("use_qk_norm: norms without weights, their passes are not counted");
}

/// Qwen 1: gate and up are counted together in intermediate_size.
void read_qwen(HfKeys& k, HfConfig& c) {
    Architecture& a = c.model;
    a.layers = k.integer("num_hidden_layers");
    a.hidden = k.integer("hidden_size");
    a.heads = a.kv_heads = k.integer("num_attention_heads");
    a.head_dim = k.integer("kv_channels", a.heads > 0 ? a.hidden / a.heads : 0);
    a.ffn = k.integer("intermediate_size") / 2;
    a.vocab = k.integer("vocab_size");
    a.qkv_bias = true;
    a.tied_embeddings = k.flag("tie_word_embeddings", false);
    if (!k.flag("no_bias", true))
        k.fail("no_bias: false cannot be said");
}

void read_phi3(HfKeys& k, HfConfig& c) {
    read_mistral(k, c);
    attention_bias(k, c.model);
}

void read_granite(HfKeys& k, HfConfig& c) {
    llama_like(k, c, true);
    attention_bias(k, c.model);
}

void read_starcoder2(HfKeys& k, HfConfig& c) {
    llama_like(k, c, true);
    plain(c.model);
    c.model.biases = k.flag("use_bias", true);
    window(k, c.model);
}

void read_gemma3_whole(HfKeys& k, HfConfig& c) {
    k.enter("text_config");
    c.notes.emplace_back("only the text model is read, not the vision tower");
    read_gemma3(k, c);
}

void read_glm4_moe(HfKeys& k, HfConfig& c) {
    llama_like(k, c);
    Architecture& a = c.model;
    a.qkv_bias = k.flag("attention_bias", false);
    a.qk_norm = k.flag("use_qk_norm", false);
    a.moe.experts = k.integer("n_routed_experts");
    a.moe.top_k = k.integer("num_experts_per_tok");
    a.moe.ffn = k.integer("moe_intermediate_size");
    a.moe.shared_ffn = a.moe.ffn * k.integer("n_shared_experts", 1);
    a.moe.first_dense = k.integer("first_k_dense_replace", 1);
    a.moe.score_bias = true;
    a.mtp_layers = k.integer("num_nextn_predict_layers", 0);
}

constexpr HfFamily kFamilies[] = {
    {"RefinedWeb", "falcon", read_falcon},
    {"RefinedWebModel", "falcon", read_falcon},
    {"deepseek_v2", "deepseek", read_deepseek},
    {"deepseek_v3", "deepseek", read_deepseek_v3},
    {"falcon", "falcon", read_falcon},
    {"gemma", "gemma", read_gemma},
    {"gemma2", "gemma", read_gemma2},
    {"gemma3", "gemma", read_gemma3_whole},
    {"gemma3_text", "gemma", read_gemma3},
    {"glm4_moe", "glm", read_glm4_moe},
    {"gpt2", "gpt", read_gpt2},
    {"gpt_neox", "gpt-neox", read_gpt_neox},
    {"gpt_oss", "gpt-oss", read_gpt_oss},
    {"granite", "llama", read_granite},
    {"internlm", "internlm", read_internlm},
    {"internlm2", "internlm", read_internlm2},
    {"kimi_k2", "deepseek", read_deepseek_v3},
    {"llama", "llama", read_llama},
    {"llama4", "llama4", read_llama4},
    {"llama4_text", "llama4", read_llama4},
    {"mistral", "llama", read_mistral},
    {"mixtral", "llama", read_mixtral},
    {"mpt", "mpt", read_mpt},
    {"nemotron", "nemotron", read_nemotron},
    {"opt", "gpt", read_opt},
    {"phi3", "llama", read_phi3},
    {"qwen", "qwen", read_qwen},
    {"qwen2", "qwen", read_qwen2},
    {"qwen2_moe", "qwen", read_qwen2_moe},
    {"qwen3", "qwen", read_qwen3},
    {"qwen3_moe", "qwen", read_qwen3_moe},
    {"starcoder2", "starcoder", read_starcoder2},
};

}  // namespace

std::span<const HfFamily> hf_families() { return kFamilies; }

}  // namespace fabricast::detail
