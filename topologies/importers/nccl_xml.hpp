// Reads NCCL topology XML: dumps of NCCL_TOPO_DUMP_FILE and the static files that vendors give to NCCL_TOPO_FILE.
//
// <system> holds <cpu> (a NUMA node), which hold nested <pci>, whose leaves hold <gpu> with <nvlink> (or <xgmi>, <c2c>)
// and <nic> with <net>. Static files stop at <pci>: there GPUs are class 0x0302, networks 0x02; NVLink is not told.
// When any <gpu> (any <net>) is there, only those count.
//
// Paths follow NCCL's rules: one PCIe bridge between two devices pix, several pxb, through the root complex phb,
// between CPUs sys; direct NVLink or both on an NVSwitch nvl; chip-to-chip link to the CPU p2c or phb. Two-level
// Broadcom switches are one bridge, as NCCL takes them (topo.cc, ncclTopoFlattenBcmSwitches).
// Graph dumps (<graphs>) are refused by name; cut files too; missing blanks between attributes are repaired;
// equal documents glued together are read once, different ones refused; of merged hosts the first is described.
#pragma once

#include "topologies/importers/machine.hpp"
#include "topologies/importers/source_text.hpp"

namespace fabricast::importers {

/// Throws ImportError.
Machine read_nccl_xml(const SourceText& source);

}  // namespace fabricast::importers
