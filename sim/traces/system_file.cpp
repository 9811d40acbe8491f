#include "sim/traces/system_file.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/traces/json_file.hpp"

namespace fabricast::traces {
namespace {

using nlohmann::json;

constexpr std::array<std::string_view, static_cast<std::size_t>(Implemented::count)> kImplementationKeys = {
    "all-reduce-implementation", "all-gather-implementation", "reduce-scatter-implementation",
    "all-to-all-implementation"};

const std::vector<std::string_view>& known_keys() {
    static const std::vector<std::string_view> keys = {"scheduling-policy",
                                                       "collective-optimization",
                                                       "preferred-dataset-splits",
                                                       "active-chunks-per-dimension",
                                                       "endpoint-delay",
                                                       "local-reduction-delay",
                                                       "L",
                                                       "o",
                                                       "g",
                                                       "G",
                                                       "model-shared-bus",
                                                       "peak-perf",
                                                       "local-mem-bw",
                                                       "roofline-enabled",
                                                       "trace-enabled",
                                                       "replay-only",
                                                       "track-local-mem",
                                                       "local-mem-trace-filename",
                                                       "all-reduce-implementation",
                                                       "all-gather-implementation",
                                                       "reduce-scatter-implementation",
                                                       "all-to-all-implementation",
                                                       "all-reduce-implementation-custom",
                                                       "all-gather-implementation-custom",
                                                       "reduce-scatter-implementation-custom",
                                                       "all-to-all-implementation-custom",
                                                       "per-node-custom-implementation",
                                                       "boost-mode",
                                                       "intra-dimension-scheduling",
                                                       "inter-dimension-scheduling"};
    return keys;
}

/// direct, direct4: the window is what follows the name.
bool direct_with(std::string_view text, std::string_view name, DimensionAlgorithm& out) {
    if (!importers::starts_with(text, name))
        return false;
    const std::string_view window = text.substr(name.size());
    const auto number = importers::to_unsigned(window);
    if (!window.empty() && (!number || *number == 0 || *number > 1'000'000))
        return false;
    out.kind = AlgorithmKind::direct;
    out.window = window.empty() ? 0 : static_cast<std::uint32_t>(*number);
    return true;
}

DimensionAlgorithm algorithm_of(const JsonFile& file, std::string_view key, const json& value) {
    const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    DimensionAlgorithm out;
    out.whole = importers::starts_with(text, "one");
    if (text == "ring" || text == "oneRing")
        return out;
    if (text == "halvingDoubling" || text == "oneHalvingDoubling") {
        out.kind = AlgorithmKind::halving_doubling;
        return out;
    }
    if (text == "doubleBinaryTree") {
        out.kind = AlgorithmKind::double_binary_tree;
        return out;
    }
    if (direct_with(text, "direct", out) || direct_with(text, "oneDirect", out))
        return out;
    static const std::vector<std::string_view> names = {
        "ring", "oneRing", "direct", "oneDirect", "halvingDoubling", "oneHalvingDoubling", "doubleBinaryTree"};
    file.refuse(key, fmt::format("algorithm {} is unknown; {} are known{}", importers::in_quotes(text),
                                 fmt::join(names, ", "), importers::did_you_mean(text, names)));
}

std::vector<DimensionAlgorithm> algorithms_of(const JsonFile& file, std::string_view key, std::uint32_t dimensions) {
    if (!file.has(key))
        return std::vector<DimensionAlgorithm>(dimensions);
    const json& list = file.at(key);
    if (!list.is_array())
        file.refuse(key, "a list of algorithms is expected, one a dimension");
    std::vector<DimensionAlgorithm> out;
    for (const json& item : list)
        out.push_back(algorithm_of(file, key, item));
    const bool whole = !out.empty() && out.front().whole;
    for (const DimensionAlgorithm& one : out) {
        if (one.whole != whole)
            file.refuse(key, "one... algorithms run over all dimensions as one; they do not mix with others");
    }
    if (whole) {
        for (const DimensionAlgorithm& one : out) {
            if (!(one == out.front()))
                file.refuse(key, "one... algorithms run over all dimensions as one: a single one is expected");
        }
        out.resize(1);
        return out;
    }
    if (out.size() != dimensions) {
        file.refuse(key, fmt::format("{} algorithms, the network has {} dimensions: one each is expected", out.size(),
                                     dimensions));
    }
    return out;
}

void refuse_custom(const JsonFile& file) {
    for (const std::string_view key : known_keys()) {
        if (key.find("custom") != std::string_view::npos && file.has(key))
            file.refuse(key, "algorithms given as traces are not simulated; name one instead");
    }
}

void note_unused(const JsonFile& file, SystemConfig& out) {
    const auto note = [&](std::string text) { out.notes.push_back(std::move(text)); };
    for (const std::string_view key : {"boost-mode", "intra-dimension-scheduling", "inter-dimension-scheduling"}) {
        if (file.has(key))
            note(fmt::format("system key {} has no effect, as in ASTRA-sim of today", key));
    }
    const std::string policy = file.word("scheduling-policy", {"LIFO", "FIFO", "EXPLICIT"});
    if (!policy.empty() && policy != "FIFO")
        note(fmt::format("scheduling-policy {}: a communicator runs its operations in the order they become ready",
                         policy));
    if (file.flag("model-shared-bus"))
        note("model-shared-bus, L, o, g, G: the bus between GPU and network adapter is not simulated");
    for (const char* key : {"L", "o", "g", "G"})
        file.number(key, 0, 1e18, 0);
    if (file.number("local-reduction-delay", 0, 1e18, 0) > 0)
        note("local-reduction-delay: adding what a message brought takes no time");
    file.flag("trace-enabled");
    if (file.flag("track-local-mem"))
        note("track-local-mem: no memory trace is written");
}

}  // namespace

std::string_view algorithm_name(AlgorithmKind kind) {
    constexpr std::array<std::string_view, 4> names = {"ring", "direct", "halving-doubling", "double binary tree"};
    return names[static_cast<std::size_t>(kind)];
}

SystemConfig default_system(std::uint32_t dimensions) {
    SystemConfig out;
    for (std::vector<DimensionAlgorithm>& list : out.algorithms)
        list.resize(dimensions);
    out.notes.push_back("no --system file: rings in every dimension, one chunk, 10 ns an endpoint");
    return out;
}

SystemConfig read_system_file(const std::string& path, std::uint32_t dimensions) {
    const JsonFile file(path, known_keys());
    SystemConfig out;
    refuse_custom(file);
    if (!file.has("preferred-dataset-splits"))
        file.refuse("preferred-dataset-splits", "is missing: into how many chunks a collective is cut");
    out.splits = file.whole("preferred-dataset-splits", 1, 4096, 1);
    out.active_chunks = file.whole("active-chunks-per-dimension", 1, 1'000'000, 1);
    out.endpoint_s = file.number("endpoint-delay", 0, 1e12, 10) / 1e9;
    out.local_bandwidth_aware = file.word("collective-optimization", {"baseline", "localBWAware"}) == "localBWAware";
    out.memory_bytes_per_s = file.number("local-mem-bw", 0, 1e12, 0) * 1e9;
    out.flops_per_s = file.number("peak-perf", 0, 1e12, 0) * 1e12;
    out.roofline = file.flag("roofline-enabled");
    out.replay_only = file.flag("replay-only");
    if (out.roofline && (out.flops_per_s <= 0 || out.memory_bytes_per_s <= 0))
        file.refuse("roofline-enabled", "needs peak-perf and local-mem-bw above 0");
    for (std::size_t i = 0; i < kImplementationKeys.size(); ++i)
        out.algorithms[i] = algorithms_of(file, kImplementationKeys[i], dimensions);
    note_unused(file, out);
    return out;
}

RemoteMemory read_remote_memory(const std::string& path) {
    const JsonFile file(path, {"memory-type", "num-nodes", "num-npus-per-node", "remote-mem-latency", "remote-mem-bw"});
    RemoteMemory out;
    const std::vector<std::string_view> kinds = {"NO_MEMORY_EXPANSION", "PER_NODE_MEMORY_EXPANSION",
                                                 "PER_NPU_MEMORY_EXPANSION", "MEMORY_POOL"};
    const std::string kind = file.word("memory-type", kinds);
    if (kind.empty())
        file.refuse("memory-type", fmt::format("is missing: {}", fmt::join(kinds, ", ")));
    out.kind = static_cast<RemoteMemory::Kind>(std::find(kinds.begin(), kinds.end(), kind) - kinds.begin());
    if (out.kind == RemoteMemory::Kind::none)
        return out;
    out.npus_per_node = file.whole("num-npus-per-node", 1, 1'000'000, 1);
    if (out.kind == RemoteMemory::Kind::per_node && !file.has("num-npus-per-node"))
        file.refuse("num-npus-per-node", "is missing: GPUs that share a memory");
    out.latency_s = file.number("remote-mem-latency", 0, 1e15, 0) / 1e9;
    out.bytes_per_s = file.number("remote-mem-bw", 1e-6, 1e9, 0) * 1e9;
    if (out.bytes_per_s <= 0)
        file.refuse("remote-mem-bw", "is missing: bytes a ns");
    return out;
}

}  // namespace fabricast::traces
