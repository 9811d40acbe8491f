#include "sim/traces/compile_trace.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "sim/traces/communicators.hpp"
#include "sim/traces/messages.hpp"
#include "sim/traces/template_builder.hpp"

namespace fabricast::traces {
namespace {

/// A route to the remote memory of every rank that shares one.
class MemoryRoutes {
public:
    MemoryRoutes(const RemoteMemory& memory, LinkTable& links, program::Program& program)
        : memory_(memory), links_(links), program_(program) {}

    std::uint32_t of(std::uint32_t rank) {
        const std::uint32_t share = memory_.kind == RemoteMemory::Kind::pool       ? 0
                                    : memory_.kind == RemoteMemory::Kind::per_node ? rank / memory_.npus_per_node
                                                                                   : rank;
        const auto [at, fresh] = route_of_.try_emplace(share, static_cast<std::uint32_t>(program_.routes.size()));
        if (fresh) {
            program::Route& route = program_.routes.emplace_back();
            route.latency = picoseconds_from_s(memory_.latency_s);
            route.demand = static_cast<std::uint32_t>(program_.demands.size());
            program_.demands.push_back({{links_.add(memory_.bytes_per_s), kCoefficientOne}});
        }
        return at->second;
    }

private:
    const RemoteMemory& memory_;
    LinkTable& links_;
    program::Program& program_;
    std::map<std::uint32_t, std::uint32_t> route_of_;
};

/// Ranks of one list share a template when their groups are of the same kind: all ranks, over which dimensions, or some.
std::vector<std::uint32_t> template_key(const RankTrace& bound) {
    std::vector<std::uint32_t> key = {bound.list};
    for (const GroupUse& use : bound.groups)
        key.push_back(use.group == 0 ? use.dimensions : 0u);
    return key;
}

}  // namespace

CompiledTrace compile_trace(const TraceInputs& inputs, const std::vector<std::vector<Picoseconds>>& ends) {
    const Workload& workload = inputs.workload;
    CompiledTrace out;
    program::Program& program = out.program;
    program.names = workload.names;
    program.names.emplace_back("end of the trace");
    LinkTable links(inputs.network);
    Communicators communicators(inputs.network, inputs.system, workload, links, program);
    TemplateBuilder templates(inputs, communicators, out);
    MemoryRoutes memory(inputs.memory, links, program);

    std::map<std::vector<std::uint32_t>, BuiltTemplate> built;
    program.ranks.resize(workload.ranks.size());
    std::vector<std::uint64_t> ranks_of_traffic;
    for (std::uint32_t rank = 0; rank < workload.ranks.size(); ++rank) {
        const RankTrace& bound = workload.ranks[rank];
        const auto [at, fresh] = built.try_emplace(template_key(bound));
        if (fresh)
            at->second = templates.build(rank, ends.empty() ? std::vector<Picoseconds>{} : ends[out.orders.size()]);
        const BuiltTemplate& of = at->second;
        program::Rank& made = program.ranks[rank];
        made.tmpl = of.tmpl;
        made.groups.reserve(of.slots.size());
        for (std::size_t slot = 0; slot < of.slots.size(); ++slot) {
            const SlotSpec& spec = of.slots[slot];
            const GroupUse use = spec.dimension == Phase::kFlat ? bound.groups[spec.group_slot] : GroupUse{};
            made.groups.push_back(communicators.group_of(use, spec.dimension, rank));
            for (const std::uint32_t call : of.calls_of_slot[slot])
                communicators.enter(call, made.groups.back());
        }
        if (of.uses_memory)
            made.transfer_routes.push_back(memory.of(rank));
        for (const auto& [row, count] : of.traffic)
            out.traffic[row].calls += count;
    }
    communicators.finish();
    if (!inputs.system.replay_only)
        bind_messages(workload, inputs.network, links, program);
    out.capacity = links.capacity();
    if (templates.shared_streams())
        out.notes.push_back("a rank has more groups and message channels than streams: some run one after the other");
    return out;
}

}  // namespace fabricast::traces
