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

namespace {

struct Narrowest {
    Rate rate = 0;
    LinkId where{};
};

Narrowest narrowest_of(const Links& links, const std::vector<LinkUse>& demand) {
    Narrowest narrowest;
    for (const LinkUse& use : demand) {
        const Rate capacity = links.capacity[index(use.link)];
        const auto rate = use.coefficient == kCoefficientOne
                              ? capacity
                              : static_cast<Rate>((static_cast<__int128>(capacity) << 16) / use.coefficient);
        if (narrowest.rate == 0 || rate < narrowest.rate)
            narrowest = {rate, use.link};
    }
    return narrowest;
}

}  // namespace

Rate bottleneck_rate(const Links& links, const std::vector<LinkUse>& demand, Rate cap) {
    const Rate rate = narrowest_of(links, demand).rate;
    return cap > 0 && (rate == 0 || cap < rate) ? cap : rate;
}

Bottleneck bottleneck(const Links& links, const std::vector<LinkUse>& demand, Rate cap) {
    const Narrowest narrowest = narrowest_of(links, demand);
    if (cap > 0 && (narrowest.rate == 0 || cap < narrowest.rate))
        return {cap, "channels"};
    if (narrowest.rate == 0)
        return {};
    return {narrowest.rate, links.name[index(narrowest.where)], place_of(links, narrowest.where)};
}

}  // namespace fabricast
