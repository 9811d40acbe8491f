#include "validate/score/predict.hpp"

#include <numeric>
#include <vector>

#include <fmt/format.h>

#include "sim/step/build_cluster.hpp"
#include "sim/step/collective_time.hpp"

namespace fabricast {
namespace {

Cluster build(const Platform& platform, const NetworkConstants& constants) {
    const NodeSpec& spec = platform.node;
    const FabricSpec& fabric_spec = *Catalogue::builtin().find_fabric("rail-fat-tree");
    NodeSpec used = spec;
    used.nics = platform.nodes > 1 ? spec.nics : 0;
    used.nic_efficiency = constants.efficiency;
    RailFatTree fabric;
    fabric.nodes = platform.nodes;
    fabric.nodes_per_pod = fabric_spec.nodes_per_pod;
    fabric.switch_latency_s = fabric_spec.switch_latency_s;
    return build_rail_fat_tree(node_shape(platform.gpu, used), fabric);
}

CommFacts facts_of(const Platform& platform, const NetworkConstants& constants) {
    CommFacts facts = comm_facts(platform.gpu, platform.node);
    facts.network = constants.timing;
    facts.sharp = platform.sharp;
    return facts;
}

}  // namespace

NetworkConstants catalogue_constants(std::string_view network, const GpuSpec& gpu) {
    const NetworkSpec* spec = Catalogue::builtin().find_network(network);
    if (spec == nullptr) {
        throw PlatformError(fmt::format("no network class `{}` in the catalogue", network));
    }
    NetworkConstants out;
    out.efficiency = spec->efficiency;
    out.timing = {.hop_us = {spec->ll_hop_us, spec->ll128_hop_us, spec->simple_hop_us},
                  .slot_us = spec->slot_us,
                  .channel_gb_per_s = gpu.network_channel_bytes_per_s * 1e-9};
    return out;
}

std::optional<Collective> collective_named(std::string_view name) {
    return find_collective(name == "alltoall" ? "all_to_all" : name == "sendrecv" ? "send_recv" : name);
}

NetworkConstants with_collisions(NetworkConstants constants, Collective kind, std::uint32_t nodes) {
    if (kind == Collective::send_recv && nodes >= 3) {
        constants.efficiency /= kFewFlowsCollide;
    }
    return constants;
}

Predictor::Predictor(const Platform& platform, const NetworkConstants& constants, CommSettings settings)
    : cluster_(build(platform, constants)), comm_(cluster_, facts_of(platform, constants), std::move(settings)) {}

Predictor::Prediction Predictor::predict(Collective kind, std::int64_t bytes) const {
    CollectiveRequest request;
    request.kind = kind;
    request.members.resize(cluster_.gpu_count());
    std::iota(request.members.begin(), request.members.end(), 0u);
    const CollectiveTime timed = time_collective(cluster_, comm_, request, bytes);
    return {static_cast<double>(timed.time) * 1e-6, timed.plan.algorithm, timed.plan.protocol, timed.plan.channels};
}

}  // namespace fabricast
