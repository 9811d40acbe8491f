// A frozen cluster: places of GPUs and NICs, flat links, routes.
//
// Built by topologies/builders (regular fabrics, routed by arithmetic on coordinates) or from a hand-made
// or imported Boost.Graph (routed by breadth-first search, per pair, cached). Links and routes stay as they are;
// only capacities may be lowered (degrade).
//
// A route is the ordered list of directed links a byte crosses from one GPU to another:
//   one NVSwitch domain, which may span servers     source nvlink up, destination nvlink down
//   one server otherwise                            direct NVLinks, or PCIe and host links (server_search.hpp)
//   between servers                                 links to the NIC, nic up, fabric links, nic down, links from the NIC
// Between servers the GPU's first NIC that meets one of the other GPU's is taken. Where the network joins equal
// positions in the servers only (rails_apart), a route first crosses NVLink to the GPU of the destination's position.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "topologies/graph/links.hpp"
#include "topologies/graph/path_type.hpp"
#include "topologies/graph/routing_policy.hpp"
#include "topologies/graph/units.hpp"

namespace fabricast {

class Router;         ///< how network_route is answered: arithmetic or BFS (topologies/graph/router.hpp)
struct ServerRoutes;  ///< what a server's inside looks like (topologies/graph/server_routes.hpp)

class Cluster {
public:
    Cluster();
    Cluster(Cluster&&) noexcept;
    Cluster& operator=(Cluster&&) noexcept;
    ~Cluster();

    std::uint32_t node_count() const { return node_count_; }
    std::uint32_t gpus_per_node() const { return gpus_per_node_; }
    std::uint32_t nics_per_node() const { return nics_per_node_; }
    std::uint32_t gpu_count() const { return node_count_ * gpus_per_node_; }
    const Links& links() const { return links_; }
    bool has_nvswitch() const { return !nvlink_up_.empty(); }  ///< all GPUs hang on one, or none
    bool has_nvlink() const { return has_nvswitch() || has_direct_nvlink_; }
    bool has_pcie() const { return !pcie_up_.empty(); }  ///< all GPUs have a PCIe link, or none

    NodeId node_of(GpuId gpu) const { return NodeId{static_cast<std::uint32_t>(index(gpu) / gpus_per_node_)}; }
    NodeId node_of(NicId nic) const { return NodeId{static_cast<std::uint32_t>(index(nic) / nics_per_node_)}; }
    std::uint32_t local_index(GpuId gpu) const { return static_cast<std::uint32_t>(index(gpu) % gpus_per_node_); }
    std::uint32_t local_index(NicId nic) const { return static_cast<std::uint32_t>(index(nic) % nics_per_node_); }
    /// The first of the GPU's NICs. Precondition: nics_per_node() > 0.
    NicId nic_of(GpuId gpu) const;
    /// NICs the GPU uses, best first: by default the one on its rail (its index in the node modulo the NICs of a node).
    /// Empty without NICs.
    std::span<const NicId> nics_of(GpuId gpu) const {
        return {gpu_nics_.data() + first_nic_[index(gpu)], first_nic_[index(gpu) + 1] - first_nic_[index(gpu)]};
    }
    /// GPUs of equal domain reach each other over NVLink: on one NVSwitch (within or beyond a server), or over
    /// direct links. Numbered from 0 by first GPU; a GPU without NVLink is a domain of its own.
    std::uint32_t nvlink_domain_of(GpuId gpu) const { return nvlink_domain_[index(gpu)]; }
    std::uint32_t nvlink_domain_count() const { return nvlink_domain_count_; }

    /// How near two ends are: net between servers, unless one NVSwitch joins them.
    PathType path_type(GpuId a, GpuId b) const;
    PathType path_type(GpuId gpu, NicId nic) const;

    LinkId nvlink_up(GpuId gpu) const { return nvlink_up_[index(gpu)]; }      ///< GPU -> NVSwitch
    LinkId nvlink_down(GpuId gpu) const { return nvlink_down_[index(gpu)]; }  ///< NVSwitch -> GPU
    LinkId pcie_up(GpuId gpu) const { return pcie_up_[index(gpu)]; }          ///< GPU -> PCIe switch / host
    LinkId pcie_down(GpuId gpu) const { return pcie_down_[index(gpu)]; }
    LinkId nic_up(NicId nic) const { return nic_up_[index(nic)]; }  ///< NIC -> leaf switch
    LinkId nic_down(NicId nic) const { return nic_down_[index(nic)]; }

