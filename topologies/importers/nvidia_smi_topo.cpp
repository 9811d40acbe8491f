#include "topologies/importers/nvidia_smi_topo.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "topologies/importers/machine_checks.hpp"
#include "topologies/importers/topo_cells.hpp"

namespace fabricast::importers {
namespace {

constexpr std::uint32_t kMostBareHeaders = 1000;  ///< lines like a header but without rows; then it is noise

struct Row {
    std::uint32_t line = 0;
    std::vector<Path> cells;
    TopoAffinity affinity;
};

struct Matrix {
    TopoHeader header;
    std::uint32_t line = 0;
    std::map<std::string, Row> rows;
    std::map<std::string, std::string> nic_legend;
};

/// Thrown inside: the matrix is one of `topo -p2p`.
struct PeerStatus {
    std::uint32_t line;
    std::string cell;
};

class Reader {
public:
    explicit Reader(const SourceText& source) : source_(source) {}

    Machine read();

private:
    Matrix read_matrix(std::size_t& at);
    std::optional<Row> read_row(const Matrix& matrix, std::size_t& at, std::string& name);
    void read_legend(Matrix& matrix, std::size_t at) const;
    Machine machine_of(const Matrix& matrix);
    void place_numa(Machine& machine, const Matrix& matrix);
    std::uint32_t number(std::size_t index) const { return static_cast<std::uint32_t>(index + 1); }

