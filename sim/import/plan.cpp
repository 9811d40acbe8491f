#include "sim/import/plan.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace fabricast::import {
namespace {

std::string product(const Plan& p) {
    return fmt::format("tp {} x pp {} x cp {}", p.tp.value_or(1), p.pp.value_or(1), p.cp.value_or(1));
}

void check_positive(Plan& p) {
    const auto check = [&](std::optional<std::int64_t>& value, const char* what) {
        if (value && *value < 1) {
            p.tell(fmt::format("{} is {}: left out", what, *value));
            value.reset();
        }
    };
    check(p.tp, "tp");
    check(p.pp, "pp");
    check(p.vpp, "vpp");
    check(p.cp, "cp");
    check(p.ep, "ep");
    check(p.etp, "etp");
    check(p.dp, "dp");
    check(p.world, "the number of GPUs");
    check(p.nodes, "the number of nodes");
    check(p.gpus_per_node, "the number of GPUs a node");
    check(p.sequence, "sequence");
    check(p.micro_batch, "micro batch");
    check(p.global_batch, "global batch");
    check(p.accumulation, "accumulation");
}

void derive_world(Plan& p) {
    if (!p.world && p.nodes && p.gpus_per_node)
        p.world = *p.nodes * *p.gpus_per_node;
    if (!p.layout_said)
        return;
    const std::int64_t inner = p.inner();
    if (p.world && *p.world % inner != 0) {
        p.tell(
            fmt::format("CONTRADICTION: {} = {} does not fit {} GPUs; the layout is kept, the number of GPUs must be "
                        "said (a multiple of {})",
                        product(p), inner, *p.world, inner));
        p.world.reset();
        p.nodes.reset();
    } else if (p.world) {
        const std::int64_t dp = *p.world / inner;
        if (p.dp && *p.dp != dp)
            p.tell(fmt::format("CONTRADICTION: dp {} is said, but {} GPUs / ({}) leave {}; the latter is taken", *p.dp,
                               *p.world, product(p), dp));
        p.dp = dp;
    } else if (p.dp) {
        p.world = *p.dp * inner;
        p.tell(fmt::format("GPUs are not said; {} x dp {} makes {}", product(p), *p.dp, *p.world));
    }
}

void derive_batch(Plan& p) {
    if (!p.global_batch && p.micro_batch && p.dp && p.accumulation)
        p.global_batch = *p.micro_batch * *p.accumulation * *p.dp;
    if (!p.micro_batch && p.global_batch && p.accumulation && p.dp) {
        if (*p.global_batch % (*p.accumulation * *p.dp) == 0)
            p.micro_batch = *p.global_batch / (*p.accumulation * *p.dp);
        else
            p.tell(fmt::format("CONTRADICTION: global batch {} is not a multiple of accumulation {} x dp {}",
                               *p.global_batch, *p.accumulation, *p.dp));
    }
    if (!p.global_batch || !p.micro_batch || !p.dp)
        return;
    const std::int64_t round = *p.micro_batch * *p.dp;
    if (*p.global_batch < round) {
        p.tell(
            fmt::format("CONTRADICTION: global batch {} is less than dp {} x micro batch {} = {}: no step can be "
                        "formed; the layout is kept, the batch is left out",
                        *p.global_batch, *p.dp, *p.micro_batch, round));
        p.refused_batch = true;
    } else if (*p.global_batch % round != 0) {
        p.tell(
            fmt::format("CONTRADICTION: global batch {} is not a multiple of dp {} x micro batch {} = {}; the batch is "
                        "left out",
                        *p.global_batch, *p.dp, *p.micro_batch, round));
        p.refused_batch = true;
    } else if (p.accumulation && *p.accumulation * round != *p.global_batch) {
        p.tell(
            fmt::format("CONTRADICTION: accumulation {} is said, but global batch {} / (dp {} x micro batch {}) is {}",
                        *p.accumulation, *p.global_batch, *p.dp, *p.micro_batch, *p.global_batch / round));
    }
}

void check_layout_rules(Plan& p) {
    const std::int64_t pp = p.pp.value_or(1), vpp = p.vpp.value_or(1), tp = p.tp.value_or(1);
    if (p.model) {
        const Architecture& a = *p.model;
        if (p.stage_layers.empty() && a.layers % (pp * vpp) != 0)
            p.tell(
                fmt::format("layers: {} cannot be cut evenly into pp {} x vpp {} chunks, and no stage layout is given",
                            a.layers, pp, vpp));
        if (a.heads % tp != 0)
            p.tell(fmt::format("CONTRADICTION: {} heads are not divisible by tp {}", a.heads, tp));
        if (a.moe.experts > 0 && a.moe.experts % p.ep.value_or(1) != 0)
            p.tell(fmt::format("CONTRADICTION: {} experts are not divisible by ep {}", a.moe.experts, *p.ep));
    }
    if (p.sp.value_or(false) && tp == 1)
        p.tell("sequence parallelism has no effect with tp 1");
    if (vpp > 1 && p.global_batch && p.micro_batch && p.dp && !p.refused_batch) {
        const std::int64_t micro_batches = *p.global_batch / (*p.micro_batch * *p.dp);
        if (micro_batches % pp != 0)
            p.tell(fmt::format("interleaving needs micro-batches in multiples of pp: {} is none of {}", micro_batches,
                               pp));
    }
    if (p.ep.value_or(1) > 1 && p.dp) {
        const std::int64_t room = *p.dp * p.cp.value_or(1) * tp / p.etp.value_or(tp);
        if (room % *p.ep != 0) {
            p.tell(
                fmt::format("CONTRADICTION: ep {} does not fit the {} ranks experts can spread over (dp x cp x tp / "
                            "etp); at least {} GPUs are needed",
                            *p.ep, room, p.pp.value_or(1) * *p.ep * p.etp.value_or(tp)));
        }
    }
}

void list_missing(Plan& p) {
    if (!p.model && p.model_preset.empty() && p.model_keys.empty())
        p.miss("model: a preset, hf: config.json, or shapes");
    if (p.world)
        p.miss("cluster.node: which server, such as hgx-h100 (its network comes with it)");
    else
        p.miss("cluster: number and kind of nodes (--gpus N settles what depends on the number)");
    if (!p.sequence)
        p.miss("training.sequence");
    if (p.refused_batch || !p.global_batch)
        p.miss("training.global_batch");
    if (!p.micro_batch)
        p.miss("training.micro_batch");
    if (!p.precision)
        p.miss("training.precision");
    if (!p.layout_said)
        p.miss("training.layout: the format has none");
}

}  // namespace

