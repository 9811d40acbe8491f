#include <gtest/gtest.h>

#include "models/hardware/catalogue.hpp"
#include "models/transformer/architecture.hpp"
#include "sim/cli/starter.hpp"
#include "sim/report/views.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/step/forecast.hpp"

namespace fabricast::cli {
namespace {

std::vector<std::string> startable() {
    std::vector<std::string> names;
    for (const NodeSpec& node : Catalogue::builtin().nodes())
        names.push_back(node.name);
    for (const Architecture& model : architectures())
        names.push_back(model.name);
    return names;
}

TEST(Starter, EveryNodeAndModelGivesAScenarioThatLoads) {
    for (const std::string& name : startable()) {
        SCOPED_TRACE(name);
        const std::string yaml = starter_scenario(name);
        Scenario scenario;
        ASSERT_NO_THROW(scenario = parse_scenario(yaml, name)) << yaml;
        EXPECT_EQ(std::int64_t{scenario.nodes} * scenario.node.gpus, scenario.training.layout.world());
        EXPECT_TRUE(scenario.node.name == name || scenario.model.name == name);
        EXPECT_TRUE(scenario.notes.empty());
    }
}

TEST(Starter, SmallOnesRunToTheEnd) {
    for (const char* name : {"hgx-a100-80g", "hgx-h800", "llama3.1-8b", "gpt2"}) {
        SCOPED_TRACE(name);
        const Scenario scenario = parse_scenario(starter_scenario(name), name);
        const Result result = forecast(scenario);
        EXPECT_EQ(result.failure, "");
        EXPECT_GT(headline(result).mfu, 0.1);
    }
}

TEST(Starter, UnknownNameThrows) { EXPECT_THROW(starter_scenario("no-such-thing"), ScenarioError); }

}  // namespace
}  // namespace fabricast::cli
