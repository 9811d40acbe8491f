#include "sim/cli/plan_request.hpp"

#include <fmt/format.h>

#include <boost/program_options/value_semantic.hpp>
#include <charconv>
#include <filesystem>

#include "sim/scenario/calibration.hpp"

namespace fabricast::cli {
namespace {

namespace po = boost::program_options;
using Texts = std::vector<std::string>;

}  // namespace

Options plan_options() {
    Options options;
    options.usage = "fabricast plan FILE [option]...\n       fabricast plan merge STORE [SHARD]... [option]...";
    options.named.add_options()("gpus", po::value<std::string>()->value_name("N,N"),
                                "numbers of GPUs to compare; the same as --set plan.gpus=[N,N]")(
        "node", po::value<std::string>()->value_name("NAME,NAME"), "servers of the catalogue to compare")(
        "tokens", po::value<std::string>()->value_name("15T"), "tokens of the run that days and cost are of")(
        "price", po::value<Texts>()->value_name("[GPU=]PRICE"),
        "of a GPU-hour, for all GPUs or one kind: --price h100=2.50; repeatable")(
        "where", po::value<Texts>()->value_name("CONDITION"),
        "that a layout must meet, such as 'tp <= 8', 'mfu > 0.4', 'memory <= 70', 'tp * pp <= 16'; repeatable")(
        "what-if", po::value<Texts>()->value_name("CHANGE"),
        "price the ranking again with one thing changed: 'nic 400 -> 200 Gb/s', 'oversubscription 1 -> 2', 'price 1.90 "
        "-> "
        "1.50 USD/GPU-h', or a key of cluster, model, comm or training.software; repeatable")(
        "by", po::value<std::string>()->value_name("days|cost"), "what the table is ranked by")(
        "top", po::value<std::string>()->value_name("N"), "rows of the table")(
        "set", po::value<Texts>()->value_name("key=value"), "override one key of the scenario; repeatable")(
        "calibration", po::value<std::string>()->value_name("FILE"),
        "constants of your site in place of the catalogue's, written by `fabricast-validate fit`")(
        "store", po::value<std::string>()->value_name("FILE"),
        "remember every evaluation in this SQLite file: a run that was stopped goes on from there, and another "
        "question about the same layouts costs only what was not evaluated")(
        "shard", po::value<std::string>()->value_name("I/N"),
        "evaluate part I of N (0 to N-1) into a store of its own, the name of --store with .I; prints no table")(
        "slurm", po::value<std::uint32_t>()->value_name("N"),
        "write a batch script, the name of --store with .sbatch: an array of N tasks, a shard each; without --store it "
        "is FILE's name with .plan.db, in this folder")("submit", "with --slurm: hand the script to sbatch")(
        "export", po::value<std::string>()->value_name("FORMAT[:ROW]"),
        "print a layout of the ranking, the first or ROW, as megatron, torchtitan or deepspeed want it")(
        "jobs", po::value<unsigned>()->value_name("N"),
        "threads, of a task with --slurm; all when absent. The result is the same")(
        "no-prune", "simulate also what its lower bound rules out; the ranking is the same")(
        "json", "print JSON instead of text")("output", po::value<std::string>()->value_name("FILE"),
                                              "also write a file, its ending decides: .html, .json or .txt")(
        "quiet", "nothing on stderr but errors")("no-color", "no colour, as with NO_COLOR set");
    options.hidden.add_options()("file", po::value<Texts>());
    options.positional.add("file", -1);
    options.examples =
        "What varies stands under `plan:` in the scenario; dimensions it does not name take all that divides.\n"
        "`merge` takes the shards' stores, those beside STORE when none is named, into STORE, and prints the table "
        "that\n"
        "one process would have printed.\n\n"
        "examples\n"
        "  fabricast plan scenarios/plan/llama70b-h800.yaml --gpus 256,512,1024\n"
        "  fabricast plan my.yaml --where 'tp <= 8' --where 'memory <= 70'\n"
        "  fabricast plan my.yaml --node hgx-a100-80g,hgx-h100 --price a100=1.20 --price h100=2.50 --by cost\n"
        "  fabricast plan my.yaml --what-if 'nic 400 -> 200 Gb/s' --what-if 'oversubscription 1 -> 2'\n"
        "  fabricast plan my.yaml --json | jq '.ranking[0].set'        the keys that make the first\n"
        "  fabricast plan my.yaml --export megatron > flags.sh         the first as Megatron-LM's arguments\n"
        "  fabricast plan my.yaml --store plan.db                      stop it, begin it again: it goes on\n"
        "  fabricast plan my.yaml --store plan.db --shard 3/8          the fourth of eight parts, into plan.db.3\n"
        "  fabricast plan my.yaml --slurm 200 --store plan.db --submit\n"
        "  fabricast plan merge plan.db                                when all parts have ended\n\n"
        "Exit codes: 0 done, 2 bad input, a store that is damaged, in use or of another plan, a full disk, shards that "
        "are\n"
        "not complete, or no layout meets rules and conditions, 3 memory alone leaves none.\n";
    return options;
}

namespace {

// "15T" -> "15 Ttokens"
std::string tokens_text(const std::string& text) {
    const std::size_t letter = text.find_first_not_of("0123456789.");
    if (letter == std::string::npos || text.find("token") != std::string::npos || text.size() != letter + 1)
        return text;
    return fmt::format("{} {}tokens", text.substr(0, letter), text.substr(letter));
}

Texts list_of(const po::variables_map& values, const char* name) {
    return values.count(name) ? values[name].as<Texts>() : Texts();
}

}  // namespace

plan::PlanRequest plan_request(const po::variables_map& values) {
    plan::PlanRequest request;
    const auto text = [&](const char* name) {
        return values.count(name) ? values[name].as<std::string>() : std::string();
    };
    Texts& overrides = request.source.overrides;
    overrides = list_of(values, "set");
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
    for (const std::string& price : list_of(values, "price")) {
        const std::size_t equals = price.find('=');
        if (equals == std::string::npos)
            overrides.push_back(
                fmt::format("run.price={}{}", price, price.find(' ') == std::string::npos ? " USD/GPU-h" : ""));
        else
            overrides.push_back(fmt::format("plan.price.{}={}", price.substr(0, equals), price.substr(equals + 1)));
    }
    request.where = list_of(values, "where");
    request.what_ifs = list_of(values, "what-if");
    if (values.count("calibration"))
        request.source.calibration =
            std::make_shared<const Calibration>(read_calibration(values["calibration"].as<std::string>()));
    request.search.threads = values.count("jobs") ? values["jobs"].as<unsigned>() : 0;
    request.search.prune = values.count("no-prune") == 0;
    return request;
}

std::vector<std::string> plan_words(const po::variables_map& values) {
    Texts out;
    for (const char* name : {"set", "price", "where", "what-if"}) {
        for (const std::string& text : list_of(values, name)) {
            out.push_back(fmt::format("--{}", name));
            out.push_back(text);
        }
    }
    for (const char* name : {"gpus", "node", "tokens", "by", "top"}) {
        if (values.count(name)) {
            out.push_back(fmt::format("--{}", name));
            out.push_back(values[name].as<std::string>());
        }
    }
    if (values.count("calibration")) {
        out.emplace_back("--calibration");
        out.push_back(std::filesystem::absolute(values["calibration"].as<std::string>()).string());
    }
    if (values.count("no-prune"))
        out.emplace_back("--no-prune");
    return out;
}

void read_shard(const std::string& text, plan::SearchOptions& out) {
    const char* end = text.data() + text.size();
    const auto [slash, first] = std::from_chars(text.data(), end, out.shard);
    const bool begun = first == std::errc() && slash != end && *slash == '/';
    const auto [last, second] = std::from_chars(begun ? slash + 1 : end, end, out.shards);
    if (!begun || second != std::errc() || last != end || out.shard >= out.shards)
        throw ScenarioError(fmt::format(
            "fabricast plan: --shard {}: takes I/N with I from 0 to N-1, such as 0/8 for the first of eight", text));
}

}  // namespace fabricast::cli
