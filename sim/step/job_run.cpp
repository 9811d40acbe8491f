#include "sim/step/job_run.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "models/parallel/ranks.hpp"
#include "sim/step/gpu_speeds.hpp"
#include "sim/step/job_program.hpp"
#include "sim/step/sampler.hpp"
#include "sim/step/step_faults.hpp"
#include "sim/step/time_outs.hpp"

namespace fabricast {
namespace {

using engine::Change;
using engine::EngineResult;
using engine::Outcome;

constexpr std::int64_t kTail = 2;            ///< last steps of an epoch, simulated
constexpr std::int64_t kMostSettling = 256;  ///< steps after which a stretch that does not repeat is taken as it is
constexpr std::int64_t kVaryingSettling = 64;
constexpr std::int64_t kMostEpochs = 256, kMostSteps = 50'000;  ///< simulated

/// Steps of an epoch that are not simulated.
struct Gap {
    std::size_t epoch = 0;
    std::int64_t after = 0;    ///< simulated steps of the epoch before it
    std::int64_t steps = 0;    ///< a multiple of the run
    Picoseconds begin = -1;    ///< simulated time of the boundary; -1: not reached
    Picoseconds run_time = 0;  ///< of one run of steps
    Picoseconds time = 0;      ///< of all
};

class JobRunner {
public:
    JobRunner(const Scenario& s, const BuiltStep& built, Result& result)
        : s_(s), built_(built), result_(result), period_(result.step.ps) {}

    void run(bool skip) {
        check_time_outs();
        changes_ = changes_of_faults(s_, built_.cluster, built_.compiled.program, built_.compiled.stage_of_rank);
        plan_steps();
        const bool trends = std::any_of(s_.faults.begin(), s_.faults.end(),
                                        [](const StepFault& f) { return f.kind == StepFault::Kind::leak; });
        run_ = s_.data.sample_s > 0 ? std::max<std::int64_t>(s_.data.workers, 1) : 1;
        settling_ = steps_vary(s_) ? kVaryingSettling : kSettlingSteps + 2 * run_;
        if (s_.data.sample_s > 0)
            settling_ += s_.data.workers * s_.data.prefetch + draining();
        for (;; settling_ *= 4) {
            settled_ = true;
            place_gaps(skip && !trends);
            EngineResult run = strike();
            if (settled_ || steps_vary(s_) || settling_ >= kMostSettling) {
                tell(run);
                return;
            }
        }
    }

private:
    /// Steps until what persistent workers made ahead at a boundary is used up, where they are slower than the job.
    std::int64_t draining() const {
        const DataPlan& d = s_.data;
        if (!d.persistent || d.workers == 0)
            return 0;
        const double batch = static_cast<double>(s_.training.global_batch / s_.training.layout.dp) * d.sample_s /
                             static_cast<double>(d.workers);
        const double behind = batch - seconds(period_);
        if (behind <= 0)
            return 0;
        const double steps = static_cast<double>(d.workers * d.prefetch) * batch / behind;
        return std::min<std::int64_t>(static_cast<std::int64_t>(steps) + 1, 8 * kMostSettling);
    }

    void check_time_outs() const {
        const TimeOuts& t = s_.time_outs;
        if (!t.off && t.collective_s <= seconds(period_))
            throw ScenarioError(fmt::format("{}: comm.time_outs.collective: {:g} s is shorter than a step of {:.3f} s",
                                            t.where, t.collective_s, seconds(period_)));
    }

    void plan_steps() {
        const auto world = static_cast<std::size_t>(s_.training.layout.world());
        if (s_.data.samples == 0) {
            Picoseconds last = 0;
            for (const Change& c : changes_)
                last = std::max(last, c.at + c.patience);
            // Behind the last change enough to settle again, however much slower steps are then.
            steps_.assign(1, std::vector<std::int64_t>(world, last / period_ + 4 * kVaryingSettling));
        } else {
            const RankMap map(s_.training.layout);
            const std::int64_t dp = s_.training.layout.dp, batch = s_.training.global_batch / dp;
            for (std::int64_t e = 0; e < std::min(s_.data.epochs, kMostEpochs); ++e) {
                const Shards shards = deal_samples(s_.data, dp, batch, e);
                std::vector<std::int64_t>& steps = steps_.emplace_back();
                for (std::uint32_t rank = 0; rank < world; ++rank)
                    steps.push_back(shards.steps[static_cast<std::size_t>(map.at(rank).dp)]);
                if (e == 0) {
                    job_.repeated = shards.repeated;
                    job_.missed = shards.missed;
                }
            }
            if (s_.data.epochs > kMostEpochs)
                result_.hints.push_back(
                    fmt::format("the first {} of {} epochs are simulated", kMostEpochs, s_.data.epochs));
        }
        for (const std::vector<std::int64_t>& steps : steps_)
            fewest_.push_back(*std::min_element(steps.begin(), steps.end()));
    }

