#include "sim/plan/plan.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include "models/program/mix.hpp"
#include "sim/plan/shards.hpp"
#include "sim/plan/what_if.hpp"

namespace fabricast::plan {

bool has_price(const PlanResult& r) {
    return std::all_of(r.clusters.begin(), r.clusters.end(), [](const auto& c) { return c->price() > 0; });
}

namespace {

double money(const PlanRow& row, const PlanResult& r) {
    return has_price(r) ? row.figures.cost : row.figures.gpu_hours;
}

double objective(const PlanRow& row, const PlanResult& r) {
    return r.spec.by == "cost" ? money(row, r) : row.figures.days;
}

void rank(PlanResult& r) {
    for (std::size_t i = 0; i < r.rows().size(); ++i) {
        if (r.rows()[i].meets)
            r.ranking.push_back(i);
    }
    std::stable_sort(r.ranking.begin(), r.ranking.end(), [&](std::size_t a, std::size_t b) {
        const double x = objective(r.rows()[a], r), y = objective(r.rows()[b], r);
        return x != y ? x < y : r.rows()[a].index < r.rows()[b].index;
    });
    // From the quickest on, what is cheaper than all before.
    std::vector<std::size_t> quickest = r.ranking;
    std::stable_sort(quickest.begin(), quickest.end(), [&](std::size_t a, std::size_t b) {
        const PlanRow &x = r.rows()[a], &y = r.rows()[b];
        if (x.figures.days != y.figures.days)
            return x.figures.days < y.figures.days;
        const double cx = money(x, r), cy = money(y, r);
        return cx != cy ? cx < cy : x.index < y.index;
    });
    double least = 0;
    for (const std::size_t i : quickest) {
        const double cost = money(r.rows()[i], r);
        if (r.front.empty() || cost < least) {
            r.front.push_back(i);
            least = cost;
        }
    }
}

// GPU-time a token by account: what grew from `to` to `from` most, as a share of all of `to`.
void name_cause(const PlanRow& row, const PlanRow& winner, ClassLoss& loss) {
    const auto of = [](const PlanRow& r, std::size_t a) {
        return static_cast<double>(r.evaluation.step.accounts[a]) / r.evaluation.step.tokens;
    };
    double whole = 0;
    for (std::size_t a = 0; a < kAccountCount; ++a)
        whole += of(winner, a);
    for (std::size_t a = 0; a < kAccountCount; ++a) {
        const double grown = (of(row, a) - of(winner, a)) / whole;
        if (grown > loss.cause_share) {
            loss.cause_share = grown;
            loss.cause = static_cast<Account>(a);
        }
    }
}

void tell_classes(PlanResult& r) {
    if (r.ranking.empty())
        return;
    const PlanRow& winner = r.rows()[r.ranking.front()];
    for (std::size_t d = 1; d < kDimensions; ++d) {
        const auto& values = r.found.classes[winner.cluster][d];
        for (std::uint32_t v = 0; v < values.size(); ++v) {
            const ClassFate& fate = values[v];
            if (v == winner.choice[d] || fate.layouts == 0)
                continue;
            ClassLoss loss;
            loss.dimension = static_cast<Dimension>(d);
            loss.value = v;
            loss.layouts = fate.layouts;
            for (std::size_t i = 0; i < r.rows().size(); ++i) {
                const PlanRow& row = r.rows()[i];
                if (row.cluster == winner.cluster && row.choice[d] == v && row.meets &&
                    (!loss.best || row.per_token() < r.rows()[*loss.best].per_token()))
                    loss.best = i;
            }
            const double first = winner.per_token();
            if (loss.best) {
                loss.slower = r.rows()[*loss.best].per_token() / first - 1;
                name_cause(r.rows()[*loss.best], winner, loss);
            }
            if (fate.cut > 0)  // what was cut may be quicker than what ran
                loss.at_least = std::max(0.0, fate.lowest_bound / first - 1);
            for (const auto& [rule, count] : fate.removed) {
                if (count > loss.by_rule) {
                    loss.by_rule = count;
                    loss.removed = rule;
                }
            }
            r.classes.push_back(std::move(loss));
        }
    }
}

template <typename Do>
void in_parallel(std::size_t count, unsigned threads, const Do& one) {
    oneapi::tbb::task_arena arena(threads > 0 ? static_cast<int>(threads) : oneapi::tbb::task_arena::automatic);
    arena.execute([&] { oneapi::tbb::parallel_for(std::size_t{0}, count, one); });
}

/// A layout on a machine that is not the plan's, or one that is not of the space.
struct Job {
    const PlanCluster* cluster;  ///< null: not asked
    const TrainingPlan* plan;
    std::uint64_t number;  ///< in the memory
};

// Where the memory has what is evaluated beside the space: above all numbers of layouts, by what is changed and whose.
std::uint64_t beside(std::string_view change, std::uint64_t index) {
    constexpr std::uint64_t kBeside = std::uint64_t{1} << 62;
    std::uint64_t hash = index + 1;
    for (const char c : change)
        hash = mix(hash) ^ static_cast<unsigned char>(c);
    return mix(hash) % kBeside | kBeside;
}

Evaluation evaluate_beside(const SearchOptions& options, const Job& job) {
    bool known = false;
    return evaluate_once(options, job.number, *job.cluster, *job.plan, known).value_or(Evaluation());
}

std::vector<Evaluation> evaluate_jobs(const std::vector<Job>& list, const SearchOptions& options) {
    std::vector<Evaluation> out(list.size());
    in_parallel(list.size(), options.threads, [&](std::size_t i) {
        if (list[i].cluster != nullptr)
            out[i] = evaluate_beside(options, list[i]);
    });
    return out;
}

void tell_sensitivity(PlanResult& r, const SearchOptions& options) {
    if (r.ranking.empty())
        return;
    const PlanRow& winner = r.rows()[r.ranking.front()];
    std::vector<Swing> list = swings(*r.clusters[winner.cluster]);
    std::vector<Job> jobs;
    for (const Swing& swing : list) {
        jobs.push_back({swing.with_low.get(), &winner.plan, beside(swing.what + " " + swing.low, winner.index)});
        jobs.push_back({swing.with_high.get(), &winner.plan, beside(swing.what + " " + swing.high, winner.index)});
    }
    const std::vector<Evaluation> done = evaluate_jobs(jobs, options);
    const auto change = [&](const Evaluation& e) {
        return e.ran() ? static_cast<double>(e.step.ps) / static_cast<double>(winner.evaluation.step.ps) - 1 : 0;
    };
    for (std::size_t i = 0; i < list.size(); ++i)
        r.sensitivity.push_back(
            {list[i].what, list[i].low, list[i].high, change(done[2 * i]), change(done[2 * i + 1])});
    std::stable_sort(r.sensitivity.begin(), r.sensitivity.end(), [](const Sensitivity& a, const Sensitivity& b) {
        const auto width = [](const Sensitivity& s) {
            return std::max({s.low_change, s.high_change, 0.0}) - std::min({s.low_change, s.high_change, 0.0});
        };
        return width(a) > width(b);
    });
}

// A what-if with its clusters; null where it does not apply.
struct Question {
    Change change;
    std::vector<std::unique_ptr<PlanCluster>> clusters;
};

void ask(PlanResult& r, const std::vector<Question>& questions, const SearchOptions& options) {
    const std::size_t top = std::min<std::size_t>(r.ranking.size(), static_cast<std::size_t>(r.spec.top));
    for (const auto& [change, clusters] : questions) {
        std::vector<Job> jobs;
        for (std::size_t i = 0; i < top; ++i) {
            const PlanRow& row = r.rows()[r.ranking[i]];
            jobs.push_back({clusters[row.cluster].get(), &row.plan, beside(change.text, row.index)});
        }
        // GPUs may be more or fewer then: dp takes them
        std::vector<TrainingPlan> plans;
        plans.reserve(jobs.size());
        for (auto& [cluster, plan, number] : jobs) {
            plans.push_back(*plan);
            plan = &plans.back();
            if (cluster == nullptr)
                continue;
            Layout& l = plans.back().layout;
            plans.back().offload.host_bytes_per_s = cluster->scenario().training.offload.host_bytes_per_s;
            l.dp = std::max<std::int64_t>(1, cluster->gpus() / (l.tp * l.cp * l.pp));
            std::string field;
            if (!check_layout(cluster->scenario().model, plans.back(), cluster->gpus(), field).empty())
                cluster = nullptr;
        }
        std::vector<Evaluation> done = evaluate_jobs(jobs, options);
        WhatIf out{change.text, {}, {}, {}};
        for (std::uint32_t c = 0; c < clusters.size(); ++c) {
            if (!clusters[c])
                out.skipped.push_back(c);
        }
        std::vector<std::size_t> order;
        for (std::size_t i = 0; i < top; ++i) {
            if (done[i].ran())
                order.push_back(i);
        }
        const auto figures_of = [&](std::size_t i) { return figures(*jobs[i].cluster, done[i]); };
        const auto by = [&](std::size_t i) {
            const Figures f = figures_of(i);
            return r.spec.by == "cost" ? (has_price(r) ? f.cost : f.gpu_hours) : f.days;
        };
        std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return by(a) < by(b); });
        for (const std::size_t i : order) {
            out.figures.push_back(figures_of(i));
            out.rows.emplace_back(r.ranking[i], std::move(done[i]));
        }
        r.what_ifs.push_back(std::move(out));
    }
}

