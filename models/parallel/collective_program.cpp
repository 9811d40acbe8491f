#include "models/parallel/collective_program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "models/collectives/execution.hpp"
#include "models/collectives/hierarchy.hpp"

namespace fabricast {

using program::Node;
using program::Operation;
using program::OpKind;

CollectiveProgram::CollectiveProgram(const Cluster& cluster, const CommModel& comm)
    : cluster_(cluster), comm_(comm), steps_(cluster.gpu_count()), away_(cluster.gpu_count(), false) {
    p_.names = {"step end", "traffic", "delay"};
    p_.labels = {{0, Account::idle, program::Phase::none, -1, -1, -1},
                 {1, Account::comm_other, program::Phase::none, -1, -1, -1},
                 {2, Account::idle, program::Phase::none, -1, -1, -1}};
    p_.ranks.resize(cluster.gpu_count());
}

std::uint32_t CollectiveProgram::label_of(Collective kind) {
    const std::string name(collective_name(kind));
    for (std::uint32_t l = 0; l < p_.labels.size(); ++l) {
        if (p_.names[p_.labels[l].name] == name)
            return l;
    }
    p_.labels.push_back(
        {static_cast<std::uint32_t>(p_.names.size()), Account::comm_other, program::Phase::none, -1, -1, -1});
    p_.names.push_back(name);
    return static_cast<std::uint32_t>(p_.labels.size() - 1);
}

std::uint32_t CollectiveProgram::group_of(const Members& members, std::uint8_t lane) {
    const auto [at, fresh] = groups_.try_emplace({members, lane}, static_cast<std::uint32_t>(p_.groups.size()));
    if (!fresh)
        return at->second;
    std::vector<GpuId> gpus;
    for (const std::uint32_t rank : members)
        gpus.push_back(GpuId{rank});
    comm_groups_.push_back(comm_.make_group(gpus));
    const std::uint32_t g = at->second;
    p_.groups.push_back({fmt::format("group {}", g), members, g, {}});
    for (const std::uint32_t rank : members)
        p_.ranks[rank].groups.push_back(g);
    return g;
}

void CollectiveProgram::call(std::uint32_t g, Collective kind, Bytes size, std::uint32_t variant,
                             const PlannedExchange& planned, std::uint8_t lane) {
    program::Plan plan;
    plan.latency = planned.plan.latency;
    plan.uses_nvlink = planned.plan.uses_nvlink;
    plan.uses_network = planned.plan.uses_network;
    program::Group& group = p_.groups[g];
    const auto first = static_cast<std::uint32_t>(p_.demands.size());
    for (const std::vector<LinkUse>& demand : planned.demands)
        p_.demands.push_back(demand);
    for (const PlannedActivity& activity : planned.plan.activities) {
        plan.activities.push_back(
            {activity.work, activity.weight, activity.cap, static_cast<std::uint32_t>(group.demands.size())});
        group.demands.push_back(first + activity.demand);
    }
    const std::uint32_t label = label_of(kind);
    for (const std::uint32_t rank : group.members) {
        const auto& slots = p_.ranks[rank].groups;
        const auto slot = static_cast<std::uint16_t>(std::find(slots.begin(), slots.end(), g) - slots.begin());
        const auto [at, fresh] = calls_.try_emplace({slot, static_cast<std::uint8_t>(kind), size, variant},
                                                    static_cast<std::uint32_t>(p_.calls.size()));
        if (fresh) {
            p_.calls.push_back({slot, static_cast<std::uint8_t>(kind), size});
            p_.plans.emplace_back();
        }
        std::vector<program::Plan>& plans = p_.plans[at->second];
        if (plans.size() <= g)
            plans.resize(g + 1);
        plans[g] = plan;
        steps_[rank].push_back({OpKind::collective, lane, at->second, label});
    }
}

CollectivePlan CollectiveProgram::collective(const Members& members, Collective kind, Bytes size, std::uint8_t lane) {
    const std::uint32_t g = group_of(members, lane);
    const CommGroup& group = comm_groups_[g];
    PlannedExchange planned;
    if (is_exchange(kind) && size > 0 && group.ranks > 1) {
        planned = comm_.exchange(group, traffic_of(kind, group.ranks, size));
    } else {
        planned.plan = comm_.plan(group, kind, size);
        for (const PlannedActivity& activity : planned.plan.activities)
            planned.demands.push_back(comm_.demand(group, kind == Collective::barrier ? Collective::all_reduce : kind,
                                                   planned.plan, activity.demand));
        for (std::uint32_t a = 0; a < planned.plan.activities.size(); ++a)
            planned.plan.activities[a].demand = a;
    }
    call(g, kind, size, 0, planned, lane);
    return planned.plan;
}

CollectivePlan CollectiveProgram::exchange(const Members& members, const PairTraffic& traffic, std::uint8_t lane) {
    const std::uint32_t g = group_of(members, lane);
    const PlannedExchange planned = comm_.exchange(comm_groups_[g], traffic);
    call(g, traffic.kind, traffic.size, ++variants_, planned, lane);
    return planned.plan;
}

void CollectiveProgram::hierarchical(const Members& members, Collective kind, Bytes size, std::uint8_t lane) {
    std::vector<GpuId> gpus;
    for (const std::uint32_t rank : members)
        gpus.push_back(GpuId{rank});
    for (const Phase& phase : hierarchical_phases(order_by_node(cluster_, gpus), kind, size)) {
        for (const std::vector<GpuId>& group : phase.groups) {
            Members ranks;
            for (const GpuId gpu : group)
                ranks.push_back(static_cast<std::uint32_t>(index(gpu)));
            collective(ranks, phase.kind, phase.size, lane);
        }
    }
}

void CollectiveProgram::traffic(std::uint32_t from, std::uint32_t to, Bytes bytes, std::uint8_t lane) {
    const CommModel::Message message = comm_.message(GpuId{from}, GpuId{to}, bytes);
    program::Route route;
    route.latency = message.latency;
    route.cap = message.cap;
    route.uses_network = message.uses_network;
    route.uses_nvlink = message.uses_nvlink;
    route.demand = static_cast<std::uint32_t>(p_.demands.size());
    p_.demands.push_back(message.links);
    program::Rank& rank = p_.ranks[from];
    const auto slot = static_cast<std::uint16_t>(rank.transfer_routes.size());
    rank.transfer_routes.push_back(static_cast<std::uint32_t>(p_.routes.size()));
    p_.routes.push_back(route);
    steps_[from].push_back({OpKind::transfer, lane, static_cast<std::uint32_t>(p_.transfers.size()), 1});
    p_.transfers.push_back({slot, bytes});
}

void CollectiveProgram::delay(std::uint32_t rank, Picoseconds time, std::uint8_t lane) {
    steps_[rank].push_back({OpKind::host, lane, static_cast<std::uint32_t>(p_.durations.size()), 2});
    p_.durations.push_back(time);
}

program::Program CollectiveProgram::build() const {
    program::Program p = p_;
    for (std::vector<program::Plan>& plans : p.plans)
        plans.resize(p.groups.size());
    std::map<std::vector<Step>, std::uint32_t> known;
    std::size_t slots = 0;
    for (const program::Rank& rank : p.ranks)
        slots = std::max(slots, rank.groups.size());
    for (std::uint32_t r = 0; r < p.ranks.size(); ++r) {
        p.ranks[r].groups.resize(slots, program::kNone);
        const std::vector<Step> steps = away_[r] ? std::vector<Step>() : steps_[r];
        const auto [at, fresh] = known.try_emplace(steps, static_cast<std::uint32_t>(p.templates.size()));
        p.ranks[r].tmpl = at->second;
        if (!fresh)
            continue;
        program::Template t;
        t.name = steps.empty() ? "other" : fmt::format("member {}", at->second);
        const auto add = [&t](Operation op) {
            const auto n = static_cast<std::uint32_t>(t.nodes.size());
            t.streams = std::max<std::uint8_t>(t.streams, static_cast<std::uint8_t>(op.stream + 1));
            t.nodes.push_back({Node::Kind::operation, n + 1, 1, program::kNone, n});
            t.operations.push_back(std::move(op));
            return n;
        };
        std::map<std::uint8_t, std::uint32_t> last;
        for (const Step& step : steps) {
            Operation op;
            op.kind = step.kind;
            op.stream = step.lane;
            op.payload = step.payload;
            op.label = step.label;
            last[step.lane] = add(std::move(op));
        }
        Operation end;
        end.kind = OpKind::step_end;
        for (const auto& [lane, node] : last) {
            if (lane != 0)
                end.waits.push_back(node);
        }
        add(std::move(end));
        p.templates.push_back(std::move(t));
    }
    return p;
}

}  // namespace fabricast
