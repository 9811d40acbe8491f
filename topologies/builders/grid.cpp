#include "topologies/builders/grid.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "topologies/builders/checks.hpp"
#include "topologies/graph/cluster_graph.hpp"
#include "topologies/graph/router.hpp"

namespace fabricast {
namespace {

using Kind = GridAxis::Kind;
using VertexId = ClusterBuilder::VertexId;
constexpr std::uint64_t kMostGpusOfAServer = 4096;

/// An outer axis as laid out in the flat links.
struct Axis {
    Kind kind;
    std::uint32_t count, stride;  ///< GPUs between neighbours
    std::uint32_t first_link;
};

/// Links an axis gives to one GPU, in the order they are laid out.
std::uint32_t links_per_gpu(Kind kind, std::uint32_t count) {
    switch (kind) {
        case Kind::ring: return count == 2 ? 1 : 2;  // upwards, downwards
        case Kind::full: return count - 1;           // to the GPU 1, 2, ... further up
        default: return 2;                           // to the switch, from the switch
    }
}

class GridRouter final : public Router {
public:
    explicit GridRouter(std::vector<Axis> axes) : axes_(std::move(axes)) {}

    bool append_fabric_links(NicId from, NicId to, std::uint64_t /*flow*/, std::vector<LinkId>& out) const override {
        auto at = static_cast<std::uint32_t>(from);
        const auto goal = static_cast<std::uint32_t>(to);
        if (axes_.empty() || at % axes_.front().stride != goal % axes_.front().stride) {
            return false;  // other inner coordinates
        }
        for (const Axis& axis : axes_) {
            const std::uint32_t here = at / axis.stride % axis.count, there = goal / axis.stride % axis.count;
            at = here == there ? at : crossed(axis, at, here, there, out);
        }
        return true;
    }

private:
    /// The GPU at coordinate `there` of the axis.
    static std::uint32_t crossed(const Axis& axis, std::uint32_t at, std::uint32_t here, std::uint32_t there,
                                 std::vector<LinkId>& out) {
        const std::uint32_t base = at - here * axis.stride;
        const std::uint32_t per_gpu = links_per_gpu(axis.kind, axis.count);
        const auto link = [&](std::uint32_t coordinate, std::uint32_t which) {
            return LinkId{axis.first_link + (base + coordinate * axis.stride) * per_gpu + which};
        };
        const std::uint32_t up = (there + axis.count - here) % axis.count;
        if (axis.kind == Kind::full) {
            out.push_back(link(here, up - 1));
        } else if (axis.kind == Kind::switched) {
            out.push_back(link(here, 0));
            out.push_back(link(there, 1));
        } else {
            const bool upwards = 2 * up <= axis.count;
            for (std::uint32_t step = 0, x = here; step < (upwards ? up : axis.count - up); ++step) {
                out.push_back(link(x, upwards ? 0 : 1));
                x = (x + (upwards ? 1 : axis.count - 1)) % axis.count;
            }
        }
        return base + there * axis.stride;
    }

