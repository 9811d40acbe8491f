#include "sim/cli/nccl_table.hpp"

#include <stdexcept>

#include "models/parallel/collective_program.hpp"
#include "sim/engine/engine.hpp"

namespace fabricast::cli {
namespace {

// Of the activity that takes longest alone: what holds it.
std::string slowest_part(const program::Program& p, const Cluster& cluster, double latency_s, double time_s) {
    Picoseconds slowest = 0;
    std::string limit = "latency";
    for (const std::vector<program::Plan>& plans : p.plans) {
        for (std::size_t g = 0; g < plans.size(); ++g) {
            for (const program::Activity& a : plans[g].activities) {
                Rate rate = 0;
                std::string name;
                for (const LinkUse& use : p.demands[p.groups[g].demands[a.demand_class]]) {
                    const auto here = static_cast<Rate>(
                        (static_cast<__int128>(cluster.links().capacity[index(use.link)]) << 16) / use.coefficient);
                    if (rate == 0 || here < rate) {
                        rate = here;
                        name = cluster.links().name[index(use.link)];
                    }
                }
                if (a.cap > 0 && (rate == 0 || a.cap < rate)) {
                    rate = a.cap;
                    name = "channels";
                }
                const Picoseconds time = rate > 0 ? engine::Network::duration(a.work, rate) : 0;
                if (time > slowest) {
                    slowest = time;
                    limit = name;
                }
            }
        }
    }
    return latency_s > time_s / 2 ? "latency" : limit;
}

}  // namespace

NcclRow measure(const Cluster& cluster, const CommModel& comm, const NcclRequest& request, TestedSize size) {
    CollectiveProgram builder(cluster, comm);
    CollectivePlan plan;
    NcclRow row;
    row.size = size;
    if (request.hierarchical) {
        builder.hierarchical(request.members, request.kind, size.bytes);
    } else if (request.imbalance != 1) {
        plan = builder.exchange(
            request.members,
            imbalanced_all_to_all(static_cast<std::uint32_t>(request.members.size()), size.bytes, request.imbalance));
    } else {
        plan = builder.collective(request.members, request.kind, size.bytes);
    }
    const program::Program program = builder.build();
    const engine::EngineResult run = engine::Engine(program, cluster.links().capacity).run();
    if (run.outcome != engine::Outcome::done)
        throw std::logic_error("a single collective did not end: " + run.message);
    row.time_s = seconds(run.end);
    row.events = run.events;
    row.latency_s = seconds(plan.latency);
    if (request.hierarchical) {
        row.algorithm = "hierarchical";
        row.protocol = "-";
    } else {
        row.algorithm = algorithm_name(plan.algorithm);
        row.protocol = protocol_name(plan.protocol);
    }
    row.channels = plan.channels;
    row.limit = request.members.size() > 1 ? slowest_part(program, cluster, row.latency_s, row.time_s) : "nothing";
    if (row.time_s > 0) {
        row.alg_bytes_per_s = static_cast<double>(size.bytes) / row.time_s;
        row.bus_bytes_per_s = row.alg_bytes_per_s *
                              bus_bandwidth_factor(request.kind, static_cast<std::uint32_t>(request.members.size()));
    }
    return row;
}

}  // namespace fabricast::cli
