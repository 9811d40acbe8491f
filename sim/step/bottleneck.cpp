#include "sim/step/bottleneck.hpp"

namespace fabricast {

std::string place_of(const Links& links, LinkId link) {
    switch (links.kind[index(link)]) {
        case LinkKind::nvlink: return "NVLink inside the node";
        case LinkKind::pcie: return "PCIe inside the node";
        case LinkKind::host:
            return links.name[index(link)].ends_with(" throughput") ? "host bridge inside the node"
                                                                    : "link between sockets inside the node";
        case LinkKind::nic: return "network adapter";
        case LinkKind::fabric: return "trunk between switches";
        default: return {};
    }
}

Bottleneck bottleneck(const Links& links, const std::vector<LinkUse>& demand, Rate cap) {
    Rate narrowest = 0;
    LinkId where{};
    for (const LinkUse& use : demand) {
        const auto rate =
            static_cast<Rate>((static_cast<__int128>(links.capacity[index(use.link)]) << 16) / use.coefficient);
        if (narrowest == 0 || rate < narrowest) {
            narrowest = rate;
            where = use.link;
        }
    }
    if (cap > 0 && (narrowest == 0 || cap < narrowest))
        return {cap, "channels"};
    if (narrowest == 0)
        return {};
    return {narrowest, links.name[index(where)], place_of(links, where)};
}

}  // namespace fabricast
