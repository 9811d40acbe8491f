#include "sim/plan/search.hpp"

#include <algorithm>
#include <atomic>
#include <set>

#include <fmt/format.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include "models/program/mix.hpp"
#include "sim/plan/bound.hpp"

namespace fabricast::plan {
namespace {

constexpr std::size_t kSeeds = 16, kRound = 16;

bool faster(const PlanRow& a, const PlanRow& b) {
    if (a.cluster != b.cluster)
        return a.cluster < b.cluster;
    const double x = a.per_token(), y = b.per_token();
    return x != y ? x < y : a.index < b.index;
}

class Search {
public:
    Search(const PlanSpace& space, const std::vector<std::unique_ptr<PlanCluster>>& clusters,
           const std::vector<Condition>& conditions, const SearchOptions& options)
        : space_(space),
          clusters_(clusters),
          conditions_(conditions),
          options_(options),
          arena_(options.threads > 0 ? static_cast<int>(options.threads) : oneapi::tbb::task_arena::automatic) {}

    SearchResult run() {
        out_.size = space_.size();
        out_.classes.resize(clusters_.size());
        for (auto& dimensions : out_.classes) {
            for (std::size_t d = 0; d < kDimensions; ++d)
                dimensions[d].resize(space_.values(static_cast<Dimension>(d)));
        }
        open_.resize(clusters_.size());
        look_at_all();
        tell_contradiction();
        for (std::uint32_t c = 0; c < clusters_.size(); ++c)
            search_cluster(c);
        std::sort(out_.rows.begin(), out_.rows.end(), faster);
        std::sort(out_.missing.begin(), out_.missing.end());
        out_.known = known_;
        return std::move(out_);
    }

private:
    /// A layout that no rule removed.
    struct Open {
        std::uint64_t index;
        double bound_s, per_token;  ///< lower bound; of a token
    };

    bool own(std::uint64_t index) const {
        return options_.shards == 0 || shard_of(index, options_.shards) == options_.shard;
    }

    template <typename Tell>
    void tell_classes(const Choice& choice, Tell tell) {
        for (std::size_t d = 0; d < kDimensions; ++d)
            tell(out_.classes[choice[0]][d][choice[d]]);
    }

    void remove(std::uint64_t index, const Choice& choice, const std::string& rule, const std::string& why) {
        if (!own(index))
            return;
        Removed& removed = out_.removed[rule];
        if (removed.count++ == 0 || why < removed.example)  // the least text: the same in any order
            removed.example = why;
        if (rule != "same")
            tell_classes(choice, [&](ClassFate& fate) { ++fate.removed[rule]; });
    }

    // Nothing is simulated here.
    void look_at_all() {
        std::vector<std::unique_ptr<BoundBook>> books;
        for (const auto& cluster : clusters_)
            books.push_back(std::make_unique<BoundBook>(*cluster));
        for (std::uint64_t index = 0; index < space_.size(); ++index) {
            const Choice choice = space_.at(index);
            const PlanCluster& cluster = *clusters_[choice[0]];
            std::string rule, why;
            const TrainingPlan plan = space_.plan(choice, rule, why);
            looked_at_ = index + 1;
            if (index % 1024 == 0)
                tell_progress(0);
            if (own(index)) {
                ++out_.looked_at;
                if (rule != "same")
                    tell_classes(choice, [](ClassFate& fate) { ++fate.layouts; });
            }
            if (!rule.empty()) {
                remove(index, choice, rule, why);
                continue;
            }
            ++valid_;
            if (!passes_early(index, choice, values_of(cluster, plan)))
                continue;
            BoundBook& book = *books[choice[0]];
            const Bytes capacity = cluster.scenario().gpu.memory_mib << 20;
            if (const Bytes held = book.memory(plan); held > capacity) {
                remove_memory(index, choice, 0, held, capacity, true);
                continue;
            }
            const double bound = book.step_s(plan);
            const double tokens = static_cast<double>(plan.global_batch) * static_cast<double>(plan.sequence);
            open_[choice[0]].push_back({index, bound, bound / tokens});
        }
        for (std::vector<Open>& list : open_) {
            std::sort(list.begin(), list.end(), [](const Open& a, const Open& b) {
                return a.per_token != b.per_token ? a.per_token < b.per_token : a.index < b.index;
            });
        }
    }

