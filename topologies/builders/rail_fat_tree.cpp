#include "topologies/builders/rail_fat_tree.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "topologies/graph/cluster_graph.hpp"
#include "topologies/graph/router.hpp"

namespace fabricast {
namespace {

/// Links and ids of a cluster this large still fit 32 bits with room.
constexpr std::uint64_t kMaxGpus = 1u << 26;

template <typename... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> text, Args&&... args) {
    throw std::invalid_argument(fmt::format(text, std::forward<Args>(args)...));
}

void check_not_negative(const char* field, double value) {
    if (!(value >= 0) || !std::isfinite(value)) {
        refuse("{} {}: must be a number, 0 or more", field, value);
    }
}

void check_positive(const char* field, double value, const char* why) {
    check_not_negative(field, value);
    if (value == 0) {
        refuse("{} 0: must be above 0 {}", field, why);
    }
}

void check(const NodeShape& node, const RailFatTree& fabric) {
    if (fabric.nodes == 0) {
        refuse("nodes 0: needs at least one");
    }
    if (node.gpus == 0) {
        refuse("gpus 0: a node needs at least one");
    }
    if (std::uint64_t{fabric.nodes} * node.gpus > kMaxGpus) {
        refuse("nodes {} x gpus {}: more than {} GPUs", fabric.nodes, node.gpus, kMaxGpus);
    }
    if (node.nics == 0 && fabric.nodes > 1) {
        refuse("nics 0: {} nodes need a NIC each", fabric.nodes);
    }
    if (node.nics > 0 && node.gpus % node.nics != 0) {
        refuse(
            "nics {}: gpus {} is not a multiple of it; several NICs of one GPU are entered as one with their "
            "summed rate",
            node.nics, node.gpus);
    }
    check_not_negative("nvlink_bytes_per_s", node.nvlink_bytes_per_s);
    check_not_negative("nvlink_latency_s", node.nvlink_latency_s);
    check_not_negative("pcie_bytes_per_s", node.pcie_bytes_per_s);
    check_not_negative("pcie_latency_s", node.pcie_latency_s);
    check_not_negative("nic_bytes_per_s", node.nic_bytes_per_s);
    check_not_negative("nic_latency_s", node.nic_latency_s);
    check_not_negative("switch_latency_s", fabric.switch_latency_s);
    if (fabric.nodes > 1) {
        check_positive("pcie_bytes_per_s", node.pcie_bytes_per_s, "where GPUs reach a NIC");
    } else if (node.gpus > 1 && node.nvlink_bytes_per_s == 0) {
        check_positive("pcie_bytes_per_s", node.pcie_bytes_per_s, "where GPUs have no NVLink");
    }
    if (node.nics > 0) {
        check_positive("nic_bytes_per_s", node.nic_bytes_per_s, "where a node has NICs");
        check_positive("oversubscription", fabric.oversubscription, "(leaf down / leaf up capacity)");
        if (fabric.nodes_per_pod == 0) {
            refuse("nodes_per_pod 0: a leaf switch needs at least one port that looks down");
        }
    }
}

/// Where a NIC sits; trunk links are laid out [pod][rail][up, down] from `first_trunk`.
class RailRouter final : public Router {
public:
    RailRouter(std::uint32_t rails, std::uint32_t nodes_per_pod, std::uint32_t first_trunk)
        : rails_(rails), nodes_per_pod_(nodes_per_pod), first_trunk_(first_trunk) {}

    bool append_fabric_links(NicId from, NicId to, std::vector<LinkId>& out) const override {
        const std::uint32_t source = leaf_of(from);
        const std::uint32_t destination = leaf_of(to);
        if (source != destination) {
            out.push_back(LinkId{first_trunk_ + 2 * source});
            out.push_back(LinkId{first_trunk_ + 2 * destination + 1});
        }
        return true;
    }

private:
    std::uint32_t leaf_of(NicId nic) const {
        const auto number = static_cast<std::uint32_t>(nic);
        return number / rails_ / nodes_per_pod_ * rails_ + number % rails_;
    }

