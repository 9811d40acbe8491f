// Plain text for terminals: numbers in human units, names in words, widths, bars.
//
// Widths are columns on the screen, not bytes: a UTF-8 sequence counts one, East Asian wide characters two.
// Text from the user passes through clean(), so a control character cannot reach the terminal.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/parallel/layout.hpp"
#include "models/program/account.hpp"

namespace fabricast::report {

std::string grouped(double value);            ///< 614302.4 -> "614 302"
std::string percent(double fraction);         ///< 0.4614 -> "46.1 %", 0.0002 -> "<0.1 %"
std::string signed_percent(double fraction);  ///< 0.124 -> "+12.4 %"
std::string duration(double seconds);         ///< "3.412 s", "812.4 ms", "45.1 us"
std::string gib(std::int64_t bytes);          ///< "61.2" (2^30)
std::string decimal_bytes(double bytes);      ///< "4.37 GB" (10^9)
std::string magnitude(double value);          ///< "3.50 T", "1.25 M", "812"

std::string_view account_text(Account account);  ///< "gradient reduction, exposed"
std::string_view memory_cause_text(MemoryCause cause);
std::string_view precision_text(Precision precision);
/// "tp 8 sp, pp 2, dp 64, zero 1"; sizes of one are left out.
std::string layout_text(const Layout& layout);

/// A path as given, but never one that names the machine.
std::string portable_path(const std::string& path);
/// A word of a command line as a shell takes it: in quotes where it must be.
std::string shell_word(const std::string& text);

std::size_t width(std::string_view text);
std::string clean(std::string_view text);                      ///< control characters become spaces
std::string clip(std::string_view text, std::size_t columns);  ///< ends in an ellipsis when it was longer
std::string pad_right(std::string_view text, std::size_t columns);
std::string pad_left(std::string_view text, std::size_t columns);
/// Cut at spaces into lines of at most `columns`.
std::vector<std::string> wrap(std::string_view text, std::size_t columns);
std::string to_ascii(std::string_view text);  ///< as many columns, so that alignment stays
/// A horizontal bar of fraction x columns in eighths.
std::string bar(double fraction, std::size_t columns);

}  // namespace fabricast::report
