// Constants of network adapters from perftest: what of its rate a network keeps, and the latency of one adapter.
//
//   rate of large messages   line x H x efficiency / E        efficiency: networks.<class>.efficiency
//   time of a small message  n x (2 nic_latency + switch)     nic_latency: networks.<class>.nic_latency, one side; n one-ways
//
// E is the catalogue's efficiency of the class, which collectives show on healthy adapters, and H what a healthy adapter shows
// in perftest: the share that packets of 4096 bytes leave of the line (measured_adapters.hpp). So perftest says how far an
// adapter is from a healthy one, and collectives, which reach less than it, are scaled alike; a healthy adapter changes
// nothing. One switch: the two ends of a test are usually on one leaf. The catalogue's nic_latency comes from the same formula.
//
// Robust least squares (least_squares.hpp), each class and kind alone; sigma 10 % for efficiency as in fit_curves.hpp, 0.5 of ln
// for the latency (0.36 to 1.1 us an adapter in public logs, half or twice the catalogue's). Cross-check: runs left out in turn.
// Where curves of collectives over the same class are there, they decide its efficiency.
#pragma once

#include <string>
#include <vector>

#include "sim/scenario/calibration.hpp"
#include "validate/fit/fit_curves.hpp"
#include "validate/fit/measured_adapters.hpp"

namespace fabricast {

struct AdapterFit {
    Calibration::Owned networks;
    std::vector<PartFit> parts;  ///< "adapters roce bandwidth"
};

/// with_curves: classes whose efficiency collectives decide.
AdapterFit fit_adapters(const std::vector<AdapterPoint>& points, const std::vector<std::string>& with_curves);

/// Seconds of a message with the constants of a calibration; an empty one: the defaults.
double predicted_adapter_s(const AdapterPoint& point, const Calibration& calibration);

/// "adapters roce bandwidth".
std::string adapter_part(const AdapterPoint& point);

}  // namespace fabricast
