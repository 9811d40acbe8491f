#include "sim/step/job_program.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "models/compute/math.hpp"
#include "models/compute/spread.hpp"
#include "models/parallel/ranks.hpp"
#include "models/program/mix.hpp"
#include "sim/step/gpu_speeds.hpp"
#include "sim/step/step_faults.hpp"

namespace fabricast {
namespace {

using program::Node;
using program::Operation;
using program::OpKind;
using program::Program;
using program::Template;
using Kind = StepFault::Kind;

// What a pageable copy reaches: a public notebook moves 400 MB in 0.172 s (chunhuizhang/pytorch_distribute_tutorials); order of
// magnitude, the driver copies through a pinned buffer of its own. A token is two 64-bit integers, input and target.
constexpr double kPageableBytesPerS = 2.3e9, kTokenBytes = 16;

enum Slot : std::uint16_t { kLoader, kBoundary, kStops, kSequences, kSlots };

/// Uniform in (0, 1), the same for equal arguments.
double draw(std::uint64_t seed, std::uint64_t purpose, std::uint64_t who, std::uint64_t which) {
    const std::uint64_t word = mix(mix(mix(mix(seed + purpose) + who) + which) + purpose);
    return (static_cast<double>(word >> 11) + 0.5) * 0x1p-53;
}

bool has(const Scenario& s, Kind kind) {
    return std::any_of(s.faults.begin(), s.faults.end(), [&](const StepFault& f) { return f.kind == kind; });
}

class Builder {
public:
    Builder(const Scenario& s, const CompiledStep& compiled, const JobShape& shape)
        : s_(s), compiled_(compiled), shape_(shape), p_(compiled.program), map_(s.training.layout) {}

    Program build() {
        loads_ = s_.data.sample_s > 0;
        stops_ = has(s_, Kind::allocator) || has(s_, Kind::garbage) || s_.data.pageable;
        sequences_ = has(s_, Kind::sequence);
        for (std::uint32_t slot = 0; slot < kSlots; ++slot)
            p_.fetches.push_back({static_cast<std::uint16_t>(slot), false});
        p_.fetches.push_back({kLoader, true});
        labels();
        for (std::uint32_t t = 0; t < p_.templates.size(); ++t)
            p_.templates[t] = repeated(with_fetches(compiled_.program.templates[t], t), t);
        if (sequences_)
            draw_lengths();
        for (std::uint32_t rank = 0; rank < p_.ranks.size(); ++rank)
            sources_of(rank);
        if (meets())
            add_meeting();
        return std::move(p_);
    }

private:
    bool meets() const { return shape_.has_epochs && s_.data.meets; }
    // Batches are read on the first stage; the last has the targets.
    bool reads(std::uint32_t stage) const {
        return loads_ && (stage == 0 || stage + 1 == compiled_.program.templates.size());
    }

    std::uint32_t label(const char* name, Account account) {
        p_.names.emplace_back(name);
        program::Label out;
        out.name = static_cast<std::uint32_t>(p_.names.size() - 1);
        out.account = account;
        out.phase = program::Phase::load;
        p_.labels.push_back(out);
        return static_cast<std::uint32_t>(p_.labels.size() - 1);
    }
    void labels() {
        label_[kLoader] = label("wait for data", Account::data_wait);
        label_[kBoundary] = label("end of epoch", Account::data_wait);
        label_[kStops] = label("stopped by allocator, garbage collection or a pageable copy", Account::host_bound);
        label_[kSequences] = label("longer sequences", Account::straggler);
        label_[kSlots] = label("meeting at the end of the epoch", Account::comm_other);
    }

    Operation fetch(std::uint16_t slot, bool restart = false) const {
        Operation op;
        op.kind = OpKind::fetch;
        op.host_sync = true;
        op.payload = restart ? static_cast<std::uint32_t>(kSlots) : slot;
        op.label = label_[slot];
        return op;
    }

    /// First child of the step that computes forward.
    std::uint32_t first_forward(const Template& t) const {
        for (std::uint32_t child = 1; child < t.nodes[0].end; child = next(t, child)) {
            for (std::uint32_t n = child; n < next(t, child); ++n) {
                if (t.nodes[n].kind != Node::Kind::operation)
                    continue;
                const Operation& op = t.operations[t.nodes[n].operation];
                if (op.kind == OpKind::compute && p_.labels[op.label].phase == program::Phase::forward)
                    return child;
            }
        }
        return 1;
    }
    static std::uint32_t next(const Template& t, std::uint32_t n) {
        return t.nodes[n].kind == Node::Kind::operation ? n + 1 : t.nodes[n].end;
    }

