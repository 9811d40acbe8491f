// Training state in host memory.
//
//   optimizer share f   its state lives on the host and is updated there. Gradients go down over PCIe, weights come up:
//                       ZeRO 2, 3: what a reduction leaves on a rank goes down at once, of every micro-batch, and leaves the
//                       GPU (but for a bucket); ZeRO 0, 1: gradients go down when the step's are whole
//   update              time = elements x traffic of an update (models/transformer/optimizer.hpp) / host_bytes_per_s
//   pieces              of 128 Mi elements, at most 16; a piece comes up while the next is updated (overlap), or the whole
//                       goes down, is updated, comes up
//   parameters          sharded weights (ZeRO-3) rest on the host; every gather first brings this rank's shard up
//   memory of the host  f (state + gradients on the way) + sharded weights, a rank; no GPU memory for these
//
// Not modelled: NVMe, activations on the host, delayed updates, pageable (not pinned) memory, PCIe switches whose uplink
// several GPUs share, the limit that host memory sets to copies of all GPUs at once, cores that data loaders use.
// Sources: ZeRO-Offload (arXiv:2101.06840: 2 bytes a parameter stay on the GPU, 14 / ranks go to the host; copies beside the
// update in tiles), DeepSpeed cpu_adam (tiles of 128 Mi elements), PyTorch FSDP CPUOffloadPolicy, Megatron-Core
// HybridDeviceOptimizer (--optimizer-offload-fraction, --overlap-cpu-optimizer-d2h-h2d).
#pragma once

#include <cstdint>

#include "topologies/graph/units.hpp"

namespace fabricast {

inline constexpr std::int64_t kHostPiece = std::int64_t{128} << 20;  ///< elements of a piece
inline constexpr std::int64_t kMostPieces = 16;

struct Offload {
    double optimizer = 0;         ///< share of the optimizer's state on the host
    bool parameters = false;      ///< sharded weights on the host
    bool overlap = true;          ///< copies beside the update
    double host_bytes_per_s = 0;  ///< memory traffic of the update, what one rank has of its server
    bool active() const { return optimizer > 0 || parameters; }
};

/// Slots of Rank::transfer_routes.
enum class HostRoute : std::uint16_t { down, up };

}  // namespace fabricast
