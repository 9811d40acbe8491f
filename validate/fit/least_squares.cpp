#include "validate/fit/least_squares.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

#include <Eigen/Dense>

namespace fabricast {
namespace {

constexpr double kHuber = 1.345, kTukey = 4.685, kMadToSigma = 1.4826;

double quantile(std::vector<double> values, double q) {
    std::sort(values.begin(), values.end());
    const double at = q * static_cast<double>(values.size() - 1);
    const auto low = static_cast<std::size_t>(at);
    const std::size_t high = std::min(low + 1, values.size() - 1);
    return values[low] + (at - static_cast<double>(low)) * (values[high] - values[low]);
}

double scale_of(const std::vector<double>& residuals, double floor) {
    std::vector<double> sizes;
    for (const double r : residuals)
        sizes.push_back(std::abs(r));
    return std::max(floor, kMadToSigma * quantile(std::move(sizes), .5));
}

double weight(double r, double s, bool biweight) {
    const double x = std::abs(r) / s;
    if (!biweight)
        return x <= kHuber ? 1 : kHuber / x;
    const double y = x / kTukey;
    return y >= 1 ? 0 : (1 - y * y) * (1 - y * y);
}

class Solver {
public:
    Solver(const std::vector<FitParameter>& parameters, const ResidualModel& model, RobustOptions options)
        : parameters_(parameters), model_(model), options_(options) {}
    RobustFit solve();

private:
    std::vector<double> values(const Eigen::VectorXd& u) const {
        std::vector<double> x;
        for (std::size_t k = 0; k < parameters_.size(); ++k) {
            const FitParameter& p = parameters_[k];
            const double at = u(static_cast<Eigen::Index>(k));
            x.push_back(std::clamp(p.unit > 0 ? p.start + at * p.unit : p.start * std::exp(at), p.least, p.most));
        }
        return x;
    }
    /// u of the clamped value, so that a bound is felt once.
    void clamp(Eigen::VectorXd& u) const {
        const std::vector<double> x = values(u);
        for (std::size_t k = 0; k < parameters_.size(); ++k) {
            const FitParameter& p = parameters_[k];
            u(static_cast<Eigen::Index>(k)) = p.unit > 0 ? (x[k] - p.start) / p.unit : std::log(x[k] / p.start);
        }
    }
    std::vector<double> residuals(const Eigen::VectorXd& u) {
        ++evaluations_;
        return model_(values(u));
    }
    double cost(const std::vector<double>& r, const Eigen::VectorXd& u, double s, const std::vector<double>& w) const {
        double sum = 0;
        for (std::size_t i = 0; i < r.size(); ++i)
            sum += w[i] * r[i] * r[i] / (s * s);
        for (std::size_t k = 0; k < parameters_.size(); ++k) {
            const double z = u(static_cast<Eigen::Index>(k)) / parameters_[k].sigma;
            sum += z * z;
        }
        return sum;
    }
    Eigen::MatrixXd jacobian(const Eigen::VectorXd& u, const std::vector<double>& r);

    const std::vector<FitParameter>& parameters_;
    const ResidualModel& model_;
    RobustOptions options_;
    int evaluations_ = 0;
};

Eigen::MatrixXd Solver::jacobian(const Eigen::VectorXd& u, const std::vector<double>& r) {
    Eigen::MatrixXd j(static_cast<Eigen::Index>(r.size()), u.size());
    for (Eigen::Index k = 0; k < u.size(); ++k) {
        const FitParameter& p = parameters_[static_cast<std::size_t>(k)];
        double step = p.unit > 0 ? .2 : .03;
        Eigen::VectorXd moved = u;
        moved(k) += step;
        clamp(moved);
        if (std::abs(moved(k) - u(k)) < step / 2) {  // at the upper bound
            moved(k) = u(k) - step;
            clamp(moved);
        }
        step = moved(k) - u(k);
        const std::vector<double> there = residuals(moved);
        for (std::size_t i = 0; i < r.size(); ++i)
            j(static_cast<Eigen::Index>(i), k) = step == 0 ? 0 : (there[i] - r[i]) / step;
    }
    return j;
}

RobustFit Solver::solve() {
    const auto n = static_cast<Eigen::Index>(parameters_.size());
    Eigen::VectorXd u = Eigen::VectorXd::Zero(n);
    std::vector<double> r = residuals(u);
    assert(!r.empty() && "nothing to fit");
    std::vector<double> w(r.size(), 1);
    double s = scale_of(r, options_.floor), damping = 1e-3;
    for (int round = 0; round < options_.most_iterations && n > 0; ++round) {
        const bool biweight = round >= options_.most_iterations / 2;
        s = scale_of(r, options_.floor);
        for (std::size_t i = 0; i < r.size(); ++i)
            w[i] = weight(r[i], s, biweight);
        const Eigen::MatrixXd j = jacobian(u, r);
        Eigen::MatrixXd normal = Eigen::MatrixXd::Zero(n, n);
        Eigen::VectorXd right = Eigen::VectorXd::Zero(n);
        for (Eigen::Index i = 0; i < j.rows(); ++i) {
            const double weighted = w[static_cast<std::size_t>(i)] / (s * s);
            normal += weighted * j.row(i).transpose() * j.row(i);
            right -= weighted * r[static_cast<std::size_t>(i)] * j.row(i).transpose();
        }
        for (Eigen::Index k = 0; k < n; ++k) {
            const double sigma = parameters_[static_cast<std::size_t>(k)].sigma;
            normal(k, k) += 1 / (sigma * sigma);
            right(k) -= u(k) / (sigma * sigma);
        }
        const double before = cost(r, u, s, w);
        bool moved = false;
        for (int attempt = 0; attempt < 5 && !moved; ++attempt) {
            Eigen::MatrixXd damped = normal;
            damped.diagonal() *= 1 + damping;
            Eigen::VectorXd next = u + damped.ldlt().solve(right);
            clamp(next);
            const std::vector<double> there = residuals(next);
            if (cost(there, next, s, w) < before - 1e-9) {
                moved = (next - u).norm() > 1e-4;
                u = next;
                r = there;
                damping = std::max(1e-6, damping / 5);
                if (!moved)
                    break;
            } else {
                damping *= 10;
            }
        }
        if (!moved && biweight)
            break;
        if (!moved)
            round = std::max(round, options_.most_iterations / 2 - 1);
    }
    RobustFit out;
    out.values = values(u);
    s = scale_of(r, options_.floor);
    for (const double one : r)
        out.weights.push_back(weight(one, s, true));
    out.residuals = std::move(r);
    out.scale = s;
    out.evaluations = evaluations_;
    return out;
}

}  // namespace

double median_error(const std::vector<double>& log_residuals) {
    std::vector<double> sizes;
    for (const double r : log_residuals)
        sizes.push_back(std::abs(std::expm1(r)));
    return sizes.empty() ? 0 : quantile(std::move(sizes), .5);
}

double ratio_quantile(std::vector<double> log_residuals, double q) {
    return std::exp(quantile(std::move(log_residuals), q));
}

double RobustFit::median_error() const { return fabricast::median_error(residuals); }

RobustFit robust_least_squares(const std::vector<FitParameter>& parameters, const ResidualModel& model,
                               RobustOptions options) {
    return Solver(parameters, model, options).solve();
}

}  // namespace fabricast
