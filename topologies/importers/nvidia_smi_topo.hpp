// Reads the matrix that `nvidia-smi topo -m` prints, from whatever it was pasted into.
//
// Grammar: a header of names (GPUk, NICk or device names) and of affinity columns; one row per name with a cell for
// each name, X on the diagonal, then CPU affinity, NUMA affinity, GPU NUMA id as far as the header has them; a legend;
// a NIC legend. Neither columns nor white space are trusted: names and cells are recognised one after the other, so
// tabs, blanks, glued cells (PIXNODE), wrapped rows, indents, line prefixes of launchers and noise around are all
// the same. A row without exactly one cell a name, or with its X elsewhere, is refused.
// The matrix must be symmetric; where it is not, the worse cell counts and a note says so. `topo -p2p` matrices
// (OK, NS, CNS ...) are refused by name. Several matrices in a file must be equal.
#pragma once

#include <string_view>

#include "topologies/importers/machine.hpp"
#include "topologies/importers/source_text.hpp"

namespace fabricast::importers {

/// Throws ImportError.
Machine read_nvidia_smi_topo(const SourceText& source);

/// Whether a line reads like the header of a topo matrix: GPU0 first, other names after it.
bool is_topo_header(std::string_view line);

}  // namespace fabricast::importers
