#include "sim/import/tree.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <set>
#include <sstream>
#include <utility>

#include <fmt/format.h>
#include <toml++/toml.h>
#include <yaml-cpp/yaml.h>
#include <nlohmann/json.hpp>

namespace fabricast::import {
namespace {

using Json = nlohmann::ordered_json;

Tree scalar(std::string text, int line, bool quoted = false) {
    Tree t;
    t.kind = Tree::Kind::scalar;
    t.text = std::move(text);
    t.line = line;
    t.quoted = quoted;
    return t;
}

Tree from_yaml(const YAML::Node& node, const std::string& file, std::vector<std::string>& told) {
    Tree t;
    t.line = node.Mark().line + 1;
    if (node.IsScalar()) {
        const bool quoted = node.Tag() == "!";
        const std::string& text = node.Scalar();
        if (!quoted && (text == "null" || text == "~" || text == "Null" || text == "NULL"))
            return t;
        return scalar(text, t.line, quoted);
    }
    if (node.IsSequence()) {
        t.kind = Tree::Kind::list;
        for (const YAML::Node& item : node)
            t.items.push_back(from_yaml(item, file, told));
    } else if (node.IsMap()) {
        t.kind = Tree::Kind::map;
        for (const auto& entry : node) {
            const std::string key = entry.first.IsScalar() ? entry.first.Scalar() : std::string("?");
            if (const Tree* earlier = t.find(key))
                told.push_back(fmt::format("{}:{}: key `{}` is there already at line {}; the later one counts", file,
                                           entry.first.Mark().line + 1, key, earlier->line));
            t.members.push_back({key, from_yaml(entry.second, file, told)});
            Tree& value = t.members.back().value;
            value.line = entry.first.Mark().line + 1;
        }
    }
    return t;
}

Tree from_json(const Json& value) {
    Tree t;
    if (value.is_object()) {
        t.kind = Tree::Kind::map;
        for (const auto& [key, inner] : value.items())
            t.members.push_back({key, from_json(inner)});
    } else if (value.is_array()) {
        t.kind = Tree::Kind::list;
        for (const Json& item : value)
            t.items.push_back(from_json(item));
    } else if (value.is_string()) {
        return scalar(value.get<std::string>(), 0, true);
    } else if (!value.is_null()) {
        return scalar(value.dump(), 0);
    }
    return t;
}

Tree from_toml(const toml::node& node) {
    Tree t;
    t.line = static_cast<int>(node.source().begin.line);
    if (const toml::table* table = node.as_table()) {
        t.kind = Tree::Kind::map;
        for (const auto& [key, value] : *table)
            t.members.push_back({std::string(key.str()), from_toml(value)});
    } else if (const toml::array* array = node.as_array()) {
        t.kind = Tree::Kind::list;
        for (const toml::node& item : *array)
            t.items.push_back(from_toml(item));
    } else if (const auto* text = node.as_string()) {
        return scalar(text->get(), t.line, true);
    } else if (const auto* whole = node.as_integer()) {
        return scalar(fmt::format("{}", whole->get()), t.line);
    } else if (const auto* real = node.as_floating_point()) {
        return scalar(fmt::format("{}", real->get()), t.line);
    } else if (const auto* flag = node.as_boolean()) {
        return scalar(flag->get() ? "true" : "false", t.line);
    } else {
        return scalar("(a date)", t.line, true);
    }
    return t;
}

bool any_read(const Tree& t) {
    if (t.read && t.kind != Tree::Kind::map)
        return true;
    return std::any_of(t.members.begin(), t.members.end(), [](const auto& m) { return any_read(m.value); });
}

void collect_unread(const Tree& t, const std::string& path, std::vector<std::string>& out) {
    for (const auto& [key, value] : t.members) {
        const std::string full = path.empty() ? key : path + "." + key;
        if (value.kind == Tree::Kind::map && any_read(value))
            collect_unread(value, full, out);
        else if (!value.read && !(value.kind == Tree::Kind::map && value.members.empty()))
            out.push_back(full);
    }
}

/// "<TP>", "%TP%", "{{tp}}", "XXX": what a template has where a value belongs.
bool placeholder(const std::string& text) {
    return (text.starts_with('<') && text.ends_with('>') && !text.starts_with("<|")) || text.starts_with("{{") ||
           (text.starts_with('%') && text.ends_with('%') && text.size() > 1);
}

}  // namespace

const Tree* Tree::find(std::string_view key) const {
    for (std::size_t i = members.size(); i-- > 0;)
        if (members[i].key == key)
            return &members[i].value;
    return nullptr;
}

Tree* Tree::find(std::string_view key) { return const_cast<Tree*>(std::as_const(*this).find(key)); }

Tree parse_yaml_tree(const std::string& text, const std::string& file, std::vector<std::string>& told) {
    try {
        const YAML::Node root = YAML::Load(text);
        Tree tree = from_yaml(root, file, told);
        if (tree.kind != Tree::Kind::map)
            throw ImportError(fmt::format("{}: a map of keys is expected here", file));
        return tree;
    } catch (const YAML::Exception& error) {
        throw ImportError(
            fmt::format("{}:{}:{}: not YAML: {}", file, error.mark.line + 1, error.mark.column + 1, error.msg));
    }
}

Tree parse_json_tree(const std::string& text, const std::string& file, std::vector<std::string>& told) {
    std::vector<std::set<std::string>> open;
    const auto watch = [&](int, Json::parse_event_t event, Json& parsed) {
        if (event == Json::parse_event_t::object_start)
            open.emplace_back();
        else if (event == Json::parse_event_t::object_end)
            open.pop_back();
        else if (event == Json::parse_event_t::key && !open.back().insert(parsed.get<std::string>()).second)
            told.push_back(fmt::format("{}: key `{}` appears twice in one map; the later one counts", file,
                                       parsed.get<std::string>()));
        return true;
    };
    try {
        Tree tree = from_json(Json::parse(text, watch));
        if (tree.kind != Tree::Kind::map)
            throw ImportError(fmt::format("{}: a map of keys is expected here", file));
        return tree;
    } catch (const Json::parse_error& error) {
        std::size_t at = std::min(error.byte > 0 ? error.byte - 1 : 0, text.size());
        const auto word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
        std::size_t begin = at, end = at;
        while (begin > 0 && word(text[begin - 1]))
            --begin;
        while (end < text.size() && word(text[end]))
            ++end;
        const std::string found = text.substr(begin, end - begin);
        const auto line = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(begin), '\n') + 1;
        const bool looks = !found.empty() && std::isupper(static_cast<unsigned char>(found[0]));
        throw ImportError(fmt::format(
            "{}:{}: not JSON from here on: found `{}`{}", file, line, found.empty() ? text.substr(at, 1) : found,
            looks ? "; this looks like a template whose values were never filled in; import the finished file" : ""));
    }
}

