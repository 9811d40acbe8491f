// The cluster as a graph while it is being built: typed vertices, directed edges, checks, then the freeze.
//
// Vertices: in a server GPUs, PCIe switches, NICs and hosts (host bridges of a NUMA node); NVSwitches in a server or
// across servers; outside leaf and spine switches. An edge is either a link (capacity, latency, cables; it gets the
// next LinkId) or an attachment: a connection inside a server that never limits.
//
//   gpu <-> nvswitch                 at most one each way per GPU, all GPUs or none
//   gpu <-> gpu                      NVLink of a pair in one server, all lanes as one link
//   gpu <-> pcie switch or host      at most one each way per GPU, all GPUs or none; c2c with a host
//   pcie switch, host, nic           joined by attachments or by links of kind pcie; host <-> host: kind host
//   nic <-> leaf or spine            exactly one each way per NIC
//   leaf, spine <-> leaf, spine      any number
// A host may have a limit: one link that all traffic through it shares.
//
// freeze() checks: equal numbers of GPUs and NICs in every server; all GPUs of a server reach each other; with several
// servers every GPU reaches its NICs inside the server and one network joins NICs of all GPUs (with set_rails_apart():
// of all GPUs of equal position, and NVLink joins the positions), unless one NVSwitch joins all GPUs. What breaks a
// rule is refused with its name.
// Not modelled: servers with different numbers of GPUs, NVLink between servers without a switch, NVSwitch limits,
// traffic that bounces through host memory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <boost/graph/adjacency_list.hpp>

#include "topologies/graph/cluster.hpp"
#include "topologies/graph/router.hpp"

namespace fabricast {

enum class VertexKind : std::uint8_t { gpu, nvswitch, pcie_switch, nic, leaf, spine, host };

inline constexpr LinkId kNoLink{0xFFFFFFFFu};

struct ClusterVertex {
    VertexKind kind = VertexKind::gpu;
    std::uint32_t node = 0;   ///< server; 0 and without meaning for leaf and spine
    std::uint32_t local = 0;  ///< number in the server; of what has a name of its own: index of the name
    std::uint32_t numa = 0;   ///< of hosts
    bool named = false;       ///< leaf, spine and NVSwitches across servers
    LinkId limit = kNoLink;   ///< of hosts
};

struct ClusterEdge {
    Rate capacity = 0;  ///< 0 for an attachment
    Picoseconds latency = 0;
    std::uint32_t parallel = 1;
    LinkKind kind = LinkKind::fabric;
    bool is_link = true;
    bool c2c = false;
    LinkId link{0};  ///< meaningful for links
};

using ClusterGraph = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, ClusterVertex, ClusterEdge>;

/// One direction of a connection with a limit.
struct LinkSpec {
    double bytes_per_s = 0;      ///< achieved, all cables together; > 0
    double latency_s = 0;        ///< >= 0
    std::uint32_t parallel = 1;  ///< physical cables folded into the link; >= 1
    std::string name = {};       ///< empty: composed from the ends ("node 3 gpu 5 nvlink up")
    bool c2c = false;            ///< GPU and host: a chip-to-chip link, not PCIe
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
    /// NVSwitch, PCIe switch or host of a server; a host is of NUMA node 0.
    VertexId add_in_node(VertexKind kind, NodeId node);
    /// Host bridge of a NUMA node.
    VertexId add_host(NodeId node, std::uint32_t numa);
    /// NVSwitch that GPUs of several servers may be linked to.
    VertexId add_nvlink_domain(std::string name);
    /// Leaf or spine switch; the name stands in link names and error texts.
    VertexId add_switch(VertexKind kind, std::string name);

