// What the driver tells when a component breaks. Source: vendor's Xid catalogue, the commonest code of the cause.
#pragma once

#include <string_view>

namespace fabricast::monitors {

struct DriverReport {
    int xid = 0;  ///< 0: the driver says nothing
    bool uncorrectable = false;
};

/// `component`: a name of models/faults/faults.yaml.
constexpr DriverReport driver_report(std::string_view component) {
    if (component == "gpu")
        return {79, false};  // fell off the bus
    if (component == "hbm")
        return {95, true};  // uncontained memory error
    if (component == "sram")
        return {48, true};  // double-bit error
    if (component == "gsp")
        return {119, false};  // time-out of the system processor
    if (component == "software")
        return {31, false};  // page fault: the application group
    return {};
}

}  // namespace fabricast::monitors
