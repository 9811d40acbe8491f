// The forecast as data. sim/step fills it, sim/report shows it.
//
// Nothing here depends on the machine, the thread count or the wall clock: two runs of one scenario give the same bytes.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/program/account.hpp"
#include "sim/scenario/scenario.hpp"

namespace fabricast {

namespace campaign {
struct CampaignReport;
}
namespace monitor {
struct MonitorReport;
}

struct StageMemory {
    int stage = 0;
    std::int64_t total_bytes = 0, capacity_bytes = 0;
    std::array<std::int64_t, kMemoryCauseCount> parts = {};
};

/// A collective or message class of the step, for the communication table.
struct CommRow {
    std::string what;        ///< "gradient reduce-scatter"
    std::string kind;        ///< "reduce_scatter"
    std::string group;       ///< "dp 64"
    std::int64_t bytes = 0;  ///< size as nccl-tests counts it
    std::int64_t calls_per_rank = 0;
    std::string algorithm, protocol;
    int channels = 0;
    double time_s = 0;  ///< one call alone on the network
    double busbw_bytes_per_s = 0;
    std::string limiting_link;         ///< name of the link that sets its rate
    Account account = Account::count;  ///< where its exposed time goes; count = not said
    std::string limiting_place = {};   ///< what the limiting link is: "PCIe inside the node", "network adapter"
};

struct StepResult {
    Picoseconds ps = 0;  ///< period of a step
    std::int64_t ranks = 0;
    std::array<__int128, kAccountCount> accounts = {};          ///< rank-picoseconds, sum = ps * ranks
    std::vector<std::array<__int128, kAccountCount>> by_stage;  ///< the same per pipeline stage
    std::vector<std::int64_t> ranks_by_stage;
    double tokens = 0, model_flops = 0, hardware_flops = 0;    ///< whole cluster, one step
    double attention_flops = 0, attention_hardware_flops = 0;  ///< the part of both that is attention scores, in full
    double attention_flops_whole = 0;                          ///< attention_flops if no sequence were packed
    double peak_flops = 0;                                     ///< one GPU, dense, in the training precision
    int steps_simulated = 0;
    bool periodic = true;  ///< false: ps is the last interval, offsets had not settled
};

/// Of two accounts what goes when all stages have equal work, rank-picoseconds: bubble = warm-up and drain + bubble_imbalance,
/// straggler = other + straggler_imbalance.
struct WaitingSplit {
    __int128 bubble_imbalance = 0, straggler_imbalance = 0;
    std::uint64_t events = 0;  ///< of the re-run, where the forecast made it
};

/// A job over several steps and epochs: when each epoch ended, and how the job ended.
struct JobResult {
    struct Epoch {
        std::int64_t steps = 0;   ///< of the rank that does most
        std::int64_t fewest = 0;  ///< of the rank that does least
        Picoseconds begin = 0, end = 0;
        Picoseconds boundary =
            0;  ///< from the last step's end to the first forward behind it: what the epoch's end took
        bool complete = false;
    };
    std::vector<Epoch> epochs;
    Picoseconds end = 0;                                                  ///< of the job, or when it failed
    Picoseconds typical_step = 0, longest_step = 0;                       ///< median and maximum of the steps of rank 0
    std::int64_t steps_done = 0, steps_planned = 0, steps_simulated = 0;  ///< of rank 0
    double repeated = 0, missed = 0;  ///< samples of an epoch: share read more than once, never
    bool settled = true;              ///< every stretch that was skipped repeated itself
    struct Message {
        Picoseconds at = 0;
        std::int64_t rank = -1;  ///< -1: the launcher
        std::string text;
    };
    std::vector<Message> messages;        ///< in order of time; ranks that say the same are told once
    std::vector<std::int64_t> reporting;  ///< ranks that report a time-out or error of their own
    std::vector<std::int64_t> silent;     ///< ranks that are waited for and report none
    Picoseconds stalled_at = -1;          ///< endless: since when nothing moves
    std::vector<Picoseconds> steps;       ///< of rank 0, of those simulated, in order
};

/// What Scenario::quantum put off (sim/engine/network.hpp).
struct QuantumResult {
    std::uint64_t completions = 0, put_off = 0, held = 0;
    Picoseconds longest = 0;  ///< of these waits
    Picoseconds late = 0;     ///< an exact step is at most so much shorter; -1: not known
};

struct CriticalEntry {
    std::string what;
    Picoseconds ps = 0;
};

struct Result {
    std::string version;                 ///< of the program
    const Scenario* scenario = nullptr;  ///< outlives the result
    std::string verdict;                 ///< "fits", "tight", "out of memory", "out of host memory", "deadlock"
    std::string failure;                 ///< empty unless the simulated job failed (exit 3)
    StepResult step;
    std::optional<JobResult> job;         ///< where the scenario has epochs or faults with a time
    std::optional<WaitingSplit> waiting;  ///< by a re-run with equal stages, where one was asked for and ended
    std::vector<StageMemory> memory;
    std::int64_t checkpoint_bytes = 0;  ///< weights and optimizer state of the whole model
    std::int64_t host_bytes = 0;        ///< offloaded state of the server that has most
    Picoseconds warmup_ps = 0;          ///< a step before gradients are compressed; 0: no such steps
    std::vector<CommRow> communication;
    std::vector<CriticalEntry> critical_path;  ///< by account and phase, longest first; may be empty
    std::uint64_t events = 0, fingerprint = 0, ranks_simulated = 0;
    std::optional<QuantumResult> quantum;                      ///< where one was set and the step ran
    std::shared_ptr<const campaign::CampaignReport> campaign;  ///< of a run with faults, by sim/campaign; null: none
    std::shared_ptr<const monitor::MonitorReport> monitors;    ///< of a campaign that is watched, by sim/monitor
    std::vector<std::string> hints;                            ///< what would fit, what limits
};

}  // namespace fabricast
