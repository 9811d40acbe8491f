#include "sim/step/program_edits.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <tuple>

namespace fabricast {
namespace {

using program::CostClass;
using program::Operation;
using program::OpKind;
using program::Phase;
using program::Program;
using Wide = __int128;

enum Part : std::size_t { kForward, kBackward, kRest, kParts };

Part part_of(Phase phase) {
    switch (phase) {
        case Phase::forward: return kForward;
        case Phase::backward:
        case Phase::recompute: return kBackward;
        default: return kRest;
    }
}

Picoseconds scaled(Picoseconds time, Wide numerator, Wide denominator) {
    return static_cast<Picoseconds>(static_cast<Wide>(time) * numerator / denominator);
}

CostClass scaled(CostClass cost, Wide numerator, Wide denominator) {
    cost.work = 0;
    for (Picoseconds& part : cost.parts) {
        part = scaled(part, numerator, denominator);
        cost.work += part;
    }
    for (Picoseconds* time : {&cost.host, &cost.host_first, &cost.tail})
        *time = scaled(*time, numerator, denominator);
    return cost;
}

}  // namespace

void no_interference(Program& p) {
    for (CostClass& cost : p.costs)
        cost.speed.fill(program::kFullSpeed);
}

void free_launches(Program& p) {
    for (CostClass& cost : p.costs)
        cost.host = cost.host_first = cost.tail = 0;
}

void free_host(Program& p) {
    for (program::Transfer& transfer : p.transfers)
        transfer.bytes = 0;
    for (program::Template& t : p.templates) {
        for (const Operation& op : t.operations)
            if (op.kind == OpKind::host)
                p.durations[op.payload] = 0;
    }
}

void equal_ranks(Program& p) {
    for (program::Rank& rank : p.ranks)
        rank.slowness = program::kFullSpeed;
    for (program::Template& t : p.templates) {
        for (Operation& op : t.operations)
            op.late = 0;
    }
}

void free_communication(Program& p) {
    no_interference(p);
    for (auto& shapes : p.plans) {
        for (program::Plan& plan : shapes)
            plan = {};
    }
    for (program::Route& route : p.routes)
        route.latency = 0;
    for (program::Batch& batch : p.batches) {
        for (program::MessageHalf& half : batch.halves)
            half.bytes = 0;
    }
}

void equal_stages(Program& p) {
    std::vector<std::int64_t> ranks_of(p.templates.size(), 0);
    for (const program::Rank& rank : p.ranks)
        ranks_of[rank.tmpl] += rank.copies;
    std::vector<std::array<Wide, kParts>> own(p.templates.size());
    std::array<Wide, kParts> all = {};
    std::array<Wide, kParts> ranks = {};  // that have such work
    for (std::size_t t = 0; t < p.templates.size(); ++t) {
        own[t] = {};
        const std::vector<std::int64_t> runs = program::executions(p.templates[t]);
        for (std::size_t i = 0; i < runs.size(); ++i) {
            const Operation& op = p.templates[t].operations[i];
            if (op.kind == OpKind::compute)
                own[t][part_of(p.labels[op.label].phase)] += static_cast<Wide>(p.costs[op.payload].work) * runs[i];
        }
        for (std::size_t part = 0; part < kParts; ++part) {
            all[part] += own[t][part] * ranks_of[t];
            ranks[part] += own[t][part] > 0 ? ranks_of[t] : 0;
        }
    }
    std::map<std::tuple<std::size_t, Part, std::uint32_t>, std::uint32_t> copies;
    for (std::size_t t = 0; t < p.templates.size(); ++t) {
        for (Operation& op : p.templates[t].operations) {
            if (op.kind != OpKind::compute)
                continue;
            const Part part = part_of(p.labels[op.label].phase);
            if (own[t][part] == 0)
                continue;
            const auto [at, fresh] =
                copies.try_emplace({t, part, op.payload}, static_cast<std::uint32_t>(p.costs.size()));
            if (fresh) {
                // mean / own with the mean in picoseconds, so that the products stay far below 2^127
                const CostClass copy = scaled(p.costs[op.payload], all[part] / ranks[part], own[t][part]);
                p.costs.push_back(copy);
            }
            op.payload = at->second;
        }
    }
}

void full_pipeline(Program& p) {
    // Messages of the pipeline alone: batches may carry other traffic (rings of context parallelism).
    std::vector<bool> pipeline(p.batches.size(), false), slots;
    for (const program::Template& t : p.templates) {
        for (const Operation& op : t.operations) {
            if (op.kind == OpKind::p2p_batch && p.labels[op.label].account == Account::comm_pp)
                pipeline[op.payload] = true;
        }
    }
    for (std::size_t b = 0; b < p.batches.size(); ++b) {
        if (!pipeline[b])
            continue;
        std::vector<program::MessageHalf>& halves = p.batches[b].halves;
        for (const program::MessageHalf& half : halves) {
            if (slots.size() <= half.peer_slot)
                slots.resize(half.peer_slot + 1u, false);
            slots[half.peer_slot] = true;
        }
        std::erase_if(halves, [](const program::MessageHalf& half) { return !half.is_send; });
    }
    for (program::Rank& rank : p.ranks) {
        for (std::size_t slot = 0; slot < rank.peers.size() && slot < slots.size(); ++slot) {
            if (slots[slot] && rank.peers[slot].send_route != program::kNone)
                rank.peers[slot].slots = UINT32_MAX;  // buffered: a send starts without its receive
        }
    }
}

std::vector<Rate> unlimited(const Links& links, std::initializer_list<LinkKind> kinds) {
    std::vector<Rate> capacity = links.capacity;
    for (std::size_t link = 0; link < capacity.size(); ++link) {
        if (std::find(kinds.begin(), kinds.end(), links.kind[link]) != kinds.end())
            capacity[link] = std::max(capacity[link], rate_from_bytes_per_s(kUnlimited));
    }
    return capacity;
}

}  // namespace fabricast
