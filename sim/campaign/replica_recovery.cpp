// The way back of a job: detection, nodes, restart, load; planned stops; replicas that go on without each other.
#include <algorithm>

#include "models/compute/math.hpp"
#include "models/compute/spread.hpp"
#include "sim/campaign/replica.hpp"

namespace fabricast::campaign {
namespace {

constexpr std::uint32_t kStuckAfter = 500;  // restarts in a row from one and the same step

}  // namespace

void Replica::stop_by(Hit hit) {
    if (spec_.recovery.style == Style::replicas && replicas_down() + 1 < spec_.recovery.replicas)
        return lose_replica(hit);
    recover(hit);
    started();
}

void Replica::recover(Hit hit) {
    const Hit first = hit;
    const Nanoseconds fault = now_, lost = progress_.lost();
    planned_ = false;
    broken_ = hit.component;
    const std::int64_t reached = progress_.steps();
    result_.longest_run = std::max(result_.longest_run, now_ - run_since_);
    note(Kind::fault, hit.node, hit.component);
    ++result_.recovered;
    const bool copies = spec_.checkpoint.mode == SaveMode::memory;
    copies_live_ = copies;
    if (copies)
        progress_.back_to_copy();
    else
        progress_.back_to_save(now_);
    for (;;) {
        detect(hit);
        if (const std::optional<Hit> again = bring_back(false)) {
            // The second node may be the one that held the copies of the first.
            if (copies_live_ && spec_.fleet.components[again->component].node_leaves && spec_.fleet.nodes > 1 &&
                recoveries_.next() * (spec_.fleet.nodes - 1) < 1) {
                copies_live_ = false;
                progress_.back_to_save(now_);
            }
            note(Kind::fault, again->node, again->component);
            ++result_.recovered;
            hit = *again;
            broken_ = hit.component;
            continue;
        }
        const double recurs = spec_.fleet.components[hit.component].recurs;
        if (recurs <= 0 || recoveries_.next() >= recurs)
            break;
        ++result_.recurred;
    }
    std::fill(replica_back_.begin(), replica_back_.end(), 0);
    result_.recovering += now_ - fault;
    result_.lost_to_faults += progress_.lost() - lost;
    charge(first, fault, lost);
    note(Kind::recovered, hit.node, hit.component, now_ - fault, reached - progress_.steps());
}

// A job that is dead already cannot die again: further hits only take nodes away.
void Replica::detect(const Hit& hit) {
    const RecoverySpec& r = spec_.recovery;
    const faults::Shows shows = spec_.fleet.components[hit.component].shows;
    const Nanoseconds length = shows == faults::Shows::hang        ? r.detect_hang
                               : shows == faults::Shows::transport ? r.detect_transport
                                                                   : r.detect_crash;
    const Nanoseconds end = std::min({now_ + length, next_restart(), spec_.horizon});
    while (now_ < end)
        if (const std::optional<Hit> also = stand(Spent::detection, end - now_)) {
            note(Kind::fault, also->node, also->component);
            ++result_.recovered;
        }
}

// When somebody restarts the job, from now on.
Nanoseconds Replica::next_restart() const {
    for (std::size_t i = scheduled_; i < spec_.scheduled.size(); ++i)
        if (spec_.scheduled[i].kind == ScheduledFault::Kind::restart && spec_.scheduled[i].time >= now_)
            return spec_.scheduled[i].time;
    return kNever;
}

std::optional<Replica::Hit> Replica::wait_for_nodes() {
    return_nodes(now_);
    bool told = false;
    while (!pool_.fill()) {
        const bool can_shrink = spec_.recovery.style == Style::shrink && pool_.missing() < spec_.recovery.replicas;
        if (can_shrink)
            return {};
        if (!told)
            note(Kind::none_left, kNobody, 0);
        told = true;
        if (now_ >= spec_.horizon)
            return {};
        const Nanoseconds wait = std::min(pool_.next_return(), spec_.horizon) - now_;
        if (const std::optional<Hit> hit = stand(Spent::waiting, wait))
            return hit;
        return_nodes(now_);
    }
    return {};
}

// Until the first new step. A hit means that it was for nothing.
std::optional<Replica::Hit> Replica::bring_back(bool planned) {
    const RecoverySpec& r = spec_.recovery;
    const bool swaps = pool_.missing() > 0;
    const bool warm = r.style == Style::hot_spare && !planned && pool_.missing() <= pool_.free();
    if (const std::optional<Hit> hit = wait_for_nodes())
        return hit;
    Nanoseconds length = r.communicators + (planned ? 0 : r.locate);
    if (!warm)
        length += r.start + (swaps ? r.swap : 0);
    if (r.spread > 0 && !planned) {
        const double z = normal_quantile(recoveries_.next());
        length = nanoseconds(seconds_of(length) * math::exp(r.spread * z));
    }
    if (const std::optional<Hit> hit = stand(Spent::restart, length))
        return hit;
    if (progress_.steps() == 0)
        return {};  // nothing to load
    return stand(Spent::load, copies_live_ && !planned ? spec_.checkpoint.memory_load : spec_.checkpoint.load);
}

void Replica::started() {
    run_since_ = now_;
    planned_ = true;
    broken_ = kNobody;
    conditions_.job_started(now_);
    alert_ = 0;
    alarm_step_ = INT64_MAX;
    if (alarm_chance_ > 0) {
        const double u = saves_.next();
        const double until = alarm_chance_ >= 1 ? 0 : math::log(1 - u) / math::log(1 - alarm_chance_);
        alarm_step_ = progress_.save_step_after(1 + static_cast<std::int64_t>(std::min(until, 1e9)));
    }
    if (progress_.steps() > fruit_) {
        fruit_ = progress_.steps();
        fruitless_ = 0;
    } else if (++fruitless_ >= kStuckAfter) {
        result_.outcome = Outcome::stuck;
    }
}

// The save blocks longer than the watchdog waits: the job is killed in it, and comes back from the save before.
void Replica::false_alarm() {
    ++result_.false_alarms;
    planned_ = false;
    note(Kind::false_alarm, kNobody, 0);
    progress_.back_to_save(now_);
    copies_live_ = false;
    std::optional<Hit> hit = stand(Spent::false_alarm, spec_.watchdog.time_out + spec_.watchdog.save_grace);
    if (!hit)
        hit = bring_back(false);
    if (hit)
        recover(*hit);
    started();
}

void Replica::planned_stop(Spent why, Nanoseconds length, bool saves) {
    ++result_.planned_stops;
    result_.longest_run = std::max(result_.longest_run, now_ - run_since_);
    std::optional<Hit> hit;
    if (saves && spec_.checkpoint.mode != SaveMode::none) {
        progress_.drop_step();
        hit = stand(Spent::save, spec_.checkpoint.block + spec_.checkpoint.write);
        if (!hit)
            progress_.save_here();
    }
    if (!hit) {
        progress_.back_to_save(now_);
        copies_live_ = false;
        const Nanoseconds end = std::min(now_ + length, spec_.horizon);
        while (now_ < end)
            stand(why, end - now_);  // nobody runs: hits take nodes away only
        hit = bring_back(true);
    }
    if (hit)
        recover(*hit);
    started();
}

std::uint32_t Replica::replicas_down() const {
    return static_cast<std::uint32_t>(
        std::count_if(replica_back_.begin(), replica_back_.end(), [](Nanoseconds back) { return back > 0; }));
}

// The replica comes back by itself: the others stand still twice for a change of membership and lose one step.
void Replica::lose_replica(Hit hit) {
    const RecoverySpec& r = spec_.recovery;
    const faults::Component& component = spec_.fleet.components[hit.component];
    const std::uint32_t replica = hit.node % r.replicas;
    note(Kind::replica_left, hit.node, hit.component);
    const Nanoseconds left = now_, lost = progress_.lost();
    progress_.drop_step();
    Nanoseconds back = now_ + r.locate + r.start + r.communicators + spec_.checkpoint.load;
    back += component.shows == faults::Shows::hang        ? r.detect_hang
            : component.shows == faults::Shows::transport ? r.detect_transport
                                                          : r.detect_crash;
    if (component.node_leaves) {
        back += r.swap;
        return_nodes(now_);
        if (!pool_.fill())
            back += std::max<Nanoseconds>(0, pool_.next_return() - now_);
    }
    replica_back_[replica] = std::max(replica_back_[replica], back);
    const std::optional<Hit> also = stand_for_membership();
    charge(hit, left, lost);
    if (also)
        stop_by(*also);
}

void Replica::replica_comes_back() {
    for (std::uint32_t i = 0; i < replica_back_.size(); ++i) {
        if (replica_back_[i] == 0 || replica_back_[i] > now_)
            continue;
        replica_back_[i] = 0;
        pool_.fill();
        note(Kind::replica_back, kNobody, i);
        if (const std::optional<Hit> hit = stand_for_membership())
            return stop_by(*hit);
    }
}

std::optional<Replica::Hit> Replica::stand_for_membership() {
    membership_ = true;
    const std::optional<Hit> hit = stand(Spent::stall, spec_.recovery.membership);
    membership_ = false;
    return hit;
}

// The job runs on with wrong numbers until somebody sees it; then everything since is worth nothing.
void Replica::corrupted(const Hit& hit) {
    if (corruption_found_ < kNever)
        return;
    corruption_ = hit;
    corrupt_step_ = progress_.steps();
    note(Kind::fault, hit.node, hit.component);
    const double delay = faults::exponential(spec_.recovery.detect_silent_mean_s).at(recoveries_.next());
    corruption_found_ = now_ + nanoseconds(delay);
}

void Replica::found_corruption() {
    corruption_found_ = kNever;
    planned_ = false;
    ++result_.stops;
    ++result_.stops_by[corruption_.component];
    note(Kind::silent_found, corruption_.node, corruption_.component);
    result_.longest_run = std::max(result_.longest_run, now_ - run_since_);
    if (pool_.state(corruption_.node) == NodeState::job)
        send_away(corruption_);
    const Nanoseconds found = now_, lost = progress_.lost();
    progress_.back_to_save(now_, corrupt_step_);
    copies_live_ = false;
    const std::optional<Hit> hit = bring_back(false);
    charge(corruption_, found, lost);
    if (hit)
        recover(*hit);
    started();
}

// The loss is not a number from here on: the job goes back to the last save and skips the sample. Nobody is replaced. Where
// all of it is worth nothing, the last good step is 0.
void Replica::poisoned(std::int64_t last_good) {
    note(last_good == 0 ? Kind::from_zero : Kind::poisoned, kNobody, 0);
    planned_ = false;
    result_.longest_run = std::max(result_.longest_run, now_ - run_since_);
    progress_.back_to_save(now_, last_good);
    copies_live_ = false;
    fruit_ = std::min(fruit_, last_good);
    if (const std::optional<Hit> hit = bring_back(true))
        recover(*hit);
    started();
}

void Replica::return_nodes(Nanoseconds until) {
    while (pool_.next_return() <= until) {
        const Nanoseconds back = pool_.next_return();
        strikes_.repaired(pool_.take_back(), back);
    }
}

}  // namespace fabricast::campaign
