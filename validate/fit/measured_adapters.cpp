#include "validate/fit/measured_adapters.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "sim/observed/csv.hpp"
#include "sim/observed/ingest_error.hpp"

namespace fabricast {
namespace {

constexpr std::int64_t kLarge = 65536, kSmall = 64;  ///< bytes of a message
constexpr double kRoceHeader = 82, kIbHeader = 26;   ///< bytes a packet
constexpr double kUsualMtu = 4096;
constexpr double kRateSlack = 0.005;  ///< rounding, and clocks of sender and line

std::string network_of(const std::string& link_type) { return link_type == "IB" ? "ib" : "roce"; }

/// Of an adapter, bits/s; 0 where nobody tells. What was said of the adapter comes before the log's own index (`known`), and
/// both before what servers of that kind usually have.
double line_rate(const PlatformHint& hint, double known = 0) {
    if (const auto told = adapter_rate(hint.network))
        return *told;
    if (known > 0)
        return known;
    const NodeSpec* node = Catalogue::builtin().find_node(hint.preset);
    return node != nullptr ? node->nic_bits_per_s : 0;
}

void add_run(const PerftestRun& run, const std::string& name, double line, MeasurementFile& out) {
    const bool bandwidth = run.kind == PerftestKind::bandwidth;
    const auto left_out = [&](const std::string& why) {
        out.notes.push_back(fmt::format("{}:{}: {} is left out: {}", name, run.line, run.title, why));
    };
    if (run.verdict != PerftestVerdict::usable)
        return left_out(run.reason);
    if (run.loopback)
        return left_out("both ends are one port (equal LIDs): nothing crossed a wire");
    for (const PerftestPoint& p : run.points) {
        MeasuredPoint point;
        point.test = "adapter";
        point.what = fmt::format("{} {} {}", run.link_type, run.operation, bandwidth ? "bandwidth" : "latency");
        point.mode = name;
        point.shape = {{"bytes", p.bytes}};
        if (run.mtu_bytes)
            point.shape["mtu"] = *run.mtu_bytes;
        if (bandwidth && line > 0)
            point.shape["line_mbit_per_s"] = std::llround(line * 1e-6);
        if (run.both_ways)
            point.shape["directions"] = 2;
        const double us = bandwidth ? static_cast<double>(p.bytes) * 8e-3 / p.average_gbit_per_s
                                    : p.typical_us.value_or(p.average_us);
        point.time = {us, us, us, static_cast<int>(std::max<std::int64_t>(1, p.iterations))};
        if (us > 0)
            out.points.push_back(std::move(point));
    }
}

void check(const AdapterPoint& p, double mtu, const MeasurementFile& m) {
    const std::string what = fmt::format("{}, {} bytes", p.run, p.bytes);
    if (p.kind == AdapterPoint::Kind::latency) {
        const double least = Catalogue::builtin().find_fabric("rail-fat-tree")->switch_latency_s;
        if (p.measured_s / p.one_ways <= least)
            throw IngestError(
                m.file, 0,
                fmt::format("{}: {:.3g} us one way is less than one switch takes ({:g} us): no message can "
                            "be so fast; check the unit",
                            what, p.measured_s / p.one_ways * 1e6, least * 1e6));
        return;
    }
    const double rate = static_cast<double>(p.bytes) * 8 / p.measured_s;
    const double share = packet_share(p.network, mtu > 0 ? mtu : kUsualMtu), most = p.line_bits_per_s * share;
    if (rate > most * (1 + kRateSlack))
        throw IngestError(
            m.file, 0,
            fmt::format(
                "{}: {:.1f} Gb/s is above what a line of {:.0f} Gb/s carries ({:.1f} Gb/s in packets of {:.0f} "
                "bytes): no adapter can be above its line rate; check the line rate that was told, the unit, and "
                "that both ends are not one machine",
                what, rate * 1e-9, p.line_bits_per_s * 1e-9, most * 1e-9, mtu > 0 ? mtu : kUsualMtu));
}

}  // namespace

double packet_share(const std::string& network, double mtu_bytes) {
    return mtu_bytes / (mtu_bytes + (network == "ib" ? kIbHeader : kRoceHeader));
}

MeasurementFile measurement_of_perftest(const std::vector<std::string>& files, const PlatformHint& hint) {
    MeasurementFile out;
    out.file = files.empty() ? "" : files.front();
    out.backend = "logs";
    out.date = utc_now();
    out.method = "perftest, averages over the iterations of a size";
    out.tool = "fabricast-validate " FABRICAST_VERSION;
    const auto add = [&](const std::filesystem::path& file, double line) {
        for (const PerftestRun& run : read_perftest_log(file))
            add_run(run, file.filename().string(), line, out);
    };
    for (const std::string& file : files) {
        if (!file.ends_with(".csv")) {
            add(file, line_rate(hint));
            continue;
        }
        const Csv index = Csv::read(file);
        for (std::size_t i = 0; i < index.size(); ++i) {
            PlatformHint own = hint;
            if (index.has("link") && own.network.empty())
                own.network = index.text(i, "link");
            add(std::filesystem::path(file).parent_path() / index.text(i, "file"), line_rate(own));
        }
    }
    if (out.points.empty())
        throw IngestError(out.file, 0, "no usable run" + (out.notes.empty() ? "" : ": " + out.notes.front()));
    return out;
}

std::vector<AdapterPoint> adapter_points(const MeasurementFile& m, const PlatformHint& hint,
                                         std::vector<std::string>& notes) {
    std::vector<AdapterPoint> out;
    std::set<std::string> no_rate;
    for (const MeasuredPoint& point : m.points) {
        if (point.test != "adapter")
            continue;
        AdapterPoint p;
        p.run = fmt::format("{} {}", point.mode, point.what);
        p.where = fmt::format("{}: {}, {} bytes", m.file, p.run, point.at("bytes"));
        p.network = network_of(point.what.substr(0, point.what.find(' ')));
        p.bytes = point.at("bytes");
        p.measured_s = point.time.median_us * 1e-6;
        if (point.what.ends_with("latency")) {
            p.kind = AdapterPoint::Kind::latency;
            p.one_ways =
                point.what.find(" read ") != std::string::npos || point.what.find(" atomic ") != std::string::npos ? 2
                                                                                                                   : 1;
            if (p.bytes > kSmall)
                continue;
        } else {
            if (p.bytes < kLarge)
                continue;
            const double line = line_rate(hint, 1e6 * static_cast<double>(point.at("line_mbit_per_s")));
            if (!(line > 0)) {
                no_rate.insert(p.run);
                continue;
            }
            p.line_bits_per_s = line * static_cast<double>(point.at("directions", 1));
        }
        check(p, static_cast<double>(point.at("mtu")), m);
        out.push_back(std::move(p));
    }
    for (const std::string& run : no_rate)
        notes.push_back(fmt::format(
            "{}: {} is left out: perftest does not tell the line rate; give --network \"RoCE 200G\" or --node PRESET",
            m.file, run));
    return out;
}

}  // namespace fabricast