// The choices that differ from `choice` in one dimension, with what is said of them. Schedule and chunks change together,
// as chunks need a schedule that has them.
std::vector<std::pair<Choice, std::string>> neighbours(const PlanSpace& space, const Choice& choice) {
    std::vector<std::pair<Choice, std::string>> out;
    const auto change = [&](Dimension d, std::uint32_t v) {
        return fmt::format("{} {} -> {}", dimension_name(d), space.value_text(d, choice[static_cast<std::size_t>(d)]),
                           space.value_text(d, v));
    };
    constexpr auto kSchedule = static_cast<std::size_t>(Dimension::schedule),
                   kChunks = static_cast<std::size_t>(Dimension::vpp);
    for (std::size_t d = 1; d < kDimensions; ++d) {
        const auto dimension = static_cast<Dimension>(d);
        for (std::uint32_t v = 0; v < space.values(dimension); ++v) {
            Choice other = choice;
            other[d] = v;
            if (v != choice[d])
                out.emplace_back(space.settled(other), change(dimension, v));
            for (std::uint32_t chunks = 0; d == kSchedule && chunks < space.values(Dimension::vpp); ++chunks) {
                other[kChunks] = chunks;
                if (v != choice[d] && chunks != choice[kChunks])
                    out.emplace_back(other, change(dimension, v) + ", " + change(Dimension::vpp, chunks));
            }
        }
    }
    return out;
}

