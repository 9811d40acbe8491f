// A plan as an array of Slurm tasks: every task is a shard with a store of its own, which goes on where it was when the task is
// requeued.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fabricast::cli {

struct SlurmJob {
    std::string name;                   ///< of the scenario
    std::uint32_t tasks = 1, cpus = 1;  ///< cpus: of a task
    std::string store;                  ///< full path
    std::vector<std::string>
        command;  ///< "plan", the scenario's full path and options, without store, shard and threads
};

/// The text of the batch script; runs this program by its full path.
std::string slurm_script(const SlurmJob& job);

/// sbatch's answer; throws ScenarioError where it is not there or refuses.
std::string submit(const std::string& script);

}  // namespace fabricast::cli
