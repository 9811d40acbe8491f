#include "validate/fit/measured_curves.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "sim/observed/ingest_error.hpp"

namespace fabricast {
namespace {

MeasuredCurve curve_of(const RunCase& run) {
    MeasuredCurve out;
    out.file = run.file;
    out.line = run.run.line;
    out.collective = run.run.collective;
    out.datatype = run.run.datatype;
    out.ranks = run.run.ranks;
    out.nodes = static_cast<int>(run.platform.nodes);
    out.library = run.run.nccl_version;
    out.preset = run.platform.board.name;
    if (run.platform.nodes > 1) {
        const NodeSpec& node = run.platform.board;  // adapters of the whole board, as told
        out.network = fmt::format("{} {}x{:.0f}G", run.platform.expected, node.nics, node.nic_bits_per_s * 1e-9);
    }
    if (run.platform.sharp)
        out.network += " sharp";
    out.gpus_per_thread = run.gpus_per_thread;
    for (const NcclDevice& device : run.run.devices) {
        if (out.device.empty())
            out.device = device.name;
    }
    for (const NcclPoint& point : curve(run.run)) {
        if (point.bytes <= 0 || point.out_of_place.time_us.value <= 0)
            continue;
        out.points.push_back(
            {point.bytes, point.out_of_place.time_us.value, point.in_place ? point.in_place->time_us.value : 0});
    }
    std::stable_sort(out.points.begin(), out.points.end(),
                     [](const auto& a, const auto& b) { return a.bytes < b.bytes; });
    out.points.erase(std::unique(out.points.begin(), out.points.end(),
                                 [](const auto& a, const auto& b) { return a.bytes == b.bytes; }),
                     out.points.end());
    return out;
}

void check_one_kind(const MeasurementFile& m) {
    const MeasuredCurve* first = nullptr;
    for (const MeasuredCurve& curve : m.curves) {
        if (first != nullptr && curve.preset != first->preset) {
            throw IngestError(m.file, 0,
                              fmt::format("mixed machines, `{}` ({}) and `{}` ({}): one calibration is of one site; "
                                          "ingest the logs of each into a file of its own",
                                          first->preset, first->file, curve.preset, curve.file));
        }
        if (first == nullptr)
            first = &curve;
    }
}

}  // namespace

MeasurementFile measurement_of_logs(const std::vector<std::string>& arguments, const PlatformHint& hint) {
    const RunCases cases = read_cases(arguments, hint);
    MeasurementFile out;
    out.file = arguments.empty() ? "" : arguments.front();
    out.backend = "logs";
    out.date = utc_now();
    out.method = "nccl-tests logs, out-of-place and in-place averages over the iterations of a size";
    out.tool = "fabricast-validate " FABRICAST_VERSION;
    for (const RunCase& run : cases.cases) {
        MeasuredCurve curve = curve_of(run);
        if (!curve.points.empty())
            out.curves.push_back(std::move(curve));
        if (!run.run.nccl_version.empty()) {
            const std::string library = "nccl " + run.run.nccl_version;
            if (std::find(out.libraries.begin(), out.libraries.end(), library) == out.libraries.end())
                out.libraries.push_back(library);
        }
        for (const NcclDevice& device : run.run.devices) {
            if (!device.name.empty() && out.devices.empty())
                out.devices.push_back({"", device.name, "", 0, 0, 0, 0});
        }
    }
    for (const RunRefusal& one : cases.refused)
        out.notes.push_back(fmt::format("{} {} is left out: {}", one.file, one.collective, one.reason));
    if (out.curves.empty()) {
        throw IngestError(
            out.file, 0,
            "no usable run: " + (out.notes.empty() ? std::string("no table of sizes and times") : out.notes.front()));
    }
    check_one_kind(out);
    return out;
}

std::vector<RunCase> cases_of(const MeasurementFile& measurement, const PlatformHint& hint) {
    std::vector<RunCase> out;
    for (const MeasuredCurve& curve : measurement.curves) {
        if (!curve.link.empty())
            continue;
        const std::string where = fmt::format("{} {}", curve.file.empty() ? "measured" : curve.file, curve.collective);
        const auto kind = collective_named(curve.collective);
        if (!kind)
            throw IngestError(measurement.file, 0, fmt::format("{}: the model has no such collective", where));
        RunCase one;
        one.file = curve.file.empty() ? measurement.file : curve.file;
        one.kind = *kind;
        one.gpus_per_thread = curve.gpus_per_thread;
        one.run.file = one.file;
        one.run.line = curve.line;
        one.run.collective = curve.collective;
        one.run.ranks = curve.ranks;
        one.run.nodes = curve.nodes;
        one.run.datatype = curve.datatype;
        one.run.nccl_version = curve.library;
        one.run.verdict = NcclVerdict::usable;
        if (!curve.device.empty())
            one.run.devices.push_back({.rank = 0, .host = "", .index = 0, .bus_id = "", .name = curve.device});
        for (const MeasuredCurve::Point& point : curve.points) {
            NcclPoint p;
            p.bytes = point.bytes;
            p.out_of_place.time_us.value = point.out_of_place_us;
            one.run.points.push_back(std::move(p));
        }
        PlatformHint known = hint;
        if (known.preset.empty())
            known.preset = curve.preset;
        if (!known.nodes)
            known.nodes = curve.nodes;
        known.hardware = curve.hardware;
        if (known.network.empty())
            known.network = curve.network;
        try {
            one.platform = find_platform(one.run, known);
        } catch (const PlatformError& error) {
            throw IngestError(measurement.file, 0, fmt::format("{}: {}", where, error.what()));
        }
        one.settings = settings_for(one.platform, false);
        for (const MeasuredCurve::Point& point : curve.points) {
            const std::string why = above_wires(one, point.bytes, point.out_of_place_us);
            if (!why.empty())
                throw IngestError(measurement.file, 0, fmt::format("{}: {}", where, why));
        }
        out.push_back(std::move(one));
    }
    return out;
}

std::string above_wires(const RunCase& run, std::int64_t bytes, double time_us) {
    const Platform& p = run.platform;
    const double n = run.run.ranks;
    double rate =
        p.gpu.nvlink_nominal_bytes_per_s > 0 && p.node.board == Board::nvswitch ? p.gpu.nvlink_nominal_bytes_per_s : 0;
    double share = is_exchange(run.kind) && run.kind != Collective::all_to_all ? 1 : (n - 1) / n;
    std::string_view wire = "NVLink of a GPU";
    if (p.nodes > 1) {
        // a node takes in what the other nodes hold, once for all its GPUs
        share = is_exchange(run.kind) ? 0 : static_cast<double>(p.nodes - 1) / p.nodes;
        rate = p.node.nics * p.node.nic_bits_per_s / 8;
        wire = "the adapters of a node";
        if (p.node.nvlink_domain >= p.nodes)
            return {};
    }
    const double least_us = rate > 0 ? static_cast<double>(bytes) * share / rate * 1e6 : 0;
    if (time_us >= least_us)
        return {};
    return fmt::format(
        "{} of {} bytes in {:g} us is {:.1f} % of what {} can carry ({:.1f} GB/s): no link can be above its peak; "
        "check "
        "size, unit of time, ranks and machine",
        collective_name(run.kind), bytes, time_us, 100 * least_us / time_us, wire, rate * 1e-9);
}

}  // namespace fabricast
