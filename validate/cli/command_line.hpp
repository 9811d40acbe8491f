// What the verbs of fabricast-validate share: exit codes and errors. Results go to stdout, errors to stderr.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace fabricast::validate_cli {

enum ExitCode : int { kDone = 0, kBadInput = 2, kOurBug = 70, kInterrupted = 130 };

using Arguments = std::vector<std::string>;

/// Wrong use of the command line; one clear sentence.
struct UsageError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// First argument -> verb.
int dispatch(const Arguments& arguments);

/// fabricast-validate score KIND ...; arguments after the verb.
int score(const Arguments& arguments);
/// fabricast-validate score runs FILE ...; arguments after the kind.
int score_runs(const Arguments& arguments);
/// fabricast-validate score memory FILE ...; arguments after the kind.
int score_memory(const Arguments& arguments);
/// fabricast-validate score gemm|attention FILE; arguments after the kind.
int score_kernels(const std::string& kind, const Arguments& arguments);

/// fabricast-validate score measured FILE ... --calibration SITE.yaml; arguments after the kind.
int score_measured(const Arguments& arguments);
/// fabricast-validate measure, ingest, fit; arguments after the verb.
int measure(const Arguments& arguments);
int ingest(const Arguments& arguments);
int fit(const Arguments& arguments);

/// To stdout, whole; throws UsageError when that fails (full disk).
void print_result(std::string_view text);

}  // namespace fabricast::validate_cli
