#include "validate/ingest/health.hpp"

#include <gtest/gtest.h>

#include "tests/validate/ingest/support.hpp"

namespace fabricast {
namespace {

/// A run with these out-of-place times and in-place times; sizes double from `first`.
NcclRun run_of(std::int64_t first, const std::vector<double>& out, const std::vector<double>& in) {
    NcclRun run;
    run.ranks = 2;  // factor 1
    for (std::size_t i = 0; i < out.size(); ++i) {
        NcclPoint point;
        point.bytes = first << i;
        const auto half = [&](double time) {
            NcclHalf result;
            result.time_us.value = time;
            result.algbw.value = result.busbw.value = static_cast<double>(point.bytes) / time / 1e3;
            return result;
        };
        point.out_of_place = half(out[i]);
        point.in_place = half(in[i]);
        run.points.push_back(point);
    }
    return run;
}

std::vector<LogFindingKind> kinds(const NcclRun& run) {
    std::vector<LogFindingKind> result;
    for (const LogFinding& finding : log_findings(run)) {
        result.push_back(finding.kind);
        EXPECT_FALSE(finding.sentence.empty());
    }
    return result;
}

using Kinds = std::vector<LogFindingKind>;

TEST(LogHealth, SmoothCurveHasNoFinding) {
    EXPECT_EQ(kinds(run_of(1 << 20, {30, 50, 90, 170}, {30, 50, 90, 170})), Kinds{});
    EXPECT_EQ(kinds(MadeUpLog{}.runs().at(0)), Kinds{});
    EXPECT_EQ(kinds(NcclRun{}), Kinds{});
}

TEST(LogHealth, FallingBandwidth) {
    const NcclRun run = run_of(1 << 20, {20, 40, 80, 400}, {20, 40, 80, 400});
    EXPECT_EQ(kinds(run), Kinds{LogFindingKind::falling_bandwidth});
    EXPECT_EQ(log_findings(run)[0].sentence, "busbw falls from 52.43 GB/s at 1 MiB to 20.97 GB/s (40 %) at 8 MiB");
}

TEST(LogHealth, SpikeBetweenNeighbours) {
    EXPECT_EQ(kinds(run_of(8, {10, 10, 60, 11, 12}, {10, 10, 10, 11, 12})), Kinds{LogFindingKind::spike});
}

TEST(LogHealth, FirstIteration) {
    EXPECT_EQ(kinds(run_of(8, {983, 167, 168}, {166, 171, 168})), Kinds{LogFindingKind::first_iteration});
}

TEST(LogHealth, HalvesApart) {
    EXPECT_EQ(kinds(run_of(1 << 20, {30, 50, 90}, {30, 70, 91})), Kinds{LogFindingKind::halves_apart});
    EXPECT_EQ(kinds(run_of(8, {30, 50, 90}, {30, 70, 91})), Kinds{});  // latencies may
}

}  // namespace
}  // namespace fabricast
