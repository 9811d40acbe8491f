// Completes a machine that a reader has filled, and writes notes on what is odd in it.
//
// NVSwitch. nvidia-smi prints for a pair behind a switch the links of the GPU, for a direct pair the links of the pair.
// No GPU has more than 18 NVLinks, so a row that adds up to more is switched: total = largest entry of the row.
// Otherwise the links are direct: total = sum of the row. Two GPUs alone are taken as bridged.
// Kind: switched; every GPU with 4 of 7 neighbours: hybrid cube mesh; one neighbour each: pairs; more: mesh.
//
// Noted: unequal or unusual link counts, GPUs far from any NIC, NICs shared, slow or narrow PCIe links, port rates that
// no port has or the card or its PCIe link cannot carry, NUMA columns that the paths contradict, missing affinity.
#pragma once

#include "topologies/importers/machine.hpp"

namespace fabricast::importers {

inline constexpr std::uint32_t kMostNvlinksOfAGpu = 18;  ///< H100 to B200, FORMATS rule for index.csv

/// Sets nvswitch, kind, nvlinks and nvlinks_per_gpu as far as the reader left them open; appends notes.
/// told_nvlinks: the file has a place for NVLink at all.
void complete(Machine& machine, bool told_nvlinks);

}  // namespace fabricast::importers
