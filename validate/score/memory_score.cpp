#include "validate/score/memory_score.hpp"

#include <algorithm>
#include <iterator>
#include <limits>

#include <fmt/format.h>

#include "models/parallel/eager_replay.hpp"
#include "models/parallel/memory.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/step/forecast.hpp"
#include "validate/score/parallel_rows.hpp"
#include "validate/score/run_score_rules.hpp"

namespace fabricast {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;

struct Outcome {
    MemoryRow row;
    std::string reason;
};

Bytes part(const program::MemoryPeak& peak, MemoryCause cause) { return peak.parts[static_cast<std::size_t>(cause)]; }

// A pipeline cut by cost may leave stages empty, which a scenario file does not say: the file gets as many layers as cut
// evenly, the model its own and the cut afterwards.
Scenario scenario_of(const PublishedRun& run) {
    if (run.source_key != "nanotron_sweep")
        return parse_scenario(run_scenario(run).yaml, run.id + ".yaml");
    PublishedRun even = run;
    even.layers = (run.layers + run.pp - 1) / run.pp * run.pp;
    Scenario s = parse_scenario(run_scenario(even).yaml, run.id + ".yaml");
    s.model.layers = run.layers;
    s.training.layout.stage_layers = nanotron_stages(run);
    return s;
}

// The first stage as the software that wrote the log ran it, which for rows that ran out of memory is not known.
ReplayedMemory logged_stage(const PublishedRun& run, const Scenario& s, const ComputeModel& compute) {
    SoftwareFeatures software = s.software;
    software.host_waits_for_messages = run.notes.find("before a fix of the pipeline schedule") != std::string::npos;
    const Bytes limit = (s.gpu.memory_mib << 20) - outside_tensors(s.training, s.gpu, 0);
    const ReplayedMemory within = replay_stage(s.model, s.training, software, compute, 0, limit);
    return within.failed
               ? replay_stage(s.model, s.training, software, compute, 0, std::numeric_limits<Bytes>::max() / 2)
               : within;
}

Outcome score_row(const PublishedRun& run) {
    Outcome out;
    out.row.run = &run;
    try {
        const Scenario s = scenario_of(run);
        const ComputeModel compute = build_compute(s);
        const std::vector<StageSummary> stages = stage_memory(s.model, s.training, s.software, compute);
        const auto fullest = std::max_element(
            stages.begin(), stages.end(), [](const auto& a, const auto& b) { return a.memory.total < b.memory.total; });
        out.row.total_gib = static_cast<double>(fullest->memory.total) / kGiB;
        out.row.limit_gib = static_cast<double>(s.gpu.memory_mib) / 1024.0;
        const auto tensors = [](const program::MemoryPeak& peak) {
            return static_cast<double>(peak.total - part(peak, MemoryCause::context) -
                                       part(peak, MemoryCause::communication));
        };
        if (run.reserved_gib && replays_tensors(s.model, s.training, s.software)) {
            const ReplayedMemory logged = logged_stage(run, s, compute);
            out.row.reserved_gib = static_cast<double>(logged.reserved) / kGiB;
            if (run.allocated_gib)
                out.row.allocated_gib = static_cast<double>(logged.optimizer) / kGiB;
        } else if (run.reserved_gib) {
            out.row.reserved_gib = tensors(stages.front().memory) / kGiB;
        } else if (run.allocated_gib) {
            out.row.allocated_gib = static_cast<double>(allocated_peak(fullest->memory)) / kGiB;
        }
    } catch (const ScenarioError& refused) {
        const std::string text = refused.what();
        out.reason = text.substr(0, text.find('\n'));
    }
    return out;
}

void summarise(MemoryScore& score) {
    std::vector<double> reserved, allocated;
    for (const MemoryRow& row : score.scored) {
        const PublishedRun& run = *row.run;
        const bool ran = run.status == "ok";
        ++score.verdicts;
        score.ran += ran;
        score.false_alarms += ran && !row.fits();
        score.missed += !ran && row.fits();
        score.missed_tight += !ran && row.tight();
        score.right += row.right();
        score.near += row.near();
        score.right_near += row.near() && row.right();
        if (run.reserved_gib && row.reserved_gib)
            reserved.push_back(*row.reserved_gib / *run.reserved_gib - 1);
        if (run.allocated_gib && row.allocated_gib)
            allocated.push_back(*row.allocated_gib / *run.allocated_gib - 1);
    }
    score.reserved = error_stats(reserved);
    score.allocated = error_stats(allocated);
}

double share(std::size_t part, std::size_t whole) {
    return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

Json stats_json(const ErrorStats& s) {
    return {{"n", s.n}, {"median_ape", s.median}, {"mape", s.mape}, {"p90_ape", s.p90}, {"bias", s.bias}};
}

std::string layout_of(const PublishedRun& r) {
    return fmt::format("{} on {} GPUs, tp {} pp {} dp {}, {}, micro-batch {}, {} of them", r.model, r.gpus, r.tp, r.pp,
                       r.dp, r.zero, r.micro_batch, r.micro_batches());
}

}  // namespace

MemoryScore score_memory(const std::vector<PublishedRun>& runs, unsigned jobs) {
    std::vector<Outcome> outcomes(runs.size());
    for_each_row(runs.size(), jobs, [&](std::size_t i) { outcomes[i] = score_row(runs[i]); });
    MemoryScore score;
    score.rows = runs.size();
    for (std::size_t i = 0; i < runs.size(); ++i) {
        if (outcomes[i].reason.empty())
            score.scored.push_back(outcomes[i].row);
        else
            score.skipped.push_back({&runs[i], outcomes[i].reason});
    }
    summarise(score);
    return score;
}

std::string memory_score_text(const MemoryScore& score, bool full) {
    std::string text;
    const auto out = std::back_inserter(text);
    const auto peak = [&](std::string_view name, const ErrorStats& s) {
        if (s.n > 0)
            fmt::format_to(out, "{} of {} runs: median error {:.1f} %, mean {:.1f} %, p90 {:.1f} %, bias {:+.1f} %\n",
                           name, s.n, 100 * s.median, 100 * s.mape, 100 * s.p90, 100 * s.bias);
    };
    const std::size_t over = score.verdicts - score.ran;
    fmt::format_to(out,
                   "{} of {} verdicts right ({:.2f} %); of the {} predicted within 25 % of capacity {} ({:.1f} %)\n",
                   score.right, score.verdicts, 100 * share(score.right, score.verdicts), score.near, score.right_near,
                   100 * share(score.right_near, score.near));
    fmt::format_to(out, "{} of {} that ran called out of memory ({:.2f} %)", score.false_alarms, score.ran,
                   100 * share(score.false_alarms, score.ran));
    if (over > 0)
        fmt::format_to(out, ", {} of {} that ran out of memory called fitting ({:.2f} %), {} of them tight",
                       score.missed, over, 100 * share(score.missed, over), score.missed_tight);
    text += '\n';
    peak("reserved peak", score.reserved);
    peak("allocated peak", score.allocated);
    if (full) {
        for (const MemoryRow& row : score.scored) {
            const PublishedRun& r = *row.run;
            fmt::format_to(out, "{:<20} {:<3} total {:>6.1f} GiB", r.id, r.status, row.total_gib);
            if (row.reserved_gib)
                fmt::format_to(out, ", reserved {:.2f} of {:.2f}", *row.reserved_gib, *r.reserved_gib);
            if (row.allocated_gib)
                fmt::format_to(out, ", allocated {:.2f} of {:.2f}", *row.allocated_gib, *r.allocated_gib);
            fmt::format_to(out, "  {}\n", layout_of(r));
        }
    }
    bool first = true;
    for (const MemoryRow& row : score.scored) {
        if (row.right())
            continue;
        if (first)
            fmt::format_to(out, "\nwrong verdicts\n");
        first = false;
        fmt::format_to(out, "  {:<20} predicted {:>6.1f} of {:.1f} GiB, {}: {}\n", row.run->id, row.total_gib,
                       row.limit_gib, row.run->status == "ok" ? "ran" : "ran out of memory", layout_of(*row.run));
    }
    if (!score.skipped.empty())
        fmt::format_to(out, "\nnot scored\n");
    for (const SkippedRow& row : score.skipped)
        fmt::format_to(out, "  {}: {}\n", row.run->id, row.reason);
    return text;
}

Json memory_score_json(const MemoryScore& score) {
    Json wrong = Json::array(), rows = Json::array(), skipped = Json::array();
    for (const MemoryRow& row : score.scored) {
        const PublishedRun& r = *row.run;
        Json one = {{"id", r.id}, {"status", r.status}, {"total_gib", row.total_gib}, {"limit_gib", row.limit_gib}};
        if (row.reserved_gib) {
            one["reserved_gib"] = *row.reserved_gib;
            one["measured_reserved_gib"] = *r.reserved_gib;
        }
        if (row.allocated_gib) {
            one["allocated_gib"] = *row.allocated_gib;
            one["measured_allocated_gib"] = *r.allocated_gib;
        }
        if (!row.right())
            wrong.push_back(one);
        rows.push_back(std::move(one));
    }
    for (const SkippedRow& row : score.skipped)
        skipped.push_back({{"id", row.run->id}, {"reason", row.reason}});
    return {{"kind", "memory score"},
            {"version", 1},
            {"rows", score.rows},
            {"verdicts", score.verdicts},
            {"verdicts_right", score.right},
            {"verdicts_right_share", share(score.right, score.verdicts)},
            {"near_limit", score.near},
            {"verdicts_right_near_limit", score.right_near},
            {"verdicts_right_near_limit_share", share(score.right_near, score.near)},
            {"ran", score.ran},
            {"false_alarms", score.false_alarms},
            {"false_alarms_share", share(score.false_alarms, score.ran)},
            {"missed", score.missed},
            {"missed_tight", score.missed_tight},
            {"reserved_median_ape", score.reserved.median},
            {"reserved", stats_json(score.reserved)},
            {"allocated", stats_json(score.allocated)},
            {"wrong", std::move(wrong)},
            {"runs", std::move(rows)},
            {"skipped", std::move(skipped)}};
}

}  // namespace fabricast
