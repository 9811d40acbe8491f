// fabricast plan: the layouts of a scenario searched with the engine of `run`, ranked and priced.
#include <fmt/format.h>

#include <algorithm>
#include <boost/program_options/value_semantic.hpp>
#include <cctype>
#include <chrono>
#include <cstdio>

#include "sim/cli/command_line.hpp"
#include "sim/cli/forecast_options.hpp"
#include "sim/plan/told.hpp"
#include "sim/report/atomic_file.hpp"
#include "sim/report/plan_views.hpp"
#include "sim/report/result_views.hpp"
#include "sim/scenario/calibration.hpp"

namespace fabricast::cli {
namespace {

namespace po = boost::program_options;
using Texts = std::vector<std::string>;

Options description() {
    Options options;
    options.usage = "fabricast plan FILE [option]...";
    options.named.add_options()("gpus", po::value<std::string>()->value_name("N,N"),
                                "numbers of GPUs to compare; the same as --set plan.gpus=[N,N]")(
        "node", po::value<std::string>()->value_name("NAME,NAME"), "servers of the catalogue to compare")(
        "tokens", po::value<std::string>()->value_name("15T"), "tokens of the run that days and cost are of")(
        "price", po::value<Texts>()->value_name("[GPU=]PRICE"),
        "of a GPU-hour, for all GPUs or one kind: --price h100=2.50; repeatable")(
        "where", po::value<Texts>()->value_name("CONDITION"),
        "that a layout must meet, such as 'tp <= 8', 'mfu > 0.4', 'memory <= 70', 'tp * pp <= 16'; repeatable")(
        "what-if", po::value<Texts>()->value_name("CHANGE"),
        "price the ranking again with one thing changed: 'nic 400 -> 200 Gb/s', 'oversubscription 1 -> 2', or any key; "
        "repeatable")("by", po::value<std::string>()->value_name("days|cost"), "what the table is ranked by")(
        "top", po::value<std::string>()->value_name("N"), "rows of the table")(
        "set", po::value<Texts>()->value_name("key=value"), "override one key of the scenario; repeatable")(
        "calibration", po::value<std::string>()->value_name("FILE"),
        "constants of your site in place of the catalogue's, written by `fabricast-validate fit`")(
        "jobs", po::value<unsigned>()->value_name("N"), "threads; all when absent. The result is the same")(
        "no-prune", "simulate also what its lower bound rules out; the ranking is the same")(
        "json", "print JSON instead of text")("output", po::value<std::string>()->value_name("FILE"),
                                              "also write a file, its ending decides: .html, .json or .txt")(
        "quiet", "nothing on stderr but errors")("no-color", "no colour, as with NO_COLOR set");
    options.hidden.add_options()("file", po::value<Texts>());
    options.positional.add("file", -1);
    options.examples =
        "What varies stands under `plan:` in the scenario; dimensions it does not name take all that divides.\n\n"
        "examples\n"
        "  fabricast plan scenarios/plan/llama70b-h800.yaml --gpus 256,512,1024\n"
        "  fabricast plan my.yaml --where 'tp <= 8' --where 'memory <= 70'\n"
        "  fabricast plan my.yaml --node hgx-a100-80g,hgx-h100 --price a100=1.20 --price h100=2.50 --by cost\n"
        "  fabricast plan my.yaml --what-if 'nic 400 -> 200 Gb/s' --what-if 'oversubscription 1 -> 2'\n"
        "  fabricast plan my.yaml --json | jq '.ranking[0].set'        the keys that make the first\n\n"
        "Exit codes: 0 done, 2 bad input, or no layout meets rules and conditions, 3 none fits in memory.\n";
    return options;
}

// "15T" -> "15 Ttokens"
std::string tokens_text(const std::string& text) {
    const std::size_t letter = text.find_first_not_of("0123456789.");
    if (letter == std::string::npos || text.find("token") != std::string::npos || text.size() != letter + 1)
        return text;
    return fmt::format("{} {}tokens", text.substr(0, letter), text.substr(letter));
}

plan::PlanRequest read_request(const po::variables_map& values) {
    plan::PlanRequest request;
    const auto list = [&](const char* name) { return values.count(name) ? values[name].as<Texts>() : Texts(); };
    const auto text = [&](const char* name) {
        return values.count(name) ? values[name].as<std::string>() : std::string();
    };
    Texts& overrides = request.source.overrides;
    overrides = list("set");
    if (values.count("gpus"))
        overrides.push_back(fmt::format("plan.gpus=[{}]", text("gpus")));
    if (values.count("node"))
        overrides.push_back(fmt::format("plan.node=[{}]", text("node")));
    if (values.count("tokens"))
        overrides.push_back("run.tokens=" + tokens_text(text("tokens")));
    if (values.count("by"))
        overrides.push_back("plan.by=" + text("by"));
    if (values.count("top"))
        overrides.push_back("plan.top=" + text("top"));
    for (const std::string& price : list("price")) {
        const std::size_t equals = price.find('=');
        if (equals == std::string::npos)
            overrides.push_back(fmt::format("run.price={} USD/GPU-h", price));
        else
            overrides.push_back(fmt::format("plan.price.{}={}", price.substr(0, equals), price.substr(equals + 1)));
    }
    request.where = list("where");
    request.what_ifs = list("what-if");
    if (values.count("calibration"))
        request.source.calibration =
            std::make_shared<const Calibration>(read_calibration(values["calibration"].as<std::string>()));
    request.search.threads = values.count("jobs") ? values["jobs"].as<unsigned>() : 0;
    request.search.prune = values.count("no-prune") == 0;
    return request;
}

}  // namespace

Options plan_options() { return description(); }

int plan_layouts(const Arguments& arguments) {
    bool help = false;
    const auto values = parse(description(), arguments, help);
    if (help)
        return kDone;
    plan::PlanRequest request = read_request(values);
    const Texts files = values.count("file") ? values["file"].as<Texts>() : Texts();
    if (files.size() != 1)
        throw ScenarioError(fmt::format("fabricast plan: takes one scenario, {} were given", files.size()));
    request.source.file = files.front();
    const std::string output = values.count("output") ? values["output"].as<std::string>() : "";
    if (!output.empty()) {
        if (!output.ends_with(".json") && !output.ends_with(".txt") && !output.ends_with(".html"))
            throw ScenarioError(fmt::format(
                "fabricast plan: --output {}: the ending decides the format; known are .html, .json and .txt", output));
        check_writable(output);
    }
    const bool quiet = values.count("quiet") > 0;
    const auto begin = std::chrono::steady_clock::now();
    const plan::PlanResult result = plan::make_plan(request);
    const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (!output.empty())
        write_file_atomically(output, wants_json(output)          ? plan_json(result)
                                      : output.ends_with(".html") ? html_report(plan_json(result))
                                                                  : plan_text(result, false));
    const Terminal terminal = stdout_terminal(values.count("no-color") > 0);
    print_result(values.count("json") ? plan_json(result) : plan_text(result, terminal.color, terminal.unicode));
    if (!quiet)
        std::fputs(fmt::format("{} layouts looked at, {} simulated in {:.1f} s\n", result.found.looked_at,
                               result.found.rows.size(), took)
                       .c_str(),
                   stderr);
    if (!result.ranking.empty())
        return kDone;
    std::fputs(fmt::format("{}: {}\n", files.front(), plan::nothing_left(result)).c_str(), stderr);
    const auto memory = result.found.removed.find("memory");
    return memory != result.found.removed.end() && result.found.rows.empty() ? kJobFailed : kBadInput;
}

}  // namespace fabricast::cli