    void remove_memory(std::uint64_t index, const Choice& choice, int stage, Bytes needs, Bytes has, bool held) {
        constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;
        if (!own(index))
            return;
        const double gib = static_cast<double>(needs) / kGiB, capacity = static_cast<double>(has) / kGiB;
        remove(index, choice, "memory",
               held ? fmt::format("weights, gradients and optimizer alone take {:.1f} of {:.1f} GiB", gib, capacity)
                    : fmt::format("stage {} needs {:.1f} of {:.1f} GiB", stage, gib, capacity));
        tell_classes(choice, [](ClassFate& fate) { ++fate.out_of_memory; });
    }

    bool passes_early(std::uint64_t index, const Choice& choice, const Values& values) {
        std::uint64_t broken = 0;
        const Condition* first = nullptr;
        for (std::size_t i = 0; i < conditions_.size(); ++i) {
            if (conditions_[i].needs_run() || conditions_[i].holds(values))
                continue;
            first = first == nullptr ? &conditions_[i] : first;
            broken |= std::uint64_t{1} << std::min<std::size_t>(i, 63);
        }
        broken_.insert(broken);
        if (first != nullptr)
            remove(index, choice, "where " + first->text(), "breaks " + first->text());
        return first == nullptr;
    }

    // Why conditions leave nothing: one alone, or two of which every layout breaks one.
    void tell_contradiction() {
        if (valid_ == 0 || broken_.contains(0))
            return;
        const auto all_break = [&](std::uint64_t mask) {
            return std::all_of(broken_.begin(), broken_.end(), [&](std::uint64_t one) { return (one & mask) != 0; });
        };
        const std::size_t count = std::min<std::size_t>(conditions_.size(), 63);
        for (std::size_t i = 0; i < count && out_.contradiction.empty(); ++i) {
            if (all_break(std::uint64_t{1} << i))
                out_.contradiction = fmt::format("no layout that can run meets `{}`", conditions_[i].text());
        }
        for (std::size_t i = 0; i < count && out_.contradiction.empty(); ++i) {
            for (std::size_t j = i + 1; j < count && out_.contradiction.empty(); ++j) {
                if (all_break(std::uint64_t{1} << i | std::uint64_t{1} << j))
                    out_.contradiction = fmt::format("no layout that can run meets both `{}` and `{}`",
                                                     conditions_[i].text(), conditions_[j].text());
            }
        }
        if (out_.contradiction.empty())
            out_.contradiction = "no layout that can run meets all conditions of `where` at once";
    }

    // Evaluates in parallel; results are taken in order.
    void evaluate_all(const std::vector<Open>& list, std::size_t later) {
        std::vector<PlanRow> rows(list.size());
        std::vector<char> missing(list.size());
        std::atomic<std::size_t> here = 0;
        arena_.execute([&] {
            oneapi::tbb::parallel_for(std::size_t{0}, list.size(), [&](std::size_t i) {
                PlanRow& row = rows[i];
                row.index = list[i].index;
                row.bound_s = list[i].bound_s;
                row.choice = space_.at(row.index);
                row.cluster = row.choice[0];
                std::string rule, why;
                row.plan = space_.plan(row.choice, rule, why);
                const PlanCluster& cluster = *clusters_[row.cluster];
                bool known = false;
                if (std::optional<Evaluation> e = evaluate_once(options_, row.index, cluster, row.plan, known)) {
                    row.evaluation = std::move(*e);
                    row.figures = figures(cluster, row.evaluation);
                } else {
                    missing[i] = 1;
                }
                known_ += known ? 1 : 0;
                ++evaluated_;
                tell_progress(list.size() - ++here + later);
            });
        });
        for (std::size_t i = 0; i < rows.size(); ++i) {
            PlanRow& row = rows[i];
            if (missing[i] != 0) {
                out_.missing.push_back(row.index);
                continue;
            }
            const Evaluation& e = row.evaluation;
            if (!e.fits) {
                remove_memory(row.index, row.choice, e.stage, e.memory, e.capacity, false);
                continue;
            }
            if (!e.ran()) {
                if (own(row.index)) {
                    ++out_.failed;
                    remove(row.index, row.choice, "failed", e.failure);
                }
                continue;
            }
            const Values values = values_of(*clusters_[row.cluster], row.plan, row.figures);
            for (const Condition& condition : conditions_) {
                if (row.meets && condition.needs_run() && !condition.holds(values)) {
                    row.meets = false;
                    remove(row.index, row.choice, "where " + condition.text(), "breaks " + condition.text());
                }
            }
            if (row.meets)
                incumbents_.push_back(row.per_token());
            if (!own(row.index))
                continue;
            out_.events += e.events;
            tell_classes(row.choice, [](ClassFate& fate) { ++fate.ran; });
            out_.rows.push_back(std::move(row));
        }
        std::sort(incumbents_.begin(), incumbents_.end());
        if (incumbents_.size() > options_.top)
            incumbents_.resize(options_.top);
    }

