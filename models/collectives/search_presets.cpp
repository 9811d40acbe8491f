#include "models/collectives/search_presets.hpp"

#include <algorithm>
#include <cassert>
#include <span>

namespace fabricast {

namespace {

constexpr int kMaxSearchChannels = 32;  // half of MAXCHANNELS (64 since 2.25)
constexpr double kSlack = 1e-9;         // speeds are short decimals: guard the quotients

// Speeds tried, GB/s (NCCL 2.28.9 src/graph/search.cc; 45 and 86, 80 on Blackwell came with 2.30).
constexpr double kOneNode[] = {40, 30, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3};
constexpr double kManyNodes[] = {48, 30, 28, 24, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3, 2.4, 1.2, .24, .12};
constexpr double kHopperOneNode[] = {60, 50, 40, 30, 24, 20, 15, 12, 11, 6, 3};
constexpr double kHopperManyNodes[] = {48, 45, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, .24, .12};
constexpr double kBlackwellOneNode[] = {90, 80, 70, 60, 50, 40, 30, 24, 20, 19, 18};
constexpr double kBlackwellOneNode30[] = {90, 80, 70, 60, 50, 45, 40, 30, 24, 20, 19, 18};
constexpr double kBlackwellManyNodes[] = {96, 48, 45.1, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, .24, .12};
constexpr double kBlackwellManyNodes30[] = {96, 86,   80, 48, 45.1, 42, 40,  30,  24,  22,
                                            20, 17.5, 15, 12, 6,    3,  2.4, 1.2, .24, .12};

std::span<const double> speeds(const SearchInput& in) {
    const bool one = in.nodes == 1;
    switch (in.generation) {
        case GpuGeneration::volta:
        case GpuGeneration::ampere:
            return one ? std::span<const double>(kOneNode) : std::span<const double>(kManyNodes);
        case GpuGeneration::hopper:
            return one ? std::span<const double>(kHopperOneNode) : std::span<const double>(kHopperManyNodes);
        case GpuGeneration::blackwell: break;
    }
    if (in.nccl_2_30) {
        return one ? std::span<const double>(kBlackwellOneNode30) : std::span<const double>(kBlackwellManyNodes30);
    }
    return one ? std::span<const double>(kBlackwellOneNode) : std::span<const double>(kBlackwellManyNodes);
}

int quotient(double total, double speed) { return static_cast<int>(std::min(1000.0, total / speed + kSlack)); }

double network_path(const SearchInput& in) {
    return in.pcie_gb_per_s > 0 ? std::min(in.nic_gb_per_s, in.pcie_gb_per_s) : in.nic_gb_per_s;
}

/// How many channels of this speed fit on the links of one node.
int fitting_channels(const SearchInput& in, double speed) {
    const bool nvlink = in.nvlink_gb_per_s > 0;
    const int inside = quotient(nvlink ? in.nvlink_gb_per_s : in.pcie_gb_per_s, speed);
    if (in.nodes == 1) {
        return std::min(inside, kMaxSearchChannels);
    }
    const int nics = static_cast<int>(in.nics);
    int channels = std::min(nics * quotient(network_path(in), speed), kMaxSearchChannels);
    if (in.gpus == 1) {
        return channels;
    }
    if (!nvlink) {
        return std::min(channels, inside);
    }
    const int gpus = static_cast<int>(in.gpus);
    while (channels > 0 && channels - channels / gpus > inside) {
        --channels;
    }
    return channels > nics ? channels / nics * nics : channels;
}

SearchGraph search_ring(const SearchInput& in) {
    const auto list = speeds(in);
    int channels = 0;
    double speed = 0;
    for (const double candidate : list) {
        if (channels > 0 && candidate <= .49 * speed) {
            break;
        }
        const int count = fitting_channels(in, candidate);
        if (count * candidate > channels * speed + kSlack) {
            channels = count;
            speed = candidate;
        }
    }
    if (channels == 0) {  // slower than every listed speed: one channel at what there is
        const double nvlink_or_pcie = in.nvlink_gb_per_s > 0 ? in.nvlink_gb_per_s : in.pcie_gb_per_s;
        const double whole = in.nodes > 1 ? network_path(in) : nvlink_or_pcie;
        return {1, whole, whole};
    }
    const bool before_hopper = in.generation < GpuGeneration::hopper;
    if (speed >= 25 && (before_hopper || speed >= 50 || channels <= 4)) {
        const int doubled = std::min(2 * channels, kMaxSearchChannels);
        speed /= (doubled + channels - 1) / channels;
        channels = doubled;
    }
    for (std::size_t i = list.size(); i-- > 0;) {
        if (list[i] > speed && fitting_channels(in, list[i]) >= channels) {
            speed = list[i];
        }
    }
    return {channels, speed, speed};
}

/// Trees may run up to twice as fast inside the node as between nodes, where NVLink carries that.
void raise_tree(const SearchInput& in, SearchGraph& tree) {
    const int gpus = static_cast<int>(in.gpus);
    for (const double candidate : speeds(in)) {
        const bool fits = tree.channels - tree.channels / gpus <= quotient(in.nvlink_gb_per_s, candidate);
        if (fits && candidate <= 2 * tree.inter_gb_per_s + kSlack) {
            tree.intra_gb_per_s = std::max(tree.intra_gb_per_s, candidate);
            return;
        }
    }
}

SearchGraph search_nvls(const SearchInput& in) {
    const double limit = in.nvlink_gb_per_s / (in.gpus + 1);
    const double network = in.nodes > 1 ? network_path(in) : limit;
    SearchGraph found;
    for (const double candidate : speeds(in)) {
        if (candidate <= std::min(limit, network) + kSlack) {
            found.intra_gb_per_s = candidate;
            break;
        }
    }
    if (found.intra_gb_per_s == 0 && in.nodes == 1) {  // a rack-wide NVLink domain: slower than every listed speed
        const int heads = std::min(static_cast<int>(in.gpus), kMaxSearchChannels);
        return {heads, limit * in.gpus / heads, 2 * limit * in.gpus / heads};
    }
    if (found.intra_gb_per_s == 0) {
        return {};
    }
    const double highest = in.nodes > 1 ? std::min(2 * found.intra_gb_per_s, network) : 2 * found.intra_gb_per_s;
    for (const double candidate : speeds(in)) {
        if (candidate <= highest + kSlack) {
            found.inter_gb_per_s = candidate;
            break;
        }
    }
    found.channels = static_cast<int>(in.nodes > 1 ? std::min(in.gpus, in.nics) : in.gpus);
    return found;
}

}  // namespace

SearchResult search_channels(const SearchInput& in) {
    assert(in.gpus * in.nodes >= 2 && "a search needs two ranks");
    SearchResult result;
    result.nvlink_intra = in.gpus == 1 || in.nvlink_gb_per_s > 0;
    result.ring = search_ring(in);
    result.tree = result.ring;
    if (in.gpus == 1) {
        result.tree.intra_gb_per_s = 2 * result.ring.inter_gb_per_s;
    } else if (in.nodes > 1 && in.nvlink_gb_per_s > 0) {
        raise_tree(in, result.tree);
    }
    // From Hopper on the plain pattern wins with eight 400 Gb/s NICs (expected, not observed).
    result.plain_tree = in.nodes > 1 && (in.gpus == 1 || in.generation >= GpuGeneration::hopper);
    result.same_channels = in.nodes == 1 || in.gpus == 1;
    if (in.nvls && in.nvlink_gb_per_s > 0 && in.gpus >= 2) {
        result.nvls = search_nvls(in);
    }
    return result;
}

SearchResult combine(const SearchResult& a, const SearchResult& b) {
    const auto lower = [](const SearchGraph& x, const SearchGraph& y) {
        return SearchGraph{std::min(x.channels, y.channels), std::min(x.intra_gb_per_s, y.intra_gb_per_s),
                           std::min(x.inter_gb_per_s, y.inter_gb_per_s)};
    };
    return {.ring = lower(a.ring, b.ring),
            .tree = lower(a.tree, b.tree),
            .nvls = lower(a.nvls, b.nvls),
            .nvlink_intra = a.nvlink_intra && b.nvlink_intra,
            .plain_tree = a.plain_tree || b.plain_tree,
            .same_channels = a.same_channels && b.same_channels};
}

}  // namespace fabricast
