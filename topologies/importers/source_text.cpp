#include "topologies/importers/source_text.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include <fmt/format.h>

namespace fabricast::importers {
namespace {

unsigned char byte_at(std::string_view text, std::size_t at) {
    return at < text.size() ? static_cast<unsigned char>(text[at]) : 0;
}

/// Length of the valid UTF-8 sequence at `at`, 0 when there is none.
std::size_t utf8_length(std::string_view text, std::size_t at) {
    const unsigned char lead = byte_at(text, at);
    const std::size_t length = lead < 0x80   ? 1
                               : lead < 0xC2 ? 0
                               : lead < 0xE0 ? 2
                               : lead < 0xF0 ? 3
                               : lead < 0xF5 ? 4
                                             : 0;
    if (length == 0 || at + length > text.size()) {
        return 0;
    }
    for (std::size_t i = 1; i < length; ++i) {
        if ((byte_at(text, at + i) & 0xC0) != 0x80) {
            return 0;
        }
    }
    return length;
}

/// Length of a terminal escape sequence at `at`: ESC [ ... letter, ESC ] ... BEL, ESC and one character; the caret
/// form "^[" of a pasted terminal too, for colours only.
std::size_t escape_length(std::string_view text, std::size_t at) {
    const bool caret = text.substr(at, 3) == "^[[";
    if (byte_at(text, at) != 0x1B && !caret) {
        return 0;
    }
    std::size_t end = at + (caret ? 2 : 1);
    if (byte_at(text, end) == '[') {
        ++end;
        while (byte_at(text, end) >= 0x20 && byte_at(text, end) < 0x40) {
            ++end;
        }
        const bool complete = end < text.size() && byte_at(text, end) >= 0x40;
        if (caret && (!complete || text[end] != 'm')) {
            return 0;
        }
        return end - at + (complete ? 1 : 0);
    }
    if (byte_at(text, end) == ']') {
        while (end < text.size() && text[end] != '\n' && byte_at(text, end) != 0x07) {
            ++end;
        }
        return end - at + (byte_at(text, end) == 0x07 ? 1 : 0);
    }
    return end < text.size() && text[end] != '\n' ? 2 : 1;
}

/// UTF-16 as a Windows shell writes it, folded to ASCII.
std::string folded_utf16(std::string_view raw, bool little_endian) {
    std::string text;
    for (std::size_t at = 2; at + 1 < raw.size(); at += 2) {
        const unsigned char high = byte_at(raw, at + (little_endian ? 1 : 0));
        const unsigned char low = byte_at(raw, at + (little_endian ? 0 : 1));
        text += high == 0 && low < 0x80 && low != 0 ? static_cast<char>(low) : '?';
    }
    return text;
}

struct Cleaned {
    std::string text;
    std::size_t escapes = 0, junk = 0, returns = 0;
};

Cleaned cleaned(std::string_view raw) {
    Cleaned result;
    result.text.reserve(raw.size());
    for (std::size_t at = 0; at < raw.size();) {
        const unsigned char c = byte_at(raw, at);
        if (const std::size_t skip = escape_length(raw, at); skip > 0) {
            ++result.escapes;
            at += skip;
        } else if (c == '\r') {
            ++result.returns;
            at += byte_at(raw, at + 1) == '\n' ? 2 : 1;
            result.text += '\n';
        } else if (c == 0xC2 && byte_at(raw, at + 1) == 0xA0) {
            result.text += ' ';
            at += 2;
        } else if (const std::size_t length = utf8_length(raw, at);
                   length == 0 || (length == 1 && (c == 0x7F || (c < 0x20 && c != '\n' && c != '\t')))) {
            ++result.junk;
            result.text += '?';
            ++at;
        } else {
            result.text.append(raw, at, length);
            at += length;
        }
    }
    return result;
}

}  // namespace

SourceText SourceText::from_file(const std::string& path) {
    std::error_code error;
    const auto status = std::filesystem::status(path, error);
    if (error || !std::filesystem::exists(status)) {
        throw ImportError(path, 0, "no such file");
    }
    if (std::filesystem::is_directory(status)) {
        throw ImportError(path, 0, "is a directory, a file is expected");
    }
    std::ifstream stream(path, std::ios::binary);
    if (!stream) {
        throw ImportError(path, 0, "cannot be opened");
    }
    std::string raw;
    char block[1 << 16];
    while (stream.read(block, sizeof block) || stream.gcount() > 0) {
        raw.append(block, static_cast<std::size_t>(stream.gcount()));
        if (raw.size() > kMaxFileBytes) {
            break;
        }
    }
    if (stream.bad()) {
        throw ImportError(path, 0, "reading failed");
    }
    return from_text(path, raw);
}

SourceText SourceText::from_text(std::string name, std::string_view raw) {
    if (raw.size() > kMaxFileBytes) {
        throw ImportError(name, 0, fmt::format("is larger than {} MiB; no topology file is", kMaxFileBytes >> 20));
    }
    for (const auto& [magic, what] : {std::pair<std::string_view, std::string_view>{"\x1f\x8b", "gzip"},
                                      {"\x28\xb5\x2f\xfd", "zstd"},
                                      {"BZh", "bzip2"},
                                      {"\xfd\x37zXZ", "xz"},
                                      {"PK\x03\x04", "zip"}}) {
        if (starts_with(raw, magic)) {
            throw ImportError(name, 0, fmt::format("is {}-compressed; unpack it first", what));
        }
    }
    SourceText source;
    source.name_ = std::move(name);
    std::string unfolded;
    if (starts_with(raw, "\xEF\xBB\xBF")) {
        raw.remove_prefix(3);
    } else if (starts_with(raw, "\xFF\xFE") || starts_with(raw, "\xFE\xFF")) {
        unfolded = folded_utf16(raw, raw.front() == '\xFF');
        raw = unfolded;
        source.notes_.push_back({NoteKind::repaired, 0, "UTF-16 text was read as ASCII"});
    }
    if (const std::size_t nul = raw.find('\0'); nul != std::string_view::npos) {
        throw ImportError(source.name_, 0, fmt::format("is binary (a zero byte at offset {}); text is expected", nul));
    }
    Cleaned clean = cleaned(raw);
    if (trimmed(clean.text).empty()) {
        throw ImportError(source.name_, 0, "is empty");
    }
    if (clean.junk > 16 && clean.junk * 20 > raw.size()) {
        throw ImportError(source.name_, 0,
                          fmt::format("is no text: {} of {} bytes are not printable", clean.junk, raw.size()));
    }
    if (clean.junk > 0) {
        source.notes_.push_back(
            {NoteKind::repaired, 0, fmt::format("{} bytes that are no text were replaced by '?'", clean.junk)});
    }
    if (clean.escapes > 0) {
        source.notes_.push_back(
            {NoteKind::repaired, 0, fmt::format("{} terminal escape sequences were taken out", clean.escapes)});
    }
    source.text_ = std::move(clean.text);
    for (std::size_t start = 0; start < source.text_.size();) {
        source.starts_.push_back(start);
        const std::size_t end = source.text_.find('\n', start);
        start = end == std::string::npos ? source.text_.size() : end + 1;
    }
    return source;
}

std::string_view SourceText::line(std::size_t index) const {
    const std::size_t start = starts_.at(index);
    const std::size_t end = index + 1 < starts_.size() ? starts_[index + 1] : text_.size();
    std::string_view line = std::string_view(text_).substr(start, end - start);
    if (!line.empty() && line.back() == '\n') {
        line.remove_suffix(1);
    }
    return line;
}

std::uint32_t SourceText::line_number(std::size_t offset) const {
    const auto after = std::upper_bound(starts_.begin(), starts_.end(), offset);
    return static_cast<std::uint32_t>(after - starts_.begin());
}

void SourceText::refuse(std::uint32_t line, std::string sentence) const {
    throw ImportError(name_, line, std::move(sentence));
}

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

std::string_view trimmed(std::string_view text) {
    while (!text.empty() && is_blank(text.front())) {
        text.remove_prefix(1);
    }
    while (!text.empty() && is_blank(text.back())) {
        text.remove_suffix(1);
    }
    return text;
}

std::string lower_case(std::string_view text) {
    std::string lower(text);
    for (char& c : lower) {
        c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
    return lower;
}

bool starts_with(std::string_view text, std::string_view prefix) { return text.substr(0, prefix.size()) == prefix; }

std::vector<std::string_view> words(std::string_view text) {
    std::vector<std::string_view> found;
    for (std::size_t at = 0; at < text.size();) {
        if (is_blank(text[at])) {
            ++at;
            continue;
        }
        const std::size_t start = at;
        while (at < text.size() && !is_blank(text[at])) {
            ++at;
        }
        found.push_back(text.substr(start, at - start));
    }
    return found;
}

std::string in_quotes(std::string_view text) {
    std::string result = "'";
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (i == 40) {
            result += "...";
            break;
        }
        result += text[i] == '\n' || text[i] == '\t' ? ' ' : text[i];
    }
    return result + "'";
}

std::optional<std::uint64_t> to_unsigned(std::string_view text) {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 10);
    if (text.empty() || error != std::errc() || end != text.data() + text.size()) {
        return std::nullopt;
    }
    return value;
}

