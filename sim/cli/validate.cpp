// `fabricast validate ...` runs fabricast-validate, which lies beside this program, and ends as it does.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "sim/cli/command_line.hpp"
#include "sim/scenario/scenario.hpp"

namespace fabricast::cli {
namespace {

std::string version_of(const std::string& program) {
    FILE* pipe = ::popen(fmt::format("'{}' --version", program).c_str(), "r");
    if (pipe == nullptr)
        return {};
    std::string text;
    for (int c = std::fgetc(pipe); c != EOF && c != '\n'; c = std::fgetc(pipe))
        text += static_cast<char>(c);
    ::pclose(pipe);
    return text;
}

}  // namespace

Options validate_options() {
    Options options;
    options.usage = "fabricast validate VERB [argument]...";
    options.examples = "`fabricast validate --help` lists the verbs of fabricast-validate.\n";
    return options;
}

int validate(const Arguments& arguments) {
    std::error_code none;
    const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", none);
    const std::string sibling = (self.parent_path() / "fabricast-validate").string();
    if (::access(sibling.c_str(), X_OK) != 0)
        throw ScenarioError(fmt::format("fabricast validate: there is no program {}", sibling));
    const std::string wanted = fmt::format("fabricast-validate {}", FABRICAST_VERSION);
    if (const std::string found = version_of(sibling); found != wanted)
        throw ScenarioError(fmt::format("fabricast validate: {} says it is `{}`, this is version {}", sibling, found,
                                        FABRICAST_VERSION));
    std::vector<std::string> words = {sibling};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    for (std::string& word : words)
        argv.push_back(word.data());
    argv.push_back(nullptr);
    ::execv(sibling.c_str(), argv.data());
    throw ScenarioError(fmt::format("fabricast validate: {} does not start", sibling));
}

}  // namespace fabricast::cli
