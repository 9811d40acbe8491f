// Program templates lowered to per-stream instruction lists.
//
// A stream walks its list with a program counter and up to kMaxDepth loop counters. Because a stream finishes its
// operations in order, "operation X is done" is "stream s has finished at least q operations", and q is affine in
// the loop counters of the waiting operation:
//
//   q = base + sum over common loops k of stride_k * i_k
//
// so a wait costs one compare and needs no memory per instance. Repeat counts bound per rank give one lowering per
// distinct (template, bindings).
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "models/program/program.hpp"

namespace fabricast::engine {

inline constexpr int kMaxDepth = 4;

enum class StreamState : std::uint8_t { ready, blocked, active, halted };

struct Instruction {
    enum class Kind : std::uint8_t {
        compute,
        collective,
        p2p_batch,
        transfer,
        host,
        timer,
        step_end,
        fetch,
        loop_end,
        halt
    };
    Kind kind = Kind::halt;
    std::uint8_t level = 0;  ///< loop_end: which loop counter
    bool host_sync = false;
    std::uint8_t wait_count = 0;
    std::uint32_t waits = 0;      ///< first wait in Code::waits
    std::uint32_t payload = 0;    ///< as Operation::payload; loop_end: first instruction of the body
    std::uint32_t operation = 0;  ///< operation index in the template; loop_end: iterations
    std::uint32_t label = 0;
    Picoseconds late = 0;  ///< as Operation::late
};

struct Wait {
    std::uint8_t stream = 0;
    std::int8_t skip_first = -1;  ///< loop level whose first iteration has nothing to wait for; -1 = none
    std::int64_t base = 0;
    std::array<std::int64_t, kMaxDepth> stride = {};
};

struct Code {
    std::uint32_t tmpl = 0;
    std::vector<Instruction> instructions;
    std::vector<bool> recurs;          ///< by instruction: in a loop that is part of one step
    std::vector<std::uint32_t> entry;  ///< first instruction of each stream
    std::vector<Wait> waits;
};

/// Throws std::logic_error when loops nest deeper than kMaxDepth or a wait names an operation of the same stream
/// or outside any common loop and later (models/program/validate finds these first).
Code lower(const program::Program& program, std::uint32_t tmpl, const std::vector<std::int64_t>& bindings);

}  // namespace fabricast::engine
