#include "topologies/importers/astra_network.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

namespace fabricast::importers {
namespace {

constexpr double kAstraGigabyte = 1073741824;  ///< 2^30: FORMATS 7.3
constexpr std::uint64_t kMostRanks = 2'000'000;
constexpr std::size_t kMostDimensions = 16;

using Kind = GridDimension::Kind;
using Lists = std::map<std::string, std::vector<YAML::Node>>;

const std::vector<std::string_view> kKeys = {"topology", "npus_count", "bandwidth", "latency"};

std::uint32_t line_of(const YAML::Node& node) { return static_cast<std::uint32_t>(node.Mark().line + 1); }

Lists lists_of(const SourceText& source) {
    YAML::Node root;
    try {
        root = YAML::Load(std::string(source.text()));
    } catch (const YAML::Exception& error) {
        source.refuse(static_cast<std::uint32_t>(error.mark.line + 1), "no YAML: " + error.msg);
    }
    if (!root.IsMap()) {
        source.refuse(1, "a map with topology, npus_count, bandwidth and latency is expected");
    }
    Lists lists;
    for (const auto& entry : root) {
        const std::string key = entry.first.IsScalar() ? entry.first.Scalar() : "";
        if (std::find(kKeys.begin(), kKeys.end(), key) == kKeys.end()) {
            source.refuse(line_of(entry.first),
                          fmt::format("key {}: topology, npus_count, bandwidth and latency are expected{}",
                                      in_quotes(key), did_you_mean(key, kKeys)));
        }
        if (lists.count(key) != 0) {
            source.refuse(line_of(entry.first), fmt::format("key {} is there twice", in_quotes(key)));
        }
        if (!entry.second.IsSequence()) {
            source.refuse(line_of(entry.first),
                          fmt::format("{}: a list in brackets is expected, one entry a dimension", key));
        }
        std::vector<YAML::Node>& list = lists[key];
        for (const YAML::Node& item : entry.second) {
            if (!item.IsScalar()) {
                source.refuse(line_of(entry.first),
                              fmt::format("{}: entry {} is no plain value", key, list.size() + 1));
            }
            list.push_back(item);
        }
    }
    for (const std::string_view key : kKeys) {
        const auto list = lists.find(std::string(key));
        if (list == lists.end()) {
            source.refuse(0, fmt::format("key '{}' is missing", key));
        }
        if (list->second.size() != lists.begin()->second.size() || list->second.empty() ||
            list->second.size() > kMostDimensions) {
            source.refuse(0, fmt::format("{} has {} entries, {} has {}: one a dimension is expected, 1 to {}",
                                         lists.begin()->first, lists.begin()->second.size(), key, list->second.size(),
                                         kMostDimensions));
        }
    }
    return lists;
}

double number(const SourceText& source, const char* key, const YAML::Node& node, bool zero_is_allowed) {
    const auto value = to_number(node.Scalar());
    if (!value || *value < 0 || (*value == 0 && !zero_is_allowed)) {
        source.refuse(line_of(node),
                      fmt::format("{} {}: a number {} is expected, without a unit", key, in_quotes(node.Scalar()),
                                  zero_is_allowed ? "of 0 or more" : "above 0"));
    }
    return *value;
}

GridDimension dimension(const SourceText& source, const Lists& lists, std::size_t index) {
    static const std::vector<std::string_view> kinds = {"Ring", "FullyConnected", "Switch"};
    GridDimension result;
    const YAML::Node& kind = lists.at("topology")[index];
    const auto found = std::find(kinds.begin(), kinds.end(), kind.Scalar());
    if (found == kinds.end()) {
        source.refuse(line_of(kind), fmt::format("topology {}: Ring, FullyConnected or Switch is expected, spelt so{}",
                                                 in_quotes(kind.Scalar()), did_you_mean(kind.Scalar(), kinds)));
    }
    result.kind = static_cast<Kind>(found - kinds.begin());
    const YAML::Node& ranks = lists.at("npus_count")[index];
    const auto count = to_unsigned(ranks.Scalar());
    if (!count || *count < 2 || *count > kMostRanks) {
        source.refuse(line_of(ranks),
                      fmt::format("npus_count {}: a whole number of 2 or more is expected", in_quotes(ranks.Scalar())));
    }
    result.count = static_cast<std::uint32_t>(*count);
    result.bytes_per_s = number(source, "bandwidth", lists.at("bandwidth")[index], false) * kAstraGigabyte;
    result.latency_s = number(source, "latency", lists.at("latency")[index], true) / 1e9;
    return result;
}

std::uint64_t links_of_group(const GridDimension& dimension) {
    const std::uint64_t n = dimension.count;
    return dimension.kind == Kind::fully_connected ? n * (n - 1) / 2 : n == 2 && dimension.kind == Kind::ring ? 1 : n;
}

/// Lists the links of a dimension; stride: ranks between neighbours along it.
void add_links(FabricDescription& fabric, std::size_t index, std::uint32_t ranks, std::uint32_t stride) {
    const GridDimension& dimension = fabric.dimensions[index];
    const auto add = [&](std::uint32_t from, std::uint32_t to) {
        FabricLink link;
        link.from = from;
        link.to = to;
        link.bytes_per_s = dimension.bytes_per_s;
        link.latency_s = dimension.latency_s;
        fabric.links.push_back(link);
    };
    for (std::uint32_t first = 0; first < ranks; ++first) {
        if (first / stride % dimension.count != 0) {
            continue;  // not the first of its group
        }
        if (dimension.kind == Kind::network_switch) {
            FabricNode node;
            node.name = fmt::format("switch of dimension {} at rank {}", index, first);
            node.kind = NodeKind::network_switch;
            fabric.nodes.push_back(node);
        }
        for (std::uint32_t i = 0; i < dimension.count; ++i) {
            const std::uint32_t rank = first + i * stride;
            if (dimension.kind == Kind::network_switch) {
                add(rank, static_cast<std::uint32_t>(fabric.nodes.size() - 1));
            } else if (dimension.kind == Kind::ring) {
                if (i + 1 < dimension.count || dimension.count > 2) {
                    add(rank, first + (i + 1) % dimension.count * stride);
                }
            } else {
                for (std::uint32_t j = i + 1; j < dimension.count; ++j) {
                    add(rank, first + j * stride);
                }
            }
        }
    }
}

}  // namespace

std::string retired_astra_key(std::string_view text) {
    for (const char* key :
         {"topology-name", "dimensions-count", "topologies-per-dim", "dimension-type", "units-count", "links-count",
          "link-latency", "link-bandwidth", "nic-latency", "router-latency", "hbm-latency", "hbm-bandwidth"}) {
        if (text.find(key) != std::string_view::npos) {
            return key;
        }
    }
    return "";
}

FabricDescription read_astra_dimensions(const SourceText& source) {
    const std::string_view text = source.text();
    if (const std::string key = retired_astra_key(text); !key.empty()) {
        source.refuse(
            source.line_number(text.find(key)),
            fmt::format("key '{}' of the retired JSON form of ASTRA-sim networks; write the lists topology "
                        "(topologies-per-dim), npus_count (units-count), bandwidth (link-bandwidth) and latency "
                        "(link-latency) in YAML",
                        key));
    }
    if (const std::size_t at = text.find("\"logical-dims\""); at != std::string_view::npos) {
        source.refuse(source.line_number(at),
                      "only the logical shape of an ASTRA-sim network; the ns-3 topology file that "
                      "goes with it is expected");
    }
    FabricDescription fabric;
    fabric.source = source.name();
    fabric.format = "ASTRA-sim analytical network";
    fabric.notes = source.notes();
    const Lists lists = lists_of(source);
    std::uint64_t ranks = 1;
    for (std::size_t i = 0; i < lists.begin()->second.size(); ++i) {
        fabric.dimensions.push_back(dimension(source, lists, i));
        ranks *= fabric.dimensions.back().count;
        if (ranks > kMostRanks) {
            source.refuse(line_of(lists.at("npus_count")[i]), fmt::format("more than {} ranks", kMostRanks));
        }
    }
    fabric.expanded = false;
    fabric.note(NoteKind::fact, 0, "bandwidths are taken as GiB/s (2^30 bytes), as ASTRA-sim does");
    return fabric;
}

FabricDescription read_astra_network(const SourceText& source) {
    FabricDescription fabric = read_astra_dimensions(source);
    std::uint64_t ranks = 1, links = 0;
    for (const GridDimension& dimension : fabric.dimensions) {
        ranks *= dimension.count;
    }
    for (const GridDimension& dimension : fabric.dimensions) {
        links += ranks / dimension.count * links_of_group(dimension);
    }
    fabric.expanded = links <= kMostGridLinks;
    if (!fabric.expanded) {
        fabric.note(NoteKind::fact, 0, fmt::format("{} links: kept as dimensions, not listed", links));
        return fabric;
    }
    for (std::uint64_t rank = 0; rank < ranks; ++rank) {
        FabricNode node;
        node.name = fmt::format("gpu {}", rank);
        node.kind = NodeKind::gpu;
        node.gpus = 1;
        fabric.nodes.push_back(node);
    }
    std::uint32_t stride = 1;
    for (std::size_t i = 0; i < fabric.dimensions.size(); ++i) {
        add_links(fabric, i, static_cast<std::uint32_t>(ranks), stride);
        stride *= fabric.dimensions[i].count;
    }
    complete(fabric);
    return fabric;
}

}  // namespace fabricast::importers
