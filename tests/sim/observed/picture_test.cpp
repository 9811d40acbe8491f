// What is seen in made-up series: that healthy noise is nothing, and that each pattern is found with its size and place.
#include "sim/observed/picture.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "models/compute/math.hpp"
#include "models/compute/spread.hpp"
#include "models/faults/random.hpp"
#include "sim/observed/change_points.hpp"
#include "sim/observed/ingest_error.hpp"

namespace fabricast {
namespace {

/// Steps of `base` s x exp(adds[i]) x normal noise.
StepSeries series_of(const std::vector<double>& adds, double sigma, std::uint64_t seed, double base = 2) {
    faults::Draws draws(seed, faults::Purpose::replica, 99);
    StepSeries s;
    s.attempts = {0};
    double now = 0;
    for (std::size_t i = 0; i < adds.size(); ++i) {
        s.step.push_back(static_cast<std::int64_t>(i) + 1);
        s.step_s.push_back(base * math::exp(adds[i]) * (1 + sigma * normal_quantile(draws.next())));
        now += s.step_s.back();
        s.time_s.push_back(now);
    }
    return s;
}
Picture picture_of(const std::vector<double>& adds, double sigma, std::uint64_t seed) {
    return look_at(series_of(adds, sigma, seed), "made-up");
}

TEST(Picture, HealthyNoiseIsNothing) {
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
        for (const double sigma : {0.005, 0.02, 0.04}) {
            const Picture p = picture_of(std::vector<double>(seed % 2 ? 150 : 600, 0), sigma, seed);
            EXPECT_TRUE(p.found.empty()) << "seed " << seed << " sigma " << sigma << ": "
                                         << pattern_name(p.found.front().pattern.kind) << " gain "
                                         << p.found.front().pattern.gain;
            EXPECT_NEAR(p.noise.sigma, sigma, 0.3 * sigma);
        }
    }
}

TEST(Picture, CorrelatedNoiseIsNothing) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        faults::Draws draws(seed, faults::Purpose::replica, 98);
        std::vector<double> adds;
        double now = 0;
        for (int i = 0; i < 600; ++i)
            adds.push_back(now = 0.6 * now + 0.016 * normal_quantile(draws.next()));
        const Picture p = picture_of(adds, 0.001, seed);
        EXPECT_TRUE(p.found.empty()) << "seed " << seed << ": " << pattern_name(p.found.front().pattern.kind);
    }
}

TEST(Picture, LevelsHaveTheirPlaceAndSize) {
    for (const double size : {0.02, 0.06, 0.3}) {
        std::vector<double> adds(600, 0);
        std::fill(adds.begin() + 250, adds.end(), size);
        const Picture p = picture_of(adds, 0.02, 5);
        ASSERT_EQ(p.found.size(), 1u) << size;
        const Pattern& level = p.found[0].pattern;
        EXPECT_EQ(level.kind, PatternKind::level);
        EXPECT_NEAR(static_cast<double>(p.row[level.begin]), 250, size < 0.03 ? 20 : 3);
        EXPECT_NEAR(level.size, size, 0.004);
        EXPECT_FALSE(level.ends);
        EXPECT_NEAR(p.base, std::log(2), 0.003);
    }
}

TEST(Picture, AnEventThatEndsAndAStairOnIt) {
    std::vector<double> adds(800, 0);
    for (std::size_t i = 200; i < 800; ++i)
        adds[i] += 0.10;
    for (std::size_t i = 400; i < 520; ++i)
        adds[i] += 0.25;
    const Picture p = picture_of(adds, 0.02, 6);
    ASSERT_EQ(p.found.size(), 2u);
    const Pattern &stays = p.found[0].pattern, &ends = p.found[1].pattern;
    EXPECT_NEAR(stays.size, 0.10, 0.01);
    EXPECT_FALSE(stays.ends);
    EXPECT_NEAR(ends.size, 0.25, 0.01);
    EXPECT_TRUE(ends.ends);
    EXPECT_NEAR(static_cast<double>(p.row[ends.begin]), 400, 3);
}

TEST(Picture, BurstsAreOnePattern) {
    std::vector<double> adds(900, 0);
    for (const std::size_t begin : {100u, 350u, 700u})
        for (std::size_t i = begin; i < begin + 80; ++i)
            adds[i] = 0.15;
    const Picture p = picture_of(adds, 0.02, 7);
    ASSERT_EQ(p.found.size(), 1u);
    EXPECT_EQ(p.found[0].pattern.bursts.size(), 3u);
    EXPECT_NEAR(p.found[0].pattern.size, 0.15, 0.01);
}

