#include "sim/observed/text.hpp"

#include <cctype>
#include <charconv>
#include <cmath>
#include <fstream>
#include <sstream>

#include "models/compute/math.hpp"
#include "sim/observed/ingest_error.hpp"

namespace fabricast {
namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Length of a run of digits at `at`.
std::size_t digits(std::string_view text, std::size_t at) {
    std::size_t end = at;
    while (end < text.size() && is_digit(text[end])) {
        ++end;
    }
    return end - at;
}

/// "[1,12]<stdout>:" or "[name@1,0]<stderr>: " at `at`: its length, or 0.
std::size_t mpirun_tag(std::string_view text, std::size_t at) {
    const std::size_t close = text.find(']', at);
    if (text[at] != '[' || close == std::string_view::npos || close - at > 80) {
        return 0;
    }
    const std::string_view inside = text.substr(at + 1, close - at - 1);
    const std::size_t comma = inside.rfind(',');
    if (comma == std::string_view::npos || comma + 1 == inside.size() ||
        digits(inside, comma + 1) != inside.size() - comma - 1) {
        return 0;
    }
    for (const std::string_view stream : {"<stdout>:", "<stderr>:", "<stddiag>:"}) {
        if (text.substr(close + 1, stream.size()) == stream) {
            return close + 1 + stream.size() - at;
        }
    }
    return 0;
}

/// "[0]" with two blanks behind it, as PMIx writes before each piece of a row: its length, or 0.
std::size_t rank_mark(std::string_view text, std::size_t at) {
    const std::size_t number = digits(text, at + 1);
    return number > 0 && text.substr(at + 1 + number, 3) == "]  " ? number + 2 : 0;
}

/// "run(), common.cu:967, ": function, file and line of a debugging build.
std::size_t source_mark(std::string_view text) {
    const std::size_t call = text.find("(), ");
    if (call == std::string_view::npos || call == 0 || call > 40 || text.substr(0, call).find(' ') < call) {
        return 0;
    }
    const std::size_t colon = text.find(':', call);
    if (colon == std::string_view::npos ||
        text.substr(call + 4, colon - call - 4).find(' ') != std::string_view::npos) {
        return 0;
    }
    const std::size_t number = digits(text, colon + 1);
    const std::size_t end = colon + 1 + number;
    return number > 0 && text.substr(end, 1) == "," ? end + 1 : 0;
}

/// "2024-05-06T12:00:00.123Z " before a line of kubectl logs --timestamps.
std::size_t iso_time(std::string_view text) {
    if (digits(text, 0) != 4 || text.substr(4, 1) != "-" || digits(text, 5) != 2 || text.substr(10, 1) != "T") {
        return 0;
    }
    const std::size_t end = text.find(' ');
    return end == std::string_view::npos ? text.size() : end;
}

/// Length of one prefix at the start of `text`, or 0.
std::size_t prefix_length(std::string_view text) {
    if (text.empty()) {
        return 0;
    }
    const char first = text.front();
    if (is_digit(first)) {
        const std::size_t label = digits(text, 0);
        if (text.substr(label, 1) == ":" && (label + 1 == text.size() || is_space(text[label + 1]))) {
            return label + 1;  // srun -l
        }
        return iso_time(text);
    }
    if (first == '[') {
        const std::size_t label = digits(text, 1);
        if (label > 0 && text.substr(1 + label, 1) == "]" && (label + 2 == text.size() || is_space(text[label + 2]))) {
            return label + 2;  // PMIx
        }
        const std::size_t close = text.find(']');
        return starts_with(text, "[pod/") && close != std::string_view::npos ? close + 1 : 0;
    }
    if (first == '(') {
        const std::size_t close = text.find(')');
        return close != std::string_view::npos && contains(text.substr(0, close), "pid=") ? close + 1 : 0;
    }
    return source_mark(text);
}

}  // namespace

