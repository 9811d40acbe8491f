// A score as text for people and as JSON for programs (schema fabricast-nccl-score/1).
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "validate/score/nccl_score.hpp"

namespace fabricast {

struct ScoreTextOptions {
    bool points = true;  ///< a line per size
};

std::string score_text(const NcclScore& score, ScoreTextOptions options);
nlohmann::ordered_json score_json(const NcclScore& score);

}  // namespace fabricast
