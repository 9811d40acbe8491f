// Megatron-LM launches: shell scripts, argument dumps of a run, YAML files of flags.
//
// World = nnodes x nproc_per_node of the launcher, else nodes x GPUs of the batch header, else WORLD_SIZE; where header and
// launcher differ both are told and the launcher counts. An argument dump is the best source and is preferred when present.
#include <algorithm>
#include <sstream>

#include <fmt/format.h>

#include "sim/import/importers.hpp"
#include "sim/import/megatron_plan.hpp"
#include "sim/import/shell.hpp"

namespace fabricast::import {
namespace {

bool is_script(const std::string& word) {
    const std::string name = word.substr(word.find_last_of('/') + 1);
    return name.ends_with(".py") &&
           (name.starts_with("pretrain") || name.starts_with("train") || name.starts_with("finetune"));
}

std::optional<std::int64_t> number_in(const std::string& text) {
    std::string digits;
    for (const char c : text)
        if (std::isdigit(static_cast<unsigned char>(c)))
            digits += c;
    return digits.empty() ? std::nullopt : whole_number(digits);
}

/// "--nodes=24", "-N 24", "--gres=gpu:8" of #SBATCH lines.
void batch_header(const std::string& text, std::optional<std::int64_t>& nodes, std::optional<std::int64_t>& gpus) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        if (!line.starts_with("#SBATCH"))
            continue;
        std::istringstream words(line.substr(7));
        std::string previous;
        for (std::string word; words >> word; previous = word) {
            if (word.starts_with("#"))
                break;
            if (word.starts_with("--nodes=") || previous == "--nodes" || previous == "-N")
                nodes = number_in(word);
            if (word.starts_with("--gres=gpu") || word.starts_with("--gpus-per-node") ||
                word.starts_with("--ntasks-per-node"))
                if (const auto count = number_in(word.substr(word.find_last_of("=:") + 1)); count && *count > 1)
                    gpus = count;
        }
    }
}

/// Words of a command with strings that hold further words taken apart.
std::vector<std::string> flattened(const std::vector<std::string>& words) {
    std::vector<std::string> out;
    for (const std::string& word : words) {
        if (word.find(' ') != std::string::npos && word.find(".py") != std::string::npos)
            for (const std::string& inner : shell_words(word))
                out.push_back(inner);
        else
            out.push_back(word);
    }
    return out;
}

struct Candidate {
    std::vector<std::string> words;
    std::size_t script = 0;  ///< index of the training script, or where flags begin
    const Launch* launch = nullptr;
};

std::vector<Candidate> candidates(const ShellScript& script) {
    std::vector<Candidate> out;
    for (const Launch& launch : script.commands) {
        Candidate c;
        c.words = flattened(launch.words);
        c.launch = &launch;
        const auto found = std::find_if(c.words.begin(), c.words.end(), is_script);
        bool flags = false;
        for (const std::string& word : c.words)
            flags = flags || word.starts_with("--tensor-model-par") || word.starts_with("--num-layers") ||
                    word.starts_with("--micro-batch-size") || word.starts_with("--pipeline-model-par");
        if (found == c.words.end() && !flags)
            continue;
        c.script = found == c.words.end() ? 0 : static_cast<std::size_t>(found - c.words.begin());
        out.push_back(std::move(c));
    }
    return out;
}

void launcher(const Candidate& c, Plan& plan, bool& said) {
    const auto value = [&](std::initializer_list<const char*> names) -> std::optional<std::int64_t> {
        for (std::size_t i = 0; i < c.script; ++i) {
            for (const char* name : names) {
                std::string text;
                if (c.words[i] == name && i + 1 < c.script)
                    text = c.words[i + 1];
                else if (c.words[i].starts_with(std::string(name) + "="))
                    text = c.words[i].substr(std::string_view(name).size() + 1);
                if (text.empty())
                    continue;
                if (const std::size_t colon = text.find(':'); colon != std::string::npos) {
                    plan.tell(fmt::format("{} is a range, {}: the upper end is taken", name, text));
                    text = text.substr(colon + 1);
                }
                if (const auto number = whole_number(text))
                    return number;
                plan.tell(fmt::format("{} is `{}`, which the script alone does not settle", name, text));
            }
        }
        return std::nullopt;
    };
    const auto per_node = value({"--nproc_per_node", "--nproc-per-node", "--num_gpus"});
    const auto nodes = value({"--nnodes", "--num_nodes"});
    if (per_node)
        plan.gpus_per_node = per_node;
    if (nodes)
        plan.nodes = nodes;
    said = per_node && nodes;
}

