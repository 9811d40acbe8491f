// What a step puts on the wire, by kind: the load that the library lays on links, summed over all calls and messages.
//
//   bytes of a link in a step = sum over activities on it: work x coefficient / kCoefficientOne
//   from GPUs                  what leaves them: links to the NVSwitch or direct NVLinks, and their PCIe links
//   over the network           what leaves the adapters of nodes
//
// Protocol overhead is in it (LL twice, LL128 128/120). A ring of n ranks over nodes of g GPUs with payload S, all GPUs of
// a node in it: a GPU sends S (n-1)/n, a node sends as much over the network, g times less a GPU. Not counted: copies to
// the host, checkpoints, data that are loaded.
#pragma once

#include <array>

#include "models/program/account.hpp"
#include "models/program/program.hpp"
#include "topologies/graph/cluster.hpp"

namespace fabricast {

struct SentBytes {
    using ByAccount = std::array<__int128, kAccountCount>;
    ByAccount from_gpus = {};     ///< all GPUs together
    ByAccount over_network = {};  ///< all nodes together
    ByAccount busiest = {};       ///< over the network, of the node that sends most there
    std::uint32_t busiest_node = 0;

    static __int128 sum(const ByAccount& bytes);
};

SentBytes sent_bytes(const program::Program& program, const Cluster& cluster);

}  // namespace fabricast
