// A command run through the shell: its exit code, and what it says on both streams.
#pragma once

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string>
#include <string_view>

namespace fabricast::test {

struct Outcome {
    int code = 0;
    std::string out;
    bool has(std::string_view text) const { return out.find(text) != std::string::npos; }
};

inline Outcome run(const std::string& command) {
    FILE* pipe = popen((command + " 2>&1").c_str(), "r");
    Outcome result;
    std::array<char, 4096> buffer{};
    for (std::size_t n = 0; (n = fread(buffer.data(), 1, buffer.size(), pipe)) > 0;)
        result.out.append(buffer.data(), n);
    result.code = WEXITSTATUS(pclose(pipe));
    return result;
}

}  // namespace fabricast::test
