#include "models/parallel/compiler.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>

#include <fmt/format.h>

#include "models/parallel/eager_replay.hpp"
#include "models/parallel/group_book.hpp"
#include "models/parallel/memory.hpp"
#include "models/parallel/placement.hpp"
#include "models/parallel/ranks.hpp"

namespace fabricast {
namespace {

using program::Program;

constexpr std::uint32_t kMostValidated = 4096;  ///< ranks of a program that is checked rank by rank

std::vector<std::vector<ScheduleStep>> stage_orders(const TrainingPlan& plan, const SoftwareFeatures& software) {
    const Layout& l = plan.layout;
    return pipeline_steps(l.schedule, l.pp, l.vpp, plan.micro_batches(), overlaps_messages(l, software),
                          software.forwards_first);
}

class Compiler {
public:
    Compiler(const Architecture& a, const TrainingPlan& plan, const SoftwareFeatures& software, const Cluster& cluster,
             const ComputeModel& compute, const CommModel& comm, const CompileOptions& options)
        : a_(a),
          plan_(plan),
          l_(plan.layout),
          software_(software),
          cluster_(cluster),
          compute_(compute),
          comm_(comm),
          options_(options),
          costs_(compute, software, options.prices),
          map_(plan.layout),
          book_(out_.program, cluster, comm) {}

    CompiledStep run(std::int64_t steps) {
        build_templates(steps);
        if (options_.fits && !options_.fits(out_.stages))
            return std::move(out_);
        place_ranks();
        price_calls();
        route_messages();
        route_to_host();
        out_.program.costs = costs_.take();
        count_flops();
        // Larger jobs repeat what these have.
        if (!options_.validate || map_.world() > kMostValidated)
            return std::move(out_);
        if (const std::string broken = program::validate(out_.program); !broken.empty())
            throw std::logic_error("compiled program: " + broken);
        return std::move(out_);
    }

private:
    void build_templates(std::int64_t steps) {
        const auto orders = stage_orders(plan_, software_);
        for (std::int64_t stage = 0; stage < l_.pp; ++stage) {
            const std::uint32_t t = build_stage(a_, plan_, software_, stage, orders[static_cast<std::size_t>(stage)],
                                                steps, {out_.program, calls_, costs_});
            program::Template& tmpl = out_.program.templates[t];
            StageSummary summary;
            const StageParameters parameters = stage_parameters(a_, l_, stage);
            set_base_memory(tmpl, a_, plan_, software_, compute_.gpu(), stage, parameters);
            summary.parameters = parameters.total();
            summary.host = host_bytes(a_, plan_, software_, stage, parameters);
            summary.memory = stage_peak(a_, plan_, software_, compute_, stage, tmpl);
            summary.in_flight = most_in_flight(orders[static_cast<std::size_t>(stage)]);
            out_.stages.push_back(std::move(summary));
        }
    }

    void place_ranks() {
        Program& p = out_.program;
        p.ranks.resize(map_.world());
        out_.stage_of_rank.resize(map_.world());
        for (std::uint32_t rank = 0; rank < map_.world(); ++rank) {
            const Coordinates c = map_.at(rank);
            p.ranks[rank].tmpl = static_cast<std::uint32_t>(c.pp);
            p.ranks[rank].groups.assign(static_cast<std::size_t>(Slot::count), program::kNone);
            out_.stage_of_rank[rank] = static_cast<int>(c.pp);
        }
        // A line of ranks is made by its first member.
        for (std::uint32_t rank = 0; rank < map_.world(); ++rank) {
            const Coordinates c = map_.at(rank);
            if (c.tp == 0)
                assign(Slot::tp, fmt::format("tp of rank {}", rank), map_.line(c, 't'));
            if (l_.cp > 1 && c.cp == 0)
                assign(Slot::context, fmt::format("cp of rank {}", rank), map_.line(c, 'c'));
            if (c.dp == 0 && c.cp == 0)
                data_groups(rank, c);
            if (a_.moe.experts > 0)
                expert_groups(rank);
            if (!norm_over_world(l_) && c.tp == 0 && c.pp == 0) {
                std::vector<std::uint32_t> members;
                for (std::int64_t pp = 0; pp < l_.pp; ++pp) {
                    for (const std::uint32_t m : map_.line({0, c.cp, c.dp, pp}, 't'))
                        members.push_back(m);
                }
                assign(Slot::norm, fmt::format("model of rank {}", rank), members);
            }
            scaling_groups(rank, c);
            if (a_.tied_embeddings && parts_embedding_and_head(l_) && c.pp == 0) {
                assign(Slot::embedding, fmt::format("embedding of rank {}", rank),
                       {rank, map_.rank({c.tp, c.cp, c.dp, l_.pp - 1})});
            }
        }
        if (norm_over_world(l_)) {
            std::vector<std::uint32_t> all(map_.world());
            for (std::uint32_t rank = 0; rank < map_.world(); ++rank)
                all[rank] = rank;
            assign(Slot::norm, "world", all);
        }
    }

