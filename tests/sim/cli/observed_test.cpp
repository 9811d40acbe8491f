// `fabricast explain --observed` as a user calls it.
#include <fstream>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/sim/cli/binary.hpp"

namespace fabricast::testing {
namespace {

using nlohmann::json;

void write(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

/// Steps around `step_s` that do not repeat, `factor` times as long from row 120 on.
std::string table(double step_s, double factor) {
    std::string text = "step,step_time\n";
    std::uint64_t state = 12345;
    for (int i = 0; i < 240; ++i) {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        const double noise = (static_cast<double>(state >> 40) / 16777216.0 - 0.5) * 0.06;
        text += fmt::format("{},{:.5f}\n", i + 1, step_s * (i < 120 ? 1 : factor) * (1 + noise));
    }
    return text;
}

TEST(ObservedOption, TextJsonAndExitCodes) {
    const Scratch scratch;
    const std::string quick = scenario_path("quickstart.yaml");
    const double step_s = json::parse(fabricast("run --json --quiet " + quick).out)["step"]["ps"].get<double>() / 1e12;
    write(scratch.path("healthy.csv"), table(step_s, 1));
    write(scratch.path("slow.csv"), table(step_s, 1.07));
    write(scratch.path("other.csv"), table(3 * step_s, 1));
    const std::string explain = "explain " + quick + " --quiet --observed ";
    const Ended healthy = fabricast(explain + scratch.path("healthy.csv"));
    EXPECT_EQ(healthy.code, 0) << healthy.err;
    EXPECT_TRUE(contains(healthy.out, "nothing found")) << healthy.out;
    const Ended slow = fabricast(explain + scratch.path("slow.csv"));
    EXPECT_TRUE(contains(slow.out, "one node slower than the others")) << slow.out;
    EXPECT_TRUE(contains(slow.out, "--inject '")) << slow.out;
    const Ended other = fabricast(explain + scratch.path("other.csv"));
    EXPECT_EQ(other.code, 0);
    EXPECT_TRUE(contains(other.out.substr(0, 80), "may be of another job")) << other.out;
    const Ended as_json = fabricast(explain + scratch.path("slow.csv") + " --json");
    const json observed = json::parse(as_json.out)["observed"];
    EXPECT_EQ(observed["nothing_found"], false);
    ASSERT_EQ(observed["findings"].size(), 1u) << observed.dump(1);
    EXPECT_EQ(observed["findings"][0]["pattern"], "level");
    EXPECT_NEAR(observed["findings"][0]["first_step"].get<double>(), 121, 3);
    EXPECT_EQ(observed["stretches"].size(), 8u);
    EXPECT_EQ(fabricast(explain + scratch.path("slow.csv") + " --json").out, as_json.out);
}

TEST(ObservedOption, BadLogsAreExitTwo) {
    const Scratch scratch;
    const std::string explain = "explain " + scenario_path("quickstart.yaml") + " --observed ";
    const auto refused = [&](const std::string& text, const std::string& sentence, const std::string& name = "a.csv") {
        write(scratch.path(name), text);
        const Ended ended = fabricast(explain + scratch.path(name));
        EXPECT_EQ(ended.code, 2) << text;
        EXPECT_EQ(ended.out, "");
        EXPECT_TRUE(contains(ended.err, sentence)) << ended.err;
    };
    refused("", "is empty");
    refused("", "is empty", "a.log");
    refused("step,step_s\n1,\n2,\n", "all 2 rows failed");
    refused("step,step_s\n2,1\n1,1\n", "steps must go up");
    refused("step,loss\n1,2\n", "no column of step times");
    refused("step,step_s\n1,2\n2,2\n", "more are needed");
    EXPECT_EQ(fabricast(explain + scratch.path("none.csv")).code, 2);
    EXPECT_EQ(fabricast(explain + scratch.path("a.csv") + " --measured mfu=0.3").code, 2);
}

}  // namespace
}  // namespace fabricast::testing
