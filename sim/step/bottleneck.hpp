// What holds an activity that has the network to itself: the narrowest of its links, or its own cap.
#pragma once

#include <string>
#include <vector>

#include "topologies/graph/links.hpp"

namespace fabricast {

struct Bottleneck {
    Rate rate = 0;           ///< of the activity's work; 0 when it has neither links nor a cap
    std::string name;        ///< the link's name, "channels" for a cap
    std::string place = {};  ///< what the link is, in words
};

/// "NVLink inside the node", "between sockets inside the node", "network adapter" ...
std::string place_of(const Links& links, LinkId link);

/// cap 0 = none. Of equally narrow links the first counts.
Bottleneck bottleneck(const Links& links, const std::vector<LinkUse>& demand, Rate cap);
/// Its rate alone: names cost.
Rate bottleneck_rate(const Links& links, const std::vector<LinkUse>& demand, Rate cap);

}  // namespace fabricast
