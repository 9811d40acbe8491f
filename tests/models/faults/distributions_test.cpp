// Draws against textbook quantiles and moments; streams against each other.
#include "models/faults/distributions.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <set>

#include "models/faults/random.hpp"

namespace fabricast::faults {
namespace {

struct Moments {
    double mean = 0, cv = 0;
};

Moments moments(const std::function<double(double)>& quantile, int n) {
    Draws draws(7, Purpose::repair, 3);
    double sum = 0, squares = 0;
    for (int i = 0; i < n; ++i) {
        const double x = quantile(draws.next());
        sum += x;
        squares += x * x;
    }
    const double mean = sum / n;
    return {mean, std::sqrt(squares / n - mean * mean) / mean};
}

TEST(Random, StreamsAreFunctionsOfKeyAndCount) {
    Draws a(1, Purpose::repair, 5), b(1, Purpose::repair, 5);
    for (int i = 0; i < 100; ++i)
        EXPECT_EQ(a.word(), b.word());
    std::set<std::uint64_t> first;
    for (std::uint64_t seed = 0; seed < 20; ++seed)
        for (std::uint64_t entity = 0; entity < 20; ++entity)
            for (const Purpose purpose : {Purpose::repair, Purpose::node_rate, Purpose::fleet_gap})
                first.insert(Draws(seed, purpose, entity).word());
    EXPECT_EQ(first.size(), 1200u);
}

TEST(Random, UniformAndIndependentOfTheNeighbour) {
    // 64 bins of 64 000 draws: chi-squared with 63 degrees of freedom lies in 30..105 but once in 1000.
    double along[64] = {}, across[64] = {};
    double product = 0;
    Draws stream(11, Purpose::fleet_gap);
    for (int i = 0; i < 64000; ++i) {
        Draws other(11, Purpose::node_rate, static_cast<std::uint64_t>(i));
        const double u = stream.next(), v = other.next();
        ASSERT_GT(u, 0);
        ASSERT_LT(u, 1);
        along[static_cast<int>(u * 64)] += 1;
        across[static_cast<int>(v * 64)] += 1;
        product += (u - 0.5) * (v - 0.5);
    }
    for (const auto& bins : {along, across}) {
        double chi = 0;
        for (int i = 0; i < 64; ++i)
            chi += (bins[i] - 1000) * (bins[i] - 1000) / 1000;
        EXPECT_GT(chi, 30);
        EXPECT_LT(chi, 105);
    }
    EXPECT_LT(std::abs(product / 64000 * 12), 4 / std::sqrt(64000.0));
    Draws die(1, Purpose::fleet_node);
    for (int i = 0; i < 1000; ++i)
        EXPECT_LT(die.below(7), 7u);
}

TEST(Distributions, QuantilesAreThoseOfTheTextbook) {
    EXPECT_NEAR(exponential(10).at(0.5), 10 * std::log(2.0), 1e-12);
    EXPECT_NEAR(log_normal(35, 2.7).at(0.5), 35, 1e-6);
    EXPECT_NEAR(log_normal(35, 2.7).at(0.8413447460685429), 35 * std::exp(2.7), 1e-3);
    const Distribution w = weibull(100, 0.7);
    EXPECT_NEAR(w.at(1 - std::exp(-1.0)), w.scale, 1e-9);
    EXPECT_NEAR(w.scale, 100 / std::tgamma(1 + 1 / 0.7), 1e-9);
    EXPECT_NEAR(uniform(1, 10).at(0.25), 3.25, 1e-12);
    for (const Distribution& d : {exponential(3), weibull(3, 0.7), log_normal(3, 1)})
        EXPECT_NEAR(d.above(d.at(0.9)), 0.1, 1e-9);
    for (const double x : {0.1, 0.5, 1.0, 2.428571, 7.5, 30.0, 171.0})
        EXPECT_NEAR(log_gamma(x), std::lgamma(x), 1e-11 * (1 + std::abs(std::lgamma(x)))) << x;
}

TEST(Distributions, MomentsAreThoseOfTheTextbook) {
    constexpr int kDraws = 200000;
    for (const Distribution& d : {exponential(20), weibull(20, 0.7), weibull(20, 1.5), log_normal(20, 1)}) {
        const Moments m = moments([&](double u) { return d.at(u); }, kDraws);
        EXPECT_NEAR(m.mean / d.mean(), 1, 0.02);
    }
    EXPECT_NEAR(moments([](double u) { return exponential(1).at(u); }, kDraws).cv, 1, 0.02);
    EXPECT_NEAR(moments([](double u) { return weibull(1, 0.7).at(u); }, kDraws).cv, 1.462, 0.05);
}

// Mean recovery ten times the median is log sigma 2.15; published repairs: median 35 h, mean 181 h.
TEST(Distributions, HeavyTailsFromMedianAndMean) {
    EXPECT_NEAR(log_normal_of_mean(1, 10).shape, 2.146, 1e-3);
    EXPECT_NEAR(log_normal_of_mean(35, 181).mean(), 181, 1e-9);
    EXPECT_EQ(log_normal_of_mean(890.6, 865.9).kind, Distribution::Kind::constant);
}

TEST(Distributions, DecayingRateIsInverted) {
    const RateDecay decay{3.4, 30};
    EXPECT_NEAR(decay.passed(1e-6) / 1e-6, 3.4, 1e-5);
    for (const double t : {0.01, 1.0, 20.0, 300.0})
        EXPECT_NEAR(decay.when(decay.passed(t)), t, 1e-9 * (1 + t));
    EXPECT_EQ(RateDecay{}.when(5), 5);
}

}  // namespace
}  // namespace fabricast::faults
