#include "validate/score/network_fit.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <map>

#include "models/collectives/latency.hpp"

namespace fabricast {
namespace {

constexpr double kMiB = 1 << 20;
constexpr double kSlots = 8;
constexpr double kNvlsTreeChunk = 128 * 1024, kTreeChunk = 512 * 1024;

double measured_us(const NcclPoint& point) { return point.out_of_place.time_us.value; }

bool is_tree(Algorithm a) { return a == Algorithm::tree || a == Algorithm::nvls_tree; }

double hops(Algorithm a, Collective kind, std::uint32_t nodes) {
    if (a == Algorithm::ring) {
        return (nodes - 1.0) * (kind == Collective::all_reduce ? 2 : 1);
    }
    return a == Algorithm::pat ? std::bit_width(nodes) - 1 : 2 * std::bit_width(nodes - 1);
}

/// What a hop's constant counts for (latency.hpp).
double turns(const RunCase& run, Protocol protocol) {
    const NodeSpec& node = run.platform.node;
    return protocol == Protocol::simple ? static_cast<double>(node.gpus) / node.nics : 1;
}

std::vector<const NcclPoint*> points_of(const RunCase& run) {
    std::vector<const NcclPoint*> points;
    for (const NcclPoint& point : curve(run.run)) {
        if (point.bytes > 0 && measured_us(point) > 0) {
            points.push_back(&point);
        }
    }
    return points;
}

std::optional<double> efficiency_of(const RunCase& run, const NcclPoint& largest, const NetworkTiming& timing) {
    const auto time = [&](double efficiency) {
        NetworkConstants constants{.efficiency = efficiency, .timing = timing};
        return Predictor(run.platform, constants, run.settings).predict(run.kind, largest.bytes).time_us;
    };
    const double target = measured_us(largest);
    if (static_cast<double>(largest.bytes) < 64 * kMiB || time(1) > 1.03 * target) {
        return std::nullopt;  // latency decides, or other limits are above the measurement already
    }
    double low = 0.01, high = 1;
    for (int step = 0; step < 30; ++step) {
        const double middle = (low + high) / 2;
        (time(middle) > target ? low : high) = middle;
    }
    return time(0.9 * high) > 1.05 * time(high) ? std::optional<double>(high) : std::nullopt;
}

/// The extra cost of a network hop with which a ring's prediction meets the point; nothing where it hardly shows.
std::optional<double> ring_hop(const RunCase& run, NetworkConstants constants, const NcclPoint& point) {
    constexpr double kChunk = 2 * kMiB;
    Predictor::Prediction last;
    const double steps = (run.run.ranks - 1.0) * (run.kind == Collective::all_reduce ? 2 : 1);
    const auto time = [&](double hop) {
        std::fill(std::begin(constants.timing.hop_us), std::end(constants.timing.hop_us), hop);
        last = Predictor(run.platform, constants, run.settings).predict(run.kind, point.bytes);
        return last.time_us;
    };
    const double without = time(0), measured = measured_us(point);
    const Protocol protocol = last.protocol;
    if (static_cast<double>(point.bytes) > kChunk * run.run.ranks * last.channels)
        return std::nullopt;
    TunerInput tuner;
    tuner.one_rank_a_node = run.platform.node.gpus == 1;
    const double hops = std::ceil(steps * run.platform.nodes / run.run.ranks - 1e-9) * ring_hop_share(tuner, protocol) *
                        turns(run, protocol);
    const auto shows = [&](double hop) { return time(hop + 1) - time(hop) >= hops / 2; };
    if (shows(0))
        return (measured - without) / hops;
    if (measured < without)
        return std::nullopt;
    double low = 0, high = measured / hops;  // the path alone takes as long
    for (int step = 0; step < 12; ++step) {
        const double middle = (low + high) / 2;
        (time(middle) < measured ? low : high) = middle;
    }
    return shows(high) ? std::optional<double>(high) : std::nullopt;
}

struct Residual {
    double us, bytes, chunks;
    Predictor::Prediction prediction;
};

void hop_evidence(const RunCase& run, double efficiency, double channel, Evidence& out) {
    NetworkConstants constants{.efficiency = efficiency, .timing = {}};
    constants.timing.channel_gb_per_s = channel;
    const Predictor predictor(run.platform, constants, run.settings);
    std::array<std::vector<double>, 3> by_protocol;
    std::vector<Residual> trees;
    for (const NcclPoint* point : points_of(run)) {
        const double bytes = static_cast<double>(point->bytes);
        const auto p = predictor.predict(run.kind, point->bytes);
        const double residual = measured_us(*point) - p.time_us;
        const bool simple = p.protocol == Protocol::simple;
        if (simple && is_tree(p.algorithm)) {
            const double chunk = p.algorithm == Algorithm::tree ? kTreeChunk : kNvlsTreeChunk;
            trees.push_back({residual, bytes, bytes / (p.channels * chunk), p});
        } else if (bytes <= (simple ? 256 : 16) * kMiB && p.time_us > 0) {
            const bool chain = run.kind == Collective::broadcast || run.kind == Collective::reduce;
            const auto hop = p.algorithm == Algorithm::ring && !chain
                                 ? ring_hop(run, constants, *point)
                                 : std::optional<double>(residual / hops(p.algorithm, run.kind, run.platform.nodes) /
                                                         turns(run, p.protocol));
            if (hop)
                by_protocol[static_cast<std::size_t>(p.protocol)].push_back(*hop);
        }
    }
    const auto set = [&](Constant constant, double value) {
        out.value[static_cast<std::size_t>(constant)] = std::max(0.0, value);
    };
    for (std::size_t p = 0; p < 3; ++p) {
        if (by_protocol[p].size() >= 3) {
            set(static_cast<Constant>(static_cast<std::size_t>(Constant::ll_hop) + p), median(by_protocol[p]));
        }
    }
    std::vector<double> full;
    for (const Residual& r : trees) {
        if (r.chunks >= kSlots && r.chunks <= 4 * kSlots) {
            full.push_back(r.us);
        }
    }
    if (!full.empty() && trees.front().chunks < kSlots / 2) {
        const Residual& first = trees.front();
        const double slot = std::max(0.0, (median(full) - first.us) / (kSlots - first.chunks));
        set(Constant::slot, slot);
        set(Constant::simple_hop, (first.us - slot * first.chunks) /
                                      hops(first.prediction.algorithm, run.kind, run.platform.nodes) /
                                      turns(run, Protocol::simple));
    }
}

std::optional<LaunchCost> launch_shown(const RunCase& run) {
    constexpr std::int64_t kSmall = 4096, kMost = 1 << 20;
    if (run.gpus_per_thread < 4 || run.platform.nodes != 1)
        return std::nullopt;
    const Predictor predictor(run.platform, {}, run.settings);
    LaunchCost out;
    std::vector<double> small, growth;
    for (const bool base : {true, false}) {
        for (const NcclPoint* point : points_of(run)) {
            const auto p = predictor.predict(run.kind, point->bytes);
            const double measured = measured_us(*point);
            const double launch =
                std::sqrt(std::max(0.0, measured * measured - p.time_us * p.time_us)) / run.gpus_per_thread;
            if (base && point->bytes < kSmall)
                small.push_back(launch);
            if (!base && point->bytes <= kMost && p.channels >= 4)
                growth.push_back((launch - out.gpu_us) / p.channels);
        }
        if (small.empty())
            return std::nullopt;
        out.gpu_us = median(small);
    }
    out.channel_us = growth.empty() ? 0 : std::max(0.0, median(growth));
    return out;
}

/// Classes that one transport or plugin of the library drives.
std::string_view transport_of(std::string_view network) {
    return network == "roce" ? "ib" : network == "efa_gen1" ? "efa" : network == "tcpx" ? "tcpxo" : network;
}

double neutral(Constant constant) { return constant == Constant::efficiency ? 0.9 : 0; }

}  // namespace

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    const std::size_t n = values.size();
    return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

std::string_view name_of(Constant constant) {
    constexpr std::string_view kNames[] = {"efficiency", "ll_hop", "ll128_hop", "simple_hop", "slot", "channel"};
    return kNames[static_cast<std::size_t>(constant)];
}

NetworkFit::NetworkFit(const std::vector<RunCase>& cases) {
    for (const RunCase& run : cases) {
        if (const auto cost = launch_shown(run))
            launches_.push_back({run.file, *cost});
    }
    std::vector<const RunCase*> used;
    for (const RunCase& run : cases) {
        if (run.platform.nodes == 1 || points_of(run).empty() ||
            (run.carried_by() != "sockets" && (run.label == Label::sick || !run.platform.rate_told))) {
            continue;
        }
        used.push_back(&run);
        Evidence& out = evidence_.emplace_back();
        out.file = run.file;
        out.group = run.platform.machine() + (run.carried_by() == "sockets" ? " sockets" : "");
        out.network = run.carried_by();
        out.generation = run.platform.gpu.generation;
        const bool too_many_pairs = is_exchange(run.kind) && run.run.ranks > 256;  // and whole fabrics congest
        if (!too_many_pairs && !(run.kind == Collective::send_recv && run.platform.nodes >= 3)) {
            out.value[0] = efficiency_of(run, *points_of(run).back(), {});
        }
    }
    std::map<std::string, double> best;
    for (const Evidence& one : evidence_) {
        best[one.network] = std::max(best[one.network], one.value[0].value_or(0));
    }
    std::vector<bool> odd(used.size());
    for (std::size_t i = 0; i < used.size(); ++i) {
        odd[i] = evidence_[i].network != "sockets" && evidence_[i].value[0] &&
                 *evidence_[i].value[0] < 0.7 * best[evidence_[i].network];
    }
    std::vector<std::optional<double>> own(used.size());
    for (std::size_t i = 0; i < used.size(); ++i) {
        own[i] = evidence_[i].value[0];
        if (odd[i])
            evidence_[i].value[0].reset();
    }
    // Rings that miss what adapters give elsewhere are limited by their channels.
    std::vector<std::optional<double>> channel(used.size());
    for (std::size_t i = 0; i < used.size(); ++i) {
        const RunCase& run = *used[i];
        const NcclPoint& largest = *points_of(run).back();
        if (!evidence_[i].value[0] || run.carried_by() == "sockets") {
            continue;
        }
        const FittedConstant others =
            fitted(Constant::efficiency, run.carried_by(), "", run.platform.gpu.generation, run.file);
        const auto p =
            Predictor(run.platform, {.efficiency = 1, .timing = {}}, run.settings).predict(run.kind, largest.bytes);
        if (p.algorithm != Algorithm::ring || others.files.empty() || *evidence_[i].value[0] > 0.92 * others.value) {
            continue;
        }
        const double busbw = largest.out_of_place.busbw.value;
        if (run.kind != Collective::broadcast && busbw / p.channels > 15) {
            channel[i] = busbw / p.channels;
        }
    }
    for (std::size_t i = 0; i < used.size(); ++i) {
        if (channel[i]) {
            evidence_[i].value[static_cast<std::size_t>(Constant::channel)] = channel[i];
            evidence_[i].value[0].reset();
        }
    }
    for (std::size_t i = 0; i < used.size(); ++i) {
        const RunCase& run = *used[i];
        const double efficiency = own[i] && !channel[i] ? *own[i]
                                                        : fitted(Constant::efficiency, run.carried_by(),
                                                                 evidence_[i].group, run.platform.gpu.generation, "")
                                                              .value;
        if (!is_exchange(run.kind)) {
            hop_evidence(run, efficiency, channel[i].value_or(0), evidence_[i]);
        }
        for (std::size_t c = 0; odd[i] && c < evidence_[i].value.size(); ++c) {
            if (static_cast<Constant>(c) != Constant::ll_hop)
                evidence_[i].value[c].reset();
        }
    }
}

FittedConstant NetworkFit::fitted(Constant constant, std::string_view network, const std::string& group,
                                  GpuGeneration generation, const std::string& without) const {
    const auto collect = [&](const auto& speaks) {
        std::map<std::string, std::vector<double>> by_file;
        for (const Evidence& one : evidence_) {
            const auto& value = one.value[static_cast<std::size_t>(constant)];
            if (value && one.file != without && speaks(one)) {
                by_file[one.file].push_back(*value);
            }
        }
        FittedConstant out;
        std::vector<double> values;
        for (const auto& [file, shown] : by_file) {
            values.push_back(median(shown));
            out.files.push_back(file);
        }
        out.value = values.empty() ? neutral(constant) : median(values);
        return out;
    };
    if (constant == Constant::channel) {
        FittedConstant out = collect([&](const Evidence& one) { return one.generation == generation; });
        out.level = out.files.empty() ? "none" : "GPU generation";
        return out;
    }
    FittedConstant out = collect([&](const Evidence& one) { return one.group == group; });
    out.level = "same machine";
    if (out.files.empty()) {
        out = collect([&](const Evidence& one) { return one.network == network; });
        out.level = "class";
    }
    if (out.files.empty()) {
        out = collect([&](const Evidence& one) { return transport_of(one.network) == transport_of(network); });
        out.level = "same transport";
    }
    if (out.files.empty() && constant != Constant::efficiency && constant != Constant::ll_hop) {
        const FittedConstant low = fitted(Constant::ll_hop, network, group, generation, without);
        std::vector<double> ratios;
        for (const Evidence& one : evidence_) {
            const auto& value = one.value[static_cast<std::size_t>(constant)];
            const auto& hop = one.value[static_cast<std::size_t>(Constant::ll_hop)];
            if (value && hop && *hop > 0 && one.file != without && one.network != "sockets") {
                ratios.push_back(*value / *hop);
                out.files.push_back(one.file);
            }
        }
        if (!ratios.empty() && (low.level == "same machine" || low.level == "class")) {
            out.value = median(ratios) * low.value;
            out.level = "in proportion to ll_hop";
            return out;
        }
        out.files.clear();
    }
    if (out.files.empty()) {
        out = collect([&](const Evidence& one) { return one.network != "sockets"; });
        out.level = out.files.empty() ? "none" : "all classes";
    }
    return out;
}

LaunchCost NetworkFit::launch(const std::string& without) const {
    std::vector<double> gpu, channel;
    for (const auto& [file, cost] : launches_) {
        if (file != without) {
            gpu.push_back(cost.gpu_us);
            channel.push_back(cost.channel_us);
        }
    }
    return gpu.empty() ? LaunchCost{} : LaunchCost{median(gpu), median(channel)};
}

bool NetworkFit::knows(const RunCase& run) const {
    return std::any_of(evidence_.begin(), evidence_.end(), [&](const Evidence& one) {
        return one.file != run.file && one.network == run.platform.expected && one.value[0];
    });
}

NetworkConstants NetworkFit::constants(const RunCase& run, std::string_view network, const std::string& without) const {
    const std::string group = run.platform.machine() + (network == "sockets" ? " sockets" : "");
    const auto value = [&](Constant constant) {
        return fitted(constant, network, group, run.platform.gpu.generation, without).value;
    };
    NetworkConstants out;
    out.efficiency = value(Constant::efficiency);
    out.timing.hop_us[0] = value(Constant::ll_hop);
    out.timing.hop_us[1] = value(Constant::ll128_hop);
    out.timing.hop_us[2] = value(Constant::simple_hop);
    out.timing.slot_us = value(Constant::slot);
    out.timing.channel_gb_per_s = value(Constant::channel);
    return out;
}

}  // namespace fabricast
