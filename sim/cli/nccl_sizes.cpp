#include "sim/cli/nccl_sizes.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <utility>
#include <vector>

#include "sim/scenario/nearest.hpp"
#include "sim/scenario/scenario.hpp"

namespace fabricast::cli {
namespace {

constexpr std::array<std::pair<std::string_view, int>, 10> kTypes = {{{"float", 4},
                                                                      {"half", 2},
                                                                      {"bfloat16", 2},
                                                                      {"double", 8},
                                                                      {"int8", 1},
                                                                      {"uint8", 1},
                                                                      {"int32", 4},
                                                                      {"uint32", 4},
                                                                      {"int64", 8},
                                                                      {"uint64", 8}}};

bool is_cut_in_parts(Collective kind) {
    return kind == Collective::all_gather || kind == Collective::reduce_scatter || kind == Collective::all_to_all ||
           kind == Collective::gather || kind == Collective::scatter;
}

}  // namespace

std::optional<Bytes> parse_size(std::string_view text) {
    double value = 0;
    const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || !(value >= 0))
        return std::nullopt;
    std::string_view unit(rest, static_cast<std::size_t>(text.data() + text.size() - rest));
    if (unit.ends_with("iB"))
        unit.remove_suffix(2);
    double scale = 1;
    if (!unit.empty()) {
        const std::size_t power = std::string_view("KkMmGg").find(unit);
        if (unit.size() != 1 || power == std::string_view::npos)
            return std::nullopt;
        scale = static_cast<double>(std::int64_t{1} << (10 * (power / 2 + 1)));
    }
    if (value * scale > 4.6e18)
        return std::nullopt;
    return static_cast<Bytes>(value * scale);
}

TestedSize tested_size(Collective kind, Bytes asked, int element, std::uint32_t ranks) {
    if (kind == Collective::barrier)
        return {0, 0};
    TestedSize out;
    out.count = asked / element;
    if (is_cut_in_parts(kind)) {
        const std::int64_t together = 16 / element;
        out.count = out.count / ranks / together * together;
    }
    out.bytes = out.count * element * (is_cut_in_parts(kind) ? ranks : 1);
    return out;
}

int element_bytes(std::string_view type) {
    for (const auto& [name, bytes] : kTypes) {
        if (name == type)
            return bytes;
    }
    return 0;
}

std::string known_types() {
    std::vector<std::string> names;
    for (const auto& [name, bytes] : kTypes)
        names.emplace_back(name);
    return listed(names);
}

Collective parse_collective(const std::string& text) {
    std::string name = text;
    if (name.ends_with("_perf"))
        name.resize(name.size() - 5);
    constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kSpellings = {
        {{"alltoall", "all_to_all"},
         {"sendrecv", "send_recv"},
         {"allreduce", "all_reduce"},
         {"allgather", "all_gather"},
         {"reducescatter", "reduce_scatter"},
         {"bcast", "broadcast"}}};
    for (const auto& [spelling, meaning] : kSpellings) {
        if (name == spelling)
            name = meaning;
    }
    if (const auto kind = find_collective(name))
        return *kind;
    std::vector<std::string> names;
    for (int k = 0; k < static_cast<int>(Collective::count); ++k)
        names.emplace_back(collective_name(static_cast<Collective>(k)));
    throw ScenarioError(fmt::format("fabricast nccl: unknown collective `{}`{}; known are {}", text,
                                    did_you_mean(name, names), listed(names)));
}

std::string_view reduction_text(Collective kind) {
    const bool none = kind == Collective::all_gather || kind == Collective::all_to_all || kind == Collective::gather ||
                      kind == Collective::scatter || kind == Collective::broadcast || kind == Collective::barrier;
    return none ? "none" : "sum";
}

}  // namespace fabricast::cli
