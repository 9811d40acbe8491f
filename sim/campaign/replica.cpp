#include "sim/campaign/replica.hpp"

#include <algorithm>

namespace fabricast::campaign {
namespace {

using faults::Draws;
using faults::Purpose;

}  // namespace

Replica::Replica(const CampaignSpec& spec, StepTimes& steps, std::uint64_t seed, bool record)
    : spec_(spec),
      times_(steps),
      strikes_(spec.fleet, seed),
      conditions_(spec, seed),
      pool_(spec.fleet.nodes, spec.fleet.spares),
      progress_(spec.checkpoint, spec.events),
      components_(seed, Purpose::component),
      repairs_(seed, Purpose::repair),
      recoveries_(seed, Purpose::recovery),
      saves_(seed, Purpose::save),
      queue_(seed, Purpose::queue),
      component_total_(spec.fleet.rate()),
      record_(record),
      maintenance_(spec.events.maintenance_every),
      limit_(spec.events.time_limit) {
    std::int64_t end = 0;
    for (const Phase& phase : spec.phases)
        phase_end_.push_back(end += phase.steps);
    const CheckpointSpec& c = spec.checkpoint;
    if (c.mode != SaveMode::none && spec.watchdog.time_out < kNever && c.block > 0)
        alarm_chance_ = faults::log_normal(seconds_of(c.block), c.spread)
                            .above(seconds_of(spec.watchdog.time_out + spec.watchdog.save_grace));
    if (spec.recovery.style == Style::replicas)
        replica_back_.resize(spec.recovery.replicas, 0);
    result_.stops_by.resize(spec.fleet.components.size(), 0);
    result_.lost_by.resize(spec.fleet.components.size(), 0);
}

ReplicaResult Replica::run() {
    if (const std::optional<Hit> hit = bring_back(true))
        recover(*hit);
    started();
    while (!over()) {
        run_until(next_event());
        if (!over())
            handle_event();
    }
    if (result_.outcome != Outcome::stuck)
        result_.outcome = progress_.steps() >= phase_end_.back() ? Outcome::done : Outcome::horizon;
    result_.wall = now_;
    result_.steps = progress_.steps();
    result_.saves = progress_.saves();
    result_.longest_run = std::max(result_.longest_run, now_ - run_since_);
    const auto add = [&](Spent spent, Nanoseconds time) { result_.spent[static_cast<std::size_t>(spent)] += time; };
    add(Spent::steps, progress_.kept());
    add(Spent::lost, progress_.lost());
    add(Spent::save, progress_.saving());
    add(Spent::evaluation, progress_.evaluating());
    std::int64_t before = 0;
    for (std::size_t i = 0; i < phase_end_.size(); ++i) {
        const std::int64_t done = std::clamp(progress_.steps(), before, phase_end_[i]) - before;
        result_.tokens += static_cast<double>(done) * spec_.phases[i].tokens_per_step;
        before = phase_end_[i];
    }
    return result_;
}

bool Replica::over() const {
    return progress_.steps() >= phase_end_.back() || now_ >= spec_.horizon || result_.outcome == Outcome::stuck;
}

Nanoseconds Replica::next_event() const {
    Nanoseconds next = std::min({strikes_.peek().time, conditions_.next(), pool_.next_return(), maintenance_, limit_,
                                 corruption_found_, spec_.horizon});
    if (scheduled_ < spec_.scheduled.size())
        next = std::min(next, spec_.scheduled[scheduled_].time);
    for (const Nanoseconds back : replica_back_)
        if (back > 0)
            next = std::min(next, back);
    return next;
}

// Phases and saves that look like hangs are known by step, everything else by time.
void Replica::run_until(Nanoseconds time) {
    while (now_ < time && !over()) {
        while (progress_.steps() >= phase_end_[phase_])
            ++phase_;
        while (phase_ > 0 && progress_.steps() < phase_end_[phase_ - 1])
            --phase_;
        const std::int64_t before = progress_.steps();
        if (before == alarm_step_)
            return false_alarm();
        const Nanoseconds step = step_time();
        const std::int64_t limit = std::min(phase_end_[phase_], alarm_step_);
        if (record_) {
            const Progress at_begin = progress_;
            const Nanoseconds begin = now_;
            now_ += progress_.run(now_, time - now_, step, limit);
            keep_running(at_begin, begin, step, limit);
        } else {
            now_ += progress_.run(now_, time - now_, step, limit);
        }
        const Nanoseconds healthy = times_.step({spec_.phases[phase_].key, 0});
        result_.slow += (progress_.steps() - before) * (step - healthy);
    }
}

Nanoseconds Replica::step_time() const {
    Nanoseconds step = conditions_.leaking(times_.step({spec_.phases[phase_].key, conditions_.mask()}));
    const auto replicas = static_cast<Nanoseconds>(spec_.recovery.replicas);
    const Nanoseconds down = spec_.recovery.style == Style::shrink ? static_cast<Nanoseconds>(pool_.missing())
                                                                   : static_cast<Nanoseconds>(replicas_down());
    if (down > 0)
        step = step * replicas / std::max<Nanoseconds>(1, replicas - down);
    return step;
}

// Whatever is due now, the fatal first. Events that fell into a recovery are late and come at once.
void Replica::handle_event() {
    if (strikes_.peek().time <= now_) {
        if (const std::optional<Hit> hit = take_strike())
            stop_by(*hit);
    } else if (pool_.next_return() <= now_) {
        return_nodes(now_);
        if (spec_.recovery.style == Style::shrink && pool_.missing() > 0)
            planned_stop(Spent::restart, 0, true);
    } else if (corruption_found_ <= now_) {
        found_corruption();
    } else if (scheduled_ < spec_.scheduled.size() && spec_.scheduled[scheduled_].time <= now_) {
        scheduled_fault();
    } else if (conditions_.next() <= now_) {
        change_condition();
    } else if (maintenance_ <= now_) {
        maintenance_ = now_ + spec_.events.maintenance_every;
        note(Kind::maintenance, kNobody, 0);
        planned_stop(Spent::maintenance, spec_.events.maintenance, spec_.events.final_save);
    } else if (limit_ <= now_) {
        note(Kind::limit, kNobody, 0);
        planned_stop(Spent::queue, nanoseconds(spec_.events.requeue.at(queue_.next())), spec_.events.final_save);
        limit_ = now_ + spec_.events.time_limit;
    } else {
        replica_comes_back();
    }
}

void Replica::change_condition() {
    const ConditionClock::Change change = conditions_.take();
    using Change = ConditionClock::Kind;
    switch (change.kind) {
        case Change::degraded:
            ++result_.degradations;
            note(Kind::degraded, kNobody, change.which);
            break;
        case Change::mended:
            note(Kind::mended, kNobody, change.which);
            if (change.drains)
                planned_stop(Spent::restart, spec_.recovery.swap, true);
            break;
        case Change::congested: note(Kind::congested, kNobody, 0); break;
        case Change::cleared: note(Kind::cleared, kNobody, 0); break;
        case Change::flap:
            if (const std::optional<Hit> hit = stand(Spent::stall, change.stall))
                stop_by(*hit);
            break;
        case Change::leak: break;
    }
    watch_step_time();
}

void Replica::scheduled_fault() {
    const ScheduledFault fault = spec_.scheduled[scheduled_++];
    switch (fault.kind) {
        case ScheduledFault::Kind::stop:
            if (pool_.state(fault.node) != NodeState::job)
                return;  // away already
            ++result_.stops;
            ++result_.stops_by[fault.which];
            send_away({fault.which, fault.node});
            return stop_by({fault.which, fault.node});
        case ScheduledFault::Kind::slow:
            ++result_.degradations;
            note(Kind::degraded, fault.node, fault.which);
            conditions_.degrade(fault.which, now_, fault.lasts);
            return watch_step_time();
        case ScheduledFault::Kind::stall:
            if (const std::optional<Hit> hit = stand(Spent::stall, fault.lasts > 0 ? fault.lasts : conditions_.flap()))
                stop_by(*hit);
            return;
        case ScheduledFault::Kind::poisoned: return poisoned(INT64_MAX);
        case ScheduledFault::Kind::from_zero: return poisoned(0);
        case ScheduledFault::Kind::restart: {
            const bool swaps = fault.which != ScheduledFault::kNothing;
            if (!swaps && fault.time < run_since_)
                return;  // the job was on its way back and has started since
            if (swaps) {
                conditions_.mend(fault.which);
                note(Kind::mended, kNobody, fault.which);
            }
            return planned_stop(Spent::restart, swaps ? spec_.recovery.swap : 0, true);
        }
    }
}

// The rules of a monitor that compares with the healthy cluster's step; an alert stands until the step is below again.
void Replica::watch_step_time() {
    const Nanoseconds healthy = times_.step({spec_.phases[phase_].key, 0});
    const double ratio = static_cast<double>(step_time()) / static_cast<double>(healthy);
    const int alert = ratio >= spec_.conditions.critical ? 2 : ratio >= spec_.conditions.warning ? 1 : 0;
    if (alert >= 1 && alert_ < 1) {
        ++result_.warnings;
        result_.first_warning = std::min(result_.first_warning, now_);
        note(Kind::warning, kNobody, 0);
    }
    if (alert == 2 && alert_ < 2) {
        ++result_.criticals;
        result_.first_critical = std::min(result_.first_critical, now_);
        note(Kind::critical, kNobody, 0);
    }
    const bool crossed = alert == 2 && alert_ < 2;
    alert_ = alert;
    if (crossed && spec_.conditions.restart_when_critical)
        planned_stop(Spent::restart, 0, true);
}

std::uint32_t Replica::draw_component() {
    double at = components_.next() * component_total_;
    const auto count = static_cast<std::uint32_t>(spec_.fleet.components.size());
    for (std::uint32_t i = 0; i + 1 < count; ++i) {
        at -= spec_.fleet.components[i].rate;
        if (at < 0)
            return i;
    }
    return count - 1;
}

// Takes the next strike; a hit when it stops the job. Nodes that are away are not struck; spares are, by what nodes leave for.
std::optional<Replica::Hit> Replica::take_strike() {
    const FleetClock::Strike strike = strikes_.peek();
    strikes_.pop();
    const std::uint32_t which = draw_component();
    const NodeState state = pool_.state(strike.node);
    const faults::Component& component = spec_.fleet.components[which];
    if (state == NodeState::away || (state == NodeState::spare && !component.node_leaves))
        return {};
    if (component.shows == faults::Shows::silent && state == NodeState::job) {
        corrupted({which, strike.node});
        return {};
    }
    send_away({which, strike.node});
    if (state == NodeState::spare) {
        ++result_.spare_faults;
        note(Kind::spare_fault, strike.node, which);
        return {};
    }
    ++result_.stops;
    ++result_.stops_by[which];
    return Hit{which, strike.node};
}

void Replica::send_away(const Hit& hit) {
    const faults::Component& component = spec_.fleet.components[hit.component];
    if (component.node_leaves)
        pool_.leave(hit.node, now_ + nanoseconds(component.repair.at(repairs_.next())));
}

void Replica::spend(Spent why, Nanoseconds length) {
    result_.spent[static_cast<std::size_t>(why)] += length;
    now_ += length;
    if (record_ && length > 0)
        keep_standing(why, now_ - length);
}

void Replica::keep_standing(Spent why, Nanoseconds begin) {
    Stretch& s = result_.stretches.emplace_back();
    s.begin = begin;
    s.end = now_;
    s.why = why;
    s.planned = planned_;
    s.membership = membership_;
    s.component = broken_;
    s.job_start = run_since_;
    s.key = spec_.phases[phase_].key;
    s.degraded = conditions_.mask();
    s.leak = conditions_.leak();
    s.progress = progress_;
}

void Replica::keep_running(const Progress& before, Nanoseconds begin, Nanoseconds step, std::int64_t limit) {
    if (now_ == begin)
        return;
    keep_standing(Spent::steps, begin);
    Stretch& s = result_.stretches.back();
    s.step = step;
    s.limit = limit;
    s.progress = before;
}

// Passes time in which no step is done, or what of it passes before the job is hit.
std::optional<Replica::Hit> Replica::stand(Spent why, Nanoseconds length) {
    length = std::clamp<Nanoseconds>(spec_.horizon - now_, 0, length);
    if (!spec_.fleet.strikes_while_down) {
        strikes_.shift(length);
        spend(why, length);
        return {};
    }
    const Nanoseconds end = now_ + length;
    while (strikes_.peek().time < end) {
        const Nanoseconds at = std::max(now_, strikes_.peek().time);
        spend(why, at - now_);
        if (const std::optional<Hit> hit = take_strike())
            return hit;
    }
    spend(why, end - now_);
    return {};
}

void Replica::note(Kind kind, std::uint32_t node, std::uint32_t which, Nanoseconds lasted, std::int64_t lost) {
    if (record_)
        result_.incidents.push_back({now_, kind, node, which, lasted, lost, progress_.steps()});
}

void Replica::charge(const Hit& hit, Nanoseconds since, Nanoseconds lost_before) {
    result_.lost_by[hit.component] += now_ - since + progress_.lost() - lost_before;
}

}  // namespace fabricast::campaign
