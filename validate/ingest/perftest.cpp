#include "validate/ingest/perftest.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "sim/observed/ingest_error.hpp"
#include "sim/observed/text.hpp"

namespace fabricast {
namespace {

constexpr double kGbitPerMib = 1048576.0 * 8 / 1e9;
constexpr double kRateSlack = 0.03;  ///< between average and message rate x bytes, both printed rounded
constexpr double kMostGbit = 1700;   ///< two ports of 800 Gb/s, and some

enum class Unit { gbit, mib, gbyte };

double to_gbit(double value, Unit unit) {
    return unit == Unit::gbit ? value : value * (unit == Unit::mib ? kGbitPerMib : 8.0);
}

/// One block as it is read.
struct Block {
    PerftestRun run;
    int titles = 0;
    bool header = false;
    Unit unit = Unit::mib;
    std::string local_lid;
    bool duration_columns = false;  ///< "#bytes #iterations t_avg tps average"
    std::vector<std::string> failures;
};

/// "key : value" pairs, one or two on a line. The value of the first ends before the key of the second, which is
/// found as the words before the next colon that stand behind two blanks or a tab.
std::vector<std::pair<std::string, std::string>> parameters_of(std::string_view line) {
    std::vector<std::pair<std::string, std::string>> result;
    std::string text(line);
    for (std::size_t at = text.find('\t'); at != std::string::npos; at = text.find('\t', at)) {
        text.replace(at, 1, "  ");
    }
    std::string_view rest = text;
    while (true) {
        const std::size_t colon = rest.find(':');
        if (colon == std::string_view::npos) {
            return result;
        }
        const std::string key(trimmed(rest.substr(0, colon)));
        const std::string_view value = rest.substr(colon + 1);
        const std::size_t next_colon = value.find(':');
        std::size_t end = value.size();
        if (next_colon != std::string_view::npos) {
            // "mlx5_0   Transport type : IB": the gap of two blanks before the words of the next key
            std::string_view before = value.substr(0, next_colon);
            while (!before.empty() && before.back() == ' ') {
                before.remove_suffix(1);
            }
            const std::size_t gap = before.rfind("  ");
            end = gap == std::string_view::npos ? value.size() : gap;
        }
        result.emplace_back(key, std::string(trimmed(value.substr(0, end))));
        rest = value.substr(end);
    }
}

std::optional<int> leading_number(std::string_view text) {
    const std::optional<std::int64_t> value = whole_number(text.substr(0, text.find_first_not_of("0123456789")));
    return value ? std::optional(static_cast<int>(std::min<std::int64_t>(*value, 1'000'000'000))) : std::nullopt;
}

/// "LID 0xd06 QPN 0x095f ..." -> "0xd06"; empty for RoCE, whose LIDs are 0.
std::string lid_of(std::string_view address) {
    const std::vector<std::string_view> parts = words(address);
    if (parts.size() < 2 || parts[0] != "LID")
        return {};
    const std::string_view digits = parts[1].substr(parts[1].starts_with("0x") ? 2 : 0);
    return digits.find_first_not_of('0') == std::string_view::npos ? std::string() : std::string(parts[1]);
}

void take_parameters(std::string_view line, PerftestRun& run, std::string& local_lid) {
    for (const auto& [key, value] : parameters_of(line)) {
        if (key == "Device") {
            run.device = value;
        } else if (key == "Transport type") {
            run.transport = value;
        } else if (key == "Connection type") {
            run.connection = value;
        } else if (key == "Link type") {
            run.link_type = value;
        } else if (key == "Mtu") {
            run.mtu_bytes = leading_number(value);
        } else if (key == "Number of qps") {
            run.queue_pairs = leading_number(value);
        } else if (key == "GID index") {
            run.gid_index = leading_number(value);
        } else if (key == "TX depth") {
            run.tx_depth = leading_number(value);
        } else if (key == "rdma_cm QPs") {
            run.rdma_cm = value == "ON";
        } else if (key == "local address") {
            local_lid = lid_of(value);
        } else if (key == "remote address") {
            run.loopback = !local_lid.empty() && lid_of(value) == local_lid;
        }
    }
}

bool is_title(std::string_view line) {
    const bool known = starts_with(line, "RDMA_") || starts_with(line, "Send ") || starts_with(line, "Atomic") ||
                       starts_with(line, "Raw Ethernet");
    return known && contains(line, "Test") && (contains(line, "BW") || contains(line, "Latency"));
}

bool is_warning(std::string_view line) {
    return starts_with(lower(line), "warning:") || starts_with(line, "Conflicting CPU frequency");
}

bool is_failure(std::string_view line) {
    return starts_with(line, "Couldn't") || starts_with(line, "Unable to") || starts_with(line, "Failed ") ||
           starts_with(line, "Completion with error") || contains(line, "Failed status");
}

Unit unit_of(std::string_view header) {
    if (contains(header, "[Gb/sec]")) {
        return Unit::gbit;
    }
    return contains(header, "[GB/sec]") ? Unit::gbyte : Unit::mib;
}

/// Takes the unit that agrees with the message rate; nothing when none does.
std::optional<Unit> checked_unit(double average, double rate_mpps, std::int64_t bytes, Unit header) {
    const double gbit = rate_mpps * 1e6 * static_cast<double>(bytes) * 8 / 1e9;
    const double rate_slack = 0.5e-6 / std::max(rate_mpps, 1e-9);  // six decimals are printed
    for (const Unit unit : {header, Unit::gbit, Unit::mib, Unit::gbyte}) {
        if (std::abs(to_gbit(average, unit) - gbit) <= (kRateSlack + rate_slack) * gbit) {
            return unit;
        }
    }
    return std::nullopt;
}

class Reader {
public:
    explicit Reader(std::string file) : file_(std::move(file)) {}

    void take(std::string_view raw, int line) {
        const std::string clean = clean_line(raw);
        const std::string_view text = clean;
        if (text.empty()) {
            return;
        }
        if (is_title(text)) {
            begin(text, line);
        } else if (is_warning(text)) {
            std::vector<std::string>& warnings = block_ ? block_->run.warnings : early_warnings_;
            if (std::find(warnings.begin(), warnings.end(), text) == warnings.end()) {
                warnings.emplace_back(text);
            }
        } else if (block_ && is_failure(text)) {
            block_->failures.push_back(fmt::format("line {}: {}", line, text));
        } else if (starts_with(text, "#bytes") || starts_with(text, "# bytes")) {
            header(text, line);
        } else if (block_ && block_->header && row(text, line)) {
            return;
        } else if (block_ && !block_->header) {
            take_parameters(text, block_->run, block_->local_lid);
        }
    }

    std::vector<PerftestRun> finish() {
        close();
        if (runs_.empty()) {
            throw IngestError(file_, 0, "holds no perftest output: no test title and no '#bytes' header");
        }
        return std::move(runs_);
    }

private:
    void begin(std::string_view title, int line) {
        if (block_ && !block_->header && block_->run.title == title) {
            ++block_->titles;  // the other side, line by line
            return;
        }
        close();
        block_.emplace();
        PerftestRun& run = block_->run;
        run.file = file_;
        run.line = line;
        run.title = title;
        block_->titles = 1;
        run.kind = contains(title, "Latency") ? PerftestKind::latency : PerftestKind::bandwidth;
        const std::string name = lower(title);
        run.both_ways = contains(name, "bidirectional");
        for (const std::string_view operation : {"write", "read", "send", "atomic"}) {
            if (contains(name, operation)) {
                run.operation = operation;
                break;
            }
        }
        run.warnings = std::move(early_warnings_);
        early_warnings_.clear();
    }

    void header(std::string_view text, int line) {
        const bool latency = contains(text, "t_avg");
        if (!block_) {  // a page that shows only the table
            begin(latency ? "Latency Test" : "BW Test", line);
        }
        block_->header = true;
        block_->unit = unit_of(text);
        block_->run.kind = latency ? PerftestKind::latency : PerftestKind::bandwidth;
        block_->duration_columns = latency && contains(text, "tps");
    }

    bool row(std::string_view text, int line) {
        std::vector<double> values;
        for (const std::string_view word : words(text)) {
            const std::optional<Printed> value = printed_number(word);
            if (!value) {
                return false;
            }
            values.push_back(value->value);
        }
        const std::vector<std::string_view> parts = words(text);
        const std::optional<std::int64_t> bytes = whole_number(parts[0]);
        const std::optional<std::int64_t> iterations = parts.size() > 1 ? whole_number(parts[1]) : std::nullopt;
        const bool latency = block_->run.kind == PerftestKind::latency;
        const std::size_t least = !latency || block_->duration_columns ? 4 : 6;
        if (!bytes || !iterations || values.size() < least) {
            block_->run.notes.push_back(fmt::format("line {}: an incomplete row is left out", line));
            return true;
        }
        PerftestPoint point;
        point.bytes = *bytes;
        point.iterations = *iterations;
        point.line = line;
        latency ? latency_values(values, point) : bandwidth_values(values, point);
        add(point);
        return true;
    }

    void latency_values(const std::vector<double>& values, PerftestPoint& point) const {
        if (block_->duration_columns) {
            point.average_us = values[2];
            return;
        }
        point.minimum_us = values[2];
        point.maximum_us = values[3];
        point.typical_us = values[4];
        point.average_us = values[5];
        const auto at = [&](std::size_t i) { return i < values.size() ? std::optional(values[i]) : std::nullopt; };
        point.deviation_us = at(6);
        point.p99_us = at(7);
        point.p999_us = at(8);
    }

    void bandwidth_values(const std::vector<double>& values, PerftestPoint& point) {
        Unit unit = block_->unit;
        if (values.size() > 4) {
            point.message_rate_mpps = values[4];
            const std::optional<Unit> checked = checked_unit(values[3], values[4], point.bytes, unit);
            if (!checked) {
                contradiction_ = fmt::format("line {}: the bandwidth {} is not message rate x bytes in any unit",
                                             point.line, values[3]);
            } else if (*checked != unit) {
                unit = *checked;
                block_->run.notes.push_back(
                    fmt::format("line {}: the unit of the header contradicts the message rate; {} is taken as {}",
                                point.line, values[3],
                                unit == Unit::gbit  ? "Gb/s"
                                : unit == Unit::mib ? "MiB/s"
                                                    : "GB/s"));
            }
        }
        point.average_gbit_per_s = to_gbit(values[3], unit);
        if (values[2] > 0) {
            point.peak_gbit_per_s = to_gbit(values[2], unit);
        }
    }

    void add(const PerftestPoint& point) {
        std::vector<PerftestPoint>& points = block_->run.points;
        if (block_->titles > 1 && !points.empty() && same_row(points.back(), point)) {
            block_->run.both_sides = true;  // the other side printed it too
            return;
        }
        points.push_back(point);
    }

    static bool same_row(const PerftestPoint& a, const PerftestPoint& b) {
        return a.bytes == b.bytes && a.iterations == b.iterations && a.average_us == b.average_us &&
               std::abs(a.average_gbit_per_s - b.average_gbit_per_s) <= 0.01 * a.average_gbit_per_s;
    }

    void close() {
        if (!block_) {
            return;
        }
        judge();
        PerftestRun& run = block_->run;
        contradiction_.clear();
        const bool repeats = !runs_.empty() && runs_.back().title == run.title && !run.points.empty() &&
                             runs_.back().device == run.device && runs_.back().points.size() == run.points.size() &&
                             std::equal(run.points.begin(), run.points.end(), runs_.back().points.begin(), same_row);
        if (repeats) {
            runs_.back().both_sides = true;
            runs_.back().notes.push_back(
                fmt::format("both sides are in the log; the block from line {} repeats it", run.line));
        } else {
            runs_.push_back(std::move(run));
        }
        block_.reset();
    }

    void judge() {
        PerftestRun& run = block_->run;
        const bool no_peaks = std::none_of(run.points.begin(), run.points.end(), [](const PerftestPoint& point) {
            return point.peak_gbit_per_s.has_value();
        });
        run.run_infinitely = run.kind == PerftestKind::bandwidth && no_peaks && run.points.size() > 1 &&
                             run.points.front().bytes == run.points.back().bytes;
        run.verdict = PerftestVerdict::failed;
        if (!block_->failures.empty()) {
            run.reason = block_->failures.front();
        } else if (run.points.empty()) {
            run.reason = run.operation == "read" ? "no result row; the passive side of a read test prints none"
                                                 : "no result row";
        } else {
            run.reason = contradiction_.empty() ? impossible_row(run) : contradiction_;
            run.verdict = run.reason.empty() ? PerftestVerdict::usable : PerftestVerdict::suspicious;
        }
        if (run.kind == PerftestKind::bandwidth && no_peaks && !run.points.empty()) {
            run.notes.emplace_back("peaks were not measured");
        }
    }

    static std::string impossible_row(const PerftestRun& run) {
        for (const PerftestPoint& point : run.points) {
            const std::string where = fmt::format("line {}, {} B", point.line, point.bytes);
            if (run.kind == PerftestKind::latency) {
                if (point.average_us <= 0) {
                    return where + ": a latency of 0";
                }
                if (point.minimum_us &&
                    (*point.minimum_us > *point.typical_us || *point.typical_us > *point.maximum_us)) {
                    return where + ": minimum, typical and maximum are out of order";
                }
            } else if (point.average_gbit_per_s <= 0) {
                return where + ": a bandwidth of 0";
            } else if (point.average_gbit_per_s > kMostGbit) {
                return fmt::format("{}: {:.0f} Gb/s is more than any NIC has", where, point.average_gbit_per_s);
            }
        }
        return "";
    }

    std::string file_;
    std::vector<PerftestRun> runs_;
    std::optional<Block> block_;
    std::vector<std::string> early_warnings_;
    std::string contradiction_;  ///< of the block being read
};

}  // namespace

std::string_view name_of(PerftestVerdict verdict) {
    static constexpr std::array<std::string_view, 3> kNames = {"usable", "failed", "suspicious"};
    return kNames.at(static_cast<std::size_t>(verdict));
}

bool is_perftest_log(std::string_view text) {
    for (const std::string_view line : lines_of(text)) {
        if (is_title(clean_line(line)))
            return true;
    }
    return false;
}

std::vector<PerftestRun> read_perftest_log(const std::filesystem::path& path) {
    return parse_perftest_log(read_text_file(path), path.string());
}

std::vector<PerftestRun> parse_perftest_log(std::string_view text, const std::string& file) {
    Reader reader(file);
    int number = 0;
    for (const std::string_view line : lines_of(text)) {
        reader.take(line, ++number);
    }
    return reader.finish();
}

}  // namespace fabricast
