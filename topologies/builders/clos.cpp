#include "topologies/builders/clos.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "topologies/builders/checks.hpp"
#include "topologies/graph/router.hpp"

namespace fabricast {
namespace {

using VertexId = ClusterBuilder::VertexId;

/// Positions and counts of a Clos; leaves are numbered [group][rail][plane].
struct Places {
    explicit Places(const Clos& clos)
        : nics(clos.nics_per_node),
          planes(clos.planes),
          ports(clos.nics_per_node / clos.planes),
          rails(clos.rails ? ports : 1),
          nodes_per_group(std::max(1u, std::min(clos.nodes_per_group, clos.nodes))),
          groups((clos.nodes + nodes_per_group - 1) / nodes_per_group),
          groups_per_block(clos.levels == 3 ? std::max(1u, std::min(clos.groups_per_block, groups)) : groups),
          blocks((groups + groups_per_block - 1) / groups_per_block) {}

    std::uint32_t nics, planes, ports, rails, nodes_per_group, groups, groups_per_block, blocks;

    std::uint32_t leaves() const { return groups * rails * planes; }
    std::uint32_t rail(std::uint32_t nic) const { return rails == 1 ? 0 : nic / planes; }
    std::uint32_t leaf(std::uint32_t node, std::uint32_t nic) const {
        return (node / nodes_per_group * rails + rail(nic)) * planes + nic % planes;
    }
    std::uint32_t group_of_leaf(std::uint32_t leaf) const { return leaf / (rails * planes); }
    std::uint32_t block_of_leaf(std::uint32_t leaf) const { return group_of_leaf(leaf) / groups_per_block; }
    /// Among the NICs of its leaf.
    std::uint32_t number_on_leaf(std::uint32_t node, std::uint32_t nic) const {
        return node % nodes_per_group * (ports / rails) + (rails == 1 ? nic / planes : 0);
    }
    /// A leaf's number among those of its plane and block.
    std::uint32_t leaf_in_block(std::uint32_t leaf) const {
        return (leaf - block_of_leaf(leaf) * groups_per_block * rails * planes) / planes;
    }
};

/// Links above leaves are laid out [leaf][spine][up, down], above blocks [block][plane][spine][core][up, down].
class ClosRouter final : public Router {
public:
    ClosRouter(const Places& places, RoutingPolicy routing, std::uint32_t spines, std::uint32_t cores,
               std::uint32_t first_leaf_link, std::uint32_t first_block_link)
        : places_(places),
          routing_(routing),
          spines_(spines),
          cores_(cores),
          first_leaf_link_(first_leaf_link),
          first_block_link_(first_block_link) {}

    bool append_fabric_links(NicId from, NicId to, std::uint64_t flow, std::vector<LinkId>& out) const override {
        const auto a = static_cast<std::uint32_t>(from), b = static_cast<std::uint32_t>(to);
        if (a % places_.nics % places_.planes != b % places_.nics % places_.planes) {
            return false;
        }
        const std::uint32_t source = places_.leaf(a / places_.nics, a % places_.nics);
        const std::uint32_t destination = places_.leaf(b / places_.nics, b % places_.nics);
        if (source == destination) {
            return true;
        }
        const std::uint32_t source_block = places_.block_of_leaf(source);
        const std::uint32_t destination_block = places_.block_of_leaf(destination);
        std::uint32_t spine = 0, core = 0;
        if (routing_.spreading == Spreading::ecmp) {
            spine = ecmp_choice(routing_.seed, a, b, flow, 0, spines_);
            core = ecmp_choice(routing_.seed, a, b, flow, 1, cores_);
        } else if (routing_.spreading == Spreading::static_table) {
            const std::uint32_t number = places_.number_on_leaf(b / places_.nics, b % places_.nics);
            spine = number % spines_;
            core = (number / spines_ + places_.leaf_in_block(destination)) % cores_;
        }
        out.push_back(LinkId{first_leaf_link_ + 2 * (source * spines_ + spine)});
        if (source_block != destination_block) {
            const std::uint32_t plane = source % places_.planes;
            out.push_back(LinkId{block_link(source_block, plane, spine, core)});
            out.push_back(LinkId{block_link(destination_block, plane, spine, core) + 1});
        }
        out.push_back(LinkId{first_leaf_link_ + 2 * (destination * spines_ + spine) + 1});
        return true;
    }

    bool append_levels(NicId nic, std::vector<LinkId>& out) const override {
        if (places_.planes > 1 || routing_.separate_links()) {
            return false;
        }
        const auto n = static_cast<std::uint32_t>(nic);
        const std::uint32_t leaf = places_.leaf(n / places_.nics, n % places_.nics);
        out.push_back(LinkId{first_leaf_link_ + 2 * leaf});
        out.push_back(LinkId{first_leaf_link_ + 2 * leaf + 1});
        if (places_.blocks > 1) {
            const std::uint32_t block = block_link(places_.block_of_leaf(leaf), 0, 0, 0);
            out.push_back(LinkId{block});
            out.push_back(LinkId{block + 1});
        }
        return true;
    }

private:
    std::uint32_t block_link(std::uint32_t block, std::uint32_t plane, std::uint32_t spine, std::uint32_t core) const {
        return first_block_link_ + 2 * (((block * places_.planes + plane) * spines_ + spine) * cores_ + core);
    }

