// How builders refuse: std::invalid_argument with the field, its value and what is allowed.
#pragma once

#include <cmath>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

namespace fabricast {

/// Links and ids of a cluster this large still fit 32 bits with room.
inline constexpr std::uint64_t kMaxGpus = 1u << 26;

template <typename... Args>
[[noreturn]] void refuse_build(fmt::format_string<Args...> text, Args&&... args) {
    throw std::invalid_argument(fmt::format(text, std::forward<Args>(args)...));
}

inline void check_not_negative(const char* field, double value) {
    if (!(value >= 0) || !std::isfinite(value)) {
        refuse_build("{} {}: must be a number, 0 or more", field, value);
    }
}

inline void check_positive(const char* field, double value, const char* why) {
    check_not_negative(field, value);
    if (value == 0) {
        refuse_build("{} 0: must be above 0 {}", field, why);
    }
}

}  // namespace fabricast
