// The frozen cluster as flat arrays: what the engine sees of a topology.
//
// A link is directed and has a capacity that its flows share. Capacity-limited nodes (an NVSwitch, a
// host's memory, a storage target) are entered as links too: a flow that passes them lists them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "topologies/graph/link_names.hpp"
#include "topologies/graph/units.hpp"

namespace fabricast {

enum class LinkKind : std::uint8_t { nvlink, pcie, nic, fabric, host, storage };

/// Structure of arrays, one entry a link, indexed by LinkId.
struct Links {
    std::vector<Rate> capacity;        ///< achieved, not nominal; > 0
    std::vector<Picoseconds> latency;  ///< propagation + switching, >= 0
    std::vector<LinkKind> kind;
    std::vector<std::uint32_t> parallel;  ///< physical cables folded into this entry, >= 1
    LinkNames name;                       ///< "node 3 gpu 5 nvlink up", made when asked for

    std::size_t size() const { return capacity.size(); }
};

/// One link of a demand: an activity moving x bytes/s of payload loads the link with
/// x * coefficient / kCoefficientOne bytes/s.
struct LinkUse {
    LinkId link;
    std::uint64_t coefficient;  ///< fixed point, kCoefficientOne = 1 byte on the wire per payload byte
    bool operator==(const LinkUse&) const = default;
};
inline constexpr std::uint32_t kCoefficientOne = 1u << 16;

}  // namespace fabricast
