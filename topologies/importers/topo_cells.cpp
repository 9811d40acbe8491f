#include "topologies/importers/topo_cells.hpp"

#include <array>
#include <utility>

#include <fmt/format.h>

#include "topologies/importers/source_text.hpp"

namespace fabricast::importers {
namespace {

constexpr std::size_t kMostNames = 512;

void skip_blanks(std::string_view line, std::size_t& at) {
    while (at < line.size() && is_blank(line[at])) {
        ++at;
    }
}

/// Takes a phrase whose words may be apart by any blanks ("CPU  Affinity").
bool take_phrase(std::string_view line, std::size_t& at, std::string_view phrase) {
    std::size_t i = at;
    for (const std::string_view word : words(phrase)) {
        skip_blanks(line, i);
        if (line.substr(i, word.size()) != word) {
            return false;
        }
        i += word.size();
    }
    at = i;
    return true;
}

std::size_t digits_from(std::string_view line, std::size_t at) {
    std::size_t end = at;
    while (end < line.size() && is_digit(line[end])) {
        ++end;
    }
    return end;
}

/// End of a name of known make at `at`: GPU7, NIC7, mlx5_7, hfi1_7; so that glued names come apart. 0: none.
std::size_t known_name_end(std::string_view line, std::size_t at) {
    for (const std::string_view stem : {"GPU", "NIC"}) {
        if (line.substr(at, stem.size()) == stem) {
            const std::size_t end = digits_from(line, at + stem.size());
            return end > at + stem.size() ? end : 0;
        }
    }
    for (const std::string_view stem : {"mlx", "hfi", "bnxt_re", "irdma"}) {
        if (line.substr(at, stem.size()) == stem) {
            std::size_t end = digits_from(line, at + stem.size());
            if (end < line.size() && line[end] == '_') {
                const std::size_t number_end = digits_from(line, end + 1);
                return number_end > end + 1 ? number_end : 0;
            }
            return end > at + stem.size() && stem != "mlx" ? end : 0;
        }
    }
    return 0;
}

bool is_name_character(char c) { return is_letter(c) || is_digit(c) || c == '_' || c == '-' || c == '.' || c == ':'; }

struct Range {
    std::uint64_t first = 0, last = 0;
};

/// "0-45,92-137" as ranges; nothing when it is no range list.
std::optional<std::vector<Range>> ranges_of(std::string_view text) {
    std::vector<Range> ranges;
    while (!text.empty()) {
        const std::string_view item = text.substr(0, text.find(','));
        const std::size_t dash = item.find('-');
        const auto first = to_unsigned(item.substr(0, dash));
        const auto last = dash == std::string_view::npos ? first : to_unsigned(item.substr(dash + 1));
        if (!first || !last || *last < *first) {
            return std::nullopt;
        }
        ranges.push_back({*first, *last});
        text.remove_prefix(item.size() < text.size() ? item.size() + 1 : item.size());
    }
    return ranges;
}

/// "0-45,92-1370" is 0-45,92-137 and NUMA node 0: ranges of a socket are equally long. Returns the digits to take off.
std::size_t glued_digits(std::string_view cpus) {
    const auto ranges = ranges_of(cpus);
    if (!ranges || ranges->size() < 2) {
        return 0;
    }
    const std::uint64_t length = ranges->front().last - ranges->front().first;
    if (ranges->back().last - ranges->back().first == length) {
        return 0;
    }
    for (std::size_t digits = 1; digits <= 2; ++digits) {
        const auto shorter = ranges_of(cpus.substr(0, cpus.size() - digits));
        if (shorter && shorter->back().last - shorter->back().first == length) {
            return digits;
        }
    }
    return 0;
}

}  // namespace

std::optional<TopoHeader> topo_header(std::string_view line) {
    std::size_t at = line.find("GPU0");
    if (at == std::string_view::npos || at > 200) {
        return std::nullopt;
    }
    TopoHeader header;
    while (at < line.size() && header.names.size() <= kMostNames) {
        skip_blanks(line, at);
        if (at >= line.size()) {
            break;
        }
        if (take_phrase(line, at, "CPU Affinity")) {
            header.cpu_affinity = true;
        } else if (take_phrase(line, at, "NUMA Affinity")) {
            header.numa_affinity = true;
        } else if (take_phrase(line, at, "GPU NUMA ID")) {
            header.gpu_numa = true;
        } else if (const std::size_t end = known_name_end(line, at); end > 0) {
            header.names.emplace_back(line.substr(at, end - at));
            at = end;
        } else if (line[at] == '[' && digits_from(line, at + 1) + 1 < line.size() &&
                   line[digits_from(line, at + 1)] == 'm') {
            at = digits_from(line, at + 1) + 1;  // a colour that lost its escape character
        } else {
            std::size_t name_end = at;
            while (name_end < line.size() && is_name_character(line[name_end])) {
                ++name_end;
            }
            const std::string_view word = line.substr(at, name_end - at);
            const bool is_name = !word.empty() && is_letter(word[0]) && word.back() != ':' &&
                                 word.find_first_of("0123456789") != std::string_view::npos;
            if (!is_name || header.cpu_affinity || header.numa_affinity) {
                return std::nullopt;
            }
            header.names.emplace_back(word);
            at = name_end;
        }
    }
    // A row starts with its name and then holds cells; a header holds names only.
    for (const std::string& name : header.names) {
        for (const std::string_view cell :
             {"X", "PIX", "PXB", "PHB", "NODE", "SYS", "SOC", "OK", "NS", "CNS", "GNS", "TNS", "U"}) {
            if (name == cell) {
                return std::nullopt;
            }
        }
        if (starts_with(name, "NV") && name.size() > 2 && digits_from(name, 2) == name.size()) {
            return std::nullopt;
        }
    }
    const bool has_columns = header.cpu_affinity || header.numa_affinity;
    if (header.names.empty() || header.names.front() != "GPU0" || header.names.size() > kMostNames ||
        (header.names.size() < 2 && !has_columns)) {
        return std::nullopt;
    }
    return header;
}

std::optional<TopoCell> topo_cell(std::string_view line, std::size_t& at) {
    skip_blanks(line, at);
    const auto ended = [&](std::size_t end) {  // glued cells follow in capitals, anything else must be apart
        return end >= line.size() || is_blank(line[end]) || (line[end] >= 'A' && line[end] <= 'Z') ||
               (line[end] >= '0' && line[end] <= '9');
    };
    if (line.substr(at, 2) == "NV") {
        const std::size_t end = digits_from(line, at + 2);
        const auto count = to_unsigned(line.substr(at + 2, end - at - 2));
        if (!count || *count == 0 || *count > 99 || !ended(end)) {
            return std::nullopt;
        }
        at = end;
        return TopoCell{TopoCell::Kind::path, {PathType::nvl, static_cast<std::uint16_t>(*count)}};
    }
    static constexpr std::array<std::pair<std::string_view, PathType>, 8> paths = {{{"PIX", PathType::pix},
                                                                                    {"PXB", PathType::pxb},
                                                                                    {"PHB", PathType::phb},
                                                                                    {"NODE", PathType::node},
                                                                                    {"SYS", PathType::sys},
                                                                                    {"SOC", PathType::sys},
                                                                                    {"C2C", PathType::c2c},
                                                                                    {"DIS", PathType::dis}}};
    for (const auto& [name, type] : paths) {
        if (line.substr(at, name.size()) == name && ended(at + name.size())) {
            at += name.size();
            return TopoCell{TopoCell::Kind::path, {type, 0}};
        }
    }
    for (const std::string_view name : {"OK", "CNS", "GNS", "TNS", "NS", "U"}) {
        if (line.substr(at, name.size()) == name && ended(at + name.size())) {
            at += name.size();
            return TopoCell{TopoCell::Kind::p2p, {}};
        }
    }
    if (line.substr(at, 1) == "X" && ended(at + 1)) {
        ++at;
        return TopoCell{TopoCell::Kind::self, {PathType::loc, 0}};
    }
    return std::nullopt;
}

TopoAffinity topo_affinity(std::string_view rest, const TopoHeader& header) {
    TopoAffinity affinity;
    std::vector<std::string_view> fields;
    if (const std::string_view tail = rest; tail.find('\t') != std::string_view::npos) {
        std::size_t start = tail.find('\t') + 1;  // fields stand behind their tab; empty ones count
        while (start <= tail.size()) {
            const std::size_t end = std::min(tail.find('\t', start), tail.size());
            fields.push_back(trimmed(tail.substr(start, end - start)));
            start = end + 1;
        }
    } else {
        fields = words(rest);
        const std::size_t wanted =
            (header.cpu_affinity ? 1u : 0u) + (header.numa_affinity ? 1u : 0u) + (header.gpu_numa ? 1u : 0u);
        const bool first_is_cpus = !fields.empty() && fields[0].find_first_of("-,") != std::string_view::npos;
        if (header.cpu_affinity && header.numa_affinity && fields.size() + 1 == wanted && !first_is_cpus) {
            fields.insert(fields.begin(), std::string_view());  // the CPU cell is empty
        }
    }
    std::size_t next = 0;
    if (header.cpu_affinity && next < fields.size()) {
        affinity.cpus = fields[next++];
    }
    std::string_view numa = header.numa_affinity && next < fields.size() ? fields[next] : std::string_view();
    if (header.numa_affinity && (numa.empty() || numa == "N/A")) {
        if (const std::size_t digits = glued_digits(affinity.cpus); digits > 0) {
            affinity.odd = fmt::format("CPU and NUMA affinity are glued: {}", in_quotes(affinity.cpus));
            affinity.numa = static_cast<int>(
                to_unsigned(std::string_view(affinity.cpus).substr(affinity.cpus.size() - digits)).value_or(0));
            affinity.cpus.resize(affinity.cpus.size() - digits);
        }
    } else if (header.numa_affinity) {
        const std::string_view first = numa.substr(0, numa.find_first_of(",-"));  // GB200: "0,2-17"
        const auto value = to_unsigned(first);
        if (value && *value < 100000) {
            affinity.numa = static_cast<int>(*value);
        } else {
            affinity.odd = fmt::format("NUMA affinity {} is no number", in_quotes(numa));
        }
    }
    if (affinity.cpus == "N/A") {
        affinity.cpus.clear();
    }
    if (!affinity.cpus.empty() && !ranges_of(affinity.cpus)) {
        affinity.odd = fmt::format("CPU affinity {} is cut or no list of ranges", in_quotes(affinity.cpus));
    }
    return affinity;
}

}  // namespace fabricast::importers
