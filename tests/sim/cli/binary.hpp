// Runs the built program as a user would: a shell command, what it printed, how it ended.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace fabricast::testing {

struct Ended {
    int code = -1;
    std::string out, err;
};

inline std::string read_text(const std::filesystem::path& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
}

/// A folder that goes away with the test.
class Scratch {
public:
    Scratch() {
        std::string pattern = (std::filesystem::temp_directory_path() / "fabricast-cli-XXXXXX").string();
        if (mkdtemp(pattern.data()) != nullptr)
            folder_ = pattern;
    }
    ~Scratch() { std::filesystem::remove_all(folder_); }
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    std::string path(const std::string& name) const { return (folder_ / name).string(); }
    std::size_t files() const {
        return static_cast<std::size_t>(
            std::distance(std::filesystem::directory_iterator(folder_), std::filesystem::directory_iterator()));
    }

private:
    std::filesystem::path folder_;
};

/// `before`: environment settings such as "NO_COLOR=1".
inline Ended fabricast(const std::string& arguments, const std::string& before = "") {
    const Scratch scratch;
    const std::string command = before + " '" FABRICAST_BINARY "' " + arguments + " 2>'" + scratch.path("err") + "'";
    Ended ended;
    FILE* pipe = popen(command.c_str(), "r");
    if (pipe == nullptr)
        return ended;
    char buffer[4096];
    for (std::size_t n = 0; (n = fread(buffer, 1, sizeof buffer, pipe)) > 0;)
        ended.out.append(buffer, n);
    const int status = pclose(pipe);
    ended.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    ended.err = read_text(scratch.path("err"));
    return ended;
}

inline bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

inline std::string scenario_path(const std::string& name) {
    return std::string(FABRICAST_SOURCE_DIR "/scenarios/") + name;
}

}  // namespace fabricast::testing