    Places places_;
    RoutingPolicy routing_;
    std::uint32_t spines_, cores_, first_leaf_link_, first_block_link_;
};

/// Writes the levels above the NICs, bottom up.
class Levels {
public:
    Levels(ClusterBuilder& builder, const Clos& clos) : builder_(builder), clos_(clos), places_(clos) {
        double sum = 0;
        for (const double rate : clos.nic_bytes_per_s) {
            sum += rate;
        }
        const bool equal = std::all_of(clos.nic_bytes_per_s.begin(), clos.nic_bytes_per_s.end(),
                                       [&](double rate) { return rate == clos.nic_bytes_per_s.front(); });
        nic_rate_ = equal ? clos.nic_bytes_per_s.front() : sum / static_cast<double>(clos.nic_bytes_per_s.size());
        if (clos.routing.separate_links()) {
            spines_ = clos.spines > 0 ? clos.spines : whole(cables_of_group(0));
            cores_ = clos.cores > 0 ? clos.cores : whole(cables_of_block(0) / spines_);
        }
        share_ = clos.routing.spreading == Spreading::adaptive ? clos.routing.adaptive_efficiency : 1;
    }

    void add_leaves() {
        for (std::uint32_t leaf = 0; leaf < places_.leaves(); ++leaf) {
            leaves_.push_back(builder_.add_switch(VertexKind::leaf, leaf_name(leaf) + " leaf"));
        }
        for (std::uint32_t n = 0; n < clos_.nodes; ++n) {
            for (std::uint32_t nic = 0; nic < places_.nics; ++nic) {
                const auto leaf = leaves_[places_.leaf(n, nic)];
                const double rate = clos_.nic_bytes_per_s[nic];
                builder_.add_nic_cable(
                    NicId{n * places_.nics + nic}, leaf, {.bytes_per_s = rate, .latency_s = clos_.nic_latency_s},
                    {.bytes_per_s = rate, .latency_s = clos_.switch_latency_s + clos_.nic_latency_s});
            }
        }
    }

    /// Spines of every block and plane, and the links from leaves to them; returns the first link.
    std::uint32_t add_spines() {
        for (std::uint32_t i = 0; i < places_.blocks * places_.planes; ++i) {
            for (std::uint32_t s = 0; s < spines_; ++s) {
                spine_vertices_.push_back(builder_.add_switch(VertexKind::spine, spine_name(i, s)));
            }
        }
        std::uint32_t first = 0;
        for (std::uint32_t leaf = 0; leaf < places_.leaves(); ++leaf) {
            const double cables = cables_of_group(places_.group_of_leaf(leaf));
            const std::uint32_t at = (places_.block_of_leaf(leaf) * places_.planes + leaf % places_.planes) * spines_;
            for (std::uint32_t s = 0; s < spines_; ++s) {
                const LinkId up = add_trunk(leaves_[leaf], spine_vertices_[at + s], cables / spines_, leaf_name(leaf),
                                            clos_.routing.separate_links() ? fmt::format("spine {}", s) : "trunk");
                first = leaf == 0 && s == 0 ? static_cast<std::uint32_t>(up) : first;
            }
        }
        return first;
    }

    /// Cores of every plane, and the links from spines to them; returns the first link.
    std::uint32_t add_cores() {
        std::vector<VertexId> cores;  // [plane][spine][core]
        for (std::uint32_t i = 0; i < places_.planes * spines_ * cores_; ++i) {
            cores.push_back(builder_.add_switch(VertexKind::spine, fmt::format("core {}", i)));
        }
        std::uint32_t first = 0;
        for (std::uint32_t i = 0; i < places_.blocks * places_.planes; ++i) {
            const double cables = cables_of_block(i / places_.planes) / (spines_ * cores_);
            for (std::uint32_t k = 0; k < spines_ * cores_; ++k) {
                const auto spine = spine_vertices_[i * spines_ + k / cores_];
                const auto core = cores[i % places_.planes * spines_ * cores_ + k];
                const LinkId up = add_trunk(
                    spine, core, cables, block_name(i),
                    clos_.routing.separate_links() ? fmt::format("spine {} core {}", k / cores_, k % cores_) : "trunk");
                first = i == 0 && k == 0 ? static_cast<std::uint32_t>(up) : first;
            }
        }
        return first;
    }

