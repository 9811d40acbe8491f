#include "sim/engine/network.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace fabricast::engine {
namespace {

constexpr int kLevelBits = 20;
constexpr std::uint32_t kCap = 0x80000000u;
/// Work of one byte in (rate unit x picosecond).
constexpr __int128 kWorkPerByte = static_cast<__int128>(kRateUnitsPerByte) * kPicosecondsPerSecond;

__int128 divide_up(__int128 a, __int128 b) { return (a + b - 1) / b; }

}  // namespace

Network::Network(std::span<const Rate> capacity, Picoseconds quantum) : quantum_(quantum) {
    links_.resize(capacity.size());
    for (std::size_t l = 0; l < capacity.size(); ++l) {
        assert(capacity[l] > 0 && "a link without capacity cannot be used");
        links_[l].capacity = capacity[l];
    }
}

Network::Id Network::start(std::span<const LinkUse> demand, Bytes work, std::uint32_t weight, Rate cap, Rate alone,
                           Picoseconds now) {
    assert(work > 0 && weight > 0 && !(demand.empty() && cap == 0));
    Id id;
    if (free_.empty()) {
        id = static_cast<Id>(activities_.size());
        activities_.emplace_back();
    } else {
        id = free_.back();
        free_.pop_back();
    }
    Activity& activity = activities_[id];
    activity.demand = demand;
    activity.position.resize(demand.size());
    activity.remaining = static_cast<Wide>(work) * kWorkPerByte;
    activity.rate = 0;
    activity.cap = cap;
    activity.alone = alone;
    activity.updated = now;
    activity.weight = weight;
    activity.alive = true;
    activity.slowed = false;
    for (std::uint32_t entry = 0; entry < demand.size(); ++entry) {
        std::vector<Member>& members = links_[index(demand[entry].link)].members;
        activity.position[entry] = static_cast<std::uint32_t>(members.size());
        members.push_back({id, entry});
    }
    new_activities_.push_back(id);
    ++active_;
    return id;
}

void Network::remove(Id id) {
    Activity& activity = activities_[id];
    assert(activity.alive);
    for (std::uint32_t entry = 0; entry < activity.demand.size(); ++entry) {
        const LinkUse& use = activity.demand[entry];
        const std::size_t l = index(use.link);
        Link& link = links_[l];
        const std::uint32_t position = activity.position[entry];
        const Member last = link.members.back();
        link.members[position] = last;
        activities_[last.activity].position[last.entry] = position;
        link.members.pop_back();
        link.load -= static_cast<Wide>(use.coefficient) * activity.rate;
        if (link.members.empty()) {
            link.saturated = false;
        } else if (link.saturated) {
            dirty_links_.push_back(static_cast<std::uint32_t>(l));
        }
    }
    activity.alive = false;
    ++activity.version;
    if (activity.rate == 0)
        std::erase(new_activities_, id);
    free_.push_back(id);
    --active_;
}

Network::Pending Network::take_pending() {
    return {std::exchange(new_activities_, {}), std::exchange(dirty_links_, {})};
}

void Network::put_back(Pending pending) {
    new_activities_ = std::move(pending.activities);
    dirty_links_ = std::move(pending.links);
}

