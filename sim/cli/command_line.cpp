#include "sim/cli/command_line.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <boost/program_options/errors.hpp>
#include <boost/program_options/parsers.hpp>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "sim/scenario/nearest.hpp"
#include "sim/scenario/scenario.hpp"

namespace fabricast::cli {
namespace {

namespace po = boost::program_options;

constexpr std::array<Verb, 12> kVerbs = {{
    {"run", "forecast a training step: time, MFU, where the rest goes, memory, days, cost", run, run_options},
    {"explain", "why a step takes what it takes: causes that add up, and what if one were free", explain,
     explain_options},
    {"compare", "two scenarios side by side: what differs and what it costs", compare, compare_options},
    {"plan", "search the layouts of a scenario, rank and price them, say why the rest lost", plan_layouts,
     plan_options},
    {"report", "a stored result.json as a page, Markdown, CSV or Prometheus text", report, report_options},
    {"nccl", "the table nccl-tests would print on a cluster, with what limits each size", nccl, nccl_options},
    {"topo", "what a machine or fabric is, from its own files or a scenario", topo, topo_options},
    {"import", "a scenario from a Hugging Face config.json or another program's launch files", import_files,
     import_options},
    {"validate", "predicted against measured: runs fabricast-validate, which lies beside this program", validate,
     validate_options},
    {"presets", "list nodes, GPUs, fabrics, models and software; write a scenario for one", presets, presets_options},
    {"schema", "print the JSON Schema of scenario files, for editors", schema, schema_options},
    {"manual", "the manual page, or completion for bash or zsh", manual, manual_options},
}};

std::string main_help() {
    std::string text = fmt::format(
        "fabricast {} forecasts what a training run will do on a GPU cluster\n\n"
        "usage: fabricast VERB [option]...\n\n",
        FABRICAST_VERSION);
    for (const Verb& verb : kVerbs)
        text += fmt::format("  {:<9}{}\n", verb.name, verb.summary);
    text +=
        "\n"
        "  --help     this text; `fabricast VERB --help` says more\n"
        "  --version  version of the program\n\n"
        "examples\n"
        "  fabricast presets --scenario llama3.1-8b > my.yaml    a commented scenario to start from\n"
        "  fabricast run my.yaml                                 the forecast on one screen\n"
        "  fabricast run my.yaml --set training.micro_batch=2    the same with one thing changed\n"
        "  fabricast run my.yaml --output result.json            everything, for programs\n"
        "  fabricast run my.yaml --output report.html            a page to read and mail\n"
        "  fabricast explain my.yaml                             where the rest of the MFU goes, and why\n"
        "  fabricast compare before.yaml after.yaml              two scenarios side by side\n"
        "  fabricast plan my.yaml --gpus 256,512,1024            the layouts that are fastest and cheapest\n\n"
        "exit codes: 0 done, 1 an `expect:` failed, 2 bad input, 3 the simulated job failed, 70 a bug\n";
    return text;
}

const char* environment(const char* name) {
    const char* value = std::getenv(name);
    return value != nullptr && *value != '\0' ? value : nullptr;
}

/// As the C library reads the locale: the first of these that is set decides.
bool locale_is_utf8() {
    for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
        const char* value = environment(name);
        if (value == nullptr)
            continue;
        for (const char* spelling : {"UTF-8", "utf-8", "UTF8", "utf8"}) {
            if (std::strstr(value, spelling) != nullptr)
                return true;
        }
        return false;
    }
    return true;  // nothing is said, as in most containers: terminals of today read UTF-8
}

std::vector<std::string> option_names(const po::options_description& options) {
    std::vector<std::string> names;
    for (const auto& option : options.options())
        names.push_back("--" + option->long_name());
    return names;
}

}  // namespace

std::span<const Verb> verbs() { return kVerbs; }

int dispatch(const Arguments& arguments) {
    if (arguments.empty()) {
        std::fputs(main_help().c_str(), stderr);
        return kBadInput;
    }
    const std::string& first = arguments.front();
    if (first == "--help" || first == "-h" || first == "help") {
        print_result(main_help());
        return kDone;
    }
    if (first == "--version") {
        print_result(fmt::format("fabricast {}\n", FABRICAST_VERSION));
        return kDone;
    }
    std::vector<std::string> names;
    for (const Verb& verb : kVerbs) {
        if (verb.name == first)
            return verb.call(Arguments(arguments.begin() + 1, arguments.end()));
        names.emplace_back(verb.name);
    }
    const bool is_option = first.starts_with('-');
    const std::vector<std::string> options = {"--help", "--version"};
    throw ScenarioError(fmt::format("fabricast: unknown {} `{}`{}; known are {}, and --help",
                                    is_option ? "option" : "verb", first,
                                    did_you_mean(first, is_option ? options : names), listed(names)));
}

po::variables_map parse(Options options, const Arguments& arguments, bool& help) {
    options.named.add_options()("help,h", "this text");
    po::options_description all;
    all.add(options.named).add(options.hidden);
    const int style = int{po::command_line_style::unix_style} & ~int{po::command_line_style::allow_guessing};
    const std::string program = options.usage.substr(0, options.usage.find(' ', options.usage.find(' ') + 1));
    po::variables_map values;
    try {
        po::store(po::command_line_parser(arguments).options(all).positional(options.positional).style(style).run(),
                  values);
    } catch (const po::unknown_option& error) {
        const std::string& name = error.get_option_name();
        throw ScenarioError(fmt::format("{}: unknown option `{}`{}; `{} --help` lists them", program, name,
                                        did_you_mean(name, option_names(options.named)), program));
    } catch (const po::too_many_positional_options_error&) {
        throw ScenarioError(fmt::format("{}: takes no further arguments; usage: {}", program, options.usage));
    } catch (const po::error& error) {
        throw ScenarioError(fmt::format("{}: {}", program, error.what()));
    }
    help = values.count("help") > 0;
    if (help) {
        std::ostringstream text;
        text << "usage: " << options.usage << "\n\n" << options.named << "\n" << options.examples;
        print_result(text.str());
    }
    return values;
}

Terminal stdout_terminal(bool no_color) {
    Terminal terminal;
    const char* term = environment("TERM");
    const bool dumb = term == nullptr || std::strcmp(term, "dumb") == 0;
    terminal.color = !no_color && environment("NO_COLOR") == nullptr && !dumb && isatty(STDOUT_FILENO) != 0;
    terminal.unicode = locale_is_utf8();
    return terminal;
}

void print_result(std::string_view text) {
    errno = 0;
    const std::size_t written = std::fwrite(text.data(), 1, text.size(), stdout);
    if (written != text.size() || std::fflush(stdout) != 0) {
        throw ScenarioError(fmt::format("cannot write to standard output: {}", std::strerror(errno)));
    }
}

}  // namespace fabricast::cli
