#include "validate/ingest/nccl_check.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "validate/ingest/nccl_recover.hpp"

namespace fabricast {
namespace {

constexpr double kSlack = 1e-9;          ///< relative, for arithmetic on interval ends
constexpr double kSmallStepBack = 0.01;  ///< sizes are rounded to ranks x 16 bytes, so one may step back a little

/// One direction, GB/s a GPU: all NVLinks together (NVIDIA product briefs of each GPU).
struct Wire {
    std::string_view name;
    double gb_per_s;
};
constexpr std::array<Wire, 12> kWires = {{{"GB300", 900},
                                          {"GB200", 900},
                                          {"B300", 900},
                                          {"B200", 900},
                                          {"GH200", 450},
                                          {"H800", 200},
                                          {"H200", 450},
                                          {"H100", 450},
                                          {"H20", 450},
                                          {"A800", 200},
                                          {"A100", 300},
                                          {"V100", 150}}};
constexpr double kUnknownWire = 1800;  ///< twice the NVLink of today's fastest GPU
constexpr double kWireSlack = 1.02;

/// The most busbw a device's wires allow. NVLink SHARP sends an all-reduce over the wire once where the factor counts
/// it twice; every other collective must carry its factor.
double most_busbw(const NcclRun& run) {
    double wire = kUnknownWire;
    for (const NcclDevice& device : run.devices) {
        const auto known = std::find_if(kWires.begin(), kWires.end(),
                                        [&](const Wire& candidate) { return contains(device.name, candidate.name); });
        if (known != kWires.end()) {
            wire = known->gb_per_s;
            break;
        }
    }
    return wire * kWireSlack * (run.collective == "all_reduce" ? 2 : 1);
}

std::string failure_of(const NcclRun& run, const NcclTrace& trace) {
    if (trace.failures.empty()) {
        if (!run.points.empty()) {
            return "";
        }
        return trace.torn_lines.empty() ? "no result row" : "no complete result row";
    }
    const NcclTrace::Failure& first = trace.failures.front();
    const auto texts = std::count_if(trace.failures.begin(), trace.failures.end(), [](const auto& failure) {
        return contains(failure.text, "NCCL failure") || contains(failure.text, "CUDA failure");
    });
    const std::string more = texts > 1 ? fmt::format(" (and {} more like it)", texts - 1) : "";
    return fmt::format("line {}: {}{}", first.line, first.text, more);
}

/// A row that contradicts itself or the factor; empty when none does.
std::string wrong_row(const NcclRun& run) {
    const std::optional<double> factor = run.ranks > 0 ? busbw_factor(run.collective, run.ranks) : std::nullopt;
    const double most = most_busbw(run);
    for (const NcclPoint& point : run.points) {
        for (const NcclHalf* half : halves_of(point)) {
            const std::string where = fmt::format("line {}, {} B {}", point.line, point.bytes,
                                                  half == &point.out_of_place ? "out of place" : "in place");
            if (half->wrong.value_or(0) >= 1) {
                return fmt::format("{}: {} wrong results", where, *half->wrong);
            }
            if (half->time_us.value < 0 || half->algbw.value < 0 || half->busbw.value < 0) {
                return where + ": a negative value";
            }
            if (point.bytes > 0 && half->time_us.value <= 0) {
                return where + ": time 0 for a size above 0";
            }
            const double bytes = static_cast<double>(point.bytes);
            const double least = bytes / half->time_us.high() / 1e3;
            const double most_algbw = half->time_us.low() > 0 ? bytes / half->time_us.low() / 1e3 : 1e300;
            if (point.bytes > 0 &&
                (least > half->algbw.high() * (1 + kSlack) || most_algbw < half->algbw.low() * (1 - kSlack))) {
                return fmt::format("{}: {} B in {} us are {:.2f} GB/s, algbw says {}", where, point.bytes,
                                   half->time_us.value, bytes / half->time_us.value / 1e3, half->algbw.value);
            }
            if (half->busbw.value > most) {
                return fmt::format("{}: busbw {} GB/s is above {:.0f}, more than the wires of the device carry", where,
                                   half->busbw.value, most);
            }
            if (factor && (half->algbw.low() * *factor > half->busbw.high() * (1 + kSlack) ||
                           half->algbw.high() * *factor < half->busbw.low() * (1 - kSlack))) {
                return fmt::format("{}: busbw {} is not algbw {} x {:.4f}, the factor of {} on {} ranks", where,
                                   half->busbw.value, half->algbw.value, *factor, run.collective, run.ranks);
            }
        }
    }
    return "";
}

/// Separate processes that each printed a table; empty when the table is one.
std::string separate_processes(const NcclRun& run, const NcclTrace& trace) {
    std::map<std::int64_t, int> times;
    bool all_zero = true;
    for (const NcclPoint& point : run.points) {
        times[point.bytes] += point.bytes > 0 ? 1 : 0;
        all_zero = all_zero && point.out_of_place.busbw.value <= 0;
    }
    times.erase(0);
    const bool all_repeated =
        times.size() > 1 && std::all_of(times.begin(), times.end(), [](const auto& size) { return size.second > 1; });
    const int listed = std::max(1, static_cast<int>(run.devices.size()));
    const int copies = std::max({trace.starts, trace.headers, trace.repeated_ranks / listed + 1});
    const bool one_rank = run.ranks == 1;
    if (copies > 1 && (all_repeated || one_rank || trace.footers > 1)) {
        return fmt::format(
            "{} separate runs printed over one another, each with its own ranks: nccl-tests was built "
            "without MPI=1",
            copies);
    }
    if (trace.footers > 1) {
        return fmt::format("{} footers: several tables were printed over one another", trace.footers);
    }
    if (all_repeated) {
        return "every size is there more than once: several tables printed over one another, or -N cycles";
    }
    const NcclPoint& last = run.points.back();
    if (one_rank || (run.ranks == 0 && all_zero && last.out_of_place.algbw.value > 1)) {
        return "one rank: nothing was communicated";
    }
    return "";
}

std::string cut_off(const NcclRun& run, const NcclTrace& trace) {
    const bool ended = trace.footers > 0 || trace.concluded || run.footer.average_busbw;
    if (!ended && !trace.torn_lines.empty() && trace.torn_lines.back() > run.points.back().line) {
        return fmt::format("the log ends inside the row on line {}", trace.torn_lines.back());
    }
    if (!ended && run.parameters) {
        const std::int64_t last = run.points.back().bytes;
        const NcclParameters& asked = *run.parameters;
        const double next = asked.step_factor > 1 ? static_cast<double>(last) * static_cast<double>(asked.step_factor)
                                                  : static_cast<double>(last) + static_cast<double>(asked.step_bytes);
        const bool steps = asked.step_factor > 1 || asked.step_bytes > 0;
        if (steps && next <= static_cast<double>(asked.max_bytes)) {
            return fmt::format("cut off: the last row is {} B, the run was to go on to {} B", last, asked.max_bytes);
        }
    }
    return "";
}

std::string order_of_sizes(const NcclRun& run) {
    for (std::size_t i = 1; i < run.points.size(); ++i) {
        const double before = static_cast<double>(run.points[i - 1].bytes);
        const double now = static_cast<double>(run.points[i].bytes);
        if (now < before * (1 - kSmallStepBack)) {
            return fmt::format("line {}: the size goes back from {} B to {} B", run.points[i].line,
                               run.points[i - 1].bytes, run.points[i].bytes);
        }
    }
    return "";
}

std::string suspicion_of(const NcclRun& run, const NcclTrace& trace) {
    if (std::string text = separate_processes(run, trace); !text.empty()) {
        return text;
    }
    if (trace.cpu_time) {
        return "the times are CPU launch times (-C), not transfer times";
    }
    if (std::string text = cut_off(run, trace); !text.empty()) {
        return text;
    }
    if (!trace.torn_lines.empty()) {
        return fmt::format("the row on line {} is incomplete or holds something other than numbers",
                           trace.torn_lines.front());
    }
    if (!run.footer.out_of_bounds_ok || run.footer.out_of_bounds.value_or(0) > 0) {
        return fmt::format("{} values out of bounds: the results were wrong", run.footer.out_of_bounds.value_or(0));
    }
    if (run.collective.empty()) {
        return "the collective cannot be told: no banner, and its columns fit more than one";
    }
    if (std::string text = wrong_row(run); !text.empty()) {
        return text;
    }
    if (std::string text = order_of_sizes(run); !text.empty()) {
        return text;
    }
    const bool any_size = std::any_of(run.points.begin(), run.points.end(), [](const auto& p) { return p.bytes > 0; });
    if (!any_size) {
        return "all sizes are 0";
    }
    return run.ranks == 0 ? "the rank count cannot be told: no device list, and busbw / algbw does not settle it" : "";
}

/// Facts that do not make a run unusable.
void add_notes(NcclRun& run, const NcclTrace& trace) {
    const bool ended = trace.footers > 0 || trace.concluded;
    if (trace.split) {
        run.notes.emplace_back("one of several types, operations or roots in one table");
    }
    if (trace.elided) {
        run.notes.emplace_back("rows or lines were left out where the log shows dots");
    }
    if (run.points.empty()) {
        return;
    }
    if (!ended) {
        run.notes.emplace_back("no footer");
    }
    const auto zeros = std::count_if(run.points.begin(), run.points.end(), [](const auto& p) { return p.bytes == 0; });
    if (zeros > 0) {
        run.notes.push_back(fmt::format("{} rows of size 0: the share of a rank rounds to nothing", zeros));
    }
    double sum = 0;
    int count = 0;
    for (const NcclPoint& point : run.points) {
        for (const NcclHalf* half : halves_of(point)) {
            sum += half->busbw.value;
            ++count;
        }
    }
    const double average = sum / count;
    if (run.footer.average_busbw && !trace.split &&
        std::abs(average - *run.footer.average_busbw) > 0.02 * average + 0.01) {
        run.notes.push_back(fmt::format("the rows average {:.2f} GB/s, the footer {:.2f}: rows were left out", average,
                                        *run.footer.average_busbw));
    }
}

}  // namespace

void judge(NcclRun& run, const NcclTrace& trace) {
    if (!run.facts.nccl_version.empty()) {
        run.nccl_version = run.facts.nccl_version;
        run.cuda_version = run.facts.cuda_version;
    }
    recover_identity(run, trace);
    add_notes(run, trace);
    run.reason = failure_of(run, trace);
    run.verdict = NcclVerdict::failed;
    if (run.reason.empty()) {
        run.reason = suspicion_of(run, trace);
        run.verdict = run.reason.empty() ? NcclVerdict::usable : NcclVerdict::suspicious;
    }
}

}  // namespace fabricast
