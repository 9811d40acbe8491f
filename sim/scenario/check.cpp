#include "sim/scenario/check.hpp"

#include <cassert>

#include <fmt/format.h>

#include "sim/scenario/nearest.hpp"

namespace fabricast {
namespace {

constexpr std::size_t kMaxText = 200;

std::string join(const std::string& path, const std::string& key) { return path.empty() ? key : path + "." + key; }

std::string bound_text(double value) { return value >= 1e15 ? fmt::format("{:g}", value) : fmt::format("{}", value); }

/// Reads one value as its field wants it; errors name the path as the user knows it.
class ValueReader {
public:
    ValueReader(const Field& field, std::string path, Diagnostics& diagnostics)
        : field_(field), path_(std::move(path)), diagnostics_(diagnostics) {}

    bool read(const Value& value, Answer& answer) {
        answer.field = &field_;
        answer.place = value.place;
        if (value.kind == Value::Kind::empty)
            return fail(value, fmt::format("the value is missing; {}", wanted()));
        if (field_.kind == FieldKind::range || field_.kind == FieldKind::numbers)
            return read_list(value, answer);
        if (field_.kind == FieldKind::integers || field_.kind == FieldKind::words)
            return read_items(value, answer);
        if (value.kind != Value::Kind::scalar)
            return fail(value, fmt::format("is {}, but {}", value.what(), wanted()));
        answer.text = value.text;
        if (value.text.size() > kMaxText)
            return fail(value, fmt::format("is a text of {} characters; is a closing quotation mark missing?",
                                           value.text.size()));
        if (value.text.empty() && field_.path != "comm.env.*")
            return fail(value, fmt::format("the value is empty; {}", wanted()));
        switch (field_.kind) {
            case FieldKind::flag: return read_flag(value, answer);
            case FieldKind::integer: return read_integer(value, answer);
            case FieldKind::number: return read_number(value, answer);
            case FieldKind::quantity: return read_quantity(value, answer);
            case FieldKind::choice:
            case FieldKind::preset: return read_word(value, answer);
            default: return true;
        }
    }

private:
    bool fail(const Value& value, const std::string& sentence) {
        diagnostics_.error(value.place, fmt::format("{}: {}", path_, sentence));
        return false;
    }
    bool fail_typed(const Value& value, const std::string& problem) {
        return fail(value, fmt::format("`{}` {}", value.text, problem));
    }

    std::string wanted() const {
        switch (field_.kind) {
            case FieldKind::section: return fmt::format("it needs a map of keys: {}", listed(child_names(field_.path)));
            case FieldKind::open_map: return "it needs a map of names and values";
            case FieldKind::list: return "it needs a list";
            case FieldKind::text: return "it needs one word or text";
            case FieldKind::flag: return "it needs true or false";
            case FieldKind::integer: return "it needs a whole number";
            case FieldKind::number: return "it needs a number";
            case FieldKind::quantity:
                return fmt::format("it needs {}, such as \"400 {}\"", dimension_name(field_.dimension), field_.example);
            case FieldKind::choice:
            case FieldKind::preset: return fmt::format("it needs one of {}", listed(allowed_words(field_)));
            case FieldKind::range: return "it needs [low, high]";
            case FieldKind::numbers: return "it needs a list of numbers, such as [2, 4, 6]";
            case FieldKind::integers: return "it needs a list of whole numbers, such as [2, 4, 8]";
            case FieldKind::words:
                return field_.allowed.empty() ? std::string("it needs a list of texts")
                                              : fmt::format("it needs a list of {}", listed(allowed_words(field_)));
        }
        return {};
    }

