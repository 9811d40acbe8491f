#include "models/collectives/exchange_legs.hpp"

#include <algorithm>
#include <limits>

namespace fabricast {

namespace {

using Class = PairWays::Class;
using Way = PairWays::Way;
constexpr std::size_t classes = PairWays::classes;
constexpr std::uint32_t kNobody = 0xFFFFFFFFu;
constexpr double kEqual = 1.01;  // rates within one per cent are one class

}  // namespace

PairWays::PairWays(const Cluster& cluster, const CommGroup& group, bool pxn)
    : pxn_(pxn && over_nvlink(cluster, group)) {
    const std::uint32_t nics = cluster.nics_per_node();
    for (const GpuId gpu : group.members) {
        place_.push_back(locality_of(cluster, gpu));
        node_.push_back(static_cast<std::uint32_t>(cluster.node_of(gpu)));
        rail_.push_back(nics == 0 ? 0 : static_cast<std::uint32_t>(cluster.nic_of(gpu)) % nics);
    }
    std::vector<std::uint32_t> nodes = node_;
    std::sort(nodes.begin(), nodes.end());
    nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
    rails_ = std::max(nics, 1u);
    on_rail_.assign(nodes.size() * rails_, kNobody);
    for (std::uint32_t m = 0; m < group.ranks; ++m) {
        node_[m] = static_cast<std::uint32_t>(std::lower_bound(nodes.begin(), nodes.end(), node_[m]) - nodes.begin());
        std::uint32_t& seat = on_rail_[std::size_t{node_[m]} * rails_ + rail_[m]];
        if (seat == kNobody || group.members[m] < group.members[seat])
            seat = m;
    }
}

PairWays::Way PairWays::way(std::uint32_t from, std::uint32_t to) const {
    if (place_[from] == place_[to])
        return {PairWays::local, from};
    if (rail_[from] == rail_[to])
        return {PairWays::rail, from};
    const std::uint32_t relay = on_rail_[std::size_t{node_[from]} * rails_ + rail_[to]];
    return {PairWays::cross, pxn_ && relay != kNobody ? relay : from};
}

ExchangeLegs::ExchangeLegs(const Cluster& cluster, const CommGroup& group, const PairTraffic& traffic, bool pxn)
    : cluster_(cluster), group_(group), traffic_(traffic), ways_(cluster, group, pxn), ranks_(group.ranks) {
    find_.assign(std::size_t{ranks_} * ranks_, 0);
    for_each_pair([&](std::uint32_t from, std::uint32_t to, std::uint32_t units) {
        const Way way = way_of(from, to);
        used_[way.kind] = true;
        if (way.relay != from)
            add(from, way.relay, way.kind, units);
        if (way.relay != to)
            add(way.relay, to, way.kind, units);
    });
    loads_.assign(cluster.links().size(), 0);
    for (const Leg& leg : legs_) {
        for (const LinkId link : leg.links) {
            for (const std::uint64_t units : leg.units)
                loads_[index(link)] += units;
        }
    }
    for (Leg& leg : legs_)
        leg.rate = rate_of(leg);
}

std::vector<ExchangeLegs::Activity> ExchangeLegs::activities() const {
    // the slowest pairs of a class go apart where pairs differ
    std::array<double, classes> least, most;
    least.fill(std::numeric_limits<double>::infinity());
    most.fill(0);
    for_each_pair([&](std::uint32_t from, std::uint32_t to, std::uint32_t) {
        const Way way = way_of(from, to);
        const double rate = pair_rate(from, to, way);
        least[way.kind] = std::min(least[way.kind], rate);
        most[way.kind] = std::max(most[way.kind], rate);
    });
    std::vector<Activity> out;
    for (std::uint8_t kind = 0; kind < classes; ++kind) {
        if (!used_[kind])
            continue;
        const bool uneven = most[kind] > least[kind] * kEqual;
        for (const bool slow : {true, false}) {
            if (!slow && !uneven)
                continue;
            out.push_back(sum_up(static_cast<Class>(kind), uneven, slow, least[kind] * kEqual));
        }
    }
    return out;
}

std::uint32_t ExchangeLegs::most_peers(bool other_nodes) const {
    std::uint32_t most = 0;
    std::vector<std::uint32_t> out(ranks_), in(ranks_);
    for_each_pair([&](std::uint32_t from, std::uint32_t to, std::uint32_t) {
        if ((way_of(from, to).kind != PairWays::local) != other_nodes)
            return;
        most = std::max({most, ++out[from], ++in[to]});
    });
    return most;
}

std::uint32_t ExchangeLegs::largest() const {
    std::uint32_t units = 0;
    for_each_pair([&](std::uint32_t, std::uint32_t, std::uint32_t u) { units = std::max(units, u); });
    return units;
}

void ExchangeLegs::add(std::uint32_t from, std::uint32_t to, Class kind, std::uint64_t units) {
    std::uint32_t& at = find_[std::size_t{from} * ranks_ + to];
    if (at == 0) {
        legs_.emplace_back();
        cluster_.route(group_.members[from], group_.members[to], legs_.back().links);
        at = static_cast<std::uint32_t>(legs_.size());
    }
    legs_[at - 1].units[kind] += units;
}

double ExchangeLegs::rate_of(const Leg& leg) const {
    double rate = std::numeric_limits<double>::infinity();
    for (const LinkId link : leg.links) {
        rate = std::min(rate, static_cast<double>(cluster_.links().capacity[index(link)]) /
                                  static_cast<double>(loads_[index(link)]));
    }
    return rate;
}
double ExchangeLegs::pair_rate(std::uint32_t from, std::uint32_t to, const Way& way) const {
    double rate = std::numeric_limits<double>::infinity();
    if (way.relay != from)
        rate = leg(from, way.relay).rate;
    if (way.relay != to)
        rate = std::min(rate, leg(way.relay, to).rate);
    return rate;
}

ExchangeLegs::Activity ExchangeLegs::sum_up(Class kind, bool uneven, bool slow, double limit) const {
    Activity a;
    a.kind = kind;
    std::vector<std::uint64_t> loads(loads_.size(), 0);
    std::vector<std::uint64_t> out(ranks_, 0), in(ranks_, 0);
    std::vector<std::uint32_t> receivers(ranks_, 0), senders(ranks_, 0);
    std::vector<std::uint64_t> by_leg(legs_.size(), 0);
    for_each_pair([&](std::uint32_t from, std::uint32_t to, std::uint32_t units) {
        const Way way = way_of(from, to);
        if (way.kind != kind || (uneven && (pair_rate(from, to, way) <= limit) != slow))
            return;
        out[from] += units;
        in[to] += units;
        ++receivers[from];
        ++senders[to];
        if (way.relay != from)
            by_leg[find_[std::size_t{from} * ranks_ + way.relay] - 1] += units;
        if (way.relay != to)
            by_leg[find_[std::size_t{way.relay} * ranks_ + to] - 1] += units;
    });
    for (std::size_t l = 0; l < legs_.size(); ++l) {
        if (by_leg[l] == 0)
            continue;
        for (const LinkId link : legs_[l].links)
            loads[index(link)] += by_leg[l];
    }
    a.busiest = *std::max_element(loads.begin(), loads.end());
    a.most_by_rank = std::max(*std::max_element(out.begin(), out.end()), *std::max_element(in.begin(), in.end()));
    a.peers = std::max(*std::max_element(receivers.begin(), receivers.end()),
                       *std::max_element(senders.begin(), senders.end()));
    for (std::size_t l = 0; l < loads.size(); ++l) {
        if (loads[l] == 0)
            continue;
        // Rounded up: a link never carries fewer bytes than cross it.
        const auto coefficient =
            (static_cast<unsigned __int128>(loads[l]) * kCoefficientOne + a.busiest - 1) / a.busiest;
        a.demand.push_back({LinkId{static_cast<std::uint32_t>(l)}, static_cast<std::uint64_t>(coefficient)});
    }
    return a;
}

}  // namespace fabricast
