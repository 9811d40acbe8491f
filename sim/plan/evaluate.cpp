#include "sim/plan/evaluate.hpp"

#include <algorithm>

#include "models/parallel/ranks.hpp"
#include "sim/step/price_step.hpp"

namespace fabricast::plan {
namespace {

bool is_exposed(Account account) { return (account >= Account::comm_tp && account <= Account::contention); }

// Offloaded state of the server that has most.
Bytes on_host(const Scenario& s, const std::vector<StageSummary>& stages) {
    const RankMap map(s.training.layout);
    Bytes most = 0, here = 0;
    for (std::uint32_t rank = 0; rank < map.world(); ++rank) {
        here = rank % s.node.gpus == 0 ? 0 : here;
        here += stages[static_cast<std::size_t>(map.at(rank).pp)].host;
        most = std::max(most, here);
    }
    return most;
}

}  // namespace

Evaluation evaluate(const PlanCluster& cluster, const TrainingPlan& plan) {
    Scenario s = cluster.scenario();
    s.training = plan;
    Evaluation out;
    out.capacity = s.gpu.memory_mib << 20;
    CompileOptions compiling;
    compiling.prices = &cluster.prices();
    compiling.validate = false;  // `run` does
    compiling.fits = [&](const std::vector<StageSummary>& stages) {
        const FullestStage fullest = fullest_stage(stages);
        out.stage = fullest.stage;
        out.memory = fullest.total;
        const auto host = static_cast<Bytes>(s.node.host_memory_bytes);
        out.fits = out.memory <= out.capacity && (!plan.offload.active() || host == 0 || on_host(s, stages) <= host);
        return out.fits;
    };
    PricedStep priced = price_step(s, cluster.compute(), cluster.cluster(), cluster.comm(), {}, compiling);
    if (!out.fits)
        return out;
    out.failure = std::move(priced.failure);
    out.events = priced.events;
    if (out.failure.empty())
        out.step = std::move(priced.step);
    return out;
}

Figures figures(const PlanCluster& cluster, const Evaluation& e) {
    Figures f;
    f.memory_gib = static_cast<double>(e.memory) / (1024.0 * 1024.0 * 1024.0);
    if (!e.ran())
        return f;
    const StepResult& step = e.step;
    const auto gpus = static_cast<double>(step.ranks);
    f.step_s = seconds(step.ps);
    f.mfu = step.peak_flops > 0 ? step.model_flops / (f.step_s * gpus * step.peak_flops) : 0;
    f.tokens_per_s = step.tokens / f.step_s;
    __int128 total = 0, exposed = 0;
    for (std::size_t a = 0; a < kAccountCount; ++a) {
        total += step.accounts[a];
        exposed += is_exposed(static_cast<Account>(a)) ? step.accounts[a] : 0;
    }
    if (total > 0) {
        f.exposed = static_cast<double>(exposed) / static_cast<double>(total);
        f.bubble =
            static_cast<double>(step.accounts[static_cast<std::size_t>(Account::bubble)]) / static_cast<double>(total);
    }
    const double tokens = cluster.scenario().tokens > 0 ? cluster.scenario().tokens : kTokensWithoutRun;
    f.days = tokens / step.tokens * f.step_s / 86400;
    f.gpu_hours = f.days * 24 * gpus;
    f.cost = f.gpu_hours * cluster.price();
    return f;
}

Values values_of(const PlanCluster& cluster, const TrainingPlan& plan) {
    Values out = {};
    const auto set = [&](Quantity name, std::int64_t value) {
        out[static_cast<std::size_t>(name)] = static_cast<double>(value);
    };
    const Layout& l = plan.layout;
    set(Quantity::gpus, cluster.gpus());
    set(Quantity::tp, l.tp);
    set(Quantity::sp, l.sequence_parallel);
    set(Quantity::cp, l.cp);
    set(Quantity::pp, l.pp);
    set(Quantity::vpp, l.vpp);
    set(Quantity::ep, l.ep);
    set(Quantity::dp, l.dp);
    set(Quantity::zero, l.zero);
    set(Quantity::shard_group, l.shard_group);
    set(Quantity::micro_batch, plan.micro_batch);
    set(Quantity::global_batch, plan.global_batch);
    set(Quantity::micro_batches, plan.micro_batches());
    return out;
}

Values values_of(const PlanCluster& cluster, const TrainingPlan& plan, const Figures& f) {
    Values out = values_of(cluster, plan);
    const auto set = [&](Quantity name, double value) { out[static_cast<std::size_t>(name)] = value; };
    set(Quantity::memory, f.memory_gib);
    set(Quantity::step, f.step_s);
    set(Quantity::mfu, f.mfu);
    set(Quantity::tokens_per_s, f.tokens_per_s);
    set(Quantity::days, f.days);
    set(Quantity::cost, f.cost);
    set(Quantity::bubble, f.bubble);
    set(Quantity::exposed, f.exposed);
    return out;
}

}  // namespace fabricast::plan
