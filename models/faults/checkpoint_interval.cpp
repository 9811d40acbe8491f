#include "models/faults/checkpoint_interval.hpp"

#include <cmath>

#include "models/compute/math.hpp"

namespace fabricast::faults {

double young_interval(const CheckpointCase& c) { return std::sqrt(2 * c.save * c.mttf); }

double daly_interval(const CheckpointCase& c) {
    if (c.save >= 2 * c.mttf)
        return c.mttf;
    const double half = c.save / (2 * c.mttf);
    return young_interval(c) * (1 + std::sqrt(half) / 3 + half / 9) - c.save;
}

// exp(x) - 1 loses digits for small x; its series does not.
double exact_ettr(const CheckpointCase& c, double tau) {
    if (!(c.mttf > 0))
        return tau / (tau + c.save);
    const double x = (tau + c.save) / c.mttf;
    const double grown = x < 1e-3 ? x * (1 + x / 2 * (1 + x / 3 * (1 + x / 4))) : math::exp(x) - 1;
    return tau / (c.mttf * math::exp(c.restart / c.mttf) * grown);
}

double first_order_loss(const CheckpointCase& c, double tau) { return c.save / tau + (tau / 2 + c.restart) / c.mttf; }

// Unimodal in log tau; Daly's value lies well inside a factor of 30 either way.
double best_interval(const CheckpointCase& c) {
    constexpr double kGolden = 0.61803398874989484820;
    const double middle = math::log(daly_interval(c) + c.save + 1e-9);
    double low = middle - 3.4, high = middle + 3.4;
    double a = high - kGolden * (high - low), b = low + kGolden * (high - low);
    double at_a = exact_ettr(c, math::exp(a)), at_b = exact_ettr(c, math::exp(b));
    for (int i = 0; i < 60; ++i) {
        if (at_a > at_b) {
            high = b;
            b = a;
            at_b = at_a;
            a = high - kGolden * (high - low);
            at_a = exact_ettr(c, math::exp(a));
        } else {
            low = a;
            a = b;
            at_a = at_b;
            b = low + kGolden * (high - low);
            at_b = exact_ettr(c, math::exp(b));
        }
    }
    return math::exp((low + high) / 2);
}

}  // namespace fabricast::faults
