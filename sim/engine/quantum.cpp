// Network: what a quantum puts off, and by how much.
#include <algorithm>

#include "sim/engine/network.hpp"

namespace fabricast::engine {

// When a link may be solved again; of a start the latest of its links that carry others.
Picoseconds Network::due(Id id) const {
    Picoseconds latest = -quantum_;
    for (const Use& use : uses(id)) {
        if (links_[use.link].load > 0)
            latest = std::max(latest, solved_[use.link] + quantum_);
    }
    return latest;
}

// Keeps in dirty_links_ and new_activities_ what may be solved now, of what changed at this instant and of what was put
// off before. False when that is nothing.
bool Network::may_solve(Picoseconds now) {
    const bool look_back = tick_due_;
    tick_due_ = false;
    Picoseconds earliest = INT64_MAX;
    std::size_t kept = 0;
    for (const std::uint32_t l : dirty_links_) {
        if (solved_[l] + quantum_ > now) {
            put_off_.push_back(l);
            earliest = std::min(earliest, solved_[l] + quantum_);
        } else {
            dirty_links_[kept++] = l;
        }
    }
    if (kept < dirty_links_.size())
        batching_.put_off += ended_;
    dirty_links_.resize(kept);
    ended_ = 0;
    std::erase_if(new_activities_, [&](Id id) {
        const Picoseconds until = due(id);
        if (until <= now)
            return false;
        earliest = std::min(earliest, until);
        waiting_.push_back(id);
        return true;
    });
    if (look_back) {
        std::erase_if(put_off_, [&](std::uint32_t l) {
            if (links_[l].dirty && solved_[l] + quantum_ > now)
                return false;
            if (links_[l].dirty)
                dirty_links_.push_back(l);
            return true;
        });
        std::erase_if(waiting_, [&](Id id) {
            if (due(id) > now)
                return false;
            new_activities_.push_back(id);
            return true;
        });
    }
    if (!dirty_links_.empty() || !new_activities_.empty())
        return true;
    if (look_back)
        set_tick(now);
    else
        set_tick(earliest, now);
    return false;
}

// Those that wait for a link of this solve, or were drawn in over a full one, wait no longer.
bool Network::include_waiting() {
    const std::size_t before = set_.size();
    std::erase_if(waiting_, [&](Id id) {
        const std::span<const Use> all = uses(id);
        const bool touched = marks_[id] >= epoch_ || std::any_of(all.begin(), all.end(), [&](const Use& use) {
                                 return links_[use.link].mark == epoch_;
                             });
        if (touched)
            include(id);
        return touched;
    });
    return set_.size() != before;
}

void Network::end_waits(Picoseconds now) {
    for (const std::uint32_t l : touched_links_)
        solved_[l] = now;
    for (const Id id : set_) {
        Activity& activity = activities_[id];
        if (rates_[id].now != 0 || activity.updated == now)
            continue;
        activity.late = now - activity.updated;
        activity.slowed = true;
        ++batching_.held;
        batching_.longest = std::max(batching_.longest, activity.late);
        Component& component = components_[component_of(id)];
        component.longest_wait = std::max(component.longest_wait, activity.late);
        lose(id, static_cast<Wide>(rates_[id].next) * activity.late);
    }
}

// What changed the rate happened within the window that ends now. The smaller rate counts for all of it.
void Network::shift_change(Id id, Rate before, Picoseconds passed, Picoseconds now) {
    Activity& activity = activities_[id];
    if (activity.component == kNone)
        return;
    Picoseconds window = components_[component_of(id)].longest_wait;
    if (const Picoseconds first_end = groups_[activity.component].first_end; first_end != kUnknown)
        window = std::max(window, now - first_end);
    batching_.longest = std::max(batching_.longest, window);
    window = std::min(window, passed);
    const Rate after = rates_[id].now;
    if (after < before)
        activity.remaining += static_cast<Wide>(before - after) * window;
    const Wide behind = static_cast<Wide>(after < before ? before - after : after - before) * window;
    activity.late += static_cast<Picoseconds>((behind + after - 1) / after);
    lose(id, behind);
}

// work: rate units x ps of this activity that its links could have moved in the time that a wait took.
void Network::lose(Id id, Wide work) {
    for (const Use& use : uses(id))
        lost_[use.link] += work * static_cast<Wide>(use.coefficient);
}

std::vector<Picoseconds> Network::lost_times() const {
    std::vector<Picoseconds> times(lost_.size());
    for (std::size_t l = 0; l < lost_.size(); ++l)
        times[l] = static_cast<Picoseconds>(lost_[l] / (static_cast<Wide>(links_[l].capacity) << 16)) + (lost_[l] > 0);
    return times;
}

// One that ends before the solve that would have given it a share of what others left.
Picoseconds Network::unsolved(const Activity& activity) const {
    if (activity.component == kNone || activity.finish == kUnknown)
        return 0;
    const Picoseconds first_end = groups_[activity.component].first_end;
    return first_end == kUnknown ? 0 : std::max<Picoseconds>(0, activity.finish - first_end);
}

void Network::leave_group(const Activity& activity) {
    if (activity.component == kNone || --groups_[activity.component].members > 0)
        return;
    groups_[activity.component] = {};
    free_groups_.push_back(activity.component);
}

void Network::note_completion(Id id) {
    const Activity& activity = activities_[id];
    ++batching_.completions;
    ++ended_;
    if (activity.component == kNone)
        return;
    if (const Picoseconds window = unsolved(activity); window > 0)
        lose(id, static_cast<Wide>(rates_[id].now) * window);
    Picoseconds& first_end = groups_[activity.component].first_end;
    if (activity.finish != kUnknown && (first_end == kUnknown || activity.finish < first_end))
        first_end = activity.finish;
    leave_group(activity);
}

// The components as this solve leaves them.
void Network::regroup() {
    for (const Id id : set_) {
        Activity& activity = activities_[id];
        leave_group(activity);
        std::uint32_t& group = components_[component_of(id)].group;
        if (group == kNone) {
            if (free_groups_.empty()) {
                free_groups_.push_back(static_cast<std::uint32_t>(groups_.size()));
                groups_.emplace_back();
            }
            group = free_groups_.back();
            free_groups_.pop_back();
        }
        activity.component = group;
        ++groups_[group].members;
    }
}

void Network::set_tick(Picoseconds now) {
    Picoseconds earliest = INT64_MAX;
    for (const std::uint32_t l : put_off_) {
        if (links_[l].dirty && !members_[l].empty())
            earliest = std::min(earliest, solved_[l] + quantum_);
    }
    for (const Id id : waiting_)
        earliest = std::min(earliest, due(id));
    tick_ = INT64_MAX;
    ++tick_version_;
    set_tick(earliest, now);
}

void Network::set_tick(Picoseconds at, Picoseconds now) {
    if (at >= tick_)
        return;
    tick_ = std::max(at, now);
    ++tick_version_;
    look_at_.push_back(kTick);
}

}  // namespace fabricast::engine
