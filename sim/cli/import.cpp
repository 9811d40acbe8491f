// fabricast import: a scenario from a Hugging Face config.json or from another program's launch files. The scenario goes to
// stdout, everything that did not go into it to stderr.
#include "sim/import/importers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/program_options/value_semantic.hpp>
#include <cstdio>

#include "sim/cli/command_line.hpp"
#include "sim/report/atomic_file.hpp"
#include "sim/scenario/document.hpp"
#include "sim/scenario/nearest.hpp"
#include "sim/scenario/scenario.hpp"

namespace fabricast::cli {
namespace {

namespace po = boost::program_options;
using Texts = std::vector<std::string>;

std::string format_list() {
    std::string text = "formats\n";
    for (const import::Format& format : import::formats())
        text += fmt::format("  {:<16} {}\n", format.name, format.example);
    return text;
}

Options description() {
    Options options;
    options.usage = "fabricast import FORMAT FILE [FILE]... [option]...";
    options.named.add_options()("output,o", po::value<std::string>()->value_name("FILE"),
                                "write the scenario to a file instead of stdout")(
        "gpus", po::value<std::int64_t>()->value_name("N"), "GPUs of the run, where the file does not say")(
        "env", po::value<Texts>()->value_name("NAME=VALUE"),
        "an environment variable the launch runs with; repeatable")(
        "args", po::value<std::string>()->value_name("\"...\""), "what the launch script is called with ($1 $2 ...)")(
        "run", po::value<std::size_t>()->value_name("N"), "which launch of a script that has several");
    options.hidden.add_options()("words", po::value<Texts>());
    options.positional.add("words", -1);
    options.examples = format_list() +
                       "\nfurther files: scripts the first one sources, an .env file\n\n"
                       "examples\n"
                       "  fabricast import hf config.json > model.yaml\n"
                       "  fabricast import torchtitan llama3_405b.toml --gpus 128 -o run.yaml\n"
                       "  fabricast import nemo conf.yaml --env TENSOR_MODEL_PARALLEL=4\n"
                       "  fabricast import megatron train.sh --args \"data ckpt\" > run.yaml\n";
    return options;
}

import::Source read_source(const std::string& file){Diagnostics diagnostics;
import::Source source{file, {}};
read_file(file, {file, 0, 0}, source.text, diagnostics);
diagnostics.throw_if_any();
return source;
}  // namespace

import::Options import_options(const po::variables_map& values){import::Options options;
if (values.count("gpus")) {
    options.gpus = values["gpus"].as<std::int64_t>();
    if (*options.gpus < 1 || *options.gpus > 1'048'576)
        throw ScenarioError(fmt::format("fabricast import: --gpus {} must be from 1 to 1048576", *options.gpus));
}
if (values.count("args"))
    options.arguments = values["args"].as<std::string>();
if (values.count("run"))
    options.run = values["run"].as<std::size_t>();
if (values.count("env")) {
    for (const std::string& pair : values["env"].as<Texts>()) {
        const std::size_t equals = pair.find('=');
        if (equals == std::string::npos || equals == 0)
            throw ScenarioError(fmt::format("fabricast import: --env {} needs NAME=VALUE", pair));
        options.environment[pair.substr(0, equals)] = pair.substr(equals + 1);
    }
}
return options;
}  // namespace fabricast::cli

}  // namespace

Options import_options() { return description(); }

int import_files(const Arguments& arguments) {
    bool help = false;
    const po::variables_map values = parse(description(), arguments, help);
    if (help)
        return kDone;
    const Texts words = values.count("words") ? values["words"].as<Texts>() : Texts();
    Texts names;
    for (const import::Format& format : import::formats())
        names.emplace_back(format.name);
    if (words.empty())
        throw ScenarioError(fmt::format("fabricast import: no format given; known are {}", listed(names)));
    const auto formats = import::formats();
    const auto format = std::find_if(formats.begin(), formats.end(),
                                     [&](const import::Format& candidate) { return candidate.name == words[0]; });
    if (format == formats.end())
        throw ScenarioError(fmt::format("fabricast import: unknown format `{}`{}; known are {}", words[0],
                                        did_you_mean(words[0], names), listed(names)));
    if (words.size() < 2)
        throw ScenarioError(
            fmt::format("fabricast import {}: no file given, such as {}", format->name, format->example));
    import::Options options = import_options(values);
    for (std::size_t i = 2; i < words.size(); ++i)
        options.more.push_back(read_source(words[i]));
    try {
        const import::Plan plan = format->read(read_source(words[1]), options);
        const std::string scenario = import::scenario_yaml(plan);
        std::fputs(import::remarks(plan).c_str(), stderr);
        if (values.count("output"))
            write_file_atomically(values["output"].as<std::string>(), scenario);
        else
            print_result(scenario);
    } catch (const import::ImportError& error) {
        throw ScenarioError(error.what());
    }
    return kDone;
}

}  // namespace fabricast::cli
