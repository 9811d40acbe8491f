// A run of weeks as numbers: what the fleet is, what breaks, how the job comes back, how much there is to do.
//
// Nothing here knows of kernels or layouts: a step is a time that step_times.hpp gives for a condition of the cluster.
// Times are integer nanoseconds, drawn times are seconds (models/faults/distributions.hpp) rounded once; rates are per node
// and day. Defaults below are a job that never fails and never saves, so that each test says what it adds.
#pragma once

#include <cstdint>
#include <vector>

#include "models/faults/distributions.hpp"
#include "models/faults/fault_catalogue.hpp"

namespace fabricast::campaign {

using Nanoseconds = std::int64_t;
inline constexpr Nanoseconds kSecond = 1'000'000'000, kMinute = 60 * kSecond, kHour = 60 * kMinute, kDay = 24 * kHour;
inline constexpr Nanoseconds kNever = INT64_MAX / 4;

/// Seconds -> nanoseconds, to nearest; beyond a century it is never.
Nanoseconds nanoseconds(double seconds);
constexpr double seconds_of(Nanoseconds ns) { return static_cast<double>(ns) / static_cast<double>(kSecond); }

/// Who fails when. Node rates have mean 1 over the fleet; the components' rates say what that means.
struct FleetSpec {
    std::uint32_t nodes = 1, spares = 0;  ///< of the job, and idle ones beside it that age as they do
    std::uint32_t gpus_per_node = 8;
    std::vector<faults::Component> components;
    double node_spread = 0;  ///< log-normal sigma of node rates; says who fails, not how much the fleet does
    struct Lemons {
        double share = 0, factor = 1;  ///< nodes that fail `factor` times as often, on top of the fleet's rate
        double cured = 1;              ///< share of repairs that make a good node of one
    } lemons;
    double burst_cv = 1;       ///< coefficient of variation of the fleet's gaps; above 1: faults that follow faults
    double burst_gap_s = 0;    ///< mean time to the one that follows
    double life_shape = 1;     ///< Weibull shape of the lives of a node, each from its last repair; 1: exponential
    bool aged = true;          ///< lives began long ago; false: all nodes start new
    faults::RateDecay infant;  ///< of the fleet's rate, in s; exponential lives only
    bool strikes_while_down = true;  ///< false: only a running job fails (load makes the fault)
    double rate() const;             ///< per node and day, all components
};

/// A fault that slows the step from the next boundary on until it is mended.
struct DegradationSpec {
    faults::Degradation what;
    bool drains = false;  ///< its end is a planned stop: the node is exchanged
};

struct ConditionSpec {
    std::vector<DegradationSpec> degradations;  ///< bit i of Condition::degraded
    double congestions_per_day = 0, congestion_mean_s = 0;
    double flaps_per_day = 0, flap_low_s = 0, flap_high_s = 0;  ///< whole job; each is a stall
    /// Grows with the time since the job's start: 1 + per_day x days beyond `free`; on a grid of kLeakGrid.
    struct Leak {
        Nanoseconds free_for = 0;
        double per_day = 0;
    } leak;
    double warning = 1.5, critical = 2;  ///< of the step time of the healthy cluster
    bool restart_when_critical = false;
};

enum class SaveMode : std::uint8_t { none, sync, async, memory };

struct CheckpointSpec {
    SaveMode mode = SaveMode::none;
    std::int64_t every_steps = 0;
    Nanoseconds block = 0;                ///< training stands still
    Nanoseconds write = 0;                ///< after it, until the save counts; the next save waits for it
    Nanoseconds drag = 0;                 ///< what steps take longer in all while a save is written beside them
    Nanoseconds load = 0;                 ///< from storage
    std::int64_t memory_every_steps = 0;  ///< copies in the memory of a peer node, beside those in storage
    Nanoseconds memory_block = 0, memory_load = 0;
    double spread = 0;  ///< log-normal sigma of a blocking save's time, for the watchdog alone
};

enum class Style : std::uint8_t {
    restart,    ///< all stop, the node is replaced, all start from the last save
    shrink,     ///< the same, but without a spare the job goes on with one data-parallel replica less
    hot_spare,  ///< a spare runs along idle: no locating of hosts and no process start
    replicas,   ///< the others go on with less capacity while the replica that lost a node comes back (TorchFT)
};

struct RecoverySpec {
    Style style = Style::restart;
    Nanoseconds detect_crash = 0, detect_transport = 0, detect_hang = 0;
    double detect_silent_mean_s = 0;  ///< exponential, from corruption to its discovery
    Nanoseconds locate = 0, swap = 0, start = 0, communicators = 0;
    double spread = 0;           ///< log-normal sigma of their sum, whose median is as stated
    std::uint32_t replicas = 1;  ///< data-parallel replicas that can go on without each other
    Nanoseconds membership = 0;  ///< all replicas stand still when one leaves or joins
};

struct WatchdogSpec {
    Nanoseconds time_out = kNever;  ///< no progress for so long: the job is killed
    Nanoseconds save_grace = 0;     ///< added while a save blocks
};

struct EventsSpec {
    std::int64_t evaluate_every = 0;  ///< steps; 0: never
    Nanoseconds evaluation = 0;
    Nanoseconds maintenance_every = kNever, maintenance = 0;
    Nanoseconds time_limit = kNever;    ///< of one job of the scheduler
    faults::Distribution requeue = {};  ///< s, wait for the next
    bool final_save = true;             ///< before limit and maintenance the job saves
};

/// A stretch of the run with one step: batch ramp, longer sequences, another layout.
struct Phase {
    std::int64_t steps = 0;
    std::uint32_t key = 0;  ///< for StepTimes
    double tokens_per_step = 0;
};

/// A fault at a given time; poisoned: the loss is not a number, noticed at once, back to the last save; from_zero: what was
/// trained is worth nothing, all of it is done again. restart is no fault but somebody who saves and restarts the job; with
/// `which` a degradation, the node that has it is exchanged. Of a job that broke and of which nobody knows yet, it is the
/// detection; one that is coming back already is left alone.
struct ScheduledFault {
    enum class Kind : std::uint8_t { stop, slow, stall, poisoned, from_zero, restart };
    static constexpr std::uint32_t kNothing = UINT32_MAX;
    Nanoseconds time = 0;
    Kind kind = Kind::stop;
    std::uint32_t which = 0;  ///< component (stop) or degradation (slow)
    std::uint32_t node = 0;
    Nanoseconds lasts = 0;  ///< slow, stall; 0: as drawn
};

struct CampaignSpec {
    FleetSpec fleet;
    ConditionSpec conditions;
    CheckpointSpec checkpoint;
    RecoverySpec recovery;
    WatchdogSpec watchdog;
    EventsSpec events;
    std::vector<ScheduledFault> scheduled;  ///< by time; beside what is drawn
    std::vector<Phase> phases;              ///< at least one
    Nanoseconds horizon = kNever;           ///< the run ends then, done or not
    std::uint32_t replicas = 1;             ///< of the Monte-Carlo
    std::uint64_t seed = 1;
};

}  // namespace fabricast::campaign
