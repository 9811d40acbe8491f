// A small valid scenario and ways to break it.
#pragma once

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "sim/scenario/scenario.hpp"

namespace fabricast::test {

inline const std::string kGood =
    "cluster:\n"                                                             // 1
    "  nodes: 4\n"                                                           // 2
    "  node: {preset: hgx-h100}\n"                                           // 3
    "  fabric: {kind: rail-fat-tree, nic: 400 Gb/s, oversubscription: 1}\n"  // 4
    "model: {preset: llama-70b}\n"                                           // 5
    "training:\n"                                                            // 6
    "  sequence: 4096 tokens\n"                                              // 7
    "  global_batch: 64 sequences\n"                                         // 8
    "  micro_batch: 1\n"                                                     // 9
    "  precision: bf16\n"                                                    // 10
    "  layout: {tp: 8, sp: true, pp: 2, dp: 2}\n"                            // 11
    "  schedule: 1f1b\n"                                                     // 12
    "run: {tokens: 3.5 Ttokens, price: 1.90 USD/GPU-h}\n";                   // 13

inline std::string replaced(std::string text, const std::string& from, const std::string& to) {
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

/// The error text, or "" when the scenario is accepted.
inline std::string error_of(const std::string& yaml, const std::vector<std::string>& overrides = {}) {
    try {
        parse_scenario(yaml, "t.yaml", overrides);
    } catch (const ScenarioError& e) {
        return e.what();
    }
    return {};
}

inline bool any_contains(const std::vector<std::string>& lines, const std::string& part) {
    for (const std::string& line : lines)
        if (line.find(part) != std::string::npos)
            return true;
    return false;
}

}  // namespace fabricast::test
