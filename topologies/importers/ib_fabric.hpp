// Collects what the ends of InfiniBand links report, and makes one fabric of it.
//
// Readers declare switches and adapters under a key of their own (GUID, LID) and report links end by end; the same
// link reported from its other end is recognised by keys and ports.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "topologies/importers/fabric.hpp"

namespace fabricast::importers {

struct IbEnd {
    std::string key;
    std::uint32_t port = 0;
    auto operator<=>(const IbEnd&) const = default;
};

struct IbReport {
    IbEnd from, to;
    std::uint32_t width = 0;  ///< lanes; 0: not told
    std::string rate;         ///< "HDR"; empty: not told
    double bytes_per_s = 0;   ///< 0: not told
    std::string remark;       ///< of the tool: "Could be 4X"
    std::uint32_t line = 0;
};

class IbFabric {
public:
    explicit IbFabric(const SourceText& source, std::string format);

    /// A key may be declared again with the same kind; a better description replaces an empty one.
    void add_switch(const std::string& key, std::string_view description, std::uint32_t line);
    void add_adapter(const std::string& key, std::string_view description, std::uint32_t line);
    bool knows(const std::string& key) const { return devices_.count(key) != 0; }
    void add_report(IbReport report);
    void add_down_port() { ++down_ports_; }

    /// Throws ImportError when nothing was declared.
    FabricDescription finish();

private:
    struct Device {
        bool is_switch = false;
        std::string description;
        std::uint32_t line = 0;
        std::uint32_t node = 0;
    };
    struct Link {
        IbReport report;
        std::uint32_t reports = 1;
    };

    void place_nodes();
    void place_links();
    void tell_slow_links();

    const SourceText& source_;
    FabricDescription fabric_;
    std::map<std::string, Device> devices_;
    std::vector<std::string> order_;
    std::map<std::pair<IbEnd, IbEnd>, Link> links_;  ///< lesser end first
    std::size_t down_ports_ = 0;
};

/// "MF0;leaf01:MQM8700/U1" -> "leaf01"; other descriptions as they are.
std::string ib_switch_name(std::string_view description);
/// "node01 mlx5_0" -> "node01"; empty for descriptions that are a maker's default.
std::string ib_host_name(std::string_view description);
/// The collective engine inside a switch, which looks like an adapter.
bool is_aggregation_node(std::string_view description);

}  // namespace fabricast::importers
