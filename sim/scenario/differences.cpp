#include "sim/scenario/differences.hpp"

#include <set>

#include "sim/scenario/check.hpp"
#include "sim/scenario/document.hpp"

namespace fabricast {
namespace {

Answers answers_of(const std::string& file, const std::vector<std::string>& overrides) {
    Diagnostics diagnostics;
    std::string text;
    read_file(file, {file, 0, 0}, text, diagnostics);
    diagnostics.throw_if_any();
    const Value root = assemble(text, file, overrides);
    std::vector<std::string> notes;
    Answers answers = check(root, diagnostics, notes);
    diagnostics.throw_if_any();
    return answers;
}

bool is_value(const Field& field) {
    return field.kind != FieldKind::section && field.kind != FieldKind::open_map && field.kind != FieldKind::list;
}

bool same(const Answer& a, const Answer& b) {
    if (a.text == b.text && a.numbers == b.numbers)
        return true;
    switch (a.field->kind) {
        case FieldKind::quantity: return a.number == b.number && a.integer == b.integer && a.dimension == b.dimension;
        case FieldKind::number: return a.number == b.number;
        case FieldKind::integer: return a.integer == b.integer;
        case FieldKind::flag: return a.flag == b.flag;
        case FieldKind::words: return a.words == b.words;
        case FieldKind::integers:
        case FieldKind::numbers:
        case FieldKind::range: return a.numbers == b.numbers;
        default: return false;
    }
}

std::string text_of(const Answer& answer) {
    if (answer.numbers.empty())
        return answer.text;
    std::string text;
    for (const double number : answer.numbers) {
        std::string digits = std::to_string(number);
        digits.erase(digits.find_last_not_of('0') + 1);
        if (digits.back() == '.')
            digits.pop_back();
        text += (text.empty() ? "[" : ", ") + digits;
    }
    return text + "]";
}

/// What a scenario says at a key, or the table's default.
struct Said {
    const Answer* answer = nullptr;
    std::string text = "-";
};

Said said(Answers& answers, const std::string& path, const Field& field) {
    if (const Answer* given = answers.given(path))
        return {given, text_of(*given)};
    if (field.fallback.empty())
        return {};
    const Answer& fallback = answers.get(path);
    return {&fallback, text_of(fallback) + " (default)"};
}

}  // namespace

std::vector<KeyDifference> differing_keys(const std::string& file_a, const std::vector<std::string>& overrides_a,
                                          const std::string& file_b, const std::vector<std::string>& overrides_b) {
    Answers a = answers_of(file_a, overrides_a), b = answers_of(file_b, overrides_b);
    std::set<std::string, std::less<>> given;
    for (const Answers* answers : {&a, &b}) {
        for (const auto& [path, answer] : answers->below("")) {
            const bool acts = path != "name" && path != "extends" && !path.starts_with("expect.");
            if (acts && is_value(*answer->field))
                given.insert(path);
        }
    }
    std::vector<KeyDifference> out;
    const auto compare = [&](const std::string& path, const Field& field) {
        const Said one = said(a, path, field), other = said(b, path, field);
        const bool equal = one.answer && other.answer ? same(*one.answer, *other.answer) : one.answer == other.answer;
        if (!equal)
            out.push_back({path, one.text, other.text});
    };
    for (const Field& field : fields()) {
        if (const auto at = given.find(field.path); at != given.end()) {
            compare(*at, field);
            given.erase(at);
        }
    }
    for (const std::string& path : given)  // below keys that are free, such as comm.env
        compare(path, *find_field(path));
    return out;
}

}  // namespace fabricast
