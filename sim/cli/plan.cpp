// fabricast plan: the layouts of a scenario searched with the engine of `run`, ranked and priced; in one go, in shards, or as
// an array of Slurm tasks.
#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <cstdio>
#include <filesystem>

#include "sim/cli/plan_request.hpp"
#include "sim/cli/plan_slurm.hpp"
#include "sim/cli/progress_bar.hpp"
#include "sim/export/launch.hpp"
#include "sim/plan/shards.hpp"
#include "sim/plan/told.hpp"
#include "sim/report/atomic_file.hpp"
#include "sim/report/plan_views.hpp"
#include "sim/report/result_views.hpp"
#include "sim/scenario/nearest.hpp"

namespace fabricast::cli {
namespace {

namespace po = boost::program_options;
using Texts = std::vector<std::string>;

std::string text_of(const po::variables_map& values, const char* name) {
    return values.count(name) ? values[name].as<std::string>() : std::string();
}

void say(const po::variables_map& values, const std::string& text) {
    if (values.count("quiet") == 0)
        std::fputs(text.c_str(), stderr);
}

[[noreturn]] void refuse(const std::string& why) { throw ScenarioError("fabricast plan: " + why); }

// Options that mean nothing together.
void refuse_beside(const po::variables_map& values, const char* what, std::initializer_list<const char*> others,
                   const char* why) {
    for (const char* other : others) {
        if (values.count(other))
            refuse(fmt::format("{} goes without --{}: {}", what, other, why));
    }
}

void check_output(const std::string& output) {
    if (output.empty())
        return;
    if (!output.ends_with(".json") && !output.ends_with(".txt") && !output.ends_with(".html"))
        refuse(fmt::format("--output {}: the ending decides the format; known are .html, .json and .txt", output));
    check_writable(output);
}

plan::PlanResult search_with_bar(const po::variables_map& values, plan::PlanRequest& request) {
    ProgressBar bar(values.count("quiet") > 0);
    if (bar.shows())
        request.search.progress = [&](const plan::SearchProgress& progress) { bar.tell(progress); };
    return plan::make_plan(request);
}

std::string remembered(const plan::PlanRequest& request, const plan::PlanResult& result) {
    return request.store.empty() ? std::string() : fmt::format(", {} known from {}", result.found.known, request.store);
}

// Memory removed all that can be cut so; no condition and no failure had a part in it.
bool memory_alone(const plan::SearchResult& found) {
    bool memory = false, other = !found.rows.empty();
    for (const auto& [rule, removed] : found.removed) {
        memory = memory || rule == "memory";
        other = other || rule.starts_with("where ") || rule == "failed";
    }
    return memory && !other;
}

int print_plan(const po::variables_map& values, const plan::PlanRequest& request, const plan::PlanResult& result) {
    const std::string output = text_of(values, "output");
    if (!output.empty())
        write_file_atomically(output, output.ends_with(".json")   ? plan_json(result)
                                      : output.ends_with(".html") ? html_report(plan_json(result))
                                                                  : plan_text(result, false));
    const Terminal terminal = stdout_terminal(values.count("no-color") > 0);
    print_result(values.count("json") ? plan_json(result) : plan_text(result, terminal.color, terminal.unicode));
    if (!result.ranking.empty())
        return kDone;
    std::fputs(fmt::format("{}: {}\n", request.source.file, plan::nothing_left(result)).c_str(), stderr);
    return memory_alone(result.found) ? kJobFailed : kBadInput;
}

// "megatron:3": the format, and the row of the ranking, from 1.
struct Export {
    const launch::Format* format = nullptr;
    std::size_t row = 1;
};

Export read_export(const std::string& text) {
    Export out;
    Texts names;
    const std::string name = text.substr(0, text.find(':'));
    for (const launch::Format& format : launch::formats()) {
        names.emplace_back(format.name);
        if (format.name == name)
            out.format = &format;
    }
    if (out.format == nullptr)
        refuse(
            fmt::format("--export {}: unknown format{}; known are {}", text, did_you_mean(name, names), listed(names)));
    if (name.size() < text.size()) {
        const char *begin = text.data() + name.size() + 1, *end = text.data() + text.size();
        const auto [rest, error] = std::from_chars(begin, end, out.row);
        if (error != std::errc() || rest != end || out.row == 0)
            refuse(fmt::format("--export {}: behind the colon stands a row of the table, 1 or more", text));
    }
    return out;
}

// Ranks behind the last of the table are not established: what is cut might stand there.
void check_row(const Export& wanted, const plan::PlanRequest& request) {
    const std::int64_t top = request.source.load({}).plan.top;
    if (wanted.row > static_cast<std::uint64_t>(top))
        refuse(
            fmt::format("--export: row {} is behind the {} of the table, whose ranks alone are established; ask with "
                        "--top {}",
                        wanted.row, top, wanted.row));
}

void print_export(const po::variables_map& values, const Export& wanted, const plan::PlanResult& result) {
    if (result.ranking.size() < wanted.row)
        refuse(fmt::format("--export: there is no row {}, the ranking has {}", wanted.row, result.ranking.size()));
    const plan::PlanRow& row = result.rows()[result.ranking[wanted.row - 1]];
    const launch::Launch launch = wanted.format->write(result.clusters[row.cluster]->scenario(), row.plan);
    print_result(launch.text);
    for (const std::string& note : launch.notes)
        say(values, fmt::format("not said in it: {}\n", note));
}

int whole(const po::variables_map& values, plan::PlanRequest& request) {
    const std::string format = text_of(values, "export");
    if (!format.empty()) {
        refuse_beside(values, "--export", {"json", "output"}, "it prints a launch file instead of the table");
        const Export wanted = read_export(format);
        check_row(wanted, request);
        const plan::PlanResult result = search_with_bar(values, request);
        if (result.ranking.empty())
            return print_plan(values, request, result);
        print_export(values, wanted, result);
        return kDone;
    }
    check_output(text_of(values, "output"));
    const auto begin = std::chrono::steady_clock::now();
    const plan::PlanResult result = search_with_bar(values, request);
    const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    const int code = print_plan(values, request, result);
    say(values, fmt::format("{} layouts looked at, {} simulated in {:.1f} s{}\n", result.found.looked_at,
                            result.found.rows.size(), took, remembered(request, result)));
    return code;
}

int one_shard(const po::variables_map& values, plan::PlanRequest& request) {
    refuse_beside(values, "--shard", {"json", "output", "slurm", "export"}, "`fabricast plan merge` prints the table");
    if (request.store.empty())
        refuse("--shard needs --store FILE, beside which the shard keeps its own");
    read_shard(text_of(values, "shard"), request.search);
    const std::string whole_store = request.store;
    request.store = plan::shard_store(whole_store, request.search.shard);
    const plan::PlanResult result = search_with_bar(values, request);
    say(values, fmt::format("shard {} of {}: {} layouts looked at, {} simulated{}\n", request.search.shard,
                            request.search.shards, result.found.looked_at, result.found.rows.size(),
                            remembered(request, result)));
    say(values, fmt::format("when all have ended: fabricast plan merge {}\n", shell_word(whole_store)));
    return kDone;
}

int merge(const po::variables_map& values, Texts files) {
    refuse_beside(values, "merge",
                  {"gpus", "node", "tokens", "price", "where", "what-if", "by", "top", "set", "calibration", "store",
                   "shard", "slurm", "submit", "export", "no-prune"},
                  "it prints what the shards were asked; ask otherwise with `fabricast plan FILE --store STORE`");
    if (files.empty())
        refuse(
            "merge takes the store to fill, such as plan.db, and the shards' stores, those beside it when none is "
            "named");
    check_output(text_of(values, "output"));
    const std::string store = files.front();
    files.erase(files.begin());
    plan::Merged merged = plan::merge_shards(store, std::move(files));
    merged.request.search.threads = values.count("jobs") ? values["jobs"].as<unsigned>() : 0;
    const plan::PlanResult result = search_with_bar(values, merged.request);
    if (!result.found.missing.empty()) {
        std::string list;
        const std::string text = plan::missing_text(merged, result.found.missing, list);
        throw ScenarioError(
            fmt::format("{}: not complete: of {} shards, {}; begin these again (sbatch --array={}), or let `fabricast "
                        "plan {} --store {}` "
                        "evaluate the rest",
                        store, merged.shards, text, list, shell_word(merged.request.source.file), shell_word(store)));
    }
    const int code = print_plan(values, merged.request, result);
    say(values, fmt::format("{} shards, {} evaluations of {} layouts\n", merged.shards, result.found.known,
                            result.found.looked_at));
    return code;
}

int slurm(const po::variables_map& values, const plan::PlanRequest& request) {
    refuse_beside(values, "--slurm", {"json", "output", "export"}, "`fabricast plan merge` prints the table");
    SlurmJob job;
    job.tasks = values["slurm"].as<std::uint32_t>();
    if (job.tasks == 0)
        refuse("--slurm 0: takes the number of tasks, 1 or more");
    const std::uint64_t layouts = plan::layouts_of(request);
    if (layouts < job.tasks)
        refuse(fmt::format("--slurm {}: there are {} layouts only", job.tasks, layouts));
    const std::filesystem::path file(request.source.file);
    const std::string store = request.store.empty() ? file.stem().string() + ".plan.db" : request.store;
    job.name = file.stem().string();
    job.cpus = values.count("jobs") ? std::max(1u, values["jobs"].as<unsigned>()) : 1;
    job.store = std::filesystem::absolute(store).lexically_normal().string();
    job.command = {"plan", std::filesystem::absolute(file).lexically_normal().string()};
    const Texts words = plan_words(values);
    job.command.insert(job.command.end(), words.begin(), words.end());
    const std::string script = store + ".sbatch";
    write_file_atomically(script, slurm_script(job));
    std::string text = fmt::format("{}: {} tasks for {} layouts\n", script, job.tasks, layouts);
    text += values.count("submit") ? submit(script) : fmt::format("begin:  sbatch {}\n", shell_word(script));
    text += fmt::format("then:   fabricast plan merge {}\n", shell_word(store));
    print_result(text);
    if (job.tasks > 1000)
        say(values, "Slurm takes arrays of up to 1000 tasks unless the site's MaxArraySize is larger\n");
    return kDone;
}

}  // namespace

int plan_layouts(const Arguments& arguments) {
    bool help = false;
    const auto values = parse(plan_options(), arguments, help);
    if (help)
        return kDone;
    Texts files = values.count("file") ? values["file"].as<Texts>() : Texts();
    if (!files.empty() && files.front() == "merge")
        return merge(values, Texts(files.begin() + 1, files.end()));
    if (files.size() != 1)
        refuse(fmt::format("takes one scenario, {} were given", files.size()));
    plan::PlanRequest request = plan_request(values);
    request.source.file = files.front();
    request.store = text_of(values, "store");
    if (values.count("submit") && values.count("slurm") == 0)
        refuse("--submit goes with --slurm N");
    if (values.count("shard"))
        return one_shard(values, request);
    if (values.count("slurm"))
        return slurm(values, request);
    return whole(values, request);
}

}  // namespace fabricast::cli
