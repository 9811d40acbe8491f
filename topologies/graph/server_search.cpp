#include "topologies/graph/server_search.hpp"

#include <algorithm>
#include <limits>
#include <queue>
#include <tuple>

namespace fabricast {
namespace {

using Kind = ServerGraph::Kind;
constexpr std::uint32_t kNone = ServerGraph::kNone;
constexpr Rate kUnlimited = std::numeric_limits<Rate>::max();

/// Best way known to a vertex.
struct Way {
    PathType type = PathType::dis;
    Rate bandwidth = 0;
    std::uint32_t steps = 0;
    std::uint32_t previous = kNone;
    std::uint32_t edge = kNone;
    // what the type follows from
    std::uint32_t switches = 0, hosts = 0, numa = 0;
    bool c2c = false, several_numa = false;

    bool better_than(const Way& other) const {
        return std::make_tuple(type, -bandwidth, steps) < std::make_tuple(other.type, -other.bandwidth, other.steps);
    }
};

class Search {
public:
    explicit Search(const ServerGraph& server) : server_(server), first_edge_(server.vertices.size() + 1, 0) {
        for (const ServerGraph::Edge& edge : server.edges) {
            ++first_edge_[edge.from + 1];
        }
        for (std::size_t i = 1; i < first_edge_.size(); ++i) {
            first_edge_[i] += first_edge_[i - 1];
        }
    }

    ServerRoutes run();

private:
    void over_pcie(std::uint32_t from);
    void over_nvlink(std::uint32_t from);
    Way extended(const Way& way, std::uint32_t edge) const;
    void append(ServerRoutes& routes, std::uint32_t from, std::uint32_t to);
    void append_links(const std::vector<Way>& ways, std::uint32_t from, std::uint32_t to, ServerRoutes& routes);

