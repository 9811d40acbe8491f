#include "sim/traces/workload.hpp"

#include <array>

#include <fmt/format.h>

#include "topologies/importers/source_text.hpp"

namespace fabricast::traces {

std::string_view collective_name(CollectiveKind kind) {
    constexpr std::array<std::string_view, 9> names = {"all_reduce", "reduce",         "all_gather",
                                                       "gather",     "scatter",        "broadcast",
                                                       "all_to_all", "reduce_scatter", "barrier"};
    return names[static_cast<std::size_t>(kind)];
}

std::string Workload::file_of(std::uint32_t rank) const {
    return file_ending.empty() ? file_stem : fmt::format("{}{}{}", file_stem, rank, file_ending);
}

std::string describe(const Workload& workload, const TraceNode& node) {
    return fmt::format("node {} {}", node.id, importers::in_quotes(workload.names[node.name]));
}

}  // namespace fabricast::traces
