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
// Activities joined by saturated links are a component. Whatever happens in it before its first completion solves all
// of it again, so only those that end first are announced: a solve pushes about as many events as there are components.
//
// Quantum q > 0 (0 = exact): links are solved at most once a quantum, so that changes of a component closer than q are
// dealt with together, at the latest of them or q after the solve before. Until then
//   completions   happen when their bytes have moved, never before; what they held of the links lies idle
//   starts        on links that carry others wait
// and what a solve changes never puts anybody ahead of an exact run: a rate that falls counts from the beginning of the
// window in which its cause happened, one that rises from its end. lateness() sums by how much that can have put off the
// end of an activity: its wait, and for every change of rate   window x |new - old| / new   (window <= q). lost_times()
// sums the bytes behind that by link: others that stay longer for them slow an activity by no more than the time in which
// the link moves these bytes. Both together bound the run (engine.hpp).
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

/// What a quantum did.
struct Batching {
    std::uint64_t completions = 0;  ///< all
    std::uint64_t put_off = 0;      ///< completions whose share of the links was dealt out later
    std::uint64_t held = 0;         ///< starts that waited
    Picoseconds longest = 0;        ///< of all these waits; at most the quantum
};

class Network {
public:
    using Id = std::uint32_t;

    /// capacity: one entry a link, each > 0.
    explicit Network(std::span<const Rate> capacity, Picoseconds quantum = 0);

    /// Starts moving `work` bytes. Coefficients > 0, links distinct.
    /// weight >= 1; cap 0 = none. Takes effect at the next solve(). work > 0.
    /// `alone` = alone_rate(demand, cap), kept by callers that start the same demand often.
    Id start(std::span<const LinkUse> demand, Bytes work, std::uint32_t weight, Rate cap, Rate alone, Picoseconds now);
    /// What a solve would find for the activity started last where its links carry nobody else: it has its rate at once,
    /// counts as solved, and its finish() holds as those that solve() returns. False where there are others, or a quantum.
    bool solve_alone(Id id, Picoseconds now);
    /// Removes an activity, finished or not. Takes effect at the next solve().
    void remove(Id id);
    /// Changes a link's capacity (> 0) from the next solve() on.
    void set_capacity(LinkId link, Rate capacity);

    /// Brings the rates up to date. Returns those to look at next, at their finish() (valid until the next call): in each
    /// component that changed the first to end. What was returned for an activity before is void when its version()
    /// differs. With a quantum also kTick, at whose finish() come_back() and solve() are due.
    std::span<const Id> solve(Picoseconds now);

    /// Changes since the last solve, taken out so that others can be solved without them, and put back.
    struct Pending {
        std::vector<Id> activities;
        std::vector<std::uint32_t> links;
    };
    Pending take_pending();
    void put_back(Pending pending);

    bool needs_solve() const { return !new_activities_.empty() || !dirty_links_.empty() || tick_due_; }
    static constexpr Id kTick = (1u << 29) - 1;
    void come_back() { tick_due_ = true; }

    Rate rate(Id id) const { return rates_[id].now; }
    Picoseconds finish(Id id) const { return id == kTick ? tick_ : finish_of(id); }
    std::uint32_t version(Id id) const {
        if (id == kTick)
            return active_ > 0 ? tick_version_ : tick_version_ + 1;  // with nobody left there is nothing to solve
        return activities_[id].version;
    }
    /// True when the activity ever ran below its `alone` rate (by more than the rounding of a weighted share) or waited.
    bool was_slowed(Id id) const { return activities_[id].slowed; }
    /// By how much its end can be later than without a quantum, given when it was started; 0 without one.
    Picoseconds lateness(Id id) const { return activities_[id].late + unsolved(activities_[id]); }
    /// By link: the time in which it could have moved what a quantum put off on it.
    std::vector<Picoseconds> lost_times() const;
    bool alive(Id id) const { return activities_[id].alive; }
    std::size_t active() const { return active_; }

    /// Rate of a demand alone on the network: min over links of capacity / coefficient, and cap.
    Rate alone_rate(std::span<const LinkUse> demand, Rate cap) const;
    /// What solve_alone() finds: the rate of an activity that has links of these to itself.
    Rate lone_rate(std::span<const LinkUse> demand, std::uint32_t weight, Rate cap) const;
    /// Picoseconds to move work bytes at a rate, rounded up.
    static Picoseconds duration(Bytes work, Rate rate);

    std::uint64_t solves() const { return solves_; }
    std::uint64_t activities_touched() const { return touched_; }
    const Batching& batching() const { return batching_; }

