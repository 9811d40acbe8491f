#include "models/parallel/layout.hpp"

#include <fmt/format.h>

#include "models/parallel/placement.hpp"
#include "models/parallel/ranks.hpp"
#include "models/parallel/stage_parameters.hpp"

namespace fabricast {
namespace {

// Layers of the chunks.
std::string check_stages(const Architecture& a, const Layout& l) {
    const std::int64_t chunks = virtual_stages(l);
    if (l.stage_layers.empty()) {
        return a.layers % chunks == 0 ? std::string()
                                      : fmt::format("{} layers of {} cannot be cut into pp {} x vpp {} equal chunks",
                                                    a.layers, a.name, l.pp, l.vpp);
    }
    if (static_cast<std::int64_t>(l.stage_layers.size()) != chunks)
        return fmt::format("{} entries, but pp {} x vpp {} are {} chunks", l.stage_layers.size(), l.pp, l.vpp, chunks);
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < l.stage_layers.size(); ++i) {
        const std::int64_t layers = l.stage_layers[i];
        const bool end = i == 0 || i + 1 == l.stage_layers.size();
        if (layers < 0 || (layers == 0 && !end))
            return fmt::format("chunk {} has {} layers; only the first and the last may have none", i, layers);
        if (layers > a.layers)
            return fmt::format("chunk {} has {} layers, all of {} has {}", i, layers, a.name, a.layers);
        sum += layers;
    }
    return sum == a.layers ? std::string()
                           : fmt::format("the entries sum to {}, but {} has {} layers", sum, a.name, a.layers);
}

// What a schedule asks of stages, chunks and micro-batches.
std::string check_schedule(const TrainingPlan& plan, std::string& field) {
    const Layout& l = plan.layout;
    const std::int64_t m = plan.micro_batches();
    const auto broken = [&](const char* key, std::string sentence) {
        field = key;
        return sentence;
    };
    const bool chunked = l.schedule == Schedule::interleaved || l.schedule == Schedule::zb_v;
    if (!chunked && l.vpp > 1)
        return broken("training.layout.vpp", fmt::format("vpp {} needs schedule: interleaved", l.vpp));
    switch (l.schedule) {
        case Schedule::gpipe:
        case Schedule::one_f_one_b:
        case Schedule::zb_h1:
        case Schedule::zb_h2: break;
        case Schedule::interleaved:
            if (l.pp == 1)
                return broken("training.schedule", "an interleaved schedule needs pp of 2 or more");
            if (l.vpp == 1)
                return broken("training.layout.vpp", "an interleaved schedule needs vpp of 2 or more");
            if (m % l.pp != 0)
                return broken(
                    "training.schedule",
                    fmt::format("interleaving needs the {} micro-batches to be a multiple of pp {}", m, l.pp));
            break;
        case Schedule::zb_v:
            if (l.pp == 1)
                return broken("training.schedule", "zb-v needs pp of 2 or more");
            if (l.vpp != 2)
                return broken("training.layout.vpp",
                              fmt::format("zb-v gives every stage two chunks; vpp is {}, use vpp: 2", l.vpp));
            break;
        case Schedule::dual_pipe:
            if (l.pp % 2 != 0)
                return broken("training.schedule", fmt::format("dual-pipe needs an even pp; it is {}", l.pp));
            if (m % 2 != 0 || m < 2 * l.pp)
                return broken("training.schedule",
                              fmt::format("dual-pipe needs an even number of micro-batches, at least 2 pp = {}; "
                                          "there are {}",
                                          2 * l.pp, m));
            if (l.zero > 1 || plan.reduce_every == ReduceEvery::micro_batch)
                return broken(l.zero > 1 ? "training.layout.zero" : "training.reduce_every",
                              "dual-pipe reduces gradients when both directions are through; use zero: 0 or 1 and "
                              "reduce_every: step");
            break;
    }
    return {};
}

}  // namespace

