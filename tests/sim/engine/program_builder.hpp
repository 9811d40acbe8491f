// Small programs by hand: prices, groups, ranks and templates in a few lines.
//
// Template functions (compute, collective, ...) append to the template begun last and return the node index that
// `waits` of later operations take. step() opens the repeat of `count` steps, end_step() ends the step and closes it.
#pragma once

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "models/program/program.hpp"
#include "sim/engine/engine.hpp"

namespace fabricast::engine::test {

using program::kNone;

inline constexpr Picoseconds kMicrosecond = 1'000'000;

class ProgramBuilder {
public:
    program::Program program;
    std::vector<Rate> capacity;

    // ---- the cluster and its prices

    LinkId link(double bytes_per_s) {
        capacity.push_back(rate_from_bytes_per_s(bytes_per_s));
        return LinkId{static_cast<std::uint32_t>(capacity.size() - 1)};
    }
    std::uint32_t demand(std::initializer_list<LinkId> links, std::uint32_t coefficient = kCoefficientOne) {
        std::vector<LinkUse>& uses = program.demands.emplace_back();
        for (const LinkId link : links)
            uses.push_back({link, coefficient});
        return last(program.demands);
    }
    std::uint32_t route(std::uint32_t demand, Picoseconds latency, bool network = true) {
        program::Route& route = program.routes.emplace_back();
        route.demand = demand;
        route.latency = latency;
        route.uses_network = network;
        return last(program.routes);
    }
    std::uint32_t label(const std::string& name, Account account, std::int32_t micro_batch = -1) {
        program.names.push_back(name);
        program::Label& label = program.labels.emplace_back();
        label.name = last(program.names);
        label.account = account;
        label.micro_batch = micro_batch;
        return last(program.labels);
    }
    program::CostClass& cost(Picoseconds work) {
        program::CostClass& cost = program.costs.emplace_back();
        cost.work = work;
        cost.parts[static_cast<std::size_t>(Account::gemm_ideal)] = work;
        return cost;
    }
    /// A call of `bytes` that loads demand class 0 of its group with `work` bytes (0: only latency).
    std::uint32_t call(std::uint16_t slot, Bytes bytes, Picoseconds latency, Bytes work, std::uint8_t kind = 0) {
        program.calls.push_back({slot, kind, bytes});
        program::Plan plan;
        plan.latency = latency;
        plan.uses_network = true;
        if (work > 0)
            plan.activities.push_back({work, 1, 0, 0});
        program.plans.push_back({plan});
        return last(program.calls);
    }
    /// Members get the group in their next slot.
    std::uint32_t group(const std::string& name, std::vector<std::uint32_t> members,
                        std::vector<std::uint32_t> demands = {}) {
        for (const std::uint32_t member : members)
            program.ranks[member].groups.push_back(static_cast<std::uint32_t>(program.groups.size()));
        program::Group& group = program.groups.emplace_back();
        group.name = name;
        group.members = std::move(members);
        group.demands = std::move(demands);
        return last(program.groups);
    }
    program::Rank& rank(std::uint32_t tmpl) {
        program.ranks.emplace_back().tmpl = tmpl;
        return program.ranks.back();
    }
    /// Next peer slot of `from`.
    std::uint16_t peer(std::uint32_t from, std::uint32_t to, std::uint32_t route, std::uint32_t channel = 0) {
        program.ranks[from].peers.push_back({to, channel, route});
        return static_cast<std::uint16_t>(program.ranks[from].peers.size() - 1);
    }

    // ---- templates

    std::uint32_t begin(const std::string& name, std::uint8_t streams = 1) {
        program::Template& tmpl = program.templates.emplace_back();
        tmpl.name = name;
        tmpl.streams = streams;
        return last(program.templates);
    }
    void repeat(std::int64_t count, std::uint32_t bound = kNone) {
        open_.push_back(last(nodes()) + 1);
        program::Node& node = nodes().emplace_back();
        node.kind = program::Node::Kind::repeat;
        node.count = count;
        node.bound = bound;
    }
    void end() {
        nodes()[open_.back()].end = static_cast<std::uint32_t>(nodes().size());
        open_.pop_back();
    }
    void step(std::int64_t count) { repeat(count); }
    void end_step(std::vector<std::uint32_t> waits = {}) {
        operation(program::OpKind::step_end, 0, 0, label("step end", Account::idle), std::move(waits));
        end();
    }
    std::uint32_t operation(program::OpKind kind, std::uint8_t stream, std::uint32_t payload, std::uint32_t label,
                            std::vector<std::uint32_t> waits = {}) {
        program::Template& tmpl = program.templates.back();
        program::Operation& op = tmpl.operations.emplace_back();
        op.kind = kind;
        op.stream = stream;
        op.payload = payload;
        op.label = label;
        op.waits = std::move(waits);
        program::Node& node = tmpl.nodes.emplace_back();
        node.operation = last(tmpl.operations);
        node.end = static_cast<std::uint32_t>(tmpl.nodes.size());
        return last(tmpl.nodes);
    }
    std::uint32_t compute(Picoseconds work, std::vector<std::uint32_t> waits = {},
                          const std::string& name = "compute") {
        cost(work);
        return compute_class(last(program.costs), std::move(waits), name);
    }
    std::uint32_t compute_class(std::uint32_t cost_class, std::vector<std::uint32_t> waits = {},
                                const std::string& name = "compute") {
        return operation(program::OpKind::compute, 0, cost_class, label(name, Account::idle), std::move(waits));
    }
    std::uint32_t collective(std::uint8_t stream, std::uint32_t call, Account account = Account::comm_tp,
                             std::vector<std::uint32_t> waits = {}, const std::string& name = "collective") {
        return operation(program::OpKind::collective, stream, call, label(name, account), std::move(waits));
    }
    std::uint32_t batch(std::uint8_t stream, std::vector<program::MessageHalf> halves,
                        std::vector<std::uint32_t> waits = {}, const std::string& name = "exchange") {
        program.batches.push_back({std::move(halves)});
        return operation(program::OpKind::p2p_batch, stream, last(program.batches), label(name, Account::comm_pp),
                         std::move(waits));
    }
    std::uint32_t timed(program::OpKind kind, std::uint8_t stream, Picoseconds duration, Account account,
                        std::vector<std::uint32_t> waits = {}) {
        program.durations.push_back(duration);
        return operation(kind, stream, last(program.durations), label("timed", account), std::move(waits));
    }
    program::Operation& last_operation() { return program.templates.back().operations.back(); }

    EngineResult run(EngineOptions options = {}) const { return Engine(program, capacity, options).run(); }

private:
    std::vector<program::Node>& nodes() { return program.templates.back().nodes; }
    template <typename T>
    static std::uint32_t last(const std::vector<T>& values) {
        return static_cast<std::uint32_t>(values.size()) - 1;
    }
    std::vector<std::uint32_t> open_;
};

inline program::MessageHalf sends(std::uint16_t slot, Bytes bytes) { return {slot, true, bytes}; }
inline program::MessageHalf receives(std::uint16_t slot, Bytes bytes) { return {slot, false, bytes}; }

inline Picoseconds account(const EngineResult& result, std::uint32_t rank, Account account) {
    return result.accounts[rank][static_cast<std::size_t>(account)];
}
inline Picoseconds account_sum(const EngineResult& result, std::uint32_t rank) {
    Picoseconds sum = 0;
    for (const Picoseconds part : result.accounts[rank])
        sum += part;
    return sum;
}

}  // namespace fabricast::engine::test
