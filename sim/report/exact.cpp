#include "sim/report/exact.hpp"

#include <cstdint>
#include <limits>
#include <string>

namespace fabricast::report {
namespace {

std::string decimal(unsigned __int128 value) {
    std::string digits;
    do {
        digits.insert(digits.begin(), static_cast<char>('0' + static_cast<int>(value % 10)));
        value /= 10;
    } while (value != 0);
    return digits;
}

}  // namespace

nlohmann::ordered_json exact(__int128 value) {
    using Limits = std::numeric_limits<std::int64_t>;
    if (value >= Limits::min() && value <= Limits::max())
        return static_cast<std::int64_t>(value);
    const auto digits = [](__int128 v) { return decimal(static_cast<unsigned __int128>(v)); };
    return value < 0 ? "-" + digits(-value) : digits(value);
}

}  // namespace fabricast::report
