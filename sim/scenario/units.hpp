// Numbers and quantities as people type them: "400 Gb/s", "80 GiB", "3.5 Ttokens", "1.90 USD/GPU-h".
//
// A quantity is a decimal number, optional blanks, a unit. Base units: rate byte/s, size byte, time s, power W,
// flops FLOP/s, tokens and sequences as counts, price money per GPU-hour. k M G T P are powers of ten, Ki Mi Gi
// Ti powers of two; b is a bit, B a byte, and case matters for nothing else: where only the case is wrong, the
// message names the candidates. Not accepted: 1_000, 1,5, 0x10, 012 (octal to some readers), inf, nan.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fabricast {

enum class Dimension : std::uint8_t { none, rate, size, time, power, flops, tokens, sequences, batch, price };

std::string_view dimension_name(Dimension d);      ///< "a rate"
std::string_view accepted_units(Dimension d);      ///< "kb/s Mb/s Gb/s ..." for messages
std::vector<std::string> unit_names(Dimension d);  ///< every spelling, for the schema; batch: tokens and sequences

struct Quantity {
    double value = 0;  ///< in base units
    Dimension dimension = Dimension::none;
    std::string unit;  ///< as typed; for a price the currency
};

/// Without blanks and line ends around it: of values, not of logs (sim/observed).
std::string_view without_blanks(std::string_view text);

/// A plain decimal number. Nothing and a sentence part in `problem` ("has an underscore; write 1000") otherwise.
std::optional<double> parse_number(std::string_view text, std::string& problem);

/// Same for a whole number (4.5e3 is one).
std::optional<std::int64_t> parse_integer(std::string_view text, std::string& problem);

/// A quantity of `wanted` (batch: tokens or sequences). `example` is a unit to suggest when there is none.
/// Tokens may be plain numbers. `problem` continues a sentence that starts with the value.
std::optional<Quantity> parse_quantity(std::string_view text, Dimension wanted, std::string_view example,
                                       std::string& problem);

}  // namespace fabricast
