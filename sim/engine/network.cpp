// Network: activities come, go and end; which of them to look at next. Rates: max_min.cpp.
#include "sim/engine/network.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <utility>

namespace fabricast::engine {
namespace {

/// Work of one byte in (rate unit x picosecond).
constexpr __int128 kWorkPerByte = static_cast<__int128>(kRateUnitsPerByte) * kPicosecondsPerSecond;
constexpr std::size_t kSortAbove = 1024;  ///< activities of a solve

__int128 divide_up(__int128 a, __int128 b) { return (a + b - 1) / b; }

/// Not negative; the nearest double, but for the last bits.
double real(__int128 value) {
    return static_cast<double>(static_cast<std::uint64_t>(value >> 64)) * 0x1p64 +
           static_cast<double>(static_cast<std::uint64_t>(value));
}

}  // namespace

Network::Network(std::span<const Rate> capacity, Picoseconds quantum) : quantum_(quantum) {
    links_.resize(capacity.size());
    members_.resize(capacity.size());
    for (std::size_t l = 0; l < capacity.size(); ++l) {
        assert(capacity[l] > 0 && "a link without capacity cannot be used");
        links_[l].capacity = capacity[l];
    }
    if (quantum_ > 0) {
        solved_.assign(capacity.size(), -quantum_);
        lost_.assign(capacity.size(), 0);
    }
}

Network::Id Network::start(std::span<const LinkUse> demand, Bytes work, std::uint32_t weight, Rate cap, Rate alone,
                           Picoseconds now) {
    assert(work > 0 && weight > 0 && !(demand.empty() && cap == 0));
    Id id;
    if (free_.empty()) {
        id = static_cast<Id>(activities_.size());
        activities_.emplace_back();
        rates_.emplace_back();
        demands_.emplace_back();
        marks_.push_back(0);
        components_.emplace_back();
        parents_.push_back(id);
        estimate_.push_back(0);
    } else {
        id = free_.back();
        free_.pop_back();
    }
    Activity& activity = activities_[id];
    activity.remaining = static_cast<Wide>(work) * kWorkPerByte;
    rates_[id] = {};
    activity.cap = cap;
    activity.alone = alone;
    activity.updated = now;
    activity.finish = kUnknown;
    activity.late = 0;
    activity.component = kNone;
    activity.alive = true;
    activity.slowed = activity.scheduled = false;
    Demand& own = demands_[id];
    own.weight = weight;
    own.count = static_cast<std::uint32_t>(demand.size());
    if (own.count > own.room) {
        own.room = std::bit_ceil(own.count);
        own.first = static_cast<std::uint32_t>(uses_.size());
        uses_.resize(uses_.size() + own.room);
    }
    std::uint32_t at = own.first;
    for (const LinkUse& use : demand) {
        const auto l = static_cast<std::uint32_t>(index(use.link));
        uses_[at] = {l, static_cast<std::uint32_t>(members_[l].size()), use.coefficient};
        members_[l].push_back({id, at++});
        links_[l].weights += static_cast<std::int64_t>(use.coefficient) * weight;
    }
    new_activities_.push_back(id);
    ++active_;
    return id;
}

void Network::remove(Id id) {
    Activity& activity = activities_[id];
    assert(activity.alive);
    const Rate rate = rates_[id].now;
    for (const Use& use : uses(id)) {
        Link& link = links_[use.link];
        std::vector<Member>& members = members_[use.link];
        const Member last = members.back();
        members[use.position] = last;
        uses_[last.use].position = use.position;
        members.pop_back();
        link.load -= static_cast<Wide>(use.coefficient) * rate;
        link.weights -= static_cast<std::int64_t>(use.coefficient) * demands_[id].weight;
        if (members.empty()) {
            link.saturated = false;
        } else if (link.saturated && !link.dirty) {
            link.dirty = true;
            dirty_links_.push_back(use.link);
        }
    }
    if (quantum_ > 0)
        note_completion(id);
    activity.alive = false;
    ++activity.version;
    if (rate == 0) {
        std::erase(new_activities_, id);
        std::erase(waiting_, id);
    }
    free_.push_back(id);
    --active_;
}

Network::Pending Network::take_pending() {
    return {std::exchange(new_activities_, {}), std::exchange(dirty_links_, {})};
}

void Network::put_back(Pending pending) {
    for (const std::uint32_t link : dirty_links_)
        links_[link].dirty = false;  // what made it so is gone
    new_activities_ = std::move(pending.activities);
    dirty_links_ = std::move(pending.links);
    for (const std::uint32_t link : dirty_links_)
        links_[link].dirty = true;
}

void Network::set_capacity(LinkId link, Rate capacity) {
    assert(capacity > 0);
    links_[index(link)].capacity = capacity;
    links_[index(link)].lone_demand = 0;
    links_[index(link)].dirty = true;
    dirty_links_.push_back(static_cast<std::uint32_t>(index(link)));
}

Rate Network::alone_rate(std::span<const LinkUse> demand, Rate cap) const {
    Rate rate = cap > 0 ? cap : INT64_MAX;
    for (const LinkUse& use : demand) {
        const Wide limit = (static_cast<Wide>(links_[index(use.link)].capacity) << 16) / use.coefficient;
        if (limit < rate)
            rate = static_cast<Rate>(limit);
    }
    return std::max<Rate>(rate, 1);
}

Picoseconds Network::duration(Bytes work, Rate rate) {
    return static_cast<Picoseconds>(divide_up(static_cast<Wide>(work) * kWorkPerByte, rate));
}

Picoseconds Network::finish_of(Id id) const {
    const Activity& activity = activities_[id];
    if (activity.finish != kUnknown)
        return activity.finish;
    return activity.updated + static_cast<Picoseconds>(divide_up(activity.remaining, rates_[id].now));
}

std::span<const Network::Id> Network::solve(Picoseconds now) {
    look_at_.clear();
    if (quantum_ > 0 && !may_solve(now))
        return look_at_;
    epoch_ += 2;
    ++solves_;
    set_.clear();
    touched_links_.clear();
    closed_ = 0;
    whole_ = false;
    for (const Id id : new_activities_)
        include(id);
    for (const std::uint32_t l : dirty_links_) {
        for (const Member& member : members_[l])
            include(member.activity);
    }
    new_activities_.clear();
    do {
        do {
            close_over_saturated();
        } while (!waiting_.empty() && include_waiting());
        if (set_.size() > kSortAbove && set_.size() > marks_.size() / 8)
            sort_set();
        fill();
    } while (grow());
    touched_ += set_.size();
    apply(now);
    for (const std::uint32_t l : dirty_links_)
        links_[l].dirty = false;
    dirty_links_.clear();
    return look_at_;
}

// Activities in the order in which they lie in memory.
void Network::sort_set() {
    set_.clear();
    for (Id id = 0; id < marks_.size(); ++id) {
        if (marks_[id] >= epoch_)
            set_.push_back(id);
    }
    closed_ = set_.size();
}

void Network::apply(Picoseconds now) {
    for (const std::uint32_t l : touched_links_) {
        Link& link = links_[l];
        link.saturated = link.next_saturated;
        link.dirty = false;
        link.load = (static_cast<Wide>(link.capacity) << 16) - link.room;
    }
    if (all_single_ && quantum_ == 0) {  // each is a component
        for (const Id id : set_) {
            change_rate(id, now);
            if (!activities_[id].scheduled)
                announce(id);
        }
        return;
    }
    find_components();
    if (quantum_ > 0)
        end_waits(now);
    for (const Id id : set_)
        estimate(id, now);
    announce_first();
    if (quantum_ > 0) {
        regroup();
        set_tick(now);
    }
}

// What was announced for it is void then.
void Network::change_rate(Id id, Picoseconds now) {
    Activity& activity = activities_[id];
    Rates& rates = rates_[id];
    if (rates.next == rates.now)
        return;
    const Rate before = rates.now;
    const Picoseconds passed = now - activity.updated;
    activity.remaining = std::max<Wide>(0, activity.remaining - static_cast<Wide>(before) * passed);
    rates.now = rates.next;
    activity.updated = now;
    activity.finish = kUnknown;
    activity.slowed = activity.slowed || rates.now + 1 < activity.alone;
    activity.scheduled = false;
    ++activity.version;
    if (quantum_ > 0)
        shift_change(id, before, passed, now);
}

void Network::announce(Id id) {
    Activity& activity = activities_[id];
    activity.finish = finish_of(id);
    activity.scheduled = true;
    look_at_.push_back(id);
}

// Joins what shares a full link; the smallest activity stands for a component.
void Network::find_components() {
    for (const Id id : set_)
        parents_[id] = id;
    for (const std::uint32_t l : touched_links_) {
        if (!links_[l].saturated)
            continue;
        Id root = component_of(members_[l].front().activity);
        for (const Member& member : members_[l]) {
            const Id other = component_of(member.activity);
            if (other == root)
                continue;
            parents_[std::max(root, other)] = std::min(root, other);
            root = std::min(root, other);
        }
    }
    for (const Id id : set_) {
        parents_[id] = component_of(id);
        if (parents_[id] == id)
            components_[id] = {kNone, 0x1p63, INT64_MAX, 0};
    }
}

Network::Id Network::component_of(Id id) {
    while (parents_[id] != id) {
        parents_[id] = parents_[parents_[id]];
        id = parents_[id];
    }
    return id;
}

// Changes the rate and sees when about it ends now.
void Network::estimate(Id id, Picoseconds now) {
    change_rate(id, now);
    const Activity& activity = activities_[id];
    estimate_[id] = activity.finish != kUnknown ? static_cast<double>(activity.finish)
                                                : static_cast<double>(activity.updated) +
                                                      real(activity.remaining) / static_cast<double>(rates_[id].now);
    Component& component = components_[component_of(id)];
    component.estimate = std::min(component.estimate, estimate_[id]);
}

// Who ends first in each component, and with a quantum within that of the first. Estimates sort out nearly everybody.
void Network::announce_first() {
    candidates_.clear();
    for (const Id id : set_) {
        Activity& activity = activities_[id];
        Component& component = components_[component_of(id)];
        const double limit = component.estimate + static_cast<double>(quantum_);
        if (estimate_[id] <= limit + 4 + limit * 0x1p-48) {
            activity.finish = finish_of(id);
            component.first = std::min(component.first, activity.finish);
            candidates_.push_back(id);
        } else if (activity.scheduled) {
            activity.scheduled = false;
            ++activity.version;
        }
    }
    for (const Id id : candidates_) {
        Activity& activity = activities_[id];
        if (activity.finish > components_[component_of(id)].first + quantum_) {
            activity.version += activity.scheduled;
            activity.scheduled = false;
        } else if (!activity.scheduled) {
            announce(id);
        }
    }
}

std::string Network::validate() const {
    for (std::size_t l = 0; l < links_.size(); ++l) {
        Wide load = 0;
        for (const Member& member : members_[l])
            load += static_cast<Wide>(uses_[member.use].coefficient) * rates_[member.activity].now;
        if (load != links_[l].load)
            return "link " + std::to_string(l) + ": the kept load differs from the sum of its members";
        // An activity may be held at the smallest rate 1 on a link that is already full.
        Wide slack = 0;
        for (const Member& member : members_[l]) {
            if (rates_[member.activity].now == 1)
                slack += uses_[member.use].coefficient;
        }
        if (load - slack > (static_cast<Wide>(links_[l].capacity) << 16))
            return "link " + std::to_string(l) + " is over capacity";
    }
    for (Id id = 0; id < activities_.size(); ++id) {
        const Rate rate = rates_[id].now, cap = activities_[id].cap;
        if (!activities_[id].alive || rate == 0 || (cap > 0 && rate + 1 >= cap))
            continue;
        bool has_bottleneck = false;
        for (const Use& use : uses(id)) {
            if (!links_[use.link].saturated)
                continue;
            bool maximal = true;
            for (const Member& member : members_[use.link]) {
                // rates are rounded down: compare x/w with one unit of slack
                if (static_cast<Wide>(rates_[member.activity].now) * demands_[id].weight >
                    static_cast<Wide>(rate + 1) * demands_[member.activity].weight) {
                    maximal = false;
                }
            }
            has_bottleneck = has_bottleneck || maximal;
        }
        if (!has_bottleneck)
            return "activity " + std::to_string(id) + " has no saturated link where its share is maximal";
    }
    return {};
}

}  // namespace fabricast::engine
