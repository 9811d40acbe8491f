#include "models/program/deciding_links.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <numeric>
#include <tuple>

#include "models/program/mix.hpp"

namespace fabricast::program {

std::vector<std::vector<LinkUse>> deciding_links(const std::vector<std::vector<LinkUse>>& demands,
                                                 std::span<const Rate> capacity) {
    // Who uses a link: two sums of hashes, whatever the order; equal for equal sets.
    struct Users {
        std::uint64_t sum = 0, other = 0;
    };
    std::vector<Users> users(capacity.size());
    for (std::uint32_t d = 0; d < demands.size(); ++d) {
        for (const LinkUse& use : demands[d]) {
            const std::uint64_t hash = mix((d + 1) * 0x9e3779b97f4a7c15ull ^ mix(use.coefficient));
            Users& link = users[index(use.link)];
            link.sum += hash;
            link.other += mix(hash);
        }
    }
    std::vector<std::uint32_t> order;
    for (std::uint32_t l = 0; l < users.size(); ++l) {
        if (users[l].sum != 0 || users[l].other != 0)
            order.push_back(l);
    }
    std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
        return std::tie(users[a].sum, users[a].other, capacity[a], a) <
               std::tie(users[b].sum, users[b].other, capacity[b], b);
    });
    std::vector<bool> decides(capacity.size(), false);
    for (std::size_t i = 0; i < order.size(); ++i) {
        decides[order[i]] = i == 0 || users[order[i]].sum != users[order[i - 1]].sum ||
                            users[order[i]].other != users[order[i - 1]].other;
    }
    std::vector<std::vector<LinkUse>> kept(demands.size());
    for (std::size_t d = 0; d < demands.size(); ++d) {
        std::copy_if(demands[d].begin(), demands[d].end(), std::back_inserter(kept[d]),
                     [&](const LinkUse& use) { return decides[index(use.link)]; });
    }
    return kept;
}

Rate alone_rate(std::span<const LinkUse> demand, std::span<const Rate> capacity) {
    Rate rate = std::numeric_limits<Rate>::max();
    for (const LinkUse& use : demand) {
        const __int128 limit = (static_cast<__int128>(capacity[index(use.link)]) << 16) / use.coefficient;
        if (limit < rate)
            rate = static_cast<Rate>(limit);
    }
    return rate > 1 ? rate : 1;
}

}  // namespace fabricast::program
