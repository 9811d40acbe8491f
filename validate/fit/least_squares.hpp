// Robust nonlinear least squares for a handful of constants: iteratively reweighted, damped Gauss-Newton.
//
//   minimise  sum_i w_i (r_i / s)^2 + sum_k (u_k / sigma_k)^2,   r_i = ln(predicted_i / measured_i)
//
// u_k is ln(x_k / start_k), or (x_k - start_k) / unit_k for a constant that may be 0. s = 1.4826 x median |r|, at least
// `floor` (what two good benchmarks of one thing differ by). Weights: Huber (1.345 s) to settle, then Tukey's biweight
// (4.685 s), under which a point far off counts nothing: it is an outlier and is named. sigma_k says how far a constant may
// lie from its default before the points must insist: with few points it decides, with many it vanishes. Jacobian by one
// forward difference a constant. Bounds by clamping.
//
// Source: Huber 1981; Beaton and Tukey 1974; tuning constants of 95 % efficiency under normal errors.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace fabricast {

struct FitParameter {
    std::string name;
    double start = 0, least = 0, most = 0;
    double sigma = 1;  ///< of u; large = free
    double unit = 0;   ///< > 0: linear in steps of this; 0: logarithmic
};

struct RobustFit {
    std::vector<double> values;     ///< of the parameters
    std::vector<double> residuals;  ///< ln(predicted / measured)
    std::vector<double> weights;    ///< 0 = outlier
    double scale = 0;               ///< s
    int evaluations = 0;
    double median_error() const;  ///< |predicted / measured - 1|
};

/// values -> ln(predicted / measured) of every point; the same number of points each time, all finite.
using ResidualModel = std::function<std::vector<double>(const std::vector<double>&)>;

struct RobustOptions {
    double floor = 0.02;
    int most_iterations = 12;
};

/// Precondition: at least one point.
RobustFit robust_least_squares(const std::vector<FitParameter>& parameters, const ResidualModel& model,
                               RobustOptions options = {});

/// Median of |e^r - 1|.
double median_error(const std::vector<double>& log_residuals);
/// Quantile of e^r, q in [0, 1].
double ratio_quantile(std::vector<double> log_residuals, double q);

}  // namespace fabricast
