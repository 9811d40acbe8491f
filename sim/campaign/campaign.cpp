#include "sim/campaign/campaign.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>

#include <oneapi/tbb/parallel_for.h>

#include "models/compute/math.hpp"
#include "models/faults/random.hpp"
#include "sim/campaign/replica.hpp"

namespace fabricast::campaign {

std::uint64_t replica_seed(const CampaignSpec& spec, std::uint32_t index) {
    return faults::Draws(spec.seed, faults::Purpose::replica, index).word();
}

ReplicaResult run_replica(const CampaignSpec& spec, StepTimes& steps, std::uint32_t index, bool record) {
    return Replica(spec, steps, replica_seed(spec, index), record).run();
}

CampaignResult run_campaign(const CampaignSpec& spec, StepTimes& steps, const RunOne& run,
                            std::optional<std::uint32_t> shown) {
    assert(!spec.phases.empty() && spec.replicas > 0 && "a campaign has something to do");
    CampaignResult result;
    result.replicas.resize(spec.replicas);
    oneapi::tbb::parallel_for(std::uint32_t{0}, spec.replicas,
                              [&](std::uint32_t i) { result.replicas[i] = run(spec, steps, i, false); });
    std::vector<std::uint32_t> order(spec.replicas);
    std::iota(order.begin(), order.end(), 0u);
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
        return result.replicas[a].ettr() < result.replicas[b].ettr();
    });
    result.shown_index = shown.value_or(order[(order.size() - 1) / 2]);
    result.shown = run(spec, steps, result.shown_index, true);
    result.advice = advise(spec, steps.step({spec.phases.front().key, 0}));
    return result;
}

Quantiles CampaignResult::of(const std::function<double(const ReplicaResult&)>& figure) const {
    std::vector<double> values;
    Quantiles q;
    for (const ReplicaResult& replica : replicas) {
        values.push_back(figure(replica));
        q.mean += values.back();
    }
    q.mean /= static_cast<double>(replicas.size());
    std::sort(values.begin(), values.end());
    const auto at = [&](std::size_t tenth) { return values[(tenth * values.size() + 9) / 10 - 1]; };
    q.p10 = at(1);
    q.p50 = at(5);
    q.p90 = at(9);
    return q;
}

double CampaignResult::mean_spent(Spent spent) const {
    double part = 0, whole = 0;
    for (const ReplicaResult& replica : replicas) {
        part += static_cast<double>(replica.spent[static_cast<std::size_t>(spent)]);
        whole += static_cast<double>(replica.wall);
    }
    return whole > 0 ? part / whole : 0;
}

double CampaignResult::mean_lost_by(std::size_t component) const {
    double part = 0, whole = 0;
    for (const ReplicaResult& replica : replicas) {
        part += component < replica.lost_by.size() ? static_cast<double>(replica.lost_by[component]) : 0;
        whole += static_cast<double>(replica.wall);
    }
    return whole > 0 ? part / whole : 0;
}

IntervalAdvice advise(const CampaignSpec& spec, Nanoseconds step) {
    const CheckpointSpec& c = spec.checkpoint;
    const RecoverySpec& r = spec.recovery;
    IntervalAdvice a;
    const double rate = spec.fleet.rate() * spec.fleet.nodes / 86400;
    if (c.mode == SaveMode::none || c.every_steps == 0 || rate <= 0)
        return a;
    double detection = 0;
    for (const faults::Component& component : spec.fleet.components) {
        const Nanoseconds notice = component.shows == faults::Shows::hang        ? r.detect_hang
                                   : component.shows == faults::Shows::transport ? r.detect_transport
                                                                                 : r.detect_crash;
        detection += component.rate / spec.fleet.rate() * seconds_of(notice);
    }
    const double spread = math::exp(r.spread * r.spread / 2);
    a.given = {seconds_of(c.block + c.drag), 1 / rate,
               detection + spread * seconds_of(r.locate + r.swap + r.start + r.communicators) + seconds_of(c.load)};
    a.interval = seconds_of(c.every_steps * step);
    a.ettr = faults::exact_ettr(a.given, a.interval);
    a.ettr_best = a.ettr;
    if (a.given.save <= 0)
        return a;
    a.young = faults::young_interval(a.given);
    a.daly = faults::daly_interval(a.given);
    a.best = faults::best_interval(a.given);
    a.ettr_best = faults::exact_ettr(a.given, a.best);
    return a;
}

}  // namespace fabricast::campaign
