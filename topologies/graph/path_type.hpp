// How near two ends of a cluster are, in the words of NCCL and nvidia-smi, best to worst.
//
//   loc   the same end
//   nvl   NVLink (or xGMI), direct or through an NVSwitch       nvb   NVLink through another GPU
//   c2c   chip-to-chip link to the CPU                          p2c   chip-to-chip, then PCIe of that CPU
//   pix   one PCIe switch                                       pxb   several PCIe switches, no CPU
//   pxn   NVLink to another GPU, then its NIC                   phb   through one host bridge (root complex)
//   node  between host bridges of one NUMA node; NCCL says phb  sys   between NUMA nodes
//   net   over the network                                      dis   not at all
// A Cluster answers with all but c2c, pxn and dis: pxn is a choice of the communication library (models/collectives).
#pragma once

#include <cstdint>
#include <string_view>

namespace fabricast {

enum class PathType : std::uint8_t { loc, nvl, nvb, c2c, pix, pxb, p2c, pxn, phb, node, sys, net, dis };

constexpr std::string_view path_type_name(PathType type) {
    constexpr std::string_view names[] = {"LOC", "NVL", "NVB",  "C2C", "PIX", "PXB", "P2C",
                                          "PXN", "PHB", "NODE", "SYS", "NET", "DIS"};
    return names[static_cast<std::size_t>(type)];
}

}  // namespace fabricast
