// fabricast-validate score measured FILE.json --calibration SITE.yaml: what the calibration says of other measurements.
#include "validate/cli/verb_options.hpp"
#include "validate/fit/score_site.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace fabricast::validate_cli {

int score_measured(const Arguments& arguments) {
    namespace po = boost::program_options;
    constexpr std::string_view kUsage = "score measured FILE... --calibration SITE.yaml [option]...";
    po::options_description named("options");
    named.add_options()("calibration", po::value<std::string>()->value_name("FILE"), "constants of the site")(
        "json", "everything, for programs")("full", "a line per point")(
        "output", po::value<std::string>()->value_name("FILE"),
        "predicted against measured as a picture: FILE.html or FILE.svg")(
        "svg", po::value<std::string>()->value_name("FILE.svg"), "the same as --output")(
        "rows", po::value<std::string>()->value_name("ID,..."), "of tables of runs only these")(
        "without", po::value<std::string>()->value_name("ID,..."), "of tables of runs all but these")(
        "source", po::value<std::string>()->value_name("KEY,..."), "of tables of runs only these sources")(
        "gpu", po::value<std::string>()->value_name("GPU"), "of tables of kernels only this one")(
        "jobs", po::value<int>()->default_value(0), "threads; 0: as many as there are processors");
    add_platform_options(named);
    const VerbOptions options = parse_verb(kUsage, named, arguments, "\nFILE as for `fit`.\n");
    if (options.help)
        return kDone;
    if (options.files.empty() || !options.has("calibration"))
        throw UsageError(fmt::format("fabricast-validate {}", "score measured: files and --calibration are needed"));
    std::vector<std::string> pictures;
    for (const char* option : {"output", "svg"}) {
        if (options.has(option))
            pictures.push_back(options.text(option));
    }
    for (const std::string& picture : pictures)
        check_picture(picture);
    SiteOptions inputs;
    inputs.hint = read_platform("score measured", options);
    inputs.rows = listed_words(options.text("rows"));
    inputs.without_rows = listed_words(options.text("without"));
    inputs.sources = listed_words(options.text("source"));
    inputs.gpu = options.text("gpu");
    inputs.jobs = static_cast<unsigned>(std::max(0, options.values["jobs"].as<int>()));
    const SiteScore result = score_site(options.files, read_calibration(options.text("calibration")), inputs);
    for (const std::string& picture : pictures)
        write_picture(picture_of(result), picture);
    print_result(options.has("json") ? site_score_json(result).dump(2) + "\n"
                                     : site_score_text(result, options.has("full")));
    return kDone;
}

}  // namespace fabricast::validate_cli