    Template with_fetches(const Template& t, std::uint32_t stage) const {
        std::vector<std::uint16_t> slots;
        if (reads(stage))
            slots.push_back(kLoader);
        if (stops_)
            slots.push_back(kStops);
        if (sequences_)
            slots.push_back(kSequences);
        const auto more = static_cast<std::uint32_t>(slots.size());
        const std::uint32_t at = first_forward(t);
        Template out = t;
        out.nodes.clear();
        for (std::uint32_t n = 0; n < t.nodes.size(); ++n) {
            if (n == at) {
                for (const std::uint16_t slot : slots) {
                    Node node;
                    node.operation = static_cast<std::uint32_t>(out.operations.size());
                    node.end = static_cast<std::uint32_t>(out.nodes.size() + 1);
                    out.operations.push_back(fetch(slot));
                    out.nodes.push_back(node);
                }
            }
            Node node = t.nodes[n];
            node.end += node.end > at ? more : 0;
            out.nodes.push_back(node);
        }
        for (std::size_t i = 0; i < t.operations.size(); ++i) {
            for (std::uint32_t& wait : out.operations[i].waits)
                wait += wait >= at ? more : 0;
        }
        return out;
    }

    static void append(Template& out, Operation op) {
        Node node;
        node.operation = static_cast<std::uint32_t>(out.operations.size());
        node.end = static_cast<std::uint32_t>(out.nodes.size() + 1);
        out.operations.push_back(std::move(op));
        out.nodes.push_back(node);
    }

    Template repeated(const Template& step, std::uint32_t stage) const {
        Template out;
        out.name = step.name;
        out.streams = step.streams;
        out.base_memory = step.base_memory;
        for (std::uint32_t epoch = 0; epoch < shape_.steps.size(); ++epoch) {
            const auto nodes = static_cast<std::uint32_t>(out.nodes.size());
            const auto operations = static_cast<std::uint32_t>(out.operations.size());
            for (Node node : step.nodes) {
                node.end += nodes;
                if (node.operation != program::kNone)
                    node.operation += operations;
                out.nodes.push_back(node);
            }
            out.nodes[nodes].bound = epoch;
            for (Operation op : step.operations) {
                for (std::uint32_t& wait : op.waits)
                    wait += nodes;
                out.operations.push_back(std::move(op));
            }
            if (!shape_.has_epochs)
                continue;
            if (!s_.data.boundaries.empty())
                append(out, fetch(kBoundary));
            if (meets()) {
                Operation op;
                op.kind = OpKind::collective;
                op.host_sync = true;
                op.payload = static_cast<std::uint32_t>(p_.calls.size());  // added last
                op.label = label_[kSlots];
                append(out, std::move(op));
            }
            if (reads(stage) && !s_.data.persistent && epoch + 1 < shape_.steps.size())
                append(out, fetch(kLoader, true));
        }
        return out;
    }

    void add_meeting() {
        const auto slot = static_cast<std::uint16_t>(p_.ranks[0].groups.size());
        p_.calls.push_back({slot, 255, 4});
        program::Plan plan;
        plan.latency = shape_.meeting;
        plan.uses_network = s_.nodes > 1;
        p_.plans.resize(p_.calls.size() - 1);
        p_.plans.push_back({plan});
        program::Group world;
        world.name = "world";
        for (std::uint32_t rank = 0; rank < p_.ranks.size(); ++rank) {
            world.members.push_back(rank);
            p_.ranks[rank].groups.resize(slot, program::kNone);
            p_.ranks[rank].groups.push_back(static_cast<std::uint32_t>(p_.groups.size()));
        }
        p_.groups.push_back(std::move(world));
    }

    std::uint32_t add_source(program::Source source) {
        // Ranks alike share one, so that they fold.
        for (std::uint32_t i = 0; i < p_.sources.size(); ++i) {
            const program::Source& other = p_.sources[i];
            if (other.makers == source.makers && other.ahead == source.ahead && other.start == source.start &&
                other.times == source.times)
                return i;
        }
        p_.sources.push_back(std::move(source));
        return static_cast<std::uint32_t>(p_.sources.size() - 1);
    }

