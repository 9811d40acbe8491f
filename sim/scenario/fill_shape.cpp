// What the network is: a class of networks, a network's own file, a grid of dimensions, a graph written by hand.
#include <algorithm>

#include <fmt/format.h>

#include "sim/scenario/calibration.hpp"
#include "sim/scenario/fill.hpp"
#include "topologies/importers/detect.hpp"
#include "topologies/importers/node_list.hpp"

namespace fabricast {
namespace {

using importers::FabricDescription;
using importers::NodeKind;

void read_network(const Answers& answers, Scenario& s) {
    const Answer* told = answers.given("cluster.fabric.network");
    NetworkSpec network = *Catalogue::builtin().find_network(told ? std::string_view(told->text) : s.node.network);
    const bool calibrated = s.calibration && apply(*s.calibration, network);
    if (!told && !s.node.network_named && !calibrated)
        return;
    s.network = std::move(network);
    s.node.network = s.network->name;
    if ((told || calibrated) && !answers.given("cluster.node.nic_efficiency")) {
        s.node.nic_efficiency = s.network->efficiency;
        s.node.sources["nic_efficiency"] = s.network->sources.at("efficiency");
    }
}

/// The number of servers that a file, a grid or a graph has, against what the scenario says.
void settle_nodes(const Answers& answers, std::uint32_t found, const std::string& where, Scenario& s,
                  Diagnostics& diagnostics) {
    if (const Answer* nodes = answers.given("cluster.nodes"); nodes && nodes->integer != found)
        diagnostics.error(nodes->place,
                          fmt::format("cluster.nodes: {}, but {} has {}; leave it out", nodes->integer, where, found));
    s.nodes = found;
}

void refuse_beside(const Answers& answers, std::string_view shape, std::initializer_list<const char*> keys,
                   Diagnostics& diagnostics) {
    for (const char* key : keys) {
        if (answers.given(key))
            diagnostics.error(answers.place(key),
                              fmt::format("{}: has no effect beside {}; leave one out", key, shape));
    }
}

// --- grids ---

void place_grid(const Answers& answers, const std::string& where, Scenario& s, Diagnostics& diagnostics) {
    double port = 0;
    std::uint64_t gpus = 1, servers = 1;
    for (std::size_t d = 0; d < s.grid.size(); ++d) {
        const GridAxis& axis = s.grid[d];
        if (d < s.inner_dimensions) {
            gpus *= axis.count;
        } else {
            servers *= axis.count;
            const bool both = axis.kind == GridAxis::Kind::ring && axis.count > 2;
            const std::uint32_t links = axis.kind == GridAxis::Kind::full ? axis.count - 1 : both ? 2 : 1;
            port += axis.bytes_per_s * links;
        }
    }
    if (s.inner_dimensions > s.grid.size() || gpus > 4096 || servers > 131072) {
        diagnostics.error(
            answers.place("cluster.fabric.inner_dimensions"),
            fmt::format("cluster.fabric.inner_dimensions: {} of {} dimensions make {} servers of {} GPUs; "
                        "at most 131072 of 4096",
                        s.inner_dimensions, s.grid.size(), servers, gpus));
        return;
    }
    s.node.gpus = static_cast<std::uint32_t>(gpus);
    s.node.nics = port > 0 ? s.node.gpus : 0;
    s.node.nic_bits_per_s = port * 8;
    s.node.nic_efficiency = 1;
    s.node.nvlink_domain = 1;
    settle_nodes(answers, static_cast<std::uint32_t>(servers), where, s, diagnostics);
}

void read_dimensions(Answers& answers, const Answer& list, Scenario& s, Diagnostics& diagnostics) {
    for (std::int64_t i = 0; i < list.integer; ++i) {
        const std::string at = fmt::format("cluster.fabric.dimensions[{}]", i);
        const Answer *kind = answers.given(at + ".kind"), *size = answers.given(at + ".size"),
                     *bandwidth = answers.given(at + ".bandwidth"), *delay = answers.given(at + ".latency");
        for (const auto& [answer, key] :
             {std::pair{kind, ".kind"}, std::pair{size, ".size"}, std::pair{bandwidth, ".bandwidth"}}) {
            if (!answer)
                missing(answers, at + key, "; every dimension has kind, size and bandwidth", diagnostics);
        }
        if (!kind || !size || !bandwidth)
            continue;
        const auto shape = kind->text == "ring"   ? GridAxis::Kind::ring
                           : kind->text == "full" ? GridAxis::Kind::full
                                                  : GridAxis::Kind::switched;
        s.grid.push_back(
            {shape, static_cast<std::uint32_t>(size->integer), bandwidth->number, delay ? delay->number : 0});
    }
    if (list.integer == 0)
        diagnostics.error(list.place,
                          "cluster.fabric.dimensions: the list is empty; a grid has at least one dimension");
}

void fill_grid(Answers& answers, Scenario& s, Diagnostics& diagnostics) {
    const Answer* list = answers.given("cluster.fabric.dimensions");
    if (!list)
        return missing(answers, "cluster.fabric.dimensions", "; a grid is its dimensions, innermost first",
                       diagnostics);
    read_dimensions(answers, *list, s, diagnostics);
    s.inner_dimensions = static_cast<std::uint32_t>(answers.get("cluster.fabric.inner_dimensions").integer);
    s.fabric.name = "grid";
    s.shape_where = list->place.text();
    if (diagnostics.ok())
        place_grid(answers, "the grid", s, diagnostics);
}

// --- files ---

/// Trunks of which the file tells no rate carry what hangs below them, over the oversubscription.
class Trunks {
public:
    Trunks(FabricDescription& fabric, double host_bytes_per_s) : fabric_(fabric), host_(host_bytes_per_s) {}