    bool in_bounds(const Value& value, double number, std::string_view unit) {
        if (field_.positive && number <= 0)
            return fail_typed(value, "must be above 0");
        if (number < field_.low)
            return fail_typed(value, fmt::format("must be at least {}{}", bound_text(field_.low), unit));
        if (number > field_.high)
            return fail_typed(value, fmt::format("must be at most {}{}", bound_text(field_.high), unit));
        return true;
    }
    bool plain(const Value& value) {
        return !value.quoted ||
               fail_typed(value, fmt::format("is in quotes and so it is text; {}, without quotes", wanted()));
    }

    bool read_flag(const Value& value, Answer& answer) {
        if (!plain(value))
            return false;
        if (value.text == "true" || value.text == "false") {
            answer.flag = value.text == "true";
            return true;
        }
        static const std::vector<std::string> kYes = {"yes", "on", "True", "TRUE", "1", "Yes", "YES", "y", "On", "ON"};
        static const std::vector<std::string> kNo = {"no", "off", "False", "FALSE", "0", "No", "NO", "n", "Off", "OFF"};
        for (const std::string& word : kYes)
            if (value.text == word)
                return fail_typed(value, "is not true or false; write true");
        for (const std::string& word : kNo)
            if (value.text == word)
                return fail_typed(value, "is not true or false; write false");
        const std::vector<std::string> words = {"true", "false"};
        return fail_typed(value, fmt::format("is not true or false{}", did_you_mean(value.text, words)));
    }
    bool read_integer(const Value& value, Answer& answer) {
        std::string problem;
        if (!plain(value))
            return false;
        const auto number = parse_integer(value.text, problem);
        if (!number)
            return fail_typed(value, problem + (problem.starts_with("is not") ? "; " + wanted() : ""));
        answer.integer = *number;
        answer.number = static_cast<double>(*number);
        return in_bounds(value, answer.number, "");
    }
    bool read_number(const Value& value, Answer& answer) {
        std::string problem;
        if (!plain(value))
            return false;
        const auto number = parse_number(value.text, problem);
        if (!number) {
            if (value.text.ends_with("%"))
                problem = fmt::format("is a percentage; write a fraction, such as 0.9");
            return fail_typed(value, problem);
        }
        answer.number = *number;
        return in_bounds(value, *number, "");
    }
    bool read_quantity(const Value& value, Answer& answer) {
        std::string problem;
        const auto quantity = parse_quantity(value.text, field_.dimension, field_.example, problem);
        if (!quantity)
            return fail_typed(value, problem);
        answer.number = quantity->value;
        answer.dimension = quantity->dimension;
        answer.unit = quantity->unit;
        static constexpr std::string_view kBase[] = {"",        " byte/s", " byte",      " s", " W",
                                                     " FLOP/s", " tokens", " sequences", "",   ""};
        if (!in_bounds(value, answer.number, kBase[static_cast<std::size_t>(field_.dimension)]))
            return false;
        const bool count = field_.dimension == Dimension::tokens || field_.dimension == Dimension::sequences ||
                           field_.dimension == Dimension::batch;
        if (!count)
            return true;
        answer.integer = static_cast<std::int64_t>(answer.number);
        if (static_cast<double>(answer.integer) != answer.number)
            return fail_typed(value, "is not a whole number");
        return true;
    }
    bool read_word(const Value& value, Answer&) {
        const std::vector<std::string> words = allowed_words(field_);
        for (const std::string& word : words)
            if (word == value.text)
                return true;
        return fail_typed(value, fmt::format("is not one of {}{}", listed(words), did_you_mean(value.text, words)));
    }
    // A list of scalars, or one.
    bool read_items(const Value& value, Answer& answer) {
        const bool one = value.kind == Value::Kind::scalar;
        if (!one && (value.kind != Value::Kind::list || value.items.empty()))
            return fail(value, fmt::format("is {}, but {}", value.what(), wanted()));
        for (std::size_t i = 0; i < (one ? 1 : value.items.size()); ++i) {
            const Value& item = one ? value : value.items[i];
            if (item.kind != Value::Kind::scalar)
                return fail(item, fmt::format("is {} in the list, but {}", item.what(), wanted()));
            Answer single;
            const bool good = field_.kind == FieldKind::integers ? read_integer(item, single)
                              : !field_.allowed.empty()          ? read_word(item, single)
                                                                 : !item.text.empty() || fail(item, wanted());
            if (!good)
                return false;
            answer.numbers.push_back(single.number);
            answer.words.push_back(item.text);
            answer.text += (answer.text.empty() ? "" : ", ") + item.text;
        }
        if (field_.kind == FieldKind::words)
            answer.numbers.clear();
        return true;
    }
    bool read_list(const Value& value, Answer& answer) {
        const bool range = field_.kind == FieldKind::range;
        if (value.kind != Value::Kind::list || (range && value.items.size() != 2) ||
            (value.items.empty() && !field_.clears))
            return fail(value,
                        fmt::format("is {}{}, but {}", value.what(),
                                    value.kind == Value::Kind::list ? fmt::format(" of {}", value.items.size()) : "",
                                    wanted()));
        for (const Value& item : value.items) {
            if (item.kind != Value::Kind::scalar)
                return fail(item, fmt::format("is {} in the list, but {}", item.what(), wanted()));
            Answer one;
            if (!read_number(item, one))
                return false;
            answer.numbers.push_back(one.number);
        }
        if (range && answer.numbers[0] > answer.numbers[1])
            return fail(value,
                        fmt::format("the low end {} is above the high end {}", answer.numbers[0], answer.numbers[1]));
        return true;
    }

