// Views of a comparison's JSON (comparison_json): made from its text alone, as those of result.json.
#pragma once

#include <string>
#include <vector>

#include "sim/report/html_campaign.hpp"

namespace fabricast::report {

/// A result of the comparison; `against_a` is null for A itself.
struct ComparedSide {
    std::string letter;
    const Json* result = nullptr;
    const Json* against_a = nullptr;
};
bool is_comparison(const Json& json);
std::vector<ComparedSide> sides_of(const Json& comparison);  ///< A, B and, where it is there, C

/// "1.28x faster than A, intervals do not overlap"; empty where one of both did not run.
std::string verdict_of(const ComparedSide& side);

/// Figures of both kinds of view: a name, the value of each side, and its change against A (empty for A).
struct FigureRow {
    std::string name;
    std::vector<std::string> values, changes;
};
std::vector<FigureRow> figure_rows(const std::vector<ComparedSide>& sides);
/// What the scenarios say differently; an empty value: the same as A.
std::vector<FigureRow> key_rows(const std::vector<ComparedSide>& sides);

/// Differences of the accounts of a side from A, largest saving first, those below `least` of A's step in one.
struct AccountStep {
    std::string name;
    double a = 0, b = 0;
};
struct AccountSteps {
    bool by_tokens = false;  ///< GPU-seconds per million tokens; otherwise s of a step
    double a = 0, b = 0;     ///< whole
    std::vector<AccountStep> rows;
};
AccountSteps account_steps(const ComparedSide& side, double least);

std::string comparison_page(const Json& comparison);
std::string comparison_markdown(const Json& comparison);

}  // namespace fabricast::report
