// Reads Slurm's topology.conf, tree and block form.
//
// Lines of Key=Value, keys in any case, '#' comments, '\' at the end joins lines.
//   tree:  SwitchName=s0 Nodes=n[0-3]          SwitchName=s1 Switches=s[0-3] [LinkSpeed=...]
//   block: BlockName=b1 Nodes=n[0-17]          BlockSizes=18,36
// Every node becomes a host with a link to its switch (or block), every child switch a link to its parent; rates are
// not told. Refused: unknown keys, undefined child switches, a switch above itself, both forms in one file.
#pragma once

#include "topologies/importers/fabric.hpp"

namespace fabricast::importers {

/// Throws ImportError.
FabricDescription read_slurm_topology(const SourceText& source);

}  // namespace fabricast::importers
