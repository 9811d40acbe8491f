// Internal: what of a communicator both its making (comm_group.cpp) and its plans (comm_model.cpp) ask.
#pragma once

#include "models/collectives/comm_model.hpp"

namespace fabricast {

/// The switches reduce for this group.
bool collnet_works(const CommFacts& facts, const CommSettings& settings, const CommGroup& group);

/// What the channels of an algorithm are classed by: for NVLS one wiring whatever is run. PAT has one class.
Wiring laid_wiring(const CommGroup& group, Algorithm a);

}  // namespace fabricast