void Network::set_capacity(LinkId link, Rate capacity) {
    assert(capacity > 0);
    links_[index(link)].capacity = capacity;
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

Network::Wide Network::level_of(const Link& link) const {
    return (std::max<Wide>(link.room, 0) << kLevelBits) / link.demand;
}

void Network::include(Id id) {
    Activity& activity = activities_[id];
    if (activity.mark == epoch_)
        return;
    activity.mark = epoch_;
    set_.push_back(id);
}

void Network::touch(std::uint32_t l) {
    Link& link = links_[l];
    if (link.mark == epoch_)
        return;
    link.mark = epoch_;
    touched_links_.push_back(l);
    if (link.saturated || link.next_saturated) {
        for (const Member& member : link.members)
            include(member.activity);
    }
}

void Network::close_over_saturated() {
    for (; closed_ < set_.size(); ++closed_) {
        for (const LinkUse& use : activities_[set_[closed_]].demand)
            touch(static_cast<std::uint32_t>(index(use.link)));
    }
}

void Network::freeze(Id id, Wide level) {
    Activity& activity = activities_[id];
    if (activity.frozen)
        return;
    activity.frozen = true;
    activity.next_rate = std::max<Rate>(1, static_cast<Rate>((activity.weight * level) >> kLevelBits));
    for (const LinkUse& use : activity.demand) {
        Link& link = links_[index(use.link)];
        link.room -= static_cast<Wide>(use.coefficient) * activity.next_rate;
        link.demand -= static_cast<std::int64_t>(use.coefficient) * activity.weight;
    }
}

// An activity that meets no other of the set: its rate is the smallest level of its links, no heap needed. False when
// it does meet others.
bool Network::fill_single(Activity& activity) {
    for (const LinkUse& use : activity.demand) {
        if (links_[index(use.link)].demand != static_cast<std::int64_t>(use.coefficient) * activity.weight)
            return false;
    }
    Wide best = activity.cap > 0 ? (static_cast<Wide>(activity.cap) << kLevelBits) / activity.weight : -1;
    Wide last_room = -1, last_level = 0;
    std::int64_t last_demand = 0;
    levels_.clear();
    for (const LinkUse& use : activity.demand) {
        Link& link = links_[index(use.link)];
        if (link.room != last_room || link.demand != last_demand) {  // a division saved on rings of equal links
            last_room = link.room;
            last_demand = link.demand;
            last_level = level_of(link);
        }
        if (best < 0 || last_level < best)
            best = last_level;
        levels_.push_back({last_level, static_cast<std::uint32_t>(index(use.link))});
    }
    for (const Level& level : levels_) {
        links_[level.link].next_saturated = level.value == best;
        links_[level.link].demand = 0;
    }
    activity.next_rate = std::max<Rate>(1, static_cast<Rate>((activity.weight * best) >> kLevelBits));
    activity.frozen = true;
    return true;
}

// Progressive filling. Levels never fall while others freeze, so a lazily refreshed min-heap is exact.
void Network::fill() {
    for (const std::uint32_t l : touched_links_) {
        Link& link = links_[l];
        link.room = (static_cast<Wide>(link.capacity) << 16) - link.load;
        link.demand = 0;
        link.next_saturated = false;
    }
    for (const Id id : set_) {
        Activity& activity = activities_[id];
        activity.frozen = false;
        for (const LinkUse& use : activity.demand) {
            Link& link = links_[index(use.link)];
            link.room += static_cast<Wide>(use.coefficient) * activity.rate;
            link.demand += static_cast<std::int64_t>(use.coefficient) * activity.weight;
        }
    }
    bool all_single = true;
    for (const Id id : set_)
        all_single = fill_single(activities_[id]) && all_single;
    if (all_single)
        return;
    const auto higher = [](const Level& a, const Level& b) { return a.value > b.value; };
    heap_.clear();
    for (const std::uint32_t l : touched_links_) {
        if (links_[l].demand > 0)
            heap_.push_back({level_of(links_[l]), l});
    }
    for (std::uint32_t i = 0; i < set_.size(); ++i) {
        const Activity& activity = activities_[set_[i]];
        if (activity.cap > 0 && !activity.frozen)
            heap_.push_back({(static_cast<Wide>(activity.cap) << kLevelBits) / activity.weight, kCap | i});
    }
    std::make_heap(heap_.begin(), heap_.end(), higher);
    while (!heap_.empty()) {
        Wide level = -1;
        tied_.clear();
        while (!heap_.empty() && (level < 0 || heap_.front().value <= level)) {
            std::pop_heap(heap_.begin(), heap_.end(), higher);
            Level candidate = heap_.back();
            heap_.pop_back();
            if ((candidate.link & kCap) != 0) {
                if (activities_[set_[candidate.link & ~kCap]].frozen)
                    continue;
            } else {
                const Link& link = links_[candidate.link];
                if (link.demand == 0)
                    continue;
                const Wide current = level_of(link);
                if (current > candidate.value) {
                    candidate.value = current;
                    heap_.push_back(candidate);
                    std::push_heap(heap_.begin(), heap_.end(), higher);
                    continue;
                }
            }
            level = candidate.value;
            tied_.push_back(candidate.link);
        }
        for (const std::uint32_t t : tied_) {
            if ((t & kCap) != 0) {
                freeze(set_[t & ~kCap], level);
                continue;
            }
            links_[t].next_saturated = true;
            for (const Member& member : links_[t].members) {
                if (activities_[member.activity].mark == epoch_)
                    freeze(member.activity, level);
            }
        }
    }
}

// Links that became saturated and have users outside the set draw those in.
bool Network::grow() {
    const std::size_t before = set_.size();
    for (std::size_t i = 0; i < touched_links_.size(); ++i) {
        const Link& link = links_[touched_links_[i]];
        if (!link.next_saturated || link.saturated)
            continue;
        for (const Member& member : link.members)
            include(member.activity);
    }
    return set_.size() != before;
}

void Network::apply(Picoseconds now) {
    changed_.clear();
    for (const std::uint32_t l : touched_links_)
        links_[l].saturated = links_[l].next_saturated;
    for (const Id id : set_) {
        Activity& activity = activities_[id];
        if (activity.next_rate == activity.rate)
            continue;
        activity.remaining -= static_cast<Wide>(activity.rate) * (now - activity.updated);
        if (activity.remaining < 0)
            activity.remaining = 0;
        activity.updated = now;
        const Rate delta = activity.next_rate - activity.rate;
        for (const LinkUse& use : activity.demand) {
            links_[index(use.link)].load += static_cast<Wide>(use.coefficient) * delta;
        }
        activity.rate = activity.next_rate;
        activity.slowed = activity.slowed || activity.rate + 1 < activity.alone;
        activity.finish = now + static_cast<Picoseconds>(divide_up(activity.remaining, activity.rate));
        ++activity.version;
        changed_.push_back(id);
    }
    if (quantum_ > 0 && changed_.size() > 1) {
        Picoseconds first = INT64_MAX, latest = 0;
        for (const Id id : changed_)
            first = std::min(first, activities_[id].finish);
        for (const Id id : changed_) {
            if (activities_[id].finish <= first + quantum_)
                latest = std::max(latest, activities_[id].finish);
        }
        for (const Id id : changed_) {
            if (activities_[id].finish <= first + quantum_)
                activities_[id].finish = latest;
        }
    }
}

std::span<const Network::Id> Network::solve(Picoseconds now) {
    ++epoch_;
    ++solves_;
    set_.clear();
    touched_links_.clear();
    closed_ = 0;
    for (const Id id : new_activities_)
        include(id);
    for (const std::uint32_t l : dirty_links_) {
        for (const Member& member : links_[l].members)
            include(member.activity);
    }
    new_activities_.clear();
    dirty_links_.clear();
    do {
        close_over_saturated();
        fill();
    } while (grow());
    touched_ += set_.size();
    apply(now);
    return changed_;
}

std::string Network::validate() const {
    for (std::size_t l = 0; l < links_.size(); ++l) {
        Wide load = 0;
        for (const Member& member : links_[l].members) {
            const Activity& activity = activities_[member.activity];
            load += static_cast<Wide>(activity.demand[member.entry].coefficient) * activity.rate;
        }
        if (load != links_[l].load)
            return "link " + std::to_string(l) + ": the kept load differs from the sum of its members";
        // An activity may be held at the smallest rate 1 on a link that is already full.
        Wide slack = 0;
        for (const Member& member : links_[l].members) {
            if (activities_[member.activity].rate == 1)
                slack += activities_[member.activity].demand[member.entry].coefficient;
        }
        if (load - slack > (static_cast<Wide>(links_[l].capacity) << 16))
            return "link " + std::to_string(l) + " is over capacity";
    }
    for (std::size_t i = 0; i < activities_.size(); ++i) {
        const Activity& activity = activities_[i];
        if (!activity.alive || activity.rate == 0 || (activity.cap > 0 && activity.rate + 1 >= activity.cap))
            continue;  // rate 0: among the pending, taken out
        bool has_bottleneck = false;
        for (const LinkUse& use : activity.demand) {
            const Link& link = links_[index(use.link)];
            if (!link.saturated)
                continue;
            bool maximal = true;
            for (const Member& member : link.members) {
                const Activity& other = activities_[member.activity];
                // rates are rounded down: compare x/w with one unit of slack
                if (static_cast<Wide>(other.rate) * activity.weight >
                    static_cast<Wide>(activity.rate + 1) * other.weight) {
                    maximal = false;
                }
            }
            has_bottleneck = has_bottleneck || maximal;
        }
        if (!has_bottleneck)
            return "activity " + std::to_string(i) + " has no saturated link where its share is maximal";
    }
    return {};
}

}  // namespace fabricast::engine
