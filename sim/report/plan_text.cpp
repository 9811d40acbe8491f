// `fabricast plan` on a terminal.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "sim/plan/bound.hpp"
#include "sim/report/page.hpp"
#include "sim/report/plan_rows.hpp"
#include "sim/report/plan_views.hpp"

namespace fabricast {
namespace {

using namespace report;
using plan::PlanResult;
using plan::PlanRow;

constexpr std::size_t kPageColumns = 190, kMostClasses = 24;

std::string cluster_text(const PlanResult& r, std::uint32_t c) {
    return r.space->value_text(plan::Dimension::cluster, c);
}

class PlanPage {
public:
    PlanPage(const PlanResult& r, bool color, bool unicode) : r_(r), page_(color, unicode, kPageColumns) {}

    std::string print() {
        title();
        if (const std::string empty = plan::nothing_left(r_); !empty.empty()) {
            for (const std::string& line : wrap(empty, kPageColumns))
                page_.add(line, Paint::bad).end();
            removed();
            return page_.text();
        }
        ranked();
        front();
        yours();
        classes();
        sensitivity();
        what_ifs();
        removed();
        return page_.text();
    }

private:
    const PlanRow& row(std::size_t i) const { return r_.rows()[i]; }
    bool several() const { return r_.clusters.size() > 1; }
    const Scenario& scenario() const { return r_.clusters.front()->scenario(); }

    std::string money(double cost, double gpu_hours) const {
        return has_price(r_) ? fmt::format("{} {}", magnitude(cost), scenario().currency)
                             : fmt::format("{} GPU-h", magnitude(gpu_hours));
    }

    void title() {
        const Scenario& s = scenario();
        page_.add(clean(r_.name), Paint::bold);
        page_.add(fmt::format("  {} of {} layouts of {}",
                              magnitude(static_cast<double>(r_.found.rows.size())) + " simulated", r_.found.size,
                              clean(s.model.name)));
        page_
            .add(s.tokens > 0 ? fmt::format("; days and cost of {} tokens", magnitude(s.tokens))
                              : std::string("; days and cost of 1 T tokens, as run.tokens is not stated"))
            .end();
        if (const std::string prices = plan::prices_text(r_); !prices.empty())
            page_.add(clean(prices), Paint::dim).end();
    }

    void ranked() {
        page_.heading(fmt::format("Ranked by {}", r_.spec.by));
        Table table(several() ? "rllrrrrrrrl" : "rlrrrrrrrl");
        std::vector<std::string> head = {"", "layout"};
        if (several())
            head.emplace_back("cluster");
        for (const char* name : {"GiB", "MFU", "step", "tokens/s", "days", "80 % of runs", "cost", "behind"})
            head.emplace_back(name);
        table.row(head);
        const PlanRow& first = row(r_.ranking.front());
        const std::size_t top = std::min(r_.ranking.size(), static_cast<std::size_t>(r_.spec.top));
        bool ties = false;
        for (std::size_t i = 0; i < top; ++i) {
            const PlanRow& one = row(r_.ranking[i]);
            const plan::Figures& f = one.figures;
            const StepInterval interval = interval_of(r_, one);
            std::vector<std::string> cells = {std::to_string(i + 1), plan_layout_text(one.plan)};
            if (several())
                cells.push_back(cluster_text(r_, one.cluster));
            cells.push_back(fmt::format("{:.1f}", f.memory_gib));
            cells.push_back(percent(f.mfu));
            cells.push_back(duration(f.step_s));
            cells.push_back(grouped(f.tokens_per_s));
            cells.push_back(fmt::format("{:.2f}", f.days));
            cells.push_back(interval.runs > 0 ? fmt::format("{:.1f}-{:.1f}", f.days * interval.low_s / f.step_s,
                                                            f.days * interval.high_s / f.step_s)
                                              : "");
            cells.push_back(money(f.cost, f.gpu_hours));
            const double behind = r_.spec.by == "cost" ? (has_price(r_) ? f.cost / first.figures.cost
                                                                        : f.gpu_hours / first.figures.gpu_hours)
                                                       : f.days / first.figures.days;
            const bool tie = i > 0 && is_tie(r_, first, one);
            ties = ties || tie;
            cells.push_back(i == 0 ? "" : signed_percent(behind - 1) + (tie ? ", a tie" : ""));
            table.row(cells);
        }
        table.print(page_);
        if (ties)
            page_
                .add(
                    "a tie: the intervals of both overlap, published runs like these do not tell which is faster; the "
                    "order is the forecast's",
                    Paint::dim)
                .end();
    }

