// Sizes as nccl-tests reads, steps and rounds them.
//
// A size is a number with an optional K, M, G (powers of 1024; also KiB, MiB, GiB as typed by people). Collectives whose
// buffer is cut in n parts round the part down to a multiple of 16 bytes, so a table may start above the asked size.
// Source: nccl-tests 2.17 src/common.cu (parsesize), src/*.cu (GetCollByteCount).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "models/collectives/comm_model.hpp"

namespace fabricast::cli {

/// Nothing for text that is no size, is negative or above 2^62.
std::optional<Bytes> parse_size(std::string_view text);

struct TestedSize {
    Bytes bytes = 0;         ///< the larger of what a rank sends and receives
    std::int64_t count = 0;  ///< elements as the table prints them
};
TestedSize tested_size(Collective kind, Bytes asked, int element_bytes, std::uint32_t ranks);

/// "float" -> 4; 0 for an unknown type.
int element_bytes(std::string_view type);
std::string known_types();

/// all_reduce, also in the spelling of the test programs: "alltoall_perf". Throws ScenarioError with the nearest name.
Collective parse_collective(const std::string& text);

/// What nccl-tests prints as reduction: "sum" or "none".
std::string_view reduction_text(Collective kind);

}  // namespace fabricast::cli
