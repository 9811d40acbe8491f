// JSON Schema (draft 7) of the scenario file, made from the field table.
//
// For editors: completion and first checks. Nothing is `required`, because a file may extend another. What a
// schema cannot say (products, divisibility, catalogue figures) is checked by load_scenario alone.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/scenario/fields.hpp"
#include "sim/scenario/scenario.hpp"

namespace fabricast {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kNumberPattern = R"([+]?[0-9]*\.?[0-9]+([eE][+-]?[0-9]+)?)";

/// Draft 7 knows exclusive bounds; those of the table that are only guards against nonsense are left out.
void bounds(const Field& field, Json& type) {
    if (field.positive)
        type["exclusiveMinimum"] = 0;
    else
        type["minimum"] = static_cast<std::int64_t>(field.low);
    if (field.high < 1e15 && field.high == std::floor(field.high))
        type["maximum"] = static_cast<std::int64_t>(field.high);
    else if (field.high < 1e15)
        type["maximum"] = field.high;
}

Json quantity_schema(const Field& field) {
    std::string units;
    for (const std::string& unit : unit_names(field.dimension))
        units += (units.empty() ? "" : "|") + unit;
    if (field.dimension == Dimension::price)
        units = "[A-Z]{3}/GPU-h(our)?";
    Json text = {{"type", "string"}, {"pattern", fmt::format("^{} *({})$", kNumberPattern, units)}};
    if (field.dimension != Dimension::tokens && field.dimension != Dimension::sequences)
        return text;
    return {{"anyOf", Json::array({text, {{"type", "number"}, {"exclusiveMinimum", 0}}})}};
}

Json value_schema(const Field& field);

Json section_schema(std::string_view path) {
    Json properties = Json::object();
    for (const std::string& name : child_names(path)) {
        const std::string child = path.empty() ? name : fmt::format("{}.{}", path, name);
        properties[name] = value_schema(*find_field(child));
    }
    return {{"type", "object"}, {"properties", properties}, {"additionalProperties", false}};
}

Json value_schema(const Field& field) {
    Json schema;
    switch (field.kind) {
        case FieldKind::section: {
            schema = section_schema(field.path);
            if (!field.shorthand.empty()) {
                const Field* inner = find_field(fmt::format("{}.{}", field.path, field.shorthand));
                schema = {{"anyOf", Json::array({value_schema(*inner), schema})}};
                if (!field.list_shorthand.empty())
                    schema["anyOf"].push_back(
                        value_schema(*find_field(fmt::format("{}.{}", field.path, field.list_shorthand))));
            }
            break;
        }
        case FieldKind::open_map:
            schema = {{"type", "object"}, {"additionalProperties", {{"type", {"string", "number", "boolean"}}}}};
            break;
        case FieldKind::list:
            schema = {{"type", "array"}, {"items", section_schema(fmt::format("{}[]", field.path))}};
            break;
        case FieldKind::text: schema = {{"type", {"string", "number"}}}; break;
        case FieldKind::flag: schema = {{"type", "boolean"}}; break;
        case FieldKind::integer:
            schema = {{"type", "integer"}};
            bounds(field, schema);
            break;
        case FieldKind::number:
            schema = {{"type", "number"}};
            bounds(field, schema);
            break;
        case FieldKind::quantity: schema = quantity_schema(field); break;
        case FieldKind::choice:
        case FieldKind::preset: schema = {{"enum", allowed_words(field)}}; break;
        case FieldKind::integers:
        case FieldKind::words: {
            Json item = {{"type", field.kind == FieldKind::integers ? "integer" : "string"}};
            if (field.kind == FieldKind::integers)
                bounds(field, item);
            else if (!field.allowed.empty())
                item = {{"enum", allowed_words(field)}};
            schema = {{"anyOf", Json::array({item, {{"type", "array"}, {"items", item}, {"minItems", 1}}})}};
            break;
        }
        case FieldKind::range:
        case FieldKind::numbers: {
            Json item = {{"type", "number"}};
            bounds(field, item);
            schema = {{"type", "array"},
                      {"items", item},
                      {"minItems", field.kind == FieldKind::range ? 2
                                   : field.clears                 ? 0
                                                                  : 1}};
            if (field.kind == FieldKind::range)
                schema["maxItems"] = 2;
            break;
        }
    }
    schema["description"] = field.doc;
    if (field.fallback.empty())
        return schema;
    if (field.kind == FieldKind::flag)
        schema["default"] = field.fallback == "true";
    else if (field.kind == FieldKind::integer)
        schema["default"] = Json::parse(field.fallback);
    else
        schema["default"] = field.fallback;
    return schema;
}

}  // namespace

std::string scenario_schema() {
    Json schema = {{"$schema", "http://json-schema.org/draft-07/schema#"}, {"title", "Fabricast scenario"}};
    schema.update(section_schema(""));
    return schema.dump(2) + "\n";
}

}  // namespace fabricast
