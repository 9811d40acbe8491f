// Incidents as published (data/postmortems.csv), each as a scenario (scenarios/postmortems): its three durations come out.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "shipped.hpp"
#include "sim/report/expectation.hpp"

namespace fabricast::testing {
namespace {

/// Cells of a line; quotes may hold commas.
std::vector<std::string> cells(const std::string& line) {
    std::vector<std::string> all(1);
    bool quoted = false;
    for (const char c : line) {
        if (c == '"')
            quoted = !quoted;
        else if (c == ',' && !quoted)
            all.emplace_back();
        else
            all.back() += c;
    }
    return all;
}

struct Incident {
    std::string source;
    double detection = 0, recovery = 0, lost = 0;  ///< s; 0: not told
};

std::vector<Incident> incidents() {
    std::vector<Incident> all;
    std::ifstream file(FABRICAST_SOURCE_DIR "/tests/sim/report/data/postmortems.csv");
    std::string line;
    std::getline(file, line);
    const std::vector<std::string> heading = cells(line);
    EXPECT_EQ(heading[3], "detection_s");
    while (std::getline(file, line)) {
        const std::vector<std::string> row = cells(line);
        const auto number = [&](std::size_t i) { return row[i].empty() ? 0.0 : std::stod(row[i]); };
        all.push_back({row[0], number(3), number(4), number(5)});
    }
    return all;
}

void expect_durations(const Incident& told, const Result& result) {
    const auto near = [&](const char* name, double value) {
        if (value > 0) {
            EXPECT_NEAR(*figure(result, name) / value, 1, 0.05) << told.source << ": " << name;
        }
    };
    near("stop_detection_s", told.detection);
    near("stop_restart_s", told.recovery);
    near("stop_lost_s", told.lost);
}

TEST(Postmortems, EachIsAScenarioWithItsDurations) {
    const std::vector<Incident> all = incidents();
    ASSERT_EQ(all.size(), 5u);
    expect_durations(all[0], run_shipped("postmortems/silent-nvlink.yaml")->result);
    expect_durations(all[1], run_shipped("postmortems/nvlink-link-down.yaml")->result);
    expect_durations(all[2], run_shipped("postmortems/node-without-data.yaml")->result);
    // The same node with its 24 TB from object storage, and a spare that has them.
    const auto recovery = [](const char* swap) {
        return *figure(run_shipped("postmortems/node-without-data.yaml", {swap})->result, "stop_restart_s");
    };
    EXPECT_NEAR(recovery("run.recovery.swap=3 h"), 10800, 20);
    EXPECT_LT(recovery("run.recovery.swap=0 s"), 20);
}

// 46 080 GPU-hours of resets beside 276 480 of the main run: 5 and 30 days of 384 GPUs.
TEST(Postmortems, ARegressionAndARestartFromZero) {
    const auto ran = run_shipped("postmortems/regression-and-restart.yaml");
    const campaign::ReplicaResult& life = ran->result.campaign->result.shown;
    const double lost_h = *figure(ran->result, "lost_h");
    EXPECT_NEAR(lost_h * 384 / 46080, 1, 0.05);
    EXPECT_NEAR((campaign::seconds_of(life.wall) / 3600 - lost_h) * 384 / 276480, 1, 0.05);
    EXPECT_GT(life.slow, campaign::kDay);  // of the loader that grows slower
}

// A retry every 11 minutes, 6.1 a chain.
TEST(Postmortems, ChainsOfRetries) {
    const Incident told = incidents()[4];
    const auto ran = run_shipped("postmortems/retry-chains.yaml");
    const campaign::CampaignResult& r = ran->result.campaign->result;
    const auto mean = [&](auto one) { return r.of([&](const campaign::ReplicaResult& x) { return one(x); }).mean; };
    const double stops = mean([](const auto& x) { return static_cast<double>(x.stops); });
    const double attempts = stops + mean([](const auto& x) { return static_cast<double>(x.recurred); });
    EXPECT_NEAR(attempts / stops, 73.0 / 12, 0.35);
    const double down = stops * (*figure(ran->result, "stop_detection_s") + *figure(ran->result, "stop_restart_s"));
    EXPECT_NEAR(down / attempts / told.recovery, 1, 0.05);
}

}  // namespace
}  // namespace fabricast::testing