void world(const Candidate& c, const std::string& text, Plan& plan) {
    std::optional<std::int64_t> header_nodes, header_gpus;
    batch_header(text, header_nodes, header_gpus);
    bool said = false;
    launcher(c, plan, said);
    const auto variable = [&](std::initializer_list<const char*> names) -> std::optional<std::int64_t> {
        for (const char* name : names) {
            const auto found = c.launch->variables.find(name);
            if (found != c.launch->variables.end())
                if (const auto number = whole_number(found->second))
                    return number;
        }
        return std::nullopt;
    };
    if (!plan.gpus_per_node)
        plan.gpus_per_node = header_gpus ? header_gpus : variable({"GPUS_PER_NODE", "NPROC_PER_NODE"});
    if (!plan.nodes)
        plan.nodes = header_nodes ? header_nodes : variable({"NNODES", "NUM_NODES"});
    if (header_nodes && plan.nodes && *header_nodes != *plan.nodes)
        plan.tell(fmt::format("the batch header asks for {} nodes, the launch for {}: the launch counts", *header_nodes,
                              *plan.nodes));
    else if (header_nodes && !said)
        plan.tell(fmt::format("{} nodes are taken from the batch header", *header_nodes));
    if (!plan.world && !(plan.nodes && plan.gpus_per_node))
        if (const auto total = variable({"WORLD_SIZE", "N_GPUS", "NUM_GPUS"}))
            plan.world = total;
}

void here_documents(const ShellScript& script, Plan& plan) {
    for (const auto& [target, text] : script.documents) {
        if (text.find("zero_optimization") == std::string::npos && !target.ends_with(".json"))
            continue;
        try {
            const Plan inner = import_deepspeed({target.empty() ? plan.file : target, text}, {});
            plan.zero = inner.zero;
            plan.tell(
                fmt::format("ZeRO stage {} comes from the DeepSpeed configuration the script writes", *inner.zero));
            if (*inner.zero == 0 && plan.precision.value_or("") == "bf16") {
                plan.zero = 1;
                plan.tell("ZeRO stage 0 with DeepSpeed's bf16 engine shards the optimizer like stage 1; that is taken");
            }
        } catch (const ImportError& error) {
            plan.tell(error.what());
        }
    }
}

Plan from_script(const Source& source, const Options& options) {
    Plan plan = begin(source, options, "Megatron-LM launch script");
    std::map<std::string, std::string> files;
    auto environment = options.environment;
    for (const Source& more : options.more) {
        const std::string name = more.file.substr(more.file.find_last_of('/') + 1);
        files[name] = more.text;
        if (name.ends_with(".env")) {
            const ShellScript values = read_shell(more.text, more.file, {}, environment, {});
            for (const auto& [key, value] : values.variables)
                environment.emplace(key, value);
        }
    }
    const ShellScript script = read_shell(source.text, source.file, files, environment, shell_words(options.arguments));
    for (const std::string& sentence : script.told)
        plan.tell(sentence);
    const std::vector<Candidate> all = candidates(script);
    if (all.empty())
        throw ImportError(
            fmt::format("{}: no launch of a training script was found (a word such as pretrain_gpt.py with "
                        "flags behind it)",
                        source.file));
    std::size_t chosen = 0;
    if (all.size() > 1) {
        std::string list;
        for (std::size_t i = 0; i < all.size(); ++i) {
            std::string words;
            for (const std::string& word : all[i].words)
                words += (words.empty() ? "" : " ") + word;
            list += fmt::format("\n  --run {}  line {}: {}", i + 1, all[i].launch->line,
                                words.size() > 100 ? words.substr(0, 97) + "..." : words);
        }
        if (!options.run)
            throw ImportError(fmt::format("{}: there are {} launches; which one?{}", source.file, all.size(), list));
        if (*options.run < 1 || *options.run > all.size())
            throw ImportError(fmt::format("{}: there is no run {}; there are{}", source.file, *options.run, list));
        chosen = *options.run - 1;
    }
    const Candidate& c = all[chosen];
    world(c, source.text, plan);
    if (options.gpus)
        plan.nodes.reset();
    const std::vector<std::string> words(c.words.begin() + static_cast<std::ptrdiff_t>(c.script), c.words.end());
    if (!c.launch->prefix.empty())
        plan.tell(fmt::format("the launch is made with {}", c.launch->prefix));
    if (c.words.front() == "bash" || c.words.front() == "sh") {
        plan.tell(fmt::format("the launch goes through {}, which was not given; give it as a further file",
                              c.words.size() > 1 ? c.words[1] : "another script"));
        plan.flags_open = true;
    }
    Flags flags(words, plan);
    take_flags(flags, plan);
    here_documents(script, plan);
    finish(plan);
    return plan;
}

