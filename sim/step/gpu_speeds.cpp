#include "sim/step/gpu_speeds.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "models/compute/spread.hpp"
#include "models/parallel/stage_builder.hpp"

namespace fabricast {
namespace {

// The template whose ranks compute longest in a step; the first of equal ones.
std::uint32_t busiest_template(const program::Program& p) {
    std::uint32_t busiest = 0;
    __int128 most = -1;
    for (std::uint32_t t = 0; t < p.templates.size(); ++t) {
        const std::vector<std::int64_t> runs = program::executions(p.templates[t]);
        __int128 work = 0;
        for (std::size_t i = 0; i < runs.size(); ++i) {
            const program::Operation& op = p.templates[t].operations[i];
            if (op.kind == program::OpKind::compute)
                work += static_cast<__int128>(p.costs[op.payload].work) * runs[i];
        }
        if (work > most) {
            most = work;
            busiest = t;
        }
    }
    return busiest;
}

}  // namespace

// The slowest GPU counts most where the work is: the expected one is the first rank of the busiest stage. Replicas that agree
// on fp8 scales keep step with each other pass by pass, so that every stage goes as its own slowest GPU does; otherwise a
// replica that meets the slowest GPU of one stage has nominal ones in the others.
void set_gpu_speeds(const Scenario& s, program::Program& p) {
    if (s.gpu_draw_each)
        for (std::uint32_t rank = 0; rank < p.ranks.size(); ++rank)
            p.ranks[rank].slowness = gpu_slowness(s.gpu_spread, s.seed, rank);
    const std::uint32_t busiest = busiest_template(p);
    const auto slowest =
        std::find_if(p.ranks.begin(), p.ranks.end(), [&](const program::Rank& rank) { return rank.tmpl == busiest; });
    if (!s.gpu_draw_each)
        slowest->slowness = expected_slowest(s.gpu_spread, static_cast<std::int64_t>(p.ranks.size()));
    slowest->slowness = std::max(slowest->slowness, static_cast<std::uint32_t>(std::llround(65536 * s.slow_gpu)));
    if (s.gpu_draw_each || !agrees_on_scales(s.training, s.software) || s.software.fp8_largest != LargestValues::stage)
        return;
    std::vector<std::int64_t> ranks(p.templates.size(), 0);
    for (const program::Rank& rank : p.ranks)
        ++ranks[rank.tmpl];
    std::vector<bool> done(p.templates.size(), false);
    done[busiest] = true;
    for (program::Rank& rank : p.ranks) {
        if (done[rank.tmpl])
            continue;
        rank.slowness = expected_slowest(s.gpu_spread, ranks[rank.tmpl]);
        done[rank.tmpl] = true;
    }
}

}  // namespace fabricast
