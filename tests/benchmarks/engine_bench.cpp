// Speed of the engine: event queue, max-min solver, and a training step of 1024 ranks as a hand-built Program.
//
// Counters: events, per_event (the whole run over its events), activities touched per solve.
#include <random>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "sim/engine/engine.hpp"
#include "tests/sim/engine/program_builder.hpp"

namespace fabricast::engine {
namespace {

using test::kMicrosecond;
using test::ProgramBuilder;
using test::receives;
using test::sends;

// ---- event queue ---------------------------------------------------------------------------------------------------

// Hold model: a queue of constant size; each turn pops the earliest event and pushes it again later.
void queue_hold(benchmark::State& state) {
    const auto pending = static_cast<std::uint32_t>(state.range(0));
    std::mt19937 random(1);
    std::vector<Picoseconds> delays(4096);
    for (Picoseconds& delay : delays)
        delay = static_cast<Picoseconds>(random() % (100 * kMicrosecond));
    EventQueue queue;
    queue.reserve(pending);
    for (std::uint32_t i = 0; i < pending; ++i)
        queue.push({delays[i % 4096], EventClass::compute_end, i});
    std::size_t turn = 0;
    for (auto _ : state) {
        Event event = queue.top();
        queue.pop();
        event.time += delays[turn++ % 4096];
        queue.push(event);
    }
    state.SetItemsProcessed(state.iterations());
}
BENCHMARK(queue_hold)->Arg(64)->Arg(1024)->Arg(65536);

// ---- max-min -------------------------------------------------------------------------------------------------------

struct Flows {
    std::vector<Rate> capacity;
    std::vector<std::vector<LinkUse>> demands;

