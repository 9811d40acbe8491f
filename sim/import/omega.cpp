// OmegaConf interpolation: ${path}, ${.relative}, ${resolver:arguments}.
//
// Resolvers: oc.env, oc.decode, and the arithmetic NeMo registers (multiply, add, sub, div, floor_div, ceil_div, min, max,
// eq, neq, if). A reference may carry the configuration group as its first part (`training.model.x` in a file that is
// included as `training`). What cannot be filled in stays as it is, with the reason.
#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "sim/import/importers.hpp"

namespace fabricast::import {
namespace {

struct Value {
    std::string text;
    std::string unknown;  ///< reason; empty = known
};

class Resolver {
public:
    Resolver(const Tree& root, const std::map<std::string, std::string>& environment)
        : root_(root), environment_(environment) {}

    Value resolve(const std::string& text, const std::string& path) {
        if (++depth_ > 64) {
            --depth_;
            return {text, "it refers to itself"};
        }
        Value out;
        std::size_t at = 0;
        while (at < text.size()) {
            const std::size_t open = text.find("${", at);
            if (open == std::string::npos)
                break;
            const std::size_t close = matching(text, open + 2);
            if (close == std::string::npos)
                break;
            out.text += text.substr(at, open - at);
            const Value inner = expression(text.substr(open + 2, close - open - 2), path);
            out.text += inner.text;
            if (out.unknown.empty())
                out.unknown = inner.unknown;
            at = close + 1;
        }
        if (at < text.size())
            out.text += text.substr(at);
        --depth_;
        return out;
    }

    std::set<std::string> unset;

private:
    static std::size_t matching(const std::string& text, std::size_t at) {
        int open = 1;
        for (; at < text.size(); ++at) {
            open += text[at] == '{' ? 1 : text[at] == '}' ? -1 : 0;
            if (open == 0)
                return at;
        }
        return std::string::npos;
    }

    static std::vector<std::string> split(const std::string& text) {
        std::vector<std::string> parts(1);
        int open = 0;
        for (const char c : text) {
            open += c == '{' ? 1 : c == '}' ? -1 : 0;
            if (c == ',' && open == 0)
                parts.emplace_back();
            else
                parts.back() += c;
        }
        for (std::string& part : parts) {
            part.erase(0, std::min(part.find_first_not_of(' '), part.size()));
            while (!part.empty() && part.back() == ' ')
                part.pop_back();
            if (part.size() > 1 && part.front() == '\'' && part.back() == '\'')
                part = part.substr(1, part.size() - 2);
        }
        return parts;
    }

    Value expression(const std::string& body, const std::string& path) {
        int open = 0;
        for (std::size_t i = 0; i < body.size(); ++i) {
            open += body[i] == '{' ? 1 : body[i] == '}' ? -1 : 0;
            if (body[i] == ':' && open == 0)
                return call(body.substr(0, i), split(body.substr(i + 1)), path);
        }
        return reference(body, path);
    }

    Value reference(std::string name, const std::string& path) {
        if (name.starts_with('.')) {
            std::string base = path;
            while (name.starts_with('.')) {
                name.erase(0, 1);
                const std::size_t dot = base.rfind('.');
                base = dot == std::string::npos ? "" : base.substr(0, dot);
            }
            name = base.empty() ? name : base + "." + name;
        }
        const Tree* found = look_up(name);
        if (!found && name.find('.') != std::string::npos)
            found = look_up(name.substr(name.find('.') + 1));
        if (!found)
            return {"${" + name + "}", fmt::format("`{}` is not in this file", name)};
        if (found->kind == Tree::Kind::empty)
            return {"null", ""};
        if (found->kind != Tree::Kind::scalar)
            return {"${" + name + "}", fmt::format("`{}` is not a single value", name)};
        return resolve(found->text, name);
    }

