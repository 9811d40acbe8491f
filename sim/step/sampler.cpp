#include "sim/step/sampler.hpp"

#include <algorithm>

namespace fabricast {
namespace {

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return a <= 0 ? 0 : (a + b - 1) / b; }

std::int64_t share(const DataPlan& plan, std::int64_t dp, std::int64_t rank) {
    switch (plan.sharding) {
        case DataPlan::Sharding::padded: return ceil_div(plan.samples, dp);
        case DataPlan::Sharding::strided: return ceil_div(plan.samples - rank, dp);
        case DataPlan::Sharding::whole: return plan.samples / dp;
        case DataPlan::Sharding::counts: return plan.counts[static_cast<std::size_t>(rank)];
        case DataPlan::Sharding::files: {
            // Files of floor(N / F) samples; the first N mod F of them have one more.
            const std::int64_t each = plan.samples / plan.files, more = plan.samples % plan.files;
            return ceil_div(plan.files - rank, dp) * each + ceil_div(std::min(more, plan.files) - rank, dp);
        }
    }
    return 0;
}

void cover(const DataPlan& plan, const std::vector<std::int64_t>& read, Shards& out) {
    if (plan.sharding == DataPlan::Sharding::counts)
        return;  // of which samples is not known
    const auto all = static_cast<double>(plan.samples);
    if (plan.sharding != DataPlan::Sharding::whole) {
        std::int64_t sum = 0;
        for (const std::int64_t n : read)
            sum += n;
        out.missed = static_cast<double>(std::max<std::int64_t>(plan.samples - sum, 0)) / all;
        out.repeated = static_cast<double>(std::max<std::int64_t>(sum - plan.samples, 0)) / all;
        return;
    }
    if (!plan.own_order) {
        const double seen = static_cast<double>(*std::max_element(read.begin(), read.end())) / all;
        out.missed = 1 - seen;
        out.repeated = read.size() > 1 ? seen : 0;
        return;
    }
    double none = 1, once = 0;  // of the ranks so far
    for (const std::int64_t n : read) {
        const double p = static_cast<double>(n) / all;
        once = once * (1 - p) + none * p;
        none *= 1 - p;
    }
    out.missed = none;
    out.repeated = 1 - none - once;
}

}  // namespace

Shards deal_samples(const DataPlan& plan, std::int64_t dp, std::int64_t batch, std::int64_t epoch) {
    Shards out;
    std::vector<std::int64_t> read;
    for (std::int64_t rank = 0; rank < dp; ++rank) {
        const std::int64_t n = share(plan, dp, plan.rotates ? (rank + epoch) % dp : rank);
        const std::int64_t steps = plan.drop_last ? n / batch : ceil_div(n, batch);
        out.samples.push_back(n);
        out.steps.push_back(steps);
        read.push_back(plan.drop_last ? steps * batch : n);
    }
    cover(plan, read, out);
    return out;
}

}  // namespace fabricast
