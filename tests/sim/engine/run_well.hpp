// What the executor's tests share.
#pragma once

#include <string>

#include <gtest/gtest.h>

#include "sim/engine/engine.hpp"
#include "tests/sim/engine/program_builder.hpp"

namespace fabricast::engine {

using program::OpKind;
using test::account;
using test::account_sum;
using test::kMicrosecond;
using test::ProgramBuilder;
using test::receives;
using test::sends;

inline constexpr Picoseconds kUs = kMicrosecond;

// A run that ended well; every rank's accounts sum to the period.
inline EngineResult run_well(const ProgramBuilder& b, EngineOptions options = {}) {
    EXPECT_EQ(program::validate(b.program), "");
    EngineResult result = b.run(options);
    EXPECT_EQ(result.outcome, Outcome::done) << result.message;
    const Picoseconds span = result.steps > 0 ? result.period : result.end;
    for (std::uint32_t rank = 0; rank < b.program.ranks.size(); ++rank) {
        EXPECT_EQ(account_sum(result, rank), span) << "rank " << rank;
        for (const Picoseconds part : result.accounts[rank])
            EXPECT_GE(part, 0) << "rank " << rank;
    }
    return result;
}

inline bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace fabricast::engine
