// What the server is: the board of the catalogue with what the scenario changes, or the server's own topology file.
#include <filesystem>

#include <fmt/format.h>

#include "sim/scenario/fill.hpp"
#include "topologies/importers/detect.hpp"

namespace fabricast {
namespace {

template <typename T>
void set_integer(const Answers& answers, std::string_view path, T& target) {
    if (const Answer* a = answers.given(path))
        target = static_cast<T>(a->integer);
}
void set_number(const Answers& answers, std::string_view path, double& target) {
    if (const Answer* a = answers.given(path))
        target = a->number;
}

void read_board(const Answers& answers, NodeSpec& node) {
    if (const Answer* board = answers.given("cluster.node.board"))
        node.board = *find_board(board->text);
    if (const Answer* layout = answers.given("cluster.node.pcie_layout"))
        node.pcie_layout = *find_pcie_layout(layout->text);
    set_integer(answers, "cluster.node.numa_nodes", node.numa_nodes);
    set_integer(answers, "cluster.node.gpus_per_switch", node.gpus_per_switch);
    set_integer(answers, "cluster.node.nvlink_domain", node.nvlink_domain);
    set_number(answers, "cluster.node.socket", node.socket_bytes_per_s);
    set_number(answers, "cluster.node.pcie_uplink", node.uplink_bytes_per_s);
    set_number(answers, "cluster.node.host_bridge", node.host_bytes_per_s);
}

void check_board(const Answers& answers, const Scenario& s, Diagnostics& diagnostics) {
    const NodeSpec& node = s.node;
    const Place board = answers.place("cluster.node.board");
    const auto name = board_name(node.board);
    if (node.board != Board::nvswitch && node.board != Board::pcie && s.gpu.nvlink_achieved_bytes_per_s <= 0)
        diagnostics.error(board, fmt::format("cluster.node.board: `{}` is made of NVLinks and {} has none; `pcie`, or "
                                             "another GPU",
                                             name, s.gpu.name));
    if (node.board == Board::cube_mesh && node.gpus != 8)
        diagnostics.error(answers.place("cluster.node.gpus"),
                          fmt::format("cluster.node.gpus: a cube mesh joins 8 GPUs, not {}", node.gpus));
    if (node.board == Board::pairs && node.gpus % 2 != 0)
        diagnostics.error(answers.place("cluster.node.gpus"),
                          fmt::format("cluster.node.gpus: {} GPUs are no pairs", node.gpus));
    if (node.board == Board::full_mesh && node.gpus > 1 && nvlink_lanes(s.gpu) < node.gpus - 1)
        diagnostics.error(board, fmt::format("cluster.node.board: the {} NVLinks of {} do not reach {} others",
                                             nvlink_lanes(s.gpu), s.gpu.name, node.gpus - 1));
    if (node.board != Board::nvswitch && node.numa_nodes > node.gpus)
        diagnostics.error(
            answers.place("cluster.node.numa_nodes"),
            fmt::format("cluster.node.numa_nodes: {} for {} GPUs; at most one a GPU", node.numa_nodes, node.gpus));
    if (node.nvlink_domain > 1 && (node.board != Board::nvswitch || s.gpu.nvlink_achieved_bytes_per_s <= 0))
        diagnostics.error(
            answers.place("cluster.node.nvlink_domain"),
            fmt::format("cluster.node.nvlink_domain: {} servers share an NVSwitch; board {} of {} has none",
                        node.nvlink_domain, name, s.gpu.name));
}

void read_topology(const Answer& file, Scenario& s, Diagnostics& diagnostics) {
    const auto fail = [&](const std::string& why) { diagnostics.error(file.place, "cluster.node.topology: " + why); };
    try {
        importers::Imported imported = importers::import_file(path_beside(file));
        auto* machine = std::get_if<importers::Machine>(&imported);
        if (machine == nullptr)
            return fail(fmt::format("`{}` tells a network, not a server; give it as cluster.fabric.file", file.text));
        if (machine->gpus.empty())
            return fail(fmt::format("`{}` lists no GPU", file.text));
        for (const importers::Note& note : machine->notes) {
            if (note.kind == importers::NoteKind::suspicious)
                s.notes.push_back(fmt::format("{}:{}: {}", file.text, note.line, note.text));
        }
        s.node.gpus = static_cast<std::uint32_t>(machine->gpus.size());
        s.node.nics = static_cast<std::uint32_t>(machine->nics.size());
        for (const importers::Nic& nic : machine->nics) {
            if (nic.bits_per_s > 0)
                s.node.nic_bits_per_s = nic.bits_per_s;
        }
        s.machine = std::move(*machine);
        s.shape_where = file.place.text();
    } catch (const importers::ImportError& refused) {
        fail(refused.what());
    }
}

/// Between sockets, where neither scenario nor preset says: what NCCL takes for the processor (src/graph/topo.h).
void default_socket(NodeSpec& node, GpuGeneration generation) {
    if (node.socket_bytes_per_s > 0)
        return;
    const bool later = generation >= GpuGeneration::hopper;  // servers of Sapphire Rapids and after
    node.socket_bytes_per_s = node.cpu == "amd" ? 16e9 : node.cpu == "arm" ? 6e9 : later ? 22e9 : 10e9;
    node.sources["socket"] = "assumed from NCCL src/graph/topo.h for a processor of this kind (estimate)";
}

}  // namespace

std::string path_beside(const Answer& file) {
    const std::filesystem::path path(file.text);
    if (path.is_absolute() || file.place.line == 0)
        return file.text;
    return (std::filesystem::path(file.place.source).parent_path() / path).string();
}

void fill_board(Answers& answers, Scenario& s, Diagnostics& diagnostics) {
    read_board(answers, s.node);
    if (const Answer* file = answers.given("cluster.node.topology")) {
        for (const char* key : {"cluster.node.board", "cluster.node.pcie_layout", "cluster.node.numa_nodes",
                                "cluster.node.gpus", "cluster.node.nics", "cluster.node.nvlink_domain"}) {
            if (answers.given(key))
                diagnostics.error(answers.place(key),
                                  fmt::format("{}: the file of cluster.node.topology says it; leave one out", key));
        }
        read_topology(*file, s, diagnostics);
        default_socket(s.node, s.gpu.generation);
        s.node.nvlink_domain = 1;
        return;
    }
    if (answers.given("cluster.node.board") && s.node.board != Board::nvswitch)
        default_socket(s.node, s.gpu.generation);
    check_board(answers, s, diagnostics);
}

}  // namespace fabricast
