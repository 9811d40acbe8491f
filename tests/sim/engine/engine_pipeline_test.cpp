// Hand-made pipelines against their formulas.
#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/sim/engine/pipelines.hpp"
#include "tests/sim/engine/run_well.hpp"

namespace fabricast::engine {
namespace {

TEST(EnginePipeline, OneForwardOneBackwardAndGPipeTakeExactlyTheirFormula) {
    for (const Pipeline kind : {Pipeline::one_f_one_b, Pipeline::gpipe}) {
        for (const int p : {1, 2, 4, 8}) {
            for (const int m : {1, 3, 8, 20}) {
                const Picoseconds forward = 7 * kUs, backward = 13 * kUs;
                const EngineResult result = run_well(pipeline(kind, p, m, forward, backward, true));
                SCOPED_TRACE("p " + std::to_string(p) + " m " + std::to_string(m));
                EXPECT_EQ(result.steps, 1u);
                EXPECT_EQ(result.period, (m + p - 1) * (forward + backward));
                Picoseconds waiting = 0;
                for (int rank = 0; rank < p; ++rank) {
                    const auto r = static_cast<std::uint32_t>(rank);
                    EXPECT_EQ(account(result, r, Account::gemm_ideal), m * (forward + backward));
                    EXPECT_EQ(account(result, r, Account::bubble) + account(result, r, Account::straggler),
                              (p - 1) * (forward + backward));
                    waiting += account(result, r, Account::bubble) + account(result, r, Account::straggler);
                }
                // bubble fraction (p - 1) / (m + p - 1)
                EXPECT_EQ(waiting * (m + p - 1), result.period * p * (p - 1));
            }
        }
    }
}

TEST(EnginePipeline, WithoutAClosingCollectiveOffsetsSettle) {
    const EngineResult result = run_well(pipeline(Pipeline::one_f_one_b, 4, 8, 7 * kUs, 13 * kUs, false));
    EXPECT_TRUE(result.periodic);
    EXPECT_GE(result.steps, 2u);
    EXPECT_LE(result.period, (8 + 3) * 20 * kUs);  // steps overlap at the boundary
    EXPECT_GE(result.period, 8 * 20 * kUs);
}

}  // namespace
}  // namespace fabricast::engine