void tell_yours(PlanResult& r, const std::vector<Condition>& conditions, const SearchOptions& options) {
    const auto given =
        std::find_if(r.clusters.begin(), r.clusters.end(), [](const auto& c) { return c->scenario().layout_given; });
    if (given == r.clusters.end())
        return;
    Yours yours;
    // The first cluster that it fits.
    bool fits = false;
    for (std::uint32_t c = 0; c < r.clusters.size() && !fits; ++c) {
        const Scenario& s = r.clusters[c]->scenario();
        std::string field;
        const std::string why = check_layout(s.model, s.training, r.clusters[c]->gpus(), field);
        fits = why.empty();
        if (!fits && c == 0)
            yours.refused = why;
        if (fits) {
            yours.refused.clear();
            yours.cluster = c;
            yours.plan = s.training;
        }
    }
    if (!fits) {
        r.yours = std::move(yours);
        return;
    }
    const PlanCluster& cluster = *r.clusters[yours.cluster];
    const auto meets = [&](bool late, const Values& values) {
        return std::all_of(conditions.begin(), conditions.end(),
                           [&](const Condition& one) { return one.needs_run() != late || one.holds(values); });
    };
    std::vector<TrainingPlan> plans = {yours.plan};
    std::vector<std::uint64_t> indices = {beside("as stated", yours.cluster)};  // the first may have more to it
    std::vector<std::string> changes = {""};
    if (Choice choice; r.space->find(yours.plan, yours.cluster, choice)) {
        yours.listed = true;
        for (const auto& [other, change] : neighbours(*r.space, choice)) {
            std::string rule, why;
            TrainingPlan plan = r.space->plan(other, rule, why);
            const std::uint64_t index = r.space->index_of(other);
            const bool again = other == choice || std::find(indices.begin() + 1, indices.end(), index) != indices.end();
            if (again || !rule.empty() || !meets(false, values_of(cluster, plan)))
                continue;
            plans.push_back(std::move(plan));
            indices.push_back(index);
            changes.push_back(change);
        }
    }
    std::vector<Evaluation> done(plans.size());
    in_parallel(plans.size(), options.threads, [&](std::size_t i) {
        bool known = false;
        done[i] = evaluate_once(options, indices[i], cluster, plans[i], known).value_or(Evaluation());
    });
    yours.evaluation = std::move(done.front());
    yours.figures = figures(cluster, yours.evaluation);
    const double own = yours.evaluation.ran() ? yours.evaluation.step_s() / yours.evaluation.step.tokens : 0;
    double best = own;
    for (std::size_t i = 1; i < done.size(); ++i) {
        if (!done[i].ran() || !meets(true, values_of(cluster, plans[i], figures(cluster, done[i]))))
            continue;
        const double other = done[i].step_s() / done[i].step.tokens;
        if (other > 0 && (best == 0 || other < best)) {
            best = other;
            yours.change = changes[i];
            yours.faster = own > 0 ? 1 - other / own : 0;
        }
    }
    r.yours = std::move(yours);
}

