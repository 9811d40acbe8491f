#include "sim/campaign/economics.hpp"

namespace fabricast::campaign {

Economics economics(const FleetSpec& fleet, const Prices& prices, const ReplicaResult& replica) {
    Economics e;
    const double hours = seconds_of(replica.wall) / 3600;
    const double gpus = static_cast<double>(fleet.nodes) * fleet.gpus_per_node;
    const double all = static_cast<double>(fleet.nodes + fleet.spares) * fleet.gpus_per_node;
    const auto spent = [&](Spent what) { return seconds_of(replica.spent[static_cast<std::size_t>(what)]) / 3600; };
    const double busy = spent(Spent::steps) + spent(Spent::lost) + spent(Spent::evaluation);
    e.days = hours / 24;
    e.gpu_hours = all * hours;
    e.cost = e.gpu_hours * prices.per_gpu_hour;
    const double board_hours =
        gpus * busy + kIdlePerGpuPower * (all * hours - gpus * busy) + kHostPerGpuPower * all * hours;
    e.energy_kwh = board_hours * prices.gpu_power_w / 1000;
    return e;
}

}  // namespace fabricast::campaign
