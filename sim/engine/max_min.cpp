// Network: the rates. From what changed over saturated links to everybody concerned, then progressive filling.
#include <algorithm>

#include "sim/engine/network.hpp"

namespace fabricast::engine {
namespace {

constexpr int kLevelBits = 20;
constexpr std::uint32_t kCap = 0x80000000u;
constexpr std::size_t kAhead = 8;      ///< members of a link that are fetched ahead
constexpr std::size_t kScanned = 128;  ///< links of a solve that need no heap
constexpr int kSharedTries = 64;       ///< after so many that meet others nobody is expected to be alone

}  // namespace

Network::Wide Network::level_of(const Link& link) { return (std::max<Wide>(link.room, 0) << kLevelBits) / link.demand; }

void Network::include(Id id) {
    if (marks_[id] >= epoch_)
        return;
    marks_[id] = epoch_;
    set_.push_back(id);
}

void Network::touch(std::uint32_t l) {
    Link& link = links_[l];
    if (link.mark == epoch_)
        return;
    link.mark = epoch_;
    touched_links_.push_back(l);
    if (link.saturated || link.next_saturated) {
        for (const Member& member : members_[l])
            include(member.activity);
    }
}

void Network::close_over_saturated() {
    for (; closed_ < set_.size(); ++closed_) {
        if (set_.size() == active_ && active_ >= links_.size() && waiting_.empty()) {
            touch_all();
            return;
        }
        for (const Use& use : uses(set_[closed_]))
            touch(use.link);
    }
}

// Everybody is in the set: the links need not be looked for, nor their sums.
void Network::touch_all() {
    for (std::uint32_t l = 0; l < links_.size(); ++l) {
        if (members_[l].empty() || links_[l].mark == epoch_)
            continue;
        links_[l].mark = epoch_;
        touched_links_.push_back(l);
    }
    closed_ = set_.size();
    whole_ = true;
}

void Network::freeze(Id id, Wide level) {
    const std::uint32_t weight = demands_[id].weight;
    const Rate rate = std::max<Rate>(1, static_cast<Rate>((weight * level) >> kLevelBits));
    rates_[id].next = rate;
    marks_[id] = epoch_ + 1;
    for (const Use& use : uses(id)) {
        Link& link = links_[use.link];
        link.room -= static_cast<Wide>(use.coefficient) * rate;
        link.demand -= static_cast<std::int64_t>(use.coefficient) * weight;
    }
}

// An activity that meets no other of the set: its rate is the smallest level of its links, no heap needed. False when
// it does meet others.
bool Network::fill_single(Id id) {
    const std::uint32_t weight = demands_[id].weight;
    for (const Use& use : uses(id)) {
        if (links_[use.link].demand != static_cast<std::int64_t>(use.coefficient) * weight)
            return false;
    }
    const Rate cap = activities_[id].cap;
    Wide best = cap > 0 ? (static_cast<Wide>(cap) << kLevelBits) / weight : -1;
    Wide last_room = -1, last_level = 0;
    std::int64_t last_demand = 0;
    levels_.resize(uses(id).size());
    std::size_t at = 0;
    for (const Use& use : uses(id)) {
        const Link& link = links_[use.link];
        if (link.room != last_room || link.demand != last_demand) {  // a division saved on rings of equal links
            last_room = link.room;
            last_demand = link.demand;
            last_level = level_of(link);
        }
        if (best < 0 || last_level < best)
            best = last_level;
        levels_[at++] = {last_level, use.link, 0};
    }
    for (const Level& level : levels_)
        links_[level.link].next_saturated = level.value == best;
    freeze(id, best);
    return true;
}

Rate Network::lone_rate(std::span<const LinkUse> demand, std::uint32_t weight, Rate cap) const {
    Wide best = cap > 0 ? (static_cast<Wide>(cap) << kLevelBits) / weight : -1;
    for (const LinkUse& use : demand) {
        Link link = links_[index(use.link)];
        link.room = static_cast<Wide>(link.capacity) << 16;
        link.demand = static_cast<std::int64_t>(use.coefficient) * weight;
        const Wide level = level_of(link);
        if (best < 0 || level < best)
            best = level;
    }
    return std::max<Rate>(1, static_cast<Rate>((weight * best) >> kLevelBits));
}

bool Network::solve_alone(Id id, Picoseconds now) {
    if (quantum_ > 0 || new_activities_.empty() || new_activities_.back() != id)
        return false;
    const std::span<const Use> own = uses(id);
    for (const Use& use : own) {
        if (members_[use.link].size() > 1 || links_[use.link].dirty)
            return false;
    }
    new_activities_.pop_back();
    ++solves_;
    const std::uint32_t weight = demands_[id].weight;
    Activity& activity = activities_[id];
    Wide best = activity.cap > 0 ? (static_cast<Wide>(activity.cap) << kLevelBits) / weight : -1;
    for (const Use& use : own) {
        Link& link = links_[use.link];
        if (link.lone_demand != link.weights) {
            link.lone_demand = link.demand = link.weights;
            link.room = static_cast<Wide>(link.capacity) << 16;
            link.lone_level = level_of(link);
        }
        if (best < 0 || link.lone_level < best)
            best = link.lone_level;
    }
    const Rate rate = std::max<Rate>(1, static_cast<Rate>((weight * best) >> kLevelBits));
    for (const Use& use : own) {
        Link& link = links_[use.link];
        link.load = static_cast<Wide>(use.coefficient) * rate;
        link.saturated = link.lone_level == best;
    }
    ++touched_;
    rates_[id].next = rate;
    change_rate(id, now);
    activity.finish = finish_of(id);
    activity.scheduled = true;
    return true;
}

// Progressive filling. Levels never fall while others freeze, so a lazily refreshed min-heap is exact.
void Network::fill() {
    for (const std::uint32_t l : touched_links_) {
        Link& link = links_[l];
        link.room = (static_cast<Wide>(link.capacity) << 16) - (whole_ ? 0 : link.load);
        link.demand = whole_ ? link.weights : 0;
        link.next_saturated = false;
    }
    for (const Id id : set_) {
        marks_[id] = epoch_;
        if (whole_)
            continue;
        const Rate rate = rates_[id].now;
        const std::uint32_t weight = demands_[id].weight;
        for (const Use& use : uses(id)) {
            Link& link = links_[use.link];
            link.room += static_cast<Wide>(use.coefficient) * rate;
            link.demand += static_cast<std::int64_t>(use.coefficient) * weight;
        }
    }
    all_single_ = true;
    int shared = 0;
    for (std::size_t i = 0; i < set_.size() && shared < kSharedTries; ++i) {
        if (!fill_single(set_[i])) {
            all_single_ = false;
            ++shared;
        }
    }
    if (all_single_)
        return;
    if (touched_links_.size() <= kScanned)
        fill_by_scan();
    else
        fill_by_heap();
}

void Network::freeze_tied(Wide level) {
    for (const std::uint32_t t : tied_) {
        if ((t & kCap) != 0) {
            const Id id = set_[t & ~kCap];
            if (marks_[id] == epoch_)
                freeze(id, level);
            continue;
        }
        links_[t].next_saturated = true;
        const std::vector<Member>& members = members_[t];
        for (std::size_t m = 0; m < members.size(); ++m) {
            if (m + kAhead < members.size())
                __builtin_prefetch(&uses_[members[m + kAhead].use]);
            if (marks_[members[m].activity] == epoch_)
                freeze(members[m].activity, level);
        }
    }
}

// Few links: the lowest are found by looking at all. What was a link's level before others froze is a lower limit.
void Network::fill_by_scan() {
    heap_.resize(touched_links_.size());
    std::size_t open = 0;
    Wide last_room = -1, last_level = 0;
    std::int64_t last_demand = 0;
    for (const std::uint32_t l : touched_links_) {
        const Link& link = links_[l];
        if (link.demand <= 0)
            continue;
        if (link.room != last_room || link.demand != last_demand) {
            last_room = link.room;
            last_demand = link.demand;
            last_level = level_of(link);
        }
        heap_[open++] = {last_level, l, link.demand};
    }
    heap_.resize(open);
    for (std::uint32_t i = 0; i < set_.size(); ++i) {
        const Rate cap = activities_[set_[i]].cap;
        if (cap > 0 && marks_[set_[i]] == epoch_)
            heap_.push_back({(static_cast<Wide>(cap) << kLevelBits) / demands_[set_[i]].weight, kCap | i, 0});
    }
    for (;;) {
        Wide level = -1;
        tied_.clear();
        for (std::size_t i = 0; i < heap_.size();) {
            Level& candidate = heap_[i];
            if (level >= 0 && candidate.value > level) {
                ++i;
                continue;
            }
            const bool is_cap = (candidate.link & kCap) != 0;
            if (is_cap ? marks_[set_[candidate.link & ~kCap]] != epoch_ : links_[candidate.link].demand == 0) {
                candidate = heap_.back();
                heap_.pop_back();
                continue;
            }
            if (!is_cap && links_[candidate.link].demand != candidate.demand) {
                candidate.demand = links_[candidate.link].demand;
                candidate.value = level_of(links_[candidate.link]);
            }
            if (level < 0 || candidate.value < level) {
                level = candidate.value;
                tied_.clear();
            }
            if (candidate.value == level)
                tied_.push_back(candidate.link);
            ++i;
        }
        if (tied_.empty())
            return;
        freeze_tied(level);
    }
}

void Network::fill_by_heap() {
    const auto higher = [](const Level& a, const Level& b) { return a.value > b.value; };
    heap_.clear();
    for (const std::uint32_t l : touched_links_) {
        if (links_[l].demand > 0)
            heap_.push_back({level_of(links_[l]), l, 0});
    }
    for (std::uint32_t i = 0; i < set_.size(); ++i) {
        const Rate cap = activities_[set_[i]].cap;
        if (cap > 0 && marks_[set_[i]] == epoch_)
            heap_.push_back({(static_cast<Wide>(cap) << kLevelBits) / demands_[set_[i]].weight, kCap | i, 0});
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
                if (marks_[set_[candidate.link & ~kCap]] != epoch_)
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
        freeze_tied(level);
    }
}

// Links that became saturated and have users outside the set draw those in.
bool Network::grow() {
    const std::size_t before = set_.size();
    for (std::size_t i = 0; i < touched_links_.size(); ++i) {
        const Link& link = links_[touched_links_[i]];
        if (!link.next_saturated || link.saturated)
            continue;
        for (const Member& member : members_[touched_links_[i]])
            include(member.activity);
    }
    return set_.size() != before;
}

}  // namespace fabricast::engine