    std::uint32_t rails_, nodes_per_pod_, first_trunk_;
};

/// Adds a server's inside; returns its NIC vertices.
std::vector<ClusterBuilder::VertexId> add_node(ClusterBuilder& builder, const NodeShape& node, NodeId id) {
    std::vector<ClusterBuilder::VertexId> gpus, nics;
    for (std::uint32_t g = 0; g < node.gpus; ++g) {
        gpus.push_back(builder.add_gpu(id));
    }
    if (node.nvlink_bytes_per_s > 0) {
        const auto nvswitch = builder.add_in_node(VertexKind::nvswitch, id);
        for (const auto gpu : gpus) {
            builder.add_link(gpu, nvswitch, {.bytes_per_s = node.nvlink_bytes_per_s});
            builder.add_link(nvswitch, gpu,
                             {.bytes_per_s = node.nvlink_bytes_per_s, .latency_s = node.nvlink_latency_s});
        }
    }
    const auto host = builder.add_in_node(VertexKind::host, id);
    if (node.pcie_bytes_per_s > 0) {
        for (const auto gpu : gpus) {
            builder.add_cable(gpu, host, {.bytes_per_s = node.pcie_bytes_per_s, .latency_s = node.pcie_latency_s});
        }
    }
    for (std::uint32_t n = 0; n < node.nics; ++n) {
        nics.push_back(builder.add_nic(id));
        builder.attach(host, nics.back());
    }
    return nics;
}

}  // namespace

Cluster build_rail_fat_tree(const NodeShape& node, const RailFatTree& fabric) {
    check(node, fabric);
    ClusterBuilder builder;
    const std::uint32_t rails = node.nics;
    const std::uint32_t nodes_per_pod = std::max(1u, std::min(fabric.nodes_per_pod, fabric.nodes));
    const std::uint32_t pods = (fabric.nodes + nodes_per_pod - 1) / nodes_per_pod;
    builder.reserve(std::size_t{fabric.nodes} * (4 * node.gpus + 2 * rails) + std::size_t{2} * pods * rails);

    std::vector<std::vector<ClusterBuilder::VertexId>> nics;
    nics.reserve(fabric.nodes);
    for (std::uint32_t n = 0; n < fabric.nodes; ++n) {
        nics.push_back(add_node(builder, node, NodeId{n}));
    }
    if (rails == 0) {
        return std::move(builder).freeze();
    }

    std::vector<ClusterBuilder::VertexId> leaves;  // [pod][rail]
    for (std::uint32_t pod = 0; pod < pods; ++pod) {
        for (std::uint32_t rail = 0; rail < rails; ++rail) {
            leaves.push_back(builder.add_switch(VertexKind::leaf, fmt::format("pod {} rail {} leaf", pod, rail)));
        }
    }
    for (std::uint32_t n = 0; n < fabric.nodes; ++n) {
        for (std::uint32_t rail = 0; rail < rails; ++rail) {
            const auto leaf = leaves[n / nodes_per_pod * rails + rail];
            builder.add_link(nics[n][rail], leaf,
                             {.bytes_per_s = node.nic_bytes_per_s, .latency_s = node.nic_latency_s});
            builder.add_link(
                leaf, nics[n][rail],
                {.bytes_per_s = node.nic_bytes_per_s, .latency_s = fabric.switch_latency_s + node.nic_latency_s});
        }
    }

    // One spine vertex stands for the ideally spread level above.
    const auto spine = builder.add_switch(VertexKind::spine, "spine level");
    LinkId first_trunk{0};
    for (std::uint32_t pod = 0; pod < pods; ++pod) {
        const std::uint32_t nodes = std::min(nodes_per_pod, fabric.nodes - pod * nodes_per_pod);
        const double cables = nodes / fabric.oversubscription;
        for (std::uint32_t rail = 0; rail < rails; ++rail) {
            const auto leaf = leaves[pod * rails + rail];
            LinkSpec trunk = {.bytes_per_s = cables * node.nic_bytes_per_s,
                              .latency_s = fabric.switch_latency_s,
                              .parallel = static_cast<std::uint32_t>(std::ceil(std::min(cables, 4e9))),
                              .name = fmt::format("pod {} rail {} trunk up", pod, rail)};
            const LinkId up = builder.add_link(leaf, spine, trunk);
            trunk.name = fmt::format("pod {} rail {} trunk down", pod, rail);
            builder.add_link(spine, leaf, trunk);
            if (pod == 0 && rail == 0) {
                first_trunk = up;
            }
        }
    }
    return std::move(builder).freeze(
        std::make_unique<RailRouter>(rails, nodes_per_pod, static_cast<std::uint32_t>(first_trunk)));
}

}  // namespace fabricast