    std::int64_t steps_of(std::uint32_t rank) const {
        std::int64_t sum = 0;
        for (const std::vector<std::int64_t>& epoch : shape_.steps)
            sum += epoch[rank];
        return std::max<std::int64_t>(sum, 1);
    }
    bool strikes(const StepFault& f, std::uint32_t rank) const {
        const std::vector<std::uint32_t> all = ranks_at(s_, f.where, compiled_.stage_of_rank, f.place);
        return std::find(all.begin(), all.end(), rank) != all.end();
    }

    program::Source loader(std::uint32_t rank) const {
        const DataPlan& d = s_.data;
        program::Source out;
        out.makers = static_cast<std::uint32_t>(d.workers);
        out.ahead = static_cast<std::uint32_t>(d.prefetch);
        out.start = picoseconds_from_s(d.worker_start_s);
        const std::int64_t batch = s_.training.global_batch / s_.training.layout.dp;
        double factor = 1, leak_per_step = 0;
        const StepFault* wanders = nullptr;
        for (const StepFault& f : s_.faults) {
            if (f.kind == Kind::storage || (f.kind == Kind::loader && strikes(f, rank)))
                factor *= f.factor;
            if (f.kind == Kind::leak)
                leak_per_step += f.factor * seconds(shape_.step) / 3600;
            if (f.kind == Kind::wandering)
                wanders = &f;
        }
        const double time = static_cast<double>(batch) * d.sample_s * factor;
        std::int64_t item = 0;
        for (std::uint64_t epoch = 0; epoch < shape_.steps.size(); ++epoch) {
            const auto slow = static_cast<std::uint32_t>(draw(s_.seed, 0x77616e64ull, 0, epoch) *
                                                         static_cast<double>(p_.ranks.size()));
            for (std::int64_t step = 0; step < shape_.steps[epoch][rank]; ++step, ++item) {
                double each = time * (1 + leak_per_step * static_cast<double>(item));
                if (wanders && slow == rank)
                    each *= wanders->factor;
                out.times.push_back(picoseconds_from_s(each));
                if (leak_per_step == 0 && !wanders)
                    return out;
            }
        }
        if (out.times.empty())
            out.times.push_back(picoseconds_from_s(time));
        return out;
    }

    program::Source boundary(std::uint32_t rank) const {
        program::Source out;
        out.makers = 0;
        for (std::int64_t epoch = 0; epoch < static_cast<std::int64_t>(shape_.steps.size()); ++epoch) {
            double sum = 0;
            for (const DataPlan::Boundary& b : s_.data.boundaries) {
                const std::vector<std::uint32_t> who = ranks_at(s_, b.who, compiled_.stage_of_rank, b.where);
                if ((epoch + 1) % b.every == 0 && std::find(who.begin(), who.end(), rank) != who.end())
                    sum += b.takes_s + b.grows_s * static_cast<double>(epoch);
            }
            out.times.push_back(picoseconds_from_s(sum));
        }
        return out;
    }

    /// The rank waits for the copy of a step's sequences from memory that is not pinned.
    Picoseconds pageable_copy(std::uint32_t stage) const {
        const bool reads = stage == 0 || stage + 1 == compiled_.program.templates.size();
        const auto sequences = static_cast<double>(s_.training.global_batch / s_.training.layout.dp);
        const double bytes = sequences * static_cast<double>(s_.training.sequence) * kTokenBytes;
        return s_.data.pageable && reads ? picoseconds_from_s(bytes / kPageableBytesPerS) : 0;
    }

    program::Source stops(std::uint32_t rank) const {
        program::Source out;
        out.makers = 0;
        const Picoseconds copy = pageable_copy(p_.ranks[rank].tmpl);
        if (!has(s_, Kind::allocator) && !has(s_, Kind::garbage)) {
            out.times.push_back(copy);  // the last time goes on
            return out;
        }
        out.times.assign(static_cast<std::size_t>(steps_of(rank)), copy);
        for (const StepFault& f : s_.faults) {
            if ((f.kind != Kind::garbage && f.kind != Kind::allocator) || !strikes(f, rank))
                continue;
            const std::uint64_t who = f.synchronised ? 0 : rank + 1;
            const auto every = static_cast<double>(f.every);
            const auto phase = static_cast<std::int64_t>(draw(s_.seed, 0x67617262ull, who, 0) * every);
            for (std::size_t j = 0; j < out.times.size(); ++j) {
                const bool now = f.kind == Kind::garbage ? static_cast<std::int64_t>(j) % f.every == phase
                                                         : draw(s_.seed, 0x616c6c6full, who, j) * every < 1;
                out.times[j] += now ? picoseconds_from_s(f.seconds) : 0;
            }
        }
        return out;
    }

