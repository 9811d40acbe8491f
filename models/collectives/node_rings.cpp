#include "models/collectives/node_rings.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

namespace fabricast {

namespace {

using Cycle = std::vector<std::uint32_t>;

constexpr std::size_t kMostCycles = 3000;         // listed before the packing
constexpr std::size_t kMostSteps = 200'000;       // of each of the two searches
constexpr std::uint32_t kMostGpusOfPacking = 32;  // larger boards are passed in one tour

/// Lanes of direct NVLink between GPUs, and the rate of the fastest.
struct Lanes {
    std::uint32_t gpus = 0;
    std::vector<std::uint32_t> count;  ///< [from * gpus + to]
    double bytes_per_s = 0;            ///< of one lane, most over all: slow ones are not seen by the search

    std::uint32_t at(std::uint32_t a, std::uint32_t b) const { return count[std::size_t{a} * gpus + b]; }
};

Lanes lanes_of(const Cluster& cluster, std::span<const GpuId> gpus) {
    Lanes lanes;
    lanes.gpus = static_cast<std::uint32_t>(gpus.size());
    lanes.count.assign(gpus.size() * gpus.size(), 0);
    std::vector<LinkId> route;
    for (std::uint32_t a = 0; a < lanes.gpus; ++a) {
        for (std::uint32_t b = 0; b < lanes.gpus; ++b) {
            if (a == b || cluster.path_type(gpus[a], gpus[b]) != PathType::nvl)
                continue;
            route.clear();
            cluster.route(gpus[a], gpus[b], route);
            const Links& links = cluster.links();
            const std::uint32_t parallel = links.parallel[index(route.front())];
            lanes.count[std::size_t{a} * lanes.gpus + b] = parallel;
            lanes.bytes_per_s =
                std::max(lanes.bytes_per_s, bytes_per_s(links.capacity[index(route.front())]) / parallel);
        }
    }
    return lanes;
}

/// All Hamiltonian cycles from GPU 0, each once (the second GPU is below the last), up to a budget.
class CycleList {
public:
    explicit CycleList(const Lanes& lanes) : lanes_(lanes), used_(lanes.gpus, false) {
        path_ = {0};
        used_[0] = true;
        extend();
    }
    std::vector<Cycle> take() { return std::move(found_); }

private:
    void extend() {
        if (found_.size() >= kMostCycles || ++steps_ > kMostSteps)
            return;
        const std::uint32_t last = path_.back();
        if (path_.size() == lanes_.gpus) {
            if (lanes_.at(last, 0) > 0 && lanes_.at(0, last) > 0 && path_[1] < last)
                found_.push_back(path_);
            return;
        }
        for (std::uint32_t next = 1; next < lanes_.gpus; ++next) {
            if (used_[next] || lanes_.at(last, next) == 0 || lanes_.at(next, last) == 0)
                continue;
            used_[next] = true;
            path_.push_back(next);
            extend();
            path_.pop_back();
            used_[next] = false;
        }
    }

    const Lanes& lanes_;
    std::vector<bool> used_;
    Cycle path_;
    std::vector<Cycle> found_;
    std::size_t steps_ = 0;
};

/// As many cycles as the lanes hold, a cycle as often as it fits.
class Packing {
public:
    Packing(const Lanes& lanes, const std::vector<Cycle>& cycles) : cycles_(cycles), left_(lanes) {
        limit_ = std::numeric_limits<std::size_t>::max();
        for (std::uint32_t a = 0; a < lanes.gpus; ++a) {
            std::size_t degree = 0;
            for (std::uint32_t b = 0; b < lanes.gpus; ++b)
                degree += lanes.at(a, b);
            limit_ = std::min(limit_, degree / 2);
        }
        place(0);
    }
    const std::vector<std::uint32_t>& best() const { return best_; }

private:
    std::uint32_t room(const Cycle& cycle) const {
        std::uint32_t room = std::numeric_limits<std::uint32_t>::max();
        for (std::size_t i = 0; i < cycle.size(); ++i)
            room = std::min(room, left_.at(cycle[i], cycle[(i + 1) % cycle.size()]));
        return room;
    }
    void take(const Cycle& cycle, std::uint32_t times, bool back) {
        for (std::size_t i = 0; i < cycle.size(); ++i) {
            const std::uint32_t a = cycle[i], b = cycle[(i + 1) % cycle.size()];
            for (const std::size_t edge : {std::size_t{a} * left_.gpus + b, std::size_t{b} * left_.gpus + a})
                left_.count[edge] = back ? left_.count[edge] + times : left_.count[edge] - times;
        }
    }
    void place(std::size_t from) {
        if (chosen_.size() > best_.size())
            best_ = chosen_;
        for (std::size_t i = from; i < cycles_.size() && best_.size() < limit_; ++i) {
            if (++steps_ > kMostSteps)
                return;
            if (room(cycles_[i]) == 0)
                continue;
            take(cycles_[i], 1, false);
            chosen_.push_back(static_cast<std::uint32_t>(i));
            place(i);
            chosen_.pop_back();
            take(cycles_[i], 1, true);
        }
    }

