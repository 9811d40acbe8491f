// Weighted max-min fair sharing of links, exact in integers.
//
// An activity i has one progress rate x_i (in 1/1024 byte/s) and loads link l with a_il * x_i, a_il in units of
// 1/65536. The rates are the weighted max-min fair ones: x_i / w_i is raised equally for all until a link is full
// or an activity meets its own cap; what is met there is frozen, the rest goes on.
//
//   level of a link    L_l = floor( 2^20 * (C_l - sum over frozen a x) / sum over unfrozen a w )
//   freeze             all links whose level is the minimum, together; x_i = max(1, floor(w_i L / 2^20))
//
// Sums of integers do not depend on order, links of equal level freeze together, so the rates depend only on the
// set of activities: not on history, multiplicity, compiler or machine.
//
// A change spreads only through links that are saturated (froze somebody) before or after it: the solver starts
// from the changed activities, adds everybody on a saturated link they touch, solves, and repeats when a link got
// saturated that outsiders use. Links that are saturated neither before nor after decide nobody's rate.
//
// Remaining work is 128-bit in (1/1024 byte/s) x ps and lazy: it is brought up to date only when the rate changes.
// A finish is rounded up to the next picosecond.
//
// Quantum q > 0 (0 = exact): completions of one solve that fall within q of the earliest are moved to the latest
// of them. Never early, at most q late.
//
// Invariants (validate()): no link above capacity; every activity has a saturated link on which its x/w is maximal,
// or meets its cap.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "topologies/graph/links.hpp"
#include "topologies/graph/units.hpp"

namespace fabricast::engine {

class Network {
public:
    using Id = std::uint32_t;

    /// capacity: one entry a link, each > 0.
    explicit Network(std::span<const Rate> capacity, Picoseconds quantum = 0);

    /// Starts moving `work` bytes. `demand` must outlive the activity; coefficients > 0, links distinct.
    /// weight >= 1; cap 0 = none. Takes effect at the next solve(). work > 0.
    /// `alone` = alone_rate(demand, cap), kept by callers that start the same demand often.
    Id start(std::span<const LinkUse> demand, Bytes work, std::uint32_t weight, Rate cap, Rate alone, Picoseconds now);
    /// Removes an activity, finished or not. Takes effect at the next solve().
    void remove(Id id);
    /// Changes a link's capacity (> 0) from the next solve() on.
    void set_capacity(LinkId link, Rate capacity);

    /// Brings the rates up to date. Returns the activities whose finish changed (valid until the next call).
    std::span<const Id> solve(Picoseconds now);

    /// Changes since the last solve, taken out so that others can be solved without them, and put back.
    struct Pending {
        std::vector<Id> activities;
        std::vector<std::uint32_t> links;
    };
    Pending take_pending();
    void put_back(Pending pending);

    bool needs_solve() const { return !new_activities_.empty() || !dirty_links_.empty(); }
    Rate rate(Id id) const { return activities_[id].rate; }
    Picoseconds finish(Id id) const { return activities_[id].finish; }
    std::uint32_t version(Id id) const { return activities_[id].version; }
    /// True when the activity ever ran below its `alone` rate (by more than the rounding of a weighted share).
    bool was_slowed(Id id) const { return activities_[id].slowed; }
    bool alive(Id id) const { return activities_[id].alive; }
    std::size_t active() const { return active_; }

    /// Rate of a demand alone on the network: min over links of capacity / coefficient, and cap.
    Rate alone_rate(std::span<const LinkUse> demand, Rate cap) const;
    /// Picoseconds to move work bytes at a rate, rounded up.
    static Picoseconds duration(Bytes work, Rate rate);

    std::uint64_t solves() const { return solves_; }
    std::uint64_t activities_touched() const { return touched_; }

    /// First broken invariant as a sentence; empty when all hold. Call after solve().
    std::string validate() const;

private:
    using Wide = __int128;
    struct Activity {
        std::span<const LinkUse> demand;
        std::vector<std::uint32_t> position;  ///< where this activity sits in each link's member list
        Wide remaining = 0;
        Rate rate = 0, next_rate = 0, cap = 0, alone = 0;
        Picoseconds updated = 0, finish = 0;
        std::uint32_t weight = 1, version = 0, mark = 0;
        bool alive = false, slowed = false, frozen = false;
    };
    struct Member {
        Id activity;
        std::uint32_t entry;  ///< index into the activity's demand
    };
    struct Link {
        Rate capacity;
        Wide load = 0;  ///< sum of a x in 1/65536 rate units
        std::vector<Member> members;
        // scratch of one solve
        Wide room = 0;
        std::int64_t demand = 0;  ///< sum of a w over unfrozen members of the set
        std::uint32_t mark = 0;
        bool saturated = false, next_saturated = false;
    };
    struct Level {
        Wide value;
        std::uint32_t link;  ///< or kCap + index for an activity's cap
    };

    void include(Id id);
    void touch(std::uint32_t link);
    void close_over_saturated();
    void fill();
    bool fill_single(Activity& activity);
    void freeze(Id id, Wide level);
    bool grow();
    void apply(Picoseconds now);
    Wide level_of(const Link& link) const;

    std::vector<Link> links_;
    std::vector<Activity> activities_;
    std::vector<Id> free_;
    std::vector<Id> new_activities_;
    std::vector<std::uint32_t> dirty_links_;
    std::vector<Id> set_;  ///< activities of this solve
    std::vector<std::uint32_t> touched_links_;
    std::vector<Level> heap_, levels_;
    std::vector<std::uint32_t> tied_;
    std::vector<Id> changed_;
    std::size_t closed_ = 0;  ///< members of set_ already expanded
    std::uint32_t epoch_ = 0;
    Picoseconds quantum_;
    std::size_t active_ = 0;
    std::uint64_t solves_ = 0, touched_ = 0;
};

}  // namespace fabricast::engine