    const Field& field_;
    std::string path_;
    Diagnostics& diagnostics_;
};

class Checker {
public:
    Checker(std::map<std::string, Answer, std::less<>>& answers, Diagnostics& diagnostics,
            std::vector<std::string>& notes)
        : answers_(answers), diagnostics_(diagnostics), notes_(notes) {}

    /// `path` is the table's name of the section, `shown` the user's and that of its answers (they differ inside lists:
    /// "links[]", "links[3]").
    void section(const Value& value, const std::string& path, const std::string& shown) {
        for (const Member& member : value.members) {
            const Field* field = find_field(join(path, member.key));
            const bool open = path_is_open(path);
            if (!field || field->path.ends_with("*") != open || (!open && member.key.find('.') != std::string::npos)) {
                unknown_key(member, path, shown);
                continue;
            }
            if (field->use == Use::unsupported) {
                diagnostics_.error(member.place, fmt::format("{}: {}", join(shown, member.key), field->doc));
                continue;
            }
            if (field->use == Use::later)
                notes_.push_back(fmt::format("{}: accepted, not used by a step forecast", join(shown, member.key)));
            one(member, *field, join(path, member.key), join(shown, member.key));
        }
    }

private:
    static bool path_is_open(const std::string& path) {
        const Field* field = path.empty() ? nullptr : find_field(path);
        return field && field->kind == FieldKind::open_map;
    }

    void one(const Member& member, const Field& field, const std::string& path, const std::string& shown) {
        ValueReader reader(field, shown, diagnostics_);
        Answer answer;
        answer.field = &field;
        answer.place = member.place;
        if (field.kind == FieldKind::section || field.kind == FieldKind::open_map) {
            if (member.value.kind == Value::Kind::map) {
                answers_[shown] = answer;
                section(member.value, path, shown);
            } else {
                reject(member, field, shown);
            }
        } else if (field.kind == FieldKind::list) {
            if (member.value.kind != Value::Kind::list)
                return reject(member, field, shown);
            answer.integer = static_cast<std::int64_t>(member.value.items.size());
            answers_[shown] = answer;
            for (std::size_t i = 0; i < member.value.items.size(); ++i) {
                const Value& item = member.value.items[i];
                const std::string name = fmt::format("{}[{}]", shown, i);
                Answer whole;
                whole.field = &field;
                whole.place = item.place;
                answers_[name] = whole;
                if (item.kind == Value::Kind::map)
                    section(item, path + "[]", name);
                else
                    diagnostics_.error(item.place, fmt::format("{}: is {}, but it needs a map of keys: {}", name,
                                                               item.what(), listed(child_names(path + "[]"))));
            }
        } else if (reader.read(member.value, answer)) {
            answers_[shown] = answer;
        }
    }

