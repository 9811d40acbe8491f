// A frozen cluster: places of GPUs and NICs, flat links, routes.
//
// Built by topologies/builders (regular fabrics, routed by arithmetic on coordinates) or from a hand-made
// or imported Boost.Graph (routed by breadth-first search, per pair, cached). Immutable afterwards.
//
// A route is the ordered list of directed links a byte crosses from one GPU to another. Inside a node it
// is source nvlink up, destination nvlink down (NVSwitch), or the PCIe links. Between nodes it is
// source pcie up, nic up, fabric links, nic down, destination pcie down. The NIC of a GPU is the one on
// its own rail (its index in the node modulo the NICs of a node).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "topologies/graph/links.hpp"
#include "topologies/graph/units.hpp"

namespace fabricast {

class Router;  ///< how network_route is answered: arithmetic or BFS (topologies/graph/router.hpp)

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
    bool has_nvswitch() const { return !nvlink_up_.empty(); }
    bool has_pcie() const { return !pcie_up_.empty(); }  ///< false only for a single node that lacks it

    NodeId node_of(GpuId gpu) const { return NodeId{static_cast<std::uint32_t>(index(gpu) / gpus_per_node_)}; }
    std::uint32_t local_index(GpuId gpu) const { return static_cast<std::uint32_t>(index(gpu) % gpus_per_node_); }
    /// The NIC on the GPU's rail. Precondition: nics_per_node() > 0.
    NicId nic_of(GpuId gpu) const;

    LinkId nvlink_up(GpuId gpu) const { return nvlink_up_[index(gpu)]; }      ///< GPU -> NVSwitch
    LinkId nvlink_down(GpuId gpu) const { return nvlink_down_[index(gpu)]; }  ///< NVSwitch -> GPU
    LinkId pcie_up(GpuId gpu) const { return pcie_up_[index(gpu)]; }          ///< GPU -> PCIe switch / host
    LinkId pcie_down(GpuId gpu) const { return pcie_down_[index(gpu)]; }
    LinkId nic_up(NicId nic) const { return nic_up_[index(nic)]; }  ///< NIC -> leaf switch
    LinkId nic_down(NicId nic) const { return nic_down_[index(nic)]; }

    /// Appends the links from NIC a to NIC b: a's nic up, fabric links, b's nic down.
    /// Throws std::runtime_error naming both ends when b cannot be reached.
    void network_route(NicId from, NicId to, std::vector<LinkId>& out) const;

    /// Appends the whole route between two GPUs; empty when from == to.
    void route(GpuId from, GpuId to, std::vector<LinkId>& out) const;

    /// Sum of link latencies along a route.
    Picoseconds latency(std::span<const LinkId> links) const;

private:
    friend class ClusterBuilder;  ///< topologies/graph/cluster_graph.hpp: the Boost graph, checked, then frozen
    std::uint32_t node_count_ = 0, gpus_per_node_ = 0, nics_per_node_ = 0;
    Links links_;
    std::vector<LinkId> nvlink_up_, nvlink_down_, pcie_up_, pcie_down_, nic_up_, nic_down_;
    std::unique_ptr<Router> router_;
};

}  // namespace fabricast
