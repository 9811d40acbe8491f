#include "models/parallel/group_book.hpp"

#include <algorithm>
#include <tuple>

#include "models/collectives/exchange.hpp"

namespace fabricast {
namespace {

// Thread blocks of a node-aware dispatch (DeepEP's default in training).
constexpr int kDispatchSms = 24;

}  // namespace

std::uint32_t GroupBook::add(std::string name, std::vector<std::uint32_t> members) {
    std::vector<GpuId> gpus;
    for (const std::uint32_t rank : members)
        gpus.push_back(GpuId{rank});
    const CommGroup& group = known(gpus);
    const auto [at, fresh] = shapes_.try_emplace(group.shape_hash, static_cast<std::uint32_t>(examples_.size()));
    if (fresh)
        examples_.push_back(static_cast<std::uint32_t>(p_.groups.size()));
    p_.groups.push_back({std::move(name), std::move(members), at->second, {}});
    return static_cast<std::uint32_t>(p_.groups.size() - 1);
}

const CommGroup& GroupBook::known(const std::vector<GpuId>& gpus) {
    Twin twin{static_cast<std::uint32_t>(comm_groups_.size()), 0};
    if (const std::vector<std::uint64_t> look = look_of(gpus); !look.empty()) {
        const auto base = static_cast<std::int64_t>(index(cluster_.nvlink_up(gpus.front())));
        const auto at = looks_.try_emplace(look, std::pair{twin.first, base}).first;
        twin = {at->second.first, base - at->second.second, false};
    }
    if (twin.first == comm_groups_.size())
        comm_groups_.push_back(comm_.make_group(gpus));
    twins_.push_back(twin);
    return comm_groups_[twin.first];
}

// All that a group inside a server depends on, link numbers counted from the first GPU's; empty for other groups.
std::vector<std::uint64_t> GroupBook::look_of(const std::vector<GpuId>& gpus) const {
    std::vector<std::uint64_t> look;
    if (!cluster_.has_nvswitch())
        return look;
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
    // What the first group of a kind puts on links, by (kind, demand of its shape).
    std::vector<std::vector<std::vector<LinkUse>>> first_uses(comm_groups_.size());
    for (std::size_t g = 0; g < p_.groups.size(); ++g) {
        const std::vector<Needed>& needs = needed[p_.groups[g].shape];
        const Twin twin = twins_[g];
        std::vector<std::vector<LinkUse>>& known = first_uses[twin.first];
        const CommGroup& group = comm_groups_[twin.first];
        for (std::size_t n = 0; n < needs.size(); ++n) {
            if (known.size() == n) {
                const Needed& need = needs[n];
                known.push_back(need.own ? exchange(group, *need.own).demands.at(need.index)
                                         : comm_.demand(group, need.kind, need.plan, need.index));
            }
            p_.groups[g].demands.push_back(static_cast<std::uint32_t>(p_.demands.size()));
            if (twin.unique) {
                p_.demands.push_back(std::move(known[n]));
                continue;
            }
            std::vector<LinkUse>& uses = p_.demands.emplace_back(known[n]);
            for (LinkUse& use : uses)
                use.link = LinkId{static_cast<std::uint32_t>(static_cast<std::int64_t>(index(use.link)) + twin.shift)};
        }
    }
}

PlannedExchange GroupBook::exchange(const CommGroup& group, const CallInfo& info) const {
    if (info.moe.tokens > 0)
        return comm_.expert_exchange(group, info.moe, kDispatchSms);
    const double most = std::min(info.imbalance, static_cast<double>(group.ranks));
    return comm_.exchange(group, imbalanced_all_to_all(group.ranks, info.bytes, most));
}

}  // namespace fabricast
