#include "sim/campaign/condition_clock.hpp"

#include <algorithm>

namespace fabricast::campaign {
namespace {

using faults::Purpose;

constexpr double kSecondsPerDay = 86400;
constexpr std::uint64_t kCongestion = 1000, kFlap = 1001;  // entities beside the degradations' indices

double mean_gap(double per_day) { return per_day > 0 ? kSecondsPerDay / per_day : 0; }

}  // namespace

ConditionClock::ConditionClock(const CampaignSpec& spec, std::uint64_t seed) : spec_(spec.conditions) {
    const auto source = [&](std::uint64_t entity, double per_day) {
        Source s;
        s.arrivals = {seed, Purpose::degradation, entity};
        s.lasts = {seed, Purpose::degradation_end, entity};
        s.mean_gap_s = mean_gap(per_day);
        s.onset = 0;
        arrive(s);
        return s;
    };
    for (std::size_t i = 0; i < spec_.degradations.size(); ++i)
        degradations_.push_back(source(i, spec_.degradations[i].what.rate * spec.fleet.nodes));
    congestion_ = source(kCongestion, spec_.congestions_per_day);
    flaps_ = source(kFlap, spec_.flaps_per_day);
    find_next();
}

void ConditionClock::arrive(Source& source) {
    source.onset = source.mean_gap_s > 0
                       ? source.onset + nanoseconds(faults::exponential(source.mean_gap_s).at(source.arrivals.next()))
                       : kNever;
}

void ConditionClock::find_next() {
    next_ = {};
    const auto offer = [&](Nanoseconds time, Kind kind, std::uint32_t which) {
        if (time < next_.time)
            next_ = {.time = time, .kind = kind, .which = which};
    };
    for (std::uint32_t i = 0; i < degradations_.size(); ++i) {
        offer(degradations_[i].onset, Kind::degraded, i);
        for (const Nanoseconds end : degradations_[i].ends)
            offer(end, Kind::mended, i);
    }
    offer(congestion_.onset, Kind::congested, 0);
    for (const Nanoseconds end : congestion_.ends)
        offer(end, Kind::cleared, 0);
    offer(flaps_.onset, Kind::flap, 0);
    offer(leak_next_, Kind::leak, 0);
}

ConditionClock::Change ConditionClock::take() {
    Change change = next_;
    const auto begins = [&](Source& source, double lasts_s, std::uint32_t bit) {
        source.ends.push_back(change.time + std::max<Nanoseconds>(1, nanoseconds(lasts_s)));
        mask_ |= 1u << bit;
        arrive(source);
    };
    const auto ends = [&](Source& source, std::uint32_t bit) {
        source.ends.erase(std::min_element(source.ends.begin(), source.ends.end()));
        if (source.ends.empty())
            mask_ &= ~(1u << bit);
    };
    const auto congestion_bit = static_cast<std::uint32_t>(degradations_.size());
    switch (change.kind) {
        case Kind::degraded: {
            Source& source = degradations_[change.which];
            begins(source, spec_.degradations[change.which].what.until.at(source.lasts.next()), change.which);
            break;
        }
        case Kind::mended:
            ends(degradations_[change.which], change.which);
            change.drains = spec_.degradations[change.which].drains;
            break;
        case Kind::congested:
            begins(congestion_, faults::exponential(spec_.congestion_mean_s).at(congestion_.lasts.next()),
                   congestion_bit);
            break;
        case Kind::cleared: ends(congestion_, congestion_bit); break;
        case Kind::flap:
            change.stall = flap();
            arrive(flaps_);
            break;
        case Kind::leak: {
            ++leak_level_;
            const double days = static_cast<double>(leak_level_ + 1) * kLeakGrid / spec_.leak.per_day;
            leak_next_ = job_start_ + spec_.leak.free_for + nanoseconds(days * kSecondsPerDay);
            break;
        }
    }
    find_next();
    return change;
}

void ConditionClock::degrade(std::uint32_t which, Nanoseconds now, Nanoseconds lasts) {
    Source& source = degradations_[which];
    if (lasts == 0)
        lasts = std::max<Nanoseconds>(1, nanoseconds(spec_.degradations[which].what.until.at(source.lasts.next())));
    source.ends.push_back(now + lasts);
    mask_ |= 1u << which;
    find_next();
}

void ConditionClock::mend(std::uint32_t which) {
    Source& source = degradations_[which];
    if (source.ends.empty())
        return;
    source.ends.erase(std::min_element(source.ends.begin(), source.ends.end()));
    if (source.ends.empty())
        mask_ &= ~(1u << which);
    find_next();
}

void ConditionClock::job_started(Nanoseconds now) {
    if (spec_.leak.per_day <= 0)
        return;
    job_start_ = now;
    leak_level_ = 0;
    leak_next_ = now + spec_.leak.free_for + nanoseconds(kLeakGrid / spec_.leak.per_day * kSecondsPerDay);
    find_next();
}

}  // namespace fabricast::campaign