void Plan::tell(std::string sentence) {
    if (std::find(told.begin(), told.end(), sentence) == told.end())
        told.push_back(std::move(sentence));
}

void Plan::miss(std::string what) {
    if (std::find(missing.begin(), missing.end(), what) == missing.end())
        missing.push_back(std::move(what));
}

void finish(Plan& p) {
    check_positive(p);
    derive_world(p);
    derive_batch(p);
    check_layout_rules(p);
    list_missing(p);
}

void take_partial_model(Plan& plan, const Architecture& a, const std::vector<std::string>& absent) {
    if (absent.empty()) {
        plan.model = a;
        return;
    }
    for (const std::string& line : model_lines(a)) {
        const std::string key = line.substr(0, line.find(':'));
        if (std::find(absent.begin(), absent.end(), key) == absent.end())
            plan.model_keys.push_back(line);
    }
    for (const std::string& key : absent)
        plan.miss("model." + key);
}

void take_model_name(Plan& plan, const std::string& name) {
    std::string wanted = name.substr(name.find_last_of('/') == std::string::npos ? 0 : name.find_last_of('/') + 1);
    std::transform(wanted.begin(), wanted.end(), wanted.begin(), [](unsigned char c) { return std::tolower(c); });
    const auto squeeze = [](std::string text) {
        std::erase_if(text, [](char c) { return c == '-' || c == '_'; });
        if (text.starts_with("metallama"))
            text.erase(0, 4);
        return text;
    };
    // Suffixes that name a variant of the same shape.
    for (const char* suffix : {"-hf", "-instruct-2507", "-instruct", "-base", "-chat", "-it", "-v0.1", "-v0.3"})
        if (wanted.ends_with(suffix))
            wanted.erase(wanted.size() - std::string_view(suffix).size());
    for (const Architecture& a : architectures()) {
        if (squeeze(a.name) != squeeze(wanted))
            continue;
        plan.model_preset = a.name;
        plan.tell(fmt::format("the model is said by name only ({}); shapes are those of the preset {} ({})", name,
                              a.name, a.source));
        return;
    }
    plan.tell(
        fmt::format("the model is said by name only ({}), which is no preset; import its config.json with "
                    "`fabricast import hf`",
                    name));
}

}  // namespace fabricast::import
