// A shipped scenario, forecast with its campaign.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/campaign/campaign_report.hpp"
#include "sim/monitor/monitor.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/step/forecast.hpp"

namespace fabricast::testing {

struct Shipped {
    Scenario scenario;
    Result result;
};

inline std::unique_ptr<Shipped> run_shipped(const std::string& path, const std::vector<std::string>& overrides = {},
                                            bool memo = true) {
    auto ran = std::make_unique<Shipped>();
    ran->scenario = load_scenario(std::string(FABRICAST_SOURCE_DIR "/scenarios/") + path, overrides);
    ran->result = forecast(ran->scenario, {.critical_path = false, .memo = memo});
    monitor::add_campaign(ran->scenario, ran->result, {.memo = memo});
    return ran;
}

}  // namespace fabricast::testing