    std::unique_ptr<Router> router(std::uint32_t first_leaf_link, std::uint32_t first_block_link) const {
        return std::make_unique<ClosRouter>(places_, clos_.routing, spines_, cores_, first_leaf_link, first_block_link);
    }

private:
    static std::uint32_t whole(double cables) {
        return static_cast<std::uint32_t>(std::ceil(std::clamp(cables, 1.0, 4e9)));
    }
    /// At NIC rate, above one leaf; the last group may be smaller.
    double cables_of_group(std::uint32_t group) const {
        const std::uint32_t nodes = std::min(places_.nodes_per_group, clos_.nodes - group * places_.nodes_per_group);
        return nodes * (places_.ports / places_.rails) / clos_.leaf_oversubscription;
    }
    /// Above one block, in one plane.
    double cables_of_block(std::uint32_t block) const {
        double sum = 0;
        const std::uint32_t end = std::min(places_.groups, (block + 1) * places_.groups_per_block);
        for (std::uint32_t group = block * places_.groups_per_block; group < end; ++group) {
            sum += cables_of_group(group) * places_.rails;
        }
        return sum / clos_.block_oversubscription;
    }
    LinkId add_trunk(VertexId below, VertexId above, double cables, const std::string& place, const std::string& what) {
        LinkSpec trunk = {.bytes_per_s = cables * nic_rate_ * share_,
                          .latency_s = clos_.switch_latency_s,
                          .parallel = whole(cables),
                          .name = place + " " + what + " up"};
        const LinkId up = builder_.add_link(below, above, trunk);
        trunk.name = place + " " + what + " down";
        builder_.add_link(above, below, trunk);
        return up;
    }
    std::string plane_name(std::uint32_t number) const {
        return places_.planes > 1 ? fmt::format(" plane {}", number % places_.planes) : "";
    }
    std::string leaf_name(std::uint32_t leaf) const {
        const std::uint32_t group = places_.group_of_leaf(leaf);
        return (clos_.rails ? fmt::format("pod {} rail {}", group, leaf / places_.planes % places_.rails)
                            : fmt::format("leaf {}", group)) +
               plane_name(leaf);
    }
    std::string block_name(std::uint32_t i) const {
        return fmt::format("block {}", i / places_.planes) + plane_name(i);
    }
    std::string spine_name(std::uint32_t i, std::uint32_t s) const {
        const std::string place = clos_.levels == 3 ? block_name(i) + " " : "";
        return clos_.routing.separate_links() ? fmt::format("{}spine {}{}", place, s, plane_name(i))
                                              : place + "spine level" + plane_name(i);
    }

    ClusterBuilder& builder_;
    const Clos& clos_;
    Places places_;
    double nic_rate_ = 0, share_ = 1;
    std::uint32_t spines_ = 1, cores_ = 1;
    std::vector<VertexId> leaves_, spine_vertices_;
};

}  // namespace

void check_clos(const Clos& clos) {
    if (clos.nodes == 0) {
        refuse_build("nodes 0: needs at least one");
    }
    check_not_negative("switch_latency_s", clos.switch_latency_s);
    if (clos.nics_per_node == 0) {
        return;
    }
    check_positive("oversubscription", clos.leaf_oversubscription, "(leaf down / leaf up capacity)");
    if (clos.nodes_per_group == 0) {
        refuse_build("{} 0: a leaf switch needs at least one port that looks down",
                     clos.rails ? "nodes_per_pod" : "nodes_per_leaf");
    }
    if (clos.planes == 0 || clos.nics_per_node % clos.planes != 0) {
        refuse_build("planes {}: the {} NICs of a node must be a multiple of it", clos.planes, clos.nics_per_node);
    }
    if (clos.levels < 1 || clos.levels > 3) {
        refuse_build("levels {}: 1 to 3", clos.levels);
    }
    if (clos.levels == 1 && (clos.nodes > clos.nodes_per_group || (clos.rails && clos.nics_per_node > clos.planes))) {
        refuse_build("levels 1: {} nodes need more than one leaf a plane", clos.nodes);
    }
    if (clos.levels == 3) {
        check_positive("block oversubscription", clos.block_oversubscription, "(down / up capacity)");
        if (clos.groups_per_block == 0) {
            refuse_build("{} 0: at least one", clos.rails ? "pods_per_block" : "leaves_per_block");
        }
    }
    if (clos.routing.spreading == Spreading::adaptive &&
        !(clos.routing.adaptive_efficiency > 0 && clos.routing.adaptive_efficiency <= 1)) {
        refuse_build("adaptive_efficiency {}: must be above 0 and at most 1", clos.routing.adaptive_efficiency);
    }
    if (clos.spines > 65536 || clos.cores > 65536) {
        refuse_build("spines {}, cores {}: at most 65536", clos.spines, clos.cores);
    }
}

Cluster freeze_under_clos(ClusterBuilder&& builder, const Clos& clos) {
    builder.set_routing(clos.routing);
    if (clos.nics_per_node == 0) {
        return std::move(builder).freeze();
    }
    Levels levels(builder, clos);
    levels.add_leaves();
    if (clos.levels == 1) {
        return std::move(builder).freeze();
    }
    const std::uint32_t first_leaf_link = levels.add_spines();
    const std::uint32_t first_block_link = clos.levels == 3 ? levels.add_cores() : 0;
    return std::move(builder).freeze(levels.router(first_leaf_link, first_block_link));
}

}  // namespace fabricast
