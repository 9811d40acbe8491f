#include "validate/score/predict.hpp"

#include <numeric>
#include <vector>

#include <fmt/format.h>

#include "models/parallel/collective_program.hpp"
#include "sim/engine/engine.hpp"
#include "topologies/builders/rail_fat_tree.hpp"

namespace fabricast {
namespace {

Cluster build(const Platform& platform, const NetworkConstants& constants) {
    const NodeSpec& spec = platform.node;
    const FabricSpec& fabric_spec = *Catalogue::builtin().find_fabric("rail-fat-tree");
    NodeShape node;
    node.gpus = spec.gpus;
    node.nics = platform.nodes > 1 ? spec.nics : 0;
    node.nvlink_bytes_per_s = platform.gpu.nvlink_achieved_bytes_per_s;
    node.nvlink_latency_s = spec.nvlink_latency_s;
    node.pcie_bytes_per_s = platform.gpu.pcie_bytes_per_s;
    node.pcie_latency_s = spec.pcie_latency_s;
    node.nic_bytes_per_s = spec.nic_bits_per_s / 8 * constants.efficiency;
    node.nic_latency_s = spec.nic_latency_s;
    RailFatTree fabric;
    fabric.nodes = platform.nodes;
    fabric.nodes_per_pod = fabric_spec.nodes_per_pod;
    fabric.switch_latency_s = fabric_spec.switch_latency_s;
    return build_rail_fat_tree(node, fabric);
}

CommFacts facts_of(const Platform& platform, const NetworkConstants& constants) {
    CommFacts facts;
    facts.generation = platform.gpu.generation;
    facts.nvswitch = platform.gpu.nvlink_achieved_bytes_per_s > 0;
    facts.nvls = platform.gpu.nvls;
    facts.amd_cpu = platform.node.cpu == "amd";
    facts.nvlink_nccl_bytes_per_s = platform.gpu.nvlink_nccl_bytes_per_s;
    facts.pcie_nccl_bytes_per_s = platform.gpu.generation == GpuGeneration::volta    ? 12e9
                                  : platform.gpu.generation == GpuGeneration::ampere ? 24e9
                                                                                     : 48e9;
    facts.nic_line_bytes_per_s = platform.node.nic_bits_per_s / 8;
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
    CollectiveProgram calls(cluster_, comm_);
    std::vector<std::uint32_t> members(cluster_.gpu_count());
    std::iota(members.begin(), members.end(), 0u);
    const CollectivePlan plan = calls.collective(members, kind, bytes);
    const program::Program program = calls.build();
    const engine::EngineResult run = engine::Engine(program, cluster_.links().capacity).run();
    return {static_cast<double>(run.end) * 1e-6, plan.algorithm, plan.protocol, plan.channels};
}

}  // namespace fabricast