Tree parse_toml_tree(const std::string& text, const std::string& file) {
    try {
        return from_toml(toml::parse(text));
    } catch (const toml::parse_error& error) {
        throw ImportError(fmt::format("{}:{}:{}: not TOML: {}", file, error.source().begin.line,
                                      error.source().begin.column, error.description()));
    }
}

std::optional<std::int64_t> whole_number(std::string_view text) {
    std::string digits;
    for (const char c : text)
        if (c != '_')
            digits += c;
    if (digits.empty())
        return std::nullopt;
    std::int64_t value = 0;
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error == std::errc() && end == digits.data() + digits.size())
        return value;
    double real = 0;
    auto [stop, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), real);
    if (problem == std::errc() && stop == digits.data() + digits.size() && std::floor(real) == real &&
        std::abs(real) < 9e15)
        return static_cast<std::int64_t>(real);
    return std::nullopt;
}

std::optional<double> real_number(std::string_view text) {
    double real = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), real);
    return error == std::errc() && end == text.data() + text.size() ? std::optional(real) : std::nullopt;
}

std::vector<std::int64_t> gpus_in_comments(const std::string& text) {
    std::vector<std::int64_t> out;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        const std::size_t hash = line.find('#');
        if (hash == std::string::npos)
            continue;
        std::istringstream words(line.substr(hash + 1));
        std::vector<std::string> all;
        for (std::string word; words >> word;)
            all.push_back(word);
        for (std::size_t i = 0; i < all.size(); ++i) {
            if (!all[i].starts_with("GPUs") && !all[i].starts_with("gpus"))
                continue;
            for (std::size_t back = 1; back <= 2 && back <= i; ++back) {
                const auto count =
                    whole_number(all[i - back].starts_with('(') ? all[i - back].substr(1) : all[i - back]);
                if (count && *count > 0 && std::find(out.begin(), out.end(), *count) == out.end())
                    out.push_back(*count);
            }
        }
    }
    return out;
}

