#include "sim/scenario/document.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "sim/scenario/fields.hpp"

namespace fabricast {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxFileBytes = 1 << 20;

std::string join(const std::string& path, const std::string& key) { return path.empty() ? key : path + "." + key; }

/// Writes the short form of a section out as a map.
void expand(Value& value, const std::string& path) {
    if (value.kind == Value::Kind::scalar) {
        const Field* field = find_field(path);
        if (!field || field->kind != FieldKind::section || field->shorthand.empty())
            return;
        Value inner = value;
        value = Value{};
        value.kind = Value::Kind::map;
        value.place = inner.place;
        value.members.push_back({std::string(field->shorthand), inner.place, std::move(inner)});
        return;
    }
    if (value.kind == Value::Kind::list) {
        const Field* field = find_field(path);
        if (!field || field->kind != FieldKind::section || field->list_shorthand.empty())
            return;
        Value inner = value;
        value = Value{};
        value.kind = Value::Kind::map;
        value.place = inner.place;
        value.members.push_back({std::string(field->list_shorthand), inner.place, std::move(inner)});
        return;
    }
    for (Member& member : value.members)
        expand(member.value, join(path, member.key));
}

void merge(Value& base, const Value& over, const std::string& path) {
    const Field* field = path.empty() ? nullptr : find_field(path);
    if (over.kind != Value::Kind::map || (field && field->replace)) {
        base = over;
        return;
    }
    expand(base, path);
    if (base.kind != Value::Kind::map) {
        base = over;
        return;
    }
    for (const Member& member : over.members) {
        if (Member* old = base.find(member.key)) {
            old->place = member.place;
            merge(old->value, member.value, join(path, member.key));
        } else {
            base.members.push_back(member);
        }
    }
}

bool require_map(const Value& root, Diagnostics& diagnostics) {
    if (root.kind == Value::Kind::map)
        return true;
    if (root.kind == Value::Kind::empty)
        diagnostics.error(root.place, "the scenario is empty; it needs at least cluster, model and training");
    else
        diagnostics.error(
            root.place,
            fmt::format("a scenario is a map of keys (cluster, model, training ...), but this is {}{}", root.what(),
                        root.kind == Value::Kind::scalar && root.text.find(':') != std::string::npos
                            ? "; a space is missing after the `:`"
                            : ""));
    return false;
}

Value read_chain(const std::string& text, const std::string& file, std::vector<std::string>& chain,
                 Diagnostics& diagnostics) {
    Value root = parse_yaml(text, file, diagnostics);
    diagnostics.throw_if_any();
    require_map(root, diagnostics);
    diagnostics.throw_if_any();
    Member* extends = root.find("extends");
    if (!extends)
        return root;
    const Place place = extends->value.place;
    if (extends->value.kind != Value::Kind::scalar || extends->value.text.empty()) {
        diagnostics.error(place,
                          fmt::format("extends: is {}; it needs the path of one scenario file", extends->value.what()));
        diagnostics.throw_if_any();
    }
    const fs::path target = (fs::path(file).parent_path() / extends->value.text).lexically_normal();
    std::error_code ignored;
    const std::string identity = fs::weakly_canonical(target, ignored).string();
    if (std::find(chain.begin(), chain.end(), identity) != chain.end())
        diagnostics.error(
            place, fmt::format("extends: `{}` leads back to a file that is already part of this scenario (a circle)",
                               extends->value.text));
    else if (chain.size() > 16)
        diagnostics.error(place, "extends: the chain of files is longer than 16");
    diagnostics.throw_if_any();
    chain.push_back(identity);
    std::string base_text;
    read_file(target.string(), place, base_text, diagnostics);
    diagnostics.throw_if_any();
    Value merged = read_chain(base_text, target.string(), chain, diagnostics);
    root.members.erase(root.members.begin() + (root.find("extends") - root.members.data()));
    merge(merged, root, "");
    return merged;
}

/// "a.b=c" as a tree {a: {b: c}}, all of it at the override's place.
void apply_override(Value& root, const std::string& option, Diagnostics& diagnostics) {
    const Place place{"--set " + option, 0, 0};
    const std::size_t equals = option.find('=');
    if (equals == std::string::npos || equals == 0) {
        diagnostics.error(place, "an override is KEY=VALUE, such as training.layout.tp=4");
        return;
    }
    const std::string path = option.substr(0, equals);
    Value value = parse_yaml_value(option.substr(equals + 1), place, diagnostics);
    if (!diagnostics.ok())
        return;
    if (path == "extends") {
        diagnostics.error(place, "extends can only be given in the file");
        return;
    }
    std::vector<std::string> keys;
    for (std::size_t begin = 0; begin <= path.size();) {
        const std::size_t dot = std::min(path.find('.', begin), path.size());
        keys.push_back(path.substr(begin, dot - begin));
        begin = dot + 1;
    }
    if (std::any_of(keys.begin(), keys.end(), [](const std::string& key) { return key.empty(); })) {
        diagnostics.error(place, fmt::format("`{}` has an empty part between dots", path));
        return;
    }
    for (std::size_t i = keys.size(); i-- > 0;) {
        Value outer;
        outer.kind = Value::Kind::map;
        outer.place = place;
        outer.members.push_back({keys[i], place, std::move(value)});
        value = std::move(outer);
    }
    merge(root, value, "");
}

}  // namespace

bool read_file(const std::string& path, const Place& blame, std::string& text, Diagnostics& diagnostics) {
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (!fs::exists(status)) {
        diagnostics.error(blame, fmt::format("there is no file `{}`", path));
        return false;
    }
    if (fs::is_directory(status)) {
        diagnostics.error(blame, fmt::format("`{}` is a directory, not a scenario file", path));
        return false;
    }
    std::ifstream in(path, std::ios::binary);
    if (!in) {
        diagnostics.error(blame, fmt::format("`{}` cannot be read", path));
        return false;
    }
    text.assign(kMaxFileBytes + 1, '\0');
    in.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(in.gcount()));
    if (text.size() > kMaxFileBytes) {
        diagnostics.error(blame, fmt::format("`{}` has more than 1 MiB; a scenario is smaller", path));
        return false;
    }
    return true;
}

Value assemble(const std::string& text, const std::string& file, const std::vector<std::string>& overrides) {
    Diagnostics diagnostics;
    std::error_code ignored;
    std::vector<std::string> chain = {fs::weakly_canonical(file, ignored).string()};
    Value root = read_chain(text, file, chain, diagnostics);
    for (const std::string& option : overrides)
        apply_override(root, option, diagnostics);
    diagnostics.throw_if_any();
    expand(root, "");
    root.place = {file, 1, 1};
    return root;
}

}  // namespace fabricast
