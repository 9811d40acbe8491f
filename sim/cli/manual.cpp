// fabricast manual: the manual page and the completions of shells, made from the options the verbs themselves parse.
#include <fmt/format.h>

#include <boost/program_options/value_semantic.hpp>

#include "sim/cli/command_line.hpp"
#include "sim/scenario/nearest.hpp"
#include "sim/scenario/scenario.hpp"

namespace fabricast::cli {
namespace {

namespace po = boost::program_options;

struct Flag {
    std::string name;   ///< "--output"
    std::string value;  ///< "FILE"; empty: takes none
    std::string text;
};

std::vector<Flag> flags_of(const Verb& verb) {
    std::vector<Flag> flags;
    const Options options = verb.options();
    for (const auto& option : options.named.options()) {
        const bool takes_value = option->semantic()->max_tokens() > 0;
        flags.push_back({"--" + option->long_name(), takes_value ? option->semantic()->name() : std::string(),
                         option->description()});
    }
    flags.push_back({"--help", "", "this text"});
    return flags;
}

// A line of roff: what would be read as a request or an escape is masked.
std::string roff(std::string_view text) {
    std::string out;
    for (const char c : text) {
        if (c == '\\')
            out += "\\e";
        else if (c == '-')
            out += "\\-";
        else if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n'))
            out += std::string("\\&") + c;
        else
            out += c;
    }
    return out;
}

std::string manual_page() {
    std::string page = fmt::format(
        ".TH FABRICAST 1 \"\" \"fabricast {0}\" \"User Commands\"\n.SH NAME\nfabricast \\- forecast what a training "
        "run will do "
        "on a GPU cluster\n.SH SYNOPSIS\n.B fabricast\n.I VERB\n[\\fIoption\\fR]...\n.SH DESCRIPTION\nA scenario file "
        "describes a cluster, a model, how it is cut over GPUs and a run. The program simulates training steps of it "
        "and "
        "tells step time, MFU, where the rest goes, memory, days and cost. Results go to standard output, talk to "
        "standard "
        "error.\n.SH VERBS\n",
        FABRICAST_VERSION);
    for (const Verb& verb : verbs()) {
        const Options options = verb.options();
        page += fmt::format(".SS \"fabricast {}\"\n{}.\n.PP\n.nf\n{}\n.fi\n", verb.name, roff(verb.summary),
                            roff(options.usage));
        for (const Flag& flag : flags_of(verb)) {
            page += fmt::format(".TP\n\\fB{}\\fR{}\n{}\n", roff(flag.name),
                                flag.value.empty() ? "" : " \\fI" + roff(flag.value) + "\\fR", roff(flag.text));
        }
        page += fmt::format(".PP\n.nf\n{}.fi\n", roff(options.examples));
    }
    page +=
        ".SH EXIT STATUS\n.TP\n0\ndone\n.TP\n1\nan `expect:` of the scenario was not met\n.TP\n2\nbad "
        "input\n.TP\n3\nthe "
        "simulated job failed: out of memory, deadlock\n.TP\n70\na defect of the program\n"
        ".SH ENVIRONMENT\n.TP\nNO_COLOR\nno colour on the terminal\n";
    return page;
}

bool names_file(const Flag& flag) { return flag.value == "FILE" || flag.value == "PREFIX"; }

std::string bash_completion() {
    std::string names;
    std::string cases;
    for (const Verb& verb : verbs()) {
        names += fmt::format("{}{}", names.empty() ? "" : " ", verb.name);
        std::string flags, files, values;
        for (const Flag& flag : flags_of(verb)) {
            flags += fmt::format("{}{}", flags.empty() ? "" : " ", flag.name);
            if (!flag.value.empty())
                (names_file(flag) ? files : values) +=
                    fmt::format("{}{}", (names_file(flag) ? files : values).empty() ? "" : " ", flag.name);
        }
        cases += fmt::format("        {}) flags='{}' files='{}' values='{}' ;;\n", verb.name, flags, files, values);
    }
    return fmt::format(R"(# bash completion of fabricast; made by `fabricast manual bash`
_fabricast() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} flags= files= values=
    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
        COMPREPLY=($(compgen -W '{} --help --version' -- "$word"))
        return
    fi
    case "${{COMP_WORDS[1]}}" in
{}    esac
    case " $values " in *" $before "*) return ;; esac
    case " $files " in *" $before "*) COMPREPLY=($(compgen -f -- "$word")); return ;; esac
    if [ "${{word:0:1}}" = - ]; then
        COMPREPLY=($(compgen -W "$flags" -- "$word"))
    else
        COMPREPLY=($(compgen -f -- "$word"))
    fi
}}
complete -o filenames -F _fabricast fabricast
)",
                       names, cases);
}

// Text inside '...[...]' of _arguments.
std::string zsh_text(std::string_view text) {
    std::string out;
    for (const char c : text) {
        if (c == '\'')
            out += "'\\''";
        else if (c == '[' || c == ']' || c == ':')
            out += std::string("\\") + c;
        else
            out += c;
    }
    return out;
}

std::string zsh_completion() {
    std::string names, cases;
    for (const Verb& verb : verbs()) {
        names += fmt::format("        '{}:{}'\n", verb.name, zsh_text(verb.summary));
        cases += fmt::format("        {})\n            _arguments \\\n", verb.name);
        for (const Flag& flag : flags_of(verb)) {
            const std::string value = flag.value.empty() ? ""
                                      : names_file(flag) ? fmt::format(":{}:_files", flag.value)
                                                         : fmt::format(":{}: ", zsh_text(flag.value));
            cases += fmt::format("                '*{}[{}]{}' \\\n", flag.name, zsh_text(flag.text), value);
        }
        cases += "                '*:file:_files'\n            ;;\n";
    }
    return fmt::format(R"(#compdef fabricast
# zsh completion of fabricast; made by `fabricast manual zsh`
_fabricast() {{
    local -a verbs
    verbs=(
{}    )
    if (( CURRENT == 2 )); then
        _describe verb verbs
        return
    fi
    local verb=$words[2]
    shift words
    (( CURRENT-- ))
    case $verb in
{}    esac
}}
_fabricast "$@"
)",
                       names, cases);
}

}  // namespace

Options manual_options() {
    Options options;
    options.usage = "fabricast manual man|bash|zsh";
    options.hidden.add_options()("form", po::value<std::vector<std::string>>());
    options.positional.add("form", -1);
    options.examples =
        "examples\n"
        "  fabricast manual man | man -l -\n"
        "  fabricast manual bash > ~/.local/share/bash-completion/completions/fabricast\n"
        "  fabricast manual zsh > ~/.zsh/completions/_fabricast    where fpath names that folder\n";
    return options;
}

int manual(const Arguments& arguments) {
    bool help = false;
    const po::variables_map values = parse(manual_options(), arguments, help);
    if (help)
        return kDone;
    const auto forms = values.count("form") > 0 ? values["form"].as<std::vector<std::string>>() : Arguments();
    const std::vector<std::string> known = {"man", "bash", "zsh"};
    if (forms.size() != 1) {
        throw ScenarioError(
            fmt::format("fabricast manual: takes one of {}, {} were given", listed(known), forms.size()));
    }
    const std::string& form = forms.front();
    if (form == "man")
        print_result(manual_page());
    else if (form == "bash")
        print_result(bash_completion());
    else if (form == "zsh")
        print_result(zsh_completion());
    else
        throw ScenarioError(fmt::format("fabricast manual: unknown form `{}`{}; known are {}", form,
                                        did_you_mean(form, known), listed(known)));
    return kDone;
}

}  // namespace fabricast::cli
