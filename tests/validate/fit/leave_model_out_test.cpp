// Constants of two models of one site forecast the third. The whole table of four takes two minutes:
// fabricast-validate fit tests/validate/ingest/data/published_runs.csv --source vtrain --lomo
#include "validate/fit/leave_model_out.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <unistd.h>

#include "sim/observed/ingest_error.hpp"

namespace fabricast {
namespace {

const std::string kRuns = std::string(FABRICAST_SOURCE_DIR) + "/tests/validate/ingest/data/published_runs.csv";

/// Quick rows of three of vTrain's models.
SiteOptions few() {
    SiteOptions options;
    options.rows = {"vtrain-001", "vtrain-005", "vtrain-009", "vtrain-017", "vtrain-027", "vtrain-028",
                    "vtrain-029", "vtrain-031", "vtrain-053", "vtrain-055", "vtrain-057", "vtrain-073"};
    options.jobs = 2;
    options.name = "site";
    return options;
}

TEST(LeaveModelOut, ConstantsOfTwoModelsForecastTheThird) {
#ifndef NDEBUG
    GTEST_SKIP() << "a fit or many draws: Release only; the same code runs in the tests beside it";
#endif
    const ModelsLeftOut result = leave_models_out({kRuns}, few());
    ASSERT_EQ(result.models.size(), 3u);
    for (const ModelLeftOut& one : result.models) {
        EXPECT_EQ(one.errors.size(), 4u) << one.model;
        EXPECT_EQ(one.fitted_on, 8u) << one.model;
        EXPECT_LT(error_stats(one.errors).median, 0.07) << one.model;
        EXPECT_EQ(one.kept, one.reason.empty()) << one.model << one.reason;
        if (one.kept) {
            EXPECT_FALSE(one.calibration.gpus.empty() && one.calibration.networks.empty()) << one.model;
        } else {
            EXPECT_EQ(one.errors, one.default_errors) << one.model;
            EXPECT_TRUE(one.calibration.gpus.empty()) << one.model;
        }
    }
    EXPECT_LT(all_errors(result, false).median, 0.065);
    const std::string text = models_left_out_text(result);
    EXPECT_NE(text.find("GPT 39.1B"), std::string::npos) << text;
    const auto json = models_left_out_json(result);
    EXPECT_EQ(json.at("models").size(), 3u);
    EXPECT_EQ(json.at("left_out").at("n"), 12);
}

/// A site whose GPUs run matrix products at 0.85 of the catalogue's rate, of which nobody knows.
std::vector<StepCase> slow_site() {
    SiteOptions options = few();
    std::erase_if(options.rows, [](const std::string& id) { return id > "vtrain-050"; });
    std::vector<std::string> warnings;
    std::vector<StepCase> cases = read_site_inputs({kRuns}, options, warnings).steps;
    const double sustained = Catalogue::builtin().find_gpu("A100-SXM-80G")->gemm.sustained;
    auto truth = std::make_shared<Calibration>();
    truth->gpus = {{"A100-SXM-80G", {{"gemm.sustained", 0.85 * sustained}}}};
    const std::vector<double> times = forecast_cases(cases, truth, 2);
    for (std::size_t i = 0; i < cases.size(); ++i)
        cases[i].step_s = times[i];
    return cases;
}

TEST(LeaveModelOut, AConstantOffTheDefaultIsFoundAndCarriesOver) {
    const ModelsLeftOut result = leave_models_out(slow_site(), {}, 2);
    ASSERT_EQ(result.models.size(), 2u);
    for (const ModelLeftOut& one : result.models) {
        EXPECT_TRUE(one.kept) << one.reason;
        EXPECT_GT(error_stats(one.default_errors).median, 0.06) << one.model;
        EXPECT_LT(error_stats(one.errors).median, 0.02) << one.model;
        EXPECT_LT(std::abs(error_stats(one.errors).bias), 0.03) << one.model;
    }
    EXPECT_LT(all_errors(result, false).p90, 0.4 * all_errors(result, true).p90);
}

std::string refusal(const SiteOptions& options) {
    try {
        leave_models_out({kRuns}, options);
    } catch (const IngestError& error) {
        return error.what();
    }
    return {};
}

TEST(LeaveModelOut, RefusesOneModelMixedGpusAndAnUnknownName) {
    SiteOptions options = few();
    options.rows = {"vtrain-001", "vtrain-005"};
    EXPECT_NE(refusal(options).find("jobs of two models and more are needed"), std::string::npos) << refusal(options);
    options.rows = {"vtrain-001", "vtrain-005", "vtrain-027", "simumax_b200-001"};
    EXPECT_NE(refusal(options).find("mixed GPUs, "), std::string::npos) << refusal(options);
    options = few();
    options.without_models = {"GPT 40B"};
    EXPECT_NE(refusal(options).find("no model `GPT 40B` to leave out; its rows have GPT 18.4B, GPT 3.6B, GPT 39.1B"),
              std::string::npos)
        << refusal(options);
}

TEST(SiteInputs, ATableOfKernelsOfTwoGpusNeedsAChoice) {
    const std::string table = std::filesystem::temp_directory_path() / (std::to_string(::getpid()) + "-gemm.csv");
    std::ofstream(table) << "gpu,dtype,m,n,k,tflops,library,batch_or_groups,source,notes\n"
                            "A100-SXM-80G,bf16,1024,1536,3072,213.6,cublas,1,a,\n"
                            "H100-SXM-80G,bf16,8192,8192,8192,690.0,cublas,1,b,\n";
    SiteOptions options;
    std::vector<std::string> warnings;
    try {
        read_site_inputs({table}, options, warnings);
        FAIL() << "accepted";
    } catch (const IngestError& error) {
        EXPECT_NE(std::string(error.what()).find("mixed GPUs, "), std::string::npos) << error.what();
        EXPECT_NE(std::string(error.what()).find("choose with --gpu"), std::string::npos) << error.what();
    }
    options.gpu = "H100-SXM-80G";
    EXPECT_EQ(read_site_inputs({table}, options, warnings).kernels.size(), 1u);
    std::filesystem::remove(table);
}

TEST(SiteInputs, LeaveAModelOut) {
    SiteOptions options = few();
    options.without_models = {"GPT 3.6B"};
    std::vector<std::string> warnings;
    const SiteInputs in = read_site_inputs({kRuns}, options, warnings);
    EXPECT_EQ(in.steps.size(), 8u);
    EXPECT_TRUE(std::none_of(in.steps.begin(), in.steps.end(), [](const auto& s) { return s.group == "GPT 3.6B"; }));
}

}  // namespace
}  // namespace fabricast