    /// Adds a directed link. Throws std::invalid_argument for ends that cannot be linked, a bandwidth that is
    /// not a positive number, a negative or undefined latency, zero cables.
    LinkId add_link(VertexId from, VertexId to, const LinkSpec& spec);
    /// Two links with the same figures; returns the one from a to b, the other has the next LinkId.
    LinkId add_cable(VertexId a, VertexId b, const LinkSpec& spec);
    /// The cable of a NIC, in two directions; returns that to the switch. For servers that are repeated, whose NICs have no
    /// vertex. Throws as add_link does.
    LinkId add_nic_cable(NicId nic, VertexId leaf, const LinkSpec& up, const LinkSpec& down);
    /// Joins PCIe switches, NICs and the host of one server, both ways, without limit.
    void attach(VertexId a, VertexId b);

    /// All servers are built as the only one so far, server 0: `copies` more, with the LinkIds that follow. They have no
    /// vertices: their NICs are linked by add_nic_cable. Precondition: all links are server 0's, without names of their own.
    void repeat_server(std::uint32_t copies);

    /// A link that everything passing through the host shares, at most one a host.
    LinkId limit(VertexId host, const LinkSpec& spec);

    /// NICs of the GPU's server that it uses, best first; at least one. GPUs of which nothing is said take the NIC on
    /// their rail, which needs GPUs in a multiple of NICs.
    void use_nics(VertexId gpu, const std::vector<VertexId>& nics);
    /// The network joins equal positions only.
    void set_rails_apart() { rails_apart_ = true; }
    /// For searched fabrics how routes spread; for a router of the caller what Cluster::routing() tells.
    void set_routing(const RoutingPolicy& routing) { routing_ = routing; }

    const ClusterGraph& graph() const { return graph_; }
    std::string vertex_name(VertexId vertex) const;

    /// Checks and freezes. Routes by breadth-first search, or by the router given, which must know the LinkIds
    /// that add_link returned. Throws std::invalid_argument with the broken rule. The builder is empty after.
    Cluster freeze(std::unique_ptr<Router> router = nullptr) &&;

private:
    VertexId add_vertex(VertexKind kind, std::uint32_t node, std::uint32_t local);
    VertexId add_inside(VertexKind kind, NodeId node, std::uint32_t numa);
    VertexId add_named(VertexKind kind, std::string name);
    LinkId add_flat_link(const LinkName& name, LinkKind kind, const LinkSpec& spec);
    LinkName link_name(VertexId from, VertexId to, const LinkSpec& spec) const;
    std::string nic_name(NicId nic) const;
    std::uint32_t node_count() const { return static_cast<std::uint32_t>(gpus_.size()) + copies_; }
    // topologies/graph/cluster_freeze.cpp
    void check_counts() const;
    void place_links(Cluster& cluster) const;
    void check_links_complete(const Cluster& cluster) const;
    void place_nvlink_domains(Cluster& cluster) const;
    void place_nics(Cluster& cluster) const;
    void check_inside_nodes(const Cluster& cluster) const;
    // topologies/graph/cluster_servers.cpp, cluster_fabric.cpp
    void place_server_routes(Cluster& cluster) const;
    bool needs_network(const Cluster& cluster) const;
    std::unique_ptr<Router> check_fabric(const Cluster& cluster, bool wants_router) const;

    ClusterGraph graph_;
    Links links_;
    std::vector<std::vector<VertexId>> gpus_, nics_;  ///< [node][local]
    std::vector<std::vector<VertexId>> inside_;       ///< [node]: PCIe switches and hosts
    std::vector<std::string> names_;
    std::vector<std::pair<VertexId, std::vector<VertexId>>> nics_of_gpus_;  ///< told by use_nics
    std::uint32_t copies_ = 0;                                              ///< of server 0
    std::uint32_t server_links_ = 0;                                        ///< of server 0, where it is repeated
    std::uint32_t server_vertices_ = 0;
    std::vector<LinkId> nic_up_, nic_down_;  ///< of add_nic_cable, by NIC
    std::vector<VertexId> nic_switch_;
    bool rails_apart_ = false;
    RoutingPolicy routing_;
};

}  // namespace fabricast
