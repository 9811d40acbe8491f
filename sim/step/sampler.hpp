// How the samples of an epoch come to the data-parallel ranks.
//
//   padded    n_r = ceil(N / dp), samples from the front fill up
//   strided   n_r = ceil((N - r) / dp)
//   files     whole files of N / F samples: rank r has ceil((F - r) / dp) of them
//   whole     n_r = floor(N / dp), drawn from all N
//   steps_r = floor or ceil of n_r / batch, as the batch that is not full is dropped or kept (it then counts as a whole step)
//
// Coverage of an epoch. Shards: what is dropped is missed, what fills up is repeated. Whole with an order of their own: a
// sample is read by rank r with probability n_r / N, independently, so prod(1 - n_r / N) are missed. Whole in the same order:
// all ranks read the same n / N.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/scenario/job_plan.hpp"

namespace fabricast {

struct Shards {
    std::vector<std::int64_t> samples, steps;  ///< by dp rank
    double repeated = 0, missed = 0;           ///< shares of N: read more than once, never
};

/// batch: samples of a rank and step. epoch from 0 (matters with rotation).
Shards deal_samples(const DataPlan& plan, std::int64_t dp, std::int64_t batch, std::int64_t epoch);

}  // namespace fabricast
