// Which machine a measured run ran on: a node preset, how many, how many GPUs of each, which network.
//
// Told by, strongest first: the options (preset, nodes), the device names of the log, the words an index gives for
// hardware and network ("2x p5.48xlarge", "EFA 32x100G"), the name of the file. A GPU with no known machine around it
// is taken on its vendor's reference board. Adapter rate and count in words replace those of the preset; several
// adapters of one GPU become one with their summed rate. A run that uses some GPUs of each node gets that share of the
// adapters too (rounded up).
//
// What carries the traffic is a class (models/hardware/networks.yaml). `expected` is the class such hardware runs on
// when it is set up right; `told` is the class the words name, if any: "sockets" on a Slingshot machine.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

#include "models/hardware/catalogue.hpp"
#include "validate/ingest/nccl_log.hpp"

namespace fabricast {

/// What is known of a run besides its log.
struct PlatformHint {
    std::string preset;             ///< --node
    std::string hardware, network;  ///< words of an index
    std::optional<int> nodes, gpus;
};

struct Platform {
    GpuSpec gpu;
    NodeSpec node;   ///< as used: gpus and nics taking part, rate of one of these nics
    NodeSpec board;  ///< the whole server, adapters as told
    std::uint32_t nodes = 1;
    std::uint32_t board_gpus = 8;  ///< GPUs of a whole node
    std::string expected;          ///< class of the network; empty on one node
    std::string told;              ///< class named by words or NCCL's own lines; may be empty
    bool sharp = false;            ///< switches reduce (words say so)
    bool rate_told = false;        ///< line rate by words or by a named machine, not by the reference board
    std::string name() const;      ///< "2 x aws-p5, 8 GPUs each, efa 8 x 400 Gb/s"
    /// Runs of equal group share a machine and a network: "aws-p5 efa 8x400".
    std::string group() const;
    /// The same whatever part of a board is in use: "aws-p5 efa 400".
    std::string machine() const;
};

/// Line rate of one adapter in words ("8x HDR 200G", "RoCE 100G"), bits/s.
std::optional<double> adapter_rate(const std::string& words);

/// A run whose machine cannot be told; the text says what is missing.
struct PlatformError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// Throws PlatformError.
Platform find_platform(const NcclRun& run, const PlatformHint& hint);

/// "2 x", ranks per node and so on without a log: `gpus` of each of `nodes` nodes of a preset. Throws PlatformError.
Platform preset_platform(const std::string& preset, std::uint32_t nodes, std::uint32_t gpus);

}  // namespace fabricast
