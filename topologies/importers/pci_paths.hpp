// Paths between the devices of a PCIe tree, by NCCL's rules (paths.cc).
//
// One bridge on the way: pix; a step from bridge to bridge: pxb; through the root complex of one CPU: phb; between
// CPUs: sys. The two levels of a fused switch count as one bridge.
#pragma once

#include "topologies/importers/machine.hpp"

namespace fabricast::importers {

/// Marks second-level bridges that NCCL fuses with their parent: Broadcom PEX of PCIe 4 and 5 in base mode.
/// Returns how many.
std::uint32_t fuse_two_level_switches(Machine& machine);

/// Between two devices of machine.pci (indices); loc when they are one. numa: index in Machine::numa.
PathType pci_path(const Machine& machine, int a, int b);

}  // namespace fabricast::importers
