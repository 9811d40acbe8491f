// Everything result.json holds, as tables.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>

#include "sim/report/expectation.hpp"
#include "sim/report/sections.hpp"
#include "sim/report/text.hpp"
#include "sim/report/views.hpp"

namespace fabricast {
namespace {

using namespace report;

constexpr std::size_t kPageColumns = 160;  ///< wide tables may pass the first screen's 100
constexpr std::size_t kStagesAbreast = 8;

double share(__int128 part, __int128 total) {
    return total > 0 ? static_cast<double>(part) / static_cast<double>(total) : 0.0;
}

void print_waterfall(Page& page, const Result& result) {
    const StepResult& step = result.step;
    const __int128 total = static_cast<__int128>(step.ps) * step.ranks;
    page.heading(fmt::format("Where the step goes, mean over {} GPUs", step.ranks));
    Table table("llrr");
    table.row({"account", "", "time", "share"});
    for (std::size_t i = 0; i < kAccountCount; ++i) {
        const auto account = static_cast<Account>(i);
        const double fraction = share(step.accounts[i], total);
        table.row({std::string(account_name(account)), std::string(account_text(account)),
                   fraction > 0 ? duration(fraction * seconds(step.ps)) : "-", fraction > 0 ? percent(fraction) : "-"});
        if (account != Account::bubble || !result.waiting || fraction <= 0)
            continue;
        const double uneven = share(result.waiting->bubble_imbalance, total);
        for (const auto& [name, part] :
             {std::pair("warm-up and drain", fraction - uneven), std::pair("imbalance of stages", uneven)})
            table.row({"", fmt::format("  of it {}", name), part > 0 ? duration(part * seconds(step.ps)) : "-",
                       part > 0 ? percent(part) : "-"});
    }
    table.row({"sum", "", duration(seconds(step.ps)), "100.0 %"});
    table.print(page);
}

void print_stages(Page& page, const StepResult& step) {
    if (step.by_stage.size() < 2)
        return;
    for (std::size_t first = 0; first < step.by_stage.size(); first += kStagesAbreast) {
        const std::size_t last = std::min(first + kStagesAbreast, step.by_stage.size());
        page.heading(first == 0 ? "The same by pipeline stage" : "(continued)");
        Table table("l" + std::string(last - first, 'r'));
        std::vector<std::string> title = {"account"};
        for (std::size_t stage = first; stage < last; ++stage)
            title.push_back(fmt::format("stage {}", stage));
        table.row(title);
        for (std::size_t i = 0; i < kAccountCount; ++i) {
            if (step.accounts[i] == 0)
                continue;
            std::vector<std::string> cells = {std::string(account_name(static_cast<Account>(i)))};
            for (std::size_t stage = first; stage < last; ++stage) {
                __int128 total = 0;
                for (const __int128 part : step.by_stage[stage])
                    total += part;
                cells.push_back(percent(share(step.by_stage[stage][i], total)));
            }
            table.row(cells);
        }
        table.print(page);
    }
}

void print_memory(Page& page, const std::vector<StageMemory>& memory) {
    if (memory.empty())
        return;
    std::vector<std::size_t> causes;
    for (std::size_t i = 0; i < kMemoryCauseCount; ++i) {
        const auto used = [&](const StageMemory& stage) { return stage.parts[i] != 0; };
        if (std::any_of(memory.begin(), memory.end(), used))
            causes.push_back(i);
    }
    page.heading("Memory per GPU at its peak, GiB");
    Table table("r" + std::string(causes.size() + 3, 'r'));
    std::vector<std::string> title = {"stage"};
    for (const std::size_t i : causes)
        title.emplace_back(memory_cause_text(static_cast<MemoryCause>(i)));
    title.insert(title.end(), {"total", "capacity", "used"});
    table.row(title);
    for (const StageMemory& stage : memory) {
        std::vector<std::string> cells = {fmt::format("{}", stage.stage)};
        for (const std::size_t i : causes)
            cells.push_back(gib(stage.parts[i]));
        cells.insert(cells.end(), {gib(stage.total_bytes), gib(stage.capacity_bytes),
                                   percent(share(stage.total_bytes, stage.capacity_bytes))});
        table.row(cells);
    }
    table.print(page);
}

void print_host(Page& page, const Result& result) {
    const Scenario& s = *result.scenario;
    if (!s.training.offload.active())
        return;
    page.heading("Training state in host memory");
    const auto capacity = static_cast<std::int64_t>(s.node.host_memory_bytes);
    page.add(fmt::format("  {} GiB on the server that has most", gib(result.host_bytes)));
    if (capacity > 0)
        page.add(fmt::format(", of {} GiB ({})", gib(capacity), percent(share(result.host_bytes, capacity))));
    page.add(fmt::format("; updates at {:.1f} GB/s a rank", s.training.offload.host_bytes_per_s / 1e9), Paint::dim)
        .end();
}

void print_communication(Page& page, const std::vector<CommRow>& communication) {
    if (communication.empty())
        return;
    page.heading("Communication, one call alone on the network");
    Table table("llrrlrrrl");
    table.row({"what", "group", "calls", "size", "algorithm", "channels", "time", "busbw", "limit"});
    for (const CommRow& row : communication) {
        table.row({clean(row.what), clean(row.group),
                   row.calls_per_rank > 0 ? fmt::format("{}", row.calls_per_rank) : "",
                   decimal_bytes(static_cast<double>(row.bytes)), clean(row.algorithm + " " + row.protocol),
                   row.channels > 0 ? fmt::format("{}", row.channels) : "", duration(row.time_s),
                   fmt::format("{:.1f} GB/s", row.busbw_bytes_per_s / 1e9), clean(row.limiting_link)});
    }
    table.print(page);
}

void print_job(Page& page, const Result& result) {
    if (!result.job)
        return;
    const JobResult& job = *result.job;
    page.heading("The job, step after step");
    page.add(fmt::format("  {} steps in {}; a step takes {}, the longest {}", job.steps_done,
                         duration(seconds(job.end)), duration(seconds(job.typical_step)),
                         duration(seconds(job.longest_step))));
    if (!job.settled)
        page.add("; stretches that were left out do not repeat themselves: means", Paint::warn);
    page.end();
    if (!job.epochs.empty()) {
        Table table("rrrrrl");
        table.row({"epoch", "steps", "begins", "ends", "boundary", ""});
        for (std::size_t e = 0; e < job.epochs.size(); ++e) {
            const JobResult::Epoch& epoch = job.epochs[e];
            const std::string steps = epoch.fewest == epoch.steps ? fmt::format("{}", epoch.steps)
                                                                  : fmt::format("{}-{}", epoch.fewest, epoch.steps);
            table.row({fmt::format("{}", e + 1), steps, duration(seconds(epoch.begin)),
                       epoch.complete ? duration(seconds(epoch.end)) : "-",
                       epoch.boundary > 0 ? duration(seconds(epoch.boundary)) : "-",
                       epoch.complete ? "" : "not ended"});
        }
        table.print(page);
        page.add(fmt::format("  of the samples of an epoch {} are read more than once, {} by nobody",
                             percent(job.repeated), percent(job.missed)))
            .end();
    }
    for (const JobResult::Message& message : job.messages) {
        const std::vector<std::string> lines = wrap(clean(message.text), kScreenColumns - 16);
        for (std::size_t i = 0; i < lines.size(); ++i)
            page.add(i == 0 ? pad_left(duration(seconds(message.at)), 12) + "  " : std::string(14, ' '))
                .add(lines[i])
                .end();
    }
}

void print_expectations(Page& page, const Result& result) {
    const std::vector<ExpectationOutcome> outcomes = check_expectations(result);
    if (outcomes.empty())
        return;
    page.heading("Expectations");
    for (const ExpectationOutcome& outcome : outcomes) {
        page.add("  ").add(outcome.met ? "✔ " : "✘ ", outcome.met ? Paint::good : Paint::bad);
        page.add(clean(describe(outcome))).end();
    }
}

void print_remarks(Page& page, std::string_view title, const std::vector<std::string>& remarks) {
    if (remarks.empty())
        return;
    page.heading(title);
    for (const std::string& remark : remarks) {
        const std::vector<std::string> lines = wrap(clean(remark), kScreenColumns - 4);
        for (std::size_t i = 0; i < lines.size(); ++i)
            page.add(i == 0 ? "  · " : "    ").add(lines[i]).end();
    }
}

void print_assumptions(Page& page, const std::vector<Assumption>& assumptions) {
    page.heading(fmt::format("{} assumptions: what the scenario did not say", assumptions.size()));
    std::size_t what = 0, value = 0;
    for (const Assumption& a : assumptions) {
        what = std::max(what, std::min<std::size_t>(width(a.what), 48));
        value = std::max(value, std::min<std::size_t>(width(a.value), 24));
    }
    for (const Assumption& a : assumptions) {
        page.add("  ").add(pad_right(clean(a.what), what)).add("  ").add(pad_right(clean(a.value), value), Paint::bold);
        page.add("  ").add(origin_name(a.origin), a.origin == Origin::guess ? Paint::warn : Paint::plain).end();
        for (const std::string& line : wrap(clean(a.source), kScreenColumns - 6)) {
            page.add("      ").add(line, Paint::dim).end();
        }
    }
}

}  // namespace

std::string full_text(const Result& result, bool color, bool unicode) {
    assert(result.scenario != nullptr && "a result belongs to a scenario");
    const Scenario& scenario = *result.scenario;
    Page page(color, unicode, kPageColumns);
    print_verdict(page, result);
    for (const std::string& line : wrap(clean(result.failure), kScreenColumns - 2)) {
        page.add("  ").add(line, Paint::bad).end();
    }
    page.blank();
    print_headline(page, result);
    if (result.step.ps > 0) {
        print_definitions(page, result);
        print_waterfall(page, result);
        print_stages(page, result.step);
    }
    print_job(page, result);
    print_memory(page, result.memory);
    if (result.checkpoint_bytes > 0)
        page.add(fmt::format("  a checkpoint with the optimizer's state ({}) is {}",
                             optimizer_text(scenario.training.optimizer),
                             decimal_bytes(static_cast<double>(result.checkpoint_bytes))),
                 Paint::dim)
            .end();
    print_host(page, result);
    print_communication(page, result.communication);
    print_critical_path(page, result.critical_path);
    print_expectations(page, result);
    if (result.warmup_ps > 0)
        print_remarks(
            page, "Warm-up",
            {fmt::format("{} of the run goes before gradients are compressed, at {} a step; the run counts it",
                         percent(scenario.compression_warmup), duration(seconds(result.warmup_ps)))});
    print_remarks(page, "Hints", result.hints);
    print_remarks(page, "Communication library", scenario.comm_notes);
    print_remarks(page, "Notes", scenario.notes);
    print_assumptions(page, scenario.assumptions);
    page.heading("Run of the simulator");
    page.add(fmt::format("  fabricast {}, seed {}, {} events, {} of {} ranks simulated, fingerprint {:016x}",
                         result.version, scenario.seed, result.events, result.ranks_simulated, result.step.ranks,
                         result.fingerprint))
        .end();
    if (const std::string quantum = quantum_text(result); !quantum.empty())
        page.add("  " + quantum).end();
    return page.text() + campaign_text(result, true, color, unicode);
}

}  // namespace fabricast
