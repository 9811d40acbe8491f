// Text of a YAML file -> a tree of values that know where they were written.
//
// Built from yaml-cpp's event stream and not from its node tree, because the tree forgets duplicate keys and
// turns scalars into numbers by its own rules (012 is octal, yes is a boolean). Here a scalar stays text; the
// field table decides what it means. Refused with one sentence: bytes that are not UTF-8 text, more than 1 MiB,
// tabs in the indentation, several documents, duplicate keys, keys that are not plain text, merge keys `<<`.
#pragma once

#include <string>
#include <vector>

#include "sim/scenario/diagnostics.hpp"

namespace fabricast {

struct Member;

struct Value {
    enum class Kind { empty, scalar, list, map };
    Kind kind = Kind::empty;
    std::string text;     ///< scalar
    bool quoted = false;  ///< scalar in quotes or as a block: text, never a number
    Place place;
    std::vector<Value> items;     ///< list
    std::vector<Member> members;  ///< map, in file order, keys distinct

    const Member* find(const std::string& key) const;
    Member* find(const std::string& key);
    std::string what() const;  ///< "a list", "a map", "empty", or the scalar in back quotes
};

struct Member {
    std::string key;
    Place place;  ///< of the key
    Value value;
};

/// Parses one document. Errors go to `diagnostics`; the tree is then as good as it got.
/// An empty text gives Kind::empty.
Value parse_yaml(const std::string& text, const std::string& source, Diagnostics& diagnostics);

/// The value of an override: every place is `place`.
Value parse_yaml_value(const std::string& text, const Place& place, Diagnostics& diagnostics);

}  // namespace fabricast
