#include "sim/traces/list_builder.hpp"

#include <algorithm>
#include <stdexcept>
#include <tuple>

#include <fmt/format.h>

#include "sim/traces/node_order.hpp"
#include "topologies/importers/import_error.hpp"
#include "topologies/importers/source_text.hpp"

namespace fabricast::traces {
namespace {

using importers::ImportError;

constexpr std::uint64_t kMostMicroseconds = 1'000'000'000'000;  ///< 11 days

std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) {
    return (hash ^ value) * 0x9e3779b97f4a7c15ull + (hash >> 29);
}

auto key_of(const TraceNode& n) {
    return std::tie(n.kind, n.collective, n.name, n.first_parent, n.parent_count, n.slot, n.duration, n.flops, n.bytes);
}

bool equal(const NodeList& a, const NodeList& b) {
    return a.nodes.size() == b.nodes.size() && a.parents == b.parents &&
           std::equal(a.nodes.begin(), a.nodes.end(), b.nodes.begin(),
                      [](const TraceNode& x, const TraceNode& y) { return key_of(x) == key_of(y); });
}

std::uint64_t hash_of(const NodeList& list) {
    std::uint64_t hash = list.nodes.size();
    for (const TraceNode& n : list.nodes) {
        hash = mixed(hash, static_cast<std::uint64_t>(n.kind) << 32 | n.name);
        hash = mixed(hash, static_cast<std::uint64_t>(n.slot) << 32 | n.parent_count);
        hash = mixed(hash, static_cast<std::uint64_t>(n.duration));
        hash = mixed(hash, static_cast<std::uint64_t>(n.bytes));
    }
    for (const std::uint32_t parent : list.parents)
        hash = mixed(hash, parent);
    return hash;
}

}  // namespace

ListBuilder::Built ListBuilder::build(std::string_view bytes, const std::vector<RecordPlace>& records,
                                      const GroupNames& names) {
    Built built;
    GroupNames own = names;  // the file's own groups hold for all of it, also for what comes before them
    for (std::size_t k = 0; k < records.size(); ++k) {
        if (!is_metadata_node(records[k].in(bytes)))
            continue;
        binding_.decode(records[k].in(bytes), k + 1, raw_);
        built.own_groups = read_own_groups(own) || built.own_groups;
    }
    decode_all(bytes, records, own, built);
    sort_by_id(bytes, records, built);
    resolve_parents();
    if (const std::string circle = circle_of(list_, binding_.workload().names); !circle.empty())
        throw ImportError(binding_.file(), 0, circle);
    list_.group_slots = static_cast<std::uint32_t>(built.bound.groups.size());
    list_.message_slots = static_cast<std::uint32_t>(built.bound.messages.size());
    built.bound.list = enter();
    return built;
}

void ListBuilder::decode_all(std::string_view bytes, const std::vector<RecordPlace>& records, const GroupNames& names,
                             Built& built) {
    list_ = {};
    list_.nodes.resize(records.size());
    ids_.resize(records.size());
    parents_.clear();
    slots_of_.clear();
    for (std::uint32_t k = 0; k < records.size(); ++k) {
        binding_.decode(records[k].in(bytes), k + 1, raw_);
        ids_[k] = {raw_.id, k};
        TraceNode& node = list_.nodes[k];
        node.first_parent = static_cast<std::uint32_t>(parents_.size());
        node.parent_count = static_cast<std::uint32_t>(raw_.parents.size());
        parents_.insert(parents_.end(), raw_.parents.begin(), raw_.parents.end());
        fill(node, names, built);
    }
}

bool ListBuilder::read_own_groups(GroupNames& names) {
    try {
        return read_process_groups(raw_.inputs, binding_.workload(), binding_.ranks(), names);
    } catch (const std::runtime_error& error) {
        binding_.refuse(raw_, error.what());
    }
}

void ListBuilder::fill(TraceNode& node, const GroupNames& names, Built& built) {
    node.id = raw_.id;
    node.name = name_index(raw_.name.empty() ? fmt::format("node {}", raw_.id) : std::string(raw_.name));
    if (raw_.duration_us > kMostMicroseconds)
        binding_.refuse(raw_, fmt::format("duration of {} us: more than 11 days", raw_.duration_us));
    node.duration = static_cast<Picoseconds>(raw_.duration_us) * 1'000'000;
    node.flops = raw_.ops;
    switch (raw_.type) {
        case ChakraType::invalid:
        case ChakraType::metadata: node.kind = NodeKind::skipped; break;
        case ChakraType::compute:
            node.kind = raw_.cpu ? NodeKind::host : NodeKind::compute;
            node.bytes = binding_.bytes_of(raw_, raw_.tensor_size, "tensor_size");
            break;
        case ChakraType::memory_load:
        case ChakraType::memory_store:
            node.kind = NodeKind::memory;
            node.bytes = binding_.bytes_of(raw_, raw_.tensor_size, "tensor_size");
            break;
        case ChakraType::collective: fill_collective(node, names, built); break;
        case ChakraType::send:
        case ChakraType::receive: {
            cpu_communication_ += raw_.cpu ? 1 : 0;
            node.kind = raw_.type == ChakraType::send ? NodeKind::send : NodeKind::receive;
            const MessageUse use = binding_.message_of(raw_);
            built.own_rank |= (raw_.has & (use.is_send ? ChakraNode::kSource : ChakraNode::kDestination)) != 0;
            node.bytes = use.bytes;
            node.slot = message_slot(built.bound, use);
            break;
        }
    }
}