    const SourceText& source_;
    Notes notes_;
};

bool is_gpu(const std::string& name) {
    return starts_with(name, "GPU") && to_unsigned(std::string_view(name).substr(3)).has_value();
}

/// Where a row for one of the names may start in the line: at its first word, or behind a launcher's prefix.
std::optional<std::pair<std::size_t, std::string>> row_start(std::string_view line, const TopoHeader& header) {
    std::optional<std::pair<std::size_t, std::string>> best;
    for (const std::string& name : header.names) {
        const std::size_t at = line.find(name);
        if (at == std::string_view::npos) {
            continue;
        }
        const char before = at == 0 ? ' ' : line[at - 1];
        const bool starts_word = !is_letter(before) && !is_digit(before) && before != '_';
        std::size_t end = at + name.size();
        const bool apart = end < line.size() && is_blank(line[end]);
        const bool glued = end < line.size() && is_letter(line[end]) && topo_cell(line, end).has_value();  // GPU1SYS
        if (starts_word && (apart || glued) && (!best || at < best->first)) {
            best = {at, name};
        }
    }
    return best;
}

std::optional<Row> Reader::read_row(const Matrix& matrix, std::size_t& index, std::string& name) {
    const std::string_view first_line = source_.line(index);
    const auto start = row_start(first_line, matrix.header);
    if (!start) {
        return std::nullopt;
    }
    name = start->second;
    const bool leads = trimmed(first_line.substr(0, start->first)).empty();
    Row row;
    row.line = number(index);
    std::string_view line = first_line;
    std::size_t at = start->first + name.size();
    std::size_t lines = 1;
    while (row.cells.size() < matrix.header.names.size()) {
        const std::string& column = matrix.header.names[row.cells.size()];
        std::size_t cell_at = at;
        const std::optional<TopoCell> cell = topo_cell(line, cell_at);
        if (!cell && cell_at >= line.size() && index + lines < source_.line_count() && lines < 4 &&
            !row.cells.empty() && !row_start(source_.line(index + lines), matrix.header) &&
            !trimmed(source_.line(index + lines)).empty()) {
            line = source_.line(index + lines);  // a row wrapped by a narrow terminal
            at = 0;
            ++lines;
            continue;
        }
        if (!cell) {
            if (!leads && row.cells.empty()) {
                return std::nullopt;  // a log line that happens to mention the name
            }
            const std::string_view odd = words(line.substr(std::min(cell_at, line.size()))).empty()
                                             ? std::string_view()
                                             : words(line.substr(cell_at)).front();
            source_.refuse(number(index + lines - 1),
                           odd.empty() ? fmt::format("row {} ends before column {}: {} of {} cells are there", name,
                                                     column, row.cells.size(), matrix.header.names.size())
                                       : fmt::format("row {}, column {}: {} is no cell; X, NV#, PIX, PXB, PHB, NODE or "
                                                     "SYS is expected",
                                                     name, column, in_quotes(odd)));
        }
        if (cell->kind == TopoCell::Kind::p2p) {
            throw PeerStatus{number(index), std::string(trimmed(line.substr(at, cell_at - at)))};
        }
        const bool diagonal = column == name;
        if (diagonal != (cell->kind == TopoCell::Kind::self)) {
            source_.refuse(
                number(index),
                diagonal ? fmt::format("row {} has no X in its own column: cells are missing or shifted", name)
                         : fmt::format("row {} has its X in column {}: cells are missing or shifted", name, column));
        }
        row.cells.push_back(cell->path);
        at = cell_at;
    }
    if (lines > 1) {
        notes_.push_back({NoteKind::repaired, row.line, fmt::format("row {} goes over {} lines", name, lines)});
    }
    if (is_gpu(name)) {
        row.affinity = topo_affinity(line.substr(at), matrix.header);
    }
    index += lines - 1;
    return row;
}

void Reader::read_legend(Matrix& matrix, std::size_t at) const {
    for (std::size_t index = at; index < source_.line_count() && index < at + 1000; ++index) {
        const std::string_view line = trimmed(source_.line(index));
        if (is_topo_header(line)) {
            return;
        }
        const std::size_t name_at = line.find("NIC");
        const std::size_t colon = line.find(':', name_at == std::string_view::npos ? 0 : name_at);
        if (name_at == std::string_view::npos || colon == std::string_view::npos) {
            continue;
        }
        const std::string name(line.substr(name_at, colon - name_at));
        const std::vector<std::string_view> device = words(line.substr(colon + 1));
        if (!device.empty() &&
            std::find(matrix.header.names.begin(), matrix.header.names.end(), name) != matrix.header.names.end()) {
            matrix.nic_legend[name] = device.front();
        }
    }
}

Matrix Reader::read_matrix(std::size_t& at) {
    Matrix matrix;
    matrix.header = *topo_header(source_.line(at));
    matrix.line = number(at);
    std::set<std::string> names;
    for (const std::string& name : matrix.header.names) {
        if (!names.insert(name).second) {
            source_.refuse(matrix.line, fmt::format("column {} is there twice", name));
        }
    }
    std::size_t index = at + 1;
    std::size_t without_row = 0;
    for (; index < source_.line_count() && matrix.rows.size() < names.size() && without_row < 200; ++index) {
        if (is_topo_header(source_.line(index))) {
            if (matrix.rows.empty()) {
                break;
            }
            continue;  // the header again, from another rank of the launcher
        }
        std::string name;
        std::optional<Row> row = read_row(matrix, index, name);
        if (!row) {
            ++without_row;
            continue;
        }
        const auto known = matrix.rows.find(name);
        if (known != matrix.rows.end() && known->second.cells != row->cells) {
            source_.refuse(row->line, fmt::format("row {} differs from that of line {}: two matrices are mixed", name,
                                                  known->second.line));
        }
        matrix.rows.emplace(name, std::move(*row));
    }
    if (matrix.rows.empty()) {
        return matrix;  // a line that reads like a header; at stays
    }
    for (const std::string& name : matrix.header.names) {
        if (matrix.rows.count(name) == 0) {
            source_.refuse(matrix.line,
                           fmt::format("the header has {} columns but row {} is missing: {} of {} rows are "
                                       "there, the text is cut off",
                                       names.size(), name, matrix.rows.size(), names.size()));
        }
    }
    read_legend(matrix, index);
    at = index;
    return matrix;
}

void Reader::place_numa(Machine& machine, const Matrix& matrix) {
    machine.numa_known = matrix.header.numa_affinity;
    std::map<std::string, int> id_of_cpus;
    for (Gpu& gpu : machine.gpus) {
        const Row& row = matrix.rows.at(gpu_name(gpu));
        gpu.cpus = row.affinity.cpus;
        if (row.affinity.numa) {
            gpu.numa = *row.affinity.numa;
        } else if (!machine.numa_known && !gpu.cpus.empty()) {
            gpu.numa = id_of_cpus.emplace(gpu.cpus, static_cast<int>(id_of_cpus.size())).first->second;
        }
        if (!row.affinity.odd.empty()) {
            machine.note(NoteKind::repaired, row.line, gpu_name(gpu) + ": " + row.affinity.odd);
        }
        const auto same = std::find_if(machine.numa.begin(), machine.numa.end(),
                                       [&](const NumaNode& node) { return node.id == gpu.numa; });
        if (same == machine.numa.end()) {
            NumaNode node;
            node.id = gpu.numa;
            node.cpus = gpu.cpus;
            machine.numa.push_back(node);
        }
    }
    if (!machine.numa_known && !id_of_cpus.empty()) {
        machine.note(NoteKind::fact, matrix.line,
                     "no NUMA column: GPUs with the same CPU affinity are taken as one NUMA node");
    }
    std::vector<std::string> without;
    for (const Gpu& gpu : machine.gpus) {
        if (gpu.cpus.empty()) {
            without.push_back(gpu_name(gpu));
        }
    }
    if (!without.empty()) {
        machine.note(matrix.header.cpu_affinity ? NoteKind::suspicious : NoteKind::fact, matrix.line,
                     "no CPU affinity for " + (without.size() == machine.gpus.size() ? "any GPU" : listed(without)));
    }
    for (std::size_t nic = 0; nic < machine.nics.size(); ++nic) {  // a NIC is where its nearest GPU is
        PathType best = PathType::sys;
        for (std::size_t gpu = 0; gpu < machine.gpus.size(); ++gpu) {
            const PathType type = machine.gpu_nic_path(gpu, nic).type;
            if (type < best) {
                best = type;
                machine.nics[nic].numa = machine.gpus[gpu].numa;
            }
        }
    }
}

Machine Reader::machine_of(const Matrix& matrix) {
    Machine machine;
    machine.source = source_.name();
    machine.format = "nvidia-smi topo -m";
    machine.notes = source_.notes();
    machine.notes.insert(machine.notes.end(), notes_.begin(), notes_.end());
    std::vector<std::pair<std::string, std::size_t>> order;  // names and their columns, GPUs first by number
    for (std::size_t column = 0; column < matrix.header.names.size(); ++column) {
        order.emplace_back(matrix.header.names[column], column);
    }
    std::stable_partition(order.begin(), order.end(), [](const auto& entry) { return is_gpu(entry.first); });
    for (const auto& [name, column] : order) {
        if (is_gpu(name)) {
            Gpu gpu;
            gpu.number = static_cast<std::uint32_t>(*to_unsigned(std::string_view(name).substr(3)));
            if (gpu.number != machine.gpus.size()) {
                source_.refuse(matrix.line,
                               fmt::format("column {} where GPU{} is expected", name, machine.gpus.size()));
            }
            machine.gpus.push_back(gpu);
        } else {
            Nic nic;
            const auto device = matrix.nic_legend.find(name);
            nic.name = device == matrix.nic_legend.end() ? name : device->second;
            nic.card = static_cast<std::uint32_t>(machine.nics.size());
            machine.nics.push_back(nic);
        }
    }
    const std::size_t ends = machine.ends();
    machine.paths.resize(ends * ends);
    std::vector<std::string> unequal;
    std::uint32_t unequal_line = 0;
    for (std::size_t a = 0; a < ends; ++a) {
        const Row& row = matrix.rows.at(order[a].first);
        for (std::size_t b = 0; b < ends; ++b) {
            const Path here = row.cells[order[b].second];
            const Path there = matrix.rows.at(order[b].first).cells[order[a].second];
            const bool there_is_worse = there.type != here.type ? there.type > here.type : there.nvlinks < here.nvlinks;
            machine.paths[a * ends + b] = there_is_worse ? there : here;
            if (a < b && !(here == there)) {
                unequal.push_back(order[a].first + "-" + order[b].first);
                unequal_line = unequal_line == 0 ? row.line : unequal_line;
            }
        }
    }
    if (!unequal.empty()) {
        machine.note(NoteKind::repaired, unequal_line,
                     "the matrix is not symmetric at " + listed(unequal) + "; the worse cell was taken");
    }
    place_numa(machine, matrix);
    complete(machine, true);
    return machine;
}

Machine Reader::read() {
    std::optional<Matrix> found;
    std::optional<PeerStatus> peer_status;
    std::size_t copies = 0;
    std::uint32_t bare_header = 0, bare_headers = 0;
    for (std::size_t index = 0; index < source_.line_count(); ++index) {
        if (!is_topo_header(source_.line(index))) {
            continue;
        }
        try {
            const std::uint32_t line = number(index);
            Matrix matrix = read_matrix(index);
            if (matrix.rows.empty()) {
                bare_header = bare_header == 0 ? line : bare_header;
                if (++bare_headers == kMostBareHeaders) {
                    break;
                }
                continue;
            }
            ++copies;
            const auto cells = [](const Matrix& of) {
                std::map<std::string, std::vector<Path>> all;
                for (const auto& [name, row] : of.rows) {
                    all[name] = row.cells;
                }
                return all;
            };
            if (found && (found->header.names != matrix.header.names || cells(*found) != cells(matrix))) {
                source_.refuse(line, fmt::format("a second matrix that differs from the one of line {}: one machine a "
                                                 "file, split them",
                                                 found->line));
            }
            if (!found) {
                found = std::move(matrix);
            }
        } catch (const PeerStatus& status) {
            peer_status = status;
        }
    }
    if (!found && peer_status) {
        source_.refuse(
            peer_status->line,
            fmt::format("a `nvidia-smi topo -p2p` status matrix (cell {}): it says which peers can access each "
                        "other, not how they are linked; the output of `nvidia-smi topo -m` is expected",
                        in_quotes(peer_status->cell)));
    }
    if (!found && bare_header > 0) {
        source_.refuse(bare_header, "the header of a `nvidia-smi topo -m` matrix without rows: the text is cut off");
    }
    if (!found) {
        source_.refuse(0, "no header of a `nvidia-smi topo -m` matrix (GPU0 GPU1 ...) in it");
    }
    if (copies > 1) {
        notes_.push_back({NoteKind::fact, found->line, fmt::format("the same matrix is there {} times", copies)});
    }
    return machine_of(*found);
}

}  // namespace

Machine read_nvidia_smi_topo(const SourceText& source) { return Reader(source).read(); }

bool is_topo_header(std::string_view line) { return topo_header(line).has_value(); }

}  // namespace fabricast::importers
