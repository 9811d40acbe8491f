// The cluster as a graph while it is being built: typed vertices, directed edges, checks, then the freeze.
//
// Vertices: in a server GPUs, NVSwitches, PCIe switches, NICs and the host; outside leaf and spine switches.
// An edge is either a link (capacity, latency, cables; it gets the next LinkId) or an attachment: a connection
// inside a server that never limits (PCIe switch to its NICs, PCIe switches to the host).
//
//   gpu <-> nvswitch                 at most one each way per GPU, all GPUs or none
//   gpu <-> pcie switch or host      at most one each way per GPU, all GPUs or none
//   pcie switch, host, nic           joined by attachments
//   nic <-> leaf or spine            exactly one each way per NIC
//   leaf, spine <-> leaf, spine      any number
//
// freeze() checks: equal numbers of GPUs and NICs in every server, GPUs a multiple of NICs; all GPUs of a server
// reach each other by NVSwitch or PCIe; with several servers every GPU reaches its rail's NIC and every NIC
// every other. What breaks a rule is refused with its name.
// Not modelled: NVLink meshes without a switch, limits between PCIe switches and the host.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <boost/graph/adjacency_list.hpp>

#include "topologies/graph/cluster.hpp"
#include "topologies/graph/router.hpp"

namespace fabricast {

enum class VertexKind : std::uint8_t { gpu, nvswitch, pcie_switch, nic, leaf, spine, host };

struct ClusterVertex {
    VertexKind kind = VertexKind::gpu;
    std::uint32_t node = 0;   ///< server; 0 and without meaning for leaf and spine
    std::uint32_t local = 0;  ///< GPUs and NICs: number in the server; others: index of the name
};

struct ClusterEdge {
    Rate capacity = 0;  ///< 0 for an attachment
    Picoseconds latency = 0;
    std::uint32_t parallel = 1;
    LinkKind kind = LinkKind::fabric;
    bool is_link = true;
    LinkId link{0};  ///< meaningful for links
};

using ClusterGraph = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, ClusterVertex, ClusterEdge>;

/// One direction of a connection with a limit.
struct LinkSpec {
    double bytes_per_s = 0;      ///< achieved, all cables together; > 0
    double latency_s = 0;        ///< >= 0
    std::uint32_t parallel = 1;  ///< physical cables folded into the link; >= 1
    std::string name = {};       ///< empty: composed from the ends ("node 3 gpu 5 nvlink up")
};

class ClusterBuilder {
public:
    using VertexId = ClusterGraph::vertex_descriptor;

    ClusterBuilder() = default;
    ClusterBuilder(const ClusterBuilder&) = delete;
    ClusterBuilder& operator=(const ClusterBuilder&) = delete;

    /// Optional: room for so many links.
    void reserve(std::size_t links);

    /// GPUs and NICs of a server are numbered in the order they are added.
    VertexId add_gpu(NodeId node);
    VertexId add_nic(NodeId node);
    /// NVSwitch, PCIe switch or host of a server.
    VertexId add_in_node(VertexKind kind, NodeId node);
    /// Leaf or spine switch; the name stands in link names and error texts.
    VertexId add_switch(VertexKind kind, std::string name);

    /// Adds a directed link. Throws std::invalid_argument for ends that cannot be linked, a bandwidth that is
    /// not a positive number, a negative or undefined latency, zero cables.
    LinkId add_link(VertexId from, VertexId to, const LinkSpec& spec);
    /// Two links with the same figures; returns the one from a to b, the other has the next LinkId.
    LinkId add_cable(VertexId a, VertexId b, const LinkSpec& spec);
    /// Joins PCIe switches, NICs and the host of one server, both ways, without limit.
    void attach(VertexId a, VertexId b);

    const ClusterGraph& graph() const { return graph_; }
    std::string vertex_name(VertexId vertex) const;

    /// Checks and freezes. Routes by breadth-first search, or by the router given, which must know the LinkIds
    /// that add_link returned. Throws std::invalid_argument with the broken rule. The builder is empty after.
    Cluster freeze(std::unique_ptr<Router> router = nullptr) &&;

private:
    VertexId add_vertex(VertexKind kind, std::uint32_t node, std::uint32_t local);
    std::string composed_link_name(VertexId from, VertexId to) const;
    void check_counts() const;
    void place_links(Cluster& cluster) const;
    void check_links_complete(const Cluster& cluster) const;
    void check_inside_nodes(const Cluster& cluster) const;
    std::unique_ptr<Router> check_fabric(const Cluster& cluster) const;

    ClusterGraph graph_;
    Links links_;
    std::vector<std::vector<VertexId>> gpus_, nics_;  ///< [node][local]
    std::vector<std::string> names_;                  ///< of everything but GPUs and NICs
};

}  // namespace fabricast