std::string Keys::where(const Tree& value) const {
    return value.line > 0 ? fmt::format("{}:{}", file_, value.line) : file_;
}

const Tree* Keys::at(std::string_view path) const {
    const Tree* node = &root_;
    while (node && !path.empty()) {
        const std::size_t dot = path.find('.');
        const std::string_view key = path.substr(0, dot);
        for (const auto& [name, value] : node->members)
            value.read = value.read || (name == key && dot == std::string_view::npos);  // earlier ones of that name too
        node = node->find(key);
        path = dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1);
    }
    if (!node)
        return nullptr;
    node->read = true;
    return node->kind == Tree::Kind::empty ? nullptr : node;
}

const Tree* Keys::usable(std::string_view path) const {
    const Tree* value = at(path);
    if (!value)
        return nullptr;
    std::string why;
    if (value->kind != Tree::Kind::scalar)
        why = "it is not a single value";
    else if (!value->unknown.empty())
        why = value->unknown;
    else if (value->text == "auto")
        why = "the trainer fills it in";
    else if (placeholder(value->text))
        why = "it is a placeholder";
    if (why.empty())
        return value->text.empty() ? nullptr : value;
    told_.push_back(fmt::format("{}: {}: {} is unknown here: {}", where(*value), path,
                                value->kind == Tree::Kind::scalar ? fmt::format("`{}`", value->text) : "the value",
                                why));
    return nullptr;
}

std::optional<std::string> Keys::text(std::string_view path) const {
    const Tree* value = usable(path);
    return value ? std::optional(value->text) : std::nullopt;
}

std::optional<std::int64_t> Keys::integer(std::string_view path) const {
    const Tree* value = usable(path);
    if (!value)
        return std::nullopt;
    const auto number = whole_number(value->text);
    if (!number)
        told_.push_back(
            fmt::format("{}: {}: `{}` is not a whole number and is left out", where(*value), path, value->text));
    return number;
}

std::optional<double> Keys::number(std::string_view path) const {
    const Tree* value = usable(path);
    if (!value)
        return std::nullopt;
    const auto real = real_number(value->text);
    if (!real)
        told_.push_back(fmt::format("{}: {}: `{}` is not a number and is left out", where(*value), path, value->text));
    return real;
}

std::optional<bool> Keys::flag(std::string_view path) const {
    const Tree* value = usable(path);
    if (!value)
        return std::nullopt;
    std::string word = value->text;
    std::transform(word.begin(), word.end(), word.begin(), [](unsigned char c) { return std::tolower(c); });
    if (word == "true" || word == "yes" || word == "on" || word == "1")
        return true;
    if (word == "false" || word == "no" || word == "off" || word == "0" || word == "none")
        return false;
    told_.push_back(
        fmt::format("{}: {}: `{}` is neither true nor false and is left out", where(*value), path, value->text));
    return std::nullopt;
}

std::vector<std::string> Keys::unread() const {
    std::vector<std::string> out;
    collect_unread(root_, "", out);
    return out;
}

}  // namespace fabricast::import
