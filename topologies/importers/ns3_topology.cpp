#include "topologies/importers/ns3_topology.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

namespace fabricast::importers {
namespace {

constexpr std::uint64_t kMostNodes = 2'000'000, kMostLinks = 16'000'000;

struct Word {
    std::string_view text;
    std::uint32_t line = 0;
};

/// Number in front and the unit behind it.
std::optional<std::pair<double, std::string_view>> number_and_unit(std::string_view text) {
    std::size_t end = 0;
    while (end < text.size() && (is_digit(text[end]) || text[end] == '.' || text[end] == '-' || text[end] == '+' ||
                                 ((text[end] == 'e' || text[end] == 'E') && end + 1 < text.size() &&
                                  (is_digit(text[end + 1]) || text[end + 1] == '-' || text[end + 1] == '+')))) {
        ++end;
    }
    const auto number = to_number(text.substr(0, end));
    if (!number) {
        return std::nullopt;
    }
    return std::pair{*number, text.substr(end)};
}

class Reader {
public:
    explicit Reader(const SourceText& source) : source_(source) {}

    FabricDescription read() {
        fabric_.source = source_.name();
        fabric_.notes = source_.notes();
        const std::vector<std::string_view> header = next_line();
        const bool simai = header.size() == 6;
        if (header.size() != 3 && !simai) {
            source_.refuse(line_number(),
                           fmt::format("the first line has {} words; 'nodes switches links' (ASTRA-sim) or 'nodes "
                                       "gpus_per_server nvswitches switches links gpu_type' (SimAI) is expected",
                                       header.size()));
        }
        fabric_.format = simai ? "SimAI ns-3 topology" : "ASTRA-sim ns-3 topology";
        if (simai) {
            read_nodes(number(header[0], "nodes"), number(header[2], "nvswitches"), number(header[3], "switches"),
                       number(header[1], "gpus_per_server"));
            fabric_.gpu_model = header[5];
            read_links(number(header[4], "links"));
        } else {
            read_nodes(number(header[0], "nodes"), 0, number(header[1], "switches"), 0);
            read_links(number(header[2], "links"));
        }
        complete(fabric_);
        return std::move(fabric_);
    }

private:
    std::uint32_t line_number() const { return static_cast<std::uint32_t>(next_); }

    /// Words of the next line that has any and is no comment; empty at the end.
    std::vector<std::string_view> next_line() {
        while (next_ < source_.line_count()) {
            std::vector<std::string_view> found = words(source_.line(next_++));
            if (!found.empty() && found.front().front() != '#') {
                return found;
            }
        }
        return {};
    }

    std::optional<Word> next_word() {
        if (at_ == line_.size()) {
            line_ = next_line();
            at_ = 0;
        }
        if (line_.empty()) {
            return std::nullopt;
        }
        return Word{line_[at_++], line_number()};
    }

    std::uint64_t number(std::string_view text, const char* what) const {
        const auto value = to_unsigned(text);
        if (!value) {
            source_.refuse(line_number(), fmt::format("{} {}: a whole number is expected", what, in_quotes(text)));
        }
        return *value;
    }

    void read_nodes(std::uint64_t nodes, std::uint64_t nvswitches, std::uint64_t switches,
                    std::uint64_t gpus_per_server) {
        const bool simai = fabric_.format.front() == 'S';
        if (nodes == 0 || nodes > kMostNodes || nvswitches > nodes || switches > nodes ||
            nvswitches + switches >= nodes) {
            source_.refuse(line_number(),
                           fmt::format("{} nodes of which {} are switches: 1 to {} nodes with at least one GPU "
                                       "are expected",
                                       nodes, nvswitches + switches, kMostNodes));
        }
        const std::uint64_t gpus = nodes - nvswitches - switches;
        if (simai && (gpus_per_server == 0 || gpus % gpus_per_server != 0)) {
            source_.refuse(line_number(), fmt::format("{} GPUs are no multiple of {} a server", gpus, gpus_per_server));
        }
        fabric_.nodes.resize(nodes);
        for (std::uint64_t i = 0; i < nvswitches + switches; ++i) {
            const auto word = next_word();
            if (!word) {
                source_.refuse(line_number(),
                               fmt::format("the file ends after {} of {} switch ids", i, nvswitches + switches));
            }
            const auto id = to_unsigned(word->text);
            if (!id || *id >= nodes) {
                source_.refuse(word->line,
                               fmt::format("switch id {}: 0 to {} is expected", in_quotes(word->text), nodes - 1));
            }
            FabricNode& node = fabric_.nodes[*id];
            if (node.line != 0) {
                source_.refuse(word->line, fmt::format("switch id {} is there twice", *id));
            }
            node.kind = i < nvswitches ? NodeKind::nvswitch : NodeKind::network_switch;
            node.line = word->line;
            if (simai && *id < gpus) {
                source_.refuse(word->line,
                               fmt::format("switch id {}: ids below {} are GPUs in a SimAI file", *id, gpus));
            }
        }
        std::uint32_t gpu = 0;
        for (std::size_t id = 0; id < fabric_.nodes.size(); ++id) {
            FabricNode& node = fabric_.nodes[id];
            const bool is_gpu = node.line == 0;
            if (is_gpu) {
                node.kind = NodeKind::gpu;
                node.gpus = 1;
                node.server = simai ? static_cast<int>(gpu++ / gpus_per_server) : -1;
            }
            node.name = fmt::format("{} {}",
                                    is_gpu                            ? "gpu"
                                    : node.kind == NodeKind::nvswitch ? "nvswitch"
                                                                      : "switch",
                                    id);
        }
    }

