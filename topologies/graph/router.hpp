// How the fabric between two NICs is crossed. Chosen once, when the cluster is built.
//
// A NIC has one link to and one from its switch; Cluster adds those two itself. A router answers the part in
// between: the directed links from the switch of one NIC to the switch of the other, in order, none when both
// hang on one switch. The answer depends on the pair and the flow number alone, so it is the same on every call and
// every machine; only routers that hash (routing_policy.hpp) look at the flow.
#pragma once

#include <cstdint>
#include <vector>

#include "topologies/graph/units.hpp"

namespace fabricast {

class Router {
public:
    Router() = default;
    Router(const Router&) = delete;
    Router& operator=(const Router&) = delete;
    virtual ~Router() = default;

    /// Appends the links between the switches of two different NICs and returns true; false, and nothing
    /// appended, when there is no way. Safe to call from several threads.
    virtual bool append_fabric_links(NicId from, NicId to, std::uint64_t flow, std::vector<LinkId>& out) const = 0;

    /// Levels of links above a NIC's switch from which every route follows: it climbs the source's up links to the highest
    /// level where the two NICs' differ, and comes down the destination's. Appends them, lowest first, up and down of each;
    /// as many for every NIC. False, and nothing appended, where routes do not follow so.
    virtual bool append_levels(NicId nic, std::vector<LinkId>& out) const;
};

inline bool Router::append_levels(NicId, std::vector<LinkId>&) const { return false; }

}  // namespace fabricast
