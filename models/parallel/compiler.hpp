// Transformer + layout + cluster -> Program, with the memory of every stage.
//
// Activations come from a replay of the template in order; static memory, what lies outside tensors and the allocator:
// memory.hpp.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "models/parallel/stage_builder.hpp"

namespace fabricast {

struct StageSummary {
    program::MemoryPeak memory;
    std::int64_t parameters = 0;  ///< of one rank
    Bytes host = 0;               ///< training state of one rank in host memory
    std::int64_t in_flight = 0;   ///< micro-batches (of chunks) held at most
};

/// One call of the step on the group it uses, for the communication table.
struct CallSummary {
    std::uint32_t call = 0;  ///< index into program.calls
    CallInfo info;
    std::string group;                ///< "tp 8"
    std::int64_t calls_per_rank = 0;  ///< in a step, on the rank that calls it most
    CollectivePlan plan;
    std::uint32_t example_group = 0;  ///< index into program.groups
};

struct CompiledStep {
    program::Program program;
    std::vector<StageSummary> stages;
    std::vector<int> stage_of_rank;
    std::vector<CallSummary> calls;
    std::int64_t messages_per_rank = 0;  ///< pipeline messages a rank sends in a step, on the rank that sends most
    std::size_t message_routes = 0;      ///< program.routes that are messages; behind them those to the host
    double model_flops = 0, hardware_flops = 0;  ///< whole cluster, one step; attention in full
};

/// For callers that compile many layouts.
struct CompileOptions {
    KernelPrices* prices = nullptr;  ///< of `compute`, shared between compilations
    /// Asked for the memory of the stages before ranks are placed; false: the step is left without ranks.
    std::function<bool(const std::vector<StageSummary>&)> fits = nullptr;
    bool validate = true;  ///< the program of a job small enough
};

/// steps: how often the step is repeated in the program at most. Preconditions: check_layout() passed and the cluster has
/// layout.world() GPUs, with a PCIe link each where state is offloaded. Throws std::logic_error if the program breaks a rule
/// of program::validate (our bug).
CompiledStep compile_step(const Architecture& a, const TrainingPlan& plan, const SoftwareFeatures& software,
                          const Cluster& cluster, const ComputeModel& compute, const CommModel& comm,
                          std::int64_t steps, const CompileOptions& options = {});

/// Memory of every stage alone, without pricing anything (for verdicts and hints).
std::vector<StageSummary> stage_memory(const Architecture& a, const TrainingPlan& plan,
                                       const SoftwareFeatures& software, const ComputeModel& compute);

}  // namespace fabricast
