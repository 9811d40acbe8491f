// The quantum: nothing ends before its bytes have moved, nothing is later than stated, and the end stays near the exact
// one's, on random networks and random programs.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "sim/engine/network.hpp"
#include "tests/sim/engine/program_builder.hpp"

namespace fabricast::engine {
namespace {

using test::kMicrosecond;
using test::ProgramBuilder;

struct Flow {
    std::vector<LinkUse> demand;
    Bytes work = 0;
    Picoseconds start = 0;
};

struct Job {
    std::vector<Rate> capacity;
    std::vector<Flow> flows;
};

/// Flows over one to three of the links, that start within `jitter`.
Job random_job(std::uint32_t seed, int links, int flows, Picoseconds jitter) {
    std::mt19937 random(seed);
    const auto number = [&](int low, int high) {
        return low + static_cast<int>(random() % static_cast<unsigned>(high - low + 1));
    };
    Job job;
    for (int l = 0; l < links; ++l)
        job.capacity.push_back(rate_from_bytes_per_s(number(10, 100) * 1e9));
    for (int f = 0; f < flows; ++f) {
        Flow& flow = job.flows.emplace_back();
        std::vector<std::uint32_t> all(static_cast<std::size_t>(links));
        for (std::uint32_t l = 0; l < all.size(); ++l)
            all[l] = l;
        std::shuffle(all.begin(), all.end(), random);
        for (int hop = number(1, std::min(3, links)); hop > 0; --hop)
            flow.demand.push_back({LinkId{all[static_cast<std::size_t>(hop) - 1]}, kCoefficientOne});
        flow.work = number(100'000, 1'000'000);
        flow.start = jitter > 0 ? static_cast<Picoseconds>(random() % static_cast<std::uint64_t>(jitter)) : 0;
    }
    return job;
}

struct Outcomes {
    std::vector<Picoseconds> finish, late;
    std::vector<Picoseconds> lost;  ///< by link
    std::vector<__int128> moved;    ///< integral of the rate, in rate units x ps
    std::uint64_t solves = 0;
    Batching batching;
    Picoseconds end() const { return *std::max_element(finish.begin(), finish.end()); }
};

// As the engine does: drain an instant, then solve. What a rate moved is summed here, by itself.
Outcomes run(const Job& job, Picoseconds quantum) {
    Network network(job.capacity, quantum);
    const std::size_t n = job.flows.size();
    constexpr Network::Id kNobody = ~Network::Id{0};
    std::vector<Network::Id> ids(n, kNobody);
    Outcomes out;
    out.finish.assign(n, -1);
    out.late.assign(n, 0);
    out.moved.assign(n, 0);
    struct Pending {
        Picoseconds time;
        Network::Id id;
        std::uint32_t version;
    };
    std::vector<Pending> queue;
    Picoseconds now = 0;
    for (std::size_t left = n; left > 0;) {
        Picoseconds next = INT64_MAX;
        std::erase_if(queue, [&](const Pending& p) { return network.version(p.id) != p.version; });
        for (const Pending& p : queue)
            next = std::min(next, p.time);
        for (std::size_t i = 0; i < n; ++i) {
            if (ids[i] == kNobody)
                next = std::min(next, job.flows[i].start);
        }
        if (next == INT64_MAX) {
            ADD_FAILURE() << "nothing is announced, " << left << " flows are left";
            return out;
        }
        for (std::size_t i = 0; i < n; ++i) {
            if (ids[i] != kNobody && out.finish[i] < 0)
                out.moved[i] += static_cast<__int128>(network.rate(ids[i])) * (next - now);
        }
        EXPECT_GE(next, now);
        now = next;
        for (std::size_t i = 0; i < n; ++i) {
            if (ids[i] == kNobody && job.flows[i].start == now) {
                const Flow& flow = job.flows[i];
                ids[i] = network.start(flow.demand, flow.work, 1, 0, network.alone_rate(flow.demand, 0), now);
            }
        }
        for (const Pending& p : std::vector<Pending>(queue)) {
            if (p.time != now || network.version(p.id) != p.version)
                continue;
            std::erase_if(queue, [&](const Pending& other) { return other.id == p.id && other.version == p.version; });
            if (p.id == Network::kTick) {
                network.come_back();
                continue;
            }
            for (std::size_t f = 0; f < n; ++f) {
                if (ids[f] == p.id && out.finish[f] < 0) {
                    out.finish[f] = now;
                    out.late[f] = network.lateness(p.id);
                }
            }
            network.remove(p.id);
            --left;
        }
        if (network.needs_solve()) {
            for (const Network::Id id : network.solve(now))
                queue.push_back({network.finish(id), id, network.version(id)});
            EXPECT_EQ(network.validate(), "");
        }
    }
    out.lost = network.lost_times();
    out.solves = network.solves();
    out.batching = network.batching();
    return out;
}

constexpr __int128 kWorkPerByte = static_cast<__int128>(kRateUnitsPerByte) * kPicosecondsPerSecond;

TEST(Quantum, MovesAllBytesAndIsNoLaterThanStated) {
    constexpr Picoseconds kQuantum = kMicrosecond;
    std::uint64_t exact_solves = 0, batched_solves = 0;
    Picoseconds most_over = 0;
    for (std::uint32_t seed = 0; seed < 300; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        const Job job = random_job(seed, 2 + static_cast<int>(seed % 9), 5 + static_cast<int>(seed % 56),
                                   seed % 3 == 0 ? 0 : 20 * kMicrosecond);
        const Outcomes exact = run(job, 0), batched = run(job, kQuantum);
        for (std::size_t i = 0; i < job.flows.size(); ++i) {
            const __int128 work = job.flows[i].work * kWorkPerByte;
            ASSERT_GE(exact.moved[i], work);
            ASSERT_GE(batched.moved[i], work) << "flow " << i << " ended before its bytes had moved";
            ASSERT_EQ(exact.late[i], 0);
        }
        ASSERT_LE(batched.batching.longest, kQuantum);
        ASSERT_EQ(batched.batching.completions, job.flows.size());
        ASSERT_EQ(exact.batching.completions, 0u);
        exact_solves += exact.solves;
        batched_solves += batched.solves;
        const auto last = std::max_element(batched.finish.begin(), batched.finish.end()) - batched.finish.begin();
        const Picoseconds bound =
            batched.late[static_cast<std::size_t>(last)] + *std::max_element(batched.lost.begin(), batched.lost.end());
        const Picoseconds over = batched.end() - exact.end();
        most_over = std::max(most_over, over);
        EXPECT_LE(over, bound);
        EXPECT_GE(over, 0);
    }
    EXPECT_LT(most_over, 4 * kQuantum);
    EXPECT_LT(batched_solves, exact_solves);
}

// A flow alone, or one that comes to links nobody has touched for a quantum, is exact.
TEST(Quantum, LeavesSparseTrafficAlone) {
    Job job;
    job.capacity = {rate_from_bytes_per_s(50e9), rate_from_bytes_per_s(50e9)};
    const auto flow = [&](std::uint32_t link, Picoseconds start) {
        job.flows.push_back({{{LinkId{link}, kCoefficientOne}}, 1'000'000, start});
    };
    flow(0, 0);
    flow(1, 300'000);
    flow(0, 5 * kMicrosecond);
    flow(0, 9 * kMicrosecond);
    const Outcomes exact = run(job, 0), batched = run(job, kMicrosecond);
    EXPECT_EQ(exact.finish, batched.finish);
    EXPECT_EQ(batched.late, std::vector<Picoseconds>(4, 0));
    EXPECT_EQ(batched.batching.held + batched.batching.put_off, 0u);
}

/// Ranks exchange with all others, several times in a row with compute of different length between; one adapter each.
ProgramBuilder exchanges(std::uint32_t ranks, std::uint32_t rounds) {
    ProgramBuilder b;
    std::mt19937 random(5);
    std::vector<LinkId> out, in;
    for (std::uint32_t r = 0; r < ranks; ++r) {
        out.push_back(b.link(50e9));
        in.push_back(b.link(50e9));
    }
    for (std::uint32_t r = 0; r < ranks; ++r) {
        b.begin("rank");
        b.step(2);
        for (std::uint32_t round = 0; round < rounds; ++round) {
            b.compute(5 * kMicrosecond + static_cast<Picoseconds>(random() % 3'000'000));
            std::vector<program::MessageHalf> halves;
            for (std::uint16_t slot = 0; slot + 1u < ranks; ++slot) {
                // both ends draw the same size
                const std::uint32_t other = slot < r ? slot : slot + 1u;
                const Bytes bytes = 20'000 + 4'000 * ((r + other) % 7) + 1'000 * round;
                halves.push_back(test::sends(slot, bytes));
                halves.push_back(test::receives(slot, bytes));
            }
            b.batch(0, halves);
        }
        b.end_step();
        b.rank(r);
    }
    for (std::uint32_t r = 0; r < ranks; ++r) {
        for (std::uint32_t other = 0; other < ranks; ++other) {
            if (other != r)
                b.peer(r, other, b.route(b.demand({out[r], in[other]}), 2 * kMicrosecond));
        }
    }
    return b;
}

TEST(Quantum, StepIsWithinItsBound) {
    for (const std::uint32_t ranks : {3u, 8u, 24u}) {
        const ProgramBuilder b = exchanges(ranks, 4);
        ASSERT_EQ(program::validate(b.program), "");
        EngineOptions options;
        options.track_path = true;
        options.stop_when_periodic = false;
        const EngineResult exact = b.run(options);
        EXPECT_EQ(exact.late, 0);
        EXPECT_EQ(exact.batching.completions, 0u);
        for (const Picoseconds quantum : {Picoseconds{1}, kMicrosecond / 10, kMicrosecond, 5 * kMicrosecond}) {
            options.quantum = quantum;
            const EngineResult batched = b.run(options);
            ASSERT_EQ(batched.outcome, Outcome::done) << batched.message;
            EXPECT_LE(batched.batching.longest, quantum);
            EXPECT_GE(batched.period, exact.period);
            EXPECT_LE(batched.period - exact.period, batched.late) << ranks << " ranks, " << quantum << " ps";
            EXPECT_LE(batched.solves, exact.solves);
            if (ranks == 24 && quantum == kMicrosecond) {
                EXPECT_LT(batched.solves * 5, exact.solves);
            }
            const EngineResult again = b.run(options);
            EXPECT_EQ(again.fingerprint, batched.fingerprint);
        }
    }
}

TEST(Quantum, WithoutAPathTheBoundIsNotKnown) {
    const ProgramBuilder b = exchanges(3, 1);
    EngineOptions options;
    options.quantum = kMicrosecond;
    EXPECT_EQ(b.run(options).late, -1);
}

}  // namespace
}  // namespace fabricast::engine
