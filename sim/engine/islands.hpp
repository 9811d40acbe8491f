// Islands: ranks that meet among themselves far more often than with others, over links of their own.
//
// An island is the set of members of the group that each of them calls most, if they all run one code. Its inner groups
// are the groups of exactly these ranks. It is closed when every link its inner groups load is otherwise used only by
//
//   groups            with a member in the island
//   messages          with an end in the island (buffered ones: with their sender there)
//   transfers         of its ranks
//
// because each of those keeps an operation of an island's rank in flight while it moves data. So as long as the ranks of
// a closed island have nothing in flight but calls of inner groups, these calls have their links to themselves. Islands
// that are not closed are left out.
//
// Two closed islands are of one kind when, rank by rank in order and group by group, code, slowness, slots, shapes and
// the loads on links (up to the names of the links) are equal: from equal states they go through equal states.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/program/program.hpp"
#include "sim/engine/code.hpp"

namespace fabricast::engine {

struct Island {
    std::vector<std::uint32_t> ranks;   ///< ascending
    std::vector<std::uint32_t> groups;  ///< inner ones
    std::vector<std::uint32_t>
        slots;  ///< [rank of the island][inner group]: communicator slot, kNone where it has none
    std::uint32_t kind = 0;
};

struct Islands {
    std::vector<Island> list;
    std::vector<std::uint32_t> of_rank, of_group;  ///< index into list or kNone; of_group: inner groups
    std::vector<std::uint32_t> place;              ///< by rank: its index in the island
    std::vector<std::uint32_t> of_kind;            ///< how many islands are of a kind
};

/// code: by rank. demands, alone: as the engine uses them (alone: rate of a demand on an empty network).
Islands find_islands(const program::Program& program, std::span<const Code* const> code,
                     const std::vector<std::vector<LinkUse>>& demands, std::span<const Rate> capacity,
                     std::span<const Rate> alone);

}  // namespace fabricast::engine
