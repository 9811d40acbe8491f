#include "topologies/graph/bfs_router.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include <boost/graph/breadth_first_search.hpp>

namespace fabricast {

BfsRouter::BfsRouter(const FabricGraph& fabric, std::vector<std::uint32_t> switch_of_nic, RoutingPolicy policy)
    : fabric_(boost::num_vertices(fabric)), switch_of_nic_(std::move(switch_of_nic)), policy_(policy) {
    // The search visits out-edges in stored order: sorted, it discovers switches in the promised order.
    std::vector<Entry> entries;
    entries.reserve(boost::num_edges(fabric));
    for (std::size_t source = 0; source < boost::num_vertices(fabric); ++source) {
        for (auto [edge, end] = boost::out_edges(source, fabric); edge != end; ++edge) {
            entries.push_back({static_cast<std::uint32_t>(source),
                               static_cast<std::uint32_t>(boost::target(*edge, fabric)), fabric[*edge].link});
        }
    }
    std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
        return std::tie(a.source, a.target, a.link) < std::tie(b.source, b.target, b.link);
    });
    for (const Entry& entry : entries) {
        boost::add_edge(entry.source, entry.target, FabricEdge{entry.link}, fabric_);
    }
    if (policy_.separate_links()) {
        std::stable_sort(entries.begin(), entries.end(),
                         [](const Entry& a, const Entry& b) { return a.target < b.target; });
        first_entry_.assign(boost::num_vertices(fabric) + 1, 0);
        for (const Entry& entry : entries) {
            ++first_entry_[entry.target + 1];
        }
        for (std::size_t i = 1; i < first_entry_.size(); ++i) {
            first_entry_[i] += first_entry_[i - 1];
        }
        entries_ = std::move(entries);
        std::vector<std::uint32_t> nics(boost::num_vertices(fabric), 0);
        for (const std::uint32_t at : switch_of_nic_) {
            number_on_switch_.push_back(nics[at]++);
        }
    }
}

const BfsRouter::Tree& BfsRouter::tree_from(std::uint32_t source) const {
    const std::lock_guard lock(mutex_);
    auto [position, is_new] = trees_.try_emplace(source);
    Tree& tree = position->second;
    if (is_new) {
        struct RecordSteps : boost::default_bfs_visitor {
            explicit RecordSteps(Tree& steps) : tree(&steps) {}
            void tree_edge(const FabricGraph::edge_descriptor& edge, const FabricGraph& fabric) const {
                const auto previous = static_cast<std::uint32_t>(boost::source(edge, fabric));
                (*tree)[boost::target(edge, fabric)] = {previous, fabric[edge].link, (*tree)[previous].hops + 1};
            }
            Tree* tree;
        };
        tree.assign(boost::num_vertices(fabric_), {kUnreached, LinkId{0}, kUnreached});
        tree[source].hops = 0;
        boost::breadth_first_search(fabric_, source, boost::visitor(RecordSteps(tree)));
    }
    return tree;  // stays where it is: unordered_map keeps references, a finished tree is not written again
}

/// The link by which a flow enters switch `at` on one of the shortest ways; `at` is reached and not the source.
const BfsRouter::Entry& BfsRouter::chosen_entry(const Tree& tree, std::uint32_t at, NicId from, NicId to,
                                                std::uint64_t flow) const {
    const auto is_shortest = [&](const Entry& entry) { return tree[entry.source].hops + 1 == tree[at].hops; };
    const auto begin = entries_.begin() + first_entry_[at];
    const auto end = entries_.begin() + first_entry_[at + 1];
    const auto ways = static_cast<std::uint32_t>(std::count_if(begin, end, is_shortest));
    std::uint32_t choice = policy_.spreading == Spreading::ecmp
                               ? ecmp_choice(policy_.seed, static_cast<std::uint32_t>(from),
                                             static_cast<std::uint32_t>(to), flow, tree[at].hops, ways)
                               : number_on_switch_[index(to)] % ways;
    auto entry = std::find_if(begin, end, is_shortest);
    for (; choice > 0; --choice) {
        entry = std::find_if(entry + 1, end, is_shortest);
    }
    return *entry;
}

bool BfsRouter::append_fabric_links(NicId from, NicId to, std::uint64_t flow, std::vector<LinkId>& out) const {
    const std::uint32_t source = switch_of_nic_[index(from)];
    const std::uint32_t destination = switch_of_nic_[index(to)];
    if (source == destination) {
        return true;
    }
    const Tree& tree = tree_from(source);
    if (tree[destination].previous == kUnreached) {
        return false;
    }
    const auto begin = static_cast<std::ptrdiff_t>(out.size());
    for (std::uint32_t at = destination; at != source;) {
        if (policy_.separate_links()) {
            const Entry& entry = chosen_entry(tree, at, from, to, flow);
            out.push_back(entry.link);
            at = entry.source;
        } else {
            out.push_back(tree[at].link);
            at = tree[at].previous;
        }
    }
    std::reverse(out.begin() + begin, out.end());
    return true;
}

}  // namespace fabricast
