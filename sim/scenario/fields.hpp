// The one table of everything a scenario file may say. The reader checks against it, the defaults come from it,
// the JSON Schema is made from it, the documentation quotes it.
//
// A path is dotted; `[]` stands for the items of a list, `*` for any key. Parents come before children, and
// siblings in the order in which a person would write them. A section with a `shorthand` may be written as one
// scalar: `node: hgx-h800` means `node: {preset: hgx-h800}`. Bounds are in base units (units.hpp), inclusive,
// and exclusive below where `positive` is set.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/scenario/units.hpp"

namespace fabricast {

enum class FieldKind : std::uint8_t {
    section,   ///< map of fields
    open_map,  ///< map with free keys and scalar values
    list,      ///< list of sections (children under `path[]`)
    text,      ///< any scalar
    flag,      ///< true or false
    integer,
    number,
    quantity,
    choice,    ///< one of `allowed`
    preset,    ///< a name in the catalogue that `allowed` names
    range,     ///< [low, high]
    numbers,   ///< list of positive numbers
    integers,  ///< list of whole numbers; a single one will do
    words,     ///< list of texts, of `allowed` where it is set; a single one will do
};

enum class Use : std::uint8_t {
    step,         ///< acts on a step forecast
    later,        ///< checked and accepted; a note says that a step forecast does not use it
    unsupported,  ///< refused; `doc` says why
};

struct Field {
    std::string_view path;
    FieldKind kind = FieldKind::section;
    std::string_view doc;
    std::string_view fallback = {};  ///< default as one would type it; empty: none, or derived
    std::string_view allowed = {};   ///< choice: "a|b|c"; preset: "nodes", "gpus", "networks", "models", "software"
    Dimension dimension = Dimension::none;
    std::string_view example = {};  ///< unit to suggest
    double low = 0, high = 1e18;
    bool positive = false;
    std::string_view shorthand = {};  ///< section: key a scalar stands for
    bool clears = false;              ///< numbers: [] is taken, and says what absent says
    bool replace = false;             ///< section: `extends` and overrides replace it as a whole
    Use use = Use::step;
    std::string_view list_shorthand = {};  ///< section: key of the list that a bare list stands for
};

std::span<const Field> fields();
std::span<const Field> run_fields();     ///< the part below run and faults
std::span<const Field> plan_fields();    ///< the part below plan
std::span<const Field> expect_fields();  ///< below `expect`, and what follows it

/// nullptr when unknown. Wildcards match ("comm.env.NCCL_ALGO" finds "comm.env.*").
const Field* find_field(std::string_view path);

/// Last segment of a path ("tp").
std::string_view leaf_name(std::string_view path);

/// Keys allowed in the section at `path` ("" = top level), in table order; without unsupported ones.
std::vector<std::string> child_names(std::string_view path);

/// Allowed words of a choice or preset field.
std::vector<std::string> allowed_words(const Field& field);

}  // namespace fabricast
