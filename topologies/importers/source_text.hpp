// A text file as the readers want it: whole, clean, in lines.
//
// Cleaning keeps line numbers: byte order mark off, UTF-16 folded to ASCII, CR LF and lone CR to LF, terminal escape
// sequences out, no-break spaces to blanks, bytes that are neither text nor valid UTF-8 to '?'. What was cleaned is
// in notes(). Binary, compressed, empty and oversized files are refused here, for all readers.
// Below: the few text helpers that the readers share. None depends on the locale.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "topologies/importers/import_error.hpp"

namespace fabricast::importers {

/// ibnetdiscover of 20 000 ports is about 10 MB; nothing read here is larger for a reason.
inline constexpr std::size_t kMaxFileBytes = std::size_t{64} << 20;

class SourceText {
public:
    /// Throws ImportError for a file that cannot be read, is larger than kMaxFileBytes, empty, or no text.
    static SourceText from_file(const std::string& path);
    static SourceText from_text(std::string name, std::string_view raw);

    const std::string& name() const { return name_; }
    std::string_view text() const { return text_; }
    const Notes& notes() const { return notes_; }

    std::size_t line_count() const { return starts_.size(); }
    /// index counts from 0; without the line end.
    std::string_view line(std::size_t index) const;
    /// Number (from 1) of the line that holds the byte at `offset` of text().
    std::uint32_t line_number(std::size_t offset) const;

    [[noreturn]] void refuse(std::uint32_t line, std::string sentence) const;

private:
    std::string name_;
    std::string text_;
    std::vector<std::size_t> starts_;
    Notes notes_;
};

bool is_blank(char c);
bool is_digit(char c);
bool is_letter(char c);
std::string_view trimmed(std::string_view text);
std::string lower_case(std::string_view text);
bool starts_with(std::string_view text, std::string_view prefix);
/// Pieces between blanks and tabs.
std::vector<std::string_view> words(std::string_view text);
/// For messages: in quotes, at most 40 characters, one line.
std::string in_quotes(std::string_view text);

/// The whole text as an unsigned decimal number, leading zeros allowed; nothing otherwise.
std::optional<std::uint64_t> to_unsigned(std::string_view text);
/// The whole text as a decimal number, "1e-3" included; not inf, nan, hex.
std::optional<double> to_number(std::string_view text);
/// "0x10de" or "10de".
std::optional<std::uint64_t> to_hex(std::string_view text);

/// The entry nearest to `word` by edits, empty when none is near: " (did you mean Ring?)" comes from it.
std::string nearest(std::string_view word, const std::vector<std::string_view>& known);
std::string did_you_mean(std::string_view word, const std::vector<std::string_view>& known);
/// "GPU0, GPU2 and GPU5"; long lists end in "... and 9 more".
std::string listed(const std::vector<std::string>& names, std::size_t at_most = 8);

}  // namespace fabricast::importers
