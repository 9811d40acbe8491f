// What `fabricast plan` varies: the `plan:` section of a scenario. An empty list stands for the default of that dimension
// (sim/plan/space.hpp): what divides, what the scenario says, or what is usual.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "models/parallel/layout.hpp"

namespace fabricast {

struct PlanSpec {
    bool given = false;
    // each value is a cluster of its own
    std::vector<std::int64_t> gpus;
    std::vector<std::string> nodes;             ///< presets of servers
    std::vector<std::string> nics, precisions;  ///< as typed: "200 Gb/s", "fp8"
    std::vector<double> oversubscription;
    // layouts
    std::vector<std::int64_t> tp, cp, pp, vpp, ep, micro_batch, global_batch, zero, shard_group;
    std::vector<bool> sp;
    std::vector<Schedule> schedule;
    std::vector<Recompute> recompute;
    std::vector<std::string> overlap;  ///< "none", "gradients", "parameters", "both"
    std::vector<ContextExchange> context;
    std::vector<std::string> order;

    std::vector<std::string> where;  ///< "tp <= 8"
    std::vector<std::string> where_places;
    std::vector<std::pair<std::string, double>> prices;  ///< per GPU-hour, by a part of the GPU's or server's name
    std::string by = "days";                             ///< "days", "cost"
    std::int64_t top = 10;
};

}  // namespace fabricast
