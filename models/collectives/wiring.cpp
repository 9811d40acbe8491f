#include "models/collectives/wiring.hpp"

#include <algorithm>
#include <cassert>
#include <limits>
#include <map>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

namespace fabricast {

/// Units summed per link. The sums lie in one array over all links, kept between uses and zero in between; who is in it is
/// listed beside.
class LinkTotals {
public:
    explicit LinkTotals(const Links& links) : sums_(sums()) {
        if (sums_.size() < links.size()) {
            sums_.resize(links.size(), 0);
        }
    }
    ~LinkTotals() { clear(); }
    LinkTotals(const LinkTotals&) = delete;
    LinkTotals& operator=(const LinkTotals&) = delete;

    void add(const std::vector<LinkLoad>& loads, std::uint64_t times) {
        for (const LinkLoad& load : loads) {
            std::uint64_t& sum = sums_[index(load.link)];
            if (sum == 0) {
                touched_.push_back(load.link);
            }
            sum += load.units * times;
        }
    }
    void clear() {
        for (const LinkId link : touched_) {
            sums_[index(link)] = 0;
        }
        touched_.clear();
    }
    std::uint64_t at(LinkId link) const { return sums_[index(link)]; }
    std::size_t size() const { return touched_.size(); }
    /// In the order of links.
    template <typename Visit>
    void for_each(Visit visit) {
        if (touched_.empty()) {
            return;
        }
        const auto [first, last] = std::minmax_element(touched_.begin(), touched_.end());
        if (index(*last) - index(*first) < kDense * touched_.size()) {  // most of a range: no need to sort
            for (auto link = static_cast<std::uint32_t>(*first), end = static_cast<std::uint32_t>(*last); link <= end;
                 ++link) {
                if (sums_[link] > 0) {
                    visit(LinkId{link}, sums_[link]);
                }
            }
            return;
        }
        std::sort(touched_.begin(), touched_.end());
        for (const LinkId link : touched_) {
            visit(link, at(link));
        }
    }

private:
    static constexpr std::size_t kDense = 16;  ///< entries passed a link at most

