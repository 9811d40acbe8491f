#include "models/parallel/group_book.hpp"

#include <algorithm>
#include <optional>
#include <tuple>

#include "models/collectives/exchange.hpp"

namespace fabricast {
namespace {

// Thread blocks of a node-aware dispatch (DeepEP's default in training).
constexpr int kDispatchSms = 24;

bool exchanges(Slot slot, const std::vector<CallInfo>& calls) {
    return std::any_of(calls.begin(), calls.end(), [&](const CallInfo& call) {
        return call.slot == slot && (call.moe.tokens > 0 || is_exchange(call.kind));
    });
}

}  // namespace

std::uint32_t GroupBook::add(std::string name, std::vector<std::uint32_t> members, Slot slot,
                             const std::vector<CallInfo>& calls) {
    std::vector<GpuId> gpus;
    gpus.reserve(members.size());
    for (const std::uint32_t rank : members)
        gpus.push_back(GpuId{rank});
    if (!twins_.empty() && gpus == last_) {
        twins_.back().unique = false;
        twins_.push_back(twins_.back());
    } else {
        twins_.push_back(known(gpus, exchanges(slot, calls)));
        last_ = std::move(gpus);
    }
    const std::uint64_t shape = shape_of(twins_.back().first, slot, calls);
    const auto [at, fresh] = shapes_.try_emplace(shape, static_cast<std::uint32_t>(examples_.size()));
    if (fresh)
        examples_.push_back(static_cast<std::uint32_t>(p_.groups.size()));
    p_.groups.push_back({std::move(name), std::move(members), at->second, {}});
    return static_cast<std::uint32_t>(p_.groups.size() - 1);
}

// What the calls of the slot run on a group decides which channels are laid, and these about the shape.
std::uint64_t GroupBook::shape_of(std::uint32_t comm_group, Slot slot, const std::vector<CallInfo>& calls) {
    CommGroup& group = comm_groups_[comm_group];
    const auto [at, fresh] = chosen_by_.try_emplace({group.shape_hash, slot});
    std::vector<Algorithm>& algorithms = at->second;
    if (fresh && exchanges(slot, calls))  // what all wirings tell of the links decides
        algorithms = {Algorithm::ring, Algorithm::tree, Algorithm::nvls, Algorithm::collnet_direct};
    for (std::size_t c = 0; fresh && c < calls.size(); ++c) {
        const CallInfo& call = calls[c];
        if (call.slot != slot || call.moe.tokens > 0 || is_exchange(call.kind))
            continue;
        const std::optional<Algorithm> algorithm = comm_.algorithm(group, call.kind, call.bytes);
        if (algorithm && std::find(algorithms.begin(), algorithms.end(), *algorithm) == algorithms.end())
            algorithms.push_back(*algorithm);
    }
    std::uint64_t hash = mix(group.shape_hash, static_cast<std::uint64_t>(slot));
    for (const Algorithm algorithm : algorithms) {
        comm_.lay(group, algorithm);
        hash = mix(hash, group.laid[static_cast<std::size_t>(algorithm)].hash);
    }
    return hash;
}

GroupBook::Twin GroupBook::known(const std::vector<GpuId>& gpus, bool exchanging) {
    Twin twin{.first = static_cast<std::uint32_t>(comm_groups_.size())};
    Table table;
    if (const Look look = look_inside(gpus); !look.empty()) {
        const auto base = static_cast<std::int64_t>(index(cluster_.nvlink_up(gpus.front())));
        const auto at = inside_.try_emplace(look, std::pair{twin.first, base}).first;
        twin = {.first = at->second.first, .shift = base - at->second.second, .unique = false};
    } else if (exchanging) {
        // reaches GPUs that are no members (PXN)
    } else if (Look wide = look_across(gpus, table); !wide.empty()) {
        const auto at = across_.try_emplace(std::move(wide), twin.first).first;
        twin = {.first = at->second, .table = static_cast<std::uint32_t>(tables_.size()), .unique = false};
        tables_.push_back(std::move(table));
    }
    if (twin.first == comm_groups_.size()) {
        comm_groups_.push_back(comm_.outline(gpus));
        first_tables_.push_back(twin.table);
    }
    return twin;
}

// All that a group inside a server depends on, link numbers counted from the first GPU's; empty for other groups.
GroupBook::Look GroupBook::look_inside(const std::vector<GpuId>& gpus) const {
    Look look;
    if (!cluster_.has_nvswitch())
        return look;
    look.reserve(gpus.size() * 32);
    const Links& links = cluster_.links();
    const std::uint64_t base = index(cluster_.nvlink_up(gpus.front()));
    const auto add = [&](LinkId link, bool crossed) {
        look.push_back(crossed ? index(link) - base : 0);
        look.push_back(static_cast<std::uint64_t>(links.capacity[index(link)]));
        look.push_back(static_cast<std::uint64_t>(links.latency[index(link)]));
        look.push_back(links.parallel[index(link)]);
    };
    for (const GpuId gpu : gpus) {
        if (cluster_.node_of(gpu) != cluster_.node_of(gpus.front()))
            return {};
        look.push_back(cluster_.local_index(gpu));
        add(cluster_.nvlink_up(gpu), true);
        add(cluster_.nvlink_down(gpu), true);
        if (cluster_.has_pcie()) {
            add(cluster_.pcie_up(gpu), false);
            add(cluster_.pcie_down(gpu), false);
        }
        for (const NicId nic : cluster_.nics_of(gpu)) {
            look.push_back(cluster_.local_index(nic));
            add(cluster_.nic_up(nic), false);
            add(cluster_.nic_down(nic), false);
        }
    }
    return look;
}

// Who of a group's links is whose, in members' order, and how wide. Links by place in `table`; empty where routes do not
// follow from ends, or GPUs share a NIC, or no other group could be of its kind.
GroupBook::Look GroupBook::look_across(const std::vector<GpuId>& gpus, Table& table) {
    Look look;
    if (!cluster_.has_ends() || 2 * gpus.size() > cluster_.gpu_count())
        return look;
    const Links& links = cluster_.links();
    places_.resize(links.size(), kNone);
    const auto add = [&](LinkId link) {
        std::uint32_t& place = places_[index(link)];
        if (place != kNone) {
            look.push_back(place);
            return false;
        }
        place = static_cast<std::uint32_t>(table.size());
        table.push_back(link);
        look.push_back(place);
        look.push_back(static_cast<std::uint64_t>(links.capacity[index(link)]));
        look.push_back(static_cast<std::uint64_t>(links.latency[index(link)]));
        look.push_back(links.parallel[index(link)]);
        return true;
    };
    const Cluster::Ends front = cluster_.ends(gpus.front());
    table.reserve(gpus.size() * (2 * front.out.size() + 4) + 64);
    look.reserve(gpus.size() * (8 * front.out.size() + front.levels.size() + 20) + 64);
    // servers and NVSwitches by first member there
    std::map<std::uint32_t, std::pair<std::uint32_t, GpuId>> nodes;
    std::map<std::uint32_t, std::uint32_t> switches;
    bool alike = true;
    for (const GpuId gpu : gpus) {
        const auto node = nodes.try_emplace(locality_of(cluster_, gpu), static_cast<std::uint32_t>(nodes.size()), gpu);
        look.push_back(node.first->second.first);
        look.push_back(index(gpu) - index(node.first->second.second));
        look.push_back(
            switches.try_emplace(cluster_.nvswitch_of(gpu), static_cast<std::uint32_t>(switches.size())).first->second);
        look.push_back(index(cluster_.node_of(gpu)) - index(cluster_.node_of(node.first->second.second)));
        add(cluster_.nvlink_up(gpu));
        add(cluster_.nvlink_down(gpu));
        if (cluster_.has_pcie()) {
            add(cluster_.pcie_up(gpu));
            add(cluster_.pcie_down(gpu));
        }
        const Cluster::Ends ends = cluster_.ends(gpu);
        alike = alike && places_[index(ends.out.back())] == kNone;
        for (const std::span<const LinkId> part : {ends.out, ends.levels, ends.in}) {
            for (const LinkId link : part)
                add(link);
        }
    }
    for (const LinkId link : table)
        places_[index(link)] = kNone;
    return alike ? look : Look{};
}

// Links of the first of a kind -> those of a group.
std::vector<LinkUse> GroupBook::translated(const std::vector<LinkUse>& uses, const Twin& twin) {
    std::vector<LinkUse> out(uses);
    if (twin.table == kNone) {
        for (LinkUse& use : out)
            use.link = LinkId{static_cast<std::uint32_t>(static_cast<std::int64_t>(index(use.link)) + twin.shift)};
        return out;
    }
    const Table& table = tables_[twin.table];
    bool ascending = true;
    for (std::size_t i = 0; i < out.size(); ++i) {
        out[i].link = table.at(places_[index(out[i].link)]);
        ascending = ascending && (i == 0 || out[i - 1].link < out[i].link);
    }
    if (!ascending)
        std::sort(out.begin(), out.end(), [](const LinkUse& a, const LinkUse& b) { return a.link < b.link; });
    return out;
}

void GroupBook::plan(const std::vector<CallInfo>& calls,
                     const std::vector<std::pair<std::uint32_t, std::uint32_t>>& used) {
    p_.plans.assign(calls.size(), std::vector<program::Plan>(examples_.size()));
    chosen_.assign(calls.size(), std::vector<CollectivePlan>(examples_.size()));
    std::vector<std::map<std::tuple<Collective, Algorithm, int, std::uint32_t>, std::uint32_t>> classes(
        examples_.size());
    struct Needed {
        Collective kind;
        CollectivePlan plan;
        std::uint32_t index;
        const CallInfo* own;
    };
    std::vector<std::vector<Needed>> needed(examples_.size());
    for (const auto& [call, shape] : used) {
        const CallInfo& info = calls[call];
        const CommGroup& group = comm_groups_[twins_[examples_[shape]].first];
        const bool own = info.moe.tokens > 0 || info.imbalance > 1;
        CollectivePlan plan = own ? exchange(group, info).plan : comm_.plan(group, info.kind, info.bytes);
        program::Plan& out = p_.plans[call][shape];
        const auto part = [&](std::int64_t whole) { return (whole * info.share + 999) / 1000; };
        out.latency = part(plan.latency);
        out.uses_nvlink = plan.uses_nvlink;
        out.uses_network = plan.uses_network;
        for (const PlannedActivity& activity : plan.activities) {
            // exchanges of their own load links by traffic, not by algorithm and channels
            const auto key = std::make_tuple(info.kind, plan.algorithm,
                                             own ? -1 - static_cast<int>(call) : plan.channels, activity.demand);
            const auto [at, fresh] = classes[shape].try_emplace(key, static_cast<std::uint32_t>(needed[shape].size()));
            if (fresh)
                needed[shape].push_back({info.kind, plan, activity.demand, own ? &info : nullptr});
            out.activities.push_back({part(activity.work), activity.weight, activity.cap, at->second});
        }
        chosen_[call][shape] = std::move(plan);
    }
    for (program::Group& group : p_.groups) {
        for (std::size_t n = 0; n < needed[group.shape].size(); ++n) {
            group.demands.push_back(static_cast<std::uint32_t>(p_.demands.size()));
            p_.demands.emplace_back();
        }
    }
    // What the first group of a kind puts on links, and the others like it.
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::uint32_t>>
        kinds;  // (comm group, shape) -> groups
    for (std::uint32_t g = 0; g < p_.groups.size(); ++g)
        kinds[{twins_[g].first, p_.groups[g].shape}].push_back(g);
    for (const auto& [kind, groups] : kinds) {
        const CommGroup& group = comm_groups_[kind.first];
        const Table none;
        const Table& table = first_tables_[kind.first] == kNone ? none : tables_[first_tables_[kind.first]];
        for (std::uint32_t place = 0; place < table.size(); ++place)
            places_[index(table[place])] = place;
        for (std::size_t n = 0; n < needed[kind.second].size(); ++n) {
            const Needed& need = needed[kind.second][n];
            std::vector<LinkUse> uses = need.own ? exchange(group, *need.own).demands.at(need.index)
                                                 : comm_.demand(group, need.kind, need.plan, need.index);
            if (groups.size() == 1 && twins_[groups.front()].unique) {
                p_.demands[p_.groups[groups.front()].demands[n]] = std::move(uses);
                continue;
            }
            for (const std::uint32_t g : groups)
                p_.demands[p_.groups[g].demands[n]] = translated(uses, twins_[g]);
        }
        for (const LinkId link : table)
            places_[index(link)] = kNone;
    }
}

PlannedExchange GroupBook::exchange(const CommGroup& group, const CallInfo& info) const {
    if (info.moe.tokens > 0)
        return comm_.expert_exchange(group, info.moe, kDispatchSms);
    const double most = std::min(info.imbalance, static_cast<double>(group.ranks));
    return comm_.exchange(group, imbalanced_all_to_all(group.ranks, info.bytes, most));
}

}  // namespace fabricast
