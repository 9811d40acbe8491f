// The time of one collective on a platform: cluster, NCCL's choice, a program of one operation, the engine. Boards without
// an NVSwitch are built whole, as scenarios build them, and the first GPUs of each take part.
//
// Constants of the network are an argument, so that a fit can leave a log out: efficiency (achieved / line rate) sets
// the capacity of adapters and trunks, hop times add to NCCL's own network hop.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/collectives/comm_model.hpp"
#include "topologies/graph/cluster.hpp"
#include "validate/score/platform.hpp"

namespace fabricast {

struct NetworkConstants {
    double efficiency = 1;
    NetworkTiming timing = {};
    CollectiveCorrection correction = {};  ///< of the collective that is predicted
};

/// CPU time of one thread to launch on several GPUs one after the other (nccl-tests -g), us: for each GPU, and for each
/// channel of it (work is written channel by channel). Fitted on four logs of one machine with 8 GPUs a thread
/// (8xa100-sxm4-40gb_*). The next operation is launched while one runs, so an operation takes
/// sqrt(launch^2 + run^2): the longer of the two, and a wait for each other where they are alike.
struct LaunchCost {
    double gpu_us = 0, channel_us = 0;
    double with(double run_us, int gpus, int channels) const;
};
inline constexpr LaunchCost kLaunch{3.9, .18};

/// Of a class in the catalogue, for rings of this GPU. Throws PlatformError for an unknown one.
NetworkConstants catalogue_constants(std::string_view network, const GpuSpec& gpu);

/// A collective of the model by the name that nccl-tests ("alltoall", "sendrecv") or a table gives it.
std::optional<Collective> collective_named(std::string_view name);

/// send_recv over 3 nodes and more: a message a node crosses rails, over the channels of a network peer (as many QPs; one
/// beyond 64 ranks, exchange.hpp), and flows that hash onto one link share it; the operation ends with the fullest. Nodes x
/// channels flows on as many links as nodes (one a NIC at full rate). Other collectives stay on their rails or have flows
/// enough to even out.
NetworkConstants with_collisions(NetworkConstants constants, Collective kind, const Platform& platform);
/// Expected flows on the fullest of `links` when each flow takes any of them with equal chance, exact.
double expected_fullest(std::uint32_t flows, std::uint32_t links);

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
    std::vector<std::uint32_t> members_;
};

}  // namespace fabricast