    const ServerGraph& server_;
    std::vector<std::uint32_t> first_edge_;
    std::vector<Way> pcie_, nvlink_;  ///< from the end at hand
    std::vector<std::uint32_t> touched_, backwards_;
};

Way Search::extended(const Way& way, std::uint32_t edge_number) const {
    const ServerGraph::Edge& edge = server_.edges[edge_number];
    const ServerGraph::Vertex& vertex = server_.vertices[edge.to];
    Way next = way;
    next.previous = edge.from;
    next.edge = edge_number;
    ++next.steps;
    if (edge.link != kNone) {
        next.bandwidth = std::min(next.bandwidth, edge.capacity);
    }
    next.c2c = next.c2c || edge.c2c;
    if (vertex.kind == Kind::pcie_switch) {
        ++next.switches;
    } else if (vertex.kind == Kind::host) {
        next.several_numa = next.several_numa || (next.hosts > 0 && next.numa != vertex.numa);
        next.numa = vertex.numa;
        ++next.hosts;
    }
    const bool ends_at_cpu = next.hosts == 1;
    next.type = next.several_numa         ? PathType::sys
                : next.hosts > 1          ? PathType::node
                : ends_at_cpu && next.c2c ? PathType::p2c
                : ends_at_cpu             ? PathType::phb
                : next.switches > 1       ? PathType::pxb
                                          : PathType::pix;
    return next;
}

void Search::over_pcie(std::uint32_t from) {
    for (const std::uint32_t vertex : touched_) {
        pcie_[vertex] = Way();
    }
    touched_.assign(1, from);
    pcie_[from] = {.type = PathType::loc, .bandwidth = kUnlimited};
    const auto later = [&](std::uint32_t a, std::uint32_t b) {
        const Way &x = pcie_[a], &y = pcie_[b];
        return y.better_than(x) || (!x.better_than(y) && a > b);
    };
    std::vector<std::uint32_t> open = {from};  // servers are small: the next vertex is looked for
    while (!open.empty()) {
        const auto best =
            std::min_element(open.begin(), open.end(), [&](std::uint32_t a, std::uint32_t b) { return later(b, a); });
        const std::uint32_t at = *best;
        open.erase(best);
        if (at != from && (server_.vertices[at].kind == Kind::gpu || server_.vertices[at].kind == Kind::nic)) {
            continue;  // an end, not a way
        }
        for (std::uint32_t e = first_edge_[at]; e < first_edge_[at + 1]; ++e) {
            const std::uint32_t to = server_.edges[e].to;
            if (server_.edges[e].nvlink) {
                continue;
            }
            const Way way = extended(pcie_[at], e);
            if (way.better_than(pcie_[to])) {
                if (pcie_[to].type == PathType::dis) {
                    touched_.push_back(to);
                    open.push_back(to);
                } else if (std::find(open.begin(), open.end(), to) == open.end()) {
                    continue;  // closed: only a way back can look better
                }
                pcie_[to] = way;
            }
        }
    }
}

/// Level by level, so fewest GPUs first; in a level the widest way, then the one over lower numbers.
void Search::over_nvlink(std::uint32_t from) {
    nvlink_.assign(server_.gpus, Way());
    nvlink_[from] = {.type = PathType::loc, .bandwidth = kUnlimited};
    std::vector<std::uint32_t> level = {from}, next;
    while (!level.empty()) {
        for (const std::uint32_t at : level) {
            for (std::uint32_t e = first_edge_[at]; e < first_edge_[at + 1]; ++e) {
                const ServerGraph::Edge& edge = server_.edges[e];
                if (!edge.nvlink) {
                    continue;
                }
                Way way = nvlink_[at];
                way.type = way.steps == 0 ? PathType::nvl : PathType::nvb;
                way.bandwidth = std::min(way.bandwidth, edge.capacity);
                way.previous = at;
                way.edge = e;
                ++way.steps;
                Way& known = nvlink_[edge.to];
                if (known.type == PathType::dis) {
                    next.push_back(edge.to);
                    known = way;
                } else if (known.steps == way.steps && way.bandwidth > known.bandwidth) {
                    known = way;
                }
            }
        }
        std::sort(next.begin(), next.end());
        level.swap(next);
        next.clear();
    }
}

void Search::append_links(const std::vector<Way>& ways, std::uint32_t from, std::uint32_t to, ServerRoutes& routes) {
    backwards_.clear();
    for (std::uint32_t at = to; at != from; at = ways[at].previous) {
        if (at != to && server_.vertices[at].limit != kNone) {
            backwards_.push_back(server_.vertices[at].limit);
        }
        if (server_.edges[ways[at].edge].link != kNone) {
            backwards_.push_back(server_.edges[ways[at].edge].link);
        }
    }
    routes.links.insert(routes.links.end(), backwards_.rbegin(), backwards_.rend());
}

void Search::append(ServerRoutes& routes, std::uint32_t from, std::uint32_t to) {
    const bool gpus = from < server_.gpus && to < server_.gpus;
    const bool nics = from >= server_.gpus && to >= server_.gpus;
    PathType type = from == to ? PathType::loc : nics ? PathType::dis : pcie_[to].type;
    if (gpus && from != to) {
        const std::uint32_t nvswitch = server_.vertices[from].nvswitch;
        if (nvswitch != kNone && nvswitch == server_.vertices[to].nvswitch) {
            type = PathType::nvl;
        } else {
            const Way& direct = nvlink_[to];
            const bool over_nvlink = direct.type == PathType::nvl ||
                                     (direct.type == PathType::nvb && type == PathType::dis) ||
                                     (direct.type == PathType::nvb && direct.steps == 2 &&
                                      (type != PathType::pix || direct.bandwidth >= pcie_[to].bandwidth));
            type = over_nvlink ? direct.type : type;
            append_links(over_nvlink ? nvlink_ : pcie_, from, type == PathType::dis ? from : to, routes);
        }
    } else if (type != PathType::dis) {
        append_links(pcie_, from, to, routes);
    }
    routes.types.push_back(type);
}

ServerRoutes Search::run() {
    ServerRoutes routes;
    routes.ends = server_.gpus + server_.nics;
    routes.types.reserve(std::size_t{routes.ends} * routes.ends);
    routes.begin.reserve(std::size_t{routes.ends} * routes.ends + 1);
    pcie_.assign(server_.vertices.size(), Way());
    for (std::uint32_t from = 0; from < routes.ends; ++from) {
        over_pcie(from);
        if (from < server_.gpus) {
            over_nvlink(from);
        }
        for (std::uint32_t to = 0; to < routes.ends; ++to) {
            routes.begin.push_back(static_cast<std::uint32_t>(routes.links.size()));
            append(routes, from, to);
        }
    }
    routes.begin.push_back(static_cast<std::uint32_t>(routes.links.size()));
    return routes;
}

}  // namespace

ServerRoutes search_server_routes(const ServerGraph& server) { return Search(server).run(); }

}  // namespace fabricast
