#include "sim/step/step_faults.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <stdexcept>

#include <fmt/format.h>

#include "topologies/builders/degradation.hpp"

namespace fabricast {
namespace {

using Kind = StepFault::Kind;

constexpr double kPacketBytes = 4096;  // largest of InfiniBand and RoCE
constexpr int kDownBits = 20;          // a link that is down keeps a 2^20th

bool on_links(Kind kind) {
    return kind == Kind::rate || kind == Kind::lanes || kind == Kind::collision || kind == Kind::congestion ||
           kind == Kind::loss;
}
bool on_speed(Kind kind) { return kind == Kind::clock || kind == Kind::slow; }

std::uint32_t number(std::string_view text) {
    std::uint32_t value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
}

std::vector<LinkId> network_links(const Cluster& cluster) {
    std::vector<LinkId> out;
    for (std::uint32_t l = 0; l < cluster.links().size(); ++l) {
        if (cluster.links().kind[l] == LinkKind::nic || cluster.links().kind[l] == LinkKind::fabric)
            out.push_back(LinkId{l});
    }
    return out;
}

/// Round trip between the first two servers: that of all where the fabric is regular.
double round_trip_s(const Cluster& cluster) {
    if (cluster.node_count() < 2)
        return 0;
    std::vector<LinkId> route;
    cluster.route(GpuId{0}, GpuId{cluster.gpus_per_node()}, route);
    return 2 * seconds(cluster.latency(route));
}

double packets_in_flight(const Cluster& cluster, LinkId link) {
    return std::max(1.0, bytes_per_s(cluster.links().capacity[index(link)]) * round_trip_s(cluster) / kPacketBytes);
}

/// Share of a link's rate that a fault leaves.
double kept(const StepFault& f, const Cluster& cluster, LinkId link, std::uint32_t lanes) {
    switch (f.kind) {
        case Kind::lanes: {
            const std::uint32_t all = lanes > 0 ? lanes : cluster.links().parallel[index(link)];
            if (f.count >= all)
                throw ScenarioError(fmt::format("{}: {} lanes lost of the {} of {}", f.place, f.count, all,
                                                cluster.links().name[index(link)]));
            return 1 - static_cast<double>(f.count) / all;
        }
        case Kind::congestion: return 1 / f.factor;
        case Kind::loss: {
            const double p = f.factor, window = packets_in_flight(cluster, link);
            return (1 - p) / (1 - p + p * window);
        }
        default: return f.factor;
    }
}

/// Lanes of a whole link where the graph does not tell: PCIe x16, InfiniBand 4x, all NVLinks of a GPU on an NVSwitch.
std::uint32_t usual_lanes(const Scenario& s, const std::string& where) {
    if (where.ends_with(" pcie"))
        return 16;
    if (where.starts_with("nic "))
        return 4;
    return where.ends_with(" nvlink") && s.node.board == Board::nvswitch ? nvlink_lanes(s.gpu) : 0;
}

Rate lowered(const Scenario& s, const StepFault& f, const Cluster& cluster, LinkId link) {
    const auto rate = static_cast<double>(cluster.links().capacity[index(link)]);
    return std::max<Rate>(1, static_cast<Rate>(rate * kept(f, cluster, link, usual_lanes(s, f.where))));
}

}  // namespace

std::vector<LinkId> links_at(const Cluster& cluster, const std::string& place, const std::string& blame) {
    if (place == "all" || place == "network") {
        std::vector<LinkId> out = network_links(cluster);
        if (out.empty())
            throw ScenarioError(blame + ": this cluster has no network between servers");
        return out;
    }
    if (place.starts_with("node ")) {
        std::vector<LinkId> out;
        const std::uint32_t node = number(std::string_view(place).substr(5));
        if (node >= cluster.node_count() || cluster.nics_per_node() == 0)
            throw ScenarioError(fmt::format("{}: there is no adapter of {}", blame, place));
        for (std::uint32_t nic = 0; nic < cluster.nics_per_node(); ++nic) {
            out.push_back(cluster.nic_up(NicId{node * cluster.nics_per_node() + nic}));
            out.push_back(cluster.nic_down(NicId{node * cluster.nics_per_node() + nic}));
        }
        return out;
    }
    try {
        return links_named(cluster, place);
    } catch (const std::invalid_argument& refused) {
        throw ScenarioError(blame + ": " + refused.what());
    }
}

std::vector<std::uint32_t> ranks_at(const Scenario& s, const std::string& place, const std::vector<int>& stage_of_rank,
                                    const std::string& blame) {
    const auto world = static_cast<std::uint32_t>(stage_of_rank.size());
    const std::string_view text = place;
    std::vector<std::uint32_t> out;
    std::uint32_t first = 0, count = 0;
    if (place == "all") {
        count = world;
    } else if (text.starts_with("rank ")) {
        first = number(text.substr(5));
        count = 1;
    } else if (text.starts_with("node ")) {
        first = number(text.substr(5)) * s.node.gpus;
        count = s.node.gpus;
    } else if (text.starts_with("gpu ") && text.find('.') != std::string_view::npos) {
        first = number(text.substr(4)) * s.node.gpus + number(text.substr(text.find('.') + 1));
        count = 1;
    } else if (text.starts_with("stage ")) {
        for (std::uint32_t rank = 0; rank < world; ++rank) {
            if (stage_of_rank[rank] == static_cast<int>(number(text.substr(6))))
                out.push_back(rank);
        }
        return out;
    }
    if (count == 0 || first + count > world)
        throw ScenarioError(
            fmt::format("{}: `{}` is no rank of this job, it has ranks 0 to {}", blame, place, world - 1));
    for (std::uint32_t rank = first; rank < first + count; ++rank)
        out.push_back(rank);
    return out;
}

double loss_that_keeps(const Cluster& cluster, const std::string& place, double keeps) {
    try {
        const std::vector<LinkId> links = links_at(cluster, place, place);
        return links.empty() ? 0 : (1 - keeps) / (1 - keeps + keeps * packets_in_flight(cluster, links.front()));
    } catch (const ScenarioError&) {
        return 0;
    }
}

void degrade_by_faults(const Scenario& s, Cluster& cluster) {
    for (const StepFault& f : s.faults) {
        if (f.timed() || !on_links(f.kind))
            continue;
        for (const LinkId link : links_at(cluster, f.where, f.place))
            cluster.degrade(link, lowered(s, f, cluster, link));
    }
}

void slow_by_faults(const Scenario& s, const std::vector<int>& stage_of_rank, program::Program& p) {
    for (const StepFault& f : s.faults) {
        if (f.timed() || !on_speed(f.kind))
            continue;
        for (const std::uint32_t rank : ranks_at(s, f.where, stage_of_rank, f.place))
            p.ranks[rank].slowness = static_cast<std::uint32_t>(std::llround(p.ranks[rank].slowness * f.factor));
    }
}

std::vector<engine::Change> changes_of_faults(const Scenario& s, const Cluster& cluster, const program::Program& p,
                                              const std::vector<int>& stage_of_rank) {
    using Change = engine::Change;
    std::vector<Change> out;
    const auto add = [&](double at_s, Change::Kind kind, std::uint32_t id, std::int64_t value, double patience_s = 0) {
        out.push_back({picoseconds_from_s(at_s), kind, id, value, picoseconds_from_s(patience_s)});
    };
    for (const StepFault& f : s.faults) {
        if (!f.timed())
            continue;
        const double ends = f.lasts_s > 0 ? f.at_s + f.lasts_s : -1;
        if (on_links(f.kind)) {
            for (const LinkId link : links_at(cluster, f.where, f.place)) {
                const auto id = static_cast<std::uint32_t>(index(link));
                add(f.at_s, Change::Kind::capacity, id, lowered(s, f, cluster, link));
                if (ends > 0)
                    add(ends, Change::Kind::capacity, id, cluster.links().capacity[id]);
            }
        } else if (f.kind == Kind::flap || f.kind == Kind::down) {
            for (const LinkId link : links_at(cluster, f.where, f.place)) {
                const auto id = static_cast<std::uint32_t>(index(link));
                const Rate whole = cluster.links().capacity[id];
                add(f.at_s, Change::Kind::down, id, std::max<Rate>(1, whole >> kDownBits), s.time_outs.transport_s);
                if (ends > 0)
                    add(ends, Change::Kind::up, id, whole);
            }
        } else if (on_speed(f.kind)) {
            for (const std::uint32_t rank : ranks_at(s, f.where, stage_of_rank, f.place)) {
                add(f.at_s, Change::Kind::slowness, rank, std::llround(p.ranks[rank].slowness * f.factor));
                if (ends > 0)
                    add(ends, Change::Kind::slowness, rank, p.ranks[rank].slowness);
            }
        } else if (f.kind == Kind::hang || f.kind == Kind::crash) {
            for (const std::uint32_t rank : ranks_at(s, f.where, stage_of_rank, f.place))
                add(f.at_s, Change::Kind::halt, rank, 0);
        }
    }
    std::stable_sort(out.begin(), out.end(), [](const Change& a, const Change& b) { return a.at < b.at; });
    return out;
}

}  // namespace fabricast