    static std::vector<std::uint64_t>& sums() {
        thread_local std::vector<std::uint64_t> sums;
        return sums;
    }
    std::vector<std::uint64_t>& sums_;
    std::vector<LinkId> touched_;
};

namespace {

/// Looks alike from inside: positions in the node, NICs, path types and lanes between its members.
std::vector<std::uint32_t> looks_of(const Cluster& cluster, std::span<const GpuId> gpus) {
    std::vector<std::uint32_t> looks;
    std::vector<LinkId> route;
    for (const GpuId a : gpus) {
        looks.push_back(cluster.local_index(a));
        looks.push_back(cluster.nics_per_node() > 0 ? cluster.local_index(cluster.nic_of(a)) : 0);
        if (cluster.has_nvswitch()) {
            continue;
        }
        for (const GpuId b : gpus) {
            const PathType type = cluster.path_type(a, b);
            looks.push_back(static_cast<std::uint32_t>(type));
            if (type == PathType::nvl) {
                route.clear();
                cluster.route(a, b, route);
                looks.push_back(cluster.links().parallel[index(route.front())]);
            }
        }
    }
    return looks;
}

/// The NICs of GPUs 0, 1, 2 ... of some node do not come in turn.
bool shares_nics_oddly(const Cluster& cluster, const GroupOrder& order) {
    if (cluster.nics_per_node() == 0) {
        return false;
    }
    for (std::uint32_t i = 0; i < order.nodes(); ++i) {
        const auto gpus = order.node(i);
        for (std::size_t j = 1; j < gpus.size(); ++j) {
            if (cluster.nic_of(gpus[j]) == cluster.nic_of(gpus[j - 1])) {
                return cluster.nics_per_node() > 1;
            }
        }
    }
    return false;
}

void find_rings(const Cluster& cluster, GroupOrder& order) {
    std::map<std::vector<std::uint32_t>, std::uint32_t> known;
    for (std::uint32_t i = 0; i < order.nodes(); ++i) {
        const auto [at, is_new] =
            known.try_emplace(looks_of(cluster, order.node(i)), static_cast<std::uint32_t>(order.rings.size()));
        if (is_new) {
            order.rings.push_back(cluster.has_nvswitch() ? switched_rings(cluster, order.node(i))
                                                         : node_rings(cluster, order.node(i)));
        }
        order.rings_of.push_back(at->second);
    }
}

}  // namespace

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
    std::uint64_t x = hash * 0x9e3779b97f4a7c15u + value + 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;  // splitmix64 finaliser
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

std::uint32_t tree_parent(std::uint32_t v, std::uint32_t nodes) {
    if (v == 0) {
        return 0;
    }
    const std::uint32_t bit = v & (~v + 1);
    const std::uint32_t up = (v ^ bit) | (bit << 1);
    return up < nodes ? up : v ^ bit;
}

GroupOrder order_by_node(const Cluster& cluster, std::span<const GpuId> members) {
    if (members.empty()) {
        throw std::invalid_argument("a communicator needs at least one member");
    }
    struct Place {
        std::uint32_t node, gpu, rank;
    };
    std::vector<Place> places;
    places.reserve(members.size());
    for (const GpuId gpu : members) {
        if (index(gpu) >= cluster.gpu_count()) {
            throw std::invalid_argument(
                fmt::format("GPU {} is no member of a cluster of {} GPUs", index(gpu), cluster.gpu_count()));
        }
        places.push_back(
            {locality_of(cluster, gpu), static_cast<std::uint32_t>(gpu), static_cast<std::uint32_t>(places.size())});
    }
    std::sort(places.begin(), places.end(), [](const Place& a, const Place& b) { return a.gpu < b.gpu; });
    struct Run {
        std::uint32_t first_rank, begin, end;
    };
    std::vector<Run> runs;
    for (std::uint32_t i = 0; i < places.size(); ++i) {
        if (i > 0 && places[i].gpu == places[i - 1].gpu) {
            throw std::invalid_argument(fmt::format("GPU {} is twice in one communicator", places[i].gpu));
        }
        if (i == 0 || places[i].node != places[i - 1].node) {
            runs.push_back({places[i].rank, i, i});
        }
        runs.back().first_rank = std::min(runs.back().first_rank, places[i].rank);
        runs.back().end = i + 1;
    }
    std::sort(runs.begin(), runs.end(), [](const Run& a, const Run& b) { return a.first_rank < b.first_rank; });
    GroupOrder order;
    order.gpus.reserve(places.size());
    for (const Run& run : runs) {
        order.begin.push_back(order.ranks());
        for (std::uint32_t i = run.begin; i < run.end; ++i) {
            order.gpus.push_back(GpuId{places[i].gpu});
        }
    }
    order.begin.push_back(order.ranks());
    if (!cluster.has_nvswitch() || shares_nics_oddly(cluster, order)) {
        find_rings(cluster, order);
    }
    return order;
}

GpuId GroupOrder::passed(std::uint32_t i, std::uint32_t pattern, std::uint32_t j) const {
    const auto local = node(i);
    const auto g = static_cast<std::uint32_t>(local.size());
    if (rings_of.empty()) {
        return local[(pattern + j) % g];
    }
    const NodeRings& of_node = rings[rings_of[i]];
    const NodeRings::Pattern& start = of_node.patterns[pattern % of_node.patterns.size()];
    const std::vector<std::uint32_t>& cycle = of_node.cycles[start.cycle];
    const auto entry = std::find(cycle.begin(), cycle.end(), start.entry) - cycle.begin();
    return local[cycle[(static_cast<std::uint32_t>(entry) + j) % g]];
}

std::uint32_t GroupOrder::patterns() const {
    std::uint32_t patterns = 1;
    for (std::uint32_t i = 0; i < nodes(); ++i) {
        const std::uint32_t g = begin[i + 1] - begin[i];
        patterns =
            std::max(patterns, rings_of.empty() ? g : static_cast<std::uint32_t>(rings[rings_of[i]].patterns.size()));
    }
    return patterns;
}

std::uint32_t ChannelWiring::units_per_channel() const {
    switch (wiring_) {
        case Wiring::ring: return 1;
        case Wiring::tree: return 2;  // two trees, half a channel each
        case Wiring::pat: return order_->ranks() - 1;
        case Wiring::collnet_direct:
        case Wiring::collnet_chain: return 2;
        default: return 2 * nvls_percent_;
    }
}

void ChannelWiring::append_loads(std::uint32_t pattern, std::vector<LinkLoad>& out) const {
    switch (wiring_) {
        case Wiring::ring: append_ring(pattern, out); break;
        case Wiring::tree:
            append_chains(pattern, out);
            append_double_tree(pattern, 1, out);
            break;
        case Wiring::nvls_tree:
            append_nvls(pattern, out);
            append_double_tree(pattern, nvls_percent_, out);
            break;
        case Wiring::pat: append_pat(out); break;
        case Wiring::nvls_collnet:
            append_nvls(pattern, out);
            append_collnet(pattern, 2 * nvls_percent_, out);
            break;
        case Wiring::collnet_direct:
            for (std::uint32_t i = 0; i < order_->nodes(); ++i) {
                const auto gpus = order_->node(i);
                const GpuId head = order_->passed(i, pattern, 0);
                for (const GpuId gpu : gpus) {
                    hop(gpu, head, 2, out);
                    hop(head, gpu, 2, out);
                }
            }
            append_collnet(pattern, 2, out);
            break;
        case Wiring::collnet_chain:
            append_chains(pattern, out);
            append_collnet(pattern, 2, out);
            break;
        default: append_nvls(pattern, out); break;
    }
}

void ChannelWiring::hop(GpuId from, GpuId to, std::uint32_t units, std::vector<LinkLoad>& out) const {
    route_.clear();
    cluster_->route(from, to, route_);
    for (const LinkId link : route_) {
        out.push_back({link, units});
    }
}

std::vector<GpuId> ring_order(const GroupOrder& order, std::uint32_t pattern) {
    std::vector<GpuId> out;
    out.reserve(order.ranks());
    for (std::uint32_t i = 0; i < order.nodes(); ++i) {
        const std::uint32_t g = order.begin[i + 1] - order.begin[i];
        for (std::uint32_t j = 0; j < g; ++j) {
            out.push_back(order.passed(i, pattern, i % 2 == 0 ? j : g - 1 - j));
        }
    }
    return out;
}

void ChannelWiring::append_ring(std::uint32_t pattern, std::vector<LinkLoad>& out) const {
    const std::vector<GpuId> ring = ring_order(*order_, pattern);
    for (std::size_t i = 0; i < ring.size(); ++i) {
        hop(ring[i], ring[(i + 1) % ring.size()], 1, out);
    }
}

void ChannelWiring::append_chains(std::uint32_t pattern, std::vector<LinkLoad>& out) const {
    for (std::uint32_t i = 0; i < order_->nodes(); ++i) {
        const std::uint32_t g = order_->begin[i + 1] - order_->begin[i];
        for (std::uint32_t j = 1; j < g; ++j) {
            const GpuId near = order_->passed(i, pattern, j - 1);
            const GpuId far = order_->passed(i, pattern, j);
            hop(far, near, 2, out);  // reduce
            hop(near, far, 2, out);  // broadcast
        }
    }
}

void ChannelWiring::append_double_tree(std::uint32_t pattern, std::uint32_t half, std::vector<LinkLoad>& out) const {
    const std::uint32_t nodes = order_->nodes();
    const auto gpu_of = [&](std::uint32_t node) { return order_->passed(node, pattern, 0); };
    const auto second = [&](std::uint32_t v) { return nodes % 2 == 0 ? nodes - 1 - v : (v + 1) % nodes; };
    for (std::uint32_t v = 1; v < nodes; ++v) {
        const std::uint32_t parent = tree_parent(v, nodes);
        hop(gpu_of(v), gpu_of(parent), half, out);
        hop(gpu_of(parent), gpu_of(v), half, out);
        hop(gpu_of(second(v)), gpu_of(second(parent)), half, out);
        hop(gpu_of(second(parent)), gpu_of(second(v)), half, out);
    }
}

void ChannelWiring::append_nvls(std::uint32_t pattern, std::vector<LinkLoad>& out) const {
    constexpr std::uint32_t kWhole = 200;  // against 2 * percent units a channel
    const bool reduce = wiring_ != Wiring::nvls_gather;
    const bool multicast = wiring_ != Wiring::nvls_scatter;
    for (std::uint32_t i = 0; i < order_->nodes(); ++i) {
        const auto gpus = order_->node(i);
        const GpuId head = order_->passed(i, pattern, 0);
        for (const GpuId gpu : gpus) {
            if (reduce) {
                out.push_back({cluster_->nvlink_up(gpu), kWhole});
            }
            if (multicast) {
                out.push_back({cluster_->nvlink_down(gpu), kWhole});
            }
        }
        if (reduce) {
            out.push_back({cluster_->nvlink_down(head), kWhole});
        }
        if (multicast) {
            out.push_back({cluster_->nvlink_up(head), kWhole});
        }
    }
}

// Links of all routes between the heads and the first of them, each once: the switches add up what goes up.
void ChannelWiring::append_collnet(std::uint32_t pattern, std::uint32_t units, std::vector<LinkLoad>& out) const {
    const auto head = [&](std::uint32_t node) { return order_->passed(node, pattern, 0); };
    std::vector<LinkId> links;
    for (std::uint32_t i = 1; i < order_->nodes(); ++i) {
        cluster_->route(head(i), head(0), links);
        cluster_->route(head(0), head(i), links);
    }
    std::sort(links.begin(), links.end());
    links.erase(std::unique(links.begin(), links.end()), links.end());
    for (const LinkId link : links) {
        out.push_back({link, units});
    }
}

void ChannelWiring::append_pat(std::vector<LinkLoad>& out) const {
    const std::uint32_t n = order_->ranks();
    for (std::uint32_t distance = 1; distance < n; distance *= 2) {
        const std::uint32_t chunks = (n - 1) / distance - (n - 1) / (2 * distance);  // lowest set bit = distance
        for (std::uint32_t v = 0; v < n; ++v) {
            hop(order_->gpus[v], order_->gpus[(v + distance) % n], chunks, out);
        }
    }
}

std::vector<LinkUse> ChannelWiring::uses(LinkTotals& total, std::uint32_t channels) const {
    const std::uint64_t whole = std::uint64_t{units_per_channel()} * channels;
    std::vector<LinkUse> uses;
    uses.reserve(total.size());
    total.for_each([&](LinkId link, std::uint64_t units) {
        // Rounded up: a link never carries fewer bytes than cross it.
        uses.push_back({link, static_cast<std::uint32_t>((units * kCoefficientOne + whole - 1) / whole)});
    });
    return uses;
}

ChannelClasses ChannelWiring::classify(std::uint32_t channels, std::uint64_t& hash,
                                       std::vector<std::vector<LinkUse>>* demands) const {
    assert(channels > 0 && "a collective has a channel");
    const Links& links = cluster_->links();
    const std::uint32_t patterns = wiring_ == Wiring::pat ? 1 : order_->patterns();
    ChannelClasses classes;
    classes.channels = channels;
    classes.class_of.assign(std::min(patterns, channels), 0);

    std::vector<std::vector<LinkLoad>> loads(classes.patterns());
    LinkTotals total(links);
    for (std::uint32_t p = 0; p < classes.patterns(); ++p) {
        loads[p].reserve(loads.front().size());
        append_loads(p, loads[p]);
        total.add(loads[p], classes.channels_of_pattern(p));
    }
    std::vector<double> rates;  // bottleneck of each class, per unit
    for (std::uint32_t p = 0; p < classes.patterns(); ++p) {
        double rate = std::numeric_limits<double>::max();
        double above = rate;  // what is beyond this is no bottleneck, however it rounds
        for (const LinkLoad& load : loads[p]) {
            const auto capacity = static_cast<std::uint64_t>(links.capacity[index(load.link)]);
            const std::uint64_t units = total.at(load.link);
            if (static_cast<double>(capacity) < above * static_cast<double>(units)) {
                rate =
                    std::min(rate, static_cast<double>(links.capacity[index(load.link)]) / static_cast<double>(units));
                above = rate * (1 + 1e-9);
            }
            hash = (hash ^ (capacity * 0x9e3779b97f4a7c15u + units)) * 0xbf58476d1ce4e5b9u;
        }
        hash = mix(hash, loads[p].size());
        const auto known = std::find(rates.begin(), rates.end(), rate);
        classes.class_of[p] = static_cast<std::uint32_t>(known - rates.begin());
        if (known == rates.end()) {
            rates.push_back(rate);
            classes.size.push_back(0);
        }
        classes.size[classes.class_of[p]] += classes.channels_of_pattern(p);
    }
    if (demands == nullptr) {
        return classes;
    }
    if (classes.size.size() == 1) {
        *demands = {uses(total, classes.size.front())};
        return classes;
    }
    total.clear();
    demands->clear();
    for (std::uint32_t c = 0; c < classes.size.size(); ++c) {
        for (std::uint32_t p = 0; p < classes.patterns(); ++p) {
            if (classes.class_of[p] == c) {
                total.add(loads[p], classes.channels_of_pattern(p));
            }
        }
        demands->push_back(uses(total, classes.size[c]));
        total.clear();
    }
    return classes;
}

std::vector<LinkUse> ChannelWiring::demand(const ChannelClasses& classes, std::uint32_t which) const {
    assert(which < classes.size.size() && "a class of this collective");
    std::vector<LinkLoad> loads;
    LinkTotals total(cluster_->links());
    for (std::uint32_t p = 0; p < classes.patterns(); ++p) {
        if (classes.class_of[p] == which) {
            loads.clear();
            append_loads(p, loads);
            total.add(loads, classes.channels_of_pattern(p));
        }
    }
    return uses(total, classes.size[which]);
}

}  // namespace fabricast
