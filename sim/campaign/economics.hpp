// Days, GPU-hours, money, energy of one replica.
//
//   GPU-hours = (nodes + spares) x GPUs of a node x wall time      what is rented, working or not
//   cost      = GPU-hours x price
//   energy    = GPUs at `busy` watts while steps or evaluations run, at `idle` otherwise, spares idle all the time;
//               each node's host draws `host` per GPU throughout. Cooling and power conversion of the hall are not in it.
//
// Source of the shares: an 8-GPU H100 node was measured at up to 8.4 kW in training (arXiv:2412.08602), 5.6 kW of it the GPUs'
// board power, so a host adds half of it; an idle GPU draws about a tenth of its board power (order of magnitude).
#pragma once

#include "sim/campaign/campaign_spec.hpp"
#include "sim/campaign/replica_result.hpp"

namespace fabricast::campaign {

inline constexpr double kHostPerGpuPower = 0.5, kIdlePerGpuPower = 0.1;

struct Prices {
    double per_gpu_hour = 0;
    double gpu_power_w = 0;  ///< of the board, at its limit
};

struct Economics {
    double days = 0, gpu_hours = 0, cost = 0, energy_kwh = 0;
};
Economics economics(const FleetSpec& fleet, const Prices& prices, const ReplicaResult& replica);

}  // namespace fabricast::campaign
