// The binary as a user meets it: exit codes, where text goes.
#include <array>
#include <cstdio>
#include <string>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <nlohmann/json.hpp>

namespace {

struct Outcome {
    int code = 0;
    std::string out;
};

Outcome run(const std::string& arguments) {
    const std::string command = std::string(FABRICAST_VALIDATE_BINARY) + " " + arguments + " 2>&1";
    FILE* pipe = popen(command.c_str(), "r");
    Outcome result;
    std::array<char, 4096> buffer{};
    for (std::size_t n = 0; (n = fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) {
        result.out.append(buffer.data(), n);
    }
    result.code = WEXITSTATUS(pclose(pipe));
    return result;
}

const std::string kLogs = std::string(FABRICAST_SOURCE_DIR) + "/tests/validate/ingest/data/nccl_tests/";

TEST(ValidateCommandLine, HelpAndVersion) {
    EXPECT_EQ(run("--version").code, 0);
    EXPECT_EQ(run("--version").out.rfind("fabricast-validate ", 0), 0u);
    EXPECT_EQ(run("--help").code, 0);
    EXPECT_EQ(run("score --help").code, 0);
    EXPECT_EQ(run("").code, 2);
}

TEST(ValidateCommandLine, BadInputIsTwo) {
    for (const char* arguments : {"scorn", "score", "score ncll x", "score nccl", "score nccl /no/such/file",
                                  "score nccl x --nods 2", "--wrong"}) {
        const Outcome result = run(arguments);
        EXPECT_EQ(result.code, 2) << arguments << ": " << result.out;
        EXPECT_FALSE(result.out.empty()) << arguments;
    }
    EXPECT_EQ(run("score nccl " + kLogs + "8xh100-sxm_allreduce_dgxc.txt --node hgx-h1000").code, 2);
    EXPECT_EQ(run("score nccl " + kLogs + "8xh100-sxm_allreduce_dgxc.txt --nodes 0").code, 2);
}

TEST(ValidateCommandLine, ScoresALog) {
    const Outcome text = run("score nccl " + kLogs + "8xh100-sxm_allreduce_dgxc.txt");
    EXPECT_EQ(text.code, 0);
    EXPECT_NE(text.out.find("healthy, single_node_ok"), std::string::npos) << text.out;
    const Outcome json = run("score nccl " + kLogs + "8xh100-sxm_allreduce_dgxc.txt --node hgx-h100 --nodes 1 --json");
    EXPECT_EQ(nlohmann::json::parse(json.out).at("curves").size(), 1u);
    const Outcome failed = run("score nccl " + kLogs + "16xh100-sxm_pairwise-failed_remote-process-exited.txt");
    EXPECT_EQ(failed.code, 0);
    EXPECT_NE(failed.out.find("failed"), std::string::npos) << failed.out;
}

}  // namespace
