// result.json, schema version 1. Keys are only ever added within a version. Integers stay integers; a figure
// that does not exist (MFU of a job that failed, days of a run without tokens) is null.
#include <fmt/format.h>

#include <cassert>
#include <nlohmann/json.hpp>

#include "models/transformer/architecture.hpp"
#include "sim/report/campaign_json.hpp"
#include "sim/report/exact.hpp"
#include "sim/report/expectation.hpp"
#include "sim/report/monitor_json.hpp"
#include "sim/report/text.hpp"
#include "sim/report/views.hpp"

namespace fabricast {
namespace {

using nlohmann::ordered_json;
using report::exact;

ordered_json number_or_null(double value, bool exists) { return exists ? ordered_json(value) : ordered_json(); }

ordered_json waterfall(const std::array<__int128, kAccountCount>& accounts) {
    __int128 total = 0;
    for (const __int128 part : accounts)
        total += part;
    ordered_json rows = ordered_json::array();
    for (std::size_t i = 0; i < kAccountCount; ++i) {
        const double fraction = total > 0 ? static_cast<double>(accounts[i]) / static_cast<double>(total) : 0.0;
        rows.push_back({{"account", account_name(static_cast<Account>(i))},
                        {"rank_ps", exact(accounts[i])},
                        {"fraction", fraction}});
    }
    return rows;
}

ordered_json scenario_json(const Scenario& scenario) {
    const TrainingPlan& training = scenario.training;
    const Layout& layout = training.layout;
    return {
        {"name", scenario.name},
        {"file", report::portable_path(scenario.file)},
        {"nodes", scenario.nodes},
        {"node", scenario.node.name},
        {"gpu", scenario.gpu.name},
        {"fabric", scenario.fabric.name},
        {"oversubscription", scenario.oversubscription},
        {"model", scenario.model.name},
        {"software", scenario.software.name},
        {"comm_library", scenario.comm.library},
        {"sequence", training.sequence},
        {"global_batch", training.global_batch},
        {"micro_batch", training.micro_batch},
        {"precision", report::precision_text(training.precision)},
        {"schedule", schedule_name(layout.schedule)},
        {"recompute", recompute_name(training.recompute)},
        {"optimizer", optimizer_text(training.optimizer)},
        {"offload", {{"optimizer", training.offload.optimizer}, {"parameters", training.offload.parameters}}},
        {"document", number_or_null(static_cast<double>(training.document), training.document > 0)},
        {"compression",
         {{"gradients", compression_name(training.compression.gradients)},
          {"parameters", compression_name(training.compression.parameters)},
          {"tensor_parallel", compression_name(training.compression.tensor_parallel)}}},
        {"layout",
         {{"tp", layout.tp},
          {"sp", layout.sequence_parallel},
          {"cp", layout.cp},
          {"ep", layout.ep},
          {"pp", layout.pp},
          {"vpp", layout.vpp},
          {"dp", layout.dp},
          {"zero", layout.zero},
          {"order", layout.order}}},
        {"overlap", {{"grad_reduce", training.overlap_grad_reduce}, {"param_gather", training.overlap_param_gather}}},
        {"tokens", number_or_null(scenario.tokens, scenario.tokens > 0)},
        {"price_per_gpu_hour", number_or_null(scenario.price_per_gpu_hour, scenario.price_per_gpu_hour > 0)},
        {"seed", scenario.seed}};
}

ordered_json definitions_json(const Scenario& scenario) {
    const std::string_view precision = report::precision_text(scenario.training.precision);
    return {
        {"mfu", "model FLOPs / (step time x GPUs x peak); recomputation not counted"},
        {"hfu", "the same with recomputed FLOPs counted"},
        {"mfu_causal", "mfu with attention scores halved, as a causal kernel computes them; hfu_causal likewise"},
        {"mfu_whole", "mfu with the scores of whole sequences, packed or not; hfu_whole likewise"},
        {"model_flops", flops_convention(scenario.model, static_cast<double>(scenario.training.document))},
        {"peak", fmt::format("dense {} FLOP/s of one GPU, 1 FMA = 2 FLOP; never the 2:4-sparse figure", precision)},
        {"time", "step.time_s is the period of repeated steps; ps are integer picoseconds"},
        {"waterfall",
         "rank-picoseconds over all GPUs; they sum to step.ps x engine.ranks exactly; a value beyond "
         "64 bits is a string of digits"},
        {"exposed_comm_fraction",
         "accounts comm_* and contention / all accounts; overlapped communication costs nothing"},
        {"bubble_fraction", "account bubble / all accounts"},
        {"bubble_split",
         "the account bubble, rank-picoseconds: imbalance is what goes in a re-run whose stages have equal work, the "
         "rest is "
         "warm-up and drain of the pipeline, and stages that wait for another's traffic; null without stages or "
         "without "
         "that re-run"},
        {"memory", "peak bytes per GPU of a stage; capacity as the driver reports it"},
        {"checkpoint_bytes", "weights and optimizer state of the whole model, each once"},
        {"busbw", "as nccl-tests counts it, one call alone on the network"},
        {"units", "GB is 10^9 bytes, GiB is 2^30 bytes"},
        {"run",
         "run.tokens at this step rate (and that of steps before compression begins), no failures, no checkpoints, no "
         "restarts"}};
}

ordered_json bubble_split(const Result& result) {
    if (!result.waiting)
        return {};
    const __int128 bubble = result.step.accounts[static_cast<std::size_t>(Account::bubble)];
    const __int128 uneven = result.waiting->bubble_imbalance;
    return {{"warmup_and_drain", exact(bubble - uneven)}, {"imbalance", exact(uneven)}};
}

ordered_json step_json(const Result& result) {
    const StepResult& step = result.step;
    const Headline h = headline(result);
    const bool ran = step.ps > 0;
    const bool like = ran && h.interval.runs > 0;
    const ordered_json interval = {{"low_s", number_or_null(h.interval.low_s, like)},
                                   {"high_s", number_or_null(h.interval.high_s, like)},
                                   {"share", 0.8},
                                   {"like", h.interval.like},
                                   {"runs", h.interval.runs}};
    ordered_json json = {{"time_s", number_or_null(h.step_s, ran)},
                         {"interval", interval},
                         {"tokens_per_s", number_or_null(h.tokens_per_s, ran)},
                         {"tokens_per_s_per_gpu", number_or_null(h.tokens_per_s_per_gpu, ran)},
                         {"model_tflops_per_gpu", number_or_null(h.model_tflops_per_gpu, ran)},
                         {"peak_tflops", h.peak_tflops},
                         {"mfu", number_or_null(h.mfu, ran)},
                         {"hfu", number_or_null(h.hfu, ran)},
                         {"mfu_causal", number_or_null(h.mfu_causal, ran)},
                         {"hfu_causal", number_or_null(h.hfu_causal, ran)},
                         {"mfu_whole", number_or_null(h.mfu_whole, ran)},
                         {"hfu_whole", number_or_null(h.hfu_whole, ran)},
                         {"exposed_comm_fraction", number_or_null(h.exposed_comm_fraction, ran)},
                         {"bubble_fraction", number_or_null(h.bubble_fraction, ran)},
                         {"bubble_split", bubble_split(result)},
                         {"ps", step.ps},
                         {"periodic", step.periodic},
                         {"steps_simulated", step.steps_simulated},
                         {"tokens", step.tokens},
                         {"model_flops", step.model_flops},
                         {"hardware_flops", step.hardware_flops}};
    json["waterfall"] = waterfall(step.accounts);
    ordered_json stages = ordered_json::array();
    for (std::size_t i = 0; i < step.by_stage.size(); ++i) {
        const std::int64_t ranks = i < step.ranks_by_stage.size() ? step.ranks_by_stage[i] : 0;
        stages.push_back({{"stage", i}, {"ranks", ranks}, {"waterfall", waterfall(step.by_stage[i])}});
    }
    json["stages"] = std::move(stages);
    return json;
}

ordered_json run_json(const Result& result) {
    const Headline h = headline(result);
    return {{"days", number_or_null(h.days, h.days > 0)},
            {"gpu_hours", number_or_null(h.gpu_hours, h.gpu_hours > 0)},
            {"cost", number_or_null(h.cost, h.cost > 0)},
            {"warmup_share", result.warmup_ps > 0 ? result.scenario->compression_warmup : 0.0},
            {"warmup_step_s", number_or_null(seconds(result.warmup_ps), result.warmup_ps > 0)},
            {"currency", result.scenario->currency}};
}

ordered_json job_json(const JobResult& job) {
    ordered_json epochs = ordered_json::array(), messages = ordered_json::array(), steps = ordered_json::array();
    for (const JobResult::Epoch& epoch : job.epochs)
        epochs.push_back({{"steps", epoch.steps},
                          {"fewest_steps", epoch.fewest},
                          {"begin_s", seconds(epoch.begin)},
                          {"end_s", seconds(epoch.end)},
                          {"boundary_s", seconds(epoch.boundary)},
                          {"complete", epoch.complete}});
    for (const JobResult::Message& message : job.messages)
        messages.push_back({{"at_s", seconds(message.at)}, {"rank", message.rank}, {"text", message.text}});
    for (const Picoseconds step : job.steps)
        steps.push_back(seconds(step));
    return {{"end_s", seconds(job.end)},
            {"steps_done", job.steps_done},
            {"steps_planned", job.steps_planned},
            {"typical_step_s", seconds(job.typical_step)},
            {"longest_step_s", seconds(job.longest_step)},
            {"settled", job.settled},
            {"samples_repeated", job.repeated},
            {"samples_missed", job.missed},
            {"epochs", std::move(epochs)},
            {"messages", std::move(messages)},
            {"reporting_ranks", job.reporting},
            {"silent_ranks", job.silent},
            {"simulated_step_s", std::move(steps)}};
}

ordered_json memory_json(const std::vector<StageMemory>& memory) {
    ordered_json rows = ordered_json::array();
    for (const StageMemory& stage : memory) {
        ordered_json parts = ordered_json::object();
        for (std::size_t i = 0; i < kMemoryCauseCount; ++i) {
            parts[std::string(memory_cause_name(static_cast<MemoryCause>(i)))] = stage.parts[i];
        }
        rows.push_back({{"stage", stage.stage},
                        {"total_bytes", stage.total_bytes},
                        {"capacity_bytes", stage.capacity_bytes},
                        {"parts", std::move(parts)}});
    }
    return rows;
}

ordered_json communication_json(const std::vector<CommRow>& communication) {
    ordered_json rows = ordered_json::array();
    for (const CommRow& row : communication) {
        const bool has_account = row.account != Account::count;
        rows.push_back({{"what", row.what},
                        {"kind", row.kind},
                        {"group", row.group},
                        {"account", has_account ? ordered_json(account_name(row.account)) : ordered_json()},
                        {"bytes", row.bytes},
                        {"calls_per_rank", row.calls_per_rank},
                        {"algorithm", row.algorithm},
                        {"protocol", row.protocol},
                        {"channels", row.channels},
                        {"time_s", row.time_s},
                        {"busbw_bytes_per_s", row.busbw_bytes_per_s},
                        {"limiting_link", row.limiting_link},
                        {"limiting_place", row.limiting_place}});
    }
    return rows;
}

ordered_json critical_path_json(const Result& result) {
    Picoseconds total = 0;
    for (const CriticalEntry& entry : result.critical_path)
        total += entry.ps;
    ordered_json rows = ordered_json::array();
    for (const CriticalEntry& entry : result.critical_path) {
        const double fraction = total > 0 ? static_cast<double>(entry.ps) / static_cast<double>(total) : 0.0;
        rows.push_back({{"what", entry.what}, {"ps", entry.ps}, {"fraction", fraction}});
    }
    return rows;
}

ordered_json expect_json(const Result& result) {
    ordered_json rows = ordered_json::array();
    for (const ExpectationOutcome& outcome : check_expectations(result)) {
        if (!outcome.expected_word.empty()) {
            rows.push_back({{"what", outcome.what},
                            {"expected", outcome.expected_word},
                            {"value", outcome.word},
                            {"met", outcome.met}});
            continue;
        }
        rows.push_back({{"what", outcome.what},
                        {"low", outcome.low},
                        {"high", outcome.high},
                        {"value", number_or_null(outcome.value.value_or(0), outcome.value.has_value())},
                        {"met", outcome.met}});
    }
    return rows;
}

ordered_json quantum_json(const Result& result) {
    const QuantumResult& quantum = *result.quantum;
    return {{"ps", result.scenario->quantum},
            {"completions", quantum.completions},
            {"put_off", quantum.put_off},
            {"held_starts", quantum.held},
            {"longest_wait_ps", quantum.longest},
            {"step_too_long_by_at_most_ps", quantum.late < 0 ? ordered_json() : ordered_json(quantum.late)}};
}

ordered_json assumptions_json(const std::vector<Assumption>& assumptions) {
    ordered_json rows = ordered_json::array();
    for (const Assumption& assumption : assumptions) {
        rows.push_back({{"what", assumption.what},
                        {"value", assumption.value},
                        {"origin", origin_name(assumption.origin)},
                        {"source", assumption.source}});
    }
    return rows;
}

}  // namespace

std::string result_json(const Result& result) {
    assert(result.scenario != nullptr && "a result belongs to a scenario");
    const Scenario& scenario = *result.scenario;
    ordered_json notes = ordered_json::array();
    for (const std::string& note : scenario.notes)
        notes.push_back(note);
    for (const std::string& note : scenario.comm_notes)
        notes.push_back(note);

    ordered_json json;
    json["schema_version"] = 1;
    json["program"] = "fabricast";
    json["version"] = result.version;
    json["verdict"] = result.verdict;
    json["failure"] = result.failure;
    json["scenario"] = scenario_json(scenario);
    json["step"] = step_json(result);
    json["run"] = run_json(result);
    if (result.job)
        json["job"] = job_json(*result.job);
    json["campaign"] = report::campaign_json(result);
    if (result.monitors)
        json["monitor"] = report::monitor_json(result);
    json["memory"] = memory_json(result.memory);
    json["host_memory"] = {{"bytes", result.host_bytes},
                           {"capacity_bytes", static_cast<std::int64_t>(scenario.node.host_memory_bytes)}};
    json["checkpoint_bytes"] = result.checkpoint_bytes;
    json["communication"] = communication_json(result.communication);
    json["critical_path"] = critical_path_json(result);
    json["expect"] = expect_json(result);
    json["hints"] = result.hints;
    json["notes"] = std::move(notes);
    json["assumptions"] = assumptions_json(scenario.assumptions);
    json["definitions"] = definitions_json(scenario);
    json["engine"] = {{"events", result.events},
                      {"fingerprint", fmt::format("{:016x}", result.fingerprint)},
                      {"ranks", result.step.ranks},
                      {"ranks_simulated", result.ranks_simulated}};
    if (result.quantum)
        json["engine"]["quantum"] = quantum_json(result);
    return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace fabricast
