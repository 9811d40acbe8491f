#include "sim/step/network_need.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "sim/step/build_cluster.hpp"
#include "sim/step/price_step.hpp"
#include "sim/step/program_edits.hpp"
#include "sim/step/scaled_network.hpp"

namespace fabricast {
namespace {

constexpr int kRowsThatDoNotFit = 2;
constexpr double kMostOfAllLinks = 6e16;  ///< bit/s; a Rate, should all nodes meet on one link, holds 7e16

/// Why a re-run did not end.
struct Refused : std::runtime_error {
    using std::runtime_error::runtime_error;
};

class Needs {
public:
    Needs(const Scenario& scenario, ForecastOptions options, NetworkNeed& out)
        : scenario_(scenario), options_(options), compute_(build_compute(scenario)), out_(out) {}

    void curve() {
        const TrainingPlan& plan = scenario_.training;
        const std::int64_t batch = plan.global_batch / plan.layout.dp;
        std::vector<std::int64_t> sizes = {plan.micro_batch};
        for (std::int64_t size = 1; size <= batch && batch % size == 0; size *= 2)
            sizes.push_back(size);
        std::sort(sizes.begin(), sizes.end());
        sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
        int too_large = 0;
        for (const std::int64_t size : sizes) {
            const bool own = size == plan.micro_batch;
            if (too_large >= kRowsThatDoNotFit && !own)
                continue;
            out_.rows.push_back(row(size, own));
            too_large += out_.rows.back().fits ? 0 : 1;
        }
    }

private:
    NetworkRow row(std::int64_t micro_batch, bool own) {
        Scenario s = scenario_;
        s.training.micro_batch = micro_batch;
        NetworkRow row;
        row.micro_batch = micro_batch;
        row.micro_batches = s.training.micro_batches();
        row.tokens = micro_batch * s.training.sequence;
        row.own = own;
        std::string field;
        row.refused = check_layout(s.model, s.training, s.training.layout.world(), field);
        if (!row.refused.empty())
            return row;
        try {
            measure(s, row);
        } catch (const Refused& refused) {
            row.refused = refused.what();
        }
        return row;
    }

    void measure(const Scenario& s, NetworkRow& row) {
        const BuiltStep built = build(s);
        row.memory = fullest_stage(built.compiled.stages).total;
        row.fits = row.memory <= out_.capacity && out_.run.verdict != "out of host memory";
        row.sent = sent_bytes(built.compiled.program, built.cluster);
        const StepResult step = simulate(built, built.cluster.links().capacity);
        row.step = row.infinite = step.ps;
        if (SentBytes::sum(row.sent.over_network) == 0) {
            row.exposed = exposed(step);
            row.bound = NetworkRow::Bound::smallest_is_enough;
            row.needs_bits_per_s = out_.smallest;
            return;
        }
        const BuiltStep fastest = build(with_scaled_network(s, out_.largest / out_.has_bits_per_s));
        const StepResult infinite =
            simulate(fastest, unlimited(fastest.cluster.links(), {LinkKind::nic, LinkKind::fabric}));
        row.infinite = infinite.ps;
        row.exposed = exposed(infinite);
        search(s, row);
    }

    void search(const Scenario& s, NetworkRow& row) {
        const auto hides = [&](double rate) {
            const BuiltStep built = build(with_scaled_network(s, rate / out_.has_bits_per_s));
            const Picoseconds step = simulate(built, built.cluster.links().capacity).ps;
            return static_cast<double>(step) <= kHiddenWithin * static_cast<double>(row.infinite);
        };
        std::vector<double> rates;
        for (double rate = out_.smallest; rate * 1.5 < out_.largest; rate *= std::sqrt(10.0))
            rates.push_back(rate);
        rates.push_back(out_.largest);
        double upper = 0, lower = 0;
        for (std::size_t i = rates.size(); i-- > 0 && lower == 0;)
            (hides(rates[i]) ? upper : lower) = rates[i];
        row.needs_bits_per_s = upper;
        row.short_bits_per_s = lower;
        if (lower == 0) {
            row.bound = NetworkRow::Bound::smallest_is_enough;
            return;
        }
        if (upper == 0) {
            row.bound = NetworkRow::Bound::largest_is_short;
            return;
        }
        while (upper > kNeedResolution * lower) {
            const double middle = std::sqrt(lower * upper);
            (hides(middle) ? upper : lower) = middle;
        }
        row.needs_bits_per_s = upper;
        row.short_bits_per_s = lower;
    }

