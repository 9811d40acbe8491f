#include "sim/cli/plan_slurm.hpp"

#include <sys/wait.h>

#include <cctype>
#include <cstdio>
#include <filesystem>

#include <fmt/format.h>

#include "sim/cli/command_line.hpp"
#include "sim/scenario/scenario.hpp"

namespace fabricast::cli {
namespace {

namespace fs = std::filesystem;

std::string own_path() {
    std::error_code error;
    const fs::path path = fs::read_symlink("/proc/self/exe", error);
    return error ? std::string("fabricast") : path.string();
}

// In a #SBATCH line a value in quotes may hold blanks; `%` would begin a pattern.
std::string directive(std::string_view name, const std::string& value) {
    return fmt::format("#SBATCH --{}=\"{}\"\n", name, value);
}

std::string job_name(const std::string& name) {
    std::string out = "plan-";
    for (const char c : name)
        out += std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '.' ? c : '_';
    return out;
}

}  // namespace

std::string slurm_script(const SlurmJob& job) {
    for (const std::string& path : {job.store, fs::current_path().string()}) {
        if (path.find_first_of("\"%\n\\") != std::string::npos)
            throw ScenarioError(fmt::format(
                "fabricast plan: --slurm: a path with quotes, % or \\ cannot stand in a batch script: {}", path));
    }
    std::string words;
    for (const std::string& word : job.command)
        words += " " + shell_word(word);
    std::string out = "#!/bin/bash\n";
    out +=
        fmt::format("# The layouts of a plan in {} shards, written by fabricast {}.\n", job.tasks, FABRICAST_VERSION);
    out +=
        "# A task keeps what it evaluated in a store of its own and goes on from there when it is requeued or begun "
        "again.\n";
    out += fmt::format("# When all have ended:  fabricast plan merge {}\n", shell_word(job.store));
    out += directive("job-name", job_name(job.name));
    out += fmt::format("#SBATCH --array=0-{}\n#SBATCH --requeue\n#SBATCH --open-mode=append\n", job.tasks - 1);
    out += fmt::format("#SBATCH --ntasks=1\n#SBATCH --cpus-per-task={}\n", job.cpus);
    out += directive("chdir", fs::current_path().string());
    out += directive("output", job.store + ".%a.log");
    out +=
        fmt::format("exec {}{} --store {} --shard \"$SLURM_ARRAY_TASK_ID/{}\" --jobs \"${{SLURM_CPUS_PER_TASK:-1}}\"\n",
                    shell_word(own_path()), words, shell_word(job.store), job.tasks);
    return out;
}

std::string submit(const std::string& script) {
    FILE* pipe = popen(fmt::format("sbatch {} 2>&1", shell_word(script)).c_str(), "r");
    if (pipe == nullptr)
        throw ScenarioError("fabricast plan: --submit: cannot run sbatch");
    std::string answer;
    char buffer[512];
    for (std::size_t n = 0; (n = fread(buffer, 1, sizeof buffer, pipe)) > 0;)
        answer.append(buffer, n);
    const int status = pclose(pipe);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        throw ScenarioError(fmt::format("fabricast plan: --submit: sbatch {}: {}", script, answer));
    return answer;
}

}  // namespace fabricast::cli
