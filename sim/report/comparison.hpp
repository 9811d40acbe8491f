// Two forecasts side by side.
//
//   per account   mean seconds per GPU of both, B - A, and points = 100 (B - A) / step of A
//                 the differences sum to the difference of the steps, the points to its percentage
//   by tokens     the same in GPU-seconds per million tokens, where batches or GPU counts differ: a longer iteration of a
//                 larger batch is not slower. They sum to the difference of the steps per token, times GPUs
//   cost          GPUs x price x step / tokens, of B over A; without prices the GPU-time alone
//   break-even    price of a GPU-hour of B over one of A at which a token costs the same = GPU-hours a token of A over those
//                 of B: how many GPU-hours of A one of B is worth. Of the steps alone; and of runs with faults by the GPU-hours
//                 billed (spares, stops and replayed steps included), medians of the lives
//
//   intervals     of tokens a second, from those of the steps (interval.hpp): each is that of one forecast alone; what errors
//                 of both have in common cancels in the ratio, so intervals that overlap do not say that A and B are alike
//
// A job that failed has no step; then only scenarios and memory are compared. A third result is compared with A likewise.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/report/measured.hpp"
#include "sim/scenario/differences.hpp"
#include "sim/step/result.hpp"

namespace fabricast {

struct AccountDifference {
    Account account = Account::idle;
    __int128 a_rank_ps = 0, b_rank_ps = 0;
    double a_s = 0, b_s = 0;  ///< mean over the GPUs
    double points = 0;
    double a_per_token = 0, b_per_token = 0;  ///< GPU-seconds per million tokens
};

/// What a trillion tokens take; 0: not known.
struct TokenCost {
    double gpu_hours = 0, billed_gpu_hours = 0;  ///< of steps alone; of a run with faults
    double cost = 0, billed_cost = 0;            ///< at run.price
};

enum class Intervals : std::uint8_t { unknown, overlap, apart };

struct Comparison {
    std::string letter = "B";  ///< of `b` in texts
    const Result *a = nullptr, *b = nullptr;
    std::vector<KeyDifference> keys;
    std::vector<Measurement> measured_a, measured_b;
    bool ran = false;                          ///< both
    bool same_batch = true, same_gpus = true;  ///< tokens of a step, GPUs
    std::vector<AccountDifference> accounts;   ///< accounts that either has
    double speed_ratio = 0;                    ///< tokens a second, of B over A
    Intervals intervals = Intervals::unknown;
    double gpu_s_per_token_ratio = 0;  ///< of B over A
    TokenCost tokens_a, tokens_b;
    double break_even = 0, billed_break_even = 0;  ///< price of a GPU-hour of B over A's; 0: not known
    double cost_ratio = 0;  ///< of B over A per token; 0 where a price is missing or currencies differ
};

/// Results outlive the comparison.
Comparison compare(const Result& a, const Result& b, std::vector<KeyDifference> keys);

std::string comparison_text(const Comparison& comparison, bool color, bool unicode = true);
/// `third`: of C against the same A, or nullptr.
std::string comparison_json(const Comparison& comparison, const Comparison* third = nullptr);

namespace report {
/// "1.28x faster", "1.28x slower", "as fast".
std::string speed_words(double ratio);
/// ", intervals do not overlap", ", intervals overlap"; empty where they are not known.
std::string_view interval_words(Intervals intervals);
}  // namespace report

}  // namespace fabricast