std::optional<double> to_number(std::string_view text) {
    if (starts_with(text, "+")) {
        text.remove_prefix(1);
    }
    const bool starts_well = !text.empty() && (is_digit(text[0]) || text[0] == '.' || text[0] == '-');
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (!starts_well || error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
        return std::nullopt;
    }
    return value;
}

std::optional<std::uint64_t> to_hex(std::string_view text) {
    if (starts_with(text, "0x") || starts_with(text, "0X")) {
        text.remove_prefix(2);
    }
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
    if (text.empty() || error != std::errc() || end != text.data() + text.size()) {
        return std::nullopt;
    }
    return value;
}

std::string nearest(std::string_view word, const std::vector<std::string_view>& known) {
    std::string best;
    std::size_t best_edits = 1 + std::min<std::size_t>(3, word.size() / 2);
    if (word.size() > 64) {
        return best;
    }
    const std::string from = lower_case(word);
    for (const std::string_view candidate : known) {
        const std::string to = lower_case(candidate);
        std::vector<std::size_t> row(to.size() + 1);
        for (std::size_t j = 0; j <= to.size(); ++j) {
            row[j] = j;
        }
        for (std::size_t i = 1; i <= from.size(); ++i) {
            std::size_t diagonal = row[0];
            row[0] = i;
            for (std::size_t j = 1; j <= to.size(); ++j) {
                const std::size_t replaced = diagonal + (from[i - 1] == to[j - 1] ? 0 : 1);
                diagonal = row[j];
                row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
            }
        }
        if (row[to.size()] < best_edits) {
            best_edits = row[to.size()];
            best = candidate;
        }
    }
    return best;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string_view>& known) {
    const std::string near = nearest(word, known);
    return near.empty() ? "" : " (did you mean " + near + "?)";
}

std::string listed(const std::vector<std::string>& names, std::size_t at_most) {
    std::string text;
    for (std::size_t i = 0; i < names.size(); ++i) {
        if (i == at_most) {
            return text + fmt::format(" and {} more", names.size() - at_most);
        }
        text += (i == 0 ? "" : i + 1 == names.size() ? " and " : ", ") + names[i];
    }
    return text;
}

}  // namespace fabricast::importers