    void reject(const Member& member, const Field& field, const std::string& shown) {
        const bool empty = member.value.kind == Value::Kind::empty;
        const std::string found = empty ? "the value is missing;" : fmt::format("is {}, but", member.value.what());
        const std::string keys = field.kind == FieldKind::section
                                     ? fmt::format("a map of keys: {}", listed(child_names(field.path)))
                                 : field.kind == FieldKind::list ? std::string("a list of maps")
                                                                 : std::string("a map of names and values");
        diagnostics_.error(member.value.place, fmt::format("{}: {} it needs {}", shown, found, keys));
    }

    void unknown_key(const Member& member, const std::string& path, const std::string& shown) {
        const std::vector<std::string> known = child_names(path);
        const std::string where = shown.empty() ? "at the top level" : "in " + shown;
        std::string advice;
        if (const std::size_t colon = member.key.find(':'); colon != std::string::npos) {
            advice = "; a space is missing after the `:`";
        } else if (member.key.find('.') != std::string::npos) {
            advice = "; in a file, keys are nested: one level for every part between dots";
        } else if (advice = did_you_mean(member.key, known); advice.empty()) {
            for (const Field& field : fields())
                if (leaf_name(field.path) == member.key && field.use == Use::step &&
                    field.path.find("[]") == std::string_view::npos) {
                    advice = fmt::format("; did you mean `{}`?", field.path);
                    break;
                }
            if (advice.empty())
                advice = fmt::format("; allowed: {}", listed(known));
        }
        diagnostics_.error(member.place, fmt::format("unknown key `{}` {}{}", member.key, where, advice));
    }

    std::map<std::string, Answer, std::less<>>& answers_;
    Diagnostics& diagnostics_;
    std::vector<std::string>& notes_;
};

}  // namespace

const Answer* Answers::given(std::string_view path) const {
    const auto it = given_.find(path);
    return it == given_.end() ? nullptr : &it->second;
}

const Answer& Answers::get(std::string_view path) {
    if (const Answer* answer = given(path))
        return *answer;
    const auto known = defaults_.find(path);
    if (known != defaults_.end())
        return known->second;
    const Field* field = find_field(path);
    assert(field && !field->fallback.empty() && "asked for a default that the field table does not have");
    Value value;
    value.kind = Value::Kind::scalar;
    value.text = std::string(field->fallback);
    Diagnostics none;
    Answer answer;
    ValueReader(*field, std::string(path), none).read(value, answer);
    assert(none.ok() && "a default of the field table does not pass its own check");
    answer.place = place(path);
    defaults_taken.emplace_back(path);
    return defaults_.emplace(std::string(path), std::move(answer)).first->second;
}

Place Answers::place(std::string_view path) const {
    for (std::string_view p = path; !p.empty();) {
        if (const Answer* answer = given(p))
            return answer->place;
        const std::size_t dot = p.rfind('.');
        if (dot == std::string_view::npos)
            break;
        p = p.substr(0, dot);
    }
    return file_;
}

std::vector<std::pair<std::string, const Answer*>> Answers::below(std::string_view prefix) const {
    std::vector<std::pair<std::string, const Answer*>> found;
    for (const auto& [path, answer] : given_)
        if (std::string_view(path).starts_with(prefix))
            found.emplace_back(path.substr(prefix.size()), &answer);
    return found;
}

Answers check(const Value& root, Diagnostics& diagnostics, std::vector<std::string>& notes) {
    Answers answers;
    answers.file_ = root.place;
    Checker(answers.given_, diagnostics, notes).section(root, "", "");
    return answers;
}

}  // namespace fabricast
