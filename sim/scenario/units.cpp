#include "sim/scenario/units.hpp"

#include <array>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "sim/scenario/nearest.hpp"

namespace fabricast {
namespace {

struct Unit {
    std::string_view name;
    Dimension dimension;
    double factor, divisor = 1;
};

constexpr double kKi = 1024, kMi = kKi * 1024, kGi = kMi * 1024, kTi = kGi * 1024;

constexpr Unit kUnits[] = {
    {"b/s", Dimension::rate, 1, 8},       {"kb/s", Dimension::rate, 1e3, 8},      {"Mb/s", Dimension::rate, 1e6, 8},
    {"Gb/s", Dimension::rate, 1e9, 8},    {"Tb/s", Dimension::rate, 1e12, 8},     {"Mbit/s", Dimension::rate, 1e6, 8},
    {"Gbit/s", Dimension::rate, 1e9, 8},  {"Tbit/s", Dimension::rate, 1e12, 8},   {"Mbps", Dimension::rate, 1e6, 8},
    {"Gbps", Dimension::rate, 1e9, 8},    {"Tbps", Dimension::rate, 1e12, 8},     {"B/s", Dimension::rate, 1},
    {"kB/s", Dimension::rate, 1e3},       {"MB/s", Dimension::rate, 1e6},         {"GB/s", Dimension::rate, 1e9},
    {"TB/s", Dimension::rate, 1e12},      {"KiB/s", Dimension::rate, kKi},        {"MiB/s", Dimension::rate, kMi},
    {"GiB/s", Dimension::rate, kGi},      {"TiB/s", Dimension::rate, kTi},        {"B", Dimension::size, 1},
    {"kB", Dimension::size, 1e3},         {"MB", Dimension::size, 1e6},           {"GB", Dimension::size, 1e9},
    {"TB", Dimension::size, 1e12},        {"KiB", Dimension::size, kKi},          {"MiB", Dimension::size, kMi},
    {"GiB", Dimension::size, kGi},        {"TiB", Dimension::size, kTi},          {"ns", Dimension::time, 1, 1e9},
    {"us", Dimension::time, 1, 1e6},      {"ms", Dimension::time, 1, 1e3},        {"s", Dimension::time, 1},
    {"min", Dimension::time, 60},         {"h", Dimension::time, 3600},           {"d", Dimension::time, 86400},
    {"W", Dimension::power, 1},           {"kW", Dimension::power, 1e3},          {"MW", Dimension::power, 1e6},
    {"GFLOP/s", Dimension::flops, 1e9},   {"TFLOP/s", Dimension::flops, 1e12},    {"PFLOP/s", Dimension::flops, 1e15},
    {"TFLOPS", Dimension::flops, 1e12},   {"PFLOPS", Dimension::flops, 1e15},     {"tokens", Dimension::tokens, 1},
    {"ktokens", Dimension::tokens, 1e3},  {"Mtokens", Dimension::tokens, 1e6},    {"Gtokens", Dimension::tokens, 1e9},
    {"Ttokens", Dimension::tokens, 1e12}, {"Kitokens", Dimension::tokens, kKi},   {"Mitokens", Dimension::tokens, kMi},
    {"token", Dimension::tokens, 1},      {"sequences", Dimension::sequences, 1}, {"sequence", Dimension::sequences, 1},
    {"samples", Dimension::sequences, 1},
};

bool fits(Dimension unit, Dimension wanted) {
    return unit == wanted ||
           (wanted == Dimension::batch && (unit == Dimension::tokens || unit == Dimension::sequences));
}

bool digit(char c) { return c >= '0' && c <= '9'; }

/// Length of the longest prefix that looks like a number, with the separators people type by mistake.
std::size_t number_length(std::string_view t) {
    std::size_t i = 0;
    if (i < t.size() && (t[i] == '+' || t[i] == '-'))
        ++i;
    const std::size_t begin = i;
    while (i < t.size() && (digit(t[i]) || t[i] == '.' || t[i] == '_' || t[i] == ','))
        ++i;
    if (t.substr(begin, i - begin).find_first_of("0123456789") == std::string_view::npos)
        return 0;
    if (i < t.size() && (t[i] == 'e' || t[i] == 'E')) {
        std::size_t k = i + 1;
        if (k < t.size() && (t[k] == '+' || t[k] == '-'))
            ++k;
        if (k < t.size() && digit(t[k])) {
            while (k < t.size() && digit(t[k]))
                ++k;
            i = k;
        }
    }
    return i;
}

/// The number in `part`, which number_length accepted as a whole.
std::optional<double> convert(std::string_view part, std::string& problem) {
    std::string clean;
    for (const char c : part)
        if (c != '_' && c != ',')
            clean += c;
    if (part.find('_') != std::string_view::npos) {
        problem = fmt::format("has an underscore; write {}", clean);
        return {};
    }
    if (part.find(',') != std::string_view::npos) {
        problem = "has a comma; write digits only, with a point before decimals";
        return {};
    }
    std::string_view t = part;
    const bool plus = t.front() == '+';
    if (plus)
        t.remove_prefix(1);
    const std::string_view unsigned_part = t.front() == '-' ? t.substr(1) : t;
    if (unsigned_part.size() > 1 && unsigned_part[0] == '0' && digit(unsigned_part[1])) {
        const std::size_t first = unsigned_part.find_first_not_of('0');
        const std::string_view rest =
            first == std::string_view::npos || !digit(unsigned_part[first]) ? "0" : unsigned_part.substr(first);
        problem = fmt::format("has a leading zero, which some readers take as octal; write {}", rest);
        return {};
    }
    double value = 0;
    const auto [end, error] = std::from_chars(t.data(), t.data() + t.size(), value);
    if (error == std::errc::result_out_of_range || (error == std::errc() && !std::isfinite(value))) {
        problem = "is out of the range of numbers";
        return {};
    }
    if (error != std::errc() || end != t.data() + t.size()) {
        problem = "is not a number";
        return {};
    }
    return value;
}

std::string unit_problem(std::string_view unit, Dimension wanted, std::string_view number, std::string_view example) {
    std::vector<std::string> case_only, all;
    for (const Unit& u : kUnits) {
        if (!fits(u.dimension, wanted))
            continue;
        all.emplace_back(u.name);
        if (u.name.size() == unit.size() && edit_distance(u.name, unit) == 0)
            case_only.push_back(fmt::format("{} {}", number, u.name));
    }
    if (case_only.size() == 1)
        return fmt::format("has the unknown unit `{}`; did you mean \"{}\"?", unit, case_only[0]);
    if (case_only.size() > 1)
        return fmt::format("has the unknown unit `{}`; b is bits and B is bytes: write \"{}\"", unit,
                           fmt::join(case_only, "\" or \""));
    const std::string near = nearest(unit, all);
    return fmt::format("has the unknown unit `{}`; write {} such as \"{} {}\" (accepted: {})", unit,
                       dimension_name(wanted), number, near.empty() ? std::string(example) : near,
                       accepted_units(wanted));
}

std::optional<Quantity> parse_price(std::string_view number, double value, std::string_view unit,
                                    std::string& problem) {
    const bool currency = unit.size() > 3 && unit[0] >= 'A' && unit[0] <= 'Z' && unit[1] >= 'A' && unit[1] <= 'Z' &&
                          unit[2] >= 'A' && unit[2] <= 'Z';
    const std::string_view rest = currency ? unit.substr(3) : std::string_view();
    if (rest == "/GPU-h" || rest == "/GPU-hour")
        return Quantity{value, Dimension::price, std::string(unit.substr(0, 3))};
    problem = unit.empty()
                  ? fmt::format("has no unit; write \"{} USD/GPU-h\" (any three-letter currency)", number)
                  : fmt::format("has the unknown unit `{}`; write \"{} USD/GPU-h\" (any three-letter currency)", unit,
                                number);
    return {};
}

}  // namespace

std::string_view without_blanks(std::string_view text) {
    while (!text.empty() && (text.front() == ' ' || text.front() == '\n'))
        text.remove_prefix(1);
    while (!text.empty() && (text.back() == ' ' || text.back() == '\n'))
        text.remove_suffix(1);
    return text;
}

std::string_view dimension_name(Dimension d) {
    switch (d) {
        case Dimension::none: return "a plain number";
        case Dimension::rate: return "a rate";
        case Dimension::size: return "a size";
        case Dimension::time: return "a time";
        case Dimension::power: return "a power";
        case Dimension::flops: return "a FLOP rate";
        case Dimension::tokens: return "a number of tokens";
        case Dimension::sequences: return "a number of sequences";
        case Dimension::batch: return "a number of sequences or tokens";
        case Dimension::price: return "a price";
    }
    return {};
}

std::string_view accepted_units(Dimension d) {
    switch (d) {
        case Dimension::none: return "none";
        case Dimension::rate:
            return "bits: kb/s Mb/s Gb/s Tb/s, bytes: kB/s MB/s GB/s TB/s, binary: KiB/s MiB/s GiB/s TiB/s";
        case Dimension::size: return "decimal: B kB MB GB TB, binary: KiB MiB GiB TiB";
        case Dimension::time: return "ns us ms s min h d";
        case Dimension::power: return "W kW MW";
        case Dimension::flops: return "GFLOP/s TFLOP/s PFLOP/s";
        case Dimension::tokens: return "tokens ktokens Mtokens Gtokens Ttokens Kitokens Mitokens";
        case Dimension::sequences: return "sequences samples";
        case Dimension::batch: return "sequences samples tokens ktokens Mtokens Kitokens Mitokens";
        case Dimension::price: return "USD/GPU-h, EUR/GPU-h ...";
    }
    return {};
}

std::vector<std::string> unit_names(Dimension d) {
    std::vector<std::string> names;
    for (const Unit& u : kUnits)
        if (fits(u.dimension, d))
            names.emplace_back(u.name);
    return names;
}

std::optional<double> parse_number(std::string_view text, std::string& problem) {
    const std::string_view t = without_blanks(text);
    const std::size_t n = number_length(t);
    if (n == 0) {
        problem = "is not a number";
        return {};
    }
    if (n < t.size()) {
        if (n + 1 < t.size() && (t[n] == 'x' || t[n] == 'o') && t[0] == '0')
            problem = "is not a decimal number; hexadecimal and octal are not read";
        else
            problem = fmt::format("has `{}` after the number; a plain number is needed here, without a unit",
                                  without_blanks(t.substr(n)));
        return {};
    }
    return convert(t, problem);
}

std::optional<std::int64_t> parse_integer(std::string_view text, std::string& problem) {
    const std::optional<double> value = parse_number(text, problem);
    if (!value)
        return {};
    if (*value < -9.0e15 || *value > 9.0e15) {
        problem = "is out of the range of whole numbers";
        return {};
    }
    const auto whole = static_cast<std::int64_t>(*value);
    if (static_cast<double>(whole) != *value) {
        problem = "is not a whole number";
        return {};
    }
    return whole;
}

std::optional<Quantity> parse_quantity(std::string_view text, Dimension wanted, std::string_view example,
                                       std::string& problem) {
    const std::string_view t = without_blanks(text);
    const std::size_t n = number_length(t);
    if (n == 0) {
        problem = fmt::format("is not {}; write one like \"400 {}\" (accepted: {})", dimension_name(wanted), example,
                              accepted_units(wanted));
        return {};
    }
    const std::string_view number = t.substr(0, n);
    const std::string_view unit = without_blanks(t.substr(n));
    const std::optional<double> value = convert(number, problem);
    if (!value)
        return {};
    if (wanted == Dimension::price)
        return parse_price(number, *value, unit, problem);
    if (unit.empty()) {
        if (wanted == Dimension::tokens || wanted == Dimension::sequences)
            return Quantity{*value, wanted, {}};
        problem = fmt::format("has no unit; write \"{} {}\" (accepted: {})", number, example, accepted_units(wanted));
        return {};
    }
    for (const Unit& u : kUnits) {
        if (u.name != unit)
            continue;
        if (fits(u.dimension, wanted))
            return Quantity{*value * u.factor / u.divisor, u.dimension, std::string(unit)};
        problem =
            fmt::format("is {}, but {} is needed here, such as \"{} {}\" (accepted: {})", dimension_name(u.dimension),
                        dimension_name(wanted), number, example, accepted_units(wanted));
        return {};
    }
    problem = unit_problem(unit, wanted, number, example);
    return {};
}

}  // namespace fabricast
