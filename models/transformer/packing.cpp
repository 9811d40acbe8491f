#include "models/transformer/packing.hpp"

#include <algorithm>
#include <cmath>

#include "models/compute/math.hpp"

namespace fabricast {

double equal_documents(double mean, double sequence) { return std::min(mean, sequence); }

double exponential_documents(double mean, double sequence) {
    const double x = sequence / mean;
    if (x < 1e-3)  // documents far longer than a sequence: s (1 - x / 3)
        return sequence * (1 - x / 3);
    return 2 * mean - 2 * mean / x * (1 - math::exp(-x));
}

double sampled_documents(const std::vector<double>& lengths, double sequence) {
    double tokens = 0, squares = 0;
    for (const double length : lengths) {
        const double whole = std::floor(length / sequence), rest = length - whole * sequence;
        tokens += length;
        squares += whole * sequence * sequence + rest * rest;
    }
    return squares / tokens;
}

}  // namespace fabricast
