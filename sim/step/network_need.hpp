// What network a step needs: the bytes it sends, and the bandwidth at which its communication hides behind compute.
//
//   step(r)     simulated on the same cluster with adapters of r a node in all (scaled_network.hpp), the library choosing for
//               those adapters as it does for any; same layout, same software
//   step(inf)   as step(largest rate) with links between nodes of 1 PB/s each; latency, NVLink, PCIe and the
//               library's channels as they are
//   hides at r  step(r) <= 1.05 step(inf)
//   needs       the highest crossing: rates 10 Gb/s x 10^(k/2) are simulated from the largest down until one does not hide,
//               then bisected on a log scale to 2 %; the rate given is the upper end, simulated, and hides
//   waits       1 - step(inf) / step, the share of the step that is there because the network is not faster
//
// Curve: the same with 1, 2, 4, 8 ... sequences a micro-batch while they divide the batch of a replica; the global batch
// stays. It ends at the second row that does not fit in memory; such rows are simulated all the same.
// More bandwidth is not strictly a shorter step: traffic that comes faster slows the compute beside it more (0.6 % at most
// in the acceptance cases, far below 5 %), and the library may choose anew.
// Steps that differ by chance or by what feeds them are taken alike.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/scenario/scenario.hpp"
#include "sim/step/forecast.hpp"
#include "sim/step/sent_bytes.hpp"

namespace fabricast {

inline constexpr double kHiddenWithin = 1.05;                             ///< of the step with an infinite network
inline constexpr double kNeedResolution = 1.02;                           ///< upper end / lower end
inline constexpr double kSmallestNetwork = 1e10, kLargestNetwork = 1e14;  ///< a node, bit/s

struct NetworkRow {
    enum class Bound : std::uint8_t {
        between,             ///< needs_bits_per_s hides, short_bits_per_s does not
        smallest_is_enough,  ///< needs_bits_per_s is the smallest rate looked at
        largest_is_short,    ///< needs_bits_per_s is 0
    };
    std::int64_t micro_batch = 1, micro_batches = 1;  ///< sequences; of a replica in a step
    std::int64_t tokens = 0;                          ///< of a micro-batch
    bool own = false;                                 ///< as the scenario says
    Bytes memory = 0;                                 ///< fullest stage
    bool fits = true;
    std::string refused;  ///< why it does not run; then nothing below is filled
    SentBytes sent = {};
    Picoseconds step = 0, infinite = 0;
    double exposed = 0;  ///< share of step(inf) that is exposed communication all the same
    Bound bound = Bound::between;
    double needs_bits_per_s = 0, short_bits_per_s = 0;  ///< a node
    double waits() const { return step > infinite ? 1 - static_cast<double>(infinite) / static_cast<double>(step) : 0; }
};

struct NetworkNeed {
    Result run;
    std::int64_t nodes = 0, gpus_per_node = 0;
    double has_bits_per_s = 0;            ///< a node: line rate of its adapters, one direction
    double efficiency = 1;                ///< of the line rate, what links reach
    double smallest = 0, largest = 0;     ///< rates looked at
    Bytes capacity = 0;                   ///< memory of a GPU
    std::vector<NetworkRow> rows;         ///< empty where the job failed otherwise than by memory
    std::uint64_t events = 0, steps = 0;  ///< simulated, of all
    const NetworkRow* own() const;
    /// Of a sum over the cluster.
    double per_gpu(__int128 bytes) const {
        return static_cast<double>(bytes) / static_cast<double>(nodes * gpus_per_node);
    }
    double per_node(__int128 bytes) const { return static_cast<double>(bytes) / static_cast<double>(nodes); }
};

/// Throws ScenarioError where there is one node, or nodes without adapters.
NetworkNeed network_need(const Scenario& scenario, ForecastOptions options = {});

}  // namespace fabricast