    // Lengths of all replicas and steps, then what of the compute is left in the program.
    void draw_lengths() {
        double variance = 0;
        for (const StepFault& f : s_.faults)
            variance += f.kind == Kind::sequence ? f.factor * f.factor : 0;
        const double spread2 = math::log(1 + variance), spread = std::sqrt(spread2);
        const auto steps = static_cast<std::size_t>(steps_of(0));
        shortest_ = 1;
        lengths_.resize(static_cast<std::size_t>(s_.training.layout.dp));
        for (std::size_t replica = 0; replica < lengths_.size(); ++replica) {
            for (std::size_t j = 0; j < steps; ++j) {
                const double z = normal_quantile(draw(s_.seed, 0x6c656e67ull, replica, j));
                lengths_[replica].push_back(math::exp(spread * z - spread2 / 2));
                shortest_ = std::min(shortest_, lengths_[replica].back());
            }
        }
        for (const Template& t : compiled_.program.templates) {
            const std::vector<std::int64_t> runs = program::executions(t);
            double sum = 0;
            for (std::size_t i = 0; i < runs.size(); ++i) {
                const Operation& op = t.operations[i];
                if (op.kind == OpKind::compute && varies(op))
                    sum += seconds(p_.costs[op.payload].work) * static_cast<double>(runs[i]);
            }
            compute_s_.push_back(sum);
        }
        std::vector<bool> done(p_.costs.size(), false);
        for (const Template& t : compiled_.program.templates) {
            for (const Operation& op : t.operations) {
                if (op.kind != OpKind::compute || !varies(op) || done[op.payload])
                    continue;
                done[op.payload] = true;
                program::CostClass& cost = p_.costs[op.payload];
                cost.work = 0;
                for (Picoseconds& part : cost.parts) {
                    part = static_cast<Picoseconds>(static_cast<double>(part) * shortest_);
                    cost.work += part;
                }
            }
        }
    }
    bool varies(const Operation& op) const {
        const program::Phase phase = p_.labels[op.label].phase;
        return phase == program::Phase::forward || phase == program::Phase::backward ||
               phase == program::Phase::recompute;
    }
    program::Source sequences(std::uint32_t rank) const {
        program::Source out;
        out.makers = 0;
        const std::vector<double>& lengths = lengths_[static_cast<std::size_t>(map_.at(rank).dp)];
        const double compute = compute_s_[p_.ranks[rank].tmpl];
        for (const double length : lengths)
            out.times.push_back(picoseconds_from_s((length - shortest_) * compute));
        return out;
    }

    void sources_of(std::uint32_t rank) {
        program::Rank& r = p_.ranks[rank];
        for (const std::vector<std::int64_t>& epoch : shape_.steps)
            r.bindings.push_back(epoch[rank]);
        const std::uint32_t none = add_source({0, 1, 0, {0}});
        r.sources.assign(kSlots, none);
        if (reads(r.tmpl))
            r.sources[kLoader] = add_source(loader(rank));
        if (shape_.has_epochs && !s_.data.boundaries.empty())
            r.sources[kBoundary] = add_source(boundary(rank));
        if (stops_)
            r.sources[kStops] = add_source(stops(rank));
        if (sequences_)
            r.sources[kSequences] = add_source(sequences(rank));
    }

    const Scenario& s_;
    const CompiledStep& compiled_;
    const JobShape& shape_;
    Program p_;
    RankMap map_;
    bool loads_ = false, stops_ = false, sequences_ = false;
    std::uint32_t label_[kSlots + 1] = {};
    std::vector<std::vector<double>> lengths_;
    std::vector<double> compute_s_;
    double shortest_ = 1;
};

}  // namespace

bool steps_vary(const Scenario& s) {
    return has(s, Kind::allocator) || has(s, Kind::garbage) || has(s, Kind::sequence) || has(s, Kind::leak) ||
           has(s, Kind::wandering);
}

bool steps_differ(const Scenario& s) {
    return steps_vary(s) || s.data.sample_s > 0 || s.data.pageable || kernel_noise_of(s).sigma > 0;
}

Program job_program(const Scenario& scenario, const CompiledStep& compiled, const JobShape& shape) {
    Program out = Builder(scenario, compiled, shape).build();
    if (const std::string broken = program::validate(out); !broken.empty())
        throw std::logic_error("program of the job: " + broken);
    return out;
}

}  // namespace fabricast