    void place_gaps(bool skip) {
        gaps_.clear();
        for (std::size_t e = 0; e < steps_.size() && skip; ++e) {
            const std::int64_t left = (fewest_[e] - settling_ - kTail) / run_ * run_;
            if (left > 0)
                gaps_.push_back({e, settling_, left, -1, 0, 0});
        }
        placed_.clear();
    }

    std::int64_t skipped(std::size_t epoch) const {
        std::int64_t sum = 0;
        for (const Gap& gap : gaps_)
            sum += gap.epoch == epoch ? gap.steps : 0;
        return sum;
    }
    std::int64_t simulated(std::size_t epoch, std::size_t rank) const { return steps_[epoch][rank] - skipped(epoch); }

    EngineResult simulate() {
        JobShape shape;
        shape.has_epochs = s_.data.samples > 0;
        shape.meeting = built_.meeting;
        shape.step = period_;
        std::int64_t all = 0;
        for (std::size_t e = 0; e < steps_.size(); ++e) {
            std::vector<std::int64_t>& steps = shape.steps.emplace_back();
            for (std::size_t rank = 0; rank < steps_[e].size(); ++rank)
                steps.push_back(simulated(e, rank));
            all += steps.front();
        }
        if (all > kMostSteps)
            throw ScenarioError(fmt::format("{}: {} steps would be simulated one by one; at most {} are", s_.data.where,
                                            all, kMostSteps));
        program_ = job_program(s_, built_.compiled, shape);
        engine::EngineOptions options;
        options.stop_when_periodic = false;
        options.keep_step_ends = true;
        options.changes = placed_;
        options.patience = s_.time_outs.off ? 0 : picoseconds_from_s(s_.time_outs.collective_s);
        EngineResult run = engine::Engine(program_, built_.cluster.links().capacity, options).run();
        run.step_ends.resize(program_.ranks.size());
        result_.events += run.events;
        measure(run);
        return run;
    }

    /// Times of the gaps, from the steps before them.
    void measure(const EngineResult& run) {
        for (Gap& gap : gaps_) {
            std::int64_t before = gap.after;
            for (std::size_t e = 0; e < gap.epoch; ++e)
                before += simulated(e, 0);
            const auto at = static_cast<std::size_t>(before), lag = static_cast<std::size_t>(run_);
            gap.begin = -1;
            gap.time = 0;
            if (run.step_ends[0].size() < at)
                continue;
            gap.begin = run.step_ends[0][at - 1];
            if (gap.steps == 0)
                continue;
            const auto span = [&](std::size_t rank, std::size_t back) {  // of the run that ended so many steps ago
                const std::vector<Picoseconds>& ends = run.step_ends[rank];
                const std::size_t end = at - 1 - back;
                return ends[end] - (end >= lag ? ends[end - lag] : 0);
            };
            gap.run_time = span(0, 0);
            bool repeats = gap.after >= 2 * run_;
            for (std::size_t rank = 0; rank < run.step_ends.size() && repeats; ++rank) {
                // Ranks that are ahead of rank 0 have this step behind them, those that are not end it at once.
                repeats = run.step_ends[rank].size() >= at && span(rank, 0) == gap.run_time &&
                          span(rank, lag) == gap.run_time;
            }
            if (!repeats) {
                settled_ = false;
                const auto some = static_cast<std::size_t>(std::min(gap.after - 1, settling_)) / lag * lag;
                const Picoseconds time = run.step_ends[0][at - 1] - run.step_ends[0][at - 1 - some];
                gap.run_time = some > 0 ? time * run_ / static_cast<std::int64_t>(some) : gap.run_time;
            }
            gap.time = gap.steps / run_ * gap.run_time;
        }
    }

    Picoseconds real(Picoseconds simulated_time) const {
        Picoseconds out = simulated_time;
        for (const Gap& gap : gaps_) {
            if (gap.begin >= 0 && gap.begin <= simulated_time)
                out += gap.time;
        }
        return out;
    }

    std::int64_t real_step(std::int64_t step) const {
        std::int64_t out = step;
        for (const Gap& gap : gaps_) {
            std::int64_t before = gap.after;
            for (std::size_t e = 0; e < gap.epoch; ++e)
                before += simulated(e, 0);
            out += gap.begin >= 0 && before <= step ? gap.steps : 0;
        }
        return out;
    }