TEST(Picture, RampBeginsLateAndHasItsSlope) {
    StepSeries s = series_of(std::vector<double>(800, 0), 0.02, 8, 1.2);
    double now = 0;
    for (std::size_t i = 0; i < s.size(); ++i) {
        if (now > 300)
            s.step_s[i] *= 1 + (now - 300) * 1e-3;
        now += s.step_s[i];
        s.time_s[i] = now;
    }
    const Picture p = look_at(s, "made-up");
    ASSERT_GE(p.found.size(), 1u);
    EXPECT_EQ(p.found[0].pattern.kind, PatternKind::ramp);
    EXPECT_NEAR(p.found[0].pattern.size, 1e-3, 1e-4);
    EXPECT_NEAR(p.time_s[p.found[0].pattern.begin], 300, 60);
    EXPECT_EQ(p.found.size(), 1u);
}

TEST(Picture, SpikesWithAndWithoutPeriod) {
    std::vector<double> adds(600, 0);
    for (std::size_t i = 7; i < 600; i += 25)
        adds[i] = 0.2;
    Picture p = picture_of(adds, 0.02, 9);
    ASSERT_EQ(p.found.size(), 1u);
    EXPECT_EQ(p.found[0].pattern.kind, PatternKind::periodic);
    EXPECT_EQ(p.found[0].pattern.period, 25);
    EXPECT_NEAR(p.found[0].pattern.size, 0.2, 0.01);
    adds.assign(600, 0);
    for (const std::size_t i : {91u, 110u, 333u, 402u, 555u})
        adds[i] = 0.3;
    p = picture_of(adds, 0.02, 10);
    ASSERT_EQ(p.found.size(), 1u);
    EXPECT_EQ(p.found[0].pattern.kind, PatternKind::spikes);
    EXPECT_EQ(p.found[0].pattern.rows.size(), 5u);
    adds.assign(600, 0);
    adds[300] = 1.1;
    p = picture_of(adds, 0.02, 11);
    ASSERT_EQ(p.found.size(), 1u);
    EXPECT_EQ(p.found[0].pattern.kind, PatternKind::spikes);
}

TEST(Picture, ProfilesRepeat) {
    std::vector<double> adds;
    for (int i = 0; i < 400; ++i)
        adds.push_back(i % 4 == 3 ? 0.6 : 0);
    const Picture p = picture_of(adds, 0.02, 12);
    ASSERT_GE(p.found.size(), 1u);
    EXPECT_EQ(p.found[0].pattern.kind, PatternKind::periodic);
    EXPECT_EQ(p.found[0].pattern.period, 4);
    EXPECT_EQ(p.found[0].pattern.raised, 1u);
}

TEST(Picture, WaveOfADay) {
    StepSeries s = series_of(std::vector<double>(3000, 0), 0.01, 13, 60);
    for (std::size_t i = 0; i < s.size(); ++i)
        s.step_s[i] *= 1 + 0.01 * std::cos(2 * 3.14159265 * (s.time_s[i] / 86400 - 0.3));
    const Picture p = look_at(s, "made-up");
    ASSERT_EQ(p.found.size(), 1u);
    EXPECT_EQ(p.found[0].pattern.kind, PatternKind::wave);
    EXPECT_NEAR(p.found[0].pattern.size, 0.01, 0.0015);
    EXPECT_NEAR(p.found[0].pattern.phase / 86400, 0.3, 0.03);
}

TEST(Picture, MuchNoise) {
    const Picture p = picture_of(std::vector<double>(400, 0), 0.09, 14);
    ASSERT_EQ(p.found.size(), 1u);
    EXPECT_EQ(p.found[0].pattern.kind, PatternKind::noise);
}

TEST(Picture, WarmUpIsLeftOutAndLongSeriesAreGrouped) {
    std::vector<double> adds(20000, 0);
    adds[0] = 3;
    adds[1] = 1;
    for (std::size_t i = 12000; i < 20000; ++i)
        adds[i] = 0.03;
    const Picture p = picture_of(adds, 0.02, 15);
    EXPECT_EQ(p.warm_up, 2u);
    EXPECT_EQ(p.group, 4u);
    ASSERT_EQ(p.found.size(), 1u);
    EXPECT_NEAR(p.found[0].pattern.size, 0.03, 0.002);
    EXPECT_NEAR(static_cast<double>(p.row[p.found[0].pattern.begin]), 12000, 60);
    EXPECT_THROW(picture_of(std::vector<double>(12, 0), 0.02, 1), IngestError);
}

TEST(Robust, SlopeAndNoiseWithWildValues) {
    std::vector<double> x, y;
    faults::Draws draws(3, faults::Purpose::replica, 97);
    for (int i = 0; i < 300; ++i) {
        x.push_back(i);
        y.push_back(0.01 * i + 0.1 * normal_quantile(draws.next()) + (i % 7 == 0 ? 50 : 0));
    }
    EXPECT_NEAR(robust::theil_sen(x, y), 0.01, 0.002);
    EXPECT_NEAR(robust::noise(y).sigma, 0.1, 0.04);
}

}  // namespace
}  // namespace fabricast
