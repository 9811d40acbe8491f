// From a published run to a scenario that anybody could run: the row's own figures, and rules for what it leaves blank.
//
// Every decision is a line of one table (fill_rules): source, condition on the row, field, value, reason. A field takes
// the row's own value where there is one and no rule overrides it; otherwise the first rule whose source and condition
// hold. No rule names a row, and none holds a number that scales a time; a rule of one source states what that source
// did or says (software, fabric), the rules of "*" are defaults for everybody.
//
// Condition: words that must all hold, `column~text` (contains), `column=text` (equals), `column!~text`.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "validate/ingest/published_runs.hpp"

namespace fabricast {

struct FillRule {
    std::string_view source;  ///< source_key, or "*"
    std::string_view when;    ///< condition, empty = always
    std::string_view field;
    std::string_view value;
    std::string_view why;
};
std::span<const FillRule> fill_rules();

/// One field of a row that the row did not state.
struct Filled {
    std::string field, value, why;
};

struct RunScenario {
    std::string yaml;            ///< a scenario file; comments say what was filled and why
    std::vector<Filled> filled;  ///< in the order of the file
};

/// Never throws for a row that read_published_runs returned; what this version cannot model is written down all the same
/// and refused by parse_scenario with its own sentence.
RunScenario run_scenario(const PublishedRun& run);

/// Layers of every stage as nanotron cuts a pipeline, by cost: a layer's products against the head's; the next stage begins
/// once the sum passes the stage's share (PipelineBlock placement, get_block_compute_costs). Stages may stay empty.
std::vector<std::int64_t> nanotron_stages(const PublishedRun& run);

}  // namespace fabricast
