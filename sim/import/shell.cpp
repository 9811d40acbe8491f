#include "sim/import/shell.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "sim/import/shell_lexer.hpp"

namespace fabricast::import {
namespace {

enum class Truth { no, yes, open };

bool name_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }
bool known(const std::string& text) { return text.find('$') == std::string::npos; }

std::string base_name(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

class Reader {
public:
    Reader(std::string file, const std::map<std::string, std::string>& files,
           const std::map<std::string, std::string>& environment, std::vector<std::string> positional)
        : file_(std::move(file)), files_(files), positional_(std::move(positional)) {
        for (const auto& [name, value] : environment)
            values_[name] = {value};
    }

    void run(const std::vector<Statement>& all) { run(all, 0, all.size()); }

    ShellScript take() {
        script_.variables = flat();
        return std::move(script_);
    }

    std::optional<std::string> value(const std::string& name) const {
        const auto found = values_.find(name);
        if (found == values_.end())
            return std::nullopt;
        return found->second.empty() ? std::string() : found->second.front();
    }

    std::string expand_text(const std::string& raw) {
        std::string out;
        for (const std::string& field : expand("\"" + raw + "\""))
            out += (out.empty() ? "" : " ") + field;
        return out;
    }

private:
    using Fields = std::vector<std::string>;

    std::map<std::string, std::string> flat() const {
        std::map<std::string, std::string> out;
        for (const auto& [name, fields] : values_)
            out[name] = fields.empty() ? "" : fields.front();
        return out;
    }

    void tell(int line, const std::string& sentence) {
        const std::string text = fmt::format("{}:{}: {}", file_, line, sentence);
        if (std::find(script_.told.begin(), script_.told.end(), text) == script_.told.end())
            script_.told.push_back(text);
    }

    // --- statements -------------------------------------------------------------------------------------------------

    static const std::string& head(const Statement& s) {
        static const std::string none;
        return s.words.empty() ? none : s.words.front();
    }

    /// Index of the statement with one of `ends` on the level of `at`.
    static std::size_t find_end(const std::vector<Statement>& all, std::size_t at, std::size_t end,
                                const std::set<std::string>& ends) {
        int depth = 0;
        for (; at < end; ++at) {
            const std::string& word = head(all[at]);
            if (depth == 0 && ends.contains(word))
                return at;
            if (word == "if" || word == "case" || word == "do")
                ++depth;
            if (word == "fi" || word == "esac" || word == "done")
                --depth;
        }
        return end;
    }

    void run(const std::vector<Statement>& all, std::size_t at, std::size_t end) {
        while (at < end) {
            const std::string& word = head(all[at]);
            if (word == "if") {
                at = run_if(all, at, end);
            } else if (word == "case") {
                at = run_case(all, at, end);
            } else if (word == "for" || word == "while" || word == "until" || word == "select") {
                const std::size_t body = find_end(all, at, end, {"do"});
                const std::size_t done = find_end(all, std::min(body + 1, end), end, {"done"});
                tell(all[at].line, fmt::format("a loop (`{}`) is skipped", word));
                at = done + 1;
            } else {
                at = run_list(all, at, end);
            }
        }
    }

    /// a && b || c ...
    std::size_t run_list(const std::vector<Statement>& all, std::size_t at, std::size_t end) {
        Truth last = Truth::yes;
        std::string link;
        while (at < end) {
            const Statement& s = all[at];
            const bool skip = (link == "&&" && last != Truth::yes) || (link == "||" && last != Truth::no);
            if (skip && last == Truth::open && !is_test(s))
                tell(s.line, "a condition could not be decided; what hangs on it is left out");
            if (!skip)
                last = is_test(s) ? test(s.words) : (command(s), Truth::yes);
            link = s.end;
            ++at;
            if (link != "&&" && link != "||")
                break;
        }
        return at;
    }

    static bool is_test(const Statement& s) { return head(s) == "[" || head(s) == "[[" || head(s) == "test"; }

    Truth condition(const std::vector<Statement>& all, std::size_t at, std::size_t end) {
        Truth truth = Truth::open;
        std::string link;
        for (; at < end; ++at) {
            const Truth here = is_test(all[at]) ? test(all[at].words) : Truth::open;
            if (link == "&&")
                truth = truth == Truth::no || here == Truth::no     ? Truth::no
                        : truth == Truth::yes && here == Truth::yes ? Truth::yes
                                                                    : Truth::open;
            else if (link == "||")
                truth = truth == Truth::yes || here == Truth::yes ? Truth::yes
                        : truth == Truth::no && here == Truth::no ? Truth::no
                                                                  : Truth::open;
            else
                truth = here;
            link = all[at].end;
        }
        return truth;
    }

    std::size_t run_if(const std::vector<Statement>& all, std::size_t at, std::size_t end) {
        const std::size_t fi = find_end(all, at + 1, end, {"fi"});
        bool decided = false;
        while (at < fi) {
            const std::size_t then = find_end(all, at + 1, fi, {"then"});
            const std::size_t next = find_end(all, std::min(then + 1, fi), fi, {"elif", "else"});
            const Truth truth = condition(all, at + 1, then);
            if (truth == Truth::open) {
                std::string text;
                for (std::size_t i = at + 1; i < then; ++i)
                    for (const std::string& word : all[i].words)
                        text += (text.empty() ? "" : " ") + word;
                tell(all[at].line, fmt::format("condition `{}` could not be decided; its branch is left out", text));
            }
            if (truth == Truth::yes && !decided) {
                run(all, then + 1, next);
                decided = true;
            }
            at = next;
            if (at < fi && head(all[at]) == "else") {
                if (!decided)
                    run(all, at + 1, fi);
                break;
            }
        }
        return fi + 1;
    }

    std::size_t run_case(const std::vector<Statement>& all, std::size_t at, std::size_t end) {
        const std::size_t esac = find_end(all, at + 1, end, {"esac"});
        const std::string subject = all[at].words.size() > 1 ? joined(expand(all[at].words[1])) : "";
        bool done = false;
        std::size_t i = at + 1;
        while (i < esac) {
            bool matches = false;
            while (i < esac) {
                for (const std::string& pattern : all[i].words) {
                    const std::string text = joined(expand(pattern));
                    matches = matches || text == "*" || (known(subject) && text == subject);
                }
                const bool last = all[i].end == ")";
                ++i;
                if (last)
                    break;
            }
            std::size_t stop = i;
            while (stop < esac && all[stop].end != ";;")
                ++stop;
            const std::size_t body_end = std::min(stop + 1, esac);
            if (matches && !done) {
                if (!known(subject))
                    tell(all[at].line,
                         fmt::format("case of `{}`, which is not known; the general branch is taken", subject));
                run(all, i, body_end);
                done = true;
            }
            i = body_end;
        }
        return esac + 1;
    }

    // --- commands ---------------------------------------------------------------------------------------------------

    static std::size_t assignment(const std::string& word) {
        std::size_t i = 0;
        while (i < word.size() && name_char(word[i]))
            ++i;
        if (i == 0 || std::isdigit(static_cast<unsigned char>(word[0])))
            return 0;
        if (i < word.size() && word[i] == '+')
            ++i;
        return i < word.size() && word[i] == '=' ? i : 0;
    }

    void assign(const std::string& word, std::size_t equals) {
        const bool append = word[equals - 1] == '+';
        const std::string name = word.substr(0, append ? equals - 1 : equals);
        const std::string raw = word.substr(equals + 1);
        Fields fields;
        if (raw.starts_with('(')) {
            const std::string inner = raw.substr(1, raw.size() - 2);
            for (const Statement& s : lex_shell(inner))
                for (const std::string& item : s.words)
                    for (std::string& field : expand(item))
                        fields.push_back(std::move(field));
            Fields& target = values_[name];
            if (!append)
                target.clear();
            target.insert(target.end(), fields.begin(), fields.end());
            return;
        }
        std::string text = joined(expand_assignment(raw));
        if (append)
            text = value(name).value_or("") + text;
        values_[name] = {std::move(text)};
    }

    void command(const Statement& s) {
        std::vector<std::string> words = s.words;
        const std::set<std::string> declaring = {"export", "declare", "local", "readonly", "typeset"};
        if (!words.empty() && declaring.contains(words.front())) {
            for (std::size_t i = 1; i < words.size(); ++i)
                if (const std::size_t equals = assignment(words[i]))
                    assign(words[i], equals);
            return;
        }
        std::size_t first = 0;
        while (first < words.size() && assignment(words[first]) > 0)
            ++first;
        if (first == words.size()) {
            for (const std::string& word : words)
                assign(word, assignment(word));
            return;
        }
        const auto before = values_;
        for (std::size_t i = 0; i < first; ++i)
            assign(words[i], assignment(words[i]));
        words.erase(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(first));
        plain_command(s, words);
        if (first > 0)
            values_ = before;
    }

    void plain_command(const Statement& s, const std::vector<std::string>& words) {
        if (words.front() == "source" || words.front() == ".")
            return include(s, words);
        if (words.front() == "let") {
            for (std::size_t i = 1; i < words.size(); ++i) {
                const std::string text = joined(expand(words[i]));
                if (const std::size_t equals = assignment(text))
                    values_[text.substr(0, equals)] = {arithmetic(text.substr(equals + 1))};
            }
            return;
        }
        Launch launch;
        launch.line = s.line;
        std::string target;
        for (std::size_t i = 0; i < words.size(); ++i) {
            if (words[i] == ">") {
                if (i + 1 < words.size())
                    target = joined(expand(words[++i]));
                continue;
            }
            for (std::string& field : expand(words[i]))
                launch.words.push_back(std::move(field));
        }
        if (!s.document.empty()) {
            for (const std::string& word : launch.words)
                if (target.empty() && word.find('.') != std::string::npos)
                    target = word;
            script_.documents.emplace_back(target, s.literal ? s.document : expand_document(s.document));
        }
        launch.variables = flat();
        script_.commands.push_back(std::move(launch));
    }

    void include(const Statement& s, const std::vector<std::string>& words) {
        if (words.size() < 2)
            return;
        const std::string name = joined(expand(words[1]));
        const auto found = files_.find(base_name(name));
        if (found == files_.end()) {
            tell(s.line, fmt::format("`{}` is sourced and was not given; give it as a further file", name));
            return;
        }
        if (++depth_ < 16) {
            const std::vector<Statement> inner = lex_shell(found->second);
            run(inner, 0, inner.size());
        }
        --depth_;
    }

    std::string expand_document(const std::string& text) {
        std::string out;
        for (std::size_t i = 0; i < text.size();) {
            if (text[i] == '$') {
                std::vector<Fields> pieces;
                const std::size_t end = dollar(text, i, pieces);
                for (const Fields& fields : pieces)
                    out += joined(fields);
                i = end;
            } else {
                out += text[i++];
            }
        }
        return out;
    }

    // --- tests ------------------------------------------------------------------------------------------------------

    Truth test(const std::vector<std::string>& raw) {
        std::vector<std::string> words(raw.begin() + 1, raw.end());
        if (!words.empty() && (words.back() == "]" || words.back() == "]]"))
            words.pop_back();
        return either(words, 0, words.size());
    }

    Truth either(const std::vector<std::string>& w, std::size_t begin, std::size_t end) {
        for (const char* link : {"||", "-o", "&&", "-a"}) {
            for (std::size_t i = begin + 1; i + 1 < end; ++i) {
                if (w[i] != link)
                    continue;
                const Truth a = either(w, begin, i), b = either(w, i + 1, end);
                const Truth decisive = link[0] == '|' || link[1] == 'o' ? Truth::yes : Truth::no;
                if (a == decisive || b == decisive)
                    return decisive;
                return a == Truth::open || b == Truth::open ? Truth::open : a;
            }
        }
        if (begin < end && w[begin] == "!") {
            const Truth inner = either(w, begin + 1, end);
            return inner == Truth::open ? inner : inner == Truth::yes ? Truth::no : Truth::yes;
        }
        return single(w, begin, end);
    }

    Truth single(const std::vector<std::string>& w, std::size_t begin, std::size_t end) {
        const auto truth = [](bool b) { return b ? Truth::yes : Truth::no; };
        if (end - begin == 2 && (w[begin] == "-z" || w[begin] == "-n")) {
            unset_is_empty_ = true;
            const std::string text = joined(expand(w[begin + 1]));
            unset_is_empty_ = false;
            if (!known(text))
                return Truth::open;
            return truth(text.empty() == (w[begin] == "-z"));
        }
        if (end - begin == 1) {
            unset_is_empty_ = true;
            const std::string text = joined(expand(w[begin]));
            unset_is_empty_ = false;
            return known(text) ? truth(!text.empty()) : Truth::open;
        }
        if (end - begin != 3)
            return Truth::open;
        const std::string a = joined(expand(w[begin])), b = joined(expand(w[begin + 2]));
        const std::string& op = w[begin + 1];
        if (!known(a) || !known(b))
            return Truth::open;
        if (op == "=" || op == "==")
            return b.find('*') != std::string::npos ? Truth::open : truth(a == b);
        if (op == "!=")
            return b.find('*') != std::string::npos ? Truth::open : truth(a != b);
        std::int64_t x = 0, y = 0;
        const auto number = [](const std::string& text, std::int64_t& out) {
            const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), out);
            return error == std::errc() && stop == text.data() + text.size();
        };
        if (!number(a, x) || !number(b, y))
            return Truth::open;
        if (op == "-eq")
            return truth(x == y);
        if (op == "-ne")
            return truth(x != y);
        if (op == "-gt")
            return truth(x > y);
        if (op == "-ge")
            return truth(x >= y);
        if (op == "-lt")
            return truth(x < y);
        return op == "-le" ? truth(x <= y) : Truth::open;
    }