namespace {

std::string check_context(const Architecture& a, const TrainingPlan& plan, std::string& field) {
    const Layout& l = plan.layout;
    if (l.cp == 1)
        return {};
    field = "training.layout.cp";
    const std::int64_t cuts =
        plan.context == ContextExchange::ulysses ? l.cp : 2 * l.cp;  // balanced: two pieces a rank
    if (plan.sequence % (cuts * (l.sequence_parallel ? l.tp : 1)) != 0)
        return fmt::format("sequence {} cannot be cut into {} equal pieces{}", plan.sequence, cuts,
                           l.sequence_parallel && l.tp > 1 ? fmt::format(" of tp {} parts", l.tp) : "");
    if (plan.context == ContextExchange::ulysses && (a.heads / l.tp) % l.cp != 0)
        return fmt::format("exchanging heads: cp {} does not divide the {} heads of a tensor-parallel rank", l.cp,
                           a.heads / l.tp);
    return {};
}

std::string check_experts(const Architecture& a, const TrainingPlan& plan, std::string& field) {
    const Layout& l = plan.layout;
    field = "training.layout.ep";
    if (a.moe.experts == 0) {
        if (l.ep > 1)
            return fmt::format("{} is a dense model and has no experts to spread over ep {}; use ep: 1", a.name, l.ep);
        return {};
    }
    if (a.moe.experts % l.ep != 0)
        return fmt::format("ep {} does not divide the {} experts of {}", l.ep, a.moe.experts, a.name);
    const std::int64_t ranks = l.tp * l.cp * l.dp;
    if (ranks % (l.expert_tp() * l.ep) != 0)
        return fmt::format("etp {} x ep {} does not divide the tp {} x cp {} x dp {} ranks of a stage", l.expert_tp(),
                           l.ep, l.tp, l.cp, l.dp);
    if (const Sharding s = expert_sharding(l);
        s.ranks * s.replicas * l.expert_tp() * l.ep != ranks * copies_in_pipeline(l)) {
        field = "training.layout.shard_group";
        return fmt::format("sharding groups of {} leave {} ranks of an expert's data group, which do not divide its {}",
                           l.shard_group, s.ranks, ranks * copies_in_pipeline(l) / (l.expert_tp() * l.ep));
    }
    field = "training.layout.etp";
    if (l.expert_tp() != 1 && l.expert_tp() != l.tp)
        return fmt::format("etp {} is neither 1 nor tp {}", l.expert_tp(), l.tp);
    if (a.moe.ffn % l.expert_tp() != 0)
        return fmt::format("etp {} does not divide the expert width {} of {}", l.expert_tp(), a.moe.ffn, a.name);
    field = "training.layout.sp";
    if (l.tp > 1 && !l.sequence_parallel)
        return fmt::format("experts with tp {} need sequence parallelism, as tokens are routed by one rank each", l.tp);
    field = "training.moe.capacity_factor";
    if (plan.capacity_factor < 0)
        return fmt::format("{} is below 0", plan.capacity_factor);
    field = "training.moe.imbalance";
    if (plan.expert_imbalance < 1 || plan.expert_imbalance > static_cast<double>(l.ep))
        return fmt::format("{} is outside 1 .. ep {}", plan.expert_imbalance, l.ep);
    return {};
}

}  // namespace

