#include "sim/traces/communicators.hpp"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

namespace fabricast::traces {

Communicators::Communicators(const GridNetwork& network, const SystemConfig& system, const Workload& workload,
                             LinkTable& links, program::Program& program)
    : network_(network),
      system_(system),
      workload_(workload),
      program_(program),
      patterns_(network, links),
      flat_(workload.groups.size(), kNone),
      lines_(network.dimension_count()) {}

std::vector<Phase> Communicators::phases_of(const TraceNode& node, const GroupUse& use) const {
    const auto bytes = static_cast<double>(node.bytes);
    const CollectiveKind kind = node.collective;
    const Implemented what = kind == CollectiveKind::all_gather       ? Implemented::all_gather
                             : kind == CollectiveKind::reduce_scatter ? Implemented::reduce_scatter
                             : kind == CollectiveKind::all_to_all     ? Implemented::all_to_all
                                                                      : Implemented::all_reduce;
    const std::vector<DimensionAlgorithm>& algorithms = system_.of(what);
    const bool whole = algorithms.front().whole && use.dimensions == kAllDimensions;
    if (use.group != 0 || whole)
        return {{Phase::kFlat, kind, use.group != 0 ? DimensionAlgorithm{} : algorithms.front(), bytes}};
    std::vector<std::uint32_t> order;
    for (std::uint32_t d = 0; d < network_.dimension_count(); ++d) {
        if ((use.dimensions >> d & 1u) != 0)
            order.push_back(d);
    }
    if (kind == CollectiveKind::all_gather || kind == CollectiveKind::scatter || kind == CollectiveKind::broadcast)
        std::reverse(order.begin(), order.end());
    std::vector<Phase> phases;
    double size = bytes;
    const auto add = [&](std::uint32_t d, CollectiveKind of) {
        const DimensionAlgorithm& algorithm = algorithms.front().whole ? DimensionAlgorithm{} : algorithms[d];
        phases.push_back({d, of, algorithm, size});
        size = bytes_after(of, size, network_.dimension(d).count);
    };
    if (kind == CollectiveKind::all_reduce && system_.local_bandwidth_aware) {
        for (std::size_t i = 0; i + 1 < order.size(); ++i)
            add(order[i], CollectiveKind::reduce_scatter);
        add(order.back(), CollectiveKind::all_reduce);
        for (std::size_t i = order.size() - 1; i > 0; --i)
            add(order[i - 1], CollectiveKind::all_gather);
        return phases;
    }
    if (kind == CollectiveKind::gather) {  // each line gathers its part of the whole buffer
        double ranks = 1;
        for (const std::uint32_t d : order)
            ranks *= network_.dimension(d).count;
        size = bytes / ranks;
        for (const std::uint32_t d : order) {
            size *= network_.dimension(d).count;
            phases.push_back({d, kind, {}, size});
        }
        return phases;
    }
    for (const std::uint32_t d : order)
        add(d, kind);
    return phases;
}

std::uint32_t Communicators::group_of(const GroupUse& use, std::uint32_t dimension, std::uint32_t rank) {
    std::uint32_t* at = nullptr;
    std::uint32_t first = 0;
    if (dimension == Phase::kFlat) {
        at = &flat_[use.group];
    } else {
        first = rank - network_.coordinate(rank, dimension) * network_.stride(dimension);
        lines_[dimension].resize(network_.ranks(), kNone);
        at = &lines_[dimension][first];
    }
    if (*at != kNone)
        return *at;
    *at = static_cast<std::uint32_t>(groups_.size());
    Group& group = groups_.emplace_back();
    group.demand.fill(kNone);
    group.shape.fill(kNone);
    program::Group& made = program_.groups.emplace_back();
    if (dimension == Phase::kFlat) {
        const TraceGroup& source = workload_.groups[use.group];
        made.name = use.group == 0 ? source.name : "'" + source.name + "'";
        made.members = source.members;
    } else {
        group.dimension = dimension;
        made.members = network_.line(rank, dimension);
        made.name = network_.dimension_count() == 1
                        ? workload_.groups[0].name
                        : fmt::format("all ranks, dimension {} at rank {}", dimension, first);
    }
    return *at;
}

std::uint32_t Communicators::call_of(const CallSpec& spec) {
    const CallKey key = {spec.slot,
                         static_cast<int>(spec.kind),
                         spec.dimension,
                         static_cast<int>(spec.algorithm.kind),
                         spec.algorithm.window,
                         spec.bytes,
                         spec.chunks,
                         static_cast<int>(spec.part)};
    const auto [at, fresh] = call_of_.try_emplace(key, static_cast<std::uint32_t>(calls_.size()));
    if (fresh) {
        const std::uint32_t ranks =
            spec.dimension == Phase::kFlat ? network_.ranks() : network_.dimension(spec.dimension).count;
        calls_.push_back({spec, pattern_of(spec.kind, spec.algorithm, ranks)});
        groups_of_call_.emplace_back();
        program::Call& call = program_.calls.emplace_back();
        call.slot = spec.slot;
        call.kind = static_cast<std::uint8_t>(static_cast<int>(spec.kind) | static_cast<int>(spec.part) << 4);
        call.bytes = static_cast<Bytes>(spec.bytes);
    }
    return at->second;
}

void Communicators::need(std::uint32_t g, Pattern pattern) {
    const auto p = static_cast<std::size_t>(pattern);
    Group& group = groups_[g];
    if (group.demand[p] != kNone)
        return;
    PatternUse use = patterns_.build(pattern, program_.groups[g].members, group.dimension);
    group.demand[p] = static_cast<std::uint32_t>(program_.demands.size());
    program_.demands.push_back(std::move(use.demand));
    group.narrowest[p] = use.narrowest;
    const auto at = std::find(shapes_.begin(), shapes_.end(), use.shape);
    group.shape[p] = static_cast<std::uint32_t>(at - shapes_.begin());
    if (at == shapes_.end())
        shapes_.push_back(use.shape);
}

// Of several chunks each but the last takes a chunk's share of the steady flow, the last what is left of the whole.
double Communicators::part_time(const Call& call, const ChunkPrice& price) const {
    const std::uint32_t chunks = call.spec.chunks;
    const double whole = time_of_chunks(price, chunks, system_.active_chunks);
    if (call.spec.part == CallSpec::Part::all || chunks == 1)
        return whole;
    const double steady = std::max(price.busy_s, price.path_s / std::min(system_.active_chunks, chunks));
    return call.spec.part == CallSpec::Part::chunk ? steady : std::max(price.busy_s, whole - (chunks - 1) * steady);
}

double Communicators::time_alone(std::uint32_t c, std::uint32_t g) {
    const Call& call = calls_[c];
    need(g, call.pattern);
    const PatternShape& shape = shapes_[groups_[g].shape[static_cast<std::size_t>(call.pattern)]];
    return part_time(call, chunk_price(call.spec.kind, call.pattern, call.spec.algorithm.window, shape,
                                       call.spec.bytes / call.spec.chunks, system_));
}

program::Plan Communicators::plan(const Call& call, const PatternShape& shape) const {
    const ChunkPrice price = chunk_price(call.spec.kind, call.pattern, call.spec.algorithm.window, shape,
                                         call.spec.bytes / call.spec.chunks, system_);
    const double chunks = call.spec.part == CallSpec::Part::all ? call.spec.chunks : 1;
    program::Plan plan;
    plan.latency = picoseconds_from_s(std::max(0.0, part_time(call, price) - chunks * price.busy_s));
    plan.uses_network = true;
    const auto work = static_cast<Bytes>(chunks * price.work * shape.scale + 0.5);
    if (work > 0)
        plan.activities.push_back({work, 1, 0, static_cast<std::uint32_t>(call.pattern)});
    return plan;
}

void Communicators::enter(std::uint32_t c, std::uint32_t g) {
    std::vector<std::uint32_t>& groups = groups_of_call_[c];
    if (!groups.empty() && groups.back() == g)
        return;
    need(g, calls_[c].pattern);
    groups.push_back(g);
}

void Communicators::finish() {
    // Groups whose patterns have the same shapes have one shape in the program.
    std::map<std::array<std::uint32_t, kPatterns>, std::uint32_t> shape_of;
    for (std::size_t g = 0; g < groups_.size(); ++g) {
        const Group& group = groups_[g];
        program::Group& made = program_.groups[g];
        made.shape = shape_of.try_emplace(group.shape, static_cast<std::uint32_t>(shape_of.size())).first->second;
        std::uint32_t any = kNone;
        for (const std::uint32_t demand : group.demand)
            any = std::min(any, demand);
        for (const std::uint32_t demand : group.demand)
            made.demands.push_back(demand == kNone ? any : demand);
    }
    program_.plans.resize(calls_.size());
    for (std::size_t c = 0; c < calls_.size(); ++c) {
        program_.plans[c].resize(shape_of.size());
        std::vector<bool> done(shape_of.size(), false);
        for (const std::uint32_t g : groups_of_call_[c]) {
            const std::uint32_t shape = program_.groups[g].shape;
            if (done[shape])
                continue;
            done[shape] = true;
            program_.plans[c][shape] =
                plan(calls_[c], shapes_[groups_[g].shape[static_cast<std::size_t>(calls_[c].pattern)]]);
        }
    }
}

std::string Communicators::narrowest_link(std::uint32_t call, std::uint32_t group) const {
    return network_.link_name(groups_[group].narrowest[static_cast<std::size_t>(calls_[call].pattern)]);
}

}  // namespace fabricast::traces
