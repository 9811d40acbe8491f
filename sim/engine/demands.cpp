#include "sim/engine/demands.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <tuple>
#include <utility>

namespace fabricast::engine {

std::vector<std::vector<LinkUse>> without_dominated_links(const std::vector<std::vector<LinkUse>>& demands,
                                                          std::span<const Rate> capacity) {
    std::vector<std::vector<std::pair<std::uint32_t, std::uint32_t>>> users(capacity.size());  // (demand, coefficient)
    for (std::uint32_t d = 0; d < demands.size(); ++d) {
        for (const LinkUse& use : demands[d])
            users[index(use.link)].emplace_back(d, use.coefficient);
    }
    std::vector<std::uint32_t> order(capacity.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
        return std::tie(users[a], capacity[a], a) < std::tie(users[b], capacity[b], b);
    });
    std::vector<bool> decides(capacity.size(), false);
    for (std::size_t i = 0; i < order.size(); ++i)
        decides[order[i]] = i == 0 || users[order[i]] != users[order[i - 1]];
    std::vector<std::vector<LinkUse>> kept(demands.size());
    for (std::size_t d = 0; d < demands.size(); ++d) {
        std::copy_if(demands[d].begin(), demands[d].end(), std::back_inserter(kept[d]),
                     [&](const LinkUse& use) { return decides[index(use.link)]; });
    }
    return kept;
}

}  // namespace fabricast::engine
