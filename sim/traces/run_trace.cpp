#include "sim/traces/run_trace.hpp"

#include <map>
#include <utility>

#include <fmt/format.h>

#include "sim/traces/messages.hpp"
#include "sim/traces/settled_run.hpp"
#include "sim/traces/simai_reader.hpp"
#include "sim/traces/trace_reader.hpp"
#include "topologies/importers/astra_network.hpp"

namespace fabricast::traces {
namespace {

std::string last_part(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    return slash == std::string::npos ? path : path.substr(slash + 1);
}

std::string describe_network(const GridNetwork& network) {
    static constexpr std::array<const char*, 3> kinds = {"Ring", "FullyConnected", "Switch"};
    std::string text;
    for (std::size_t d = 0; d < network.dimension_count(); ++d) {
        const importers::GridDimension& dimension = network.dimension(d);
        text +=
            fmt::format("{}{} {} at {:.4g} GB/s", d > 0 ? " x " : "", kinds[static_cast<std::size_t>(dimension.kind)],
                        dimension.count, dimension.bytes_per_s / 1e9);
    }
    return text;
}

std::string describe_system(const SystemConfig& system) {
    std::string text = fmt::format("{} chunk{}, {} at once in a dimension", system.splits,
                                   system.splits == 1 ? "" : "s", system.active_chunks);
    text += system.replay_only ? ", replay" : system.roofline ? ", roofline" : ", recorded durations";
    return text;
}

/// Every rank's accounts up to its end, the rest of the step idle.
void fill(TraceResult& result, const engine::EngineResult& run, const CompiledTrace& compiled) {
    result.step = run.period;
    std::map<std::pair<std::uint32_t, std::array<Picoseconds, kAccountCount>>, std::size_t> class_of;
    for (std::uint32_t rank = 0; rank < run.accounts.size(); ++rank) {
        const std::uint32_t tmpl = compiled.program.ranks[rank].tmpl;
        const auto [at, fresh] = class_of.try_emplace({tmpl, run.accounts[rank]}, result.classes.size());
        if (fresh) {
            RankClass& made = result.classes.emplace_back();
            made.trace = compiled.program.templates[tmpl].name;
            made.accounts = run.accounts[rank];
            for (const Picoseconds part : made.accounts)
                made.finish += part;
            made.accounts[static_cast<std::size_t>(Account::idle)] += run.period - made.finish;
        }
        RankClass& of = result.classes[at->second];
        of.ranks.push_back(rank);
        for (std::size_t a = 0; a < kAccountCount; ++a)
            result.accounts[a] += of.accounts[a];
    }
}

}  // namespace

TraceResult run_trace(const TraceArguments& arguments) {
    const importers::FabricDescription fabric =
        importers::read_astra_dimensions(importers::SourceText::from_file(arguments.network));
    const GridNetwork network(fabric.dimensions, arguments.network);
    const auto dimensions = static_cast<std::uint32_t>(network.dimension_count());
    const SystemConfig system =
        arguments.system.empty() ? default_system(dimensions) : read_system_file(arguments.system, dimensions);
    const RemoteMemory memory = arguments.memory.empty() ? RemoteMemory{} : read_remote_memory(arguments.memory);
    const Workload workload = arguments.simai.empty()
                                  ? read_traces(arguments.chakra, arguments.groups, network.ranks(), dimensions)
                                  : read_simai(arguments.simai, network.ranks());

    TraceResult result;
    result.version = FABRICAST_VERSION;
    result.source = workload.source;
    result.network = last_part(arguments.network) + ": " + describe_network(network);
    result.system =
        (arguments.system.empty() ? "no system file" : last_part(arguments.system)) + ": " + describe_system(system);
    result.ranks = network.ranks();
    result.nodes = workload.nodes_read;
    for (const importers::Note& note : fabric.notes)
        result.notes.push_back(note.text);
    result.notes.insert(result.notes.end(), system.notes.begin(), system.notes.end());
    result.notes.insert(result.notes.end(), workload.notes.begin(), workload.notes.end());

    if (!system.replay_only) {
        result.failure = unmatched_messages(workload);
        if (!result.failure.empty()) {
            result.verdict = "unmatched message";
            return result;
        }
    }
    const auto [compiled, run] = run_until_settled({workload, network, system, memory, arguments.serial_communication});
    result.templates = static_cast<std::uint32_t>(compiled.program.templates.size());
    result.traffic = compiled.traffic;
    result.notes.insert(result.notes.end(), compiled.notes.begin(), compiled.notes.end());
    result.events = run.events;
    result.fingerprint = run.fingerprint;
    if (run.outcome != engine::Outcome::done) {
        result.verdict = run.outcome == engine::Outcome::deadlock ? "deadlock" : "mismatch";
        result.failure = run.message;
        return result;
    }
    result.verdict = "done";
    fill(result, run, compiled);
    return result;
}

}  // namespace fabricast::traces
