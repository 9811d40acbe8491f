#include "topologies/importers/detect.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "topologies/importers/astra_network.hpp"
#include "topologies/importers/infiniband.hpp"
#include "topologies/importers/nccl_xml.hpp"
#include "topologies/importers/ns3_topology.hpp"
#include "topologies/importers/nvidia_smi_topo.hpp"
#include "topologies/importers/slurm_topology.hpp"
#include "topologies/importers/xml_document.hpp"

namespace fabricast::importers {
namespace {

constexpr std::size_t kLinesLookedAt = 20'000;

bool is_count(std::string_view word) { return to_unsigned(word).has_value(); }

/// First line with words: 3 counts, or 5 counts and a GPU type.
bool is_ns3_header(const std::vector<std::string_view>& line) {
    return (line.size() == 3 && std::all_of(line.begin(), line.end(), is_count)) ||
           (line.size() == 6 && std::all_of(line.begin(), line.begin() + 5, is_count) && is_letter(line[5].front()));
}

bool is_ib_device_line(std::string_view line) {
    const std::vector<std::string_view> parts = words(line);
    return parts.size() >= 3 && (parts[0] == "Switch" || parts[0] == "Ca" || parts[0] == "Rt") && is_count(parts[1]) &&
           parts[2].front() == '"';
}

bool has_key(std::string_view line, std::string_view key) {
    return starts_with(line, key) && starts_with(trimmed(line.substr(key.size())), ":");
}

}  // namespace

std::string format_name(Format format) {
    constexpr const char* names[] = {"unknown",
                                     "nvidia-smi topo -m",
                                     "NCCL topology XML",
                                     "ns-3 topology file (ASTRA-sim, SimAI)",
                                     "ASTRA-sim analytical network YAML",
                                     "Slurm topology.conf",
                                     "ibnetdiscover",
                                     "iblinkinfo"};
    return names[static_cast<std::size_t>(format)];
}

std::string readable_formats() {
    std::vector<std::string> names;
    for (auto format = static_cast<int>(Format::nvidia_smi_topo); format <= static_cast<int>(Format::iblinkinfo);
         ++format) {
        names.push_back(format_name(static_cast<Format>(format)));
    }
    return listed(names);
}

Format detect(const SourceText& source) {
    if (find_element(source.text(), "system") != std::string_view::npos ||
        find_element(source.text(), "graphs") != std::string_view::npos) {
        return Format::nccl_xml;
    }
    if (!retired_astra_key(source.text().substr(0, 4096)).empty() ||
        source.text().substr(0, 4096).find("\"logical-dims\"") != std::string_view::npos) {
        return Format::astra_network;
    }
    bool first_words = true;
    std::size_t astra_keys = 0;
    const std::size_t lines = std::min(source.line_count(), kLinesLookedAt);
    for (std::size_t index = 0; index < lines; ++index) {
        const std::string_view line = trimmed(source.line(index));
        if (line.empty()) {
            continue;
        }
        if (is_topo_header(line)) {
            return Format::nvidia_smi_topo;
        }
        if (is_ib_device_line(line)) {
            return Format::ibnetdiscover;
        }
        if (line.find("==(") != std::string_view::npos && line.find(")==>") != std::string_view::npos) {
            return Format::iblinkinfo;
        }
        if (line.front() == '#') {
            continue;
        }
        if (first_words && is_ns3_header(words(line))) {
            return Format::ns3_topology;
        }
        first_words = false;
        const std::string lower = lower_case(line.substr(0, 16));
        if (starts_with(lower, "switchname=") || starts_with(lower, "blockname=") ||
            starts_with(lower, "blocksizes=")) {
            return Format::slurm_topology;
        }
        for (const std::string_view key :
             {"topology", "npus_count", "npu_count", "bandwidth", "latency", "\"topology\"", "\"npus_count\""}) {
            astra_keys +=
                has_key(line, key) || (line.front() == '{' && line.find(key) != std::string_view::npos) ? 1 : 0;
        }
        if (astra_keys >= 2) {
            return Format::astra_network;
        }
    }
    return Format::unknown;
}

Imported import_text(const SourceText& source) {
    switch (detect(source)) {
        case Format::nvidia_smi_topo: return read_nvidia_smi_topo(source);
        case Format::nccl_xml: return read_nccl_xml(source);
        case Format::ns3_topology: return read_ns3_topology(source);
        case Format::astra_network: return read_astra_network(source);
        case Format::slurm_topology: return read_slurm_topology(source);
        case Format::ibnetdiscover: return read_ibnetdiscover(source);
        case Format::iblinkinfo: return read_iblinkinfo(source);
        case Format::unknown: break;
    }
    source.refuse(0, "is none of: " + readable_formats());
}

Imported import_file(const std::string& path) { return import_text(SourceText::from_file(path)); }

}  // namespace fabricast::importers
