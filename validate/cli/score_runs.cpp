// fabricast-validate score runs FILE: predicted against measured step time of published runs.
#include "validate/cli/row_options.hpp"
#include "validate/score/run_fit.hpp"
#include "validate/score/run_score.hpp"
#include "validate/score/run_score_rules.hpp"

namespace fabricast::validate_cli {

int score_runs(const Arguments& arguments) {
    constexpr std::string_view kCommand = "score runs";
    boost::program_options::options_description named("options");
    named.add_options()("json", "everything, for programs")("full", "rules, and a line per run")(
        "residuals", "the residuals file that forecasts take their intervals from")(
        "loso", "constants refitted without the source they score")(
        "refit", "constants refitted on all rows: the factors to take over")(
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
    const RunScore result = fabricast::score_runs(runs, options.jobs);
    if (options.has("residuals"))
        print_result(residuals_yaml(result));
    else
        print_result(options.has("json") ? run_score_json(result).dump(2) + "\n"
                                         : run_score_text(result, options.has("full")));
    return kDone;
}

}  // namespace fabricast::validate_cli