    const Tree* look_up(const std::string& name) const {
        const Tree* node = &root_;
        for (std::size_t begin = 0; node && begin <= name.size();) {
            const std::size_t dot = std::min(name.find('.', begin), name.size());
            node = node->find(name.substr(begin, dot - begin));
            begin = dot + 1;
        }
        return node;
    }

    Value call(const std::string& name, const std::vector<std::string>& arguments, const std::string& path) {
        if (name == "oc.env") {
            const std::string key = resolve(arguments[0], path).text;
            const auto found = environment_.find(key);
            if (found != environment_.end())
                return {found->second, ""};
            if (arguments.size() > 1)
                return resolve(arguments[1], path);
            unset.insert(key);
            return {"${oc.env:" + key + "}", fmt::format("environment variable {} is not set and has no default", key)};
        }
        if (name == "oc.decode")
            return resolve(arguments[0], path);
        if (name == "if") {
            const Value condition = resolve(arguments[0], path);
            if (!condition.unknown.empty() || arguments.size() != 3)
                return condition;
            const bool on = condition.text == "true" || condition.text == "True" || condition.text == "1";
            return resolve(arguments[on ? 1 : 2], path);
        }
        std::vector<Value> values;
        for (const std::string& argument : arguments) {
            values.push_back(resolve(argument, path));
            if (!values.back().unknown.empty())
                return values.back();
        }
        if (values.size() == 2 && (name == "eq" || name == "neq"))
            return {(values[0].text == values[1].text) == (name == "eq") ? "True" : "False", ""};
        return arithmetic(name, values);
    }

    static Value arithmetic(const std::string& name, const std::vector<Value>& values) {
        const auto number = [](const std::string& text, double& out) {
            char* end = nullptr;
            out = std::strtod(text.c_str(), &end);
            return !text.empty() && *end == '\0';
        };
        double a = 0, b = 0;
        if (values.size() != 2 || !number(values[0].text, a) || !number(values[1].text, b))
            return {name, fmt::format("the resolver `{}` is not known or its arguments are no numbers", name)};
        const bool division = name == "div" || name == "floor_div" || name == "ceil_div";
        if (division && b == 0)
            return {name, "it divides by zero"};
        double out = 0;
        if (name == "multiply")
            out = a * b;
        else if (name == "add")
            out = a + b;
        else if (name == "sub")
            out = a - b;
        else if (name == "div")
            out = a / b;
        else if (name == "floor_div")
            out = std::floor(a / b);
        else if (name == "ceil_div")
            out = std::ceil(a / b);
        else if (name == "min")
            out = std::min(a, b);
        else if (name == "max")
            out = std::max(a, b);
        else
            return {name, fmt::format("the resolver `{}` is not known", name)};
        if (std::floor(out) == out && std::abs(out) < 9e15)
            return {fmt::format("{}", static_cast<std::int64_t>(out)), ""};
        return {fmt::format("{}", out), ""};
    }

    const Tree& root_;
    const std::map<std::string, std::string>& environment_;
    int depth_ = 0;
};

void fill(Tree& node, const std::string& path, Resolver& resolver) {
    if (node.kind == Tree::Kind::scalar && node.text.find("${") != std::string::npos) {
        const Value value = resolver.resolve(node.text, path);
        node.text = value.text;
        node.unknown = value.unknown;
        if (value.unknown.empty() && (value.text == "null" || value.text.empty()))
            node.kind = Tree::Kind::empty;
    }
    for (Tree& item : node.items)
        fill(item, path, resolver);
    for (auto& [key, value] : node.members)
        fill(value, path.empty() ? key : path + "." + key, resolver);
}

}  // namespace

std::vector<std::string> interpolate(Tree& root, const std::map<std::string, std::string>& environment) {
    const Tree original = root;
    Resolver resolver(original, environment);
    fill(root, "", resolver);
    return {resolver.unset.begin(), resolver.unset.end()};
}

}  // namespace fabricast::import