    /// Puts the faults where they strike, one time after the other, and simulates what is around them.
    EngineResult strike() {
        EngineResult run = simulate();
        for (std::size_t next = 0; next < changes_.size();) {
            const Picoseconds at = changes_[next].at;
            if (run.outcome != Outcome::done && at >= real(run.end))
                break;  // the job is over before
            const Picoseconds where = make_room(at);
            for (; next < changes_.size() && changes_[next].at == at; ++next) {
                placed_.push_back(changes_[next]);
                placed_.back().at = where;
            }
            settled_ = true;
            run = simulate();
        }
        return run;
    }

    /// Simulated time of an instant of the run, after cutting the gap it lies in.
    Picoseconds make_room(Picoseconds at) {
        Picoseconds before = 0;
        const std::int64_t around = settling_ + 2 * run_;
        for (std::size_t g = 0; g < gaps_.size(); ++g) {
            Gap& gap = gaps_[g];
            if (gap.begin < 0)
                break;
            const Picoseconds begin = gap.begin + before;
            if (at < begin) {
                if (begin - at < around * period_) {  // too near: steps must settle first
                    const std::int64_t shift = std::min(gap.steps, (around + run_ - 1) / run_ * run_);
                    gap.after += shift;
                    gap.steps -= shift;
                }
                break;
            }
            if (at < begin + gap.time) {
                const std::int64_t runs = std::max<std::int64_t>((at - begin) / gap.run_time - 1, 0);
                const std::int64_t rest = gap.steps - runs * run_, room = (around + run_ - 1) / run_ * run_;
                const Gap behind = {gap.epoch, gap.after + room, rest - room, -1, 0, 0};
                gap.steps = runs * run_;
                const Picoseconds out = at - before - runs * gap.run_time;
                if (behind.steps > 0)
                    gaps_.insert(gaps_.begin() + static_cast<std::ptrdiff_t>(g) + 1, behind);
                return out;
            }
            before += gap.time;
        }
        return at - before;
    }

    void tell(const EngineResult& run) {
        job_.settled = settled_;
        job_.end = real(run.end);
        const std::vector<Picoseconds>& ends = run.step_ends[0];
        Picoseconds previous = 0;
        for (const Picoseconds end : ends) {
            job_.steps.push_back(end - previous);
            previous = end;
        }
        job_.steps_simulated = static_cast<std::int64_t>(ends.size());
        job_.steps_done = job_.steps_simulated;
        for (const Gap& gap : gaps_)
            job_.steps_done += gap.begin >= 0 ? gap.steps : 0;
        if (!job_.steps.empty()) {
            std::vector<Picoseconds> sorted = job_.steps;
            std::sort(sorted.begin(), sorted.end());
            job_.typical_step = sorted[sorted.size() / 2];
            job_.longest_step = sorted.back();
        }
        if (s_.data.samples > 0)
            tell_epochs(run);
        else
            job_.steps_planned = 0;
        if (run.outcome == Outcome::mismatch) {
            result_.verdict = "mismatch";
            result_.failure = run.message;
        } else if (run.outcome != Outcome::done) {
            StandstillFacts facts{s_,
                                  built_.cluster,
                                  run,
                                  [this](Picoseconds t) { return real(t); },
                                  [this](std::int64_t n) { return real_step(n); },
                                  nullptr,
                                  {},
                                  0};
            for (const StepFault& f : s_.faults) {
                const bool stops = f.kind == StepFault::Kind::hang || f.kind == StepFault::Kind::crash;
                if (!stops || picoseconds_from_s(f.at_s) > job_.end)
                    continue;
                facts.fatal = &f;
                facts.struck = ranks_at(s_, f.where, built_.compiled.stage_of_rank, f.place);
                facts.struck_at = picoseconds_from_s(f.at_s);
                break;
            }
            tell_standstill(facts, job_, result_);
        }
        if (result_.failure.empty())
            result_.hints.push_back(summary());
        result_.job = std::move(job_);
    }

    std::string summary() const {
        const auto range =
            fmt::format("{:.3f} s, the longest {:.3f} s", seconds(job_.typical_step), seconds(job_.longest_step));
        if (s_.data.samples > 0)
            return fmt::format("{} epochs end after {:.1f} s: {} steps of {}", job_.epochs.size(), seconds(job_.end),
                               job_.steps_done, range);
        const Picoseconds last = job_.steps.empty() ? 0 : job_.steps.back();
        return fmt::format(
            "steps take {:.3f} s before the faults and {:.3f} s behind the last; the longest takes {:.3f} s",
            job_.steps.empty() ? 0 : seconds(job_.steps.front()), seconds(last), seconds(job_.longest_step));
    }

