#include "sim/traces/settled_run.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

namespace fabricast::traces {
namespace {

constexpr std::uint64_t kMostNodes = 5'000'000;  ///< of jobs whose ends are remembered: 56 bytes an operation

struct Round {
    SettledRun of;
    std::uint64_t ended = 0;  ///< operations
    bool done() const { return of.run.outcome == engine::Outcome::done; }
};

/// When collectives and receives ended, by template and node; what did not end, never did.
std::vector<std::vector<Picoseconds>> ends_of(const Round& round, const Workload& workload) {
    const std::vector<TemplateOrder>& orders = round.of.compiled.orders;
    constexpr Picoseconds kNever = INT64_MAX / 4;
    std::vector<std::vector<Picoseconds>> of_operation(orders.size()), ends(orders.size());
    std::map<std::uint32_t, std::uint32_t> template_of;  // by rank
    for (std::uint32_t t = 0; t < orders.size(); ++t) {
        template_of[orders[t].rank] = t;
        const std::size_t operations = round.of.compiled.program.templates[t].operations.size();
        of_operation[t].assign(operations, round.done() ? 0 : kNever);
    }
    for (const engine::Record& record : round.of.run.timeline) {
        const auto at = template_of.find(record.rank);
        if (at != template_of.end() && (round.done() || record.finished > 0))
            of_operation[at->second][record.operation] = record.finished;
    }
    for (std::uint32_t t = 0; t < orders.size(); ++t) {
        const NodeList& list = workload.lists[workload.ranks[orders[t].rank].list];
        ends[t].assign(list.nodes.size(), 0);
        for (std::size_t n = 0; n < list.nodes.size(); ++n) {
            const NodeKind kind = list.nodes[n].kind;
            if (kind == NodeKind::collective || kind == NodeKind::receive)
                ends[t][n] = of_operation[t][orders[t].end[n]];
        }
    }
    return ends;
}

bool same_orders(const CompiledTrace& a, const CompiledTrace& b) {
    return std::equal(a.orders.begin(), a.orders.end(), b.orders.begin(), b.orders.end(),
                      [](const TemplateOrder& x, const TemplateOrder& y) { return x.order == y.order; });
}

bool better(const Round& a, const Round& b) {
    if (a.done() != b.done())
        return a.done();
    return a.done() ? a.of.run.period < b.of.run.period : a.ended > b.ended;
}

}  // namespace

SettledRun run_until_settled(const TraceInputs& inputs) {
    const Workload& workload = inputs.workload;
    const bool messages = std::any_of(workload.lists.begin(), workload.lists.end(),
                                      [](const NodeList& list) { return list.message_slots > 0; });
    engine::EngineOptions options;
    options.record_timeline = (messages || workload.lists.size() > 1) && workload.nodes_read <= kMostNodes;
    std::optional<Round> best;
    std::vector<std::vector<Picoseconds>> ends;
    CompiledTrace before;
    for (int number = 0; number < kMostRounds; ++number) {
        Round round;
        round.of.compiled = compile_trace(inputs, ends);
        if (number > 0 && same_orders(before, round.of.compiled))
            break;
        round.of.run = engine::Engine(round.of.compiled.program, round.of.compiled.capacity, options).run();
        if (!options.record_timeline)
            return std::move(round.of);
        for (const engine::Record& record : round.of.run.timeline)
            round.ended += record.finished > 0 ? 1 : 0;
        ends = ends_of(round, workload);
        round.of.run.timeline = {};
        before.orders = round.of.compiled.orders;
        const bool hopeless = round.of.run.outcome == engine::Outcome::mismatch;
        if (!best || better(round, *best))
            best = std::move(round);
        if (hopeless)
            break;
    }
    return std::move(best->of);
}

}  // namespace fabricast::traces