    void front() {
        if (r_.front.size() < 2 && !several())
            return;
        page_.heading(has_price(r_) ? "Days against cost: what no other layout beats in both"
                                    : "Days against GPU-hours: what no other layout beats in both");
        Table table("llrrr");
        table.row({"cluster", "layout", "days", has_price(r_) ? "cost" : "GPU-hours", "MFU"});
        for (const std::size_t i : r_.front) {
            const PlanRow& one = row(i);
            table.row({cluster_text(r_, one.cluster), plan_layout_text(one.plan),
                       fmt::format("{:.2f}", one.figures.days), money(one.figures.cost, one.figures.gpu_hours),
                       percent(one.figures.mfu)});
        }
        table.print(page_);
    }

    void yours() {
        if (!r_.yours)
            return;
        const plan::Yours& y = *r_.yours;
        page_.heading("The layout of the scenario");
        if (!y.refused.empty()) {
            page_.add("cannot run on the first cluster: " + clean(y.refused), Paint::warn).end();
            return;
        }
        // The best of the same cluster; where none meets the conditions, the first.
        const auto beside = std::find_if(r_.ranking.begin(), r_.ranking.end(),
                                         [&](std::size_t i) { return row(i).cluster == y.cluster; });
        const PlanRow& first = row(beside == r_.ranking.end() ? r_.ranking.front() : *beside);
        page_.add(plan_layout_text(y.plan));
        if (several())
            page_.add(" on " + cluster_text(r_, y.cluster));
        if (!y.evaluation.fits)
            page_.add(
                fmt::format("; does not fit: stage {} needs {:.1f} GiB", y.evaluation.stage, y.figures.memory_gib),
                Paint::bad);
        else if (!y.evaluation.ran())
            page_.add("; does not run: " + clean(y.evaluation.failure), Paint::bad);
        else
            page_.add(fmt::format("; {}, MFU {}, {:.2f} days; the best{} takes {} of its time",
                                  duration(y.figures.step_s), percent(y.figures.mfu), y.figures.days,
                                  several() && beside != r_.ranking.end() ? " there" : "",
                                  percent(first.figures.days / y.figures.days)));
        page_.end();
        if (!y.change.empty())
            page_
                .add(y.faster > 0 ? fmt::format("the single change that helps most: {}, {} less time", y.change,
                                                percent(y.faster))
                                  : fmt::format("the single change that makes it run best: {}", y.change),
                     Paint::good)
                .end();
        else if (!y.listed)
            page_.add("`plan:` does not list it: no single change of it was tried").end();
        else if (y.evaluation.ran())
            page_.add("no single change that the conditions allow makes it faster").end();
    }

    std::string reason(const plan::ClassLoss& c) const {
        std::string text;
        if (c.best) {
            text = signed_percent(c.slower);
            if (c.cause != Account::count && c.slower > 0)
                text += fmt::format(", most of it {} ({})", account_text(c.cause), signed_percent(c.cause_share));
            if (c.at_least > 0 && c.at_least < c.slower)
                text += fmt::format("; layouts cut by their lower bound are at least {} behind", percent(c.at_least));
            return text;
        }
        if (c.at_least > 0)
            return fmt::format("at least {}, by the lower bound of its best", signed_percent(c.at_least));
        return "none ran";
    }

    void classes() {
        if (r_.classes.empty())
            return;
        page_.heading("Why the others lost: the best of each class against the first");
        Table table("llrl");
        table.row({"", "", "layouts", "behind the first"});
        // What has no layout at all for one reason shares a line.
        std::map<std::pair<plan::Dimension, std::string>, std::pair<std::string, std::uint64_t>> gone;
        std::size_t shown = 0, more = 0;
        for (const plan::ClassLoss& c : r_.classes) {
            const std::string value = r_.space->value_text(c.dimension, c.value);
            if (!c.best && !(c.at_least > 0) && !c.removed.empty()) {
                auto& [values, layouts] = gone[{c.dimension, c.removed}];
                values += (values.empty() ? "" : ", ") + value;
                layouts += c.layouts;
            } else if (shown++ < kMostClasses) {
                table.row(
                    {std::string(plan::dimension_name(c.dimension)), value, std::to_string(c.layouts), reason(c)});
            } else {
                ++more;
            }
        }
        for (const auto& [key, entry] : gone)
            table.row({std::string(plan::dimension_name(key.first)), clip(entry.first, 24),
                       std::to_string(entry.second), "none left, most of them: " + plan::rule_text(key.second)});
        table.print(page_);
        if (more > 0)
            page_.add(fmt::format("and {} more, all in --json", more), Paint::dim).end();
    }

