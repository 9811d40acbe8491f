// Plan -> scenario.yaml and the remarks beside it.
#include <fmt/format.h>

#include "sim/import/plan.hpp"

namespace fabricast::import {
namespace {

std::string yes(bool value) { return value ? "true" : "false"; }

std::string in_quotes(const std::string& text) {
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\')
            out += '\\';
        out += c == '\n' ? ' ' : c;
    }
    return out + "\"";
}

void cluster_section(const Plan& p, std::string& out) {
    if (!p.world)
        return;
    const std::int64_t per_node = p.gpus_per_node.value_or(0);
    if (per_node > 0 && *p.world % per_node == 0)
        out += fmt::format("cluster:\n  nodes: {}\n  node: {{gpus: {}}}   # which server must still be said\n",
                           *p.world / per_node, per_node);
}

void model_section(const Plan& p, std::string& out) {
    if (p.model) {
        out += "model:\n";
        for (const std::string& line : model_lines(*p.model))
            out += "  " + line + "\n";
    } else if (!p.model_preset.empty()) {
        out += fmt::format("model: {}\n", p.model_preset);
    } else if (!p.model_keys.empty()) {
        out += "model:   # incomplete\n";
        for (const std::string& line : p.model_keys)
            out += "  " + line + "\n";
    }
}

void training_section(const Plan& p, std::string& out) {
    std::string body;
    const auto line = [&](const std::string& key, const auto& value) { body += fmt::format("  {}: {}\n", key, value); };
    if (p.sequence)
        line("sequence", fmt::format("{} tokens", *p.sequence));
    if (p.global_batch && !p.refused_batch)
        line("global_batch", fmt::format("{} sequences", *p.global_batch));
    if (p.micro_batch)
        line("micro_batch", *p.micro_batch);
    if (p.precision)
        line("precision", *p.precision);
    std::string layout;
    const auto part = [&](const char* key, const auto& value) {
        if (value)
            layout += fmt::format("{}{}: {}", layout.empty() ? "" : ", ", key, *value);
    };
    part("tp", p.tp);
    if (p.sp)
        layout += fmt::format("{}sp: {}", layout.empty() ? "" : ", ", yes(*p.sp));
    part("pp", p.pp);
    part("vpp", p.vpp);
    part("cp", p.cp);
    part("ep", p.ep);
    part("etp", p.etp);
    part("dp", p.dp);
    part("zero", p.zero);
    part("shard_group", p.shard_group);
    part("cp_exchange", p.context_exchange);
    if (!p.stage_layers.empty()) {
        std::string list;
        for (const std::int64_t layers : p.stage_layers)
            list += fmt::format("{}{}", list.empty() ? "" : ", ", layers);
        layout += fmt::format("{}stage_layers: [{}]", layout.empty() ? "" : ", ", list);
    }
    if (!layout.empty())
        line("layout", "{" + layout + "}");
    if (p.schedule)
        line("schedule", *p.schedule);
    if (p.recompute)
        line("recompute", *p.recompute);
    if (p.recompute_layers)
        line("recompute_layers", *p.recompute_layers);
    std::string overlap, moe;
    const auto entry = [](std::string& list, const char* key, const std::string& value) {
        list += fmt::format("{}{}: {}", list.empty() ? "" : ", ", key, value);
    };
    if (p.overlap_grad_reduce || p.overlap_param_gather) {
        entry(overlap, "grad_reduce", yes(p.overlap_grad_reduce.value_or(false)));
        entry(overlap, "param_gather", yes(p.overlap_param_gather.value_or(false)));
    }
    if (p.reshard)
        entry(overlap, "reshard", yes(*p.reshard));
    if (p.expert_dispatch)
        entry(moe, "dispatch", *p.expert_dispatch);
    if (p.capacity_factor)
        entry(moe, "capacity_factor", fmt::format("{}", *p.capacity_factor));
    if (!moe.empty())
        line("moe", "{" + moe + "}");
    if (!overlap.empty())
        line("overlap", "{" + overlap + "}");
    std::string optimizer, offload;
    const auto said = [&](std::string& list, const char* key, const std::optional<std::string>& value) {
        if (value)
            entry(list, key, *value);
    };
    said(optimizer, "kind", p.optimizer);
    said(optimizer, "master", p.master);
    said(optimizer, "moments", p.moments);
    said(optimizer, "second_moment", p.second_moment);
    if (p.optimizer && !p.master && !p.moments && !p.second_moment)
        line("optimizer", *p.optimizer);
    else if (!optimizer.empty())
        line("optimizer", "{" + optimizer + "}");
    said(offload, "optimizer", p.offload_optimizer);
    said(offload, "parameters", p.offload_parameters);
    if (p.offload_optimizer && p.offload_fraction)
        entry(offload, "fraction", fmt::format("{}", *p.offload_fraction));
    if (!offload.empty() && p.offload_overlap)
        entry(offload, "overlap", yes(*p.offload_overlap));
    if (!offload.empty())
        line("offload", "{" + offload + "}");
    if (p.software)
        line("software", *p.software);
    if (!body.empty())
        out += "training:\n" + body;
}

}  // namespace

