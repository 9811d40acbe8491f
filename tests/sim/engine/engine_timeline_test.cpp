// Causes, the critical path, the fingerprint.
#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/sim/engine/pipelines.hpp"
#include "tests/sim/engine/run_well.hpp"

namespace fabricast::engine {
namespace {

TEST(EngineTimeline, CausesChainAndTheCriticalPathSumsToThePeriod) {
    const ProgramBuilder b = pipeline(Pipeline::one_f_one_b, 4, 6, 7 * kUs, 13 * kUs, true);
    EngineOptions options;
    options.record_timeline = true;
    const EngineResult result = run_well(b, options);
    ASSERT_FALSE(result.timeline.empty());
    for (const Record& record : result.timeline) {
        if (record.finished == record.issued && record.issued == result.end)
            continue;  // next step, cut off
        EXPECT_LE(record.issued, record.started);
        if (record.cause == program::kNone) {
            EXPECT_EQ(record.started, 0);
        } else {
            EXPECT_EQ(result.timeline[record.cause].finished, record.started);
        }
    }
    Picoseconds sum = 0, compute = 0;
    for (const PathPart& part : critical_path(b.program, result.timeline, result.window_begin, result.window_end)) {
        sum += part.time;
        if (part.account == Account::gemm_ideal)
            compute += part.time;
    }
    EXPECT_EQ(sum, result.period);
    EXPECT_EQ(compute, result.period);  // messages cost nothing here
}

TEST(EngineTimeline, ABatchIsCausedByItsLastMessageToEnd) {
    // Rank 0 receives a long message from rank 1 and, later, a short one from rank 2 that ends first.
    ProgramBuilder b;
    const std::uint32_t slow = b.route(b.demand({b.link(1e9)}), 0), fast = b.route(b.demand({b.link(100e9)}), 0);
    b.begin("sink");
    b.batch(0, {receives(0, 100'000), receives(1, 1000)}, {}, "receive both");
    b.begin("long");
    b.compute(2 * kUs, {}, "produce long");
    b.batch(0, {sends(0, 100'000)});
    b.begin("short");
    b.compute(50 * kUs, {}, "produce short");
    b.batch(0, {sends(0, 1000)});
    for (const std::uint32_t tmpl : {0u, 1u, 2u})
        b.rank(tmpl);
    b.peer(0, 1, program::kNone);
    b.peer(0, 2, program::kNone);
    b.peer(1, 0, slow);
    b.peer(2, 0, fast);
    EngineOptions options;
    options.record_timeline = true;
    const EngineResult result = run_well(b, options);
    EXPECT_EQ(result.end, 102 * kUs);
    const Record& batch = result.timeline.front();
    EXPECT_EQ(batch.started, 2 * kUs);
    EXPECT_EQ(result.timeline[batch.cause].rank, 1u);
    Picoseconds sum = 0;
    for (const PathPart& part : critical_path(b.program, result.timeline, 0, result.end)) {
        sum += part.time;
        EXPECT_NE(b.program.names[part.name], "produce short");
    }
    EXPECT_EQ(sum, result.end);
}

ProgramBuilder two_templates(Picoseconds work, bool swapped) {
    ProgramBuilder b;
    const std::uint32_t call = b.call(0, 8, kUs, 0);
    b.begin("a");
    b.compute(work);
    b.collective(0, call);
    b.begin("b");
    b.compute(3 * kUs);
    b.collective(0, call);
    for (std::uint32_t rank = 0; rank < 4; ++rank)
        b.rank((rank % 2) ^ (swapped ? 1u : 0u));
    b.group("all", {0, 1, 2, 3});
    return b;
}

TEST(EngineFingerprint, SameRunsAgreeAndAnyTimeShows) {
    const std::uint64_t base = two_templates(5 * kUs, false).run().fingerprint;
    EXPECT_EQ(two_templates(5 * kUs, false).run().fingerprint, base);
    EXPECT_EQ(two_templates(5 * kUs, true).run().fingerprint, base);
    EXPECT_NE(two_templates(5 * kUs + 1, false).run().fingerprint, base);
    EXPECT_NE(two_templates(2 * kUs, false).run().fingerprint, base);
}

}  // namespace
}  // namespace fabricast::engine
