// The README's commands print what the README says they print: blocks of ```console, commands behind `$`, a line of `...` for
// lines left out.
#include <cstdio>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace fabricast {
namespace {

struct Session {
    std::string command;
    std::vector<std::string> printed;
};

std::vector<Session> sessions() {
    std::ifstream file(FABRICAST_SOURCE_DIR "/README.md");
    std::vector<Session> all;
    bool inside = false;
    for (std::string line; std::getline(file, line);) {
        if (line.starts_with("```")) {
            inside = line == "```console";
        } else if (inside && line.starts_with("$ ")) {
            all.push_back({line.substr(2), {}});
        } else if (inside && !all.empty()) {
            all.back().printed.push_back(line);
        }
    }
    return all;
}

/// Lines of standard output; `rc` is the exit code.
std::vector<std::string> lines_of(const std::string& command, int& rc) {
    const std::string whole =
        "cd '" FABRICAST_SOURCE_DIR "' && LC_ALL=C.UTF-8 NO_COLOR=1 sh -c '" + command + "' 2>/dev/null";
    std::string text;
    FILE* pipe = ::popen(whole.c_str(), "r");
    char buffer[4096];
    for (std::size_t n; (n = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;)
        text.append(buffer, n);
    rc = ::pclose(pipe);
    std::vector<std::string> lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);)
        lines.push_back(line);
    return lines;
}

TEST(FrontDoor, EveryPastedOutputIsWhatTheProgramPrints) {
#ifndef NDEBUG
    GTEST_SKIP() << "whole scenarios: Release only";
#endif
    const std::vector<Session> all = sessions();
    EXPECT_GE(all.size(), 5u);
    for (const Session& session : all) {
        ASSERT_TRUE(session.command.starts_with("build/fabricast ")) << session.command;
        const std::string command = FABRICAST_BINARY + session.command.substr(std::string("build/fabricast").size());
        int rc = 0;
        const std::vector<std::string> lines = lines_of(command, rc);
        EXPECT_EQ(rc, 0) << session.command;
        std::size_t at = 0;
        bool gap = false;
        for (const std::string& expected : session.printed) {
            if (expected == "...") {
                gap = true;
                continue;
            }
            const std::size_t from = at;
            while (gap && at < lines.size() && lines[at] != expected)
                ++at;
            ASSERT_LT(at, lines.size()) << session.command << "\nnot printed behind line " << from << ": " << expected;
            ASSERT_EQ(lines[at], expected) << session.command << "\nline " << at;
            ++at;
            gap = false;
        }
        EXPECT_TRUE(gap || at == lines.size()) << session.command << "\nmore is printed: " << lines[at];
    }
}

}  // namespace
}  // namespace fabricast
