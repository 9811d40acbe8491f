// `fabricast explain` on a terminal.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "sim/report/explain_views.hpp"
#include "sim/report/sections.hpp"
#include "sim/report/text.hpp"

namespace fabricast {
namespace {

using namespace report;

constexpr std::size_t kPageColumns = 160, kMaxPath = 12;

double seconds_of(__int128 rank_ps, const StepResult& step) {
    return static_cast<double>(rank_ps) / static_cast<double>(step.ranks) / 1e12;
}
double share_of(__int128 rank_ps, const StepResult& step) {
    return static_cast<double>(rank_ps) / static_cast<double>(static_cast<__int128>(step.ps) * step.ranks);
}
/// Milliseconds with a fixed point, so that a column can be added up.
std::string ms(double seconds) { return fmt::format("{:.3f} ms", seconds * 1e3); }

void print_causes(Page& page, const Explanation& e) {
    static constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kGroups = {
        {{"compute", "compute undisturbed"},
         {"slowed", ""},
         {"communication", "exposed communication"},
         {"waiting", "waiting for others"},
         {"other", ""}}};
    const StepResult& step = e.run.step;
    page.heading(fmt::format("Where the step goes, mean over {} GPUs; the rows add up to the step", step.ranks));
    Table table("lrr");
    table.row({"cause", "time", "share"});
    const std::vector<CauseRow> rows = cause_rows(e);
    for (const auto& [group, title] : kGroups) {
        __int128 sum = 0;
        std::size_t shown = 0;
        for (const CauseRow& row : rows) {
            if (row.group != group || row.rank_ps == 0)
                continue;
            const std::string indent = title.empty() ? "" : "  ";
            table.row({indent + row.name, ms(seconds_of(row.rank_ps, step)), percent(share_of(row.rank_ps, step))});
            sum += row.rank_ps;
            ++shown;
        }
        if (shown > 0 && !title.empty())
            table.row({"= " + std::string(title), ms(seconds_of(sum, step)), percent(share_of(sum, step))});
    }
    table.row({"= step", ms(seconds(step.ps)), "100.0 %"});
    table.print(page);
}

void print_hidden(Page& page, const Explanation& e) {
    const StepResult& step = e.run.step;
    Table table("lrrrr");
    table.row({"kind", "in all", "exposed", "hidden", "hidden"});
    __int128 all = 0, exposed = 0;
    const auto add = [&](std::string_view name, __int128 total, __int128 open) {
        const __int128 hidden = std::max<__int128>(total - open, 0);
        table.row({std::string(name), ms(seconds_of(total, step)), ms(seconds_of(open, step)),
                   ms(seconds_of(hidden, step)),
                   total > 0 ? percent(static_cast<double>(hidden) / static_cast<double>(total)) : "-"});
    };
    for (std::size_t a = 0; a < kAccountCount; ++a) {
        if (e.communication[a] == 0)
            continue;
        add(account_text(static_cast<Account>(a)), e.communication[a], step.accounts[a]);
        all += e.communication[a];
        exposed += step.accounts[a];
    }
    if (all == 0)
        return;
    add("= communication", all, exposed);
    page.heading("Communication, mean over GPUs: every call alone on the network, and what of it is exposed");
    table.print(page);
    page.add("  contention, what calls take longer because they share links, is a cause of its own above", Paint::dim)
        .end();
}

void print_stages(Page& page, const Explanation& e) {
    const StepResult& step = e.run.step;
    if (step.by_stage.size() < 2)
        return;
    page.heading("By pipeline stage, share of the step");
    Table table("rrrrrrrrr");
    table.row({"stage", "GPUs", "compute", "against mean", "slowed", "exposed comm", "contention", "waiting", "other"});
    const auto sum = [](const std::array<__int128, kAccountCount>& accounts, Account first, Account last) {
        __int128 out = 0;
        for (auto a = static_cast<std::size_t>(first); a <= static_cast<std::size_t>(last); ++a)
            out += accounts[a];
        return out;
    };
    const double mean = static_cast<double>(sum(step.accounts, Account::gemm_ideal, Account::host_bound)) /
                        static_cast<double>(step.ranks);
    std::size_t slowest = 0;
    double most = 0;
    for (std::size_t s = 0; s < step.by_stage.size(); ++s) {
        const auto& accounts = step.by_stage[s];
        const double whole = static_cast<double>(static_cast<__int128>(step.ps) * step.ranks_by_stage[s]);
        const auto cell = [&](Account first, Account last) {
            return percent(static_cast<double>(sum(accounts, first, last)) / whole);
        };
        const double own = static_cast<double>(sum(accounts, Account::gemm_ideal, Account::host_bound)) /
                           static_cast<double>(step.ranks_by_stage[s]);
        if (own > most) {
            most = own;
            slowest = s;
        }
        table.row({fmt::format("{}", s), fmt::format("{}", step.ranks_by_stage[s]),
                   cell(Account::gemm_ideal, Account::host_bound), fmt::format("{:+.1f} %", (own / mean - 1) * 100),
                   cell(Account::interference, Account::interference), cell(Account::comm_tp, Account::comm_other),
                   cell(Account::contention, Account::contention), cell(Account::straggler, Account::bubble),
                   cell(Account::offload, Account::idle)});
    }
    table.print(page);
    const auto equal = std::find_if(e.ceilings.begin(), e.ceilings.end(),
                                    [](const Ceiling& c) { return c.key == "equal_stages" && c.present; });
    if (equal == e.ceilings.end())
        return;
    page.add(fmt::format(
                 "  stage {} computes most, {:.1f} % above the mean; that stages are unequal costs {} a step (re-run "
                 "with equal stages)",
                 slowest, (most / mean - 1) * 100, ms(seconds(step.ps - equal->ps))),
             Paint::dim)
        .end();
}

void print_ceilings(Page& page, const Explanation& e) {
    if (e.ceilings.empty())
        return;
    const StepResult& step = e.run.step;
    page.heading("What if it were free: each a re-run with one cause removed");
    Table table("lrrrl");
    table.row({"ceiling", "step", "faster", "MFU", ""});
    table.row({"the run", ms(seconds(step.ps)), "", percent(headline(e.run).mfu), ""});
    for (const Ceiling& c : e.ceilings) {
        const double gain = seconds(step.ps) / seconds(c.ps) - 1;
        table.row({c.name, c.present ? ms(seconds(c.ps)) : "-", c.present ? fmt::format("{:+.1f} %", gain * 100) : "-",
                   c.present ? percent(c.mfu) : "-", c.present ? c.note : "nothing of it in this run"});
    }
    table.print(page);
    page.blank();
    for (const Ceiling& c : e.ceilings) {
        if (!c.present)
            continue;
        const std::vector<std::string> lines = wrap(c.name + ": " + c.how, kScreenColumns - 4);
        for (std::size_t i = 0; i < lines.size(); ++i)
            page.add(i == 0 ? "  · " : "    ", Paint::dim).add(lines[i], Paint::dim).end();
    }
}

/// Equal names of different phases together, longest first, the tail as one entry.
std::vector<CriticalEntry> short_path(const std::vector<CriticalEntry>& path) {
    std::vector<CriticalEntry> out;
    for (const CriticalEntry& entry : path) {
        const auto at = std::find_if(out.begin(), out.end(), [&](const auto& o) { return o.what == entry.what; });
        if (at == out.end())
            out.push_back(entry);
        else
            at->ps += entry.ps;
    }
    std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.ps > b.ps; });
    if (out.size() > kMaxPath) {
        CriticalEntry rest = {fmt::format("{} smaller ones", out.size() - kMaxPath), 0};
        for (std::size_t i = kMaxPath; i < out.size(); ++i)
            rest.ps += out[i].ps;
        out.resize(kMaxPath);
        out.push_back(rest);
    }
    return out;
}

}  // namespace

std::string explain_text(const Explanation& e, bool color, bool unicode) {
    Page page(color, unicode, kPageColumns);
    print_verdict(page, e.run);
    for (const std::string& line : wrap(clean(e.run.failure), kScreenColumns - 2))
        page.add("  ").add(line, Paint::bad).end();
    page.blank();
    print_headline(page, e.run);
    if (e.run.step.ps > 0) {
        print_definitions(page, e.run);
        print_causes(page, e);
        print_hidden(page, e);
        print_stages(page, e);
        print_critical_path(page, short_path(e.run.critical_path));
        print_ceilings(page, e);
        if (e.run.step.by_stage.size() > 1)
            page.add("  · imbalance of stages in the table: what waiting falls by in the re-run with equal stages",
                     Paint::dim)
                .end();
    } else {
        for (const std::string& hint : e.run.hints)
            page.add("  → ").add(clean(hint), Paint::warn).end();
    }
    return page.text();
}

}  // namespace fabricast