    const std::vector<Cycle>& cycles_;
    Lanes left_;
    std::size_t limit_ = 0, steps_ = 0;
    std::vector<std::uint32_t> chosen_, best_;
};

/// Boards of equal lanes between all GPUs (full meshes): steps of equal length around the board where they make a cycle.
std::vector<Cycle> stepped_cycles(const Lanes& lanes) {
    std::vector<Cycle> cycles;
    for (std::uint32_t step = 1; 2 * step < lanes.gpus; ++step) {
        Cycle cycle = {0};
        for (std::uint32_t at = step; at != 0; at = (at + step) % lanes.gpus)
            cycle.push_back(at);
        if (cycle.size() == lanes.gpus)
            cycles.push_back(std::move(cycle));
    }
    return cycles;
}

/// Cycles one lane wide; empty where none joins all GPUs.
std::vector<Cycle> packed(const Lanes& lanes) {
    std::vector<Cycle> candidates = stepped_cycles(lanes);
    for (Cycle& cycle : CycleList(lanes).take())
        candidates.push_back(std::move(cycle));
    const Packing packing(lanes, candidates);
    std::vector<std::uint32_t> left = packing.best();  // ascending
    std::vector<Cycle> out;
    while (!left.empty()) {  // different ones in turn, so that few channels spread well
        std::vector<std::uint32_t> again;
        for (std::size_t i = 0; i < left.size(); ++i) {
            if (i > 0 && left[i] == left[i - 1])
                again.push_back(left[i]);
            else
                out.push_back(candidates[left[i]]);
        }
        left.swap(again);
    }
    return out;
}

struct Nearness {
    PathType type;
    double bytes_per_s;  ///< of the narrowest link
    bool nearer_than(const Nearness& other) const {
        return type != other.type ? type < other.type : bytes_per_s > other.bytes_per_s;
    }
};

Nearness nearness(const Cluster& cluster, GpuId a, GpuId b) {
    Nearness out{cluster.path_type(a, b), std::numeric_limits<double>::infinity()};
    std::vector<LinkId> route;
    cluster.route(a, b, route);
    for (const LinkId link : route)
        out.bytes_per_s = std::min(out.bytes_per_s, bytes_per_s(cluster.links().capacity[index(link)]));
    return out;
}

NodeRings tour(const Cluster& cluster, std::span<const GpuId> gpus) {
    NodeRings rings;
    Cycle order = {0};
    std::vector<bool> passed(gpus.size(), false);
    passed[0] = true;
    double narrowest = std::numeric_limits<double>::infinity();
    const auto pass = [&](const Nearness& hop) {
        rings.nvlink = rings.nvlink && hop.type <= PathType::nvb;
        rings.sockets = rings.sockets || hop.type == PathType::sys;
        narrowest = std::min(narrowest, hop.bytes_per_s);
    };
    while (order.size() < gpus.size()) {
        std::uint32_t best = 0;
        Nearness least{PathType::dis, 0};
        for (std::uint32_t g = 0; g < gpus.size(); ++g) {
            if (passed[g])
                continue;
            const Nearness hop = nearness(cluster, gpus[order.back()], gpus[g]);
            if (best == 0 || hop.nearer_than(least)) {
                best = g;
                least = hop;
            }
        }
        pass(least);
        passed[best] = true;
        order.push_back(best);
    }
    if (gpus.size() > 1)
        pass(nearness(cluster, gpus[order.back()], gpus[0]));
    rings.cycles = {std::move(order)};
    rings.bytes_per_s = rings.nvlink && gpus.size() > 1 ? narrowest : 0;
    return rings;
}

NodeRings rings_of(const Cluster& cluster, std::span<const GpuId> gpus) {
    if (cluster.has_nvlink() && gpus.size() > 1 && gpus.size() <= kMostGpusOfPacking) {
        const Lanes lanes = lanes_of(cluster, gpus);
        if (gpus.size() == 2) {
            NodeRings rings{.cycles = {{0, 1}}, .entries = {}};
            if (const std::uint32_t both = std::min(lanes.at(0, 1), lanes.at(1, 0)); both > 0) {
                rings.bytes_per_s = both * lanes.bytes_per_s;
                return rings;
            }
        } else if (std::vector<Cycle> cycles = packed(lanes); !cycles.empty()) {
            NodeRings rings;
            rings.bytes_per_s = 2.0 * static_cast<double>(cycles.size()) * lanes.bytes_per_s;
            for (Cycle& cycle : cycles) {
                Cycle back(cycle.rbegin(), cycle.rend());
                rings.cycles.push_back(std::move(cycle));
                rings.cycles.push_back(std::move(back));
            }
            return rings;
        }
    }
    return tour(cluster, gpus);
}

}  // namespace

std::uint32_t locality_of(const Cluster& cluster, GpuId gpu) {
    const bool beyond_servers = cluster.has_nvswitch() && cluster.nvlink_domain_count() < cluster.node_count();
    return beyond_servers ? cluster.nvlink_domain_of(gpu) : static_cast<std::uint32_t>(index(cluster.node_of(gpu)));
}

std::vector<std::uint32_t> entries_of(const Cluster& cluster, std::span<const GpuId> gpus) {
    std::vector<std::uint32_t> entries(gpus.size());
    std::iota(entries.begin(), entries.end(), 0u);
    if (cluster.nics_per_node() == 0)
        return entries;
    std::map<NicId, std::uint32_t> users;
    std::vector<std::uint32_t> turn;  // of a GPU among those of its NIC
    for (const GpuId gpu : gpus)
        turn.push_back(users[cluster.nic_of(gpu)]++);
    std::stable_sort(entries.begin(), entries.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return turn[a] < turn[b]; });
    return entries;
}

NodeRings node_rings(const Cluster& cluster, std::span<const GpuId> gpus) {
    NodeRings rings = rings_of(cluster, gpus);
    rings.entries = entries_of(cluster, gpus);
    return rings;
}

}  // namespace fabricast
