#include "validate/ingest/nccl_line.hpp"

#include <algorithm>
#include <array>
#include <cctype>

#include <fmt/format.h>

namespace fabricast {
namespace {

constexpr std::array<std::string_view, 16> kTypes = {"float", "half",   "double",   "bfloat16", "int8",   "uint8",
                                                     "int32", "uint32", "int64",    "uint64",   "f8e4m3", "f8e5m2",
                                                     "char",  "int",    "fp8_e4m3", "fp8_e5m2"};
constexpr std::array<std::string_view, 7> kOps = {"sum", "prod", "max", "min", "avg", "mulsum", "none"};
constexpr std::array<std::string_view, 11> kCollectives = {"all_reduce", "all_gather", "reduce_scatter", "broadcast",
                                                           "reduce",     "alltoallv",  "alltoall",       "sendrecv",
                                                           "gather",     "scatter",    "hypercube"};

template <std::size_t N>
bool is_one_of(std::string_view word, const std::array<std::string_view, N>& list) {
    return std::find(list.begin(), list.end(), word) != list.end();
}

bool has_word(const std::vector<std::string_view>& list, std::string_view word) {
    return std::find(list.begin(), list.end(), word) != list.end();
}

bool is_value(std::string_view word) { return word == "N/A" || printed_number(word).has_value(); }

/// "2024-05-06", "12:00:00": the columns of --report_timestamps.
bool is_date_or_time(std::string_view word) {
    const bool date = word.size() == 10 && word[4] == '-' && word[7] == '-';
    const bool time = word.size() >= 8 && word[2] == ':' && word[5] == ':';
    return (date || time) && std::isdigit(static_cast<unsigned char>(word.front())) != 0;
}

std::optional<NcclHalf> parse_half(const std::vector<std::string>& row, std::size_t at) {
    NcclHalf half;
    const std::optional<Printed> time = printed_number(row[at]), algbw = printed_number(row[at + 1]),
                                 busbw = printed_number(row[at + 2]), wrong = printed_number(row[at + 3]);
    if (!time || !algbw || !busbw || (!wrong && row[at + 3] != "N/A")) {
        return std::nullopt;
    }
    half.time_us = *time;
    half.algbw = *algbw;
    half.busbw = *busbw;
    half.wrong = wrong ? std::optional(wrong->value) : std::nullopt;
    return half;
}

bool is_launcher_failure(std::string_view line) {
    return contains(line, "mpirun noticed that process") || contains(line, "MPI_ABORT was invoked") ||
           starts_with(line, "srun: error:") || starts_with(line, "slurmstepd: error:") ||
           contains(line, "Primary job  terminated normally, but") || contains(line, "Segmentation fault");
}

}  // namespace

std::string_view without_hash(std::string_view line) {
    while (!line.empty() && line.front() == '#') {
        line = trimmed(line.substr(1));
    }
    return line;
}

std::string_view table_part(std::string_view line) {
    const std::string_view whole = without_hash(line);
    const auto is_table = [](std::string_view text) { return kind_of(text) != NcclLineKind::noise; };
    if (whole.empty() || is_table(whole)) {
        return whole;
    }
    const std::size_t hash = line.find("# ");
    if (hash != std::string_view::npos && is_table(without_hash(trimmed(line.substr(hash))))) {
        return without_hash(trimmed(line.substr(hash)));
    }
    const std::vector<std::string_view> parts = words(line);
    const std::string_view label = parts.size() > 1 && parts[1] == "|" ? parts[1] : parts.front();
    if (label.back() == ':' || label.back() == '|' || label.back() == '>') {
        const std::size_t end = static_cast<std::size_t>(label.data() - line.data()) + label.size();
        const std::string_view rest = without_hash(trimmed(line.substr(end)));
        if (!rest.empty() && is_table(rest)) {
            return rest;
        }
    }
    return whole;
}

NcclLineKind kind_of(std::string_view line) {
    using Kind = NcclLineKind;
    if (line.empty()) {
        return Kind::noise;
    }
    const std::vector<std::string_view> parts = words(line);
    const std::string_view first = parts.front();
    if (contains(line, "Test NCCL failure") || contains(line, "Test CUDA failure") || contains(line, "Test failure ")) {
        return Kind::test_failure;
    }
    if (is_launcher_failure(line)) {
        return Kind::launcher_failure;
    }
    if (starts_with(line, "nccl-tests version ") || starts_with(line, "rccl-tests: Version ")) {
        return Kind::version_banner;
    }
    if (starts_with(line, "Collective test starting:")) {
        return Kind::start_banner;
    }
    if (starts_with(line, "Collective test concluded:")) {
        return Kind::concluded;
    }
    if (first == "nThread" && contains(line, "minBytes")) {
        return Kind::parameters;
    }
    if (first == "Rank" && contains(line, " on ") && contains(line, " device ")) {
        return Kind::device;
    }
    if (starts_with(line, "Out of bounds values")) {
        return Kind::out_of_bounds;
    }
    if (starts_with(line, "Avg bus bandwidth")) {
        return Kind::average;
    }
    if (starts_with(line, "Reducing maxBytes to ")) {
        return Kind::reduced_max;
    }
    if (first == "..." || first == "\xE2\x80\xA6") {
        return Kind::elided;
    }
    if (first == "size" && has_word(parts, "count") && has_word(parts, "type")) {
        return Kind::header;
    }
    if (parts.size() >= 3 && whole_number(parts[0]) && whole_number(parts[1]) && is_one_of(parts[2], kTypes)) {
        return Kind::row_start;
    }
    return std::all_of(parts.begin(), parts.end(), is_value) ? Kind::row_rest : Kind::noise;
}

std::optional<NcclParameters> parse_parameters(std::string_view line) {
    NcclParameters result;
    const std::vector<std::string_view> parts = words(line);
    std::string key;
    for (const std::string_view part : parts) {
        const bool is_number = std::isdigit(static_cast<unsigned char>(part.front())) != 0;
        if (!is_number && !(key == "direction:")) {
            const bool goes_on = key == "warmup" || key == "agg";  // keys of two words
            key = goes_on ? key + " " + std::string(part) : std::string(part);
            continue;
        }
        const std::int64_t value = whole_number(part.substr(0, part.find('('))).value_or(0);
        const int small = static_cast<int>(std::clamp<std::int64_t>(value, 0, 1'000'000'000));
        if (key == "nThread") {
            result.threads = std::max(1, small);
        } else if (key == "nGpus") {
            result.gpus_per_thread = std::max(1, small);
        } else if (key == "minBytes") {
            result.min_bytes = value;
        } else if (key == "maxBytes") {
            result.max_bytes = value;
        } else if (key == "step:") {
            (contains(part, "(bytes") ? result.step_bytes : result.step_factor) = value;
        } else if (key == "warmup iters:") {
            result.warmup_iterations = small;
        } else if (key == "iters:") {
            result.iterations = small;
        } else if (key == "agg iters:") {
            result.aggregated_iterations = small;
        } else if (key == "validation:") {
            result.validation = small;
        } else if (key == "graph:") {
            result.graph = small;
        } else if (!key.empty()) {
            result.others.emplace(key.back() == ':' ? key.substr(0, key.size() - 1) : key, part);
        }
        key.clear();
    }
    return result.max_bytes > 0 ? std::optional(result) : std::nullopt;
}

std::optional<NcclDevice> parse_device(std::string_view line) {
    const std::vector<std::string_view> parts = words(line);
    const auto value_after = [&](std::string_view key) -> std::string_view {
        const auto found = std::find(parts.begin(), parts.end(), key);
        return found == parts.end() || found + 1 == parts.end() ? std::string_view() : *(found + 1);
    };
    const std::optional<std::int64_t> rank = whole_number(value_after("Rank")),
                                      index = whole_number(value_after("device"));
    const std::size_t open = line.find('['), close = line.find(']');
    if (!rank || !index || *rank < 0 || *rank > 10'000'000 || value_after("on").empty() ||
        open == std::string_view::npos || close == std::string_view::npos || close < open) {
        return std::nullopt;
    }
    return NcclDevice{static_cast<int>(*rank), std::string(value_after("on")),
                      static_cast<int>(std::clamp<std::int64_t>(*index, 0, 1'000'000)),
                      std::string(line.substr(open + 1, close - open - 1)),
                      std::string(trimmed(line.substr(close + 1)))};
}

std::optional<NcclRow> parse_row(const std::vector<std::string>& row_words, int line, std::optional<bool> root_column) {
    std::size_t end = row_words.size();
    while (end > 3 && is_date_or_time(row_words[end - 1])) {
        --end;
    }
    const std::optional<std::int64_t> bytes = end < 3 ? std::nullopt : whole_number(row_words[0]);
    const std::optional<std::int64_t> count = end < 3 ? std::nullopt : whole_number(row_words[1]);
    if (!bytes || !count || *bytes < 0 || *count < 0) {
        return std::nullopt;
    }
    NcclRow row;
    row.point.bytes = *bytes;
    row.point.count = *count;
    row.point.line = line;
    row.datatype = row_words[2];
    std::size_t at = 3;
    if (at < end && is_one_of(row_words[at], kOps)) {
        row.redop = row_words[at++];
    }
    // One half is 4 values, or 8 with per-iteration columns. Whether a root stands before them the header says; without
    // one, -1 is a root and so is what is left over.
    if (root_column.value_or(at < end && (row_words[at] == "-1" || (end - at) % 4 == 1))) {
        const std::optional<std::int64_t> root = at < end ? whole_number(row_words[at++]) : std::nullopt;
        if (!root || *root < -1 || *root > 10'000'000) {
            return std::nullopt;
        }
        row.root = static_cast<int>(*root);
    }
    const std::size_t value_count = end - at;
    if (value_count != 4 && value_count != 8 && value_count != 16) {
        return std::nullopt;
    }
    const std::optional<NcclHalf> out_of_place = parse_half(row_words, at);
    if (!out_of_place) {
        return std::nullopt;
    }
    row.point.out_of_place = *out_of_place;
    if (value_count > 4) {
        row.point.in_place = parse_half(row_words, at + value_count / 2);
        if (!row.point.in_place) {
            return std::nullopt;
        }
    }
    return row;
}

std::string collective_in_command(std::string_view line) {
    std::string found;
    for (std::size_t at = line.find("_perf"); at != std::string_view::npos; at = line.find("_perf", at + 1)) {
        for (const std::string_view name : kCollectives) {
            if (at < name.size() || line.substr(at - name.size(), name.size()) != name) {
                continue;
            }
            const std::size_t begin = at - name.size();
            const char before = begin == 0 ? ' ' : line[begin - 1];
            if (std::isalnum(static_cast<unsigned char>(before)) == 0 && before != '_') {
                if (!found.empty() && found != name) {
                    return "";
                }
                found = name;
            }
        }
    }
    return found;
}

std::string collective_in_file_name(std::string_view name) {
    std::string plain;
    for (const char c : lower(name)) {
        if (c != '_' && c != '-' && c != ' ') {
            plain += c;
        }
    }
    static constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kSpellings = {{
        {"allreduce", "all_reduce"},
        {"allgather", "all_gather"},
        {"reducescatter", "reduce_scatter"},
        {"alltoall", "alltoall"},
        {"all2all", "alltoall"},
        {"sendrecv", "sendrecv"},
        {"broadcast", "broadcast"},
    }};
    std::string found;
    for (const auto& [spelling, collective] : kSpellings) {
        for (std::size_t at = plain.find(spelling); at != std::string::npos; at = plain.find(spelling)) {
            if (!found.empty() && found != collective) {
                return "";
            }
            found = collective;
            plain.replace(at, spelling.size(), " ");
        }
    }
    return found;
}

std::string version_from_code(std::string_view code) {
    const std::optional<std::int64_t> value = whole_number(code);
    if (!value || *value < 2000) {
        return "";
    }
    if (*value < 10000) {  // before 2.9 the code was 1000 * major + 100 * minor + patch
        return fmt::format("{}.{}.{}", *value / 1000, *value / 100 % 10, *value % 100);
    }
    return fmt::format("{}.{}.{}", *value / 10000, *value / 100 % 100, *value % 100);
}

}  // namespace fabricast
