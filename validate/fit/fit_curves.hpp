// Constants of links from measured collectives: a class of networks, NVLink inside a node, and what one collective lacks.
//
//   ln(predicted / measured) over all sizes of all curves of a link class, robust least squares (least_squares.hpp) in
//     networks   efficiency, ll_hop, ll128_hop, simple_hop, slot          the prediction is validate/score/predict.hpp
//     gpus       network_channel where rings over nodes show it; nvlink_achieved from curves on one NVSwitch node
//   then, collective by collective, with the links' constants held:
//     collectives  latency >= 0 and rate <= 1, kept where they take half a percent of median error away
//
// How far a constant may go from the catalogue before the points must insist: efficiency and rates of links 10 %, hops and slot
// 20 us: the spread of these constants between healthy public logs of one class (networks.yaml). A constant that no point
// feels keeps its default and is not written.
//
// Least squares and the median error that judges them are two measures: taken is the point between defaults and fit where
// the median is least, so a fit is never worse than the defaults on its own points. Pairs over three or more nodes are left
// out: their flows collide by chance.
//
// Cross-check: each collective predicted by links fitted on the other collectives; reported, and what the interval of a
// calibration rests on. Refused: a fit whose cross-check misses by more than the defaults do (one collective: the fit itself).
// Not fitted: latencies inside a node (NCCL's tables and the catalogue), PCIe boards.
#pragma once

#include <string>
#include <vector>

#include "sim/scenario/calibration.hpp"
#include "validate/score/run_case.hpp"

namespace fabricast {

/// A point that a fit looked at.
struct FittedPoint {
    std::string where;                           ///< "fabric.json: all_gather, 80 ranks, 33554432 bytes"
    std::string group;                           ///< what a cross-check leaves out together
    double default_error = 0, fitted_error = 0;  ///< ln(predicted / measured)
    double cross_error = 0;                      ///< the group left out
    bool outlier = false;
};

/// What a fit of one part found. `kept` false: it explains less than the defaults, `reason` says so.
struct PartFit {
    std::string what;
    std::vector<FittedPoint> points;
    bool kept = true;
    std::string reason;
    double default_median = 0, fitted_median = 0, cross_median = 0;
    bool crossed = false;  ///< there was more than one group
};

/// Fills medians, and whether the fit is kept.
void settle(PartFit& fit);

struct CurveFit {
    Calibration::Owned networks, gpus;
    std::vector<Calibration::CollectiveRow> collectives;
    std::vector<PartFit> parts;
};

/// cases: of one site. A GPU may own several entries of `gpus`.
CurveFit fit_curves(const std::vector<RunCase>& cases);

}  // namespace fabricast
