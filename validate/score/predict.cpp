#include "validate/score/predict.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "models/collectives/exchange.hpp"
#include "sim/step/build_cluster.hpp"
#include "sim/step/build_server.hpp"
#include "sim/step/collective_time.hpp"

namespace fabricast {
namespace {

Cluster build(const Platform& platform, const NetworkConstants& constants) {
    const FabricSpec& fabric_spec = *Catalogue::builtin().find_fabric("rail-fat-tree");
    const bool plain = is_plain_node(platform.board);
    NodeSpec used = plain ? platform.node : platform.board;
    used.nics = platform.nodes > 1 ? used.nics : 0;
    used.nic_efficiency = constants.efficiency;
    RailFatTree fabric;
    fabric.nodes = platform.nodes;
    fabric.nodes_per_pod = fabric_spec.nodes_per_pod;
    fabric.switch_latency_s = fabric_spec.switch_latency_s;
    return plain ? build_rail_fat_tree(node_shape(platform.gpu, used), fabric)
                 : build_rail_fat_tree(server_shape(platform.gpu, used), fabric);
}

CommFacts facts_of(const Platform& platform, const NetworkConstants& constants) {
    CommFacts facts = comm_facts(platform.gpu, platform.node);
    facts.network = constants.timing;
    facts.sharp = platform.sharp;
    facts.inside.fill(constants.correction);
    facts.outside.fill(constants.correction);
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

double LaunchCost::with(double run_us, int gpus, int channels) const {
    return gpus > 1 ? std::hypot(run_us, gpus * (gpu_us + channels * channel_us)) : run_us;
}

// P(no link has more than k) = flows! / links^flows x [x^flows] (sum over j <= k of x^j / j!)^links
double expected_fullest(std::uint32_t flows, std::uint32_t links) {
    double expected = 0;
    for (std::uint32_t k = 0; k < flows; ++k) {
        std::vector<double> ways(flows + 1, 0.0);  // of the links so far, times j! / links^j
        ways[0] = 1;
        for (std::uint32_t link = 0; link < links; ++link) {
            for (std::uint32_t j = flows; j > 0; --j) {
                double choose = 1;  // j over i, / links^i
                for (std::uint32_t i = 1; i <= std::min(j, k); ++i) {
                    choose *= static_cast<double>(j - i + 1) / i / links;
                    ways[j] += choose * ways[j - i];
                }
            }
        }
        if (1 - ways[flows] < 1e-12)
            break;
        expected += 1 - ways[flows];
    }
    return expected;
}

NetworkConstants with_collisions(NetworkConstants constants, Collective kind, const Platform& platform) {
    constexpr std::uint32_t kMostNodes = 64;  // beyond, the expectation hardly grows
    if (kind == Collective::send_recv && platform.nodes >= 3) {
        const std::uint32_t n = std::min(platform.nodes, kMostNodes);
        const std::uint32_t flows = pair_channels(false, platform.nodes * platform.node.gpus, 0);
        constants.efficiency /= expected_fullest(flows * n, n) / flows;
    }
    return constants;
}

Predictor::Predictor(const Platform& platform, const NetworkConstants& constants, CommSettings settings)
    : cluster_(build(platform, constants)), comm_(cluster_, facts_of(platform, constants), std::move(settings)) {
    for (std::uint32_t node = 0; node < platform.nodes; ++node) {
        for (std::uint32_t gpu = 0; gpu < platform.node.gpus; ++gpu)
            members_.push_back(node * cluster_.gpus_per_node() + gpu);
    }
}

Predictor::Prediction Predictor::predict(Collective kind, std::int64_t bytes) const {
    CollectiveRequest request;
    request.kind = kind;
    request.members = members_;
    const CollectiveTime timed = time_collective(cluster_, comm_, request, bytes);
    return {static_cast<double>(timed.time) * 1e-6, timed.plan.algorithm, timed.plan.protocol, timed.plan.channels};
}

}  // namespace fabricast