    BuiltStep build(const Scenario& s) {
        try {
            return build_step(s, compute_, options_.max_steps, {.prices = &prices_, .validate = false});
        } catch (const std::invalid_argument& refused) {  // by the library
            throw Refused(refused.what());
        }
    }

    StepResult simulate(const BuiltStep& built, const std::vector<Rate>& capacity) {
        engine::EngineOptions engine_options;
        engine_options.fold_time = options_.fold_time;
        engine_options.quantum = scenario_.quantum;
        const StepRun run = run_program(built.compiled.program, capacity, options_.fold, engine_options);
        out_.events += run.engine.events;
        ++out_.steps;
        if (run.engine.outcome != engine::Outcome::done)
            throw Refused(run.engine.message);
        StepResult step;
        step.ranks = out_.nodes * out_.gpus_per_node;
        fill_step(step, run, built.compiled);
        return step;
    }

    static double exposed(const StepResult& step) {
        __int128 sum = 0;
        for (auto a = static_cast<std::size_t>(Account::comm_tp); a <= static_cast<std::size_t>(Account::contention);
             ++a)
            sum += step.accounts[a];
        return static_cast<double>(sum) / static_cast<double>(static_cast<__int128>(step.ps) * step.ranks);
    }

    const Scenario& scenario_;
    ForecastOptions options_;
    ComputeModel compute_;
    KernelPrices prices_;
    NetworkNeed& out_;
};

}  // namespace

const NetworkRow* NetworkNeed::own() const {
    const auto at = std::find_if(rows.begin(), rows.end(), [](const NetworkRow& row) { return row.own; });
    return at == rows.end() ? nullptr : &*at;
}

NetworkNeed network_need(const Scenario& s, ForecastOptions options) {
    NetworkNeed out;
    if (s.nodes < 2)
        throw ScenarioError(fmt::format(
            "{}: one node: nothing crosses a network, so there is none to size; clusters of two nodes or more have one",
            s.file));
    const Cluster cluster = build_cluster(s);
    out.nodes = cluster.node_count();
    out.gpus_per_node = cluster.gpus_per_node();
    out.has_bits_per_s = adapter_bits_per_s(s, cluster);
    if (!(out.has_bits_per_s > 0))
        throw ScenarioError(fmt::format("{}: the {} nodes have no network adapters, so there is no network to size",
                                        s.file, out.nodes));
    out.efficiency = s.fabric_is_listed() ? 1 : s.node.nic_efficiency;
    out.capacity = s.gpu.memory_mib << 20;
    // Trunks gather the traffic of nodes and must stay within a Rate.
    const double narrowing = std::min({1.0, s.oversubscription, s.oversubscription * s.block_oversubscription});
    const double most = kMostOfAllLinks / static_cast<double>(out.nodes) * narrowing;
    out.largest = std::max(std::min(kLargestNetwork, most), out.has_bits_per_s);
    out.smallest = std::min(kSmallestNetwork, out.has_bits_per_s);
    options.critical_path = false;
    out.run = forecast(s, options);
    out.events = out.run.events;
    const bool memory_alone = out.run.verdict == "out of memory" || out.run.verdict == "out of host memory";
    if (out.run.failure.empty() || memory_alone)
        Needs(s, options, out).curve();
    return out;
}

}  // namespace fabricast