    void assign(Slot slot, const std::string& name, const std::vector<std::uint32_t>& members) {
        const std::uint32_t g = book_.add(name, members, slot, calls_);
        for (const std::uint32_t rank : members)
            out_.program.ranks[rank].groups[static_cast<std::size_t>(slot)] = g;
    }

    // Sharding groups are runs of the data group in ascending order; replicas are the ranks of equal place in them.
    void sharded_groups(const std::vector<std::uint32_t>& data, const Sharding& sharding, const std::string& name,
                        Slot parameter, Slot gradient, Slot replica) {
        const auto ranks = static_cast<std::size_t>(sharding.ranks);
        for (std::size_t at = 0; at < data.size(); at += ranks) {
            const std::vector<std::uint32_t> members(data.begin() + static_cast<long>(at),
                                                     data.begin() + static_cast<long>(at + ranks));
            assign(parameter, fmt::format("{} parameters of rank {}", name, members.front()), members);
            assign(gradient, fmt::format("{} gradients of rank {}", name, members.front()), members);
            if (gradient == Slot::gradient && plan_.compression.inside > 1)
                two_levels(members);
        }
        for (std::size_t place = 0; place < ranks && sharding.replicas > 1; ++place) {
            std::vector<std::uint32_t> members;
            for (std::size_t at = place; at < data.size(); at += ranks)
                members.push_back(data[at]);
            assign(replica, fmt::format("{} replicas of rank {}", name, members.front()), members);
        }
    }

    void two_levels(const std::vector<std::uint32_t>& members) {
        const auto inside = static_cast<std::size_t>(plan_.compression.inside);
        for (std::size_t at = 0; at < members.size(); at += inside)
            assign(Slot::gradient_inside, fmt::format("dp inside of rank {}", members[at]),
                   {members.begin() + static_cast<long>(at), members.begin() + static_cast<long>(at + inside)});
        for (std::size_t place = 0; place < inside; ++place) {
            std::vector<std::uint32_t> across;
            for (std::size_t at = place; at < members.size(); at += inside)
                across.push_back(members[at]);
            assign(Slot::gradient_across, fmt::format("dp across of rank {}", across.front()), across);
        }
    }

    // fp8: who agrees on the largest values of the tensors they multiply.
    void scaling_groups(std::uint32_t rank, const Coordinates& c) {
        if (!agrees_on_scales(plan_, software_) || c.tp != 0 || c.cp != 0)
            return;
        const bool stage = software_.fp8_largest == LargestValues::stage;
        if (stage && c.dp != 0)
            return;
        std::vector<std::uint32_t> members;
        for (std::int64_t dp = c.dp; dp < (stage ? l_.dp : c.dp + 1); ++dp) {
            for (std::int64_t cp = 0; cp < l_.cp; ++cp) {
                for (const std::uint32_t m : map_.line({0, cp, dp, c.pp}, 't'))
                    members.push_back(m);
            }
        }
        std::sort(members.begin(), members.end());
        assign(Slot::scaling, fmt::format("fp8 scaling of rank {}", rank), members);
    }

    // DualPipe: stage pp - 1 - s holds what stage s holds.
    bool mirrors(std::int64_t pp) const { return copies_in_pipeline(l_) > 1 && pp >= l_.pp / 2; }

    void data_groups(std::uint32_t rank, const Coordinates& c) {
        std::vector<std::uint32_t> data = map_.data_group(c);
        if (data.front() != rank || mirrors(c.pp))
            return;
        if (copies_in_pipeline(l_) > 1) {
            const std::vector<std::uint32_t> mirror = map_.data_group({c.tp, c.cp, c.dp, l_.pp - 1 - c.pp});
            data.insert(data.end(), mirror.begin(), mirror.end());
        }
        sharded_groups(data, dense_sharding(l_), "dp", Slot::parameter, Slot::gradient, Slot::replica);
    }

    void expert_groups(std::uint32_t rank) {
        const ExpertCoordinates c = map_.expert_at(rank);
        if (c.ep == 0 && l_.ep > 1)
            assign(Slot::expert, fmt::format("ep of rank {}", rank), map_.expert_line(rank, 'e'));
        if (c.etp == 0 && l_.expert_tp() > 1)
            assign(Slot::expert_tensor, fmt::format("etp of rank {}", rank), map_.expert_line(rank, 't'));
        Coordinates at = map_.at(rank);
        if (c.edp != 0 || mirrors(at.pp))
            return;
        std::vector<std::uint32_t> data = map_.expert_line(rank, 'd');
        if (copies_in_pipeline(l_) > 1) {
            at.pp = l_.pp - 1 - at.pp;
            const std::vector<std::uint32_t> mirror = map_.expert_line(map_.rank(at), 'd');
            data.insert(data.end(), mirror.begin(), mirror.end());
        }
        sharded_groups(data, expert_sharding(l_), "expert dp", Slot::expert_parameter, Slot::expert_gradient,
                       Slot::expert_replica);
    }

