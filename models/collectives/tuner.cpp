#include "models/collectives/tuner.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <limits>
#include <stdexcept>

#include <fmt/format.h>

namespace fabricast {

namespace {

constexpr int kAlgorithms = static_cast<int>(Algorithm::p2p);  // those it chooses among
constexpr int kProtocols = static_cast<int>(Protocol::count);

// Rows in the order of Algorithm; columns LL, LL128, Simple; microseconds.
constexpr double kBase[kAlgorithms][kProtocols] = {{6.8, 14.0, 8.4}, {6.6, 14.0, 8.4}, {0, 0, 0},      {0, 0, 0},
                                                   {0, 0, 0},        {0, 0, 0},        {8.0, 8.0, 8.0}};
constexpr double kNvlinkHop[kAlgorithms][kProtocols] = {{.6, 1.25, 4.0}, {.6, 1.9, 3.4}, {0, 0, 3.7}, {0, 0, 2.8},
                                                        {0, 0, 25},      {0, 0, 25},     {0, 0, 4.0}};
constexpr double kPcieHop[kAlgorithms][kProtocols] = {{1.0, 1.9, 4.0}, {1.0, 2.5, 5.7}, {0, 0, 3.7}, {0, 0, 2.8},
                                                      {0, 0, 0},       {0, 0, 0},       {0, 0, 4.0}};
constexpr double kNetworkHop[kAlgorithms][kProtocols] = {{5.0, 8.5, 14}, {2.7, 4.0, 14}, {0, 0, 31}, {0, 0, 30},
                                                         {0, 0, 18},     {0, 0, 20.9},   {0, 0, 14}};

// Rows Volta, Ampere, Hopper, Blackwell; columns 1, 2, 3 or more nodes; GB/s.
struct Caps {
    double ll_total[4][3], ring_ll128[4][3], tree_ll128[4][3], tree[4][3], nvls_tree[4][3];
};
constexpr Caps kCaps28 = {
    .ll_total = {{39.0, 39.0, 20.4}, {87.7, 22.5, 19.0}, {141.0, 45.0, 35.0}, {282.0, 90.0, 70.0}},
    .ring_ll128 = {{20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 36.7}, {73.4, 34.6, 73.4}},
    .tree_ll128 = {{20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 29.0}, {55.6, 31.67, 20.0}},
    .tree = {{26.5, 18.5, 10.0}, {24.0, 23.6, 17.8}, {38.7, 41.4, 36.0}, {70.0, 42.8, 24.0}},
    .nvls_tree = {{26.5, 18.5, 10.0}, {24.0, 23.6, 17.8}, {0, 57.7, 45.5}, {0, 96.0, 43.8}},
};
constexpr Caps caps_2_30() {
    Caps caps = kCaps28;
    for (double& value : caps.ring_ll128[3]) {
        value = 40.0;
    }
    caps.nvls_tree[3][2] = 80.0;
    return caps;
}
constexpr Caps kCaps30 = caps_2_30();

// Tree all-reduce: factor on bandwidth at size 64 B x 2^index.
constexpr double kTreeCorrection[kProtocols][23] = {
    {1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1},
    {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1},
    {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9}};

constexpr std::uint32_t kMostCollnetRanks = 8;  // on one node

const Caps& caps(const TunerInput& in) { return in.version == NcclVersion::v2_30 ? kCaps30 : kCaps28; }
int row(const TunerInput& in) { return static_cast<int>(in.generation); }
int column(const TunerInput& in) { return in.nodes >= 3 ? 2 : static_cast<int>(in.nodes) - 1; }
int floor_log2(std::uint64_t x) { return static_cast<int>(std::bit_width(x)) - 1; }

int ring_steps(std::uint32_t ranks, Collective kind) {
    const int n = static_cast<int>(ranks);
    switch (kind) {
        case Collective::all_reduce: return 2 * (n - 1);
        case Collective::all_gather:
        case Collective::reduce_scatter: return n - 1;
        default: return n;
    }
}

bool exists(const TunerInput& in, Collective kind, Algorithm a, Protocol p) {
    if (p == Protocol::ll128 && !in.ll128) {
        return false;
    }
    const bool simple = p == Protocol::simple;
    const bool gather_or_scatter = kind == Collective::all_gather || kind == Collective::reduce_scatter;
    switch (a) {
        case Algorithm::ring: return true;
        case Algorithm::tree: return kind == Collective::all_reduce;
        case Algorithm::nvls:
            return simple && (in.nodes == 1 || (in.collnet && kind == Collective::all_reduce)) &&
                   in.search.nvls.channels >= 2 &&
                   (kind == Collective::all_reduce || (gather_or_scatter && in.ranks <= 32));
        case Algorithm::nvls_tree:
            return simple && in.nodes > 1 && in.search.nvls.channels >= 2 && kind == Collective::all_reduce;
        case Algorithm::pat: return simple && in.nodes > 1 && in.one_rank_a_node && gather_or_scatter;
        case Algorithm::collnet_direct:
            return simple && in.collnet && in.nvswitch && in.most_on_node <= kMostCollnetRanks &&
                   kind == Collective::all_reduce;
        case Algorithm::collnet_chain:
            return simple && in.collnet && in.most_on_node <= kMostCollnetRanks && kind == Collective::all_reduce;
        default: return false;
    }
}

/// Bandwidth over all channels before it becomes algorithm bandwidth.
double bus_bandwidth(const TunerInput& in, Collective kind, Algorithm a, Protocol p) {
    const bool nvls = a == Algorithm::nvls || a == Algorithm::nvls_tree;
    const SearchGraph& graph = nvls ? in.search.nvls : a == Algorithm::ring ? in.search.ring : in.search.tree;
    const double channels = graph.channels;
    const bool collnet = a == Algorithm::collnet_direct || a == Algorithm::collnet_chain;
    double speed = in.nodes <= 2 || collnet ? graph.intra_gb_per_s : graph.inter_gb_per_s;
    if (nvls) {
        const double local = in.ranks / in.nodes;
        double inside = graph.intra_gb_per_s * nvls_efficiency_percent(in.generation) / 100 * (channels - 1) / channels;
        inside *= kind == Collective::all_reduce ? 2 : (local - 1) / local;
        const double outside = graph.inter_gb_per_s * (a == Algorithm::nvls_tree && in.nodes <= 2 ? 2 : 1);
        speed = std::min(inside, outside);
        if (a == Algorithm::nvls_tree) {
            speed = std::min(speed, nvls_tree_channel_gb_per_s(in));
        }
    }
    double total = channels * speed;
    if (a == Algorithm::ring && p == Protocol::ll) {
        total = std::min(ll_total_gb_per_s(in), total / 2);
    } else if (a == Algorithm::ring && p == Protocol::ll128) {
        total = std::min(.92 * total, channels * ring_ll128_channel_gb_per_s(in));
    } else if (a == Algorithm::tree) {
        total = std::min(.92 * total, channels * tree_channel_gb_per_s(in, Protocol::simple));
        if (p == Protocol::ll) {
            total = std::min(total / 3.8, ll_total_gb_per_s(in));
        } else if (p == Protocol::ll128) {
            total = std::min(total * (in.nodes == 1 ? 7.0 / 9.0 : 120.0 / 128.0),
                             channels * tree_channel_gb_per_s(in, Protocol::ll128));
        }
        if (in.search.plain_tree) {
            total *= .85;
        }
    } else if (a == Algorithm::pat) {
        total *= .75;
    } else if (a == Algorithm::collnet_direct) {
        double factor = in.ranks / in.nodes / channels;
        factor -= (factor - 1) / 2;
        total = total / factor * (in.generation >= GpuGeneration::hopper ? .85 : 1);
    }
    return total;
}

double latency_us(const TunerInput& in, Collective kind, Algorithm a, Protocol p) {
    const bool network = in.nodes > 1;
    const double intra = hop_latency_us(a, p, in.search.nvlink_intra, false);
    const double inter = hop_latency_us(in.ranks == in.nodes ? Algorithm::tree : a, p, true, true);
    const double base = base_latency_us(a, p);
    const double local = static_cast<double>(in.ranks / in.nodes) - 1;
    const double depth = floor_log2(in.nodes);
    switch (a) {
        case Algorithm::ring: {
            const int steps = ring_steps(in.ranks, kind);
            if (kind == Collective::broadcast || kind == Collective::reduce) {
                const double hop = network ? inter : intra;
                if (in.search.same_channels) {
                    return base + hop;
                }
                return base + steps * (p == Protocol::simple ? hop_latency_us(Algorithm::tree, p, true, network) : hop);
            }
            const double post = (in.amd_cpu ? 2.0 : 1.0) * (p == Protocol::simple ? 3 : 1);
            const double step = network ? std::max(intra, post) : intra;
            const int crossings = static_cast<int>(in.nodes - 1) * (kind == Collective::all_reduce ? 2 : 1);
            return base + (steps - crossings) * step + crossings * inter;
        }
        case Algorithm::tree: return base + 2 * (local * intra + depth * inter);
        case Algorithm::nvls: return intra + (network ? inter : 0);
        case Algorithm::nvls_tree: return intra + 2 * depth * inter;
        case Algorithm::pat: return base + depth * inter / 3.5 + 2.8 * in.ranks;
        case Algorithm::collnet_direct: return 2 * (std::min(1.0, local) * intra + .4 * local) + inter;
        case Algorithm::collnet_chain: return 2 * local * intra + inter;
        default: return 0;
    }
}

}  // namespace

NcclVersion nccl_version(std::string_view library) {
    constexpr std::string_view kNames[] = {"nccl 2.28", "nccl 2.30"};
    for (int i = 0; i < 2; ++i) {
        if (library.starts_with(kNames[i]) &&
            (library.size() == kNames[i].size() || library[kNames[i].size()] == '.')) {
            return static_cast<NcclVersion>(i);
        }
    }
    throw std::invalid_argument(
        fmt::format("library '{}' is not known; the tables at hand are 'nccl 2.28' and 'nccl 2.30'", library));
}

double ll_total_gb_per_s(const TunerInput& in) {
    return caps(in).ll_total[in.nodes == 1 ? row(in) : (in.amd_cpu ? 1 : 0)][column(in)];
}
double ring_ll128_channel_gb_per_s(const TunerInput& in) { return caps(in).ring_ll128[row(in)][column(in)]; }
double tree_channel_gb_per_s(const TunerInput& in, Protocol p) {
    return (p == Protocol::ll128 ? caps(in).tree_ll128 : caps(in).tree)[row(in)][column(in)];
}
double nvls_tree_channel_gb_per_s(const TunerInput& in) { return caps(in).nvls_tree[row(in)][column(in)]; }

int nvls_efficiency_percent(GpuGeneration generation) {
    constexpr int kPercent[] = {0, 0, 85, 74};
    return kPercent[static_cast<int>(generation)];
}

double base_latency_us(Algorithm a, Protocol p) { return kBase[static_cast<int>(a)][static_cast<int>(p)]; }

double hop_latency_us(Algorithm a, Protocol p, bool nvlink, bool network) {
    const auto& table = network ? kNetworkHop : nvlink ? kNvlinkHop : kPcieHop;
    return table[static_cast<int>(a)][static_cast<int>(p)];
}

TunerTable tune(const TunerInput& in, Collective kind) {
    assert(in.nodes >= 1 && in.ranks >= in.nodes && "every node of a group has a rank");
    TunerTable table;
    if (in.ranks < 2) {
        return table;
    }
    for (int a = 0; a < kAlgorithms; ++a) {
        for (int p = 0; p < kProtocols; ++p) {
            const auto algorithm = static_cast<Algorithm>(a);
            const auto protocol = static_cast<Protocol>(p);
            TunerEntry& entry = table.entry[a][p];
            entry.latency_us = latency_us(in, kind, algorithm, protocol);
            if (!exists(in, kind, algorithm, protocol)) {
                continue;
            }
            double bandwidth = bus_bandwidth(in, kind, algorithm, protocol);
            const bool stays = kind != Collective::all_reduce && algorithm != Algorithm::ring;
            if (algorithm == Algorithm::tree || algorithm == Algorithm::collnet_direct ||
                algorithm == Algorithm::collnet_chain) {
                bandwidth *= .5;
            } else if (!stays) {
                bandwidth *= static_cast<double>(in.ranks) / ring_steps(in.ranks, kind);
            }
            entry.bandwidth_gb_per_s = bandwidth;
        }
    }
    return table;
}

double tree_correction(Protocol protocol, Bytes size) {
    if (size < 64) {
        return 1;
    }
    const int index = floor_log2(static_cast<std::uint64_t>(size / 64));
    return index < 23 ? kTreeCorrection[static_cast<int>(protocol)][index] : 1;
}

double ring_plateau(const TunerInput& in, Bytes size) {
    if (in.nodes == 1 || size / (static_cast<Bytes>(in.channels) * in.ranks) < 64) {
        return 1;
    }
    return in.generation < GpuGeneration::ampere ? 1.9 : 1.4;
}

double tuner_time_s(const TunerInput& in, const TunerTable& table, Collective kind, Algorithm a, Protocol p,
                    Bytes size) {
    const TunerEntry& entry = table.entry[static_cast<int>(a)][static_cast<int>(p)];
    if (entry.bandwidth_gb_per_s <= 0) {
        return std::numeric_limits<double>::infinity();
    }
    double latency = entry.latency_us;
    double bandwidth = entry.bandwidth_gb_per_s;
    if (kind == Collective::all_reduce && a == Algorithm::tree) {
        bandwidth *= tree_correction(p, size);
    } else if (kind == Collective::all_reduce && a == Algorithm::ring && p == Protocol::simple) {
        latency *= ring_plateau(in, size);
    }
    return latency * 1e-6 + static_cast<double>(size) / (bandwidth * 1e9);
}

}  // namespace fabricast
