// The first screen: verdict and headline, a bar a loss, what limits, what was expected, what was assumed.
// The tail (expectations, hints, notes) is cut to its budget first; bars fill the lines that remain.
#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "sim/report/expectation.hpp"
#include "sim/report/sections.hpp"
#include "sim/report/text.hpp"
#include "sim/report/views.hpp"

namespace fabricast {
namespace {

using namespace report;

constexpr std::size_t kMinLosses = 3, kMaxLosses = 7, kBarColumns = 48, kAccountColumns = 30;
constexpr std::size_t kMaxExpectationLines = 4, kMaxRemarkLines = 3, kMaxFailureLines = 6;

struct Line {
    std::string mark, text;
    Paint paint = Paint::plain;
};

void print(Page& page, const std::vector<Line>& lines) {
    for (const Line& line : lines)
        page.add("  ").add(line.mark, line.paint).add(line.text).end();
}

std::vector<Line> expectation_lines(const Result& result) {
    std::vector<ExpectationOutcome> outcomes = check_expectations(result);
    std::stable_partition(outcomes.begin(), outcomes.end(), [](const ExpectationOutcome& o) { return !o.met; });
    const bool all = outcomes.size() <= kMaxExpectationLines;
    const std::size_t shown = all ? outcomes.size() : kMaxExpectationLines - 1;
    std::vector<Line> lines;
    for (std::size_t i = 0; i < shown; ++i) {
        const bool met = outcomes[i].met;
        lines.push_back({met ? "✔ " : "✘ ", clean(describe(outcomes[i])), met ? Paint::good : Paint::bad});
    }
    if (!all) {
        const auto rest = outcomes.begin() + static_cast<std::ptrdiff_t>(shown);
        const auto failed = std::count_if(rest, outcomes.end(), [](const ExpectationOutcome& o) { return !o.met; });
        const auto met = std::distance(rest, outcomes.end()) - failed;
        std::string text = failed > 0 ? fmt::format("{} more not met", failed) : "";
        if (met > 0)
            text += fmt::format("{}{} more met", failed > 0 ? ", " : "", met);
        lines.push_back({failed > 0 ? "✘ " : "✔ ", text + "; see --full", failed > 0 ? Paint::bad : Paint::good});
    }
    return lines;
}

/// Hints first (they say what to do), then notes. One that would not fit in the budget is counted, not cut short.
std::vector<Line> remark_lines(const Result& result, std::size_t budget) {
    std::vector<std::pair<std::string, std::string>> remarks;
    for (const std::string& hint : result.hints)
        remarks.emplace_back("→ ", hint);
    if (std::string quantum = quantum_text(result); !quantum.empty())
        remarks.emplace_back("· ", std::move(quantum));
    for (const std::string& note : result.scenario->comm_notes)
        remarks.emplace_back("· ", note);
    for (const std::string& note : result.scenario->notes)
        remarks.emplace_back("· ", note);

    std::vector<Line> lines;
    for (std::size_t i = 0; i < remarks.size(); ++i) {
        const std::vector<std::string> wrapped = wrap(clean(remarks[i].second), kScreenColumns - 4);
        const std::size_t reserve = i + 1 < remarks.size() ? 1 : 0;
        if (lines.size() + wrapped.size() + reserve > budget) {
            const std::size_t left = remarks.size() - i;
            if (lines.empty() && !wrapped.empty() && budget > reserve) {
                lines.push_back({remarks[i].first, clip(clean(remarks[i].second), kScreenColumns - 4), Paint::warn});
                if (left > 1)
                    lines.push_back({"· ", fmt::format("{} more remarks; see --full", left - 1), Paint::dim});
            } else {
                lines.push_back(
                    {"· ", fmt::format("{} more remark{}; see --full", left, left > 1 ? "s" : ""), Paint::dim});
            }
            break;
        }
        for (std::size_t j = 0; j < wrapped.size(); ++j) {
            lines.push_back({j == 0 ? remarks[i].first : "  ", wrapped[j], Paint::warn});
        }
    }
    return lines;
}

std::vector<Line> tail_lines(const Result& result, std::size_t remark_budget) {
    std::vector<Line> lines;
    if (const CommRow* row = dominant_communication(result)) {
        const std::string calls = row->calls_per_rank > 0 ? fmt::format("{} × ", row->calls_per_rank) : "";
        const std::string call =
            fmt::format("{} ({}, {}{}, {:.1f} GB/s busbw)", clean(row->what), clean(row->group), calls,
                        decimal_bytes(static_cast<double>(row->bytes)), row->busbw_bytes_per_s / 1e9);
        std::string link = row->limiting_link.empty() ? "" : clean(row->limiting_link) + ", in ";
        const bool named = row->limiting_place.starts_with("NVLink");  // the link's name says it
        if (row->limiting_place.ends_with("inside the node") && !named)
            link = row->limiting_place + ": " + link;
        lines.push_back({link.empty() ? "Traffic: " : "Limit: ", link + call, Paint::dim});
    }
    for (Line& line : expectation_lines(result))
        lines.push_back(std::move(line));
    for (Line& line : remark_lines(result, remark_budget))
        lines.push_back(std::move(line));
    const std::vector<Assumption>& assumptions = result.scenario->assumptions;
    const auto guesses = std::count_if(assumptions.begin(), assumptions.end(),
                                       [](const Assumption& a) { return a.origin == Origin::guess; });
    lines.push_back({fmt::format("{} assumption{}", assumptions.size(), assumptions.size() == 1 ? "" : "s"),
                     guesses > 0
                         ? fmt::format(" ({} guess{}); see --full or result.json", guesses, guesses > 1 ? "es" : "")
                         : "; see --full or result.json",
                     Paint::plain});
    return lines;
}

struct Loss {
    std::string name;
    double fraction;
};

/// Everything but the ideal matrix products, largest first; what is beyond `count` summed into one row.
std::vector<Loss> losses(const StepResult& step, std::size_t count) {
    const double total = static_cast<double>(static_cast<__int128>(step.ps) * step.ranks);
    std::vector<Loss> all;
    for (std::size_t i = 0; i < kAccountCount; ++i) {
        const auto account = static_cast<Account>(i);
        if (account == Account::gemm_ideal || step.accounts[i] == 0)
            continue;
        all.push_back({std::string(account_text(account)), static_cast<double>(step.accounts[i]) / total});
    }
    std::stable_sort(all.begin(), all.end(), [](const Loss& a, const Loss& b) { return a.fraction > b.fraction; });
    if (all.size() > count + 1) {
        double rest = 0;
        for (std::size_t i = count; i < all.size(); ++i)
            rest += all[i].fraction;
        const std::size_t small = all.size() - count;
        all.resize(count);
        all.push_back({fmt::format("{} smaller ones", small), rest});
    }
    return all;
}

void print_losses(Page& page, const Result& result, std::size_t count) {
    const StepResult& step = result.step;
    const double total = static_cast<double>(static_cast<__int128>(step.ps) * step.ranks);
    const double ideal = static_cast<double>(step.accounts[static_cast<std::size_t>(Account::gemm_ideal)]) / total;
    const std::vector<Loss> rows = losses(step, count);
    double largest = ideal;
    for (const Loss& row : rows)
        largest = std::max(largest, row.fraction);
    const auto print_row = [&](std::string_view name, double fraction, Paint paint) {
        page.add("  ").add(pad_right(name, kAccountColumns)).add(pad_left(percent(fraction), 8)).add("  ");
        page.add(largest > 0 ? bar(fraction / largest, kBarColumns) : "", paint).end();
    };
    page.blank();
    page.add(fmt::format("Where the step goes, mean over {} GPUs", step.ranks), Paint::bold).end();
    print_row(account_text(Account::gemm_ideal), ideal, Paint::ideal);
    for (const Loss& row : rows)
        print_row(row.name, row.fraction, Paint::loss);
    page.blank();
}

}  // namespace

std::string first_screen(const Result& result, bool color, bool unicode) {
    assert(result.scenario != nullptr && "a result belongs to a scenario");
    Page page(color, unicode, kScreenColumns);
    print_verdict(page, result);
    if (!result.failure.empty()) {
        page.blank();
        const std::vector<std::string> lines = wrap(clean(result.failure), kScreenColumns - 2);
        const std::size_t shown = std::min(lines.size(), kMaxFailureLines);
        for (std::size_t i = 0; i < shown; ++i)
            page.add("  ").add(lines[i], Paint::bad).end();
        if (shown < lines.size())
            page.add("  …").end();
    }
    page.blank();
    print_headline(page, result);

    const bool ran = result.step.ps > 0 && result.step.ranks > 0;
    const bool roomy = !ran;  // no bars: hints may use their lines
    const std::size_t methods = methods_text(result.scenario->training).empty() ? 0 : 1;  // a line of their own
    const std::vector<Line> tail = tail_lines(result, (roomy ? kMaxRemarkLines + 3 : kMaxRemarkLines) - methods);
    if (ran) {
        constexpr std::size_t kFrame = 5;  // blank, title, ideal, the sum of smaller ones, blank
        const std::size_t used = page.lines() + tail.size() + kFrame;
        const std::size_t room = kScreenLines > used ? kScreenLines - used : 0;
        print_losses(page, result, std::clamp(room, kMinLosses, kMaxLosses));
    } else {
        page.blank();
    }
    print(page, tail);
    return page.text();
}

}  // namespace fabricast
