#include "sim/campaign/fleet_clock.hpp"

#include <algorithm>

namespace fabricast::campaign {
namespace {

using faults::Draws;
using faults::Purpose;

constexpr double kSecondsPerDay = 86400;

}  // namespace

FleetClock::FleetClock(const FleetSpec& spec, std::uint64_t seed)
    : spec_(spec),
      count_(spec.nodes + spec.spares),
      renewal_(spec.life_shape != 1),
      gaps_(seed, Purpose::fleet_gap),
      picks_(seed, Purpose::fleet_node),
      followers_(seed, Purpose::follow_up),
      cures_(seed, Purpose::repair, ~std::uint64_t{0}) {
    if (spec.burst_cv > 1)
        burst_ = 1 - 2 / (spec.burst_cv * spec.burst_cv + 1);
    draw_rates(seed);
    if (renewal_)
        start_lives(seed);
    next_primary();
    find_next();
}

// The mean over the fleet is 1 before lemons; lemons come on top.
void FleetClock::draw_rates(std::uint64_t seed) {
    double sum = count_;
    const bool lemons = spec_.lemons.share > 0 && spec_.lemons.factor != 1;
    if (spec_.node_spread > 0 || lemons) {
        const faults::Distribution spread = faults::log_normal(1, spec_.node_spread);
        cumulative_.resize(count_, 1);
        if (spec_.node_spread > 0) {
            sum = 0;
            for (std::uint32_t node = 0; node < count_; ++node)
                sum += cumulative_[node] = spread.at(Draws(seed, Purpose::node_rate, node).next());
        }
        if (lemons)
            lemon_.resize(count_, 0);
        double total = 0;
        for (std::uint32_t node = 0; node < count_; ++node) {
            double rate = cumulative_[node] * count_ / sum;
            if (lemons) {
                Draws draw(seed, Purpose::node_rate, node);
                draw.next();
                lemon_[node] = draw.next() < spec_.lemons.share;
                rate *= lemon_[node] ? spec_.lemons.factor : 1;
            }
            cumulative_[node] = total += rate;
        }
        sum = total;
    }
    rate_ = spec_.rate() / kSecondsPerDay * sum * (1 - burst_);
}

void FleetClock::start_lives(std::uint64_t seed) {
    life_draws_.reserve(count_);
    generation_.resize(count_, 0);
    if (spec_.rate() <= 0)
        return;
    for (std::uint32_t node = 0; node < count_; ++node) {
        life_draws_.emplace_back(seed, Purpose::node_life, node);
        double end = life(node);
        if (spec_.aged) {
            constexpr double kMeans = 20;
            const double before = kMeans * kSecondsPerDay / spec_.rate();
            for (end -= before; end < 0;)
                end += life(node);
        }
        lives_.push({end, node, 0});
    }
}

double FleetClock::life(std::uint32_t node) {
    double rate = 1;
    if (!cumulative_.empty())
        rate = cumulative_[node] - (node > 0 ? cumulative_[node - 1] : 0);
    if (!lemon_.empty() && lemon_[node] == 2)
        rate /= spec_.lemons.factor;
    const double mean = kSecondsPerDay / (spec_.rate() * (1 - burst_) * rate);
    return faults::weibull(mean, spec_.life_shape).at(life_draws_[node].next());
}

std::uint32_t FleetClock::pick() {
    if (cumulative_.empty())
        return picks_.below(count_);
    const double at = picks_.next() * cumulative_.back();
    const auto found = std::upper_bound(cumulative_.begin(), cumulative_.end(), at);
    return static_cast<std::uint32_t>(std::min<std::ptrdiff_t>(found - cumulative_.begin(), count_ - 1));
}

void FleetClock::next_primary() {
    primary_ = {};
    if (rate_ <= 0)
        return;
    if (renewal_) {
        while (!lives_.empty() && lives_.top().generation != generation_[lives_.top().node])
            lives_.pop();
        if (!lives_.empty()) {
            hazard_ = lives_.top().end;
            primary_ = {nanoseconds(hazard_) + offset_, lives_.top().node};
        }
        return;
    }
    for (;;) {
        hazard_ += faults::exponential(1 / rate_).at(gaps_.next());
        primary_ = {nanoseconds(spec_.infant.when(hazard_)) + offset_, pick()};
        // A cured lemon is struck as seldom as a good node: thin its strikes.
        if (lemon_.empty() || lemon_[primary_.node] != 2 || picks_.next() * spec_.lemons.factor < 1)
            return;
    }
}

void FleetClock::find_next() {
    next_ = primary_;
    next_follows_ = false;
    if (following_.empty())
        return;
    const auto first = std::min_element(following_.begin(), following_.end(),
                                        [](const Strike& a, const Strike& b) { return a.time < b.time; });
    if (first->time < next_.time) {
        next_ = *first;
        next_follows_ = true;
    }
}

void FleetClock::pop() {
    const Strike struck = next_;
    if (next_follows_) {
        following_.erase(std::min_element(following_.begin(), following_.end(),
                                          [](const Strike& a, const Strike& b) { return a.time < b.time; }));
    } else if (renewal_) {
        lives_.pop();
        const std::uint32_t node = struck.node;
        lives_.push({hazard_ + life(node), node, generation_[node]});
    }
    if (burst_ > 0 && followers_.next() < burst_) {
        const double gap = faults::exponential(spec_.burst_gap_s).at(followers_.next());
        const Nanoseconds time = struck.time + nanoseconds(gap);
        following_.push_back({time, followers_.below(count_)});
    }
    if (!next_follows_)
        next_primary();
    find_next();
}

void FleetClock::repaired(std::uint32_t node, Nanoseconds now) {
    if (!lemon_.empty() && lemon_[node] == 1 && cures_.next() < spec_.lemons.cured)
        lemon_[node] = 2;
    if (!renewal_ || spec_.rate() <= 0)
        return;
    ++generation_[node];
    lives_.push({seconds_of(now - offset_) + life(node), node, generation_[node]});
    next_primary();
    find_next();
}

void FleetClock::shift(Nanoseconds time) {
    offset_ += time;
    if (primary_.time < kNever)
        primary_.time += time;
    for (Strike& strike : following_)
        strike.time += time;
    find_next();
}

}  // namespace fabricast::campaign
