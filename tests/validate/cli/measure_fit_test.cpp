// From measurement to forecast with the binaries: measure -> fit -> score without a GPU, logs -> fit -> run.
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

TEST_F(MeasureFit, AnInterruptLeavesAFileThatFitTakesAndNames) {
    // How much is measured by then is the machine's business: again with more time until constants can be fitted on it.
    Outcome fit;
    for (const char* seconds : {"0.7", "2", "5", "12"}) {
        const Outcome stopped =
            run("timeout --preserve-status -s INT " + std::string(seconds) + " " +
                std::string(FABRICAST_VALIDATE_BINARY) + " measure --backend host --output " + at("part.json"));
        ASSERT_EQ(stopped.code, 130) << stopped.out;
        EXPECT_NE(stopped.out.find("incomplete: interrupted"), std::string::npos) << stopped.out;
        std::ifstream in(at("part.json"));
        const auto json = nlohmann::json::parse(in);
        EXPECT_EQ(json.at("complete"), false);
        EXPECT_NE(json.at("reason").get<std::string>().find("interrupted"), std::string::npos);
        fit = validate("fit " + at("part.json") + " --output " + at("part.yaml"));
        if (fit.out.find("nothing in these files") == std::string::npos)
            break;
    }
    EXPECT_NE(fit.out.find("the measurement is partial (interrupted"), std::string::npos) << fit.out;
}

TEST_F(MeasureFit, PerftestToForecast) {
    const std::string ib = std::string(FABRICAST_SOURCE_DIR) + "/tests/validate/ingest/data/ib/";
    const Outcome ingest =
        validate("ingest perftest " + ib + "cx5-roce100_ib_write_bw_rdmacm_cpufreq-warning.txt " + ib +
                 "cx6-roce200_ib_read_lat_pod.txt --network 'RoCE 100G' --output " + at("nic.json"));
    ASSERT_EQ(ingest.code, 0) << ingest.out;
    const Outcome fit = validate("fit " + at("nic.json") + " --output " + at("nic.yaml"));
    ASSERT_EQ(fit.code, 0) << fit.out;
    const std::string scenario =
        write("r.yaml",
              "cluster: {nodes: 2, node: hgx-h100, fabric: {network: roce}}\nmodel: {preset: llama3.1-8b}\n"
              "training: {sequence: 4096 tokens, global_batch: 16 sequences, layout: {tp: 8, dp: 2}}\n");
    const Outcome plain = fabricast("run " + scenario + " --json --quiet");
    const Outcome calibrated = fabricast("run " + scenario + " --json --quiet --calibration " + at("nic.yaml"));
    ASSERT_EQ(calibrated.code, 0) << calibrated.out;
    EXPECT_GT(nlohmann::json::parse(calibrated.out).at("step").at("ps"),
              nlohmann::json::parse(plain.out).at("step").at("ps"));  // 92.4 of 98 Gb/s
    const Outcome above =
        validate("fit " + ib + "cx6-roce200_ib_write_bw_all-sizes.txt --network 100G --output " + at("x.yaml"));
    EXPECT_EQ(above.code, 2);
    EXPECT_NE(above.out.find("no adapter can be above its line rate"), std::string::npos) << above.out;
}

TEST_F(MeasureFit, RunsWithoutAModelToItsScoreAndPicture) {
    const std::string table = std::string(FABRICAST_SOURCE_DIR) + "/tests/validate/ingest/data/published_runs.csv";
    const std::string rows = " --rows vtrain-001,vtrain-009,vtrain-017,vtrain-020,vtrain-028,vtrain-031,vtrain-034";
    const Outcome fit = validate("fit " + table + rows + " --leave-out-model 'GPT 18.4B' --output " + at("lo.yaml"));
    ASSERT_EQ(fit.code, 0) << fit.out;
    const Outcome score =
        validate("score runs " + table + " --rows vtrain-028,vtrain-031,vtrain-034 --model 'GPT 18.4B' --calibration " +
                 at("lo.yaml") + " --json --output " + at("lo.html"));
    ASSERT_EQ(score.code, 0) << score.out;
    const auto json = nlohmann::json::parse(score.out);
    EXPECT_EQ(json.at("scored"), 3);
    EXPECT_LT(json.at("median_ape").get<double>(), json.at("default_median_ape").get<double>());
    EXPECT_GT(fs::file_size(at("lo.html")), 2000u);
    for (const std::string& wrong :
         {"fit " + table + " --source vtrain --lomo --output " + at("y.yaml"),
          "fit " + table + " --source vtrain --leave-out-model GPT-4 --output " + at("y.yaml"),
          "score runs " + table + rows + " --output " + at("y.png"), "score runs " + table + rows + " --model GPT-4",
          "score runs " + table + " --refit --output " + at("y.html")}) {
        const Outcome refused = validate(wrong);
        EXPECT_EQ(refused.code, 2) << wrong << ": " << refused.out;
    }
    EXPECT_FALSE(fs::exists(at("y.yaml")));
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
