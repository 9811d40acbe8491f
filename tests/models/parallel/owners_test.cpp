// Whole tensors dealt to the ranks of a ZeRO-1 group, and the broadcasts that follow.
#include <gtest/gtest.h>

#include <numeric>

#include "jobs.hpp"
#include "models/parallel/stage_parameters.hpp"

namespace fabricast::test {
namespace {

TEST(Owners, TensorsAreAllAStageHolds) {
    for (std::uint64_t n = 0; n < 40; ++n) {
        const Job job = draw_job(n);
        for (std::int64_t stage = 0; stage < job.plan.layout.pp; ++stage) {
            const std::vector<std::int64_t> tensors = parameter_tensors(job.model, job.plan.layout, stage);
            EXPECT_EQ(std::accumulate(tensors.begin(), tensors.end(), std::int64_t{0}),
                      stage_parameters(job.model, job.plan.layout, stage).total());
        }
    }
}

TEST(Owners, LargestFirstToTheRankWithLeast) {
    EXPECT_EQ(owned_parameters({3, 9, 4, 4, 2}, 3), (std::vector<std::int64_t>{9, 4 + 3, 4 + 2}));
    EXPECT_EQ(owned_parameters({5, 1}, 4), (std::vector<std::int64_t>{5, 1}));  // ranks without any are left out
    EXPECT_EQ(owned_parameters({5, 1}, 1), (std::vector<std::int64_t>{6}));
}

}  // namespace
}  // namespace fabricast::test
