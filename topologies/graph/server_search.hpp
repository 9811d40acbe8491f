// Finds the routes inside a server by the rules of NCCL (src/graph/paths.cc, simplified).
//
// Path type = its worst element, bandwidth = its least link. Of the ways between two ends the better type wins, then
// more bandwidth, then fewer steps, then lower vertex numbers:
//   NVLink   both GPUs on one NVSwitch, or a direct link
//   nvb      through one other GPU; given up for a pix path of more bandwidth, never for a longer one
//   PCIe     pix, pxb, phb, node, sys by the switches, host bridges and NUMA nodes passed; never through a GPU or NIC.
//            p2c: a GPU's chip-to-chip link to the host bridge that holds the NIC
//   else     through as many other GPUs as it takes (dimension grids), still called nvb
// A search extends the best way to each vertex, so a way whose first part is not the best one there is not found;
// PCIe is a tree but for the links between sockets, where this cannot matter.
#pragma once

#include <cstdint>
#include <vector>

#include "topologies/graph/server_routes.hpp"
#include "topologies/graph/units.hpp"

namespace fabricast {

struct ServerGraph {
    static constexpr std::uint32_t kNone = 0xFFFFFFFFu;
    enum class Kind : std::uint8_t { gpu, nic, pcie_switch, host };
    struct Vertex {
        Kind kind = Kind::gpu;
        std::uint32_t numa = 0;          ///< hosts
        std::uint32_t nvswitch = kNone;  ///< GPUs: which of the server's NVSwitches
        std::uint32_t limit = kNone;     ///< link that stands for what passes through the vertex
        bool operator==(const Vertex&) const = default;
    };
    struct Edge {
        std::uint32_t from = 0, to = 0;
        std::uint32_t link = kNone;  ///< kNone: an attachment
        Rate capacity = 0;           ///< of links
        bool nvlink = false, c2c = false;
        bool operator==(const Edge&) const = default;
    };
    std::uint32_t gpus = 0, nics = 0;
    std::vector<Vertex> vertices;  ///< GPUs, NICs, then the others
    std::vector<Edge> edges;       ///< sorted by from
    bool operator==(const ServerGraph&) const = default;
};

/// Pairs that cannot reach each other inside the server get dis.
ServerRoutes search_server_routes(const ServerGraph& server);

}  // namespace fabricast
