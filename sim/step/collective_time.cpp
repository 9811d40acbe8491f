#include "sim/step/collective_time.hpp"

#include <stdexcept>

#include "models/parallel/collective_program.hpp"
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
    const engine::EngineResult run = engine::Engine(program, cluster.links().capacity).run();
    if (run.outcome != engine::Outcome::done)
        throw std::logic_error("a single collective did not end: " + run.message);
    out.time = run.end;
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

}  // namespace fabricast
