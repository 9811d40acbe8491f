#include "models/collectives/exchange.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <stdexcept>

#include "models/collectives/exchange_legs.hpp"
#include "models/collectives/execution.hpp"
#include "models/collectives/latency.hpp"
#include "models/collectives/tuner.hpp"

namespace fabricast {

namespace {

constexpr Bytes kLowLatencyLimit = 16 * 1024;    // NCCL_P2P_LL_THRESHOLD
constexpr Bytes kChannelPart = Bytes{16} << 20;  // 32 slots of 512 KiB
constexpr std::uint32_t kPeerChannels = 2, kMostChannels = 32;
constexpr std::uint32_t kPeersAChannel = 4;  // network peers, before each gets fewer channels
constexpr std::uint32_t kPeersAtOnce = 8;    // operations of one batch on a channel

// GB/s of one channel between NVLink peers, by generation: send-recv of 8x H100 runs at 80, 82, 162, 300 GB/s at 32, 64,
// 128, 256 MiB (4, 4, 8, 16 channels), of 8x A100 at 111 GB/s at 128 MiB (8); B200 all-to-all of two ranks needs 34.
constexpr double kNvlinkChannel[] = {13.9, 13.9, 20.4, 36};

// One NVLink node, by generation. time = launch + hop (peers - 1) + bytes / (share x link) + own bytes / copy
// + ramp x / (x + 2 ramp), x = time on the wire. Least mean relative error over 2, 4, 8 GPUs, 512 B .. 512 MiB, fp16 and
// int8 (median / p90): A100 5.2 / 16 %, H100 and H200 6.1 / 23 %, B200 and GB200 5.0 / 13 %. Volta: as Ampere.
struct LocalExchange {
    double low_latency_us, simple_us, hop_us;
    double share;             ///< of the link that many peers at once reach
    double copy_bytes_per_s;  ///< a rank's copy to itself, by the same thread blocks
    double ramp_us;
};
constexpr LocalExchange kLocal[] = {{11.5, 14.8, .277, .888, 9.44e11, 54.6},
                                    {11.5, 14.8, .277, .888, 9.44e11, 54.6},
                                    {6.86, 10.3, .304, .916, 2.25e12, 40.2},
                                    {9.5, 14.5, .328, 1.0, 7.54e11, 42.1}};

constexpr auto local = PairWays::local, cross = PairWays::cross;

}  // namespace

std::uint32_t pair_channels(bool local_nvlink, std::uint32_t ranks, Bytes message) {
    if (!local_nvlink) {
        std::uint32_t peer = kPeerChannels;
        while (peer > 1 && peer * ranks > kPeersAChannel * kMostChannels)
            peer /= 2;
        return peer;
    }
    std::uint32_t channels = std::max(1u, kMostChannels / std::bit_ceil(ranks));
    while (channels < kMostChannels && message / channels > kChannelPart)
        channels *= 2;
    return channels;
}

double pair_channel_gb_per_s(bool local_nvlink, GpuGeneration generation) {
    return local_nvlink ? kNvlinkChannel[static_cast<int>(generation)] : channel_gb_per_s(generation);
}

Bytes exchange_wire_bytes(GpuGeneration generation, bool nvlink, const PairTraffic& traffic, Bytes largest,
                          Bytes payload, bool inside) {
    if (!inside)
        return payload;
    if (largest <= kLowLatencyLimit)
        return 2 * payload;
    if (!nvlink || traffic.kind == Collective::send_recv)
        return payload;
    return static_cast<Bytes>(static_cast<double>(payload) / kLocal[static_cast<int>(generation)].share) + 1;
}

PairTraffic traffic_of(Collective kind, std::uint32_t ranks, Bytes size) {
    PairTraffic t;
    t.kind = kind;
    t.ranks = ranks;
    t.size = size;
    t.whole = kind == Collective::send_recv ? 1 : ranks;
    if (kind == Collective::all_to_all)
        return t;
    if (!is_exchange(kind)) {
        throw std::invalid_argument(fmt::format("{} is not made of sends and receives", collective_name(kind)));
    }
    t.units.assign(std::size_t{ranks} * ranks, 0);
    for (std::uint32_t r = 0; r < ranks; ++r) {
        switch (kind) {
            case Collective::send_recv: t.units[std::size_t{r} * ranks + (r + 1) % ranks] = 1; break;
            case Collective::gather: t.units[std::size_t{r} * ranks] = 1; break;
            default: t.units[r] = 1; break;
        }
    }
    return t;
}

PairTraffic all_to_all_v(const std::vector<std::vector<Bytes>>& bytes) {
    PairTraffic t;
    t.ranks = static_cast<std::uint32_t>(bytes.size());
    t.units.assign(bytes.size() * bytes.size(), 0);
    Bytes largest = 0;
    for (const auto& row : bytes) {
        if (row.size() != bytes.size()) {
            throw std::invalid_argument(
                fmt::format("all_to_all_v: a row of {} sizes in a matrix of {} ranks", row.size(), bytes.size()));
        }
        for (const Bytes size : row) {
            if (size < 0)
                throw std::invalid_argument(fmt::format("all_to_all_v: a size of {} bytes", size));
            largest = std::max(largest, size);
        }
    }
    // Units of 1/2^20 of the largest message: rounding up costs at most a millionth of it.
    constexpr std::int64_t kFine = 1 << 20;
    t.size = largest;
    t.whole = kFine;
    for (std::size_t from = 0; from < bytes.size() && largest > 0; ++from) {
        for (std::size_t to = 0; to < bytes.size(); ++to) {
            t.units[from * bytes.size() + to] = static_cast<std::uint32_t>(scaled_up(bytes[from][to], kFine, largest));
        }
    }
    return t;
}

PairTraffic imbalanced_all_to_all(std::uint32_t ranks, Bytes size, double imbalance) {
    if (!(imbalance >= 1) || imbalance > ranks) {
        throw std::invalid_argument(
            fmt::format("imbalance {} is not between 1 and the number of ranks, {}", imbalance, ranks));
    }
    PairTraffic t;
    t.ranks = ranks;
    t.size = size;
    constexpr std::uint32_t kMean = 1 << 16;
    t.whole = std::uint64_t{kMean} * ranks;
    const auto hot = static_cast<std::uint32_t>(imbalance * kMean + .5);
    const auto other = ranks > 1 ? static_cast<std::uint32_t>((t.whole - hot + ranks - 2) / (ranks - 1)) : 0;
    t.units.assign(std::size_t{ranks} * ranks, other);
    for (std::uint32_t from = 0; from < ranks; ++from)
        t.units[std::size_t{from} * ranks] = hot;
    return t;
}

PlannedExchange CommModel::exchange(const CommGroup& group, const PairTraffic& traffic) const {
    if (traffic.ranks != group.ranks) {
        throw std::invalid_argument(fmt::format("traffic of {} ranks on a group of {}", traffic.ranks, group.ranks));
    }
    PlannedExchange out;
    CollectivePlan& plan = out.plan;
    plan.algorithm = Algorithm::p2p;
    if (group.ranks < 2 || traffic.size == 0)
        return out;
    const ExchangeLegs legs(*cluster_, group, traffic, settings_.pxn);
    const std::uint32_t largest = legs.largest();
    if (largest == 0)
        return out;
    const auto whole = static_cast<std::int64_t>(traffic.whole);
    const Bytes message = scaled_up(traffic.size, largest, whole);
    const bool nvlink = over_nvlink(*cluster_, group);
    const bool low_latency = message <= kLowLatencyLimit;
    plan.protocol = low_latency && !legs.network() ? Protocol::ll : Protocol::simple;
    plan.uses_network = legs.network();
    const LocalExchange& table = kLocal[static_cast<int>(facts_.generation)];
    const bool many_peers = traffic.kind != Collective::send_recv;

    for (ExchangeLegs::Activity& a : legs.activities()) {
        const bool inside = a.kind == local;
        plan.uses_nvlink = plan.uses_nvlink || (nvlink && (inside || (a.kind == cross && settings_.pxn)));
        PlannedActivity activity;
        activity.work =
            exchange_wire_bytes(facts_.generation, nvlink, traffic, message,
                                scaled_up(traffic.size, static_cast<std::int64_t>(a.busiest), whole), inside);
        const std::uint32_t a_peer = pair_channels(inside && nvlink, group.ranks, message);
        const std::uint32_t channels = std::min(std::min(a.peers, kPeersAtOnce) * a_peer, kMostChannels);
        plan.channels = std::max(plan.channels, static_cast<int>(channels));
        activity.weight = std::max(1u, channels);
        // No rank moves more than its channels do.
        const std::uint32_t rank_channels = std::min(a.peers * a_peer, kMostChannels);
        const double busiest_over_rank = static_cast<double>(a.busiest) / static_cast<double>(a.most_by_rank);
        const double channel = pair_channel_gb_per_s(inside && nvlink, facts_.generation) * 1e9;
        activity.cap = rate_from_bytes_per_s(rank_channels * channel * busiest_over_rank);
        activity.demand = static_cast<std::uint32_t>(out.demands.size());
        out.demands.push_back(std::move(a.demand));
        plan.activities.push_back(activity);
    }

    const double local_peers = legs.most_peers(false), network_peers = legs.most_peers(true);
    double latency_us = 0;
    if (network_peers > 0) {
        const double post_us = 3 * (facts_.amd_cpu ? 2.0 : 1.0);  // of a Simple message, as in the tuner
        latency_us = base_latency_us(Algorithm::ring, Protocol::simple) +
                     hop_latency_us(Algorithm::ring, Protocol::simple, nvlink, true) + (network_peers - 1) * post_us;
    } else if (nvlink) {
        latency_us = (low_latency ? table.low_latency_us : table.simple_us) + (local_peers - 1) * table.hop_us;
        double slowest = 0;
        for (const PlannedActivity& a : plan.activities) {
            for (const LinkUse& use : out.demands[a.demand]) {
                const double rate = bytes_per_s(cluster_->links().capacity[index(use.link)]) /
                                    static_cast<double>(use.coefficient) * kCoefficientOne;
                slowest = std::max(slowest, static_cast<double>(a.work) / rate);
            }
        }
        const double ramp = table.ramp_us * 1e-6;
        double fill = many_peers ? slowest * ramp / (slowest + 2 * ramp) : 0;
        if (traffic.kind == Collective::all_to_all) {
            std::uint32_t own = 0;
            for (std::uint32_t r = 0; r < traffic.ranks; ++r)
                own = std::max(own, traffic.at(r, r));
            fill +=
                static_cast<double>(traffic.size) * own / static_cast<double>(traffic.whole) / table.copy_bytes_per_s;
        }
        plan.fill = picoseconds_from_s(fill);
    } else {
        const Protocol p = low_latency ? Protocol::ll : Protocol::simple;
        latency_us =
            base_latency_us(Algorithm::ring, p) + local_peers * hop_latency_us(Algorithm::ring, p, false, false);
    }
    plan.latency = picoseconds_from_s(latency_us * 1e-6) + plan.fill;
    return out;
}

}  // namespace fabricast
