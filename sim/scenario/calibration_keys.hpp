// The keys of a calibration file: units and ranges. A value outside its range is no measurement of such hardware.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "sim/scenario/units.hpp"

namespace fabricast {

struct CalibrationKey {
    std::string_view key;
    std::string_view unit;  ///< "" for a plain number
    double scale;           ///< base units of one `unit`
    double least, most;     ///< base units, both allowed
};
/// part: "gpus", "attention" (below "attention.KERNEL."), "networks", "collectives", "software", "host".
std::span<const CalibrationKey> calibration_key_table(std::string_view part);
/// Of "gemm.cap" or "attention.fa3.e128" in `part`; nullptr when there is none.
const CalibrationKey* find_calibration_key(std::string_view part, std::string_view key);

}  // namespace fabricast
