#include "sim/plan/where.hpp"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "sim/scenario/nearest.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/scenario/units.hpp"

namespace fabricast::plan {
namespace {

constexpr std::string_view kNames[kQuantities] = {
    "gpus", "tp",   "sp",           "cp",          "pp",           "vpp",           "ep",
    "dp",   "zero", "shard_group",  "micro_batch", "global_batch", "micro_batches", "memory",
    "step", "mfu",  "tokens_per_s", "days",        "cost",         "bubble",        "exposed"};

}  // namespace

double Condition::Product::of(const Values& values) const {
    double out = number;
    for (const Quantity name : names)
        out *= values[static_cast<std::size_t>(name)];
    return out;
}

Condition::Product Condition::product(const std::string& text, const std::string& whole, const std::string& place) {
    Product out;
    for (std::string_view rest = text;;) {
        const std::size_t star = rest.find('*');
        const std::string factor(without_blanks(rest.substr(0, star)));
        std::string problem;
        const auto name = std::find(std::begin(kNames), std::end(kNames), factor);
        if (name != std::end(kNames)) {
            out.names.push_back(static_cast<Quantity>(name - std::begin(kNames)));
        } else if (const auto number = parse_number(factor, problem)) {
            out.number *= *number;
        } else {
            std::vector<std::string> known(std::begin(kNames), std::end(kNames));
            throw ScenarioError(fmt::format("{}: where `{}`: `{}` is neither a number nor one of {}{}", place, whole,
                                            factor, listed(known), did_you_mean(factor, known)));
        }
        if (star == std::string_view::npos)
            return out;
        rest.remove_prefix(star + 1);
    }
}

Condition::Condition(const std::string& text, const std::string& place) : text_(without_blanks(text)) {
    const std::size_t at = text.find_first_of("<>=!");
    const std::size_t behind = at == std::string::npos ? at : text.find_first_not_of("<>=!", at);
    const std::string sign = at == std::string::npos ? "" : text.substr(at, behind - at);
    constexpr std::string_view kSigns[] = {"<", "<=", ">", ">=", "=", "!="};
    const auto known = std::find(std::begin(kSigns), std::end(kSigns), sign == "==" ? "=" : sign);
    if (known == std::end(kSigns) || behind == std::string::npos)
        throw ScenarioError(fmt::format(
            "{}: where `{}`: a condition compares two products, such as tp <= 8 or tp * pp <= 16; relations "
            "are <, <=, >, >=, = and !=",
            place, text_));
    relation_ = static_cast<Relation>(known - std::begin(kSigns));
    left_ = product(text.substr(0, at), text_, place);
    right_ = product(text.substr(behind), text_, place);
}

bool Condition::needs_run() const {
    const auto late = [](Quantity name) { return name >= Quantity::memory; };
    return std::any_of(left_.names.begin(), left_.names.end(), late) ||
           std::any_of(right_.names.begin(), right_.names.end(), late);
}

bool Condition::holds(const Values& values) const {
    const double a = left_.of(values), b = right_.of(values);
    switch (relation_) {
        case Relation::less: return a < b;
        case Relation::at_most: return a <= b;
        case Relation::more: return a > b;
        case Relation::at_least: return a >= b;
        case Relation::equal: return a == b;
        case Relation::unequal: return a != b;
    }
    return false;
}

}  // namespace fabricast::plan
