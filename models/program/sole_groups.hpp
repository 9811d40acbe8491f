// Groups that have the network to themselves whenever they call.
//
// A collective of all ranks is a border in time: its data move only when every rank has arrived, and no rank goes on before
// all have ended. When in every template each other communication is over before the call or begins after it, nothing else
// is on the network while it runs: its rates follow from its own demands. A gradient norm over a tree of all nodes, whose
// links carry one to three children each, then tells no ranks apart (fold.hpp).
//
// Proof by template: what an operation knows to be over when it begins is what its stream's predecessor and its waits knew,
// and these themselves, as one position a stream; the step is followed through twice, its inner repeats once. A message is
// ordered by the sender or, where it needs its receive, by the receiver; one of them may tell that it is over before, the
// other that it begins behind. What is not proven counts as overlapping.
#pragma once

#include <cstdint>
#include <vector>

#include "models/program/program.hpp"

namespace fabricast::program {

/// Groups of all ranks, ascending, that no other communication overlaps. The program must be valid.
std::vector<std::uint32_t> sole_groups(const Program& program);

}  // namespace fabricast::program
