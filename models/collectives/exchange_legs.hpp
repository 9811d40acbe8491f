// The links of an exchange: every pair's way, summed by leg, cut into activities.
//
// A way is one or two legs: a hop inside a node (to the peer, or with PXN to the member on the peer's rail) and the way
// between two NICs. Loads of a link are units (PairTraffic) over all pairs; rate of a pair = min over its links of capacity
// / load. Cost: n^2 additions and one route for each leg, with PXN n N legs over the network instead of n^2.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "models/collectives/exchange.hpp"

namespace fabricast {

/// Which way a pair of members goes.
class PairWays {
public:
    enum Class : std::uint8_t { local, rail, cross, classes };
    struct Way {
        Class kind;
        std::uint32_t relay;  ///< member whose NIC sends, on the source's node; the source itself without a detour
    };

    PairWays(const Cluster& cluster, const CommGroup& group, bool pxn);
    Way way(std::uint32_t from, std::uint32_t to) const;

private:
    bool pxn_;
    std::uint32_t rails_ = 1;
    std::vector<std::uint32_t> place_;        ///< by member: what it shares with others is local
    std::vector<std::uint32_t> node_, rail_;  ///< by member; servers count from 0 in the group
    std::vector<std::uint32_t> on_rail_;      ///< [node * rails + rail] -> member
};

class ExchangeLegs {
public:
    /// Keeps references to the first three.
    ExchangeLegs(const Cluster& cluster, const CommGroup& group, const PairTraffic& traffic, bool pxn);

    struct Activity {
        PairWays::Class kind = PairWays::local;
        std::vector<LinkUse> demand;
        std::uint64_t busiest = 0;       ///< units on the busiest link
        std::uint64_t most_by_rank = 0;  ///< units of the rank that sends or receives most
        std::uint32_t peers = 0;         ///< of the rank with most peers
    };
    /// One for each class of ways in use; two where its slowest pairs are slower than the rest.
    std::vector<Activity> activities() const;

    bool network() const { return used_[PairWays::rail] || used_[PairWays::cross]; }
    /// Of the rank with most peers: on its node, on others.
    std::uint32_t most_peers(bool other_nodes) const;
    std::uint32_t largest() const;  ///< units of the largest message

private:
    struct Leg {
        std::vector<LinkId> links;
        std::array<std::uint64_t, PairWays::classes> units = {};
        double rate = 0;  ///< least capacity / load of its links
    };

    PairWays::Way way_of(std::uint32_t from, std::uint32_t to) const { return ways_.way(from, to); }
    template <typename Visit>
    void for_each_pair(Visit visit) const {
        for (std::uint32_t from = 0; from < ranks_; ++from) {
            for (std::uint32_t to = 0; to < ranks_; ++to) {
                const std::uint32_t units = traffic_.at(from, to);
                if (from != to && units > 0)
                    visit(from, to, units);
            }
        }
    }
    void add(std::uint32_t from, std::uint32_t to, PairWays::Class kind, std::uint64_t units);
    const Leg& leg(std::uint32_t from, std::uint32_t to) const {
        return legs_[find_[std::size_t{from} * ranks_ + to] - 1];
    }
    double rate_of(const Leg& leg) const;
    double pair_rate(std::uint32_t from, std::uint32_t to, const PairWays::Way& way) const;
    Activity sum_up(PairWays::Class kind, bool uneven, bool slow, double limit) const;

    const Cluster& cluster_;
    const CommGroup& group_;
    const PairTraffic& traffic_;
    PairWays ways_;
    std::uint32_t ranks_;
    std::vector<std::uint32_t> find_;  ///< [from * ranks + to] -> leg + 1
    std::vector<Leg> legs_;
    std::vector<std::uint64_t> loads_;  ///< by link
    std::array<bool, PairWays::classes> used_ = {};
};

}  // namespace fabricast
