// How long a step takes in a condition of the cluster, simulated once a condition and remembered.
//
// A condition is canonical: which kinds of slow fault are present, not where and how many, because a synchronous step waits
// for its slowest member and parts of a symmetric cluster are alike. `simulate` must be a function of the condition alone,
// so that it does not matter which replica asks first, nor whether what it said is remembered (`memo` false: it is asked each
// time, for a check of just that). Safe to ask from many threads; one simulates at a time.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "sim/campaign/campaign_spec.hpp"

namespace fabricast::campaign {

inline constexpr int kMaxKinds = 7;  ///< bits of Condition::degraded: degradations in order, then congestion

struct Condition {
    std::uint32_t key = 0;       ///< Phase::key
    std::uint32_t degraded = 0;  ///< bit i: degradation i is present; the bit behind them: congestion
};

class StepTimes {
public:
    using Simulate = std::function<Nanoseconds(const Condition&)>;
    /// keys: number of phase keys; kinds: number of bits, at most kMaxKinds.
    StepTimes(std::uint32_t keys, int kinds, Simulate simulate, bool memo = true);

    /// At least 1 ns. Throws what `simulate` throws.
    Nanoseconds step(const Condition& condition) {
        const Nanoseconds known = table_[slot(condition)].load(std::memory_order_acquire);
        return known > 0 && memo_ ? known : ask(condition);
    }
    std::vector<std::pair<Condition, Nanoseconds>> known() const;  ///< what was asked for, in order of key and bits
    std::size_t simulated() const { return simulated_; }           ///< times `simulate` was asked so far

private:
    std::size_t slot(const Condition& c) const { return (std::size_t{c.key} << kinds_) + c.degraded; }
    Nanoseconds ask(const Condition& condition);

    int kinds_;
    bool memo_;
    Simulate simulate_;
    std::vector<std::atomic<Nanoseconds>> table_;
    std::mutex one_;
    std::size_t simulated_ = 0;
};

}  // namespace fabricast::campaign