std::string check_layout(const Architecture& a, const TrainingPlan& plan, std::int64_t gpus, std::string& field) {
    const Layout& l = plan.layout;
    const auto broken = [&](std::string_view key, std::string sentence) {
        field = key;
        return sentence;
    };
    const struct {
        const char* key;
        std::int64_t value;
    } positive[] = {{"training.layout.tp", l.tp},
                    {"training.layout.cp", l.cp},
                    {"training.layout.ep", l.ep},
                    {"training.layout.pp", l.pp},
                    {"training.layout.dp", l.dp},
                    {"training.layout.vpp", l.vpp},
                    {"training.sequence", plan.sequence},
                    {"training.global_batch", plan.global_batch},
                    {"training.micro_batch", plan.micro_batch}};
    for (const auto& p : positive) {
        if (p.value < 1)
            return broken(p.key, fmt::format("{} is below 1", p.value));
    }
    if (!valid_order(l.order))
        return broken("training.layout.order", fmt::format("'{}' is no permutation of tp-cp-ep-dp-pp", l.order));
    if (l.world() != gpus) {
        const std::int64_t rest = l.tp * l.cp * l.pp;
        std::string hint = gpus % rest == 0 ? fmt::format("dp {} would fit", gpus / rest)
                                            : fmt::format("tp x cp x pp = {} does not divide {}", rest, gpus);
        return broken("training.layout.dp",
                      fmt::format("tp {} x cp {} x pp {} x dp {} = {} ranks, the cluster has {} GPUs; {}", l.tp, l.cp,
                                  l.pp, l.dp, l.world(), gpus, hint));
    }
    for (const auto check : {check_context, check_experts}) {
        std::string key;
        if (const std::string problem = check(a, plan, key); !problem.empty())
            return broken(key, problem);
    }
    if (l.tp > a.heads)
        return broken("training.layout.tp",
                      fmt::format("tp {} is more than the {} attention heads of {}", l.tp, a.heads, a.name));
    if (a.heads % l.tp != 0)
        return broken("training.layout.tp",
                      fmt::format("tp {} does not divide the {} attention heads of {}", l.tp, a.heads, a.name));
    if (a.kv_heads % l.tp != 0 && l.tp % a.kv_heads != 0)
        return broken(
            "training.layout.tp",
            fmt::format("tp {} and the {} key-value heads of {} do not divide each other", l.tp, a.kv_heads, a.name));
    if (a.ffn % l.tp != 0)
        return broken("training.layout.tp",
                      fmt::format("tp {} does not divide the feed-forward width {} of {}", l.tp, a.ffn, a.name));
    if (l.sequence_parallel && plan.sequence % l.tp != 0)
        return broken("training.sequence",
                      fmt::format("sequence {} cannot be cut into tp {} equal parts for sequence parallelism",
                                  plan.sequence, l.tp));
    if (const std::string sentence = check_stages(a, l); !sentence.empty()) {
        const bool uneven = !l.stage_layers.empty();
        return broken(uneven      ? "training.layout.stage_layers"
                      : l.vpp > 1 ? "training.layout.vpp"
                                  : "training.layout.pp",
                      sentence);
    }
    if (plan.global_batch % (plan.micro_batch * l.dp) != 0) {
        return broken("training.global_batch",
                      fmt::format("{} sequences cannot be cut into dp {} x micro-batches of {}", plan.global_batch,
                                  l.dp, plan.micro_batch));
    }
    if (const std::string sentence = check_schedule(plan, field); !sentence.empty())
        return sentence;
    if (l.zero < 0 || l.zero > 3)
        return broken("training.layout.zero", fmt::format("ZeRO stage {} is outside 0..3", l.zero));
    if (l.shard_group < 0 || (l.shard_group > 0 && (l.dp * l.cp) % l.shard_group != 0))
        return broken("training.layout.shard_group",
                      fmt::format("sharding groups of {} do not divide dp {} x cp {}", l.shard_group, l.dp, l.cp));
    if (plan.recompute_layers < 0)
        return broken("training.recompute_layers", fmt::format("{} is below 0", plan.recompute_layers));
    if (plan.bucket_bytes < 0)
        return broken("training.buckets", fmt::format("{} bytes is below 0", plan.bucket_bytes));
    for (const double part : plan.bucket_split) {
        if (!(part > 0))
            return broken("training.buckets", fmt::format("bucket share {} is not positive", part));
    }
    return check_methods(plan, field);
}

std::string_view schedule_name(Schedule schedule) {
    switch (schedule) {
        case Schedule::gpipe: return "gpipe";
        case Schedule::one_f_one_b: return "1f1b";
        case Schedule::interleaved: return "interleaved";
        case Schedule::zb_h1: return "zb-h1";
        case Schedule::zb_h2: return "zb-h2";
        case Schedule::zb_v: return "zb-v";
        case Schedule::dual_pipe: return "dual-pipe";
    }
    return {};
}

std::string_view context_exchange_name(ContextExchange exchange) {
    switch (exchange) {
        case ContextExchange::ring: return "ring";
        case ContextExchange::all_gather: return "all_gather";
        case ContextExchange::ulysses: return "ulysses";
    }
    return {};
}

}  // namespace fabricast
