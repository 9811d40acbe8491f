// Collectives by algorithm: times against their messages, one by one and by hand.
#include <algorithm>
#include <queue>

#include <gtest/gtest.h>

#include "sim/traces/collective_price.hpp"
#include "tests/sim/traces/trace_job.hpp"

namespace fabricast::traces {
namespace {

using namespace test;

TEST(TraceAlgorithms, TakeWhatTheirMessagesTake) {
    // 8 ranks, 1 GiB/s a link, 1 us a link, 8 MiB: m = 1 MiB.
    const double m = 1.0 / 1024, whole = 8 * m, us = 1e-6;
    const auto time = [&](const std::string& kind, const std::string& algorithm, int type,
                          std::int64_t bytes = 8 << 20) {
        Job job = collective(type, bytes, 8, network_text(kind, "8", "1", "1000"));
        return seconds_of(job.run(system_of('"' + algorithm + '"')));
    };
    constexpr double kExact = 1e-9;
    EXPECT_NEAR(time("Ring", "ring", kAllReduce), 14 * (m + us), kExact);
    EXPECT_NEAR(time("Switch", "ring", kAllReduce), 14 * (m + 2 * us), kExact);
    EXPECT_NEAR(time("FullyConnected", "ring", kAllReduce), 14 * (m + us), kExact);
    EXPECT_NEAR(time("Ring", "ring", kReduceScatter), 7 * (m + us), kExact);
    EXPECT_NEAR(time("Ring", "ring", kAllGather, 1 << 20), 7 * (m + us), kExact) << "bytes are the shard of a rank";
    EXPECT_NEAR(time("Ring", "ring", kAllToAll), 28 * (m + us), kExact) << "relayed: 1 + 2 + ... + 7 messages";
    EXPECT_NEAR(time("Switch", "direct", kAllReduce), 14 * m + 2 * 2 * us, kExact);
    EXPECT_NEAR(time("FullyConnected", "direct", kAllReduce), 2 * m + 2 * us, kExact) << "a link for each message";
    EXPECT_NEAR(time("FullyConnected", "direct", kAllToAll), m + us, kExact);
    EXPECT_NEAR(time("Switch", "direct3", kAllToAll), 7 * m + 3 * 2 * us, kExact) << "7 messages, 3 at once";
    // Shortest ways around: 1 + 2 + 3 + 4 hops up, 3 + 2 + 1 down; the busier direction has 10 messages a link.
    EXPECT_NEAR(time("Ring", "direct", kAllToAll), 10 * m + 4 * us, kExact);
    EXPECT_NEAR(time("Switch", "halvingDoubling", kAllReduce), 14 * m + 6 * 2 * us, kExact);
    EXPECT_NEAR(time("Switch", "halvingDoubling", kAllGather, 1 << 20), 7 * m + 3 * 2 * us, kExact);
    EXPECT_NEAR(time("Switch", "doubleBinaryTree", kAllReduce), 6 * (whole + 2 * us), kExact) << "depth 3, up and down";
    EXPECT_NEAR(time("Switch", "ring", kBroadcast), 7 * (whole + 2 * us), kExact) << "one chunk through a chain";
    EXPECT_NEAR(time("Switch", "ring", kGather), 7 * m + 2 * us, kExact);
}

TEST(TraceAlgorithms, NoneIsFasterThanItsWire) {
    for (const char* algorithm : {"ring", "direct", "direct2", "halvingDoubling", "doubleBinaryTree", "oneRing",
                                  "oneDirect", "oneHalvingDoubling"}) {
        for (const char* kind : {"Ring", "Switch", "FullyConnected"}) {
            for (const int active : {1, 2, 4}) {
                Job job = collective(kAllReduce, 1 << 26, 16, network_text(kind, "16", "1", "2000"));
                const double time = seconds_of(job.run(system_of('"' + std::string(algorithm) + '"', "", 4, active)));
                // Every rank's links together must carry 2 (n-1)/n of the data.
                const double links = std::string(kind) == "Ring" ? 2 : std::string(kind) == "Switch" ? 1 : 15;
                EXPECT_GE(time, 2 * 15.0 / 16 / 16 / links) << algorithm << " on " << kind << ", " << active;
                EXPECT_LT(time, 1.3) << algorithm << " on " << kind;
            }
        }
    }
}

TEST(TraceAlgorithms, RefusedByNode) {
    const auto sentence = [](const std::string& algorithm, int type, const std::string& ranks) {
        Job job = collective(type, 1 << 20, static_cast<std::uint32_t>(std::stoi(ranks)),
                             network_text("Switch", ranks, "1", "0"));
        job.arguments.system = job.folder.write(
            "system.json", R"({"preferred-dataset-splits": 1, "all-reduce-implementation": [")" + algorithm +
                               R"("], "all-to-all-implementation": [")" + algorithm + R"("]})");
        return refusal(job.arguments);
    };
    EXPECT_EQ(sentence("halvingDoubling", kAllReduce, "6"),
              "node 0 'c': halving-doubling over 6 ranks: a power of two is needed");
    EXPECT_EQ(sentence("halvingDoubling", kAllToAll, "8"),
              "node 0 'c': halving-doubling does no all_to_all; ring and direct do");
    EXPECT_EQ(sentence("doubleBinaryTree", kAllToAll, "8"),
              "node 0 'c': a double binary tree does all_reduce only, not all_to_all");
}