    /// First broken invariant as a sentence; empty when all hold. Call after solve().
    std::string validate() const;

private:
    using Wide = __int128;
    static constexpr std::uint32_t kNone = 0xFFFFFFFFu;
    static constexpr Picoseconds kUnknown = -1;
    struct Activity {
        Wide remaining = 0;
        Rate cap = 0, alone = 0;
        Picoseconds updated = 0;
        Picoseconds finish = kUnknown;  ///< as things stand; kUnknown: not worked out
        Picoseconds late = 0;
        std::uint32_t version = 0;
        std::uint32_t component = kNone;  ///< with a quantum: index into groups_
        bool alive = false, slowed = false;
        bool scheduled = false;  ///< returned by a solve, and that still holds
    };
    // What the solver walks over is packed apart, by activity: a large component is read from memory several times.
    struct Rates {
        Rate now = 0, next = 0;
    };
    struct Demand {
        std::uint32_t first = 0, count = 0;  ///< of uses_
        std::uint32_t weight = 1;
        std::uint32_t room = 0;  ///< for so many uses
    };
    struct Use {
        std::uint32_t link;
        std::uint32_t position;  ///< among the members of the link
        std::uint64_t coefficient;
    };
    struct Member {
        Id activity;
        std::uint32_t use;  ///< index into uses_
    };
    struct Link {
        Rate capacity;
        std::int64_t weights = 0;  ///< sum of a w over members
        std::int64_t demand = 0;   ///< scratch of one solve: the same over unfrozen members of the set
        Wide load = 0;             ///< sum of a x in 1/65536 rate units
        Wide room = 0;             ///< scratch of one solve
        std::uint32_t mark = 0;
        bool saturated = false, next_saturated = false, dirty = false;
        std::int64_t lone_demand = 0;  ///< of the activity that had the link to itself last, 0: none
        Wide lone_level = 0;           ///< its level then
    };
    struct Level {
        Wide value;
        std::uint32_t link;   ///< or kCap + index for an activity's cap
        std::int64_t demand;  ///< of the link when its level was this; where levels are scanned
    };
    // max_min.cpp: rates
    std::span<Use> uses(Id id) { return {uses_.data() + demands_[id].first, demands_[id].count}; }
    std::span<const Use> uses(Id id) const { return {uses_.data() + demands_[id].first, demands_[id].count}; }
    void include(Id id);
    void touch(std::uint32_t link);
    void close_over_saturated();
    void touch_all();
    void fill();
    void fill_by_scan();
    void fill_by_heap();
    void freeze_tied(Wide level);
    bool fill_single(Id id);
    static Wide level_of(const Link& link);
    void freeze(Id id, Wide level);
    bool grow();

    // network.cpp: when to look again
    void sort_set();
    void apply(Picoseconds now);
    void change_rate(Id id, Picoseconds now);
    void find_components();
    Id component_of(Id id);
    void estimate(Id id, Picoseconds now);
    void announce_first();
    void announce(Id id);
    Picoseconds finish_of(Id id) const;

    // quantum.cpp: what is put off
    Picoseconds due(Id id) const;
    bool may_solve(Picoseconds now);
    bool include_waiting();
    void end_waits(Picoseconds now);
    void shift_change(Id id, Rate before, Picoseconds passed, Picoseconds now);
    void lose(Id id, Wide work);
    void leave_group(const Activity& activity);
    Picoseconds unsolved(const Activity& activity) const;
    void note_completion(Id id);
    void regroup();
    void set_tick(Picoseconds now);
    void set_tick(Picoseconds at, Picoseconds now);

    std::vector<Link> links_;
    std::vector<std::vector<Member>> members_;  ///< by link
    std::vector<Activity> activities_;
    std::vector<Rates> rates_;
    std::vector<Demand> demands_;
    std::vector<Use> uses_;
    std::vector<std::uint32_t>
        marks_;  ///< by activity: epoch_ in the set of this solve, epoch_ + 1 with its rate found
    std::vector<Id> free_;
    std::vector<Id> new_activities_;
    std::vector<std::uint32_t> dirty_links_;
    std::vector<Id> set_;  ///< activities of this solve
    std::vector<std::uint32_t> touched_links_;
    std::vector<Level> heap_, levels_;
    std::vector<std::uint32_t> tied_;
    std::size_t closed_ = 0;  ///< members of set_ already expanded
    std::uint32_t epoch_ = 0;
    bool whole_ = false;       ///< everybody is in the set
    bool all_single_ = false;  ///< nobody of the set meets another of it

    struct Component {                 ///< scratch of one solve, by its smallest activity
        std::uint32_t group = kNone;   ///< with a quantum
        double estimate = 0;           ///< of its first completion
        Picoseconds first = 0;         ///< the same, exact
        Picoseconds longest_wait = 0;  ///< of those that start
    };
    std::vector<Id> parents_;  ///< towards the smallest activity of the component
    std::vector<Component> components_;
    std::vector<double> estimate_;  ///< of the finish, by activity
    std::vector<Id> candidates_;    ///< those that may be the first to end
    std::vector<Id> look_at_;

    // with a quantum only
    struct Group {  ///< a component as the last solve left it
        std::uint32_t members = 0;
        Picoseconds first_end = kUnknown;  ///< since then
    };
    Picoseconds quantum_;
    std::vector<Group> groups_;
    std::vector<std::uint32_t> free_groups_;
    std::vector<Picoseconds> solved_;     ///< by link: when last
    std::vector<Wide> lost_;              ///< by link: 1/65536 rate units x ps
    std::vector<Id> waiting_;             ///< to start
    std::vector<std::uint32_t> put_off_;  ///< links to solve
    std::uint64_t ended_ = 0;             ///< completions since the last call of solve
    Picoseconds tick_ = INT64_MAX;        ///< none
    std::uint32_t tick_version_ = 0;
    bool tick_due_ = false;
    Batching batching_;

    std::size_t active_ = 0;
    std::uint64_t solves_ = 0, touched_ = 0;
};

}  // namespace fabricast::engine
