#include "sim/report/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace fabricast::report {
namespace {

/// Next code point of a UTF-8 text; a byte that starts none counts as one U+FFFD.
char32_t decode(std::string_view& text) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char first = byte(0);
    const std::size_t length = first < 0x80         ? 1
                               : (first >> 5) == 6  ? 2
                               : (first >> 4) == 14 ? 3
                               : (first >> 3) == 30 ? 4
                                                    : 0;
    bool valid = length != 0 && length <= text.size();
    for (std::size_t i = 1; valid && i < length; ++i)
        valid = (byte(i) >> 6) == 2;
    if (!valid) {
        text.remove_prefix(1);
        return 0xFFFD;
    }
    char32_t point = length == 1 ? first : first & (0xFFu >> (length + 1));
    for (std::size_t i = 1; i < length; ++i)
        point = (point << 6) | (byte(i) & 0x3Fu);
    text.remove_prefix(length);
    return point;
}

std::size_t columns_of(char32_t c) {
    const bool combining = (c >= 0x300 && c < 0x370) || c == 0x200B || c == 0x200D || (c >= 0xFE00 && c < 0xFE10);
    const bool wide = (c >= 0x1100 && c < 0x1160) || (c >= 0x2E80 && c < 0xA4D0) || (c >= 0xAC00 && c < 0xD7A4) ||
                      (c >= 0xF900 && c < 0xFB00) || (c >= 0xFE30 && c < 0xFE70) || (c >= 0xFF00 && c < 0xFF61) ||
                      (c >= 0x1F300 && c < 0x1FB00) || (c >= 0x20000 && c < 0x40000);
    return combining ? 0 : wide ? 2 : 1;
}

}  // namespace

std::string grouped(double value) {
    const std::string digits = fmt::format("{:.0f}", value);
    std::string result;
    for (std::size_t i = 0; i < digits.size(); ++i) {
        if (i > 0 && (digits.size() - i) % 3 == 0 && digits[i - 1] != '-')
            result += ' ';
        result += digits[i];
    }
    return result;
}

std::string percent(double fraction) {
    if (fraction > 0 && fraction < 0.0005)
        return "<0.1 %";
    return fmt::format("{:.1f} %", fraction * 100);
}

std::string signed_percent(double fraction) { return fmt::format("{:+.1f} %", fraction * 100); }

std::string duration(double seconds) {
    if (seconds >= 1 || seconds <= 0)
        return fmt::format("{:.3f} s", seconds);
    if (seconds >= 1e-3)
        return fmt::format("{:.1f} ms", seconds * 1e3);
    return fmt::format("{:.1f} us", seconds * 1e6);
}

std::string gib(std::int64_t bytes) {
    return fmt::format("{:.1f}", static_cast<double>(bytes) / static_cast<double>(std::int64_t{1} << 30));
}

std::string decimal_bytes(double bytes) {
    if (bytes < 1000)
        return fmt::format("{:.0f} B", bytes);
    static constexpr std::array<const char*, 5> kUnits = {"kB", "MB", "GB", "TB", "PB"};
    std::size_t unit = 0;
    for (bytes /= 1000; bytes >= 999.5 && unit + 1 < kUnits.size(); ++unit)
        bytes /= 1000;
    return fmt::format("{:.{}f} {}", bytes, bytes < 9.995 ? 2 : bytes < 99.95 ? 1 : 0, kUnits[unit]);
}

std::string magnitude(double value) {
    if (value < 999.5)
        return fmt::format("{:.0f}", value);
    static constexpr std::array<const char*, 5> kUnits = {"k", "M", "G", "T", "P"};
    std::size_t unit = 0;
    for (value /= 1000; value >= 999.5 && unit + 1 < kUnits.size(); ++unit)
        value /= 1000;
    return fmt::format("{:.{}f} {}", value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0, kUnits[unit]);
}

std::string_view account_text(Account account) {
    static constexpr std::array<std::string_view, kAccountCount> kTexts = {"matrix products at dense peak",
                                                                           "matrix products below peak",
                                                                           "attention cores",
                                                                           "memory-bound kernels",
                                                                           "optimizer step",
                                                                           "recomputation",
                                                                           "GPU waits for CPU launches",
                                                                           "compute slowed by traffic",
                                                                           "tensor-parallel traffic",
                                                                           "context-parallel traffic",
                                                                           "expert-parallel traffic",
                                                                           "pipeline messages",
                                                                           "gradient reduction",
                                                                           "parameter gathering",
                                                                           "other communication",
                                                                           "contention on links",
                                                                           "waiting for slow peers",
                                                                           "pipeline bubble",
                                                                           "host memory and updates",
                                                                           "waiting for data",
                                                                           "checkpoint",
                                                                           "idle"};
    return kTexts[static_cast<std::size_t>(account)];
}

std::string_view memory_cause_text(MemoryCause cause) {
    static constexpr std::array<std::string_view, kMemoryCauseCount> kTexts = {
        "weights", "gradients", "optimizer", "activations", "logits", "gathered", "comm", "temporary", "context"};
    return kTexts[static_cast<std::size_t>(cause)];
}

