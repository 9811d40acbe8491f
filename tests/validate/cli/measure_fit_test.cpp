// From measurement to forecast with the binaries: measure -> fit -> score without a GPU, logs -> fit -> run.
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

namespace {

namespace fs = std::filesystem;

struct Outcome {
    int code = 0;
    std::string out;
};

Outcome run(const std::string& command) {
    FILE* pipe = popen((command + " 2>&1").c_str(), "r");
    Outcome result;
    std::array<char, 4096> buffer{};
    for (std::size_t n = 0; (n = fread(buffer.data(), 1, buffer.size(), pipe)) > 0;)
        result.out.append(buffer.data(), n);
    result.code = WEXITSTATUS(pclose(pipe));
    return result;
}
Outcome validate(const std::string& arguments) { return run(std::string(FABRICAST_VALIDATE_BINARY) + " " + arguments); }
Outcome fabricast(const std::string& arguments) { return run(std::string(FABRICAST_BINARY) + " " + arguments); }

class MeasureFit : public testing::Test {
protected:
    void SetUp() override {
        folder_ = fs::temp_directory_path() / ("fabricast-measure-" + std::to_string(::getpid()));
        fs::create_directories(folder_);
    }
    void TearDown() override { fs::remove_all(folder_); }
    std::string at(const std::string& name) const { return (folder_ / name).string(); }
    std::string write(const std::string& name, const std::string& text) const {
        std::ofstream(at(name)) << text;
        return at(name);
    }

private:
    fs::path folder_;
};

const std::string kLogs = std::string(FABRICAST_SOURCE_DIR) + "/tests/validate/ingest/data/nccl_tests/";

TEST_F(MeasureFit, HostFromMeasureToScore) {
    const Outcome first = validate("measure --backend host --quick --output " + at("node.json"));
    ASSERT_EQ(first.code, 0) << first.out;
    const Outcome fit = validate("fit " + at("node.json") + " --output " + at("host.yaml"));
    ASSERT_EQ(fit.code, 0) << fit.out;
    const Outcome second = validate("measure --backend host --quick --seed 2 --output " + at("other.json"));
    ASSERT_EQ(second.code, 0) << second.out;
    const Outcome score = validate("score measured " + at("other.json") + " --calibration " + at("host.yaml") +
                                   " --json --svg " + at("s.svg"));
    ASSERT_EQ(score.code, 0) << score.out;
    // reported, not a gate: two busy cores measure what they can
    const auto json = nlohmann::json::parse(score.out);
    ASSERT_EQ(json.at("parts").size(), 4u);
    for (const auto& part : json.at("parts"))
        RecordProperty(part.at("what").get<std::string>(), part.at("median_ape").dump());
    EXPECT_GT(fs::file_size(at("s.svg")), 1000u);
}

TEST_F(MeasureFit, LogsToForecast) {
    const Outcome ingest =
        validate("ingest nccl-tests " + kLogs + "8xh100-sxm_allreduce_dgxc.txt --output " + at("fabric.json"));
    ASSERT_EQ(ingest.code, 0) << ingest.out;
    const Outcome fit = validate("fit " + at("fabric.json") + " --output " + at("mysite.yaml"));
    ASSERT_EQ(fit.code, 0) << fit.out;
    EXPECT_NE(fit.out.find("nvlink_achieved"), std::string::npos) << fit.out;
    const std::string scenario =
        write("s.yaml",
              "cluster: {nodes: 1, node: hgx-h100}\nmodel: {preset: llama3.1-8b}\n"
              "training: {sequence: 4096 tokens, global_batch: 8 sequences, layout: {tp: 8, dp: 1}}\n");
    const Outcome plain = fabricast("run " + scenario + " --json --quiet");
    const Outcome calibrated = fabricast("run " + scenario + " --json --quiet --calibration " + at("mysite.yaml"));
    ASSERT_EQ(calibrated.code, 0) << calibrated.out;
    const auto a = nlohmann::json::parse(plain.out), b = nlohmann::json::parse(calibrated.out);
    EXPECT_NE(a.at("step").at("ps"), b.at("step").at("ps"));
    EXPECT_NE(calibrated.out.find("fitted from"), std::string::npos);
    EXPECT_EQ(fabricast("run " + scenario + " --calibration " + write("bad.yaml", "calibration: 1\ngpu: {}\n")).code,
              2);
}

TEST_F(MeasureFit, BadInputIsTwoWithASentence) {
    const std::string cut = write("cut.json", "{\"schema\": \"fabricast-measurement/1\", \"complete\": tr");
    EXPECT_NE(validate("fit " + cut + " --output " + at("x.yaml")).out.find("ends too early"), std::string::npos);
    for (const std::string& arguments :
         {"fit " + cut + " --output " + at("x.yaml"), std::string("fit"), "fit " + cut,
          "ingest nccl-tests " + kLogs + "16xh100-sxm_pairwise-failed_remote-process-exited.txt --output " +
              at("f.json"),
          std::string("ingest logs x --output y"), std::string("measure"),
          std::string("measure --backend tpu --output x"),
          std::string("measure --backend host --quick --output /no/such/folder/x.json"),
          "score measured " + cut + " --calibration " + cut}) {
        const Outcome result = validate(arguments);
        EXPECT_EQ(result.code, 2) << arguments << ": " << result.out;
        EXPECT_FALSE(result.out.empty()) << arguments;
    }
    EXPECT_FALSE(fs::exists(at("x.yaml")));
}

TEST_F(MeasureFit, NoCudaDeviceHasASentenceAndACode) {
    const Outcome result = validate("measure --output " + at("node.json"));
    if (result.code == 0)
        GTEST_SKIP() << "there is a CUDA device here";
    EXPECT_EQ(result.code, 2) << result.out;
    EXPECT_EQ(result.out.rfind("no CUDA device: ", 0), 0u) << result.out;
    EXPECT_FALSE(fs::exists(at("node.json")));
}

}  // namespace
