// Constants of network classes from logs: what each log shows, and robust medians with one log left out.
//
// A log shows, by the residual of its measured times against a prediction without extra costs:
//   efficiency     of the adapters: the one that meets the largest size; only where the adapters decide there (a
//                  tenth less efficiency makes the prediction 5 % slower or more) and the largest size is 64 MiB or more
//   hop, by protocol   the extra cost of a network hop that meets the measured time; median over the sizes of 16 MiB or
//                  less that the protocol carries (Simple on rings: up to 256 MiB) and where hops show: on rings a size speaks
//                  while a step is one chunk (2 MiB a channel) and while the wire does not hide the hop that meets the
//                  measurement. Simple: for each GPU that shares an adapter
//   slot, hop of Simple on trees   residual = hops x h + slot x min(8, chunks of a channel): h and slot from the smallest
//                  size and the median over sizes with 8 to 32 chunks
//   channel        busbw / channels at the largest size, where a ring over nodes misses by 8 % or more what the
//                  efficiency of other logs allows: thread blocks limit it, not adapters
//   launch         sqrt(measured^2 - predicted^2) / GPUs that one thread launches on (4 or more, one node): median over
//                  sizes under 4 KiB; what it grows by with each channel, median over sizes up to 1 MiB of 4 channels and more
// A log whose adapters show less than 0.7 of the best of their class speaks for the LL hop only: something is wrong
// with it that latency does not see. Negative costs count as 0. A class takes the median over its logs (the median of the runs of a log counts once).
//
// Exchanges (all-to-all, send-recv) speak for the efficiency only, up to 256 ranks; send-recv over 3 nodes and more for
// nothing (flows collide).
//
// Leave one out: constants for a log come from other logs only: of the same machine and network if they show it, else
// of the class, else of the classes of one transport (ib and roce; efa and efa_gen1; tcpx and tcpxo); hops and slots of a
// class that shows none scale with its LL hop by the median ratio of all; else of all classes but sockets. Logs labelled sick never speak for anything but sockets.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "validate/score/run_case.hpp"

namespace fabricast {

enum class Constant { efficiency, ll_hop, ll128_hop, simple_hop, slot, channel, count };
std::string_view name_of(Constant constant);

/// What one run shows; nothing where it shows nothing.
struct Evidence {
    std::string file, group, network;
    GpuGeneration generation{};
    std::array<std::optional<double>, static_cast<std::size_t>(Constant::count)> value;
};

struct FittedConstant {
    double value = 0;
    std::vector<std::string> files;  ///< logs it comes from; empty: none, neutral value
    std::string level;               ///< "same machine", "class", "all classes", "none"
};

class NetworkFit {
public:
    /// Runs on one node are passed over.
    explicit NetworkFit(const std::vector<RunCase>& cases);

    /// For runs of this platform and class; the log `without` (may be empty) has no voice.
    FittedConstant fitted(Constant constant, std::string_view network, const std::string& group,
                          GpuGeneration generation, const std::string& without) const;
    NetworkConstants constants(const RunCase& run, std::string_view network, const std::string& without) const;
    /// Of one thread that launches on several GPUs; the log `without` has no voice.
    LaunchCost launch(const std::string& without) const;

    /// Another log tells the efficiency of this run's machine or class.
    bool knows(const RunCase& run) const;

    const std::vector<Evidence>& evidence() const { return evidence_; }

private:
    std::vector<Evidence> evidence_;
    std::vector<std::pair<std::string, LaunchCost>> launches_;  ///< by log
};

/// Median of values; the mean of the middle two for an even count. Precondition: not empty.
double median(std::vector<double> values);

}  // namespace fabricast
