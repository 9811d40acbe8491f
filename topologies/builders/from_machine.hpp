// From a server's own files (topologies/importers) to a ServerShape, and to a cluster of such servers.
//
// The paths of the file decide the PCIe tree: ends at pix of each other share a switch; such switches at pxb a switch
// above; at phb a host bridge; at node a NUMA node; anything further is sys. Where NVLink hides the PCIe path of two
// GPUs, their PCI devices tell it, or their NUMA ids, or it stays sys, which no route takes.
// NVLink: direct links with the lanes of the file, or an NVSwitch with the lanes of each GPU. Each GPU uses the NICs
// that importers::nics_of_gpus gives it. The file knows lanes, generations and port rates; what they achieve is said
// by the caller, and the lesser of the two holds.
#pragma once

#include <cstdint>

#include "topologies/builders/rail_fat_tree.hpp"
#include "topologies/builders/server_shape.hpp"
#include "topologies/graph/path_type.hpp"
#include "topologies/importers/machine.hpp"

namespace fabricast {

struct MachineRates {
    ServerRates rates;  ///< nvlink_bytes_per_s of one link; pcie, nic: most a GPU and a NIC achieve, 0: as told
    double pcie_efficiency = 1;        ///< achieved / raw rate that the file tells; above 0
    double nic_efficiency = 1;         ///< achieved / line rate that the file tells; above 0
    std::uint32_t nvswitch_links = 0;  ///< for files that do not tell NVLink: links a GPU behind an NVSwitch; 0: none
};

PathType path_type_of(importers::PathType type);

/// Throws std::invalid_argument for a machine without GPUs, and for a rate that neither file nor caller tells.
ServerShape server_from_machine(const importers::Machine& machine, const MachineRates& rates);

/// `fabric.nodes` servers like the machine. Throws as its parts do.
Cluster build_from_machine(const importers::Machine& machine, const MachineRates& rates, const FabricShape& fabric);

}  // namespace fabricast