void ListBuilder::fill_collective(TraceNode& node, const GroupNames& names, Built& built) {
    cpu_communication_ += raw_.cpu ? 1 : 0;
    if ((raw_.has & ChakraNode::kCommType) == 0)
        binding_.refuse(raw_, "a collective without comm_type");
    if (raw_.comm_type > 9)
        binding_.refuse(raw_, fmt::format("comm_type {} is unknown, 0 to 9 are", raw_.comm_type));
    // 8, reduce-scatter-block, moves what reduce-scatter does.
    node.collective = static_cast<CollectiveKind>(raw_.comm_type >= 8 ? raw_.comm_type - 1 : raw_.comm_type);
    node.kind = NodeKind::collective;
    if (node.collective != CollectiveKind::barrier) {
        if ((raw_.has & ChakraNode::kCommSize) == 0)
            binding_.refuse(raw_, "a collective without comm_size");
        node.bytes = binding_.bytes_of(raw_, raw_.comm_size, "comm_size");
    }
    const GroupUse use = binding_.group_of(raw_, names);
    if (!binding_.is_member(use.group)) {
        binding_.refuse(raw_, fmt::format("rank {} is no member of group {}", binding_.rank(),
                                          importers::in_quotes(binding_.workload().groups[use.group].name)));
    }
    if (binding_.is_alone(use)) {
        node.kind = NodeKind::skipped;
        return;
    }
    std::vector<GroupUse>& uses = built.bound.groups;
    const auto at = std::find(uses.begin(), uses.end(), use);
    node.slot = static_cast<std::uint32_t>(at - uses.begin());
    if (at == uses.end())
        uses.push_back(use);
}

std::uint32_t ListBuilder::message_slot(RankTrace& bound, const MessageUse& use) {
    const std::uint64_t hash =
        mixed(mixed(use.peer, use.tag), static_cast<std::uint64_t>(use.bytes) << 1 | (use.is_send ? 1u : 0u));
    std::vector<std::uint32_t>& slots = slots_of_[hash];
    for (const std::uint32_t slot : slots) {
        if (bound.messages[slot] == use)
            return slot;
    }
    slots.push_back(static_cast<std::uint32_t>(bound.messages.size()));
    bound.messages.push_back(use);
    return slots.back();
}

std::uint32_t ListBuilder::name_index(const std::string& name) {
    std::vector<std::string>& names = binding_.workload().names;
    const auto [at, fresh] = name_of_.try_emplace(name, static_cast<std::uint32_t>(names.size()));
    if (fresh)
        names.emplace_back(name);
    return at->second;
}

// Nodes that were written twice alike count once.
void ListBuilder::sort_by_id(std::string_view bytes, const std::vector<RecordPlace>& records, Built& built) {
    if (!std::is_sorted(ids_.begin(), ids_.end()))
        std::sort(ids_.begin(), ids_.end());
    std::vector<TraceNode> nodes;
    nodes.reserve(ids_.size());
    built.node_of.resize(ids_.size());
    std::size_t kept = 0;
    for (const auto& [id, record] : ids_) {
        if (kept > 0 && ids_[kept - 1].first == id) {
            const std::uint32_t first = ids_[kept - 1].second;
            if (records[first].in(bytes) != records[record].in(bytes)) {
                const std::vector<std::string>& names = binding_.workload().names;
                throw ImportError(binding_.file(), 0,
                                  fmt::format("id {} occurs twice, as {} and as {}", id,
                                              importers::in_quotes(names[list_.nodes[first].name]),
                                              importers::in_quotes(names[list_.nodes[record].name])));
            }
            ++equal_nodes_;
            built.node_of[record] = static_cast<std::uint32_t>(kept - 1);
            continue;
        }
        built.node_of[record] = static_cast<std::uint32_t>(kept);
        nodes.push_back(list_.nodes[record]);
        ids_[kept++] = {id, record};
    }
    ids_.resize(kept);
    list_.nodes = std::move(nodes);
}

void ListBuilder::resolve_parents() {
    for (TraceNode& node : list_.nodes) {
        const auto begin = static_cast<std::ptrdiff_t>(list_.parents.size());
        for (std::uint32_t p = 0; p < node.parent_count; ++p) {
            const std::uint64_t parent = parents_[node.first_parent + p];
            auto at = ids_.begin() + static_cast<std::ptrdiff_t>(std::min<std::uint64_t>(parent, ids_.size() - 1));
            if (at->first != parent) {  // ids that do not count from 0
                at = std::lower_bound(ids_.begin(), ids_.end(), std::pair{parent, std::uint32_t{0}});
                if (at == ids_.end() || at->first != parent) {
                    throw ImportError(binding_.file(), 0,
                                      fmt::format("{} depends on node {}, which the file does not have",
                                                  describe(binding_.workload(), node), parent));
                }
            }
            list_.parents.push_back(static_cast<std::uint32_t>(at - ids_.begin()));
        }
        std::sort(list_.parents.begin() + begin, list_.parents.end());
        list_.parents.erase(std::unique(list_.parents.begin() + begin, list_.parents.end()), list_.parents.end());
        node.first_parent = static_cast<std::uint32_t>(begin);
        node.parent_count = static_cast<std::uint32_t>(list_.parents.size()) - node.first_parent;
    }
}

std::uint32_t ListBuilder::enter() {
    std::vector<NodeList>& lists = binding_.workload().lists;
    std::vector<std::uint32_t>& candidates = lists_of_[hash_of(list_)];
    for (const std::uint32_t c : candidates) {
        if (equal(lists[c], list_))
            return c;
    }
    lists.push_back(std::move(list_));
    candidates.push_back(static_cast<std::uint32_t>(lists.size() - 1));
    return candidates.back();
}

}  // namespace fabricast::traces
