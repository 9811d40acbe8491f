#include "topologies/graph/bfs_router.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include <boost/graph/breadth_first_search.hpp>

namespace fabricast {

BfsRouter::BfsRouter(const FabricGraph& fabric, std::vector<std::uint32_t> switch_of_nic)
    : fabric_(boost::num_vertices(fabric)), switch_of_nic_(std::move(switch_of_nic)) {
    // The search visits out-edges in stored order: sorted, it discovers switches in the promised order.
    struct Entry {
        std::size_t source, target;
        LinkId link;
    };
    std::vector<Entry> entries;
    entries.reserve(boost::num_edges(fabric));
    for (std::size_t source = 0; source < boost::num_vertices(fabric); ++source) {
        for (auto [edge, end] = boost::out_edges(source, fabric); edge != end; ++edge) {
            entries.push_back({source, boost::target(*edge, fabric), fabric[*edge].link});
        }
    }
    std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
        return std::tie(a.source, a.target, a.link) < std::tie(b.source, b.target, b.link);
    });
    for (const Entry& entry : entries) {
        boost::add_edge(entry.source, entry.target, FabricEdge{entry.link}, fabric_);
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
                (*tree)[boost::target(edge, fabric)] = {previous, fabric[edge].link};
            }
            Tree* tree;
        };
        tree.assign(boost::num_vertices(fabric_), {kUnreached, LinkId{0}});
        boost::breadth_first_search(fabric_, source, boost::visitor(RecordSteps(tree)));
    }
    return tree;  // stays where it is: unordered_map keeps references, a finished tree is not written again
}

bool BfsRouter::append_fabric_links(NicId from, NicId to, std::vector<LinkId>& out) const {
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
    for (std::uint32_t at = destination; at != source; at = tree[at].previous) {
        out.push_back(tree[at].link);
    }
    std::reverse(out.begin() + begin, out.end());
    return true;
}

}  // namespace fabricast