std::string_view precision_text(Precision precision) {
    static constexpr std::array<std::string_view, 5> kTexts = {"fp32", "tf32", "bf16", "fp16", "fp8"};
    return kTexts[static_cast<std::size_t>(precision)];
}

std::string portable_path(const std::string& path) {
    return path.empty() || path.front() != '/' ? path : path.substr(path.rfind('/') + 1);
}

std::string shell_word(const std::string& text) {
    const auto plain = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               std::string_view("_-+=./:,@%").find(c) != std::string_view::npos;
    };
    if (!text.empty() && std::all_of(text.begin(), text.end(), plain))
        return text;
    std::string out = "'";
    for (const char c : text)
        out += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return out + "'";
}

std::string layout_text(const Layout& layout) {
    std::string text;
    const auto degree = [&](const char* name, std::int64_t size) {
        if (size > 1)
            text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, size);
    };
    degree("tp", layout.tp);
    if (layout.tp > 1 && layout.sequence_parallel)
        text += " sp";
    degree("cp", layout.cp);
    degree("ep", layout.ep);
    degree("pp", layout.pp);
    degree("vpp", layout.vpp);
    text += fmt::format("{}dp {}, zero {}", text.empty() ? "" : ", ", layout.dp, layout.zero);
    return text;
}

std::size_t width(std::string_view text) {
    std::size_t columns = 0;
    while (!text.empty())
        columns += columns_of(decode(text));
    return columns;
}

std::string clean(std::string_view text) {
    std::string result;
    while (!text.empty()) {
        const std::string_view before = text;
        const char32_t c = decode(text);
        const bool control = c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0xFFFD || (c >= 0x2028 && c <= 0x202E);
        if (control) {
            result += ' ';
        } else {
            result += before.substr(0, before.size() - text.size());
        }
    }
    return result;
}

std::string clip(std::string_view text, std::size_t columns) {
    if (width(text) <= columns)
        return std::string(text);
    if (columns == 0)
        return "";
    std::string result;
    std::size_t used = 1;  // the ellipsis
    while (!text.empty()) {
        const std::string_view before = text;
        const std::size_t next = columns_of(decode(text));
        if (used + next > columns)
            break;
        used += next;
        result += before.substr(0, before.size() - text.size());
    }
    return result + "…";
}

std::string pad_right(std::string_view text, std::size_t columns) {
    const std::size_t used = width(text);
    return std::string(text) + std::string(columns > used ? columns - used : 0, ' ');
}

std::string pad_left(std::string_view text, std::size_t columns) {
    const std::size_t used = width(text);
    return std::string(columns > used ? columns - used : 0, ' ') + std::string(text);
}

std::vector<std::string> wrap(std::string_view text, std::size_t columns) {
    std::vector<std::string> lines;
    std::string line;
    while (!text.empty()) {
        const std::size_t space = text.find(' ');
        const std::string word = clip(text.substr(0, space), columns);
        text.remove_prefix(space == std::string_view::npos ? text.size() : space + 1);
        if (word.empty())
            continue;
        if (!line.empty() && width(line) + 1 + width(word) > columns)
            lines.push_back(std::exchange(line, ""));
        if (!line.empty())
            line += ' ';
        line += word;
    }
    if (!line.empty())
        lines.push_back(line);
    return lines;
}

std::string to_ascii(std::string_view text) {
    static constexpr std::array<std::pair<char32_t, char>, 10> kTable = {{{U'✔', '*'},
                                                                          {U'✘', '!'},
                                                                          {U'×', 'x'},
                                                                          {U'·', '-'},
                                                                          {U'…', '~'},
                                                                          {U'→', '>'},
                                                                          {U'█', '#'},
                                                                          {U'░', '.'},
                                                                          {U'─', '-'},
                                                                          {U'–', '-'}}};
    std::string result;
    while (!text.empty()) {
        const char32_t c = decode(text);
        if (c < 0x80) {
            result += static_cast<char>(c);
            continue;
        }
        if (c >= U'▉' && c <= U'▏') {  // left blocks of 7/8 .. 1/8
            result += c <= U'▌' ? '#' : ' ';
            continue;
        }
        const auto known =
            std::find_if(kTable.begin(), kTable.end(), [&](const auto& entry) { return entry.first == c; });
        result.append(columns_of(c), known != kTable.end() ? known->second : '?');
    }
    return result;
}

std::string bar(double fraction, std::size_t columns) {
    static constexpr std::array<std::string_view, 8> kEighths = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    const double bounded = fraction > 0 ? std::min(fraction, 1.0) : 0.0;
    auto eighths = static_cast<std::size_t>(std::lround(bounded * static_cast<double>(columns) * 8));
    if (eighths == 0 && fraction > 0)
        eighths = 1;
    std::string result;
    for (std::size_t i = 0; i < eighths / 8; ++i)
        result += "█";
    result += kEighths[eighths % 8];
    return result;
}

}  // namespace fabricast::report