constexpr std::string_view kDumpBegin = "arguments ------";

/// "  name ................. value" between the two rulers; prefixes of ranks are cut off.
Plan from_dump(const Source& source, const Options& options) {
    Plan plan = begin(source, options, "Megatron-LM argument dump");
    std::vector<std::pair<std::string, std::string>> pairs;
    std::istringstream lines(source.text);
    bool inside = false;
    for (std::string line; std::getline(lines, line);) {
        if (line.find("end of arguments ------") != std::string::npos)
            break;
        if (line.find(kDumpBegin) != std::string::npos) {
            inside = true;
            continue;
        }
        const std::size_t dots = line.find(" ...");
        if (!inside || dots == std::string::npos)
            continue;
        const std::size_t begin = line.rfind(' ', dots - 1);
        const std::string name = line.substr(begin == std::string::npos ? 0 : begin + 1,
                                             dots - (begin == std::string::npos ? 0 : begin + 1));
        std::size_t value = line.find_first_not_of('.', dots + 1);
        value = value == std::string::npos ? line.size() : line.find_first_not_of(' ', value);
        std::string text = value == std::string::npos ? "" : line.substr(value);
        while (!text.empty() && (text.back() == ' ' || text.back() == '\r'))
            text.pop_back();
        pairs.emplace_back(name, text);
    }
    Flags flags(pairs, plan);
    if (!plan.world)
        plan.world = flags.integer("world-size");
    if (const auto dp = flags.integer("data-parallel-size"))
        plan.dp = dp;
    take_flags(flags, plan);
    // A dump has every argument, most of them defaults: naming them all would tell nothing.
    plan.ignored.clear();
    finish(plan);
    return plan;
}

/// Maps whose keys are the flags themselves, wherever they stand (MODEL_ARGS of functional tests, model zoo files).
void collect_flags(const Tree& tree, std::vector<std::pair<std::string, std::string>>& out) {
    for (const auto& [key, value] : tree.members) {
        if (!key.starts_with("--")) {
            collect_flags(value, out);
            continue;
        }
        std::string text = value.text;
        for (const Tree& item : value.items)
            text += (text.empty() ? "" : " ") + item.text;
        out.emplace_back(key, text);
    }
}

std::string with_environment(const std::string& text, const std::map<std::string, std::string>& environment) {
    if (text.find('$') == std::string::npos)
        return text;
    const ShellScript script = read_shell("X=\"" + text + "\"", "", {}, environment, {});
    return script.variables.at("X");
}

Plan from_yaml(const Source& source, const Options& options) {
    Plan plan = begin(source, options, "Megatron-LM flags in YAML");
    const Tree root = parse_yaml_tree(source.text, source.file, plan.told);
    auto environment = options.environment;
    if (const Tree* variables = root.find("ENV_VARS"))
        for (const auto& [key, value] : variables->members)
            environment.emplace(key, value.text);
    std::vector<std::pair<std::string, std::string>> pairs;
    collect_flags(root, pairs);
    if (pairs.empty())
        throw ImportError(fmt::format("{}: no map with flags as keys (--num-layers: ...) was found", source.file));
    for (auto& [name, value] : pairs)
        value = with_environment(value, environment);
    Flags flags(pairs, plan);
    take_flags(flags, plan);
    finish(plan);
    return plan;
}

}  // namespace

Plan import_megatron(const Source& source, const Options& options) {
    if (source.text.find(kDumpBegin) != std::string::npos)
        return from_dump(source, options);
    if (source.file.ends_with(".yaml") || source.file.ends_with(".yml"))
        return from_yaml(source, options);
    return from_script(source, options);
}

}  // namespace fabricast::import
