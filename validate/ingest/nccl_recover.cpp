#include "validate/ingest/nccl_recover.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "validate/ingest/nccl_line.hpp"

namespace fabricast {
namespace {

constexpr double kSlack = 1e-9;  ///< relative, for arithmetic on interval ends
constexpr int kMostRanks = 1 << 20;

struct Interval {
    double low = 0, high = 0;
    bool holds(double value) const { return low * (1 - kSlack) <= value && value <= high * (1 + kSlack); }
};

/// What busbw / algbw can be, from all rows together; nothing when no row tells.
std::optional<Interval> ratio_of(const NcclRun& run) {
    Interval ratio = {0, 4};
    bool told = false;
    for (const NcclPoint& point : run.points) {
        for (const NcclHalf* half : halves_of(point)) {
            if (half->algbw.low() > 0 && half->busbw.value > 0) {
                told = true;
                ratio.low = std::max(ratio.low, half->busbw.low() / half->algbw.high());
                ratio.high = std::min(ratio.high, half->busbw.high() / half->algbw.low());
            }
        }
    }
    return told ? std::optional(ratio) : std::nullopt;
}

/// Rank counts whose factor lies in the interval: from, to; to = kMostRanks when open-ended.
struct RankRange {
    int from = 0, to = 0;
};

RankRange ranks_in(const Interval& ratio, std::string_view collective) {
    const double scale = collective == "all_reduce" ? 2.0 : 1.0;
    const auto ranks = [&](double r) {  // scale (n-1)/n = r
        const double n = scale / std::max(scale - r, scale / kMostRanks);
        return std::clamp(n, 1.0, static_cast<double>(kMostRanks));
    };
    return {static_cast<int>(std::ceil(ranks(ratio.low * (1 - kSlack)) - 1e-6)),
            static_cast<int>(std::floor(ranks(ratio.high * (1 + kSlack)) + 1e-6))};
}

/// "16x..." at the start of a file name.
int ranks_in_file_name(const std::string& file) {
    const std::string name = std::filesystem::path(file).filename().string();
    const std::size_t x = name.find('x');
    const std::optional<std::int64_t> value =
        x == std::string::npos ? std::nullopt : whole_number(std::string_view(name).substr(0, x));
    return value && *value > 1 && *value <= kMostRanks ? static_cast<int>(*value) : 0;
}

/// Collectives whose columns look like those of the run. Header: nccl_log.hpp.
std::vector<std::string> collectives_by_columns(const NcclRun& run, const NcclTrace& trace) {
    const bool has_op = !run.redop.empty() && run.redop != "none";
    const bool rooted = run.root.value_or(-1) >= 0;
    int checked_in_place = 0, checked_out_of_place = 0;
    for (const NcclPoint& point : run.points) {
        checked_out_of_place += point.out_of_place.wrong ? 1 : 0;
        checked_in_place += point.in_place && point.in_place->wrong ? 1 : 0;
    }
    const bool unchecked_in_place = checked_out_of_place > 0 && checked_in_place == 0;  // sendrecv, alltoall
    const std::optional<Interval> ratio = ratio_of(run);
    if (has_op && rooted) {
        return {"reduce"};
    }
    if (rooted) {
        if (ratio && ratio->holds(1.0)) {
            return {"broadcast"};
        }
        return {"gather", "scatter"};
    }
    if (!has_op) {
        if (unchecked_in_place) {
            return {"alltoall"};
        }
        if (checked_in_place > 0) {
            return {"all_gather"};
        }
        // Nothing was checked. Old all_gather has no redop column; old alltoall has one and leaves it blank.
        if (run.redop.empty() && trace.headers > 0) {
            return {trace.redop_column ? "alltoall" : "all_gather"};
        }
        return {"all_gather", "alltoall"};
    }
    if (!ratio) {
        return {"all_reduce", "reduce_scatter", "sendrecv"};
    }
    std::vector<std::string> fit;
    if (ratio->high > 1 + kSlack || run.ranks == 2 || (run.ranks == 0 && ratio->holds(1.0))) {
        fit.emplace_back("all_reduce");
    }
    if (ratio->low < 1 - kSlack && !ratio->holds(run.ranks == 2 ? 1.0 : 2.0)) {
        fit.emplace_back("reduce_scatter");
    }
    if (ratio->holds(1.0)) {
        fit.emplace_back("sendrecv");
    }
    const bool sendrecv_fits = std::find(fit.begin(), fit.end(), "sendrecv") != fit.end();
    if (unchecked_in_place && sendrecv_fits) {
        return {"sendrecv"};
    }
    if (checked_in_place > 0 && sendrecv_fits) {
        std::erase(fit, "sendrecv");
    }
    if (run.ranks > 0 && fit.size() > 1) {
        std::erase_if(fit, [&](const std::string& name) {
            const std::optional<double> factor = busbw_factor(name, run.ranks);
            return factor && !ratio->holds(*factor);
        });
    }
    return fit;
}

void find_collective(NcclRun& run, const NcclTrace& trace) {
    const auto take = [&](const std::string& name, NcclOrigin origin) {
        run.collective = name;
        run.collective_from = origin;
    };
    if (!trace.banner_name.empty()) {
        return take(trace.banner_name, NcclOrigin::banner);
    }
    if (!trace.command_name.empty()) {
        return take(trace.command_name, NcclOrigin::command_line);
    }
    const std::string named = collective_in_file_name(std::filesystem::path(run.file).filename().string());
    if (run.points.empty()) {
        return named.empty() ? void() : take(named, NcclOrigin::file_name);
    }
    const std::vector<std::string> fit = collectives_by_columns(run, trace);
    if (fit.size() == 1) {
        take(fit.front(), NcclOrigin::columns);
        if (!named.empty() && named != run.collective) {
            run.notes.push_back(fmt::format("the file name says {}, the columns say {}", named, run.collective));
        }
    } else if (std::find(fit.begin(), fit.end(), named) != fit.end()) {
        take(named, NcclOrigin::file_name);
    }
}

void find_ranks_said(NcclRun& run) {
    int most = -1;
    for (const NcclDevice& device : run.devices) {
        most = std::max(most, device.rank);
    }
    if (most >= 0) {
        run.ranks = most + 1;
        run.ranks_from = NcclOrigin::device_list;
    } else if (run.facts.ranks) {
        run.ranks = *run.facts.ranks;
        run.ranks_from = NcclOrigin::init_lines;
    }
}

void find_ranks_by_ratio(NcclRun& run, const NcclTrace& trace) {
    const std::optional<Interval> ratio = ratio_of(run);
    const int named = ranks_in_file_name(run.file);
    const std::optional<double> factor = busbw_factor(run.collective, 4);
    if (!factor) {
        return;
    }
    if (run.ranks > 0) {  // dots in the place of the last devices
        const RankRange told = ratio && *factor != 1.0 && trace.elided ? ranks_in(*ratio, run.collective) : RankRange{};
        if (told.from == told.to && told.from > run.ranks) {
            run.ranks = told.from;
            run.ranks_from = NcclOrigin::ratio;
        }
        return;
    }
    RankRange range = {2, kMostRanks};
    if (*factor != 1.0 && ratio) {
        range = ranks_in(*ratio, run.collective);
    }
    if (range.from == range.to && range.from >= 1) {
        run.ranks = range.from;
        run.ranks_from = NcclOrigin::ratio;
        if (named > 0 && named != run.ranks) {
            run.notes.push_back(fmt::format("the file name says {} ranks, busbw / algbw says {}", named, run.ranks));
        }
    } else if (named >= range.from && named <= range.to) {
        run.ranks = named;
        run.ranks_from = NcclOrigin::file_name;
        run.notes.push_back(fmt::format("the rank count, {}, is taken from the file name", named));
    } else if (range.from < range.to && range.to < kMostRanks) {
        run.notes.push_back(fmt::format("busbw / algbw fits {} to {} ranks", range.from, range.to));
    }
}

/// Distinct hosts, when the list names every rank or when its hosts, filled to their last device, hold them all.
void find_nodes(NcclRun& run) {
    std::map<std::string, int> last_device;
    for (const NcclDevice& device : run.devices) {
        int& last = last_device[device.host];
        last = std::max(last, device.index);
    }
    int held = 0;
    for (const auto& [host, last] : last_device) {
        held += last + 1;
    }
    const bool complete = static_cast<int>(run.devices.size()) == run.ranks;
    if (!run.devices.empty() && (complete || held == run.ranks)) {
        run.nodes = static_cast<int>(last_device.size());
    }
    if (!run.devices.empty() && !complete) {
        run.notes.push_back(fmt::format("the device list shows {} of {} ranks", run.devices.size(), run.ranks));
    }
}

}  // namespace

void recover_identity(NcclRun& run, const NcclTrace& trace) {
    find_ranks_said(run);
    find_collective(run, trace);
    find_ranks_by_ratio(run, trace);
    find_nodes(run);
}

}  // namespace fabricast
