#include "sim/step/record_timeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <span>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "models/parallel/ranks.hpp"
#include "models/program/fold.hpp"

namespace fabricast {

std::vector<std::uint32_t> timeline_lanes(const TimelineRequest& request, const std::vector<std::uint32_t>& class_of,
                                          const std::vector<int>& stage_of) {
    std::vector<std::uint32_t> lanes = request.ranks;
    if (request.all) {
        lanes.resize(class_of.size());
        std::iota(lanes.begin(), lanes.end(), 0u);
    }
    if (!lanes.empty()) {
        std::sort(lanes.begin(), lanes.end());
        lanes.erase(std::unique(lanes.begin(), lanes.end()), lanes.end());
        return lanes;
    }
    // First ranks of classes, the first class of every stage before the second of any.
    std::map<std::uint32_t, std::uint32_t> first;
    for (std::uint32_t rank = 0; rank < class_of.size(); ++rank)
        first.try_emplace(class_of[rank], rank);
    std::map<int, std::size_t> seen;
    std::vector<std::pair<std::size_t, std::uint32_t>> order;
    for (const auto& [number, rank] : first)
        order.emplace_back(0, rank);
    std::sort(order.begin(), order.end());
    for (auto& [turn, rank] : order)
        turn = seen[stage_of[rank]]++;
    std::sort(order.begin(), order.end());
    order.resize(std::min(order.size(), std::max(TimelineRequest::kMostLanes, seen.size())));
    for (const auto& [turn, rank] : order)
        lanes.push_back(rank);
    std::sort(lanes.begin(), lanes.end());
    return lanes;
}

namespace {

// Runs a program and keeps the records of its rows.
engine::EngineResult run_rows(const program::Program& program, std::span<const Rate> capacity) {
    engine::EngineOptions options;
    options.record_timeline = true;
    engine::EngineResult run = engine::Engine(program, capacity, options).run();
    if (run.outcome != engine::Outcome::done)
        throw std::logic_error("timeline: " + run.message);
    return run;
}

// Records of a run by row and operation. One that had not ended when the run stopped ends there.
void sort_records(TimelineSource& source, engine::EngineResult& run, const program::Program& ran) {
    source.records = std::move(run.timeline);
    std::size_t operations = 0;
    for (const program::Rank& row : ran.ranks) {
        source.first_operation.push_back(operations);
        operations += ran.templates[row.tmpl].operations.size();
    }
    source.of_row.resize(ran.ranks.size());
    source.of_operation.resize(operations);
    std::map<std::pair<std::uint32_t, std::uint8_t>, std::uint32_t> last;
    for (std::uint32_t i = 0; i < source.records.size(); ++i) {
        const engine::Record& record = source.records[i];
        source.of_row[record.rank].push_back(i);
        source.of_operation[source.first_operation[record.rank] + record.operation].push_back(i);
        last[{record.rank, record.stream}] = i;
    }
    for (const auto& [stream, i] : last) {
        engine::Record& record = source.records[i];
        const auto kind = ran.templates[ran.ranks[record.rank].tmpl].operations[record.operation].kind;
        if (record.finished == record.issued && kind != program::OpKind::step_end)
            record.finished = run.end;
    }
}

// Begin and end of the last complete step of a row.
std::pair<Picoseconds, Picoseconds> last_step(const TimelineSource& source, std::uint32_t rank) {
    Picoseconds begin = 0, end = 0;
    for (const std::uint32_t i : source.of_row[source.class_of[rank]]) {
        if (source.operation(rank, source.records[i]).kind != program::OpKind::step_end)
            continue;
        begin = end;
        end = source.records[i].finished;
    }
    return {begin, end};
}

Bytes bytes_of(const program::Program& p, const program::Operation& op) {
    switch (op.kind) {
        case program::OpKind::collective: return p.calls[op.payload].bytes;
        case program::OpKind::transfer: return p.transfers[op.payload].bytes;
        case program::OpKind::p2p_batch: {
            Bytes sum = 0;
            for (const program::MessageHalf& half : p.batches[op.payload].halves)
                sum += half.bytes;
            return sum;
        }
        default: return 0;
    }
}

Account account_of(const program::Program& p, const program::Operation& op) {
    if (op.kind != program::OpKind::compute)
        return p.labels[op.label].account;
    const auto& parts = p.costs[op.payload].parts;
    return static_cast<Account>(std::max_element(parts.begin(), parts.end()) - parts.begin());
}

StepTimeline::Lane lane_of(const Scenario& scenario, const BuiltStep& built, std::uint32_t rank) {
    StepTimeline::Lane lane;
    lane.rank = rank;
    lane.node = static_cast<std::uint32_t>(index(built.cluster.node_of(GpuId{rank})));
    lane.stage = built.compiled.stage_of_rank[rank];
    const Layout& layout = scenario.training.layout;
    const RankMap map(layout);
    const Coordinates at = map.at(rank);
    const auto add = [&](const char* name, std::int64_t size, std::int64_t coordinate) {
        if (size > 1)
            lane.place += fmt::format("{}{} {}", lane.place.empty() ? "" : " ", name, coordinate);
    };
    add("pp", layout.pp, at.pp);
    add("dp", layout.dp, at.dp);
    add("cp", layout.cp, at.cp);
    if (layout.ep > 1)
        add("ep", layout.ep, map.expert_at(rank).ep);
    add("tp", layout.tp, at.tp);
    const program::Program& p = built.compiled.program;
    const program::Template& t = p.templates[p.ranks[rank].tmpl];
    lane.streams.resize(t.streams);
    for (const program::Operation& op : t.operations) {
        if (op.stream > 0)
            lane.streams[op.stream].push_back(account_of(p, op));
    }
    for (std::vector<Account>& accounts : lane.streams) {
        std::sort(accounts.begin(), accounts.end());
        accounts.erase(std::unique(accounts.begin(), accounts.end()), accounts.end());
    }
    return lane;
}

}  // namespace

StepTimeline record_timeline(const Scenario& scenario, bool fold, const TimelineRequest& request) {
    const BuiltStep built = build_step(scenario, build_compute(scenario), ForecastOptions{}.max_steps);
    const program::Program& p = built.compiled.program;
    TimelineSource source;
    source.program = &p;
    source.cluster = &built.cluster;
    std::vector<std::uint32_t> copies(p.ranks.size(), 1);
    if (fold) {
        program::Folded folded = program::fold(p, built.cluster.links().capacity);
        source.class_of = std::move(folded.class_of);
        copies.clear();
        for (const program::Rank& row : folded.program.ranks)
            copies.push_back(row.copies);
        engine::EngineResult run = run_rows(folded.program, folded.capacity);
        sort_records(source, run, folded.program);
    } else {
        source.class_of.resize(p.ranks.size());
        std::iota(source.class_of.begin(), source.class_of.end(), 0u);
        engine::EngineResult run = run_rows(p, built.cluster.links().capacity);
        sort_records(source, run, p);
    }

    StepTimeline out;
    out.names = p.names;
    out.classes = static_cast<std::uint32_t>(copies.size());
    for (const std::uint32_t rank : timeline_lanes(request, source.class_of, built.compiled.stage_of_rank)) {
        StepTimeline::Lane lane = lane_of(scenario, built, rank);
        lane.copies = copies[source.class_of[rank]];
        std::tie(lane.begin, lane.end) = last_step(source, rank);
        out.begin = out.lanes.empty() ? lane.begin : std::min(out.begin, lane.begin);
        out.end = std::max(out.end, lane.end);
        out.lanes.push_back(std::move(lane));
    }
    std::vector<std::vector<std::uint32_t>> slice_of(out.lanes.size());
    for (std::uint32_t n = 0; n < out.lanes.size(); ++n) {
        const std::uint32_t rank = out.lanes[n].rank;
        const std::vector<std::uint32_t>& records = source.of_row[source.class_of[rank]];
        slice_of[n].assign(records.size(), program::kNone);
        for (std::uint8_t stream = 0; stream < out.lanes[n].streams.size(); ++stream) {
            for (std::size_t i = 0; i < records.size(); ++i) {
                const engine::Record& record = source.records[records[i]];
                const program::Operation& op = source.operation(rank, record);
                if (record.stream != stream || op.kind == program::OpKind::step_end || record.finished <= out.begin ||
                    record.issued >= out.end)
                    continue;
                const program::Label& label = p.labels[op.label];
                slice_of[n][i] = static_cast<std::uint32_t>(out.slices.size());
                out.slices.push_back({.lane = n,
                                      .stream = stream,
                                      .kind = op.kind,
                                      .phase = label.phase,
                                      .account = account_of(p, op),
                                      .name = label.name,
                                      .micro_batch = label.micro_batch,
                                      .layer = label.layer,
                                      .issued = record.issued,
                                      .started = record.started,
                                      .finished = record.finished,
                                      .bytes = bytes_of(p, op)});
            }
        }
    }
    add_states(out, source);
    add_memory(out, source);
    add_flows(out, source, slice_of);
    add_links(out, source);
    return out;
}

}  // namespace fabricast
