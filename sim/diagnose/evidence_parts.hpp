// Small pieces of evidence.cpp and evidence_patterns.cpp: densities, averages over a range of severities.
#pragma once

#include <string>
#include <vector>

#include "models/faults/signatures.hpp"

namespace fabricast {

inline constexpr double kLeastError = 0.005;  ///< of a simulated ln ratio: timing of messages that is not followed
inline constexpr int kSimulated = 3;          ///< severities of a range

double ln_normal(double x, double mean, double sd);

/// Mean over shares of a range of N(seen; size(share), error), sizes linear between those simulated; the best share.
struct Averaged {
    double fit = -50, best_share = 0, best_size = 0;
};
Averaged average_fit(const std::vector<double>& sizes, double seen, double error, double relative);

/// A wandering loader is on one rank that reads; where it goes next is not asked.
std::string simulated_as(const faults::Signature& what, const std::string& fault);

std::string significant(double value);  ///< three digits

}  // namespace fabricast
