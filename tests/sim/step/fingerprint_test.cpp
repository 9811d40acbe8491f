// Every shipped scenario against the checked-in table tests/determinism/fingerprints.txt: one number says whether
// anything moved, on any machine and compiler. tests/determinism/update.sh writes the table anew.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support.hpp"

namespace fabricast {
namespace {

namespace fs = std::filesystem;

const std::string kRoot = FABRICAST_SOURCE_DIR;
const std::string kTable = kRoot + "/tests/determinism/fingerprints.txt";

/// Shipped scenarios by path from the root, sorted; `base-*.yaml` are parts of others.
std::vector<std::string> scenarios() {
    std::vector<std::string> out;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(kRoot + "/scenarios")) {
        const std::string file = entry.path().filename().string();
        if (entry.path().extension() == ".yaml" && !file.starts_with("base-"))
            out.push_back(fs::relative(entry.path(), kRoot).string());
    }
    std::sort(out.begin(), out.end());
    return out;
}

/// "fingerprint step_ps" of a scenario; a job that fails has its verdict instead.
std::string measure(const std::string& path) {
    const test::Forecast f = test::run_file(path);
    if (!f.result.failure.empty())
        return f.result.verdict;
    return fmt::format("{:016x} {}", f.result.fingerprint, f.step().ps);
}

std::map<std::string, std::string> table() {
    std::map<std::string, std::string> out;
    std::ifstream file(kTable);
    for (std::string line; std::getline(file, line);) {
        const std::size_t space = line.find(' ');
        if (!line.empty() && line[0] != '#' && space != std::string::npos)
            out[line.substr(0, space)] = line.substr(space + 1);
    }
    return out;
}

TEST(Fingerprint, ShippedScenariosGiveTheCheckedInNumbers) {
#ifndef NDEBUG
    GTEST_SKIP() << "slow with sanitizers; tests/determinism/run.sh compares the builds";
#endif
    std::map<std::string, std::string> now;
    for (const std::string& path : scenarios())
        now[path] = measure(path);
    if (std::getenv("FABRICAST_UPDATE_FINGERPRINTS") != nullptr) {
        std::ofstream file(kTable);
        file << "# scenario fingerprint step.ps, written by tests/determinism/update.sh\n";
        for (const auto& [path, numbers] : now)
            file << path << ' ' << numbers << '\n';
        ASSERT_TRUE(file.flush()) << kTable;
        return;
    }
    const std::map<std::string, std::string> expected = table();
    std::string differences;
    for (const auto& [path, numbers] : now) {
        const auto at = expected.find(path);
        if (at == expected.end())
            differences += fmt::format("  {} is new: {}\n", path, numbers);
        else if (at->second != numbers)
            differences += fmt::format("  {} gives {}, the table has {}\n", path, numbers, at->second);
    }
    for (const auto& [path, numbers] : expected) {
        if (!now.contains(path))
            differences += fmt::format("  {} is in the table but not in scenarios/\n", path);
    }
    EXPECT_EQ(differences, "")
        << "Results moved. If that is meant, run tests/determinism/update.sh and commit the table\n"
           "with the change that caused it; if not, something depends on machine or compiler.";
}

}  // namespace
}  // namespace fabricast
