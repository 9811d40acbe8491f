// The whole run of a scenario: how long, what breaks, how it is saved and comes back. What sim/campaign is made from.
//
// Times are seconds, rates per node and day (models/faults), all checked. `given` tells that there is a campaign to run:
// the scenario says what breaks (faults:) and how long the run is (run.tokens or run.days).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/faults/fault_catalogue.hpp"
#include "models/monitors/rule.hpp"

namespace fabricast {

struct RunPlan {
    bool given = false;
    double days = 0;  ///< the run ends then, done or not; 0: not stated
    std::uint32_t replicas = 0, spares = 0;
    std::optional<std::uint32_t> shown;  ///< the life that is shown; absent: the one of median ETTR

    enum class Save : std::uint8_t { none, sync, async, memory };
    struct Checkpoint {
        Save mode = Save::sync;
        double every_s = 0;            ///< 0: the best interval
        std::int64_t every_steps = 0;  ///< instead; 0: by time
        double write_bytes_per_s = 0, read_bytes_per_s = 0;
        bool on_job_network = false;    ///< storage shares adapters and fabric with the steps
        std::int64_t copies_every = 1;  ///< memory: steps between copies on peers
        double spread = 0;
    } checkpoint;

    enum class Style : std::uint8_t { restart, shrink, hot_spare, replicas };
    struct Recovery {
        Style style = Style::restart;
        double crash_s = 0, transport_s = 0, silent_s = 0;
        double locate_s = 0, swap_s = 0, start_s = 0, communicators_s = 0, membership_s = 0;
        double spread = 0;
    } recovery;

    struct Watchdog {
        double time_out_s = 0, save_grace_s = 0;
        bool watches_saves = false;  ///< a save longer than both is killed
        std::string where;           ///< place of the time-out, for errors
    } watchdog;

    struct Phase {
        double tokens = 0;  ///< of the run; 0: what the others leave
        std::int64_t sequence = 0, global_batch = 0, micro_batch = 0, tp = 0, pp = 0,
                     cp = 0;  ///< 0: as the scenario says
        std::string where;
    };
    std::vector<Phase> phases;

    std::int64_t evaluate_every = 0;
    double evaluation_s = 0;
    double maintenance_every_s = 0, maintenance_s = 0;
    double limit_s = 0, requeue_s = 0;
    bool requeue_waits_vary = true;  ///< exponential around requeue_s
    bool final_save = true;

    struct Faults {
        std::vector<faults::Component> components;
        std::vector<faults::Degradation> degradations;
        faults::Episodes episodes;
        bool drain = false;
        double burst_cv = 1, burst_gap_s = 0, node_spread = 0, life_shape = 1;
        double lemon_share = 0, lemon_factor = 1, lemon_cured = 1;
        faults::RateDecay infant;  ///< decay in s
        bool new_lives = false, while_down = true;
        double leak_free_s = 0, leak_per_day = 0;
        double warning = 1.5, critical = 2;
        bool restart_when_critical = false;
        /// A fault at a given time: a component that stops the job, a degradation that slows it, or a flap that stalls it.
        struct Event {
            /// poisoned: NaN, back to the last save; from_zero: back to the start.
            enum class Kind : std::uint8_t { stop, slow, stall, poisoned, from_zero };
            Kind kind = Kind::stop;
            std::size_t which = 0;  ///< of components or degradations
            double at_s = 0, lasts_s = 0;
            std::uint32_t node = 0;
        };
        std::vector<Event> events;  ///< by time
    } faults;

    /// What watches the run, and by which rules.
    struct Monitors {
        bool given = false;
        double interval_s = 60;
        std::vector<monitors::Rule> rules;
    } monitors;
};

}  // namespace fabricast
