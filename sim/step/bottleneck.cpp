#include "sim/step/bottleneck.hpp"

namespace fabricast {

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
    return {narrowest, narrowest > 0 ? links.name[index(where)] : std::string()};
}

}  // namespace fabricast
