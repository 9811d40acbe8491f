// Views of a log held against its forecast: the interval beside the series, what was found, which faults look like it.
#pragma once

#include <string>

#include "sim/diagnose/diagnosis.hpp"
#include "sim/step/result.hpp"

namespace fabricast {

/// One sentence for what is to be seen: "from step 3500 on steps are 16.4 % longer (+0.38 s), to the end".
std::string pattern_sentence(const Explained& explained, const Diagnosis& diagnosis);
/// What was found in a line, the doubt whether log and scenario belong together first.
std::string observed_verdict(const Diagnosis& diagnosis);

/// scenario: path as given, log: name of the file.
std::string observed_text(const Diagnosis& diagnosis, const Result& result, const std::string& log, bool color,
                          bool unicode = true);

/// result.json of the forecast with one more key, `observed`.
std::string observed_json(const Diagnosis& diagnosis, const Result& result, const std::string& log);

}  // namespace fabricast
