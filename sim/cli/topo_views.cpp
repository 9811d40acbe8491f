#include "sim/cli/topo_views.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "models/collectives/node_rings.hpp"

namespace fabricast::cli {
namespace {

using importers::Machine;
using importers::Note;
using importers::NoteKind;
using nlohmann::ordered_json;
using report::Paint;

constexpr std::size_t kMostNotes = 20, kMostRows = 40;

std::string note_text(NoteKind kind) {
    return kind == NoteKind::suspicious ? "odd" : kind == NoteKind::repaired ? "repaired" : "note";
}

void print_notes(const importers::Notes& notes, report::Page& page) {
    if (notes.empty())
        return;
    page.heading("Notes");
    std::size_t shown = 0;
    for (const NoteKind kind : {NoteKind::suspicious, NoteKind::repaired, NoteKind::fact}) {  // odd things first
        for (const Note& note : notes) {
            if (note.kind != kind || shown++ >= kMostNotes)
                continue;
            page.add(fmt::format("  {}", note_text(kind)), kind == NoteKind::suspicious ? Paint::warn : Paint::dim);
            page.add(note.line > 0 ? fmt::format(" (line {}): {}", note.line, note.text) : ": " + note.text).end();
        }
    }
    if (notes.size() > kMostNotes)
        page.add(fmt::format("  and {} more, all in --json", notes.size() - kMostNotes)).end();
}

ordered_json notes_json(const importers::Notes& notes) {
    ordered_json out = ordered_json::array();
    for (const Note& note : notes)
        out.push_back({{"kind", note_text(note.kind)}, {"line", note.line}, {"text", note.text}});
    return out;
}

std::string gigabits(double bits_per_s) { return bits_per_s > 0 ? fmt::format("{:g} Gb/s", bits_per_s / 1e9) : "-"; }

std::string nic_list(const Machine& m, const std::vector<std::uint32_t>& nics) {
    std::string text;
    for (const std::uint32_t nic : nics)
        text += (text.empty() ? "" : ", ") + m.nics[nic].name;
    return text.empty() ? "-" : text;
}

std::string gpu_text(const importers::Gpu& gpu) {
    if (!gpu.model.empty())
        return gpu.model;
    if (gpu.sm > 0)
        return fmt::format("sm_{}", gpu.sm);
    if (gpu.gfx > 0)
        return fmt::format("gfx{}", gpu.gfx);
    return "-";
}

std::string numa_text(int numa) { return numa < 0 ? "-" : fmt::format("{}", numa); }

}  // namespace

std::string machine_text(const Machine& m, report::Page& page) {
    const std::string kind =
        m.kind == importers::MachineKind::not_told ? "NVLink not told" : importers::machine_kind_name(m.kind);
    const std::size_t bare = importers::bare_nics(m);
    page.add(fmt::format("{}: {}, {} GPUs, {} NICs{}", m.source, kind, m.gpus.size(), importers::listed_nics(m),
                         bare > 0 ? fmt::format(", {} bare network devices", bare) : ""),
             Paint::bold)
        .end();
    page.add(fmt::format("  read as {}{}{}{}", m.format, m.looks_like.empty() ? "" : "; looks like " + m.looks_like,
                         m.hosts > 1 ? fmt::format("; the first of {} servers", m.hosts) : "",
                         m.nvlinks_per_gpu ? fmt::format("; {} {} links a GPU", *m.nvlinks_per_gpu, m.link_name) : ""))
        .end();

    page.heading("GPUs");
    report::Table gpus("llrrlrl");
    gpus.row({"GPU", "model", m.link_name, "NUMA", "bus id", "PCIe GB/s", "NICs it should use (rail)"});
    const auto nics = importers::nics_of_gpus(m);
    for (std::size_t g = 0; g < m.gpus.size(); ++g) {
        const importers::Gpu& gpu = m.gpus[g];
        const double pcie = importers::pcie_bytes_per_s(m, gpu.pci);
        gpus.row({importers::gpu_name(gpu), gpu_text(gpu), gpu.nvlinks ? fmt::format("{}", *gpu.nvlinks) : "-",
                  numa_text(gpu.numa), gpu.bus_id.empty() ? "-" : gpu.bus_id,
                  pcie > 0 ? fmt::format("{:.1f}", pcie / 1e9) : "-", nic_list(m, nics[g])});
    }
    gpus.print(page);

    if (!m.nics.empty()) {
        page.heading("NICs");
        report::Table table("lrrrl");
        table.row({"name", "rate", "card can", "NUMA", "nearest GPU"});
        for (std::size_t n = 0; n < m.nics.size(); ++n) {
            const importers::Nic& nic = m.nics[n];
            std::size_t best = 0;
            for (std::size_t g = 1; g < m.gpus.size(); ++g) {
                if (m.gpu_nic_path(g, n).type < m.gpu_nic_path(best, n).type)
                    best = g;
            }
            table.row({nic.name, gigabits(nic.bits_per_s), gigabits(nic.rated_bits_per_s), numa_text(nic.numa),
                       m.gpus.empty() ? "-"
                                      : fmt::format("{} ({})", importers::gpu_name(m.gpus[best]),
                                                    importers::path_name(m.gpu_nic_path(best, n).type))});
        }
        table.print(page);
    }
    if (!m.numa.empty()) {
        page.heading("NUMA nodes");
        report::Table table("lll");
        table.row({"id", "CPU", "cores"});
        for (const importers::NumaNode& numa : m.numa)
            table.row({numa_text(numa.id), numa.cpu.empty() ? "-" : numa.cpu, numa.cpus.empty() ? "-" : numa.cpus});
        table.print(page);
    }
    page.heading("Links between GPUs");
    report::Table links("lr");
    links.row({"class", "pairs"});
    for (const auto& [name, pairs] : importers::link_classes(m))
        links.row({name, fmt::format("{}", pairs)});
    links.print(page);
    print_notes(m.notes, page);
    return page.text();
}

std::string machine_json(const Machine& m) {
    ordered_json out = {{"schema_version", 1},
                        {"what", "machine"},
                        {"source", m.source},
                        {"format", m.format},
                        {"kind", importers::machine_kind_name(m.kind)},
                        {"looks_like", m.looks_like},
                        {"servers", m.hosts}};
    out["nvlinks_per_gpu"] = m.nvlinks_per_gpu ? ordered_json(*m.nvlinks_per_gpu) : ordered_json();
    const auto nics = importers::nics_of_gpus(m);
    for (std::size_t g = 0; g < m.gpus.size(); ++g) {
        const importers::Gpu& gpu = m.gpus[g];
        ordered_json rails = ordered_json::array();
        for (const std::uint32_t nic : nics[g])
            rails.push_back(m.nics[nic].name);
        out["gpus"].push_back({{"name", importers::gpu_name(gpu)},
                               {"model", gpu.model},
                               {"numa", gpu.numa},
                               {"bus_id", gpu.bus_id},
                               {"nvlinks", gpu.nvlinks ? ordered_json(*gpu.nvlinks) : ordered_json()},
                               {"pcie_bytes_per_s", importers::pcie_bytes_per_s(m, gpu.pci)},
                               {"nics", rails}});
    }
    out["nics"] = ordered_json::array();
    for (const importers::Nic& nic : m.nics) {
        out["nics"].push_back({{"name", nic.name},
                               {"bits_per_s", nic.bits_per_s},
                               {"rated_bits_per_s", nic.rated_bits_per_s},
                               {"numa", nic.numa},
                               {"listed", nic.listed}});
    }
    out["numa"] = ordered_json::array();
    for (const importers::NumaNode& numa : m.numa)
        out["numa"].push_back({{"id", numa.id}, {"cpu", numa.cpu}, {"cpus", numa.cpus}});
    out["gpu_links"] = ordered_json::object();
    for (const auto& [name, pairs] : importers::link_classes(m))
        out["gpu_links"][name] = pairs;
    out["notes"] = notes_json(m.notes);
    return out.dump(2) + "\n";
}

namespace {

struct FabricRow {
    std::string ends, rate;
    double bytes_per_s = 0;
    std::size_t links = 0, degraded = 0;
};

std::string level_text(const importers::FabricNode& node) {
    if (node.kind != importers::NodeKind::network_switch)
        return importers::node_kind_name(node.kind);
    return node.level < 0 ? "switch" : fmt::format("switch level {}", node.level);
}

std::vector<FabricRow> fabric_rows(const importers::FabricDescription& f) {
    std::map<std::tuple<std::string, double, std::string>, FabricRow> rows;
    for (const importers::FabricLink& link : f.links) {
        std::string a = level_text(f.nodes[link.from]), b = level_text(f.nodes[link.to]);
        if (b < a)
            std::swap(a, b);
        const std::string ends = a + " - " + b;
        FabricRow& row = rows[{ends, link.bytes_per_s, link.rate}];
        row.ends = ends;
        row.bytes_per_s = link.bytes_per_s;
        row.rate = link.rate.empty() ? "" : fmt::format("{}x {}", link.width, link.rate);
        ++row.links;
        row.degraded += link.state == importers::LinkState::degraded || link.state == importers::LinkState::down;
    }
    std::vector<FabricRow> out;
    for (auto& [key, row] : rows)
        out.push_back(std::move(row));
    return out;
}

}  // namespace

std::string fabric_text(const importers::FabricDescription& f, report::Page& page) {
    using importers::NodeKind;
    page.add(fmt::format("{}: {} GPUs, {} hosts, {} switches, {} links", f.source, f.count(NodeKind::gpu),
                         f.count(NodeKind::host), f.count(NodeKind::network_switch) + f.count(NodeKind::nvswitch),
                         f.links.size()),
             Paint::bold)
        .end();
    page.add(fmt::format("  read as {}{}", f.format, f.gpu_model.empty() ? "" : "; GPU " + f.gpu_model)).end();
    if (!f.dimensions.empty()) {
        page.heading("Dimensions");
        report::Table table("lrrr");
        table.row({"kind", "size", "GB/s a link", "latency us"});
        constexpr const char* kKinds[] = {"ring", "fully connected", "switch"};
        for (const importers::GridDimension& d : f.dimensions) {
            table.row({kKinds[static_cast<int>(d.kind)], fmt::format("{}", d.count),
                       fmt::format("{:g}", d.bytes_per_s / 1e9), fmt::format("{:g}", d.latency_s * 1e6)});
        }
        table.print(page);
    }
    const std::vector<FabricRow> rows = fabric_rows(f);
    if (!rows.empty()) {
        page.heading("Links");
        report::Table table("lrlrr");
        table.row({"between", "Gb/s", "rate", "links", "below rate"});
        for (std::size_t i = 0; i < rows.size() && i < kMostRows; ++i) {
            table.row({rows[i].ends, rows[i].bytes_per_s > 0 ? fmt::format("{:g}", rows[i].bytes_per_s * 8e-9) : "-",
                       rows[i].rate.empty() ? "-" : rows[i].rate, fmt::format("{}", rows[i].links),
                       fmt::format("{}", rows[i].degraded)});
        }
        table.print(page);
        if (rows.size() > kMostRows)
            page.add(fmt::format("and {} more kinds of link, all in --json", rows.size() - kMostRows)).end();
    }
    print_notes(f.notes, page);
    return page.text();
}

std::string fabric_json(const importers::FabricDescription& f) {
    using importers::NodeKind;
    ordered_json out = {{"schema_version", 1},
                        {"what", "fabric"},
                        {"source", f.source},
                        {"format", f.format},
                        {"gpus", f.count(NodeKind::gpu)},
                        {"hosts", f.count(NodeKind::host)},
                        {"nvswitches", f.count(NodeKind::nvswitch)},
                        {"switches", f.count(NodeKind::network_switch)},
                        {"gpu_model", f.gpu_model},
                        {"links", ordered_json::array()}};
    for (const FabricRow& row : fabric_rows(f)) {
        out["links"].push_back({{"between", row.ends},
                                {"bytes_per_s", row.bytes_per_s},
                                {"rate", row.rate},
                                {"links", row.links},
                                {"below_rate", row.degraded}});
    }
    out["dimensions"] = ordered_json::array();
    constexpr const char* kKinds[] = {"ring", "fully_connected", "switch"};
    for (const importers::GridDimension& d : f.dimensions) {
        out["dimensions"].push_back({{"kind", kKinds[static_cast<int>(d.kind)]},
                                     {"size", d.count},
                                     {"bytes_per_s", d.bytes_per_s},
                                     {"latency_s", d.latency_s}});
    }
    out["notes"] = notes_json(f.notes);
    return out.dump(2) + "\n";
}

namespace {

struct LinkRow {
    LinkKind kind = LinkKind::fabric;
    double bytes_per_s = 0, latency_s = 0;
    std::uint64_t links = 0, cables = 0;
};

std::string_view link_kind_text(LinkKind kind) {
    switch (kind) {
        case LinkKind::nvlink: return "NVLink";
        case LinkKind::pcie: return "PCIe";
        case LinkKind::nic: return "NIC";
        case LinkKind::fabric: return "fabric";
        case LinkKind::host: return "host";
        case LinkKind::storage: return "storage";
        default: return "other";
    }
}

std::vector<LinkRow> link_rows(const Links& links) {
    std::map<std::tuple<LinkKind, Rate, Picoseconds>, LinkRow> rows;
    for (std::size_t l = 0; l < links.size(); ++l) {
        LinkRow& row = rows[{links.kind[l], links.capacity[l], links.latency[l]}];
        row.kind = links.kind[l];
        row.bytes_per_s = bytes_per_s(links.capacity[l]);
        row.latency_s = seconds(links.latency[l]);
        ++row.links;
        row.cables += links.parallel[l];
    }
    std::vector<LinkRow> out;
    for (auto& [key, row] : rows)
        out.push_back(row);
    return out;
}

std::string node_line(const Scenario& s, const Cluster& cluster) {
    std::string line = fmt::format("  a node: {} GPUs", cluster.gpus_per_node());
    if (s.machine)
        line += " as told by " + s.machine->source;
    else if (s.node.board != Board::nvswitch && !s.fabric_is_listed())
        line += fmt::format(", board {}", board_name(s.node.board));
    const Links& links = cluster.links();
    const auto rate = [&](LinkId link) { return bytes_per_s(links.capacity[index(link)]); };
    if (cluster.has_nvswitch()) {
        const double nvlink = rate(cluster.nvlink_up(GpuId{0}));
        line += fmt::format(", NVLink {:.0f} GB/s a GPU, {:.1f} TB/s in all", nvlink / 1e9,
                            nvlink * cluster.gpus_per_node() / 1e12);
        if (cluster.nvlink_domain_count() < cluster.node_count())
            line +=
                fmt::format("; {} NVLink domains over {} nodes", cluster.nvlink_domain_count(), cluster.node_count());
    } else if (cluster.has_pcie()) {
        line += fmt::format(", PCIe {:.1f} GB/s a GPU", rate(cluster.pcie_up(GpuId{0})) / 1e9);
    }
    return line;
}

std::vector<GpuId> gpus_of_node(const Cluster& cluster) {
    std::vector<GpuId> gpus;
    for (std::uint32_t g = 0; g < cluster.gpus_per_node(); ++g)
        gpus.push_back(GpuId{g});
    return gpus;
}

/// "NV2 8, NV1 4, NVB 12, SYS 4": pairs of the first node by path, best first.
std::string pair_classes(const Cluster& cluster) {
    std::map<std::pair<PathType, int>, std::uint32_t> pairs;  // more lanes first
    std::vector<LinkId> route;
    const std::vector<GpuId> gpus = gpus_of_node(cluster);
    for (std::size_t a = 0; a < gpus.size(); ++a) {
        for (std::size_t b = a + 1; b < gpus.size(); ++b) {
            const PathType type = cluster.path_type(gpus[a], gpus[b]);
            int lanes = 0;
            if (type == PathType::nvl && !cluster.has_nvswitch()) {
                route.clear();
                cluster.route(gpus[a], gpus[b], route);
                lanes = static_cast<int>(cluster.links().parallel[index(route.front())]);
            }
            ++pairs[{type, -lanes}];
        }
    }
    std::string text;
    for (const auto& [kind, count] : pairs) {
        const std::string name =
            kind.second == 0 ? std::string(path_type_name(kind.first)) : fmt::format("NV{}", -kind.second);
        text += fmt::format("{}{} {} {}", text.empty() ? "" : ", ", name, count, count == 1 ? "pair" : "pairs");
    }
    return text;
}

/// How collectives pass the GPUs of a node without an NVSwitch.
std::string ring_line(const Cluster& cluster) {
    constexpr std::size_t kMostShown = 16;
    if (cluster.has_nvswitch() || cluster.gpus_per_node() < 2)
        return {};
    const NodeRings rings = node_rings(cluster, gpus_of_node(cluster));
    if (rings.cycles.size() > 1)
        return fmt::format("{} over NVLink, {:.0f} GB/s a GPU", rings.cycles.size(), rings.bytes_per_s / 1e9);
    std::string order;
    for (std::size_t i = 0; i < rings.cycles.front().size() && i < kMostShown; ++i)
        order += fmt::format(" {}", rings.cycles.front()[i]);
    return fmt::format("one,{}{}{}", order, rings.cycles.front().size() > kMostShown ? " ..." : "",
                       rings.nvlink    ? ", all over NVLink"
                       : rings.sockets ? ", over PCIe and between sockets"
                                       : ", over PCIe");
}

}  // namespace

std::string cluster_text(const Scenario& s, const Cluster& cluster, report::Page& page) {
    page.add(fmt::format("{}: {} x {}, {} GPUs ({}), {}", s.name, s.nodes, s.node.name, cluster.gpu_count(), s.gpu.name,
                         s.nodes > 1 ? s.fabric.name : "one node"),
             Paint::bold)
        .end();
    const double nic = s.node.nic_bits_per_s / 8 * s.node.nic_efficiency;
    page.add(node_line(s, cluster)).end();
    if (const std::string pairs = pair_classes(cluster); !pairs.empty())
        page.add("  between its GPUs: " + pairs).end();
    if (const std::string rings = ring_line(cluster); !rings.empty())
        page.add("  rings of its GPUs: " + rings).end();
    if (s.node.nics > 0 && !s.fabric_is_listed()) {
        page.add(fmt::format("  network: {} NICs of {:g} Gb/s on {} rails, {:g} GPUs a NIC, {:.0f} GB/s a node",
                             s.node.nics, s.node.nic_bits_per_s / 1e9, s.node.nics,
                             static_cast<double>(s.node.gpus) / s.node.nics, nic * s.node.nics / 1e9))
            .end();
    }
    if (s.nodes > 1 && !s.fabric_is_listed()) {
        page.add(fmt::format("  fabric: {} nodes a pod, oversubscription {:g}, {:.2f} us a switch",
                             s.fabric.nodes_per_pod, s.oversubscription, s.fabric.switch_latency_s * 1e6))
            .end();
    }
    page.heading("Links (directed; achieved rates)");
    report::Table table("lrrrrr");
    table.row({"kind", "GB/s each", "latency us", "links", "cables", "total TB/s"});
    for (const LinkRow& row : link_rows(cluster.links())) {
        table.row({std::string(link_kind_text(row.kind)), fmt::format("{:.1f}", row.bytes_per_s / 1e9),
                   fmt::format("{:.2f}", row.latency_s * 1e6), fmt::format("{}", row.links),
                   fmt::format("{}", row.cables),
                   fmt::format("{:.2f}", row.bytes_per_s * static_cast<double>(row.links) / 1e12)});
    }
    table.print(page);
    if (!s.comm_notes.empty() || !s.notes.empty()) {
        page.heading("Notes");
        for (const auto* notes : {&s.notes, &s.comm_notes}) {
            for (const std::string& note : *notes)
                page.add("  " + note).end();
        }
    }
    return page.text();
}

std::string cluster_json(const Scenario& s, const Cluster& cluster) {
    ordered_json out = {{"schema_version", 1},
                        {"what", "scenario"},
                        {"name", s.name},
                        {"nodes", s.nodes},
                        {"node", s.node.name},
                        {"gpu", s.gpu.name},
                        {"gpus", cluster.gpu_count()},
                        {"gpus_per_node", s.node.gpus},
                        {"nics_per_node", s.node.nics},
                        {"nic_bits_per_s", s.node.nic_bits_per_s},
                        {"nvlink_bytes_per_s", s.gpu.nvlink_achieved_bytes_per_s},
                        {"board", board_name(s.node.board)},
                        {"gpu_pairs", pair_classes(cluster)},
                        {"rings", ring_line(cluster)},
                        {"nvlink_domains", cluster.nvlink_domain_count()},
                        {"network", s.network ? s.network->name : ""},
                        {"fabric", s.fabric.name},
                        {"oversubscription", s.oversubscription},
                        {"links", ordered_json::array()},
                        {"notes", s.comm_notes}};
    for (const LinkRow& row : link_rows(cluster.links())) {
        out["links"].push_back({{"kind", link_kind_text(row.kind)},
                                {"bytes_per_s", row.bytes_per_s},
                                {"latency_s", row.latency_s},
                                {"links", row.links},
                                {"cables", row.cables}});
    }
    return out.dump(2) + "\n";
}

}  // namespace fabricast::cli
