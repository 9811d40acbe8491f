#include "sim/engine/timeline.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace fabricast::engine {

std::vector<PathPart> critical_path(const program::Program& program, const std::vector<Record>& records,
                                    Picoseconds from, Picoseconds until) {
    std::uint32_t at = program::kNone;
    for (std::uint32_t i = 0; i < records.size(); ++i) {
        if (records[i].finished > until)
            continue;
        if (at == program::kNone || records[i].finished > records[at].finished)
            at = i;
    }
    std::map<std::tuple<Account, program::Phase, std::uint32_t>, Picoseconds> sums;
    Picoseconds cursor = until;
    while (at != program::kNone && cursor > from) {
        const Record& record = records[at];
        const program::Label& label = program.labels[record.label];
        if (record.finished < cursor) {
            sums[{Account::idle, program::Phase::none, 0}] += cursor - std::max(record.finished, from);
            cursor = std::max(record.finished, from);
        }
        const Picoseconds begin = std::max(std::min(record.started, cursor), from);
        const program::Template& tmpl = program.templates[program.ranks[record.rank].tmpl];
        const bool computes = tmpl.operations[record.operation].kind == program::OpKind::compute;
        const Account account = computes ? Account::gemm_ideal : label.account;
        if (begin < cursor)
            sums[{account, label.phase, label.name}] += cursor - begin;
        cursor = begin;
        at = record.cause;
    }
    if (cursor > from)
        sums[{Account::idle, program::Phase::none, 0}] += cursor - from;
    std::vector<PathPart> parts;
    for (const auto& [key, time] : sums)
        parts.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), time});
    std::stable_sort(parts.begin(), parts.end(), [](const PathPart& a, const PathPart& b) { return a.time > b.time; });
    return parts;
}

}  // namespace fabricast::engine
