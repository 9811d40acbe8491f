// A step under one condition, as monitors see it: where its time goes, what it sends, how fast its collectives run.
//
//   in collectives      accounts comm_*, contention, straggler, bubble: a rank that waits there has a kernel on its GPU
//   off the GPU         host_bound, data_wait, checkpoint, idle
//   sent by a rank      sum over rows of the communication table: bus bandwidth x time x calls, which for rings is what a
//                       rank sends. A group with k ranks a node and more than one node sends a k-th of it over adapters
//                       (its ring leaves a node once, and a node has GPUs / k such groups): W GPUs / (k adapters) each;
//                       over NVLink W (k - 1) / k a GPU. A group inside a node sends W over NVLink
//   bus bandwidth       of the row between nodes (of a node) that takes longest; `rings`: how many groups do the same
// Sources: accounts and table of the forecast (sim/step/result.hpp); nccl-tests' definition of bus bandwidth.
// Not modelled: traffic of loaders and checkpoints, kernels that run beside each other on the counters of NVLink.
#pragma once

#include <cstdint>

#include "sim/step/result.hpp"

namespace fabricast::monitor {

struct StepPicture {
    double step_s = 0, tokens = 0;
    double mfu = 0, hfu = 0;               ///< shares of the dense peak
    double in_collectives_s = 0;           ///< of a rank, in the mean
    double off_gpu_s = 0, data_s = 0;      ///< data_s is a part of off_gpu_s
    double nvlink_bytes = 0;               ///< a GPU and step
    double nic_bytes = 0;                  ///< an adapter and step
    double net_busbw = 0, node_busbw = 0;  ///< byte/s; 0: no such collective
    std::uint32_t net_rings = 0, node_rings = 0;
    double allocated_bytes = 0, reserved_bytes = 0;  ///< of the fullest GPU
};

StepPicture picture_of(const Scenario& scenario, const Result& result);

}  // namespace fabricast::monitor
