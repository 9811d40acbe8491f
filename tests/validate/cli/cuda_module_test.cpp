// fabricast-validate and the module that measures GPUs: it needs none of CUDA's libraries itself, says what is missing, and what
// crosses the border between the two arrives. The program is put into folders with one module each, laid out as installed.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include "tests/validate/cli/run_command.hpp"

namespace {

namespace fs = std::filesystem;

using fabricast::test::Outcome;
using fabricast::test::run;

class CudaModule : public testing::Test {
protected:
    void SetUp() override {
        folder_ = fs::temp_directory_path() / ("fabricast-module-" + std::to_string(::getpid()));
        fs::create_directories(folder_ / "bin");
        fs::create_directories(folder_ / "lib/fabricast");
        std::error_code elsewhere;  // another file system
        fs::create_hard_link(FABRICAST_VALIDATE_BINARY, program(), elsewhere);
        if (elsewhere)
            fs::copy_file(FABRICAST_VALIDATE_BINARY, program());
    }
    void TearDown() override { fs::remove_all(folder_); }

    fs::path program() const { return folder_ / "bin/fabricast-validate"; }
    fs::path module() const { return folder_ / "lib/fabricast/fabricast-cuda.so"; }
    std::string file() const { return (folder_ / "node.json").string(); }
    void install(const std::string& name) const {
        fs::copy_file(fs::path(FABRICAST_MODULES) / name, module(), fs::copy_options::overwrite_existing);
    }
    Outcome measure(const std::string& more = "") const {
        return run("env -u RANK -u WORLD_SIZE " + program().string() + " measure --output " + file() + more);
    }
    /// Two lines would be two sentences; nothing is written.
    void expect_refused(const Outcome& result, const std::string& what) const {
        EXPECT_EQ(result.code, 2) << result.out;
        EXPECT_TRUE(result.out.starts_with("no CUDA device: ")) << result.out;
        EXPECT_TRUE(result.has(what)) << result.out;
        EXPECT_TRUE(result.has("--backend host")) << result.out;
        EXPECT_EQ(result.out.find('\n'), result.out.size() - 1) << result.out;
        EXPECT_FALSE(fs::exists(file()));
    }

private:
    fs::path folder_;
};

TEST_F(CudaModule, TheProgramsNeedNoLibraryOfCuda) {
    for (const std::string program : {FABRICAST_BINARY, FABRICAST_VALIDATE_BINARY}) {
        const Outcome needed = run("LC_ALL=C readelf -d " + program);
        if (needed.code == 127)
            GTEST_SKIP() << "no readelf";
        ASSERT_TRUE(needed.has("(NEEDED)")) << needed.out;
        for (const char* library : {"cuda", "cublas", "nccl", "nvidia"})
            EXPECT_FALSE(needed.has(std::string("[lib") + library)) << program << '\n' << needed.out;
    }
}

TEST_F(CudaModule, WithoutItTheSentenceSaysWhereItWasLookedFor) {
    const Outcome result = measure();
    expect_refused(result, "fabricast-cuda.so, which measures GPUs, is neither in " + program().parent_path().string());
    EXPECT_TRUE(result.has(module().parent_path().string())) << result.out;
    EXPECT_TRUE(result.has("CUDA Toolkit and NCCL makes it")) << result.out;
    const Outcome help = run(program().string() + " measure --help");
    EXPECT_EQ(help.code, 0);
    EXPECT_TRUE(help.has("Backends: host; no CUDA device")) << help.out;
    EXPECT_EQ(run(program().string() + " --version").code, 0);
}

TEST_F(CudaModule, AMissingLibraryIsNamed) {
    install("libmodule_needing.so");
    expect_refused(measure(), "libmodule_needed.so is missing, which " + module().string() + " needs: install ");
}

TEST_F(CudaModule, OneOfAnotherBuildIsRefused) {
    install("libmodule_stale.so");
    expect_refused(measure(), module().string() + " is of another build of fabricast");
    install("libmodule_needed.so");  // a library, but no module
    expect_refused(measure(), " is of another build of fabricast");
    std::ofstream(module()) << "cut off\n";
    expect_refused(measure(), module().string() + " cannot be used here (");
}

TEST_F(CudaModule, OptionsGoThereAndTheResultComesBack) {
    install("libmodule_stand_in.so");
    const Outcome help = run(program().string() + " measure --help");
    EXPECT_TRUE(help.has("Backends: host, cuda (CUDA 0.0, NCCL 0.0.0).")) << help.out;
    const Outcome result = measure(" --quick --largest 2 --store here:7");
    ASSERT_EQ(result.code, 0) << result.out;
    EXPECT_EQ(result.out, file() + ": 2 points, 0 curves\n");
    std::ifstream in(file());
    EXPECT_EQ(nlohmann::json::parse(in).at("notes").at(0),
              "quick 1 nccl 0 largest 2147483648 rank 0 of 0 store 'here:7'");
}

TEST_F(CudaModule, ErrorsAndInterruptsCrossTheBorder) {
    install("libmodule_stand_in.so");
    const Outcome wrong = measure(" --seed 2");
    EXPECT_EQ(wrong.code, 2);
    EXPECT_EQ(wrong.out, "gemm bf16: an entry is 1, 2 is right\n");
    const Outcome defect = measure(" --seed 3");
    EXPECT_EQ(defect.code, 70);
    EXPECT_TRUE(defect.has("a vector is too long\nthis is a bug")) << defect.out;
    const Outcome stopped = measure(" --seed 4");
    EXPECT_EQ(stopped.code, 130);
    EXPECT_TRUE(stopped.has("incomplete: interrupted")) << stopped.out;
}

TEST_F(CudaModule, TheRealOneLoads) {
#ifdef FABRICAST_CUDA
    const Outcome help = run(std::string(FABRICAST_VALIDATE_BINARY) + " measure --help");
    EXPECT_TRUE(help.has("Backends: host, cuda (CUDA ")) << help.out;
    EXPECT_TRUE(help.has(", NCCL 2.")) << help.out;
#else
    GTEST_SKIP() << "built without the CUDA Toolkit and NCCL";
#endif
}

}  // namespace
