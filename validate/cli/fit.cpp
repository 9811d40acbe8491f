// fabricast-validate fit FILE... --output SITE.yaml: measurements of a site -> its calibration.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>

#include "sim/report/atomic_file.hpp"
#include "validate/cli/verb_options.hpp"
#include "validate/fit/fit_site.hpp"
#include "validate/fit/leave_model_out.hpp"

namespace fabricast::validate_cli {
namespace {

void warn(const std::vector<std::string>& warnings) {
    for (const std::string& warning : warnings)
        std::fprintf(stderr, "warning: %s\n", warning.c_str());
}

}  // namespace

int fit(const Arguments& arguments) {
    namespace po = boost::program_options;
    constexpr std::string_view kUsage = "fit FILE... --output SITE.yaml [option]...";
    po::options_description named("options");
    named.add_options()("output", po::value<std::string>()->value_name("FILE"), "the calibration file to write")(
        "name", po::value<std::string>()->value_name("NAME"), "what reports call it; default: the file's name")(
        "rows", po::value<std::string>()->value_name("ID,..."), "of tables of runs only these")(
        "source", po::value<std::string>()->value_name("KEY,..."), "of tables of runs only these sources")(
        "leave-out-model", po::value<std::string>()->value_name("MODEL,..."), "of tables of runs all but these models")(
        "lomo", "instead of a calibration: each model forecast by constants of the others, beside the defaults")(
        "json", "--lomo: everything, for programs")("gpu", po::value<std::string>()->value_name("GPU"),
                                                    "of tables of kernels only this one")(
        "jobs", po::value<int>()->default_value(0), "threads; 0: as many as there are processors");
    add_platform_options(named);
    const VerbOptions options = parse_verb(
        kUsage, named, arguments,
        "\nFILE is a measurement (.json of `measure` or `ingest`), an nccl-tests or perftest log, a table of kernels "
        "or of "
        "measured runs\n"
        "(.csv). A fit that explains less than the defaults, and a measurement above a physical peak, are refused.\n");
    if (options.help)
        return kDone;
    const bool lomo = options.has("lomo");
    if (options.files.empty() || options.text("output").empty() != lomo)
        throw UsageError(
            fmt::format("fabricast-validate fit: {}; usage: fabricast-validate {}",
                        lomo ? "--lomo takes files and writes no --output" : "files and --output are needed", kUsage));
    if (options.has("json") && !lomo)
        throw UsageError("fabricast-validate fit: --json goes with --lomo");
    SiteOptions fit_options;
    fit_options.hint = read_platform("fit", options);
    fit_options.rows = listed_words(options.text("rows"));
    fit_options.sources = listed_words(options.text("source"));
    fit_options.without_models = listed_words(options.text("leave-out-model"));
    fit_options.gpu = options.text("gpu");
    const int jobs = options.values["jobs"].as<int>();
    if (jobs < 0)
        throw UsageError(fmt::format("fabricast-validate fit: --jobs {} must be 0 or more", jobs));
    fit_options.jobs = static_cast<unsigned>(jobs);
    if (lomo) {
        const ModelsLeftOut result = leave_models_out(options.files, fit_options);
        warn(result.warnings);
        print_result(options.has("json") ? models_left_out_json(result).dump(2) + "\n" : models_left_out_text(result));
        return kDone;
    }
    const std::string output = options.text("output");
    fit_options.name = options.has("name") ? options.text("name") : std::filesystem::path(output).stem().string();
    check_writable(output);
    const SiteFit result = fit_site(options.files, fit_options);
    warn(result.warnings);
    write_file_atomically(output, calibration_yaml(result.calibration));
    print_result(fit_text(result));
    return kDone;
}

}  // namespace fabricast::validate_cli
