// The time of one collective on a platform: cluster, NCCL's choice, a program of one operation, the engine.
//
// Constants of the network are an argument, so that a fit can leave a log out: efficiency (achieved / line rate) sets
// the capacity of adapters and trunks, hop times add to NCCL's own network hop.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "models/collectives/comm_model.hpp"
#include "topologies/graph/cluster.hpp"
#include "validate/score/platform.hpp"

namespace fabricast {

struct NetworkConstants {
    double efficiency = 1;
    NetworkTiming timing = {};
};

/// CPU time to launch on one GPU where one thread serves several (nccl-tests -g): fitted on four logs of one machine
/// with 8 GPUs a thread (8xa100-sxm4-40gb_*), 2.5 us each.
inline constexpr double kLaunchUs = 2.5;

/// Of a class in the catalogue, for rings of this GPU. Throws PlatformError for an unknown one.
NetworkConstants catalogue_constants(std::string_view network, const GpuSpec& gpu);

/// A collective of the model by the name that nccl-tests ("alltoall", "sendrecv") or a table gives it.
std::optional<Collective> collective_named(std::string_view name);

/// send_recv over 3 nodes and more: one flow a node leaves its rail, and flows that hash onto one spine link share it; the
/// operation ends with the fullest link. Expected load of the fullest of 8 links for one flow a link (Monte Carlo over a
/// uniform hash), relative to an even spread. Other collectives stay on their rails or have flows enough to even out.
inline constexpr double kFewFlowsCollide = 2.60;
NetworkConstants with_collisions(NetworkConstants constants, Collective kind, std::uint32_t nodes);

class Predictor {
public:
    Predictor(const Predictor&) = delete;  // comm_ keeps a reference to cluster_
    Predictor& operator=(const Predictor&) = delete;

    Predictor(const Platform& platform, const NetworkConstants& constants, CommSettings settings = {});

    struct Prediction {
        double time_us = 0;
        Algorithm algorithm = Algorithm::ring;
        Protocol protocol = Protocol::simple;
        int channels = 0;
    };
    /// bytes as nccl-tests prints them, > 0.
    Prediction predict(Collective kind, std::int64_t bytes) const;

private:
    Cluster cluster_;
    CommModel comm_;
};

}  // namespace fabricast