    LinkId link(double bytes_per_s) {
        capacity.push_back(rate_from_bytes_per_s(bytes_per_s));
        return LinkId{static_cast<std::uint32_t>(capacity.size() - 1)};
    }
};

// One flow ends and starts again per turn; `demands` share links or not.
void replace_one_by_one(benchmark::State& state, const Flows& flows) {
    Network network(flows.capacity);
    std::vector<Network::Id> ids;
    std::vector<Rate> alone;
    for (const auto& demand : flows.demands) {
        alone.push_back(network.alone_rate(demand, 0));
        ids.push_back(network.start(demand, Bytes{1} << 30, 1, 0, alone.back(), 0));
    }
    network.solve(0);
    std::size_t turn = 0;
    Picoseconds now = 0;
    const std::uint64_t touched = network.activities_touched();
    for (auto _ : state) {
        const std::size_t i = turn++ % ids.size();
        network.remove(ids[i]);
        ids[i] = network.start(flows.demands[i], Bytes{1} << 30, 1, 0, alone[i], ++now);
        benchmark::DoNotOptimize(network.solve(now).size());
    }
    state.counters["touched_per_solve"] =
        static_cast<double>(network.activities_touched() - touched) / static_cast<double>(state.iterations());
}

// Rings of 16 private links each, as tensor-parallel groups on NVLink.
void max_min_disjoint(benchmark::State& state) {
    Flows flows;
    for (std::int64_t group = 0; group < state.range(0); ++group) {
        auto& demand = flows.demands.emplace_back();
        for (int l = 0; l < 16; ++l)
            demand.push_back({flows.link(160e9), kCoefficientOne});
    }
    replace_one_by_one(state, flows);
}
BENCHMARK(max_min_disjoint)->Arg(128)->Arg(4096);

// A chain in which every flow shares a link with the next: one component.
void max_min_chain(benchmark::State& state) {
    Flows flows;
    std::mt19937 random(3);
    std::vector<LinkId> links;
    for (std::int64_t l = 0; l <= state.range(0); ++l)
        links.push_back(flows.link(50e9 + static_cast<double>(random() % 1000) * 1e6));
    for (std::size_t f = 0; f + 1 < links.size(); ++f) {
        flows.demands.push_back({{links[f], kCoefficientOne}, {links[f + 1], kCoefficientOne}});
    }
    replace_one_by_one(state, flows);
}
BENCHMARK(max_min_chain)->Arg(64)->Arg(1024);

// All flows start at once between random hosts of a two-level fabric with 2:1 oversubscription.
void max_min_shared(benchmark::State& state) {
    constexpr std::uint32_t kHosts = 256, kPerLeaf = 16, kSpines = 4;
    Flows flows;
    std::vector<LinkId> up, down, leaf_up, leaf_down;
    for (std::uint32_t h = 0; h < kHosts; ++h) {
        up.push_back(flows.link(50e9));
        down.push_back(flows.link(50e9));
    }
    for (std::uint32_t l = 0; l < kHosts / kPerLeaf * kSpines; ++l) {
        leaf_up.push_back(flows.link(100e9));
        leaf_down.push_back(flows.link(100e9));
    }
    std::mt19937 random(4);
    for (std::int64_t f = 0; f < state.range(0); ++f) {
        const auto from = static_cast<std::uint32_t>(random() % kHosts),
                   to = static_cast<std::uint32_t>(random() % kHosts);
        const auto spine = static_cast<std::uint32_t>(random() % kSpines);
        flows.demands.push_back({{up[from], kCoefficientOne},
                                 {leaf_up[from / kPerLeaf * kSpines + spine], kCoefficientOne},
                                 {leaf_down[to / kPerLeaf * kSpines + spine], kCoefficientOne},
                                 {down[to], kCoefficientOne}});
    }
    for (auto _ : state) {
        Network network(flows.capacity);
        for (const auto& demand : flows.demands)
            network.start(demand, Bytes{1} << 30, 1, 0, network.alone_rate(demand, 0), 0);
        benchmark::DoNotOptimize(network.solve(0).size());
    }
    state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(max_min_shared)->Arg(4096)->Unit(benchmark::kMillisecond);

// ---- a training step of 1024 ranks ---------------------------------------------------------------------------------

// TP8 on private NVLink rings, PP8 and DP16 over one NIC a GPU, 1F1B; a layer pass is two segments and two
// tensor-parallel collectives, forward and backward.
class TrainingStep {
public:
    static constexpr std::uint32_t kTp = 8, kPp = 8, kDp = 16, kLayers = 12;

    explicit TrainingStep(int micro_batches) {
        links();
        reduce_ = b.call(0, 33'554'432, 12 * kMicrosecond, 58'720'256, 0);
        gradient_ = b.call(1, 1'000'000'000, 60 * kMicrosecond, 1'875'000'000, 1);
        norm_ = b.call(2, 8, 40 * kMicrosecond, 0, 2);
        forward_segment_ = segment(900 * kMicrosecond);
        backward_segment_ = segment(1800 * kMicrosecond);
        update_segment_ = segment(9000 * kMicrosecond);
        tp_label_ = b.label("tensor-parallel all-reduce", Account::comm_tp);
        compute_label_ = b.label("layer", Account::idle);
        for (std::uint32_t stage = 0; stage < kPp; ++stage)
            write_stage(static_cast<int>(stage), micro_batches);
        bind_ranks();
    }

    ProgramBuilder b;

private:
    static constexpr Bytes kMessage = 8'388'608;
    static std::uint32_t rank(std::uint32_t tp, std::uint32_t dp, std::uint32_t pp) {
        return (pp * kDp + dp) * kTp + tp;
    }

    void links() {
        for (std::uint32_t r = 0; r < kTp * kPp * kDp; ++r) {
            nvlink_.push_back(b.link(160e9));
            nvlink_.push_back(b.link(160e9));
            nic_out_.push_back(b.link(48e9));
            nic_in_.push_back(b.link(48e9));
        }
    }

    std::uint32_t segment(Picoseconds work) {
        program::CostClass& cost = b.cost(work);
        cost.host = work / 3;
        cost.host_first = 8 * kMicrosecond;
        cost.tail = 50 * kMicrosecond;
        cost.speed = {65536, 64000, 60000, 61000, 58000};
        return static_cast<std::uint32_t>(b.program.costs.size() - 1);
    }

    void pass(std::uint32_t cost) {
        b.repeat(kLayers);
        for (int half = 0; half < 2; ++half) {
            b.operation(program::OpKind::compute, 0, cost, compute_label_);
            b.operation(program::OpKind::collective, 0, reduce_, tp_label_);
        }
        b.end();
    }

    void write_stage(int stage, int m) {
        const int p = kPp, warm = std::min(m, p - stage - 1);
        const bool first = stage == 0, last = stage == p - 1;
        b.begin("stage " + std::to_string(stage), 2);
        b.repeat(1);
        b.repeat(warm);
        if (!first)
            b.batch(0, {receives(0, kMessage)});
        pass(forward_segment_);
        if (!last)
            b.batch(0, {sends(1, kMessage)});
        b.end();
        if (!first)
            b.batch(0, {receives(0, kMessage)});
        b.repeat(m - warm - 1);
        steady(last);
        if (!first)
            b.batch(0, {sends(0, kMessage), receives(0, kMessage)});
        b.end();
        steady(last);
        if (!first)
            b.batch(0, {sends(0, kMessage)});
        b.repeat(warm);
        if (!last)
            b.batch(0, {receives(1, kMessage)});
        pass(backward_segment_);
        if (!first)
            b.batch(0, {sends(0, kMessage)});
        b.end();
        const std::uint32_t done = b.compute(kMicrosecond);
        b.collective(1, gradient_, Account::comm_gradient, {done});
        const std::uint32_t normed = b.collective(1, norm_, Account::comm_other);
        b.compute_class(update_segment_, {normed});
        b.end_step();
    }

    void steady(bool last) {
        pass(forward_segment_);
        if (!last)
            b.batch(0, {sends(1, kMessage), receives(1, kMessage)});
        pass(backward_segment_);
    }

    void bind_ranks() {
        for (std::uint32_t pp = 0; pp < kPp; ++pp) {
            for (std::uint32_t r = 0; r < kDp * kTp; ++r)
                b.rank(pp);
        }
        for (std::uint32_t pp = 0; pp < kPp; ++pp) {
            for (std::uint32_t dp = 0; dp < kDp; ++dp) {
                std::vector<std::uint32_t> members;
                std::vector<LinkUse>& demand = b.program.demands.emplace_back();
                for (std::uint32_t tp = 0; tp < kTp; ++tp) {
                    members.push_back(rank(tp, dp, pp));
                    demand.push_back({nvlink_[2 * members.back()], kCoefficientOne});
                    demand.push_back({nvlink_[2 * members.back() + 1], kCoefficientOne});
                }
                b.group("tp " + std::to_string(pp * kDp + dp), members,
                        {static_cast<std::uint32_t>(b.program.demands.size() - 1)});
            }
        }
        for (std::uint32_t pp = 0; pp < kPp; ++pp) {
            for (std::uint32_t tp = 0; tp < kTp; ++tp) {
                std::vector<std::uint32_t> members;
                std::vector<LinkUse>& demand = b.program.demands.emplace_back();
                for (std::uint32_t dp = 0; dp < kDp; ++dp) {
                    members.push_back(rank(tp, dp, pp));
                    demand.push_back({nic_out_[members.back()], kCoefficientOne});
                    demand.push_back({nic_in_[members.back()], kCoefficientOne});
                }
                b.group("dp " + std::to_string(pp * kTp + tp), members,
                        {static_cast<std::uint32_t>(b.program.demands.size() - 1)});
            }
        }
        std::vector<std::uint32_t> everybody;
        for (std::uint32_t r = 0; r < kTp * kPp * kDp; ++r)
            everybody.push_back(r);
        b.group("world", everybody);
        for (std::uint32_t r : everybody) {
            neighbour(r, r < kDp * kTp ? program::kNone : r - kDp * kTp);
            neighbour(r, r + kDp * kTp < everybody.size() ? r + kDp * kTp : program::kNone);
        }
    }

    void neighbour(std::uint32_t from, std::uint32_t to) {
        b.peer(from, to,
               to == program::kNone ? program::kNone
                                    : b.route(b.demand({nic_out_[from], nic_in_[to]}), 10 * kMicrosecond));
    }

    std::vector<LinkId> nvlink_, nic_out_, nic_in_;
    std::uint32_t reduce_ = 0, gradient_ = 0, norm_ = 0, forward_segment_ = 0, backward_segment_ = 0,
                  update_segment_ = 0;
    std::uint32_t tp_label_ = 0, compute_label_ = 0;
};

void training_step(benchmark::State& state) {
    const TrainingStep step(static_cast<int>(state.range(0)));
    if (const std::string broken = program::validate(step.b.program); !broken.empty()) {
        state.SkipWithError(broken.c_str());
        return;
    }
    std::uint64_t events = 0, solves = 0, touched = 0, fingerprint = 0;
    for (auto _ : state) {
        const EngineResult result = step.b.run();
        if (result.outcome != Outcome::done || result.steps != 1) {
            state.SkipWithError(result.message.c_str());
            return;
        }
        events += result.events;
        solves += result.solves;
        touched += result.activities_touched;
        fingerprint = result.fingerprint;
    }
    const auto runs = static_cast<double>(state.iterations());
    state.counters["events"] = static_cast<double>(events) / runs;
    state.counters["per_event"] =
        benchmark::Counter(static_cast<double>(events), benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
    state.counters["touched_per_solve"] = static_cast<double>(touched) / static_cast<double>(solves);
    state.SetLabel("fingerprint " + std::to_string(fingerprint));
}
BENCHMARK(training_step)->Arg(8)->Arg(64)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace fabricast::engine
