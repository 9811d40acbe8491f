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

namespace {

// Groups of eight GPUs that meet in a call of the template, from the first rank that runs it.
std::vector<std::int64_t> eights_of_calls(const program::Program& p, const program::Rank& rank) {
    std::vector<std::int64_t> of_slot(rank.groups.size(), 1);
    for (std::size_t slot = 0; slot < rank.groups.size(); ++slot) {
        if (rank.groups[slot] == program::kNone)
            continue;
        std::vector<std::uint32_t> eights;
        for (const std::uint32_t member : p.groups[rank.groups[slot]].members)
            if (eights.empty() || eights.back() != member / kJitterGpus)
                eights.push_back(member / kJitterGpus);
        std::sort(eights.begin(), eights.end());
        of_slot[slot] = std::unique(eights.begin(), eights.end()) - eights.begin();
    }
    std::vector<std::int64_t> out(p.calls.size(), 1);
    for (std::size_t call = 0; call < p.calls.size(); ++call)
        if (p.calls[call].slot < of_slot.size())
            out[call] = of_slot[p.calls[call].slot];
    return out;
}

// Goes through a template in the order of its step and adds up the work since ranks of several eights last met in line.
class Meetings {
public:
    Meetings(const Scenario& s, const program::Program& p, program::Template& t, const program::Rank& rank)
        : s_(s), p_(p), t_(t), rank_(rank), eights_(eights_of_calls(p, rank)) {}

    void run() { walk(0, static_cast<std::uint32_t>(t_.nodes.size())); }

private:
    // The second round of a repeat is how it goes on: it overwrites what the first found.
    void walk(std::uint32_t begin, std::uint32_t end) {
        for (std::uint32_t at = begin; at < end;) {
            const program::Node& node = t_.nodes[at];
            if (node.kind == program::Node::Kind::operation) {
                visit(t_.operations[node.operation]);
                at = node.end;
                continue;
            }
            const std::int64_t count = node.kind != program::Node::Kind::repeat ? 1
                                       : node.bound == program::kNone           ? node.count
                                       : node.bound < rank_.bindings.size()     ? rank_.bindings[node.bound]
                                                                                : 1;
            const std::int64_t met = met_;
            const __int128 before = since_;
            walk(at + 1, node.end);
            if (count > 1 && met_ == met)
                since_ += (since_ - before) * (count - 1);
            else if (count > 1)
                walk(at + 1, node.end);
            at = node.end;
        }
    }

    void visit(program::Operation& op) {
        if (op.stream != 0)
            return;
        if (op.kind == program::OpKind::compute)
            since_ += p_.costs[op.payload].work;
        if (op.kind != program::OpKind::collective || eights_[op.payload] < 2)
            return;
        const double sigma = s_.kernel_jitter * std::sqrt(static_cast<double>(since_) * 1e-12);
        op.late = std::llround(sigma * mean_maximum(eights_[op.payload]) * 1e12);
        since_ = 0;
        ++met_;
    }

    const Scenario& s_;
    const program::Program& p_;
    program::Template& t_;
    const program::Rank& rank_;
    std::vector<std::int64_t> eights_;
    __int128 since_ = 0;
    std::int64_t met_ = 0;
};

}  // namespace

void set_lateness(const Scenario& s, program::Program& p) {
    if (s.gpu_draw_each || s.kernel_jitter <= 0)
        return;
    for (std::uint32_t t = 0; t < p.templates.size(); ++t) {
        const auto rank = std::find_if(p.ranks.begin(), p.ranks.end(), [&](const auto& r) { return r.tmpl == t; });
        if (rank != p.ranks.end())
            Meetings(s, p, p.templates[t], *rank).run();
    }
}

engine::EngineOptions::Noise kernel_noise_of(const Scenario& s) {
    if (!s.gpu_draw_each || s.kernel_jitter <= 0)
        return {};
    return {static_cast<std::uint32_t>(std::llround(s.kernel_jitter * 1e6)), kJitterGpus, s.seed, &kernel_noise};
}

}  // namespace fabricast
