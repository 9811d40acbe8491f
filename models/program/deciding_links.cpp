#include "models/program/deciding_links.hpp"

#include <algorithm>
#include <iterator>
#include <limits>

namespace fabricast::program {

std::vector<bool> LinkUsers::deciding(const std::function<Rate(std::uint32_t)>& capacity) const {
    constexpr std::uint32_t kFree = 0xFFFFFFFFu;
    std::size_t size = 16;
    while (size < 2 * users_.size())
        size *= 2;
    std::vector<std::uint32_t> slots(size, kFree);  // hash of the users -> narrowest link
    for (std::uint32_t l = 0; l < users_.size(); ++l) {
        if (users_[l].none())
            continue;
        std::size_t at = static_cast<std::size_t>(users_[l].sum) & (size - 1);
        while (slots[at] != kFree && !(users_[slots[at]] == users_[l]))
            at = (at + 1) & (size - 1);
        if (slots[at] == kFree || capacity(l) < capacity(slots[at]))
            slots[at] = l;
    }
    std::vector<bool> decides(users_.size(), false);
    for (const std::uint32_t l : slots) {
        if (l != kFree)
            decides[l] = true;
    }
    return decides;
}

std::vector<std::vector<LinkUse>> deciding_links(const std::vector<std::vector<LinkUse>>& demands,
                                                 std::span<const Rate> capacity) {
    LinkUsers users(capacity.size());
    for (std::uint32_t d = 0; d < demands.size(); ++d) {
        for (const LinkUse& use : demands[d])
            users.add(static_cast<std::uint32_t>(index(use.link)), d, use.coefficient);
    }
    const std::vector<bool> decides = users.deciding([&](std::uint32_t l) { return capacity[l]; });
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
        const __int128 room = static_cast<__int128>(capacity[index(use.link)]) << 16;
        if (room < static_cast<__int128>(rate) * static_cast<__int128>(use.coefficient))  // saves most divisions
            rate = static_cast<Rate>(room / use.coefficient);
    }
    return rate > 1 ? rate : 1;
}

}  // namespace fabricast::program