    void fill(double oversubscription) {
        for (importers::FabricLink& link : fabric_.links) {
            const auto &a = fabric_.nodes[link.from], &b = fabric_.nodes[link.to];
            const bool trunk = a.kind == NodeKind::network_switch && b.kind == NodeKind::network_switch;
            if (trunk && link.bytes_per_s == 0)
                link.bytes_per_s = hosts_below(a.level <= b.level ? link.from : link.to) * host_ / oversubscription;
        }
    }

private:
    double hosts_below(std::uint32_t node) {
        if (below_.empty())
            below_.assign(fabric_.nodes.size(), -1);
        if (fabric_.nodes[node].kind != NodeKind::network_switch)
            return 1;
        if (below_[node] >= 0)
            return below_[node];
        below_[node] = 0;
        double sum = 0;
        for (const importers::FabricLink& link : fabric_.links) {
            if (link.from != node && link.to != node)
                continue;
            const std::uint32_t far = link.from == node ? link.to : link.from;
            if (fabric_.nodes[far].level < fabric_.nodes[node].level)
                sum += hosts_below(far);
        }
        return below_[node] = std::max(1.0, sum);
    }

    FabricDescription& fabric_;
    double host_;
    std::vector<double> below_;
};

void place_hosts(const Answers& answers, const Answer& file, Scenario& s, Diagnostics& diagnostics) {
    const Answer* list = answers.given("cluster.fabric.hosts");
    std::vector<std::string> all;
    for (const importers::FabricNode& node : s.fabric_file->nodes) {
        if (node.kind == NodeKind::host)
            all.push_back(node.name);
    }
    if (list) {
        try {
            importers::place(*s.fabric_file, list->text);  // says which one is not there, or twice
            s.hosts = importers::expand_node_list(list->text, list->place.text());
            settle_nodes(answers, static_cast<std::uint32_t>(s.hosts.size()), "cluster.fabric.hosts", s, diagnostics);
        } catch (const importers::ImportError& refused) {
            diagnostics.error(list->place, "cluster.fabric.hosts: " + refused.sentence());
        }
        return;
    }
    const Answer* nodes = answers.given("cluster.nodes");
    const auto wanted = nodes ? static_cast<std::size_t>(nodes->integer) : all.size();
    if (wanted > all.size())
        diagnostics.error(nodes->place,
                          fmt::format("cluster.nodes: {}, but `{}` lists {} hosts", wanted, file.text, all.size()));
    all.resize(std::min(wanted, all.size()));
    s.hosts = std::move(all);
    s.nodes = static_cast<std::uint32_t>(s.hosts.size());
}

void place_gpus(const Answers& answers, const Answer& file, Scenario& s, Diagnostics& diagnostics) {
    const FabricDescription& fabric = *s.fabric_file;
    const Answer* told = answers.given("cluster.fabric.gpus_per_server");
    s.gpus_per_server = told ? static_cast<std::uint32_t>(told->integer) : s.node.gpus;
    std::uint32_t gpus = 0, of_first = 0;
    for (const importers::FabricNode& node : fabric.nodes) {
        gpus += node.kind == NodeKind::gpu;
        of_first += node.kind == NodeKind::gpu && node.server == 0;
    }
    const std::uint32_t server = of_first > 0 ? of_first : std::min(s.gpus_per_server, gpus);
    if (gpus % server != 0)
        diagnostics.error(told ? told->place : file.place,
                          fmt::format("cluster.fabric.gpus_per_server: the {} GPUs of `{}` do not make servers of {}",
                                      gpus, file.text, server));
    s.gpus_per_server = s.node.gpus = server;
    s.node.nvlink_domain = 1;
    settle_nodes(answers, gpus / server, fmt::format("`{}`", file.text), s, diagnostics);
}

void fill_file(Answers& answers, const Answer& file, Scenario& s, Diagnostics& diagnostics) {
    const auto fail = [&](const std::string& why) { diagnostics.error(file.place, "cluster.fabric.file: " + why); };
    s.shape_where = file.place.text();
    try {
        importers::Imported imported = importers::import_file(path_beside(file));
        auto* fabric = std::get_if<FabricDescription>(&imported);
        if (fabric == nullptr)
            return fail(fmt::format("`{}` tells a server, not a network; give it as cluster.node.topology", file.text));
        for (const importers::Note& note : fabric->notes) {
            if (note.kind == importers::NoteKind::suspicious)
                s.notes.push_back(fmt::format("{}:{}: {}", file.text, note.line, note.text));
        }
        if (!fabric->dimensions.empty()) {
            for (const importers::GridDimension& d : fabric->dimensions) {
                using Kind = importers::GridDimension::Kind;
                const auto kind = d.kind == Kind::ring              ? GridAxis::Kind::ring
                                  : d.kind == Kind::fully_connected ? GridAxis::Kind::full
                                                                    : GridAxis::Kind::switched;
                s.grid.push_back({kind, d.count, d.bytes_per_s, d.latency_s});
            }
            s.inner_dimensions = static_cast<std::uint32_t>(answers.get("cluster.fabric.inner_dimensions").integer);
            s.fabric.name = "grid";
            return place_grid(answers, fmt::format("`{}`", file.text), s, diagnostics);
        }
        const bool gpus = fabric->count(NodeKind::gpu) > 0;
        if (!gpus && fabric->count(NodeKind::host) == 0)
            return fail(fmt::format("`{}` lists neither hosts nor GPUs", file.text));
        s.fabric_file = std::move(*fabric);
        s.fabric.name = s.fabric_file->format;
        if (gpus)
            return place_gpus(answers, file, s, diagnostics);
        place_hosts(answers, file, s, diagnostics);
        const Answer* ratio = answers.given("cluster.fabric.oversubscription");
        Trunks(*s.fabric_file, s.node.nics * s.node.nic_bits_per_s / 8).fill(ratio ? ratio->number : 1);
    } catch (const importers::ImportError& refused) {
        fail(refused.what());
    }
}

// --- graphs ---

void read_parts(const Answers& answers, std::int64_t parts, HandMade& graph, Diagnostics& diagnostics) {
    for (std::int64_t i = 0; i < parts; ++i) {
        const std::string at = fmt::format("cluster.graph.nodes[{}]", i);
        const Answer *name = answers.given(at + ".name"), *kind = answers.given(at + ".kind"),
                     *server = answers.given(at + ".server"), *numa = answers.given(at + ".numa");
        HandMade::Part part;
        if (name)
            part.name = name->text;
        else
            missing(answers, at + ".name", "; links name their ends", diagnostics);
        if (kind)
            part.kind = *find_part_kind(kind->text);
        else
            missing(answers, at + ".kind", "; gpu, nvswitch, nic, pcie-switch, host or switch", diagnostics);
        part.server = server ? static_cast<int>(server->integer) : -1;
        part.numa = numa ? static_cast<std::uint32_t>(numa->integer) : 0;
        graph.parts.push_back(std::move(part));
    }
}

void read_links(const Answers& answers, std::int64_t links, HandMade& graph, Diagnostics& diagnostics) {
    for (std::int64_t i = 0; i < links; ++i) {
        const std::string at = fmt::format("cluster.graph.links[{}]", i);
        const Answer *from = answers.given(at + ".from"), *to = answers.given(at + ".to"),
                     *bandwidth = answers.given(at + ".bandwidth"), *delay = answers.given(at + ".latency"),
                     *lanes = answers.given(at + ".lanes"), *one_way = answers.given(at + ".one_way");
        for (const auto& [answer, key] : {std::pair{from, ".from"}, std::pair{to, ".to"}}) {
            if (!answer)
                missing(answers, at + key, "; a link has two ends", diagnostics);
        }
        if (from && to)
            graph.links.push_back({from->text, to->text, bandwidth ? bandwidth->number : 0, delay ? delay->number : 0,
                                   lanes ? static_cast<std::uint32_t>(lanes->integer) : 1, one_way && one_way->flag});
    }
}

void fill_graph(const Answers& answers, const Answer& section, Scenario& s, Diagnostics& diagnostics) {
    HandMade graph;
    graph.routing = s.routing;
    const Answer *parts = answers.given("cluster.graph.nodes"), *links = answers.given("cluster.graph.links");
    if (!parts)
        missing(answers, "cluster.graph.nodes", "; the parts of the cluster", diagnostics);
    read_parts(answers, parts ? parts->integer : 0, graph, diagnostics);
    read_links(answers, links ? links->integer : 0, graph, diagnostics);
    if (!diagnostics.ok())
        return;
    s.shape_where = section.place.text();
    s.fabric.name = "graph";
    try {
        const Cluster cluster = build_hand_made(graph);
        s.node.gpus = cluster.gpus_per_node();
        s.node.nics = cluster.nics_per_node();
        s.node.nic_efficiency = 1;
        s.node.nvlink_domain = 1;
        settle_nodes(answers, cluster.node_count(), "cluster.graph", s, diagnostics);
        s.graph = std::move(graph);
    } catch (const HandMadeError& wrong) {
        const std::string at = wrong.part   ? fmt::format("cluster.graph.nodes[{}]", *wrong.part)
                               : wrong.link ? fmt::format("cluster.graph.links[{}]", *wrong.link)
                                            : "cluster.graph";
        diagnostics.error(answers.place(at), fmt::format("{}: {}", at, wrong.what()));
    }
}

}  // namespace

void fill_shape(Answers& answers, Scenario& s, Diagnostics& diagnostics) {
    read_network(answers, s);
    if (s.calibration && !answers.given("cluster.node.nic_latency"))
        apply(*s.calibration, s.node);
    const Answer* kind = answers.given("cluster.fabric.kind");
    const bool grid = (kind && kind->text == "grid") || answers.given("cluster.fabric.dimensions");
    if (kind && kind->text != "grid" && grid)
        diagnostics.error(kind->place,
                          fmt::format("cluster.fabric.kind: `{}` has no dimensions; grid has", kind->text));
    if (const Answer* graph = answers.given("cluster.graph")) {
        refuse_beside(answers, "cluster.graph",
                      {"cluster.node.board", "cluster.node.topology", "cluster.node.gpus", "cluster.node.nics",
                       "cluster.node.nic", "cluster.node.nvlink_domain", "cluster.fabric.kind", "cluster.fabric.file",
                       "cluster.fabric.dimensions", "cluster.fabric.nic", "cluster.fabric.oversubscription"},
                      diagnostics);
        fill_graph(answers, *graph, s, diagnostics);
    } else if (const Answer* file = answers.given("cluster.fabric.file")) {
        refuse_beside(answers, "cluster.fabric.file", {"cluster.fabric.dimensions", "cluster.fabric.kind"},
                      diagnostics);
        fill_file(answers, *file, s, diagnostics);
    } else if (grid) {
        refuse_beside(
            answers, "a grid",
            {"cluster.node.board", "cluster.node.topology", "cluster.node.gpus", "cluster.node.nics",
             "cluster.node.nic", "cluster.node.nvlink_domain", "cluster.fabric.nic", "cluster.fabric.oversubscription"},
            diagnostics);
        fill_grid(answers, s, diagnostics);
    }
}

}  // namespace fabricast
