// A point-to-point message (ncclSend / ncclRecv).
//
//   inside a node   up to 16 KiB low-latency (LL) stores, two wire bytes a byte: NVLink one hop of the fitted ring
//                   (latency.hpp), PCIe base 6.6 + 1.0 us; above: base 8.4 + one Simple hop (3.4 us NVLink, 5.7 PCIe)
//   over the network  Simple only (LL buffers are not allocated by default): one NET hop of 14 us, which holds the
//                   proxy's posting and the flush; the launch of the kernel overlaps it
//   cap             channels of one peer connection x rate of a channel (exchange.hpp): NVLink peers have 32 / n, n the GPUs
//                   behind the switch of a node, doubled while a channel's part is above 16 MiB (4 up to 64 MiB on 8 GPUs,
//                   82 GB/s on H100 as logged); PCIe and network peers 2
// A batch of messages to many peers pays the latency once; the caller knows what is a batch.
// Source: NCCL 2.28.9 src/graph/tuning.cc (hops of the ring), src/enqueue.cc, src/graph/paths.cc. The network value
// is a choice between 9.3 us (LL) and 22.4 us (base + hop).
#include "models/collectives/comm_model.hpp"
#include "models/collectives/exchange.hpp"
#include "models/collectives/latency.hpp"
#include "models/collectives/tuner.hpp"

namespace fabricast {

namespace {

constexpr Bytes kLowLatencyLimit = 16 * 1024;  // NCCL_P2P_LL_THRESHOLD, one channel

}  // namespace

CommModel::Message CommModel::message(GpuId from, GpuId to, Bytes size) const {
    Message message;
    if (from == to) {
        return message;
    }
    const PathType path = cluster_->path_type(from, to);
    const bool network = path == PathType::net;
    const bool nvlink = path == PathType::nvl || path == PathType::nvb;
    const bool low_latency = !network && size <= kLowLatencyLimit;
    const Protocol protocol = low_latency ? Protocol::ll : Protocol::simple;
    double latency_us = hop_latency_us(Algorithm::ring, protocol, nvlink, network);
    if (nvlink && low_latency) {
        const HopLatency fitted = nvlink_ring_latency(facts_.generation, protocol);
        latency_us = fitted.base_us + fitted.hop_us;
    } else if (!network) {
        latency_us += base_latency_us(Algorithm::ring, protocol);
    }
    message.latency = picoseconds_from_s(latency_us * 1e-6);
    std::vector<LinkId> route;
    route.reserve(8);
    cluster_->route(from, to, route);
    message.links.reserve(route.size());
    for (const LinkId link : route) {
        message.links.push_back({link, low_latency ? 2 * kCoefficientOne : kCoefficientOne});
    }
    const std::uint32_t channels = pair_channels(nvlink, cluster_->gpus_per_node(), size);
    message.cap = rate_from_bytes_per_s(channels * pair_channel_gb_per_s(nvlink, facts_.generation) * 1e9);
    message.uses_nvlink = nvlink;
    message.uses_network = network;
    return message;
}

}  // namespace fabricast