    void price_calls() {
        Program& p = out_.program;
        std::map<std::pair<std::uint32_t, std::uint32_t>, std::pair<std::int64_t, std::uint32_t>>
            used;  // (call, shape) -> count, group
        std::vector<std::vector<std::int64_t>> runs;
        for (const program::Template& t : p.templates)
            runs.push_back(executions(t));
        std::set<std::pair<std::uint32_t, std::vector<std::uint32_t>>> seen;  // templates and shapes of ranks
        std::pair<std::uint32_t, std::vector<std::uint32_t>> own, before;
        for (const program::Rank& rank : p.ranks) {
            own.first = rank.tmpl;
            own.second.clear();
            for (const std::uint32_t g : rank.groups)
                own.second.push_back(g == program::kNone ? g : p.groups[g].shape);
            if (own == before || !seen.insert(own).second)
                continue;
            before = own;
            const program::Template& t = p.templates[rank.tmpl];
            std::map<std::uint32_t, std::int64_t> count;
            for (std::size_t i = 0; i < t.operations.size(); ++i) {
                if (t.operations[i].kind == program::OpKind::collective)
                    count[t.operations[i].payload] += runs[rank.tmpl][i];
            }
            for (const auto& [call, times] : count) {
                const std::uint32_t g = rank.groups[p.calls[call].slot];
                auto& entry = used[{call, p.groups[g].shape}];
                if (times > entry.first)
                    entry = {times, g};
            }
        }
        std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;
        for (const auto& [key, value] : used)
            pairs.push_back(key);
        book_.plan(calls_, pairs);
        for (const auto& [key, value] : used) {
            const CallInfo& info = calls_[key.first];
            out_.calls.push_back({key.first, info,
                                  fmt::format("{} {}", slot_name(info.slot), p.groups[value.second].members.size()),
                                  value.first, book_.chosen(key.first, key.second), value.second});
        }
    }

    void route_messages() {
        if (l_.pp == 1)
            return;
        Program& p = out_.program;
        Bytes bytes = 0;
        for (const program::Batch& batch : p.batches) {
            for (const program::MessageHalf& half : batch.halves)
                bytes = std::max(bytes, half.bytes);
        }
        for (const program::Template& t : p.templates) {
            const std::vector<std::int64_t> runs = executions(t);
            std::int64_t sends = 0;
            for (std::size_t i = 0; i < t.operations.size(); ++i) {
                if (t.operations[i].kind != program::OpKind::p2p_batch)
                    continue;
                for (const program::MessageHalf& half : p.batches[t.operations[i].payload].halves)
                    sends += half.is_send ? runs[i] : 0;
            }
            out_.messages_per_rank = std::max(out_.messages_per_rank, sends);
        }
        std::vector<std::pair<std::uint32_t, std::uint32_t>> own;  // of the rank at hand: peer, route
        const auto route = [&](std::uint32_t from, std::uint32_t to) {
            for (const auto& [peer, known] : own) {
                if (peer == to)
                    return known;
            }
            const auto fresh = static_cast<std::uint32_t>(p.routes.size());
            CommModel::Message message = comm_.message(GpuId{from}, GpuId{to}, bytes);
            p.routes.push_back({message.latency, static_cast<std::uint32_t>(p.demands.size()), message.cap,
                                message.uses_nvlink, message.uses_network});
            p.demands.push_back(std::move(message.links));
            own.emplace_back(to, fresh);
            return fresh;
        };
        const bool up = runs_up(l_.schedule, 1);  // some chunks do
        p.routes.reserve(p.routes.size() + 2 * std::size_t{map_.world()});
        p.demands.reserve(p.demands.size() + 2 * std::size_t{map_.world()});
        for (std::uint32_t rank = 0; rank < map_.world(); ++rank) {
            own.clear();
            Coordinates c = map_.at(rank);
            const std::int64_t stage = c.pp;
            c.pp = (stage + 1) % l_.pp;
            const std::uint32_t next = map_.rank(c);
            c.pp = (stage + l_.pp - 1) % l_.pp;
            const std::uint32_t previous = map_.rank(c);
            std::vector<program::Peer>& peers = p.ranks[rank].peers;
            peers.resize(static_cast<std::size_t>(up ? PeerSlot::count : PeerSlot::send_forward_up));
            peers[static_cast<std::size_t>(PeerSlot::send_forward)] = {next, 0, route(rank, next)};
            peers[static_cast<std::size_t>(PeerSlot::receive_forward)] = {previous, 0, program::kNone};
            peers[static_cast<std::size_t>(PeerSlot::send_backward)] = {previous, 1, route(rank, previous)};
            peers[static_cast<std::size_t>(PeerSlot::receive_backward)] = {next, 1, program::kNone};
            if (!up)
                continue;
            peers[static_cast<std::size_t>(PeerSlot::send_forward_up)] = {previous, 2, route(rank, previous)};
            peers[static_cast<std::size_t>(PeerSlot::receive_forward_up)] = {next, 2, program::kNone};
            peers[static_cast<std::size_t>(PeerSlot::send_backward_up)] = {next, 3, route(rank, next)};
            peers[static_cast<std::size_t>(PeerSlot::receive_backward_up)] = {previous, 3, program::kNone};
        }
    }

