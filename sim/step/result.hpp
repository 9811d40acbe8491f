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
    std::vector<std::string> hints;                            ///< what would fit, what limits
};

}  // namespace fabricast
