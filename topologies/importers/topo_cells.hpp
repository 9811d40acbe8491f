// The pieces of a `topo -m` line: names of the header, cells of a row, the affinity fields behind them.
//
// Each function takes a line and a position in it and moves the position past what it took. Nothing here knows the
// matrix; nvidia_smi_topo puts the pieces together.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "topologies/importers/machine.hpp"

namespace fabricast::importers {

struct TopoHeader {
    std::vector<std::string> names;
    bool cpu_affinity = false, numa_affinity = false, gpu_numa = false;
};

/// The line as a header, from the first GPUk in it; nothing when it is none.
std::optional<TopoHeader> topo_header(std::string_view line);

struct TopoCell {
    enum class Kind : unsigned char { self, path, p2p } kind = Kind::self;
    Path path;
};

/// One cell at `at`, blanks before it skipped; nothing, and `at` at the odd piece, when there is none.
std::optional<TopoCell> topo_cell(std::string_view line, std::size_t& at);

struct TopoAffinity {
    std::string cpus;
    std::optional<int> numa;
    std::string odd;  ///< what was repaired or left out, for a note
};

/// What stands behind the cells of a GPU's row.
TopoAffinity topo_affinity(std::string_view rest, const TopoHeader& header);

}  // namespace fabricast::importers
