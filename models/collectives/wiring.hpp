// How the channels of a collective are laid over the links of a group.
//
// A pattern is one way to wire a channel. Channels take patterns in turn (channel c has pattern c mod patterns),
// so each GPU is the entry, the exit and inside equally often. With g ranks on a node there are g patterns:
//   ring   pattern r: node i is crossed from its rank r upwards (even i), or from rank r - 1 downwards (odd i), so
//          the hop between two nodes joins equal rails and a GPU sends on NVLink in g - 1 of g patterns. With an
//          odd number of nodes the closing hop crosses rails, as NCCL's does.
//          Without an NVSwitch the order inside a node is a cycle of node_rings.hpp and patterns pair cycles and entries.
//   tree   pattern r: a chain r, r + 1, ... inside the node, two binary trees over the nodes at its first rank,
//          half of the channel each. Tree 1: node v > 0 with lowest set bit b has parent (v ^ b) | 2b if that is
//          a node, else v ^ b. Tree 2: mirrored (even node count) or shifted by one (odd).
//   nvls   pattern r: rank r is the head of a slice: the switch reduces the slice towards it, it multicasts the
//          result, and between nodes the heads of one rail form the two trees.
//   collnet  pattern r: rank r of each node is the head of a slice; the others reduce to it (direct: at once, chain: one
//          after the other, nvls_collnet: in the NVSwitch); the switches reduce what the heads send up and multicast
//          the sum down, so a head sends and receives its slice once and a trunk carries it once each way.
//   pat    one rank a node, binomial trees: n/2 of n - 1 chunks go to distance 1, n/4 to distance 2, ...
// A load says how many units of a channel cross a link; units_per_channel units are one channel's bytes.
//
// Source: NCCL 2.28.9 src/graph/connect.cc, src/graph/trees.cc. Simplified: NCCL alternates entry and exit in pairs
// of channels (same load); a balanced tree puts one child on the second GPU of the node (same load on average).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/collectives/node_rings.hpp"
#include "topologies/graph/cluster.hpp"

namespace fabricast {

enum class Wiring : std::uint8_t {
    ring,
    tree,
    nvls,
    nvls_gather,
    nvls_scatter,
    nvls_tree,
    nvls_collnet,
    collnet_direct,
    collnet_chain,
    pat
};

/// Members of a group sorted by node, nodes in order of their first member, in a node by local index. Servers of one
/// NVSwitch domain are one node here.
struct GroupOrder {
    std::vector<GpuId> gpus;
    std::vector<std::uint32_t> begin;  ///< node i owns gpus[begin[i] .. begin[i + 1])
    std::vector<NodeRings> rings;      ///< where there is no NVSwitch, or neighbours share NICs; equal nodes share one
    std::vector<std::uint32_t> rings_of;  ///< [node] -> rings; empty: by index from each GPU in turn

    std::uint32_t ranks() const { return static_cast<std::uint32_t>(gpus.size()); }
    std::uint32_t nodes() const { return static_cast<std::uint32_t>(begin.size()) - 1; }
    std::span<const GpuId> node(std::uint32_t i) const { return {gpus.data() + begin[i], begin[i + 1] - begin[i]}; }
    /// The j-th GPU of node i in this pattern; j below the GPUs of the node.
    GpuId passed(std::uint32_t i, std::uint32_t pattern, std::uint32_t j) const;
    /// Patterns after which orders repeat.
    std::uint32_t patterns() const;
};
/// Throws std::invalid_argument for no member, a member twice, a member that the cluster lacks.
GroupOrder order_by_node(const Cluster& cluster, std::span<const GpuId> members);

struct LinkLoad {
    LinkId link;
    std::uint32_t units;
};

/// Channels with equal bottleneck go together; a slow link puts the channels that cross it into a class of their own.
struct ChannelClasses {
    std::uint32_t channels = 0;           ///< all
    std::vector<std::uint32_t> class_of;  ///< [pattern]
    std::vector<std::uint32_t> size;      ///< [class] channels in it

    std::uint32_t patterns() const { return static_cast<std::uint32_t>(class_of.size()); }
    std::uint32_t channels_of_pattern(std::uint32_t pattern) const {
        return channels / patterns() + (pattern < channels % patterns() ? 1u : 0u);
    }
};

class LinkTotals;  ///< wiring.cpp

/// nvls_percent: share of NVLink that multicast and reduction reach; loads are divided by it.
class ChannelWiring {
public:
    ChannelWiring(const Cluster& cluster, const GroupOrder& order, Wiring wiring, int nvls_percent)
        : cluster_(&cluster),
          order_(&order),
          wiring_(wiring),
          nvls_percent_(static_cast<std::uint32_t>(nvls_percent)) {}

    std::uint32_t units_per_channel() const;
    /// Appends the loads of one channel of this pattern; a link may occur several times. The order depends on the
    /// place of links in the group alone, so equal groups give corresponding sequences.
    void append_loads(std::uint32_t pattern, std::vector<LinkLoad>& out) const;

    /// Groups `channels` channels; mixes what decides about plans (capacities in canonical order) into `hash`. With
    /// `demands`, also what demand() says of each class.
    ChannelClasses classify(std::uint32_t channels, std::uint64_t& hash,
                            std::vector<std::vector<LinkUse>>* demands = nullptr) const;

    /// Links of one class, sorted, one entry a link. The coefficient is the share of the class's bytes, rounded up.
    std::vector<LinkUse> demand(const ChannelClasses& classes, std::uint32_t which) const;

private:
    std::vector<LinkUse> uses(LinkTotals& total, std::uint32_t channels) const;
    void hop(GpuId from, GpuId to, std::uint32_t units, std::vector<LinkLoad>& out) const;
    void append_ring(std::uint32_t pattern, std::vector<LinkLoad>& out) const;
    void append_double_tree(std::uint32_t pattern, std::uint32_t half, std::vector<LinkLoad>& out) const;
    void append_chains(std::uint32_t pattern, std::vector<LinkLoad>& out) const;
    void append_nvls(std::uint32_t pattern, std::vector<LinkLoad>& out) const;
    void append_collnet(std::uint32_t pattern, std::uint32_t units, std::vector<LinkLoad>& out) const;
    void append_pat(std::vector<LinkLoad>& out) const;

    const Cluster* cluster_;
    const GroupOrder* order_;
    Wiring wiring_;
    std::uint32_t nvls_percent_;
    mutable std::vector<LinkId> route_;  ///< scratch of hop(): hops are many and short
};

/// Members in the order a ring channel of this pattern passes them; the last one sends to the first.
std::vector<GpuId> ring_order(const GroupOrder& order, std::uint32_t pattern);

/// Parent of node v in the first tree over `nodes` nodes; v itself for the root.
std::uint32_t tree_parent(std::uint32_t v, std::uint32_t nodes);

/// One step of the 64-bit hash used for shapes.
std::uint64_t mix(std::uint64_t hash, std::uint64_t value);

}  // namespace fabricast
