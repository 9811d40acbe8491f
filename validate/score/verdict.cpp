#include "validate/score/verdict.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "validate/score/network_fit.hpp"

namespace fabricast {
namespace {

constexpr double kHealthy = 0.70;
constexpr double kSlowSmall = 1.6, kSocketShare = 0.45;
constexpr std::int64_t kLarge = 1 << 20, kSmall = 64 * 1024;
constexpr std::size_t kLast = 3;

struct Shares {
    double large = 0;       ///< measured / expected busbw; 0: no size large enough
    double small_time = 0;  ///< measured / expected time of small sizes; 0: none
    double expected = 0;    ///< busbw at the largest size
    const Compared* at = nullptr;
};

/// ceiling: highest bus bandwidth to ask for, GB/s; 0 = none.
Shares shares_of(const std::vector<Compared>& points, double ceiling) {
    std::vector<double> large, small;
    Shares out;
    for (auto point = points.rbegin(); point != points.rend(); ++point) {
        if (point->bytes >= kLarge && large.size() < kLast) {
            const double expected = ceiling > 0 ? std::min(ceiling, point->expected_busbw) : point->expected_busbw;
            large.push_back(point->measured_busbw / expected);
            if (out.at == nullptr) {
                out.at = &*point;
                out.expected = expected;
            }
        } else if (point->bytes < kSmall) {
            small.push_back(point->measured_us / point->expected_us);
        }
    }
    out.large = large.empty() ? 0 : median(large);
    out.small_time = small.empty() ? 0 : median(small);
    return out;
}

std::string nccl_says(const NcclFacts& facts) {
    if (facts.network.empty()) {
        return facts.plugin_not_found ? "; NCCL INFO says that no network plugin was found" : "";
    }
    std::string text = fmt::format("; NCCL INFO says NET/{}", facts.network);
    if (!facts.provider.empty()) {
        text += fmt::format(" with provider {}", facts.provider);
    }
    return text;
}

bool says_other_transport(const RunCase& run) {
    const NcclFacts& facts = run.run.facts;
    const bool wants_ofi = run.platform.expected.starts_with("efa") || run.platform.expected == "slingshot_ofi";
    return (facts.network_transport == "ib" && wants_ofi) ||
           (facts.network_transport == "ofi" && facts.provider == "tcp");
}

Cause cause_of(const RunCase& run, const Shares& shares) {
    const NcclFacts& facts = run.run.facts;
    if (run.platform.nodes == 1) {
        return Cause::slow_nic_or_link;
    }
    if (run.platform.told == "sockets" || facts.network_transport == "socket") {
        return Cause::sockets_fallback;
    }
    if (says_other_transport(run)) {
        return Cause::wrong_transport;
    }
    if (facts.gpu_direct == false) {
        return Cause::no_gpudirect;
    }
    if (run.platform.told.empty() && shares.small_time > kSlowSmall && shares.large > 0 &&
        shares.large < kSocketShare) {
        return Cause::sockets_fallback;
    }
    return run.platform.nodes >= 3 ? Cause::congestion_or_ecmp : Cause::slow_nic_or_link;
}

}  // namespace

std::string_view name_of(Health health) {
    constexpr std::string_view kNames[] = {"healthy", "sick", "unclear"};
    return kNames[static_cast<std::size_t>(health)];
}

std::string_view name_of(Cause cause) {
    constexpr std::string_view kNames[] = {
        "none",         "single_node_ok",     "sockets_fallback", "wrong_transport",
        "no_gpudirect", "congestion_or_ecmp", "slow_nic_or_link", "falling_at_large_sizes",
        "failed"};
    return kNames[static_cast<std::size_t>(cause)];
}

Verdict judge_health(const RunCase& run, const std::vector<Compared>& points, double efficiency) {
    Verdict out;
    const Platform& platform = run.platform;
    const double line = platform.nodes > 1 ? platform.node.nics * platform.node.nic_bits_per_s / 8e9 : 0;
    const bool doubles = platform.nodes == 2 && run.kind == Collective::all_reduce;
    const Shares shares = shares_of(points, doubles ? line * efficiency : 0);
    out.share = shares.large;
    if (line > 0 && shares.at != nullptr) {
        out.line_share = shares.at->measured_busbw / line;
    }
    bool falling = false;
    std::vector<std::string> findings;
    for (const LogFinding& finding : log_findings(run.run)) {
        falling = falling || finding.kind == LogFindingKind::falling_bandwidth;
        if (finding.kind == LogFindingKind::falling_bandwidth || finding.kind == LogFindingKind::first_iteration) {
            findings.push_back(finding.sentence);
        }
    }
    if (falling) {
        out.also.push_back(Cause::falling_at_large_sizes);
    }
    const std::string shown =
        shares.at == nullptr ? fmt::format("only sizes under 1 MiB: {:.2g} times the expected time", shares.small_time)
                             : fmt::format("{:.0f} % of the {:.4g} GB/s expected at the largest sizes",
                                           100 * shares.large, shares.expected);
    const std::string wire =
        line > 0 && shares.at != nullptr
            ? fmt::format(" ({:.0f} % of the {:.4g} GB/s line rate of {} x {:.0f} Gb/s)", 100 * out.line_share, line,
                          platform.node.nics, platform.node.nic_bits_per_s * 1e-9)
            : "";
    const bool sockets =
        platform.nodes > 1 && cause_of(run, shares) == Cause::sockets_fallback && platform.told == "sockets";
    const bool low = shares.large > 0 && shares.large < kHealthy;
    if (sockets || says_other_transport(run) || (low && platform.rate_told) ||
        (low && run.run.facts.gpu_direct == false) || (low && platform.nodes == 1) || (low && falling)) {
        out.health = Health::sick;
        out.cause = cause_of(run, shares);
        std::string why;
        switch (out.cause) {
            case Cause::sockets_fallback:
                why = platform.told == "sockets"
                          ? fmt::format("; sockets carry it where the machine has {}", platform.expected)
                          : "; slow small messages too, as TCP sockets show";
                break;
            case Cause::no_gpudirect:
                why = "; network connections without GPUDirect RDMA pass through host memory";
                break;
            case Cause::congestion_or_ecmp:
                why = fmt::format(
                    "; {} nodes: a ring does not slow down with nodes, so links are shared (ECMP collisions or "
                    "congestion)",
                    platform.nodes);
                break;
            case Cause::wrong_transport: why = fmt::format("; the machine has {}", platform.expected); break;
            case Cause::slow_nic_or_link:
                why = platform.nodes > 1 ? "; an adapter, cable or the path between the two nodes is slow"
                                         : "; a link inside the node is slow or missing";
                break;
            default: break;
        }
        out.sentence = shown + wire + why + nccl_says(run.run.facts);
    } else if (low || shares.at == nullptr) {
        out.health = shares.at == nullptr && shares.small_time > 0 && shares.small_time < 1 / kHealthy
                         ? Health::healthy
                         : Health::unclear;
        out.sentence = shown + wire;
        if (low) {
            out.sentence += "; the line rate is not told, the reference board's was taken";
        }
        out.cause = out.health == Health::healthy && platform.nodes == 1 ? Cause::single_node_ok : Cause::none;
    } else {
        out.health = Health::healthy;
        out.cause = platform.nodes == 1 ? Cause::single_node_ok : Cause::none;
        out.sentence = shown + wire;
    }
    if (!findings.empty()) {
        out.sentence += fmt::format("; {}", fmt::join(findings, "; "));
    }
    return out;
}

}  // namespace fabricast
