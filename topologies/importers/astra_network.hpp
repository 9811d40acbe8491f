// Reads the analytical network file of ASTRA-sim: a grid of dimensions.
//
//   topology: [ Ring, Switch ]     Ring, FullyConnected, Switch; case counts
//   npus_count: [ 8, 16 ]          each above 1; dimension 0 is innermost (consecutive ranks)
//   bandwidth: [ 400.0, 50.0 ]     GB/s per link and direction, where its code takes a GB as 2^30 bytes
//   latency: [ 936.25, 5000.0 ]    ns per link; a path through a switch pays two
// Four lists of equal length; unknown, missing and repeated keys are refused by name. The older JSON dialect
// (topology-name, dimensions-count, ...) is refused with the keys that replaced it, a file of logical dimensions too.
// The grid is also listed as nodes and links: a ring joins neighbours (two ranks: one link), FullyConnected all pairs,
// a Switch adds one switch a group. Grids of more than kMostGridLinks links keep their dimensions only.
#pragma once

#include "topologies/importers/fabric.hpp"

namespace fabricast::importers {

inline constexpr std::uint64_t kMostGridLinks = 4'000'000;

/// Throws ImportError.
FabricDescription read_astra_network(const SourceText& source);
/// The dimensions alone, without the list of nodes and links: for grids of many ranks. Throws ImportError.
FabricDescription read_astra_dimensions(const SourceText& source);

/// Keys of the retired JSON dialect; the first that occurs in the text, empty when none does.
std::string retired_astra_key(std::string_view text);

}  // namespace fabricast::importers
