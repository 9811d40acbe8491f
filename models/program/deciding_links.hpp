// Demands without the links that can never decide a rate.
//
// Links that the same demands use with the same coefficients always carry the same load, so only the narrowest of them
// can be full. A ring over private NVLink ports thus costs the solver one link instead of sixteen, and the rates stay
// the same to the bit: a wider link's level is never below that of the narrowest, and after that one is full no member
// is left. Holds as long as capacities do not change.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "models/program/mix.hpp"
#include "topologies/graph/links.hpp"

namespace fabricast::program {

/// The demands with only the narrowest link of each class (the first of equal ones). capacity: one entry a link.
std::vector<std::vector<LinkUse>> deciding_links(const std::vector<std::vector<LinkUse>>& demands,
                                                 std::span<const Rate> capacity);

/// Who uses each link: two sums of hashes, whatever the order; equal for equal sets of (demand, coefficient).
class LinkUsers {
public:
    explicit LinkUsers(std::size_t links) : users_(links) {}
    void add(std::uint32_t link, std::uint32_t demand, std::uint64_t coefficient) {
        const std::uint64_t hash = mix((demand + 1) * 0x9e3779b97f4a7c15ull ^ mix(coefficient));
        users_[link].sum += hash;
        users_[link].other += mix(hash);
    }
    /// By link: used, and the narrowest of those with its users, the first of equal ones.
    std::vector<bool> deciding(const std::function<Rate(std::uint32_t)>& capacity) const;

private:
    struct Users {
        std::uint64_t sum = 0, other = 0;
        bool none() const { return sum == 0 && other == 0; }
        bool operator==(const Users&) const = default;
    };
    std::vector<Users> users_;
};

/// Rate of a demand alone on the network, in rate units: min over its links of capacity / coefficient, at least 1.
Rate alone_rate(std::span<const LinkUse> demand, std::span<const Rate> capacity);

}  // namespace fabricast::program
