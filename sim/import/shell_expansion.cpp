#include "sim/import/shell_expansion.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>

#include <fmt/format.h>

#include "sim/import/shell_lexer.hpp"

namespace fabricast::import {
namespace {

bool name_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

}  // namespace

ShellExpansion::ShellExpansion(std::string file, const std::map<std::string, std::string>& environment,
                               Fields positional)
    : file_(std::move(file)), positional_(std::move(positional)) {
    for (const auto& [name, text] : environment)
        values_[name] = {text};
}

std::optional<std::string> ShellExpansion::value(const std::string& name) const {
    const auto found = values_.find(name);
    if (found == values_.end())
        return std::nullopt;
    return found->second.empty() ? std::string() : found->second.front();
}

template <typename Push>
void ShellExpansion::add(const Fields& fields, bool quoted, std::string& field, bool& has, const Push& push) const {
    for (std::size_t k = 0; k < fields.size(); ++k) {
        if (k > 0)
            push();
        const std::string& text = fields[k];
        if (quoted || !splitting_ || text.starts_with("$(")) {
            field += text;
            has = has || !text.empty();
            continue;
        }
        for (const char c : text) {
            if (c == ' ' || c == '\t' || c == '\n')
                push();
            else
                field += c;
        }
    }
}

std::string ShellExpansion::joined(const Fields& fields) {
    std::string out;
    for (std::size_t i = 0; i < fields.size(); ++i)
        out += (i ? " " : "") + fields[i];
    return out;
}

ShellExpansion::Fields ShellExpansion::expand_assignment(const std::string& raw) {
    const bool before = splitting_;
    splitting_ = false;
    Fields out = expand(raw);
    splitting_ = before;
    return out;
}

ShellExpansion::Fields ShellExpansion::expand(const std::string& raw) {
    Fields out;
    // A list in quotes that has nothing in it is no word at all.
    if (raw == "\"$@\"" || (raw.starts_with("\"${") && raw.ends_with("[@]}\"") && raw.find('}') == raw.size() - 2)) {
        std::vector<Fields> pieces;
        dollar(raw, 1, pieces);
        if (pieces.size() == 1 && pieces.front().empty())
            return out;
    }
    std::string field;
    bool has = false, quoted = false;
    const auto push = [&] {
        if (has || !field.empty())
            out.push_back(field);
        field.clear();
        has = false;
    };
    for (std::size_t i = 0; i < raw.size();) {
        const char c = raw[i];
        if (c == '\'' && !quoted) {
            const std::size_t end = skip_quoted(raw, i);
            field += raw.substr(i + 1, end - i - 2);
            has = true;
            i = end;
        } else if (c == '"') {
            quoted = !quoted;
            has = true;
            ++i;
        } else if (c == '\\' && i + 1 < raw.size()) {
            if (raw[i + 1] == '\n') {
                i += 2;
            } else if (quoted && raw[i + 1] != '"' && raw[i + 1] != '$' && raw[i + 1] != '\\' && raw[i + 1] != '`') {
                // In quotes a backslash before blanks and a line's end is meant as a continuation.
                std::size_t end = i + 1;
                while (end < raw.size() && (raw[end] == ' ' || raw[end] == '\t'))
                    ++end;
                if (end < raw.size() && raw[end] == '\n') {
                    i = end + 1;
                } else {
                    field += c;
                    ++i;
                }
            } else {
                field += raw[i + 1];
                i += 2;
            }
        } else if (c == '`') {
            const std::size_t end = skip_quoted(raw, i);
            field += "$(" + raw.substr(i + 1, end - i - 2) + ")";
            i = end;
        } else if (c == '$') {
            std::vector<Fields> pieces;
            const std::size_t end = dollar(raw, i, pieces);
            for (const Fields& fields : pieces)
                add(fields, quoted, field, has, push);
            i = end;
        } else {
            field += c;
            ++i;
        }
    }
    push();
    return out;
}

std::size_t ShellExpansion::dollar(const std::string& raw, std::size_t at, std::vector<Fields>& out) {
    if (at + 1 >= raw.size()) {
        out.push_back({"$"});
        return at + 1;
    }
    const char next = raw[at + 1];
    if (next == '(') {
        std::size_t end = at + 1;
        int depth = 0;
        for (; end < raw.size(); ++end) {
            depth += raw[end] == '(' ? 1 : raw[end] == ')' ? -1 : 0;
            if (depth == 0)
                break;
        }
        end = std::min(end + 1, raw.size());
        const std::string whole = raw.substr(at, end - at);
        if (whole.starts_with("$((") && whole.ends_with("))"))
            out.push_back({arithmetic(whole.substr(3, whole.size() - 5))});
        else
            out.push_back({whole});
        return end;
    }
    if (next == '[') {
        const std::size_t end = std::min(raw.find(']', at), raw.size() - 1);
        out.push_back({arithmetic(raw.substr(at + 2, end - at - 2))});
        return end + 1;
    }
    if (next == '{') {
        std::size_t end = at + 1;
        int depth = 0;
        for (; end < raw.size(); ++end) {
            depth += raw[end] == '{' ? 1 : raw[end] == '}' ? -1 : 0;
            if (depth == 0)
                break;
        }
        out.push_back(parameter(raw.substr(at + 2, end - at - 2)));
        return std::min(end + 1, raw.size());
    }
    std::size_t end = at + 1;
    if (std::isdigit(static_cast<unsigned char>(next)) || next == '@' || next == '*' || next == '#' || next == '?')
        ++end;
    else
        while (end < raw.size() && name_char(raw[end]))
            ++end;
    if (end == at + 1) {
        out.push_back({"$"});
        return end;
    }
    out.push_back(parameter(raw.substr(at + 1, end - at - 1)));
    return end;
}

ShellExpansion::Fields ShellExpansion::parameter(const std::string& body) {
    std::size_t i = 0;
    while (i < body.size() && name_char(body[i]))
        ++i;
    std::string name = body.substr(0, i);
    if (i == 0 && !body.empty() && (body[0] == '@' || body[0] == '*'))
        name = body.substr(0, ++i - 0);
    std::optional<Fields> found = look_up(name);
    std::string rest = body.substr(i);
    if (rest.starts_with("[")) {
        const std::size_t close = rest.find(']');
        const std::string index = rest.substr(1, close == std::string::npos ? 0 : close - 1);
        rest = close == std::string::npos ? "" : rest.substr(close + 1);
        std::size_t number = 0;
        const auto [stop, error] = std::from_chars(index.data(), index.data() + index.size(), number);
        if (found && error == std::errc() && stop == index.data() + index.size())
            found = number < found->size() ? Fields{(*found)[number]} : Fields{};
        else if (!found && (index == "@" || index == "*"))
            found = Fields{};
    } else if (found && found->size() > 1 && name != "@" && name != "*") {
        found = Fields{found->front()};
    }
    const bool empty = !found || found->empty() || (found->size() == 1 && found->front().empty());
    if (rest.starts_with(":-") || rest.starts_with(":="))
        return defaulted(name, rest, 2, empty, found);
    if (rest.starts_with("-") || rest.starts_with("="))
        return defaulted(name, rest, 1, !found, found);
    if (rest.starts_with(":+") || rest.starts_with("+"))
        return empty ? Fields{} : expand(rest.substr(rest[0] == ':' ? 2 : 1));
    if (!rest.empty() && !rest.starts_with(":?"))
        return {"${" + body + "}"};
    if (!found)
        return unset_is_empty_ ? Fields{} : Fields{"${" + name + "}"};
    return *found;
}

ShellExpansion::Fields ShellExpansion::defaulted(const std::string& name, const std::string& rest, std::size_t skip,
                                                 bool missing, const std::optional<Fields>& found) {
    if (!missing)
        return *found;
    const Fields fields = {joined(expand_assignment(rest.substr(skip)))};
    if (rest[skip - 1] == '=')
        values_[name] = fields;
    return fields;
}

std::optional<ShellExpansion::Fields> ShellExpansion::look_up(const std::string& name) const {
    if (name == "@" || name == "*")
        return positional_;
    if (!name.empty() && std::isdigit(static_cast<unsigned char>(name[0]))) {
        std::size_t number = 0;
        std::from_chars(name.data(), name.data() + name.size(), number);
        if (number == 0)
            return Fields{file_};
        if (number <= positional_.size())
            return Fields{positional_[number - 1]};
        return std::nullopt;
    }
    const auto found = values_.find(name);
    return found == values_.end() ? std::nullopt : std::optional(found->second);
}

std::string ShellExpansion::arithmetic(const std::string& text) {
    std::size_t at = 0;
    const auto result = sum(text, at);
    while (at < text.size() && std::isspace(static_cast<unsigned char>(text[at])))
        ++at;
    return result && at == text.size() ? fmt::format("{}", *result) : "$((" + text + "))";
}

void ShellExpansion::blanks(const std::string& text, std::size_t& at) {
    while (at < text.size() && std::isspace(static_cast<unsigned char>(text[at])))
        ++at;
}

std::optional<std::int64_t> ShellExpansion::sum(const std::string& text, std::size_t& at) {
    auto left = product(text, at);
    for (blanks(text, at); left && at < text.size() && (text[at] == '+' || text[at] == '-'); blanks(text, at)) {
        const char op = text[at++];
        const auto right = product(text, at);
        if (!right)
            return std::nullopt;
        left = op == '+' ? *left + *right : *left - *right;
    }
    return left;
}

std::optional<std::int64_t> ShellExpansion::product(const std::string& text, std::size_t& at) {
    auto left = atom(text, at);
    for (blanks(text, at); left && at < text.size() && (text[at] == '*' || text[at] == '/' || text[at] == '%');
         blanks(text, at)) {
        const char op = text[at++];
        const auto right = atom(text, at);
        if (!right || (op != '*' && *right == 0))
            return std::nullopt;
        std::int64_t out = 0;
        if (op == '*' && __builtin_mul_overflow(*left, *right, &out))
            return std::nullopt;
        left = op == '*' ? out : op == '/' ? *left / *right : *left % *right;
    }
    return left;
}

std::optional<std::int64_t> ShellExpansion::atom(const std::string& text, std::size_t& at) {
    blanks(text, at);
    if (at >= text.size())
        return std::nullopt;
    if (text[at] == '(') {
        ++at;
        const auto inner = sum(text, at);
        blanks(text, at);
        if (at < text.size() && text[at] == ')')
            ++at;
        return inner;
    }
    if (text[at] == '-') {
        ++at;
        const auto inner = atom(text, at);
        return inner ? std::optional(-*inner) : std::nullopt;
    }
    std::string word;
    if (text[at] == '$') {
        std::vector<Fields> pieces;
        at = dollar(text, at, pieces);
        word = pieces.empty() ? "" : joined(pieces.front());
    } else {
        const std::size_t begin = at;
        while (at < text.size() && name_char(text[at]))
            ++at;
        word = text.substr(begin, at - begin);
        if (!word.empty() && !std::isdigit(static_cast<unsigned char>(word[0])))
            word = value(word).value_or("$");
    }
    std::int64_t number = 0;
    const auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (word.empty() || error != std::errc() || stop != word.data() + word.size())
        return std::nullopt;
    return number;
}

}  // namespace fabricast::import
