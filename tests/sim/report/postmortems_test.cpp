// Incidents as published (data/postmortems.csv), each as a scenario (scenarios/postmortems): what is known before goes in, what
// comes out is held against what was told. The scenarios say which is which.
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

double outcome(const char* path, const char* name, const std::vector<std::string>& overrides = {}) {
    return *figure(run_shipped(path, overrides)->result, name);
}

// A watchdog of 15 minutes and the catalogue's pieces of a restart, which nobody fitted to this: 1300 s from the last step to the
// next, 1200 were told.
TEST(Postmortems, SilentLink) {
    const Incident told = incidents()[0];
    const char* path = "postmortems/silent-nvlink.yaml";
    const double down = outcome(path, "stop_detection_s") + outcome(path, "stop_restart_s");
    EXPECT_NEAR(down / (told.detection + told.recovery), 1, 0.1);
}

// An attempt that dies before its first save loses all but its own start; without a search it starts faster than theirs did.
TEST(Postmortems, LinkDown) {
    const Incident told = incidents()[1];
    const char* path = "postmortems/nvlink-link-down.yaml";
    EXPECT_NEAR(outcome(path, "stop_detection_s") / told.detection, 1, 0.1);
    EXPECT_NEAR(outcome(path, "stop_lost_s") / told.lost, 1, 0.05);
    EXPECT_LT(outcome(path, "stop_restart_s"), told.recovery);
    EXPECT_GT(outcome(path, "stop_restart_s"), told.recovery / 2);
    // Five minutes after the hourly save only what came after it is lost.
    EXPECT_LT(outcome(path, "stop_lost_s", {"faults.events=[{kind: gpu_fail, at: 65 min}]"}), 300);
}

// What the data of a replaced node cost the job: the copy from a neighbour, from object storage, a spare that has them.
TEST(Postmortems, NodeWithoutData) {
    const char* path = "postmortems/node-without-data.yaml";
    const auto gpu_hours = [&](const char* swap) {
        return (1 - outcome(path, "ettr", {std::string("run.recovery.swap=") + swap})) * 120 * 384;
    };
    const double neighbour = gpu_hours("90 min"), storage = gpu_hours("3 h"), spare = gpu_hours("0 s");
    EXPECT_NEAR(neighbour - spare, 1.5 * 384, 1);  // the job stands: all of it waits for one node
    EXPECT_NEAR(storage - spare, 3 * 384, 1);
    EXPECT_NEAR(spare, 390, 15);  // detection, an hour of steps, saves
    EXPECT_NEAR(incidents()[2].recovery, 5400, 1);
}

// A loader whose step is 1 + a t as long keeps ln 2 / a of the 1 / a until it is restarted at twice the step.
TEST(Postmortems, ARegressionAndARestartFromZero) {
    const char* path = "postmortems/regression-and-restart.yaml";
    const auto ran = run_shipped(path);
    const campaign::ReplicaResult& life = ran->result.campaign->result.shown;
    EXPECT_NEAR(*figure(ran->result, "lost_h") * 384 / 46080, 1, 0.01);  // all until then, what is slower included
    const double kept = *figure(ran->result, "campaign_tokens"),
                 healthy = outcome(path, "campaign_tokens", {"faults=none"});
    const double free_d = 2.0 / 24, a = 0.3, cycle = (free_d + 0.6931 / a) / (free_d + 1 / a);
    EXPECT_NEAR(kept / (healthy * 30 / 35), cycle, 0.02);
    EXPECT_EQ(*figure(ran->result, "criticals"), 9);
    EXPECT_GT(life.slow, campaign::kDay);
}

// A retry every 11 minutes, 6.1 a chain: chains are drawn as they were told.
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
