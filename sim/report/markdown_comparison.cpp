// A comparison in Markdown.
#include <fmt/format.h>

#include "sim/report/comparison_views.hpp"
#include "sim/report/markdown.hpp"
#include "sim/report/text.hpp"

namespace fabricast::report {

std::string comparison_markdown(const Json& comparison) {
    const std::vector<ComparedSide> sides = sides_of(comparison);
    std::string out = fmt::format("# {} against {}\n\n", word(*sides[0].result, "/scenario/name"),
                                  word(*sides[1].result, "/scenario/name"));
    for (const ComparedSide& side : sides) {
        const Json& r = *side.result;
        out += fmt::format("- **{}** {}: {} on {:.0f} × {}, {}\n", side.letter, word(r, "/scenario/name"),
                           word(r, "/scenario/model"), number(r, "/engine/ranks"), word(r, "/scenario/gpu"),
                           word(r, "/verdict"));
    }
    out += "\n";
    for (const ComparedSide& side : sides) {
        if (const std::string verdict = verdict_of(side); !verdict.empty())
            out += fmt::format("**{} is {}.**\n\n", side.letter, verdict);
    }
    if (const std::vector<FigureRow> keys = key_rows(sides); !keys.empty()) {
        out += "## What the scenarios say differently\n\n| key |";
        std::string line = "|---|";
        for (const ComparedSide& side : sides) {
            out += " " + side.letter + " |";
            line += "---|";
        }
        out += "\n" + line + "\n";
        for (const FigureRow& row : keys) {
            out += "| " + markdown_cell(row.name) + " |";
            for (const std::string& value : row.values)
                out += " " + markdown_cell(value.empty() ? "as A" : value) + " |";
            out += "\n";
        }
        out += "\n";
    }
    out += "## Figures\n\n| figure |";
    std::string line = "|---|";
    for (const ComparedSide& side : sides) {
        out += side.against_a == nullptr ? " A |" : fmt::format(" {0} | {0} against A |", side.letter);
        line += side.against_a == nullptr ? "---:|" : "---:|---:|";
    }
    out += "\n" + line + "\n";
    for (const FigureRow& row : figure_rows(sides)) {
        out += "| " + row.name + " |";
        for (std::size_t i = 0; i < sides.size(); ++i)
            out += " " + row.values[i] + " |" + (i > 0 ? " " + row.changes[i] + " |" : "");
        out += "\n";
    }
    for (const ComparedSide& side : sides) {
        if (side.against_a == nullptr)
            continue;
        const AccountSteps steps = account_steps(side, 0);
        if (steps.rows.empty() || steps.a <= 0)
            continue;
        const double unit = steps.by_tokens ? 1 : 1e3;
        out += fmt::format(
            "\n## Where the difference of {} from A lies, {}\n\n| account | A | {} | difference | points of A |\n"
            "|---|---:|---:|---:|---:|\n",
            side.letter, steps.by_tokens ? "GPU-seconds per million tokens" : "ms of a step", side.letter);
        for (const AccountStep& row : steps.rows)
            out += fmt::format("| {} | {:.3f} | {:.3f} | {:+.3f} | {:+.2f} |\n", row.name, row.a * unit, row.b * unit,
                               (row.b - row.a) * unit, 100 * (row.b - row.a) / steps.a);
        out += fmt::format("| **whole** | {:.3f} | {:.3f} | {:+.3f} | {:+.2f} |\n", steps.a * unit, steps.b * unit,
                           (steps.b - steps.a) * unit, 100 * (steps.b / steps.a - 1));
    }
    if (!word(comparison, "/command").empty())
        out += fmt::format("\n`{}`\n", word(comparison, "/command"));
    return out;
}

}  // namespace fabricast::report
