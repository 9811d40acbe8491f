#include "sim/step/communication_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "sim/engine/network.hpp"
#include "sim/step/bottleneck.hpp"

namespace fabricast {

namespace {

// Calls of two stages whose groups lie differently but cost the same are one row.
bool same_cost(const CommRow& a, const CommRow& b) {
    return a.what == b.what && a.kind == b.kind && a.group == b.group && a.bytes == b.bytes &&
           a.algorithm == b.algorithm && a.protocol == b.protocol && a.channels == b.channels && a.time_s == b.time_s;
}

void add_row(std::vector<CommRow>& rows, CommRow row) {
    const auto at = std::find_if(rows.begin(), rows.end(), [&](const CommRow& other) { return same_cost(other, row); });
    if (at == rows.end())
        rows.push_back(std::move(row));
    else
        at->calls_per_rank = std::max(at->calls_per_rank, row.calls_per_rank);
}

// Copies to the host and back, of the rank that has most of each size.
std::vector<CommRow> host_rows(const CompiledStep& step, const Cluster& cluster) {
    const program::Program& p = step.program;
    std::vector<CommRow> rows;
    for (std::size_t r = 0; r < p.ranks.size() && step.message_routes < p.routes.size(); ++r) {
        const program::Rank& rank = p.ranks[r];
        if (r > 0 && rank.tmpl == p.ranks[r - 1].tmpl)
            continue;
        const program::Template& t = p.templates[rank.tmpl];
        const std::vector<std::int64_t> runs = program::executions(t, rank.bindings);
        std::map<std::pair<std::uint32_t, std::uint32_t>, std::int64_t> count;  // transfer, name
        for (std::size_t i = 0; i < t.operations.size(); ++i)
            if (t.operations[i].kind == program::OpKind::transfer)
                count[{t.operations[i].payload, p.labels[t.operations[i].label].name}] += runs[i];
        for (const auto& [key, calls] : count) {
            const program::Transfer& transfer = p.transfers[key.first];
            const program::Route& route = p.routes[rank.transfer_routes[transfer.route_slot]];
            const Bottleneck b = bottleneck(cluster.links(), p.demands[route.demand], route.cap);
            CommRow row;
            row.what = p.names[key.second];
            row.kind = "copy";
            row.group = "host";
            row.bytes = transfer.bytes;
            row.calls_per_rank = calls;
            row.time_s = seconds(route.latency + engine::Network::duration(transfer.bytes, b.rate));
            row.busbw_bytes_per_s = static_cast<double>(row.bytes) / row.time_s;
            row.limiting_link = b.name;
            row.limiting_place = b.place;
            row.account = Account::offload;
            add_row(rows, std::move(row));
        }
    }
    return rows;
}

}  // namespace

std::vector<CommRow> communication_table(const CompiledStep& step, const Cluster& cluster) {
    std::vector<CommRow> out;
    const program::Program& p = step.program;
    for (const CallSummary& call : step.calls) {
        const program::Group& group = p.groups[call.example_group];
        if (group.members.size() < 2)
            continue;
        CommRow row;
        row.what = call.info.what;
        row.kind = collective_name(call.info.kind);
        row.group = call.group;
        row.bytes = call.info.bytes * call.info.share / 1000;
        row.calls_per_rank = call.calls_per_rank;
        row.algorithm = algorithm_name(call.plan.algorithm);
        row.protocol = protocol_name(call.plan.protocol);
        row.channels = call.plan.channels;
        const program::Plan& plan = p.plans[call.call][group.shape];
        Picoseconds slowest = 0;
        for (const program::Activity& activity : plan.activities) {
            const Bottleneck b =
                bottleneck(cluster.links(), p.demands[group.demands[activity.demand_class]], activity.cap);
            const Picoseconds time = engine::Network::duration(activity.work, b.rate);
            if (time <= slowest)
                continue;
            slowest = time;
            row.limiting_link = b.name;
            row.limiting_place = b.place;
        }
        row.time_s = seconds(plan.latency + slowest);
        if (row.time_s > 0) {
            row.busbw_bytes_per_s =
                static_cast<double>(row.bytes) / row.time_s *
                bus_bandwidth_factor(call.info.kind, static_cast<std::uint32_t>(group.members.size()));
        }
        row.account = slot_account(call.info.slot);
        add_row(out, std::move(row));
    }
    // one row for pipeline messages
    if (step.message_routes > 0) {
        CommRow row;
        row.what = "pipeline send/receive";
        row.kind = "send_recv";
        row.group = fmt::format("pp {}", step.stages.size());
        row.calls_per_rank = step.messages_per_rank;
        for (const program::Batch& batch : p.batches) {
            for (const program::MessageHalf& half : batch.halves)
                row.bytes = std::max(row.bytes, half.bytes);
        }
        Picoseconds slowest = 0;
        std::pair<Rate, Picoseconds> before;  // most routes are like the one before
        for (std::size_t i = 0; i < step.message_routes; ++i) {
            const program::Route& route = p.routes[i];
            const Rate rate = bottleneck_rate(cluster.links(), p.demands[route.demand], route.cap);
            if (before == std::pair{rate, route.latency})
                continue;
            before = {rate, route.latency};
            const Picoseconds time = route.latency + engine::Network::duration(row.bytes, rate);
            if (time <= slowest)
                continue;
            slowest = time;
            const Bottleneck b = bottleneck(cluster.links(), p.demands[route.demand], route.cap);
            row.limiting_link = b.name;
            row.limiting_place = b.place;
        }
        row.time_s = seconds(slowest);
        row.busbw_bytes_per_s = static_cast<double>(row.bytes) / row.time_s;
        row.account = Account::comm_pp;
        add_row(out, std::move(row));
    }
    for (const CommRow& row : host_rows(step, cluster))
        add_row(out, row);
    std::stable_sort(out.begin(), out.end(), [](const CommRow& a, const CommRow& b) {
        return a.time_s * static_cast<double>(std::max<std::int64_t>(a.calls_per_rank, 1)) >
               b.time_s * static_cast<double>(std::max<std::int64_t>(b.calls_per_rank, 1));
    });
    return out;
}

}  // namespace fabricast
