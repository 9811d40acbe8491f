#include "sim/step/collective_time.hpp"

#include <stdexcept>

#include "models/parallel/chunk_steps.hpp"
#include "models/parallel/collective_program.hpp"
#include "models/parallel/message_steps.hpp"
#include "sim/engine/engine.hpp"
#include "sim/step/bottleneck.hpp"

namespace fabricast {
namespace {

// Of the activity that takes longest alone: what holds it.
std::string slowest_part(const program::Program& p, const Links& links) {
    Picoseconds slowest = 0;
    std::string limit = "latency";
    for (const std::vector<program::Plan>& plans : p.plans) {
        for (std::size_t g = 0; g < plans.size(); ++g) {
            for (const program::Activity& a : plans[g].activities) {
                const Bottleneck b = bottleneck(links, p.demands[p.groups[g].demands[a.demand_class]], a.cap);
                const Picoseconds time = b.rate > 0 ? engine::Network::duration(a.work, b.rate) : 0;
                if (time > slowest) {
                    slowest = time;
                    limit = b.name;
                }
            }
        }
    }
    return limit;
}

Picoseconds end_of(const program::Program& program, const Cluster& cluster) {
    const engine::EngineResult run = engine::Engine(program, cluster.links().capacity).run();
    if (run.outcome != engine::Outcome::done)
        throw std::logic_error("a single collective did not end: " + run.message);
    return run.end;
}

}  // namespace

CollectiveTime time_collective(const Cluster& cluster, const CommModel& comm, const CollectiveRequest& request,
                               Bytes bytes) {
    CollectiveProgram builder(cluster, comm);
    CollectiveTime out;
    const auto ranks = static_cast<std::uint32_t>(request.members.size());
    if (request.hierarchical)
        builder.hierarchical(request.members, request.kind, bytes);
    else if (request.imbalance != 1)
        out.plan = builder.exchange(request.members, imbalanced_all_to_all(ranks, bytes, request.imbalance));
    else
        out.plan = builder.collective(request.members, request.kind, bytes);
    const program::Program program = builder.build();
    out.time = end_of(program, cluster);
    if (ranks < 2)
        out.limit = "nothing";
    else
        out.limit = out.plan.latency > out.time / 2 ? "latency" : slowest_part(program, cluster.links());
    if (out.time > 0) {
        out.alg_bytes_per_s = static_cast<double>(bytes) / seconds(out.time);
        out.bus_bytes_per_s = out.alg_bytes_per_s * bus_bandwidth_factor(request.kind, ranks);
    }
    return out;
}

std::optional<Picoseconds> time_in_steps(const Cluster& cluster, const CommModel& comm, GpuGeneration generation,
                                         const CollectiveRequest& request, Bytes bytes) {
    const std::size_t ranks = request.members.size();
    if (ranks < 2 || ranks > kMostRanksInSteps || request.hierarchical)
        return std::nullopt;
    std::vector<CallInfo> infos;
    std::vector<GpuId> gpus;
    for (const std::uint32_t rank : request.members)
        gpus.push_back(GpuId{rank});
    const auto size = static_cast<std::uint32_t>(ranks);
    switch (request.kind) {
        case Collective::all_reduce:
        case Collective::all_gather:
        case Collective::reduce_scatter: {
            if (comm.plan(comm.make_group(gpus), request.kind, bytes).algorithm != Algorithm::ring)
                return std::nullopt;
            const program::Program fluid =
                single_collective(cluster, comm, request.members, request.kind, bytes, infos);
            return end_of(expand_chunk_steps(fluid, infos, comm, cluster, generation), cluster);
        }
        case Collective::broadcast:
        case Collective::reduce: {
            const CollectivePlan plan = comm.plan(comm.make_group(gpus), request.kind, bytes);
            if (plan.algorithm != Algorithm::ring || plan.protocol != Protocol::simple)
                return std::nullopt;
            return end_of(every_chunk(cluster, comm, generation, request.members, request.kind, bytes), cluster);
        }
        case Collective::all_to_all:
        case Collective::send_recv:
        case Collective::gather:
        case Collective::scatter: {
            const PairTraffic traffic = request.imbalance != 1 ? imbalanced_all_to_all(size, bytes, request.imbalance)
                                                               : traffic_of(request.kind, size, bytes);
            return end_of(every_message(cluster, comm, generation, request.members, traffic, comm.settings().pxn),
                          cluster);
        }
        default: return std::nullopt;
    }
}

}  // namespace fabricast