std::optional<Printed> printed_number(std::string_view token) {
    if (!token.empty() && token.front() == '+') {
        token.remove_prefix(1);
    }
    const std::size_t sign = !token.empty() && token.front() == '-' ? 1 : 0;
    if (token.size() <= sign || !(is_digit(token[sign]) || token[sign] == '.')) {
        return std::nullopt;  // also keeps out nan and inf
    }
    Printed number;
    const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), number.value);
    if (error != std::errc{} || end != token.data() + token.size() || !std::isfinite(number.value)) {
        return std::nullopt;
    }
    const std::size_t exponent_at = token.find_first_of("eE");
    const std::string_view mantissa = token.substr(0, exponent_at);
    const std::size_t point = mantissa.find('.');
    int place = point == std::string_view::npos ? 0 : -static_cast<int>(mantissa.size() - point - 1);
    if (exponent_at != std::string_view::npos) {
        const std::string_view text = token.substr(exponent_at + (token[exponent_at + 1] == '+' ? 2 : 1));
        int exponent = 0;
        std::from_chars(text.data(), text.data() + text.size(), exponent);
        place += exponent;
    }
    number.error = 0.5 * math::pow(10.0, place);
    return number;
}

std::optional<std::int64_t> whole_number(std::string_view token) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), value);
    if (token.empty() || error != std::errc{} || end != token.data() + token.size()) {
        return std::nullopt;
    }
    return value;
}

std::vector<std::string_view> words(std::string_view text) {
    std::vector<std::string_view> result;
    for (std::size_t at = 0; at < text.size();) {
        while (at < text.size() && is_space(text[at])) {
            ++at;
        }
        const std::size_t begin = at;
        while (at < text.size() && !is_space(text[at])) {
            ++at;
        }
        if (at > begin) {
            result.push_back(text.substr(begin, at - begin));
        }
    }
    return result;
}

std::string_view trimmed(std::string_view text) {
    while (!text.empty() && is_space(text.front())) {
        text.remove_prefix(1);
    }
    while (!text.empty() && is_space(text.back())) {
        text.remove_suffix(1);
    }
    return text;
}

bool starts_with(std::string_view text, std::string_view start) { return text.substr(0, start.size()) == start; }

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

std::string lower(std::string_view text) {
    std::string result(text);
    for (char& c : result) {
        c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    return result;
}

std::vector<std::string_view> lines_of(std::string_view text) {
    std::vector<std::string_view> result;
    while (!text.empty()) {
        const std::size_t end = text.find('\n');
        std::string_view line = text.substr(0, end);
        while (!line.empty() && line.back() == '\r') {
            line.remove_suffix(1);
        }
        result.push_back(line);
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    }
    return result;
}

std::string clean_line(std::string_view line) {
    std::string plain;
    plain.reserve(line.size());
    for (std::size_t at = 0; at < line.size();) {
        if (line[at] == '\x1b' && line.substr(at + 1, 1) == "[") {  // ESC [ ... letter
            at += 2;
            while (at < line.size() && !std::isalpha(static_cast<unsigned char>(line[at]))) {
                ++at;
            }
            at += at < line.size() ? 1 : 0;
        } else if (const std::size_t tag = line[at] == '[' ? mpirun_tag(line, at) : 0; tag > 0) {
            plain += ' ';
            at += tag;
        } else if (const std::size_t rank = line[at] == '[' ? rank_mark(line, at) : 0; rank > 0 && at > 0) {
            plain += ' ';
            at += rank;
        } else {
            plain += line[at++];
        }
    }
    std::string_view rest = trimmed(plain);
    for (std::size_t length = prefix_length(rest); length > 0; length = prefix_length(rest)) {
        rest = trimmed(rest.substr(length));
    }
    return std::string(rest);
}

std::string read_text_file(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    if (!file.is_open() || file.bad()) {
        throw IngestError(path.string(), 0, "cannot be read");
    }
    std::string result = std::move(text).str();
    if (result.find('\0') != std::string::npos) {
        throw IngestError(path.string(), 0, "is not a text file");
    }
    return result;
}

}  // namespace fabricast