    void tell_epochs(const EngineResult& run) {
        Picoseconds begin = 0;
        std::int64_t done = 0;
        std::vector<std::int64_t> all(run.step_ends.size(), 0);
        for (std::size_t e = 0; e < steps_.size(); ++e) {
            JobResult::Epoch epoch;
            epoch.steps = *std::max_element(steps_[e].begin(), steps_[e].end());
            epoch.fewest = fewest_[e];
            job_.steps_planned += steps_[e][0];
            epoch.begin = begin;
            epoch.complete = true;
            for (std::size_t rank = 0; rank < all.size(); ++rank) {
                all[rank] += simulated(e, rank);
                const bool ended = static_cast<std::int64_t>(run.step_ends[rank].size()) >= all[rank];
                epoch.complete = epoch.complete && ended;
                if (ended && all[rank] > 0)
                    epoch.end = std::max(epoch.end, real(run.step_ends[rank][static_cast<std::size_t>(all[rank] - 1)]));
            }
            const std::vector<Picoseconds>& ends = run.step_ends[0];
            const auto first = static_cast<std::size_t>(done);
            if (e > 0 && first > 0 && first < ends.size())
                job_.epochs.back().boundary =
                    std::max<Picoseconds>(0, ends[first] - ends[first - 1] - job_.typical_step);
            done += simulated(e, 0);
            begin = epoch.end;
            job_.epochs.push_back(epoch);
            if (!epoch.complete)
                break;
        }
    }

    const Scenario& s_;
    const BuiltStep& built_;
    Result& result_;
    Picoseconds period_;
    JobResult job_;
    std::vector<std::vector<std::int64_t>> steps_;  ///< [epoch][rank]
    std::vector<std::int64_t> fewest_;
    std::vector<Change> changes_, placed_;
    std::vector<Gap> gaps_;
    std::int64_t run_ = 1, settling_ = kSettlingSteps;
    bool settled_ = true;
    program::Program program_;
};

/// Means over `steps` steps of a window that holds so many.
void take_mean(StepResult& step, std::int64_t steps) {
    step.ps = (step.ps + steps - 1) / steps;
    step.accounts = {};
    for (auto& stage : step.by_stage) {
        for (std::size_t a = 0; a < kAccountCount; ++a) {
            stage[a] /= steps;
            step.accounts[a] += stage[a];
        }
    }
    __int128 sum = 0;
    for (const __int128 part : step.accounts)
        sum += part;
    step.accounts[static_cast<std::size_t>(Account::idle)] += static_cast<__int128>(step.ps) * step.ranks - sum;
}

}  // namespace

bool runs_as_job(const Scenario& s) {
    return s.data.samples > 0 ||
           std::any_of(s.faults.begin(), s.faults.end(), [](const StepFault& f) { return f.timed(); });
}

void run_job(const Scenario& scenario, const BuiltStep& built, bool skip, Result& result) {
    JobRunner(scenario, built, result).run(skip);
}

void run_differing_steps(const Scenario& s, const BuiltStep& built, Result& result) {
    std::int64_t settling = kSettlingSteps, sampled = kSampledSteps;
    if (s.data.sample_s > 0) {
        settling += s.data.workers * (s.data.prefetch + 1);
        sampled = (sampled + std::max<std::int64_t>(s.data.workers, 1) - 1) /
                  std::max<std::int64_t>(s.data.workers, 1) *
                  std::max<std::int64_t>(s.data.workers, 1);  // whole runs of the workers
    }
    JobShape shape;
    shape.step = result.step.ps;
    shape.steps = {std::vector<std::int64_t>(static_cast<std::size_t>(result.step.ranks), settling + sampled)};
    const program::Program program = job_program(s, built.compiled, shape);
    engine::EngineOptions options;
    options.stop_when_periodic = false;
    options.window_from = static_cast<std::uint32_t>(settling);
    options.noise = kernel_noise_of(s);
    options.quantum = s.quantum;
    const StepRun run = run_program(program, built.cluster.links().capacity, options.noise.sigma == 0, options);
    result.events += run.engine.events;
    if (run.engine.outcome != Outcome::done)
        return;  // no fault here stops a rank
    StepResult step = result.step;
    step.accounts = {};
    step.by_stage.clear();
    step.ranks_by_stage.clear();
    fill_step(step, run, built.compiled);
    take_mean(step, sampled);
    step.periodic = true;
    result.step = step;
    result.ranks_simulated = run.rows.size();
}

}  // namespace fabricast
