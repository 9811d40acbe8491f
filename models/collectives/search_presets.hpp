// What NCCL's topology search finds on usual nodes: channels and their speeds, per algorithm.
//
// NCCL places whole channels (an order of the local GPUs with an entry and an exit NIC) until no more fit, for
// each speed of a fixed list, best (channels x speed) first. On NVSwitch nodes the answer has a closed form:
//   one node      C = floor(nvlink / b)                     every GPU sends in every channel
//   several nodes C - floor(C / g) <= floor(nvlink / b)     a GPU does not send where it is the exit
//                 C <= nics * floor(min(nic, pcie) / b)     a multiple of nics once above nics
//   no NVLink     C <= floor(pcie / b)                      peer copies and NIC reads share the PCIe link
// for g GPUs of the group on a node, b the channel speed. Slower speeds are tried down to 0.49 of the best found.
// Then channels are doubled at half the speed if b >= 25 (from Hopper on: only if b >= 50 or C <= 4), and b is
// raised while it still fits. Trees take the ring's channels and run inside a node up to twice as fast as between
// nodes, where NVLink carries it; with one GPU a node they get the plain TREE pattern and twice the speed. NVLS: one
// head a GPU, (g + 1) b <= nvlink, also below the slowest listed speed in a rack-wide domain; towards the network up
// to 2 b.
//
// Units: decimal GB/s a channel, one direction. Source: NCCL 2.28.9 src/graph/search.cc, read as rules; the H100
// ring line (8 x 48) was seen in a public log, the others are derived. Not modelled: the order of GPUs, PCIe
// switches and NUMA, different orders per channel. NVLink meshes without a switch: nvlink is the sum of their rings
// (node_rings.hpp), which gives the same channels as a switch of that width.
#pragma once

#include <cstdint>

#include "models/hardware/catalogue.hpp"

namespace fabricast {

struct SearchGraph {
    int channels = 0;  ///< search channels; NCCL executes at least twice as many
    double intra_gb_per_s = 0;
    double inter_gb_per_s = 0;
    bool operator==(const SearchGraph&) const = default;
};

struct SearchResult {
    SearchGraph ring, tree, nvls;  ///< nvls.channels == 0: no NVLS
    bool nvlink_intra = true;      ///< every step inside a node is NVLink
    bool plain_tree = false;       ///< all network traffic of a tree sits on one GPU (x 0.85)
    bool same_channels = true;     ///< all ring channels visit the GPUs in one order
    bool operator==(const SearchResult&) const = default;
};

struct SearchInput {
    GpuGeneration generation = GpuGeneration::hopper;
    bool nccl_2_30 = false;  ///< longer Blackwell speed list
    bool nvls = false;       ///< multicast hardware, and not switched off
    std::uint32_t nodes = 1;
    std::uint32_t gpus = 8;      ///< of the group, on one node
    std::uint32_t nics = 8;      ///< distinct NICs of those GPUs; 0 only with one node
    double nvlink_gb_per_s = 0;  ///< NCCL's figure for one GPU, in all rings; 0 = none
    double pcie_gb_per_s = 0;    ///< the narrowest step where it passes between sockets
    double nic_gb_per_s = 0;     ///< line rate of one NIC
};

/// Search channels and speeds of one node. Precondition: gpus * nodes >= 2.
SearchResult search_channels(const SearchInput& in);

/// All nodes agree on the minimum of channels and speeds.
SearchResult combine(const SearchResult& a, const SearchResult& b);

}  // namespace fabricast