    /// How flows spread over parallel fabric links; flow numbers below matter with ecmp only.
    const RoutingPolicy& routing() const { return routing_; }
    /// The network joins GPUs of equal position only.
    bool rails_apart() const { return rails_apart_; }

    /// Appends the links from NIC a to NIC b: a's nic up, fabric links, b's nic down. Nothing for a == b.
    /// Throws std::runtime_error naming both ends when b cannot be reached.
    void network_route(NicId from, NicId to, std::vector<LinkId>& out) const { network_route(from, to, 0, out); }
    void network_route(NicId from, NicId to, std::uint64_t flow, std::vector<LinkId>& out) const;

    /// Appends the links between a GPU and a NIC of its server, in the direction of the arguments.
    /// Throws std::runtime_error for ends of different servers and ends that are not joined.
    void host_route(GpuId from, NicId to, std::vector<LinkId>& out) const;
    void host_route(NicId from, GpuId to, std::vector<LinkId>& out) const;

    /// Appends the whole route between two GPUs; empty when from == to. Throws as network_route does.
    void route(GpuId from, GpuId to, std::vector<LinkId>& out) const { route(from, to, 0, out); }
    void route(GpuId from, GpuId to, std::uint64_t flow, std::vector<LinkId>& out) const;

    /// The links a GPU's routes to GPUs behind other NVSwitches are made of, where they all follow from them: out of the
    /// GPU to its NIC's switch, the levels above (router.hpp), into the GPU from its NIC's switch.
    struct Ends {
        std::span<const LinkId> out, levels, in;
    };
    /// True where routes follow from ends: one NIC a GPU, an NVSwitch, a fabric of levels.
    bool has_ends() const { return !ends_.empty(); }
    /// Precondition: has_ends().
    Ends ends(GpuId gpu) const {
        const LinkId* first = ends_.data() + index(gpu) * (2 * ends_outside_ + ends_levels_);
        return {{first, ends_outside_},
                {first + ends_outside_, ends_levels_},
                {first + ends_outside_ + ends_levels_, ends_outside_}};
    }
    /// GPUs of equal number are on one NVSwitch. Precondition: has_nvswitch().
    std::uint32_t nvswitch_of(GpuId gpu) const { return nvswitch_[index(gpu)]; }

    /// Sum of link latencies along a route.
    Picoseconds latency(std::span<const LinkId> links) const;

    /// Lowers a link's capacity, and its cables by those lost; routes stay. Throws std::invalid_argument unless
    /// 0 < capacity <= the present one and a cable remains.
    void degrade(LinkId link, Rate capacity, std::uint32_t cables_lost = 0);

private:
    friend class ClusterBuilder;  ///< topologies/graph/cluster_graph.hpp: the Boost graph, checked, then frozen
    const ServerRoutes& server_routes(NodeId node) const;
    bool share_nvswitch(GpuId a, GpuId b) const { return has_nvswitch() && nvswitch_[index(a)] == nvswitch_[index(b)]; }
    void append_inside(NodeId node, std::uint32_t from_end, std::uint32_t to_end, std::vector<LinkId>& out) const;
    void place_ends();
    void append_ends(GpuId from, GpuId to, std::vector<LinkId>& out) const;
    bool append_network(NicId from, NicId to, std::uint64_t flow, std::vector<LinkId>& out) const;
    void append_between(GpuId from, GpuId to, std::uint64_t flow, std::vector<LinkId>& out) const;

    std::uint32_t node_count_ = 0, gpus_per_node_ = 0, nics_per_node_ = 0;
    bool has_direct_nvlink_ = false, rails_apart_ = false;
    RoutingPolicy routing_;
    Links links_;
    std::vector<LinkId> nvlink_up_, nvlink_down_, pcie_up_, pcie_down_, nic_up_, nic_down_;
    std::vector<std::uint32_t> nvswitch_, nvlink_domain_;  ///< [gpu]
    std::uint32_t nvlink_domain_count_ = 0;
    std::vector<std::uint32_t> first_nic_ = {0};  ///< [gpu], and one more: its part of gpu_nics_
    std::vector<NicId> gpu_nics_;
    struct Server {
        std::uint32_t routes = 0;      ///< which of server_routes_
        std::uint32_t first_link = 0;  ///< its routes count links from here
    };
    std::vector<Server> servers_;  ///< [node]
    std::vector<ServerRoutes> server_routes_;
    std::unique_ptr<Router> router_;
    std::vector<LinkId> ends_;  ///< [gpu][out, levels, in]; empty where routes do not follow from them
    std::uint32_t ends_outside_ = 0, ends_levels_ = 0;
};

}  // namespace fabricast
