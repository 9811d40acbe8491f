#include "validate/score/kernel_table.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "sim/observed/csv.hpp"

namespace fabricast {
namespace {

using Json = nlohmann::ordered_json;

std::string preset_of(const std::string& gpu) {
    constexpr std::pair<std::string_view, std::string_view> kBoards[] = {{"A100-SXM", "hgx-a100-80g"},
                                                                         {"H100-SXM", "hgx-h100"},
                                                                         {"H200-SXM", "hgx-h200"},
                                                                         {"GB200", "gb200-nvl72"},
                                                                         {"B200", "hgx-b200"}};
    for (const auto& [name, preset] : kBoards) {
        if (gpu.starts_with(name)) {
            return std::string(preset);
        }
    }
    return {};
}

std::string percent(const std::optional<double>& value) { return value ? fmt::format("{:.1f} %", 100 * *value) : "-"; }
Json number(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

}  // namespace

TableScore score_table(const std::filesystem::path& path) {
    const Csv table = Csv::read(path);
    using Key = std::tuple<std::string, std::string, std::int64_t, std::string, std::string>;
    std::map<Key, std::vector<std::size_t>> rows;
    for (std::size_t row = 0; row < table.size(); ++row) {
        const std::string version = table.has("nccl_version") ? table.text(row, "nccl_version") : "";
        rows[{table.text(row, "gpu"), table.text(row, "op"), table.integer(row, "ngpus"), table.text(row, "dtype"),
              version}]
            .push_back(row);
    }
    TableScore score;
    std::set<std::string> without_machine, without_model;
    std::vector<ScoredPoint> all;
    for (const auto& [key, members] : rows) {
        const auto& [gpu, op, gpus, dtype, version] = key;
        const std::string preset = preset_of(gpu);
        const auto kind = collective_named(op);
        if (preset.empty() || !kind) {
            (preset.empty() ? without_machine : without_model).insert(preset.empty() ? gpu : op);
            continue;
        }
        const Platform platform = preset_platform(preset, 1, static_cast<std::uint32_t>(gpus));
        CommSettings settings;
        settings.nvls_enabled = dtype != "int8";
        const Predictor predictor(platform, {}, settings);
        const double factor = busbw_factor(op == "all_to_all" ? "alltoall" : op, static_cast<int>(gpus)).value_or(1);
        TableCurve one{.gpu = gpu,
                       .collective = op,
                       .datatype = dtype,
                       .nccl_version = version,
                       .gpus = static_cast<int>(gpus),
                       .errors = {},
                       .points = {}};
        std::vector<const ScoredPoint*> points;
        for (const std::size_t row : members) {
            const std::int64_t bytes = table.integer(row, "bytes");
            const double measured = table.number(row, "latency_us");
            if (bytes <= 0 || measured <= 0) {
                continue;
            }
            const auto p = predictor.predict(*kind, bytes);
            const double bus_bytes = static_cast<double>(bytes) * factor * 1e-3;
            const Compared at{bytes, measured, p.time_us, bus_bytes / measured, bus_bytes / p.time_us};
            one.points.push_back({at, p.time_us / measured - 1, p.algorithm, p.protocol, p.channels});
            one.measured_peak = std::max(one.measured_peak, at.measured_busbw);
            one.predicted_peak = std::max(one.predicted_peak, at.expected_busbw);
        }
        for (const ScoredPoint& point : one.points) {
            points.push_back(&point);
        }
        one.errors = summarise(points);
        one.peak_error = one.measured_peak > 0 ? one.predicted_peak / one.measured_peak - 1 : 0;
        all.insert(all.end(), one.points.begin(), one.points.end());
        score.curves.push_back(std::move(one));
    }
    std::vector<const ScoredPoint*> points;
    for (const ScoredPoint& point : all) {
        points.push_back(&point);
    }
    score.total = summarise(points);
    for (const std::string& gpu : without_machine) {
        score.left_out.push_back(
            fmt::format("{}: no machine of the catalogue (PCIe hosts differ, this one is not described)", gpu));
    }
    for (const std::string& op : without_model) {
        score.left_out.push_back(fmt::format("{}: the model has no such collective", op));
    }
    return score;
}

std::string table_text(const TableScore& score) {
    std::string text =
        fmt::format("{:<14} {:<15} {:>4} {:<6} {:<8} {:>11} {:>8} {:>10} {:>10} {:>8}\n", "gpu", "collective", "gpus",
                    "type", "nccl", ">= 1 MiB", "p90", "< 64 KiB", "peak", "error");
    const auto out = std::back_inserter(text);
    for (const TableCurve& one : score.curves) {
        fmt::format_to(out, "{:<14} {:<15} {:>4} {:<6} {:<8} {:>11} {:>8} {:>10} {:>10.1f} {:>+7.1f}%\n", one.gpu,
                       one.collective, one.gpus, one.datatype, one.nccl_version, percent(one.errors.large_median),
                       percent(one.errors.large_p90), percent(one.errors.small_median), one.measured_peak,
                       100 * one.peak_error);
    }
    for (const std::string& sentence : score.left_out) {
        fmt::format_to(out, "left out  {}\n", sentence);
    }
    fmt::format_to(out, "\n{} curves\n  >= 1 MiB: median {}, p90 {} of {} sizes\n  < 64 KiB: median {} of {} sizes\n",
                   score.curves.size(), percent(score.total.large_median), percent(score.total.large_p90),
                   score.total.large_points, percent(score.total.small_median), score.total.small_points);
    return text;
}

Json table_json(const TableScore& score) {
    const auto summary = [](const ErrorSummary& errors) {
        return Json{{"large_median", number(errors.large_median)},
                    {"large_p90", number(errors.large_p90)},
                    {"large_points", errors.large_points},
                    {"small_median", number(errors.small_median)},
                    {"small_points", errors.small_points}};
    };
    Json curves = Json::array();
    for (const TableCurve& one : score.curves) {
        Json points = Json::array();
        for (const ScoredPoint& point : one.points) {
            points.push_back({{"bytes", point.at.bytes},
                              {"measured_us", point.at.measured_us},
                              {"predicted_us", point.at.expected_us},
                              {"error", point.error}});
        }
        curves.push_back(
            {{"gpu", one.gpu},
             {"collective", one.collective},
             {"gpus", one.gpus},
             {"datatype", one.datatype},
             {"nccl_version", one.nccl_version},
             {"errors", summary(one.errors)},
             {"peak_busbw",
              {{"measured", one.measured_peak}, {"predicted", one.predicted_peak}, {"error", one.peak_error}}},
             {"points", points}});
    }
    return {{"schema", "fabricast-table-score/1"},
            {"total", {{"errors", summary(score.total)}}},
            {"left_out", score.left_out},
            {"curves", curves}};
}

}  // namespace fabricast
