// When which node of a fleet fails next.
//
// Exponential lives: one Poisson process of the whole fleet, rate = sum of node rates; a strike picks a node in proportion to
// its rate. Other lives (Weibull, mean 1 / rate): every node renews at its own repairs and at nothing else, so ages are kept
// when another node fails; lives of an aged fleet began twenty means ago.
// Bursts: each fault brings another on a node at random with probability b = 1 - 2 / (cv^2 + 1) after an exponential gap;
// primary faults are rarer by 1 - b, so that the rate is as stated. For gaps much shorter than those between primary faults the
// coefficient of variation of all gaps is cv (hyper-exponential with a vanishing branch).
// Lemons: nodes that strike `factor` times as often, until a repair cures them (exponential lives; under renewal their lives
// are shorter by it).
//
// What a strike on a node that is away means is the caller's business (nothing). Same strikes whatever the caller does with
// them, except that repairs renew lives and cure lemons.
#pragma once

#include <queue>
#include <vector>

#include "models/faults/random.hpp"
#include "sim/campaign/campaign_spec.hpp"

namespace fabricast::campaign {

class FleetClock {
public:
    FleetClock(const FleetSpec& spec, std::uint64_t seed);

    struct Strike {
        Nanoseconds time = kNever;
        std::uint32_t node = 0;
    };
    /// Next strike; stays until pop().
    const Strike& peek() const { return next_; }
    void pop();
    /// The node comes back from repair at `now`, after its strike was popped: its life starts anew.
    void repaired(std::uint32_t node, Nanoseconds now);
    /// Hazard does not pass for `time`: all strikes come later by it.
    void shift(Nanoseconds time);

private:
    struct Life {
        double end = 0;  ///< s of hazard
        std::uint32_t node = 0, generation = 0;
        bool operator>(const Life& other) const { return end > other.end || (end == other.end && node > other.node); }
    };
    void draw_rates(std::uint64_t seed);
    void start_lives(std::uint64_t seed);
    double life(std::uint32_t node);
    void next_primary();
    std::uint32_t pick();
    void find_next();

    const FleetSpec& spec_;
    std::uint32_t count_;
    bool renewal_;
    double burst_ = 0, rate_ = 0;  ///< chance of a follower; primary faults per s of the fleet
    faults::Draws gaps_, picks_, followers_, cures_;
    std::vector<double> cumulative_;   ///< of node rates; empty: all alike
    std::vector<std::uint8_t> lemon_;  ///< 0 good, 1 lemon, 2 cured; empty: none
    std::vector<faults::Draws> life_draws_;
    std::vector<std::uint32_t> generation_;
    std::priority_queue<Life, std::vector<Life>, std::greater<>> lives_;
    double hazard_ = 0;       ///< of the primary process, in s of the final fleet
    Nanoseconds offset_ = 0;  ///< of shift()
    Strike primary_, next_;
    std::vector<Strike> following_;
    bool next_follows_ = false;
};

}  // namespace fabricast::campaign
