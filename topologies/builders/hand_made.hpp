// A cluster written down part by part: named parts and the links between them.
//
//   gpu, nic          of a server
//   pcie-switch, host of a server; a host belongs to a NUMA node; what joins them may have a rate, else it never limits
//   nvswitch          of a server, or with server < 0 of GPUs of any servers
//   switch            of the network
// A link between a GPU and a network switch stands for an adapter of its own: a NIC beside the GPU, as wide as the link.
// All rates are achieved, bytes/s per direction; a link is two directions unless one_way. Routes are searched
// (bfs_router.hpp, server_search.hpp). What the graph may be is said in cluster_graph.hpp.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "topologies/graph/cluster.hpp"

namespace fabricast {

struct HandMade {
    enum class Kind : std::uint8_t { gpu, nvswitch, nic, pcie_switch, host, network_switch };
    struct Part {
        std::string name;
        Kind kind = Kind::gpu;
        int server = 0;          ///< -1: of none; read of all but network switches
        std::uint32_t numa = 0;  ///< hosts
    };
    struct Link {
        std::string from, to;
        double bytes_per_s = 0;  ///< all lanes; 0: never limits (PCIe switches, hosts and NICs of one server alone)
        double latency_s = 0;
        std::uint32_t lanes = 1;
        bool one_way = false;
    };
    std::vector<Part> parts;
    std::vector<Link> links;
    RoutingPolicy routing = {};
};

std::string_view part_kind_name(HandMade::Kind kind);  ///< "pcie-switch"
std::optional<HandMade::Kind> find_part_kind(std::string_view name);

/// What is wrong, and with which part or link.
struct HandMadeError : std::invalid_argument {
    HandMadeError(const std::string& text, std::optional<std::size_t> part_, std::optional<std::size_t> link_)
        : std::invalid_argument(text), part(part_), link(link_) {}
    std::optional<std::size_t> part, link;  ///< neither: the graph as a whole
};

/// Throws HandMadeError.
Cluster build_hand_made(const HandMade& graph);

}  // namespace fabricast
