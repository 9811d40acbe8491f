// What the tests of builders ask of a cluster.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "topologies/graph/cluster.hpp"

namespace fabricast::test {

using Names = std::vector<std::string>;

inline std::vector<LinkId> route(const Cluster& cluster, std::uint32_t from, std::uint32_t to) {
    std::vector<LinkId> links;
    cluster.route(GpuId{from}, GpuId{to}, links);
    return links;
}

inline Names names(const Cluster& cluster, const std::vector<LinkId>& links) {
    Names result;
    for (const LinkId link : links) {
        result.push_back(cluster.links().name[index(link)]);
    }
    return result;
}

inline Names route_names(const Cluster& cluster, std::uint32_t from, std::uint32_t to) {
    return names(cluster, route(cluster, from, to));
}

inline double link_rate(const Cluster& cluster, const std::string& name) {
    const std::vector<std::string> all = cluster.links().name.all();
    const auto found = std::find(all.begin(), all.end(), name);
    return found == all.end() ? 0 : bytes_per_s(cluster.links().capacity[found - all.begin()]);
}

inline std::string refusal(const std::function<void()>& action) {
    try {
        action();
    } catch (const std::exception& error) {
        return error.what();
    }
    return "accepted";
}

/// The way back crosses as many links of the same kinds, in reverse order, and takes as long.
inline bool is_symmetric(const Cluster& cluster, std::uint32_t a, std::uint32_t b) {
    const auto kinds = [&](const std::vector<LinkId>& links) {
        std::vector<std::pair<LinkKind, Rate>> result;
        for (const LinkId link : links) {
            result.emplace_back(cluster.links().kind[index(link)], cluster.links().capacity[index(link)]);
        }
        return result;
    };
    const auto there = route(cluster, a, b), back = route(cluster, b, a);
    auto reversed = kinds(back);
    std::reverse(reversed.begin(), reversed.end());
    return kinds(there) == reversed && cluster.latency(there) == cluster.latency(back);
}

/// Pairs of GPUs of node 0 by path type.
inline std::map<PathType, int> path_counts(const Cluster& cluster) {
    std::map<PathType, int> counts;
    for (std::uint32_t a = 0; a < cluster.gpus_per_node(); ++a) {
        for (std::uint32_t b = a + 1; b < cluster.gpus_per_node(); ++b) {
            ++counts[cluster.path_type(GpuId{a}, GpuId{b})];
        }
    }
    return counts;
}

}  // namespace fabricast::test
