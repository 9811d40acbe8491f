// fabricast-validate fit FILE... --output SITE.yaml: measurements of a site -> its calibration.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>

#include "sim/report/atomic_file.hpp"
#include "validate/cli/verb_options.hpp"
#include "validate/fit/fit_site.hpp"

namespace fabricast::validate_cli {

int fit(const Arguments& arguments) {
    namespace po = boost::program_options;
    constexpr std::string_view kUsage = "fit FILE... --output SITE.yaml [option]...";
    po::options_description named("options");
    named.add_options()("output", po::value<std::string>()->value_name("FILE"), "the calibration file to write")(
        "name", po::value<std::string>()->value_name("NAME"), "what reports call it; default: the file's name")(
        "rows", po::value<std::string>()->value_name("ID,..."), "of tables of runs only these")(
        "source", po::value<std::string>()->value_name("KEY,..."), "of tables of runs only these sources")(
        "gpu", po::value<std::string>()->value_name("GPU"), "of tables of kernels only this one")(
        "jobs", po::value<int>()->default_value(0), "threads; 0: as many as there are processors");
    add_platform_options(named);
    const VerbOptions options = parse_verb(
        kUsage, named, arguments,
        "\nFILE is a measurement (.json of `measure` or `ingest`), an nccl-tests log, a table of kernels or of "
        "measured runs\n"
        "(.csv). A fit that explains less than the defaults, and a measurement above a physical peak, are refused.\n");
    if (options.help)
        return kDone;
    if (options.files.empty() || options.text("output").empty())
        throw UsageError(
            fmt::format("fabricast-validate fit: files and --output are needed; usage: fabricast-validate {}", kUsage));
    SiteOptions fit_options;
    fit_options.hint = read_platform("fit", options);
    fit_options.rows = listed_words(options.text("rows"));
    fit_options.sources = listed_words(options.text("source"));
    fit_options.gpu = options.text("gpu");
    const int jobs = options.values["jobs"].as<int>();
    if (jobs < 0)
        throw UsageError(fmt::format("fabricast-validate fit: --jobs {} must be 0 or more", jobs));
    fit_options.jobs = static_cast<unsigned>(jobs);
    const std::string output = options.text("output");
    fit_options.name = options.has("name") ? options.text("name") : std::filesystem::path(output).stem().string();
    check_writable(output);
    const SiteFit result = fit_site(options.files, fit_options);
    for (const std::string& warning : result.warnings)
        std::fprintf(stderr, "warning: %s\n", warning.c_str());
    write_file_atomically(output, calibration_yaml(result.calibration));
    print_result(fit_text(result));
    return kDone;
}

}  // namespace fabricast::validate_cli
