// The catalogue's files as they are read: for the catalogue itself, and for what tests a new entry before it goes in.
#pragma once

#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "models/hardware/catalogue.hpp"

namespace fabricast {

struct CatalogueEntries {
    std::vector<GpuSpec> gpus;
    std::vector<NodeSpec> nodes;
    std::vector<FabricSpec> fabrics;
    std::vector<NetworkSpec> networks;
};

using CatalogueFile = std::pair<std::string_view, std::string_view>;  ///< name, text

/// Files in order; `like:` finds what stands before it. Throws std::logic_error with file and key for a malformed entry, and
/// for nodes whose GPU or network is not there.
CatalogueEntries read_catalogue(std::span<const CatalogueFile> files);
/// The files that are embedded in the program.
std::span<const CatalogueFile> catalogue_files();

}  // namespace fabricast