    void tell_progress(std::size_t ahead) const {
        if (options_.progress)
            options_.progress({looked_at_, space_.size(), evaluated_, known_, ahead});
    }

    // What is not cut yet; clusters to come are taken to need as much as this one.
    std::size_t still_ahead(std::uint32_t c, std::size_t at, double last) const {
        const std::vector<Open>& list = open_[c];
        const auto end = std::partition_point(list.begin() + static_cast<std::ptrdiff_t>(at), list.end(),
                                              [&](const Open& one) { return !is_cut(one, last); });
        const auto upto = static_cast<std::size_t>(end - list.begin());
        return upto - at + upto * (clusters_.size() - 1 - c);
    }

    // What the shards had to evaluate of the cluster beyond the seed set, and is not known.
    void tell_missing(const std::vector<Open>& list, std::size_t seeds) {
        const double last = last_incumbent();
        for (std::size_t i = seeds; i < list.size() && !is_cut(list[i], last); ++i) {
            Evaluation known;
            if (!options_.known(list[i].index, known))
                out_.missing.push_back(list[i].index);
        }
    }

    bool is_cut(const Open& one, double last) const { return options_.prune && last > 0 && one.per_token > last; }
    double last_incumbent() const { return incumbents_.size() < options_.top ? 0 : incumbents_.back(); }

    void cut(const Open& one) {
        if (!own(one.index))
            return;
        ++out_.cut;
        tell_classes(space_.at(one.index), [&](ClassFate& fate) {
            ++fate.cut;
            if (fate.lowest_bound == 0 || one.per_token < fate.lowest_bound)
                fate.lowest_bound = one.per_token;
        });
    }

    void search_cluster(std::uint32_t c) {
        incumbents_.clear();
        const std::vector<Open>& list = open_[c];
        const std::size_t seeds = std::min(kSeeds, list.size());
        evaluate_all({list.begin(), list.begin() + static_cast<std::ptrdiff_t>(seeds)}, still_ahead(c, seeds, 0));
        if (options_.only_known && options_.parts > 0)
            tell_missing(list, seeds);
        if (!out_.missing.empty())
            return;
        if (options_.shards > 0) {
            const double last = last_incumbent();
            std::vector<Open> rest;
            for (std::size_t i = seeds; i < list.size(); ++i) {
                if (is_cut(list[i], last))
                    cut(list[i]);
                else if (own(list[i].index))
                    rest.push_back(list[i]);
            }
            evaluate_all(rest, 0);
            return;
        }
        for (std::size_t at = seeds; at < list.size();) {
            const double last = last_incumbent();
            std::vector<Open> round;
            for (; at < list.size() && round.size() < kRound && !is_cut(list[at], last); ++at)
                round.push_back(list[at]);
            if (round.empty()) {
                for (; at < list.size(); ++at)
                    cut(list[at]);
                return;
            }
            evaluate_all(round, still_ahead(c, at, last));
        }
    }

    const PlanSpace& space_;
    const std::vector<std::unique_ptr<PlanCluster>>& clusters_;
    const std::vector<Condition>& conditions_;
    const SearchOptions& options_;
    oneapi::tbb::task_arena arena_;
    SearchResult out_;
    std::vector<std::vector<Open>> open_;  ///< by cluster
    std::vector<double> incumbents_;       ///< seconds a token, best first
    std::set<std::uint64_t> broken_;       ///< sets of conditions that layouts break
    std::uint64_t valid_ = 0;
    std::uint64_t looked_at_ = 0;
    std::atomic<std::size_t> evaluated_ = 0, known_ = 0;
};

}  // namespace

std::uint32_t shard_of(std::uint64_t index, std::uint32_t shards) {
    return static_cast<std::uint32_t>(mix(index + 1) % shards);
}

std::optional<Evaluation> evaluate_once(const SearchOptions& options, std::uint64_t index, const PlanCluster& cluster,
                                        const TrainingPlan& plan, bool& known) {
    Evaluation out;
    known = options.known && options.known(index, out);
    if (known)
        return out;
    if (options.only_known)
        return std::nullopt;
    out = evaluate(cluster, plan);
    if (options.finished)
        options.finished(index, out);
    return out;
}

SearchResult search(const PlanSpace& space, const std::vector<std::unique_ptr<PlanCluster>>& clusters,
                    const std::vector<Condition>& conditions, const SearchOptions& options) {
    return Search(space, clusters, conditions, options).run();
}

}  // namespace fabricast::plan