    void read_links(std::uint64_t links) {
        if (links > kMostLinks) {
            source_.refuse(1, fmt::format("{} links: at most {} are read", links, kMostLinks));
        }
        std::set<std::pair<std::uint32_t, std::uint32_t>> pairs;
        std::size_t bare_rates = 0, bare_times = 0, parallel = 0;
        for (std::uint64_t i = 0; i < links; ++i) {
            Word field[5];
            for (std::size_t k = 0; k < 5; ++k) {
                const auto word = next_word();
                if (!word) {
                    source_.refuse(line_number(), fmt::format("the first line says {} links, the file ends {} link {}",
                                                              links, k == 0 ? "before" : "inside", i + 1));
                }
                field[k] = *word;
            }
            FabricLink link;
            link.line = field[0].line;
            link.from = end(field[0]);
            link.to = end(field[1]);
            if (link.from == link.to) {
                source_.refuse(link.line, fmt::format("a link from node {} to itself", link.from));
            }
            bool rate_unit = false, time_unit = false;
            const auto rate = ns3_bytes_per_s(field[2].text, rate_unit);
            const auto time = ns3_seconds(field[3].text, time_unit);
            const auto errors = to_number(field[4].text);
            if (!rate || *rate <= 0) {
                source_.refuse(field[2].line,
                               fmt::format("bandwidth {}: a positive number with a unit of ns-3 such as 200Gbps is "
                                           "expected",
                                           in_quotes(field[2].text)));
            }
            if (!time || *time < 0) {
                source_.refuse(field[3].line,
                               fmt::format("delay {}: a number with a unit of ns-3 such as 0.0005ms is expected",
                                           in_quotes(field[3].text)));
            }
            if (!errors || *errors < 0 || *errors > 1) {
                source_.refuse(field[4].line,
                               fmt::format("error rate {}: 0 to 1 is expected", in_quotes(field[4].text)));
            }
            bare_rates += rate_unit ? 0 : 1;
            bare_times += time_unit || *time == 0 ? 0 : 1;
            link.bytes_per_s = *rate;
            link.latency_s = *time;
            link.error_rate = *errors;
            parallel += pairs.insert(std::minmax(link.from, link.to)).second ? 0 : 1;
            fabric_.links.push_back(link);
        }
        if (const auto more = next_word()) {
            source_.refuse(more->line,
                           fmt::format("the first line says {} links, here is more: {}", links, in_quotes(more->text)));
        }
        if (bare_rates > 0) {
            fabric_.note(NoteKind::suspicious, 0,
                         fmt::format("{} bandwidths without a unit: bit/s, as in ns-3", bare_rates));
        }
        if (bare_times > 0) {
            fabric_.note(NoteKind::suspicious, 0,
                         fmt::format("{} delays without a unit: seconds, as in ns-3", bare_times));
        }
        if (parallel > 0) {
            fabric_.note(NoteKind::fact, 0, fmt::format("{} links join a pair that already has one", parallel));
        }
    }

    std::uint32_t end(const Word& word) const {
        const auto id = to_unsigned(word.text);
        if (!id || *id >= fabric_.nodes.size()) {
            source_.refuse(word.line, fmt::format("link end {}: a node id from 0 to {} is expected",
                                                  in_quotes(word.text), fabric_.nodes.size() - 1));
        }
        return static_cast<std::uint32_t>(*id);
    }

    const SourceText& source_;
    FabricDescription fabric_;
    std::size_t next_ = 0;
    std::vector<std::string_view> line_;
    std::size_t at_ = 0;
};

}  // namespace

FabricDescription read_ns3_topology(const SourceText& source) { return Reader(source).read(); }

std::optional<double> ns3_bytes_per_s(std::string_view text, bool& has_unit) {
    const auto parts = number_and_unit(text);
    if (!parts) {
        return std::nullopt;
    }
    auto [value, unit] = *parts;
    has_unit = !unit.empty();
    if (!has_unit) {
        return value / 8;
    }
    double factor = 1;
    const bool binary = unit.size() > 1 && unit[1] == 'i';
    switch (unit.front()) {
        case 'k':
        case 'K': factor = binary ? 1024.0 : 1e3; break;
        case 'M': factor = binary ? 1048576.0 : 1e6; break;
        case 'G': factor = binary ? 1073741824.0 : 1e9; break;
        case 'T': factor = binary ? 1099511627776.0 : 1e12; break;
        default: break;
    }
    if (factor != 1) {
        unit.remove_prefix(binary ? 2 : 1);
    }
    if (unit == "bps" || unit == "b/s") {
        return value * factor / 8;
    }
    if (unit == "Bps" || unit == "B/s") {
        return value * factor;
    }
    return std::nullopt;
}

std::optional<double> ns3_seconds(std::string_view text, bool& has_unit) {
    const auto parts = number_and_unit(text);
    if (!parts) {
        return std::nullopt;
    }
    const auto& [value, unit] = *parts;
    has_unit = !unit.empty();
    for (const auto& [name, per_second] : {std::pair<std::string_view, double>{"", 1},
                                           {"s", 1},
                                           {"ms", 1e3},
                                           {"us", 1e6},
                                           {"ns", 1e9},
                                           {"ps", 1e12},
                                           {"fs", 1e15}}) {
        if (unit == name) {
            return value / per_second;
        }
    }
    return unit == "min" ? std::optional(value * 60) : unit == "h" ? std::optional(value * 3600) : std::nullopt;
}

}  // namespace fabricast::importers