TEST(TraceAlgorithms, AllRanksReduceDimensionByDimension) {
    const std::string network = network_text("Switch, Switch", "4, 4", "8, 1", "0, 0");
    Job job = collective(kAllReduce, 1 << 30, 16, network);
    // One chunk: reduce-scatter of everything in dimension 0, all-reduce of a quarter in dimension 1, all-gather.
    const double inner = 0.75 / 8, outer = 2 * 0.75 / 4;
    EXPECT_NEAR(seconds_of(job.run(system_of(R"("ring","ring")"))), inner + outer + inner, 1e-9);
    // Four chunks follow one another: the slower dimension is busy all the time.
    EXPECT_NEAR(seconds_of(job.run(system_of(R"("ring","ring")", "", 4, 1))), inner / 4 + outer + inner / 4, 1e-9);
    // Baseline: everything in both dimensions.
    EXPECT_NEAR(seconds_of(job.run(R"({"preferred-dataset-splits": 1, "endpoint-delay": 0,
                                       "collective-optimization": "baseline"})")),
                2 * 0.75 / 8 + 2 * 0.75, 1e-9);
    // involved_dim: only the second dimension, four groups at once.
    Job part(16, network, [](std::uint32_t, TraceText& t) {
        NodeText node(0, "c", kCollective);
        node.collective(kAllReduce, 1 << 30).attribute("involved_dim", [](protozero::pbf_writer& w) {
            std::string list;
            const std::vector<bool> dims = {false, true};
            protozero::pbf_writer(list).add_packed_bool(1, dims.begin(), dims.end());
            w.add_message(28, list);
        });
        t.add(node);
    });
    EXPECT_NEAR(seconds_of(part.run(system_of(R"("ring","ring")"))), 2 * 0.75, 1e-9);
}

TEST(TraceAlgorithms, AllGatherEndsWhereReduceScatterBegins) {
    const std::string network = network_text("Switch, Ring", "4, 4", "8, 1", "100, 200");
    Job gather = collective(kAllGather, 1 << 26, 16, network),
        scatter = collective(kReduceScatter, 1 << 30, 16, network);
    const std::string system = system_of(R"("ring","ring")");
    EXPECT_NEAR(seconds_of(gather.run(system)), seconds_of(scatter.run(system)), 1e-9);
}

/// Chunks of a ring one event at a time: every rank does the same, so one link and one delay stand for all.
double chunks_one_by_one(double message, double latency, std::uint32_t steps, std::uint32_t chunks,
                         std::uint32_t active) {
    using Ready = std::pair<double, std::uint32_t>;
    std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
    std::vector<std::uint32_t> left(chunks, steps);
    std::uint32_t next = 0;
    for (; next < std::min(active, chunks); ++next)
        ready.push({0, next});
    double link_free = 0, end = 0;
    while (!ready.empty()) {
        const auto [since, chunk] = ready.top();
        ready.pop();
        link_free = std::max(link_free, since) + message;
        const double arrived = link_free + latency;
        if (--left[chunk] > 0) {
            ready.push({arrived, chunk});
        } else {
            end = std::max(end, arrived);
            if (next < chunks)
                ready.push({arrived, next++});
        }
    }
    return end;
}

TEST(TraceAlgorithms, TimeOfChunksIsThatOfEveryMessage) {
    for (const double latency : {0.0, 0.1, 0.5, 1.0, 3.0, 10.0}) {
        for (const std::uint32_t steps : {2u, 14u, 254u}) {
            for (const std::uint32_t chunks : {1u, 2u, 3u, 4u, 8u}) {
                for (const std::uint32_t active : {1u, 2u, 3u, 8u}) {
                    ChunkPrice chunk;
                    chunk.busy_s = steps;
                    chunk.path_s = steps * (1 + latency);
                    chunk.message_s = 1;
                    chunk.tail_s = latency;
                    const double exact = chunks_one_by_one(1, latency, steps, chunks, active);
                    EXPECT_NEAR(time_of_chunks(chunk, chunks, active), exact, 0.03 * exact)
                        << latency << ' ' << steps << ' ' << chunks << ' ' << active;
                }
            }
        }
    }
}

}  // namespace
}  // namespace fabricast::traces