    // --- expansion --------------------------------------------------------------------------------------------------

    static std::string joined(const Fields& fields) {
        std::string out;
        for (std::size_t i = 0; i < fields.size(); ++i)
            out += (i ? " " : "") + fields[i];
        return out;
    }

    /// The right side of an assignment is not split.
    Fields expand_assignment(const std::string& raw) {
        const bool before = splitting_;
        splitting_ = false;
        Fields out = expand(raw);
        splitting_ = before;
        return out;
    }

    Fields expand(const std::string& raw) {
        Fields out;
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
                } else if (quoted && raw[i + 1] != '"' && raw[i + 1] != '$' && raw[i + 1] != '\\' &&
                           raw[i + 1] != '`') {
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
                    add(fields, quoted, field, has, out, push);
                i = end;
            } else {
                field += c;
                ++i;
            }
        }
        push();
        return out;
    }

    template <typename Push>
    void add(const Fields& fields, bool quoted, std::string& field, bool& has, Fields&, const Push& push) const {
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

    /// Expands what begins with `$` at `at`; returns the position behind it.
    std::size_t dollar(const std::string& raw, std::size_t at, std::vector<Fields>& out) {
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

    /// What stands in ${...}.
    Fields parameter(const std::string& body) {
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

    Fields defaulted(const std::string& name, const std::string& rest, std::size_t skip, bool missing,
                     const std::optional<Fields>& found) {
        if (!missing)
            return *found;
        const Fields fields = {joined(expand_assignment(rest.substr(skip)))};
        if (rest[skip - 1] == '=')
            values_[name] = fields;
        return fields;
    }

    std::optional<Fields> look_up(const std::string& name) const {
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

    // --- arithmetic: + - * / % and parentheses on integers -------------------------------------------------------------

    std::string arithmetic(const std::string& text) {
        std::size_t at = 0;
        const auto result = sum(text, at);
        while (at < text.size() && std::isspace(static_cast<unsigned char>(text[at])))
            ++at;
        return result && at == text.size() ? fmt::format("{}", *result) : "$((" + text + "))";
    }

    static void blanks(const std::string& text, std::size_t& at) {
        while (at < text.size() && std::isspace(static_cast<unsigned char>(text[at])))
            ++at;
    }

    std::optional<std::int64_t> sum(const std::string& text, std::size_t& at) {
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

    std::optional<std::int64_t> product(const std::string& text, std::size_t& at) {
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

    std::optional<std::int64_t> atom(const std::string& text, std::size_t& at) {
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

    std::string file_;
    const std::map<std::string, std::string>& files_;
    std::vector<std::string> positional_;
    std::map<std::string, Fields> values_;
    ShellScript script_;
    bool splitting_ = true, unset_is_empty_ = false;
    int depth_ = 0;
};

}  // namespace

ShellScript read_shell(const std::string& text, const std::string& file,
                       const std::map<std::string, std::string>& files,
                       const std::map<std::string, std::string>& environment,
                       const std::vector<std::string>& positional) {
    std::string clean;
    for (const char c : text.starts_with("\xEF\xBB\xBF") ? text.substr(3) : text)
        if (c != '\r')
            clean += c;
    Reader reader(file, files, environment, positional);
    reader.run(lex_shell(clean));
    return reader.take();
}

std::vector<std::string> shell_words(const std::string& text) {
    std::vector<std::string> out;
    for (const Statement& s : lex_shell(text))
        for (const std::string& word : s.words) {
            std::string plain;
            for (const char c : word)
                if (c != '"' && c != '\'')
                    plain += c;
            out.push_back(plain);
        }
    return out;
}

}  // namespace fabricast::import
