// What happened, operation by operation, and why each one could start when it did.
//
// Recorded only on request (32 bytes an operation). The critical path walks the causes backwards: an operation was
// released by the one whose end let it go - the previous one of its stream, a dependency, the last member of its
// collective, the later side of its message.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/program/program.hpp"

namespace fabricast::engine {

struct Record {
    std::uint32_t rank;
    std::uint32_t cause;  ///< index of the record that released it; program::kNone for the first
    std::uint32_t label;
    std::uint32_t operation;
    std::uint8_t stream;
    Picoseconds issued;   ///< reached the head of its stream with its waits met
    Picoseconds started;  ///< computing or moving data from here
    Picoseconds finished;
};

struct PathPart {
    Account account;  ///< of the label; compute operations: Account::gemm_ideal stands for compute
    program::Phase phase;
    std::uint32_t name;  ///< index into Program::names
    Picoseconds time;
};

/// The chain of causes that ends with the last record to finish at or before `until`, cut at `from`, summed by
/// (account, phase, name), longest first. The parts sum to until - from minus uncovered gaps, which appear as idle.
std::vector<PathPart> critical_path(const program::Program& program, const std::vector<Record>& records,
                                    Picoseconds from, Picoseconds until);

}  // namespace fabricast::engine
