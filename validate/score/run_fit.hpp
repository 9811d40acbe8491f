// The fitted constants of the step forecast: which they are, refitting them on published runs, and scoring a source with
// constants that never saw it.
//
// A constant is a factor on one number of the catalogue or of a stack, common to all rows it applies to; no constant
// belongs to a row or a source (kConstants says which rows see each). With factor 1 the scenario is the default one.
//
//   ln t(theta) = ln t(1) + sum_k S_k ln theta_k,   S_k = d ln t / d ln theta_k by one re-run at theta_k = 1.1
//
// The sensitivities come from each row cut to a few replicas and micro-batches (shares of the step hardly change). A search
// by single and paired steps minimises sum w |t / measured - 1| + 0.3 sum_k n_k (ln theta_k)^2 of the linear form, n_k the
// weight of rows that see constant k, w = 1 / sqrt(rows of the source) with mean 1, while the mean signed error stays within
// 1 % (absolute errors alone pull forecasts down: they weigh twice too slow more than half as slow). What is reported is run
// in full with the factors found.
//
// Leave one source out, two readings. Stack known: the other sources' factors, the source's own named stack with its
// published numbers. Blind: the stack's own numbers at defaults as well (FlashAttention-2 instead of 1, no host time per
// layer).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "validate/score/run_score.hpp"

namespace fabricast {

/// The row with a few replicas and micro-batches: the same work a GPU, less to simulate.
PublishedRun shortened(const PublishedRun& run);

/// Factors by name of constant.
using Factors = std::map<std::string, double>;

/// Names of all constants with the rows that see them, for reports.
std::vector<std::pair<std::string, std::string>> fitted_constants();

void apply_factors(const Factors& factors, Scenario& scenario);

/// Stack numbers that only a fit on the source itself gives, at their defaults.
void forget_stack(Scenario& scenario);

struct RunFit {
    Factors factors;
    ErrorStats linear;  ///< of the linear form with these factors
};

class RunFitter {
public:
    /// Scores all rows and measures their sensitivities. runs must outlive the fitter.
    RunFitter(const std::vector<PublishedRun>& runs, unsigned jobs);

    const RunScore& base() const { return base_; }
    /// Without the rows of one source ("" = all rows).
    RunFit fit(const std::string& without) const;
    /// The factors, and for each row its error and sensitivities.
    nlohmann::ordered_json json(const RunFit& fit) const;

private:
    struct Row {
        const RowScore* score;
        std::map<std::string, double> sensitivity;
    };
    RunScore base_;
    std::vector<Row> rows_;
};

struct LosoScore {
    RunScore known, blind;
    std::map<std::string, Factors> factors;  ///< by source left out
    RunFit all;                              ///< nothing left out
};
LosoScore score_loso(const std::vector<PublishedRun>& runs, unsigned jobs);

std::string refit_text(const RunFit& fit);
std::string loso_text(const LosoScore& score);
nlohmann::ordered_json loso_json(const LosoScore& score);

}  // namespace fabricast