    // A GPU and its host: the GPU's own PCIe link.
    void route_to_host() {
        Program& p = out_.program;
        out_.message_routes = p.routes.size();
        if (!plan_.offload.active())
            return;
        for (std::uint32_t rank = 0; rank < map_.world(); ++rank) {
            for (const LinkId link : {cluster_.pcie_up(GpuId{rank}), cluster_.pcie_down(GpuId{rank})}) {
                p.ranks[rank].transfer_routes.push_back(static_cast<std::uint32_t>(p.routes.size()));
                p.routes.push_back({cluster_.links().latency[index(link)], static_cast<std::uint32_t>(p.demands.size()),
                                    0, false, false});
                p.demands.push_back({{link, kCoefficientOne}});
            }
        }
    }

    void count_flops() {
        const auto batch = static_cast<double>(plan_.global_batch), length = static_cast<double>(plan_.sequence);
        const auto vocab = static_cast<double>(padded_vocab(a_, l_.tp));
        out_.model_flops = model_flops(a_, batch, length, padded_vocab(a_, l_.tp), static_cast<double>(plan_.document));
        const double heads = 1 + static_cast<double>(a_.mtp_layers);
        const double head = 6.0 * batch * length * static_cast<double>(a_.hidden) * vocab * heads;
        const double share = recomputed_share(a_, l_, plan_.recompute_layers);
        out_.hardware_flops = out_.model_flops;
        if (plan_.recompute == Recompute::full)
            out_.hardware_flops += share * (out_.model_flops - head) / 3;
        if (plan_.recompute == Recompute::selective)
            out_.hardware_flops += share * attention_flops(a_, batch, length, static_cast<double>(plan_.document)) / 3;
    }

    const Architecture& a_;
    const TrainingPlan& plan_;
    const Layout& l_;
    const SoftwareFeatures& software_;
    const Cluster& cluster_;
    const ComputeModel& compute_;
    const CommModel& comm_;
    const CompileOptions& options_;
    CostBook costs_;
    RankMap map_;
    CompiledStep out_;
    GroupBook book_;
    std::vector<CallInfo> calls_;
};

}  // namespace

CompiledStep compile_step(const Architecture& a, const TrainingPlan& plan, const SoftwareFeatures& software,
                          const Cluster& cluster, const ComputeModel& compute, const CommModel& comm,
                          std::int64_t steps, const CompileOptions& options) {
    if (cluster.gpu_count() != plan.layout.world())
        throw std::logic_error("layout and cluster differ in size");
    return Compiler(a, plan, software, cluster, compute, comm, options).run(steps);
}

std::vector<StageSummary> stage_memory(const Architecture& a, const TrainingPlan& plan,
                                       const SoftwareFeatures& software, const ComputeModel& compute) {
    const auto orders = stage_orders(plan, software);
    std::vector<StageSummary> out;
    for (std::int64_t stage = 0; stage < plan.layout.pp; ++stage) {
        Program program;
        std::vector<CallInfo> calls;
        CostBook costs(compute, software);
        const std::vector<ScheduleStep>& order = orders[static_cast<std::size_t>(stage)];
        if (replays_tensors(a, plan, software))  // needs no template
            program.templates.emplace_back();
        else
            build_stage(a, plan, software, stage, order, 1, {program, calls, costs});
        StageSummary summary;
        const StageParameters parameters = stage_parameters(a, plan.layout, stage);
        set_base_memory(program.templates.back(), a, plan, software, compute.gpu(), stage, parameters);
        summary.parameters = parameters.total();
        summary.host = host_bytes(a, plan, software, stage, parameters);
        summary.memory = stage_peak(a, plan, software, compute, stage, program.templates.back());
        summary.in_flight = most_in_flight(order);
        out.push_back(std::move(summary));
    }
    return out;
}

}  // namespace fabricast