std::vector<std::string> model_lines(const Architecture& a) {
    std::vector<std::string> lines;
    const bool gpt = a.family == "gpt";
    const auto integer = [&](const char* key, std::int64_t value) {
        lines.push_back(fmt::format("{}: {}", key, value));
    };
    const auto when = [&](const char* key, std::int64_t value, std::int64_t otherwise) {
        if (value != otherwise)
            integer(key, value);
    };
    const auto flag = [&](const char* key, bool value, bool otherwise) {
        if (value != otherwise)
            lines.push_back(fmt::format("{}: {}", key, yes(value)));
    };
    if (!a.name.empty())
        lines.push_back(fmt::format("name: {}", in_quotes(a.name)));
    if (gpt)
        lines.emplace_back("family: gpt");
    integer("layers", a.layers);
    integer("hidden", a.hidden);
    integer("heads", a.heads);
    if (a.attention == AttentionKind::grouped) {
        when("kv_heads", a.kv_heads, a.heads);
        when("head_dim", a.head_dim, a.heads > 0 && a.hidden % a.heads == 0 ? a.hidden / a.heads : 0);
    }
    integer("ffn", a.ffn);
    integer("vocab", a.vocab);
    when("vocab_multiple", a.vocab_multiple, 128);
    when("max_positions", a.max_positions, 0);
    flag("gated", a.gated, !gpt);
    flag("rms_norm", a.rms_norm, !gpt);
    flag("norm_bias", a.norm_bias, true);
    flag("biases", a.biases, gpt);
    flag("qkv_bias", a.qkv_bias, false);
    flag("projection_bias", a.projection_bias, false);
    flag("tied_embeddings", a.tied_embeddings, gpt);
    flag("rotary", a.rotary, !gpt);
    flag("alibi", a.alibi, false);
    flag("qk_norm", a.qk_norm, false);
    flag("post_norms", a.post_norms, false);
    flag("parallel_block", a.parallel_block, false);
    flag("separate_norms", a.separate_norms, false);
    flag("attention_sinks", a.attention_sinks, false);
    when("window", a.window, 0);
    when("full_every", a.full_every, 0);
    when("mtp_layers", a.mtp_layers, 0);
    if (a.moe.experts > 0) {
        const Moe& m = a.moe;
        std::string moe = fmt::format("moe: {{experts: {}, top_k: {}, ffn: {}", m.experts, m.top_k, m.ffn);
        if (m.shared_ffn > 0)
            moe += fmt::format(", shared_ffn: {}", m.shared_ffn);
        if (m.first_dense > 0)
            moe += fmt::format(", first_dense: {}", m.first_dense);
        if (m.every > 1)
            moe += fmt::format(", every: {}", m.every);
        for (const auto& [key, value] : {std::pair{"router_bias", m.router_bias},
                                         {"score_bias", m.score_bias},
                                         {"shared_gate", m.shared_gate},
                                         {"expert_bias", m.expert_bias}})
            if (value)
                moe += fmt::format(", {}: true", key);
        lines.push_back(moe + "}");
    }
    if (a.attention == AttentionKind::latent) {
        const std::string query = a.query_rank > 0 ? fmt::format("query_rank: {}, ", a.query_rank) : "";
        lines.push_back(fmt::format("mla: {{{}key_value_rank: {}, nope_dim: {}, rope_dim: {}, value_dim: {}}}", query,
                                    a.key_value_rank, a.head_dim - a.rope_dim, a.rope_dim, a.value_dim));
    }
    return lines;
}

std::string scenario_yaml(const Plan& p) {
    std::string out = fmt::format("# From {} ({}).\n", p.file, p.format);
    for (const std::string& comment : p.comments)
        out += "# " + comment + "\n";
    for (const std::string& what : p.missing)
        out += "# still to be said: " + what + "\n";
    if (!p.name.empty())
        out += "name: " + in_quotes(p.name) + "\n";
    cluster_section(p, out);
    model_section(p, out);
    training_section(p, out);
    if (p.compression_gradients || p.compression_parameters) {
        std::string list;
        if (p.compression_gradients)
            list += "gradients: " + *p.compression_gradients;
        if (p.compression_parameters)
            list += (list.empty() ? "" : ", ") + ("parameters: " + *p.compression_parameters);
        out += fmt::format("comm:\n  compression: {{{}}}\n", list);
    }
    if (p.tokens)
        out += fmt::format("run: {{tokens: {:.0f}}}\n", *p.tokens);
    return out;
}

std::string remarks(const Plan& p) {
    std::string out;
    for (const std::string& sentence : p.told)
        out += sentence + "\n";
    if (!p.ignored.empty()) {
        out += "not used:";
        for (const std::string& key : p.ignored)
            out += " " + key;
        out += "\n";
    }
    for (const std::string& what : p.missing)
        out += "still to be said: " + what + "\n";
    return out;
}

}  // namespace fabricast::import
