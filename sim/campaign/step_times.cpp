#include "sim/campaign/step_times.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace fabricast::campaign {

Nanoseconds nanoseconds(double seconds) {
    const double ns = seconds * static_cast<double>(kSecond);
    return ns < static_cast<double>(100 * 365 * kDay) ? static_cast<Nanoseconds>(std::llround(ns)) : kNever;
}

double FleetSpec::rate() const {
    double sum = 0;
    for (const faults::Component& c : components)
        sum += c.rate;
    return sum;
}

StepTimes::StepTimes(std::uint32_t keys, int kinds, Simulate simulate, bool memo)
    : kinds_(kinds), memo_(memo), simulate_(std::move(simulate)), table_(std::size_t{keys} << kinds) {
    assert(kinds >= 0 && kinds <= kMaxKinds && "conditions are a table, so kinds are few");
}

Nanoseconds StepTimes::ask(const Condition& condition) {
    const std::scoped_lock lock(one_);
    std::atomic<Nanoseconds>& entry = table_[slot(condition)];
    if (const Nanoseconds known = entry.load(std::memory_order_acquire); known > 0 && memo_)
        return known;
    const Nanoseconds step = std::max<Nanoseconds>(1, simulate_(condition));
    ++simulated_;
    entry.store(step, std::memory_order_release);
    return step;
}

std::vector<std::pair<Condition, Nanoseconds>> StepTimes::known() const {
    std::vector<std::pair<Condition, Nanoseconds>> all;
    for (std::size_t i = 0; i < table_.size(); ++i)
        if (const Nanoseconds step = table_[i].load(std::memory_order_acquire); step > 0)
            all.push_back(
                {{static_cast<std::uint32_t>(i >> kinds_), static_cast<std::uint32_t>(i & ((1u << kinds_) - 1))},
                 step});
    return all;
}

}  // namespace fabricast::campaign
