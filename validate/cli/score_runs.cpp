// fabricast-validate score runs FILE: predicted against measured step time of published runs.
#include <fmt/format.h>

#include <memory>

#include "sim/scenario/calibration.hpp"
#include "validate/cli/row_options.hpp"
#include "validate/score/run_fit.hpp"
#include "validate/score/run_score.hpp"
#include "validate/score/run_score_rules.hpp"
#include "validate/score/score_picture.hpp"

namespace fabricast::validate_cli {

int score_runs(const Arguments& arguments) {
    constexpr std::string_view kCommand = "score runs";
    boost::program_options::options_description named("options");
    named.add_options()("json", "everything, for programs")("full", "rules, and a line per run")(
        "residuals", "the residuals file that forecasts take their intervals from")(
        "loso", "constants refitted without the source they score")(
        "refit", "constants refitted on all rows: the factors to take over")(
        "calibration", boost::program_options::value<std::string>()->value_name("SITE.yaml"),
        "constants of the site that the rows are of, beside the defaults")(
        "output", boost::program_options::value<std::string>()->value_name("FILE"),
        "predicted against measured as a picture: FILE.html or FILE.svg")(
        "scenario", boost::program_options::value<std::string>(), "print the scenario file of this row instead");
    const RowOptions options = parse_row_options(kCommand, named, arguments);
    if (options.help)
        return kDone;
    std::vector<PublishedRun> runs = read_published_runs(options.file);
    if (options.has("scenario")) {
        keep_rows(runs, kCommand, options.values["scenario"].as<std::string>(), &PublishedRun::id, "--scenario");
        print_result(run_scenario(runs.front()).yaml);
        return kDone;
    }
    keep_wanted(runs, kCommand, options);
    for (const char* refit : {"refit", "loso"}) {
        for (const char* other : {"calibration", "output", "residuals"}) {
            if (options.has(refit) && options.has(other))
                throw UsageError(fmt::format("fabricast-validate {}: --{} has no effect beside --{}; leave one out",
                                             kCommand, other, refit));
        }
    }
    if (options.has("refit")) {
        const RunFitter fitter(runs, options.jobs);
        const RunFit fit = fitter.fit("");
        print_result(options.has("json") ? fitter.json(fit).dump(2) + "\n" : refit_text(fit));
        return 0;
    }
    if (options.has("loso")) {
        const LosoScore loso = score_loso(runs, options.jobs);
        print_result(options.has("json") ? loso_json(loso).dump(2) + "\n" : loso_text(loso));
        return kDone;
    }
    const std::string output = options.has("output") ? options.values["output"].as<std::string>() : "";
    if (!output.empty())
        check_picture(output);
    std::shared_ptr<const Calibration> site;
    std::string subtitle = "constants of the catalogue";
    if (options.has("calibration")) {
        site = std::make_shared<const Calibration>(read_calibration(options.values["calibration"].as<std::string>()));
        subtitle = "constants of " + site->file;
    }
    const RunScore result = fabricast::score_runs(runs, options.jobs, {}, site);
    if (!output.empty())
        write_picture(picture_of(result, subtitle), output);
    if (options.has("residuals")) {
        print_result(residuals_yaml(result));
        return kDone;
    }
    nlohmann::ordered_json json = run_score_json(result);
    std::string text = run_score_text(result, options.has("full"));
    if (site) {
        const RunScore plain = fabricast::score_runs(runs, options.jobs);
        json["calibration"] = site->file;
        json["default_mape"] = plain.total.mape;
        json["default_median_ape"] = plain.total.median;
        json["default_bias"] = plain.total.bias;
        text += fmt::format(
            "\nwith {}; the defaults: mean error {:.1f} %, median {:.1f} %, p90 {:.1f} %, bias {:+.1f} %\n", subtitle,
            100 * plain.total.mape, 100 * plain.total.median, 100 * plain.total.p90, 100 * plain.total.bias);
    }
    print_result(options.has("json") ? json.dump(2) + "\n" : text);
    return kDone;
}

}  // namespace fabricast::validate_cli
