// Short forms to write entries of the field table with.
#pragma once

#include "sim/scenario/fields.hpp"

namespace fabricast::field_kinds {

using K = FieldKind;
using D = Dimension;

constexpr Field section(std::string_view path, std::string_view doc, std::string_view shorthand = {}) {
    return {.path = path, .kind = K::section, .doc = doc, .shorthand = shorthand};
}
constexpr Field text(std::string_view path, std::string_view doc, std::string_view fallback = {}) {
    return {.path = path, .kind = K::text, .doc = doc, .fallback = fallback};
}
constexpr Field flag(std::string_view path, std::string_view fallback, std::string_view doc) {
    return {.path = path, .kind = K::flag, .doc = doc, .fallback = fallback};
}
constexpr Field integer(std::string_view path, double low, double high, std::string_view fallback,
                        std::string_view doc) {
    return {.path = path, .kind = K::integer, .doc = doc, .fallback = fallback, .low = low, .high = high};
}
constexpr Field number(std::string_view path, double high, std::string_view fallback, std::string_view doc) {
    return {.path = path, .kind = K::number, .doc = doc, .fallback = fallback, .high = high, .positive = true};
}
constexpr Field quantity(std::string_view path, Dimension dimension, std::string_view example, double high,
                         std::string_view doc) {
    return {.path = path,
            .kind = K::quantity,
            .doc = doc,
            .dimension = dimension,
            .example = example,
            .high = high,
            .positive = true};
}
constexpr Field latency(std::string_view path, std::string_view doc) {
    return {.path = path, .kind = K::quantity, .doc = doc, .dimension = D::time, .example = "us", .high = 1};
}
constexpr Field choice(std::string_view path, std::string_view allowed, std::string_view fallback,
                       std::string_view doc) {
    return {.path = path, .kind = K::choice, .doc = doc, .fallback = fallback, .allowed = allowed};
}
constexpr Field preset(std::string_view path, std::string_view catalogue, std::string_view doc,
                       std::string_view fallback = {}) {
    return {.path = path, .kind = K::preset, .doc = doc, .fallback = fallback, .allowed = catalogue};
}
constexpr Field expected(std::string_view path, double high, std::string_view doc) {
    return {.path = path, .kind = K::range, .doc = doc, .high = high};
}
constexpr Field later(Field field) {
    field.use = Use::later;
    return field;
}
constexpr Field unsupported(std::string_view path, std::string_view why) {
    return {.path = path, .kind = K::text, .doc = why, .use = Use::unsupported};
}

/// A number that may be 0.
constexpr Field number_or_zero(std::string_view path, double high, std::string_view doc) {
    return {.path = path, .kind = K::number, .doc = doc, .high = high};
}
/// A time that may be 0.
constexpr Field time_or_zero(std::string_view path, std::string_view example, double high, std::string_view doc) {
    return {.path = path, .kind = K::quantity, .doc = doc, .dimension = D::time, .example = example, .high = high};
}

}  // namespace fabricast::field_kinds
