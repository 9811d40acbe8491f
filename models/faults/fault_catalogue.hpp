// What breaks, how often, how it shows and how long the node is away: faults.yaml as types.
//
//   rate of a component = stops / (nodes x days) of the fleet it was counted on; all together 3.79 per 1000 node-days
//   failures of a job   = rate x nodes x days   (nodes are in series)
//
// Units: seconds; rates per node and day. Repairs are log-normal of the published median and mean.
// Every value has a source (Catalogue figures are `sources["component.gpu.stops"]` and the like). Not modelled here: what a
// degradation does to a step; that is its name and the share of the part's rate it keeps, for who builds the step.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "models/faults/distributions.hpp"

namespace fabricast::faults {

enum class Shows : std::uint8_t { crash, transport, hang, silent };
std::string_view shows_name(Shows shows);

struct Component {
    std::string name;  ///< "gpu"
    std::string what;  ///< "GPU, NVLink included"
    double rate = 0;   ///< stops of a job per node and day
    Shows shows = Shows::crash;
    bool node_leaves = true;
    double recurs = 0;         ///< share of restarts that meet it again at once
    Distribution repair = {};  ///< s; of the node, where it leaves
};

struct Degradation {
    std::string name, what;
    double rate = 0;              ///< onsets per node and day
    double keeps = 1;             ///< share of the part's rate that is left
    double lane_bytes_per_s = 0;  ///< instead: what is missing of it
    Distribution until = {};      ///< s, until mended
};

struct Episodes {
    double congestions_per_day = 0, congestion_mean_s = 0, congestion_factor = 1;
    double flaps_per_link_month = 0, flap_low_s = 0, flap_high_s = 0;
};

/// Figures of a campaign nobody states.
struct Defaults {
    double new_fleet_rate = 0;  ///< per node and day
    double burst_cv = 1, burst_gap_s = 0, node_spread = 0, spares_share = 0;
    double detect_crash_s = 0, detect_transport_s = 0, detect_hang_s = 0;
    double locate_s = 0, swap_s = 0, start_s = 0, communicators_s = 0, restart_spread = 0;
    double storage_bytes_per_s = 0;
};

class FaultCatalogue {
public:
    /// Parses faults.yaml. Throws std::runtime_error naming the entry.
    explicit FaultCatalogue(std::string_view yaml);
    static const FaultCatalogue& builtin();

    const std::vector<Component>& components() const { return components_; }
    const std::vector<Degradation>& degradations() const { return degradations_; }
    const Episodes& episodes() const { return episodes_; }
    const Defaults& defaults() const { return defaults_; }
    /// Sum of the components' rates, per node and day.
    double total_rate() const;
    /// "components.gpu.stops" -> sentence; empty for unknown ones.
    std::string source(std::string_view key) const;

private:
    std::vector<Component> components_;
    std::vector<Degradation> degradations_;
    Episodes episodes_;
    Defaults defaults_;
    std::map<std::string, std::string, std::less<>> sources_;
};

}  // namespace fabricast::faults