    std::vector<Axis> axes_;
};

std::uint32_t check(const Grid& grid) {
    if (grid.axes.empty()) {
        refuse_build("axes 0: a grid needs at least one");
    }
    if (grid.inner_dimensions > grid.axes.size()) {
        refuse_build("inner_dimensions {}: the grid has {}", grid.inner_dimensions, grid.axes.size());
    }
    std::uint64_t gpus = 1;
    for (std::size_t i = 0; i < grid.axes.size(); ++i) {
        const GridAxis& axis = grid.axes[i];
        if (axis.count < 2) {
            refuse_build("axis {} count {}: 2 or more", i, axis.count);
        }
        check_positive("bytes_per_s", axis.bytes_per_s, "for every axis");
        check_not_negative("latency_s", axis.latency_s);
        gpus *= axis.count;
        if (gpus > kMaxGpus) {
            refuse_build("more than {} GPUs up to axis {}", kMaxGpus, i);
        }
        if (i + 1 == grid.inner_dimensions && gpus > kMostGpusOfAServer) {
            refuse_build("inner_dimensions {}: {} GPUs a server, at most {}", grid.inner_dimensions, gpus,
                         kMostGpusOfAServer);
        }
        if (i < grid.inner_dimensions && grid.inner_dimensions > 1 && axis.kind == Kind::switched) {
            refuse_build("axis {}: a switched axis inside a server stands alone; set inner_dimensions to 1 or 0", i);
        }
    }
    return static_cast<std::uint32_t>(gpus);
}

/// Calls visit(peer) for the links of a ring or full axis that leave a GPU, in layout order.
template <typename Visit>
void for_each_neighbour(Kind kind, std::uint32_t count, std::uint32_t stride, std::uint32_t gpu, Visit visit) {
    const std::uint32_t here = gpu / stride % count;
    for (std::uint32_t k = 0; k < links_per_gpu(kind, count); ++k) {
        const std::uint32_t up = kind == Kind::full ? k + 1 : k == 0 ? 1 : count - 1;
        visit(gpu + (here + up) % count * stride - here * stride);
    }
}

void add_inner(ClusterBuilder& builder, const Grid& grid, std::uint32_t node, const std::vector<VertexId>& gpus) {
    std::uint32_t stride = 1;
    for (std::uint32_t d = 0; d < grid.inner_dimensions; ++d) {
        const GridAxis& axis = grid.axes[d];
        const LinkSpec spec = {.bytes_per_s = axis.bytes_per_s, .latency_s = axis.latency_s};
        if (axis.kind == Kind::switched) {
            const VertexId nvswitch = builder.add_in_node(VertexKind::nvswitch, NodeId{node});
            for (const VertexId gpu : gpus) {
                builder.add_cable(gpu, nvswitch, spec);
            }
        } else {
            for (std::uint32_t g = 0; g < gpus.size(); ++g) {
                for_each_neighbour(axis.kind, axis.count, stride, g,
                                   [&](std::uint32_t peer) { builder.add_link(gpus[g], gpus[peer], spec); });
            }
        }
        stride *= axis.count;
    }
}

}  // namespace

Cluster build_grid(const Grid& grid) {
    const std::uint32_t gpus = check(grid);
    std::uint32_t gpus_per_node = 1;
    double port_rate = 0;
    for (std::uint32_t d = 0; d < grid.axes.size(); ++d) {
        const GridAxis& axis = grid.axes[d];
        if (d < grid.inner_dimensions) {
            gpus_per_node *= axis.count;
        } else {
            const std::uint32_t links = axis.kind == Kind::switched ? 1 : links_per_gpu(axis.kind, axis.count);
            port_rate += axis.bytes_per_s * links;
        }
    }
    ClusterBuilder builder;
    builder.set_rails_apart();
    std::vector<VertexId> ports;
    for (std::uint32_t node = 0; node < gpus / gpus_per_node; ++node) {
        std::vector<VertexId> of_node;
        for (std::uint32_t g = 0; g < gpus_per_node; ++g) {
            of_node.push_back(builder.add_gpu(NodeId{node}));
        }
        add_inner(builder, grid, node, of_node);
        for (std::uint32_t g = 0; port_rate > 0 && g < gpus_per_node; ++g) {
            const VertexId pcie = builder.add_in_node(VertexKind::pcie_switch, NodeId{node});
            const VertexId nic = builder.add_nic(NodeId{node});
            ports.push_back(
                builder.add_switch(VertexKind::leaf, fmt::format("port of gpu {}", node * gpus_per_node + g)));
            builder.add_cable(of_node[g], pcie, {.bytes_per_s = port_rate});
            builder.attach(pcie, nic);
            builder.add_cable(nic, ports.back(), {.bytes_per_s = port_rate});
        }
    }
    std::vector<Axis> axes;
    std::uint32_t stride = gpus_per_node;
    for (std::size_t d = grid.inner_dimensions; d < grid.axes.size(); ++d) {
        const GridAxis& axis = grid.axes[d];
        LinkSpec spec = {.bytes_per_s = axis.bytes_per_s, .latency_s = axis.latency_s};
        LinkId first{0};
        std::vector<VertexId> switches;  // of groups, by first GPU
        for (std::uint32_t g = 0; g < gpus; ++g) {
            const std::uint32_t group = g / stride / axis.count * stride + g % stride;
            LinkId link{0};
            if (axis.kind == Kind::switched) {
                if (g / stride % axis.count == 0) {
                    switches.push_back(
                        builder.add_switch(VertexKind::spine, fmt::format("dimension {} switch {}", d, group)));
                }
                link = builder.add_cable(ports[g], switches[group], spec);
            } else {
                bool is_first = true;
                for_each_neighbour(axis.kind, axis.count, stride, g, [&](std::uint32_t peer) {
                    spec.name = fmt::format("dimension {} gpu {} to {}", d, g, peer);
                    const LinkId added = builder.add_link(ports[g], ports[peer], spec);
                    link = is_first ? added : link;
                    is_first = false;
                });
            }
            first = g == 0 ? link : first;
        }
        axes.push_back({axis.kind, axis.count, stride, static_cast<std::uint32_t>(first)});
        stride *= axis.count;
    }
    return axes.empty() ? std::move(builder).freeze()
                        : std::move(builder).freeze(std::make_unique<GridRouter>(std::move(axes)));
}

}  // namespace fabricast
