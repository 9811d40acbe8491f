// Slurm node lists: "n[0-3,7],login1" -> n0 n1 n2 n3 n7 login1.
//
// Several brackets in a name multiply, the last one fastest; numbers keep the width of the range's start when that
// has leading zeros ("n[008-010]"). At most kMostListedNodes names.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace fabricast::importers {

inline constexpr std::size_t kMostListedNodes = 1'000'000;

/// Throws ImportError(where, line, ...) with the piece that is wrong.
std::vector<std::string> expand_node_list(std::string_view list, const std::string& where, unsigned line = 0);

}  // namespace fabricast::importers
