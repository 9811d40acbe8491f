#include "sim/traces/node_order.hpp"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

#include <fmt/format.h>

#include "topologies/importers/source_text.hpp"

namespace fabricast::traces {
namespace {

/// Children of every node, and how many parents each still waits for.
struct Graph {
    std::vector<std::uint32_t> first_child, children, waiting;

    explicit Graph(const NodeList& list) : first_child(list.nodes.size() + 1, 0), waiting(list.nodes.size()) {
        for (const std::uint32_t parent : list.parents)
            ++first_child[parent + 1];
        for (std::size_t n = 0; n < list.nodes.size(); ++n)
            first_child[n + 1] += first_child[n];
        children.resize(list.parents.size());
        std::vector<std::uint32_t> next(first_child.begin(), first_child.end() - 1);
        for (std::uint32_t n = 0; n < list.nodes.size(); ++n) {
            const TraceNode& node = list.nodes[n];
            waiting[n] = node.parent_count;
            for (std::uint32_t p = 0; p < node.parent_count; ++p)
                children[next[list.parents[node.first_parent + p]]++] = n;
        }
    }
    std::span<const std::uint32_t> children_of(std::uint32_t n) const {
        return {children.data() + first_child[n], children.data() + first_child[n + 1]};
    }
};

}  // namespace

std::string circle_of(const NodeList& list, const std::vector<std::string>& names) {
    Graph graph(list);
    std::vector<std::uint32_t> ready;
    for (std::uint32_t n = 0; n < list.nodes.size(); ++n) {
        if (graph.waiting[n] == 0)
            ready.push_back(n);
    }
    std::size_t done = 0;
    for (; done < ready.size(); ++done) {
        for (const std::uint32_t child : graph.children_of(ready[done])) {
            if (--graph.waiting[child] == 0)
                ready.push_back(child);
        }
    }
    if (done == list.nodes.size())
        return {};
    // From any node that waits, one always gets to another that waits.
    std::vector<std::uint32_t> path;
    std::vector<bool> passed(list.nodes.size(), false);
    std::uint32_t at = 0;
    while (graph.waiting[at] == 0)
        ++at;
    while (!passed[at]) {
        passed[at] = true;
        path.push_back(at);
        const TraceNode& node = list.nodes[at];
        for (std::uint32_t p = 0; p < node.parent_count; ++p) {
            const std::uint32_t parent = list.parents[node.first_parent + p];
            if (graph.waiting[parent] != 0) {
                at = parent;
                break;
            }
        }
    }
    const auto begin = std::find(path.begin(), path.end(), at);
    const auto length = static_cast<std::size_t>(path.end() - begin);
    std::string text = "nodes wait for each other in a circle: ";
    constexpr std::size_t kShown = 4;
    for (std::size_t i = 0; i < std::min(length, kShown); ++i) {
        const TraceNode& node = list.nodes[*(begin + static_cast<std::ptrdiff_t>(i))];
        text += fmt::format("node {} {} for ", node.id, importers::in_quotes(names[node.name]));
    }
    if (length > kShown)
        text += fmt::format("{} more for ", length - kShown);
    return text + fmt::format("node {}", list.nodes[at].id);
}

std::vector<std::uint32_t> issue_order(const NodeList& list, std::span<const std::uint32_t> resource,
                                       std::uint32_t resource_count, std::span<const Picoseconds> duration,
                                       std::span<const Picoseconds> not_before) {
    using Lowest = std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>>;
    using End = std::pair<Picoseconds, std::uint32_t>;
    Graph graph(list);
    std::vector<Lowest> ready(resource_count);
    std::vector<bool> busy(resource_count, false);
    std::priority_queue<End, std::vector<End>, std::greater<>> ends;
    std::vector<std::uint32_t> order, at_once;
    order.reserve(list.nodes.size());
    const auto enter = [&](std::uint32_t n) {
        if (resource[n] == kNone)
            at_once.push_back(n);
        else
            ready[resource[n]].push(n);
    };
    for (std::uint32_t n = 0; n < list.nodes.size(); ++n) {
        if (graph.waiting[n] == 0)
            enter(n);
    }
    Picoseconds now = 0;
    const auto end_of = [&](std::uint32_t n) {
        return not_before.empty() ? now + duration[n] : std::max(now + duration[n], not_before[n]);
    };
    const auto finish = [&](std::uint32_t n) {
        for (const std::uint32_t child : graph.children_of(n)) {
            if (--graph.waiting[child] == 0)
                enter(child);
        }
    };
    const auto issue = [&] {
        while (!at_once.empty()) {
            const std::uint32_t n = at_once.back();
            at_once.pop_back();
            order.push_back(n);
            if (const Picoseconds end = end_of(n); end > now)
                ends.push({end, n});
            else
                finish(n);
        }
        for (std::uint32_t r = 0; r < resource_count; ++r) {
            if (busy[r] || ready[r].empty())
                continue;
            const std::uint32_t n = ready[r].top();
            ready[r].pop();
            busy[r] = true;
            order.push_back(n);
            ends.push({end_of(n), n});
        }
    };
    issue();
    while (!ends.empty()) {
        now = ends.top().first;
        while (!ends.empty() && ends.top().first == now) {
            const std::uint32_t n = ends.top().second;
            ends.pop();
            if (resource[n] != kNone)
                busy[resource[n]] = false;
            finish(n);
        }
        issue();
    }
    return order;
}

}  // namespace fabricast::traces
