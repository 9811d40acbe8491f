// The reference of the scenario file as Markdown, made from the field table: scenarios/REFERENCE.md.
#include <fmt/format.h>

#include <algorithm>

#include "sim/scenario/fields.hpp"
#include "sim/scenario/scenario.hpp"

namespace fabricast {
namespace {

constexpr double kGuard = 1e6;  // bounds from here on only guard against nonsense

std::string joined(const std::vector<std::string>& words, std::string_view between) {
    std::string out;
    for (const std::string& word : words)
        out += (out.empty() ? "" : std::string(between)) + "`" + word + "`";
    return out;
}

std::string bounds_text(const Field& field) {
    const std::string low = field.positive ? "above 0" : field.low > 0 ? fmt::format("{:g} or more", field.low) : "";
    if (field.high >= kGuard)
        return low.empty() ? "" : ", " + low;
    return field.positive ? fmt::format(", above 0, up to {:g}", field.high)
                          : fmt::format(", {:g} to {:g}", field.low, field.high);
}

std::string quantity_text(const Field& field) {
    if (field.dimension == Dimension::price)
        return "price such as `1.90 USD/GPU-h`";
    std::vector<std::string> units = unit_names(field.dimension);
    std::string out = "number with unit: " + joined(units, " ");
    if (!field.example.empty() && std::find(units.begin(), units.end(), field.example) != units.end())
        out = fmt::format("number with unit, such as `{}`", field.example);
    return out;
}

std::string value_text(const Field& field) {
    switch (field.kind) {
        case FieldKind::section:
            return field.shorthand.empty() ? "section"
                                           : fmt::format("section; a bare value is its `{}`", field.shorthand);
        case FieldKind::open_map: return "section with free keys";
        case FieldKind::list: return "list of sections";
        case FieldKind::text: return "text";
        case FieldKind::flag: return "`true` or `false`";
        case FieldKind::integer: return "whole number" + bounds_text(field);
        case FieldKind::number: return "number" + bounds_text(field);
        case FieldKind::quantity: return quantity_text(field);
        case FieldKind::choice: return joined(allowed_words(field), ", ");
        case FieldKind::preset: return fmt::format("name of the catalogue: `fabricast presets`, {}", field.allowed);
        case FieldKind::range: return "`[low, high]`";
        case FieldKind::numbers: return "list of numbers";
        case FieldKind::integers: return "list of whole numbers" + bounds_text(field);
        case FieldKind::words:
            return field.allowed.empty() ? "list of words" : "list of " + joined(allowed_words(field), ", ");
    }
    return {};
}

std::string cell(std::string_view text) {
    std::string out;
    for (const char c : text) {
        if (c == '|')
            out += "\\|";
        else if (c == '<')
            out += "&lt;";
        else
            out += c;
    }
    return out;
}

void rows(std::string_view path, std::string& out) {
    for (const std::string& name : child_names(path)) {
        const std::string child = fmt::format("{}.{}", path, name);
        const Field& field = *find_field(child);
        out += fmt::format("| `{}` | {} | {} | {} |\n", child, cell(value_text(field)),
                           field.fallback.empty() ? "" : fmt::format("`{}`", cell(field.fallback)), cell(field.doc));
        if (field.kind == FieldKind::section)
            rows(child, out);
        if (field.kind == FieldKind::list)
            rows(child + "[]", out);
    }
}

}  // namespace

std::string scenario_reference() {
    std::string out =
        "# Scenario files\n\nEverything a scenario may say; made by `fabricast schema --markdown`. Paths are dotted, "
        "as "
        "`--set` takes them; `[]` is an item of a list. A key without a default is optional or follows from others; "
        "every "
        "value that is assumed is listed in the report with its source. A file may build on another with `extends`. GB "
        "is "
        "10^9 bytes, GiB 2^30, b bits, B bytes; units are never guessed. `fabricast schema` writes the same as JSON "
        "Schema "
        "for an editor, `fabricast presets --scenario llama3.1-8b` a commented file to start from.\n";
    std::string tops;
    for (const std::string& name : child_names("")) {
        const Field& field = *find_field(name);
        tops += fmt::format("| `{}` | {} | {} | {} |\n", name, cell(value_text(field)),
                            field.fallback.empty() ? "" : fmt::format("`{}`", cell(field.fallback)), cell(field.doc));
    }
    constexpr std::string_view kHead = "| key | value | default | what it is |\n|---|---|---|---|\n";
    out += fmt::format("\n## Top level\n\n{}{}", kHead, tops);
    for (const std::string& name : child_names("")) {
        const Field& field = *find_field(name);
        std::string table;
        if (field.kind == FieldKind::section)
            rows(name, table);
        if (field.kind == FieldKind::list)
            rows(name + "[]", table);
        if (!table.empty())
            out += fmt::format("\n## {}\n\n{}\n\n{}{}", name, cell(field.doc), kHead, table);
    }
    return out;
}

}  // namespace fabricast