// What is asked, checked: everything that needs no search.
struct Asked {
    std::vector<Condition> conditions;
    std::vector<std::string> where;  ///< as typed
    std::vector<Question> questions;
};

Asked begin(const PlanRequest& request, PlanResult& r) {
    Asked asked;
    const Scenario base = request.source.load({});
    r.name = base.name;
    r.source = request.source;
    r.spec = base.plan;
    for (std::size_t i = 0; i < r.spec.where.size(); ++i)
        asked.conditions.emplace_back(r.spec.where[i], r.spec.where_places[i]);
    for (const std::string& text : request.where)
        asked.conditions.emplace_back(text, "fabricast plan: --where");
    for (const Condition& condition : asked.conditions)
        asked.where.push_back(condition.text());
    std::vector<Change> changes;
    for (const std::string& text : request.what_ifs)
        changes.emplace_back(text);
    r.clusters = plan_clusters(request.source, r.spec);
    for (Change& change : changes) {
        auto clusters = changed_clusters(request.source, r.spec, r.clusters, change);
        asked.questions.push_back({std::move(change), std::move(clusters)});
    }
    const Compression method = base.training.compression.gradients;
    if (method == Compression::int8 || method == Compression::int4)
        throw ScenarioError(
            fmt::format("{}: comm.compression.gradients: plan does not place the two levels of {}; use "
                        "`run` on single layouts",
                        base.file, compression_name(method)));
    r.space = std::make_unique<PlanSpace>(r.spec, r.clusters);
    return asked;
}

}  // namespace

std::uint64_t layouts_of(const PlanRequest& request) {
    PlanResult r;
    begin(request, r);
    return r.space->size();
}

PlanResult make_plan(const PlanRequest& request) {
    PlanResult r;
    const Asked asked = begin(request, r);
    SearchOptions options = request.search;
    options.top = static_cast<std::size_t>(r.spec.top);
    std::unique_ptr<Store> store;
    if (!request.store.empty()) {
        store = std::make_unique<Store>(request.store,
                                        store_facts(request.source, options, asked.where, r.clusters, *r.space),
                                        question_of(request));
        options.known = [&](std::uint64_t index, Evaluation& out) { return store->find(index, out); };
        options.finished = [&](std::uint64_t index, const Evaluation& e) { store->keep(index, e); };
    }
    r.found = search(*r.space, r.clusters, asked.conditions, options);
    options.only_known = false;
    rank(r);
    if (options.shards == 0 && r.found.missing.empty()) {
        tell_classes(r);
        tell_sensitivity(r, options);
        ask(r, asked.questions, options);
        tell_yours(r, asked.conditions, options);
    }
    return r;
}

}  // namespace fabricast::plan