    void sensitivity() {
        if (r_.sensitivity.empty())
            return;
        page_.heading("What the first hangs on: its step time with one figure of the machine changed");
        Table table("llrlr");
        table.row({"", "lower", "step", "higher", "step"});
        for (const plan::Sensitivity& s : r_.sensitivity)
            table.row({s.what, s.low, s.low.empty() ? "" : signed_percent(s.low_change), s.high,
                       s.high.empty() ? "" : signed_percent(s.high_change)});
        table.print(page_);
        const plan::Sensitivity* most = nullptr;
        double gain = 0;
        for (const plan::Sensitivity& s : r_.sensitivity) {
            const double best = -std::min(s.low_change, s.high_change);
            if (best > gain) {
                gain = best;
                most = &s;
            }
        }
        if (most != nullptr)
            page_
                .add(fmt::format("the single change of the machine that would help most: {} {}, {} less time",
                                 most->what, most->high_change < most->low_change ? most->high : most->low,
                                 percent(gain)),
                     Paint::good)
                .end();
    }

    void what_ifs() {
        for (const plan::WhatIf& w : r_.what_ifs) {
            page_.heading("What if " + clean(w.text));
            std::string skipped;
            for (const std::uint32_t cluster : w.skipped)
                skipped += (skipped.empty() ? "" : "; ") + cluster_text(r_, cluster);
            if (!skipped.empty())
                page_.add("not asked of what has another value: " + skipped, Paint::dim).end();
            if (w.rows.empty()) {
                page_
                    .add(skipped.empty() ? "none of the layouts above runs then"
                                         : "none of the other layouts above runs then",
                         Paint::bad)
                    .end();
                continue;
            }
            Table table(several() ? "rllrrrrr" : "rlrrrrr");
            std::vector<std::string> head = {"was", "layout"};
            if (several())
                head.emplace_back("cluster");
            for (const char* name : {"step", "change", "MFU", "days", "cost"})
                head.emplace_back(name);
            table.row(head);
            for (std::size_t i = 0; i < w.rows.size(); ++i) {
                const auto place =
                    std::find(r_.ranking.begin(), r_.ranking.end(), w.rows[i].first) - r_.ranking.begin();
                const PlanRow& one = row(w.rows[i].first);
                const plan::Figures& f = w.figures[i];
                std::vector<std::string> cells = {std::to_string(place + 1), plan_layout_text(one.plan)};
                if (several())
                    cells.push_back(cluster_text(r_, one.cluster));
                cells.push_back(duration(f.step_s));
                cells.push_back(signed_percent(f.step_s / one.figures.step_s - 1));
                cells.push_back(percent(f.mfu));
                cells.push_back(fmt::format("{:.2f}", f.days));
                cells.push_back(money(f.cost, f.gpu_hours));
                table.row(cells);
            }
            table.print(page_);
        }
    }

    void removed() {
        page_.heading(fmt::format("What became of {} layouts", r_.found.looked_at));
        Table table("rll");
        table.row({"layouts", "", "for example"});
        const std::uint64_t meet = static_cast<std::uint64_t>(r_.ranking.size());
        table.row({std::to_string(meet), "simulated, meet all conditions", ""});
        if (r_.found.cut > 0)
            table.row(
                {std::to_string(r_.found.cut), "slower than the ranking by their lower bound, not simulated", ""});
        for (const auto& [rule, gone] : r_.found.removed)
            table.row({std::to_string(gone.count), plan::rule_text(rule), clean(gone.example)});
        table.print(page_);
        if (r_.found.cut == 0)
            return;
        page_.add("assumed of the lower bound, by experience and not by proof (--no-prune simulates all):", Paint::dim)
            .end();
        for (const std::string& sentence : plan::bound_assumptions())
            page_.add("  " + sentence, Paint::dim).end();
    }

    const PlanResult& r_;
    Page page_;
};

}  // namespace

std::string plan_text(const plan::PlanResult& result, bool color, bool unicode) {
    return PlanPage(result, color, unicode).print();
}

}  // namespace fabricast
