#include "topologies/importers/slurm_topology.hpp"

#include <algorithm>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "topologies/importers/node_list.hpp"

namespace fabricast::importers {
namespace {

struct Entry {
    std::uint32_t line = 0;
    std::map<std::string, std::string> values;  // lower-case key -> value
};

class Reader {
public:
    explicit Reader(const SourceText& source) : source_(source) {}

    FabricDescription read() {
        fabric_.source = source_.name();
        fabric_.notes = source_.notes();
        const std::vector<Entry> entries = parsed();
        for (const Entry& entry : entries) {
            declare(entry);
        }
        if (switch_at_.empty()) {
            source_.refuse(0, "no SwitchName= or BlockName= line in it");
        }
        fabric_.format = blocks_ ? "Slurm topology.conf (block)" : "Slurm topology.conf (tree)";
        for (const Entry& entry : entries) {
            join(entry);
        }
        refuse_cycles();
        complete(fabric_);
        return std::move(fabric_);
    }

private:
    /// Lines joined and without comments, as keys and values.
    std::vector<Entry> parsed() const {
        std::vector<Entry> entries;
        std::string joined;
        std::uint32_t first = 0;
        for (std::size_t index = 0; index < source_.line_count(); ++index) {
            std::string_view line = source_.line(index);
            line = trimmed(line.substr(0, line.find('#')));
            first = joined.empty() ? static_cast<std::uint32_t>(index + 1) : first;
            const bool goes_on = !line.empty() && line.back() == '\\';
            joined += line.substr(0, line.size() - (goes_on ? 1 : 0));
            if (goes_on && index + 1 < source_.line_count()) {
                joined += ' ';
                continue;
            }
            if (!trimmed(joined).empty()) {
                entries.push_back(entry(joined, first));
            }
            joined.clear();
        }
        return entries;
    }

    Entry entry(std::string_view line, std::uint32_t number) const {
        static const std::vector<std::string_view> keys = {"SwitchName", "Switches",  "Nodes",
                                                           "LinkSpeed",  "BlockName", "BlockSizes"};
        Entry result;
        result.line = number;
        for (const std::string_view word : words(line)) {
            const std::size_t equals = word.find('=');
            const std::string_view key = word.substr(0, equals);
            const bool known = std::any_of(keys.begin(), keys.end(),
                                           [&](std::string_view k) { return lower_case(k) == lower_case(key); });
            if (!known || equals == std::string_view::npos) {
                source_.refuse(number,
                               fmt::format("{} is not Key=Value with a key of topology.conf: SwitchName, Switches, "
                                           "Nodes, LinkSpeed, BlockName, BlockSizes{}",
                                           in_quotes(word), did_you_mean(key, keys)));
            }
            if (!result.values.emplace(lower_case(key), word.substr(equals + 1)).second) {
                source_.refuse(number, fmt::format("{} is there twice", key));
            }
        }
        return result;
    }

    static std::optional<std::string> value(const Entry& entry, const char* key) {
        const auto found = entry.values.find(key);
        return found == entry.values.end() ? std::nullopt : std::optional<std::string>(found->second);
    }

    void declare(const Entry& entry) {
        const auto switch_name = value(entry, "switchname"), block_name = value(entry, "blockname");
        if (switch_name || block_name) {
            const bool is_block = block_name.has_value();
            if ((switch_name && block_name) || (!switch_at_.empty() && is_block != blocks_)) {
                source_.refuse(entry.line, "switches and blocks in one file: a topology is a tree or blocks");
            }
            blocks_ = is_block;
            const std::string& name = is_block ? *block_name : *switch_name;
            if (name.empty() || name.find_first_of("[],") != std::string::npos) {
                source_.refuse(entry.line, fmt::format("{}: one name is expected", in_quotes(name)));
            }
            if (!switch_at_.emplace(name, fabric_.nodes.size()).second) {
                source_.refuse(entry.line,
                               fmt::format("{} {} is defined twice", is_block ? "block" : "switch", in_quotes(name)));
            }
            FabricNode node;
            node.name = name;
            node.kind = NodeKind::network_switch;
            node.line = entry.line;
            fabric_.nodes.push_back(node);
        } else if (const auto sizes = value(entry, "blocksizes")) {
            for (const std::string& size : expand_node_list(*sizes, source_.name(), entry.line)) {
                const auto number = to_unsigned(size);
                if (!number || *number == 0 || *number > kMostListedNodes) {
                    source_.refuse(entry.line,
                                   fmt::format("BlockSizes {}: numbers of nodes are expected", in_quotes(size)));
                }
                fabric_.block_sizes.push_back(static_cast<std::uint32_t>(*number));
            }
        } else {
            source_.refuse(entry.line, "a line without SwitchName=, BlockName= or BlockSizes=");
        }
    }

    void join(const Entry& entry) {
        const auto name = value(entry, blocks_ ? "blockname" : "switchname");
        if (!name) {
            return;
        }
        const auto nodes = value(entry, "nodes"), switches = value(entry, "switches");
        if (!nodes && !switches) {
            source_.refuse(entry.line, fmt::format("{} has neither Nodes= nor Switches=", in_quotes(*name)));
        }
        const auto parent = static_cast<std::uint32_t>(switch_at_.at(*name));
        for (const std::string& node :
             nodes ? expand_node_list(*nodes, source_.name(), entry.line) : std::vector<std::string>()) {
            const auto [at, is_new] = host_at_.emplace(node, fabric_.nodes.size());
            if (is_new) {
                FabricNode host;
                host.name = node;
                host.line = entry.line;
                fabric_.nodes.push_back(host);
            } else {
                fabric_.note(NoteKind::suspicious, entry.line,
                             fmt::format("node {} is under a second {}", node, blocks_ ? "block" : "switch"));
            }
            add_link(static_cast<std::uint32_t>(at->second), parent, entry.line);
        }
        for (const std::string& child :
             switches ? expand_node_list(*switches, source_.name(), entry.line) : std::vector<std::string>()) {
            const auto at = switch_at_.find(child);
            if (at == switch_at_.end()) {
                std::vector<std::string_view> known;
                for (const auto& [known_name, index] : switch_at_) {
                    known.push_back(known_name);
                }
                source_.refuse(entry.line, fmt::format("switch {} under {} is defined nowhere{}", in_quotes(child),
                                                       in_quotes(*name), did_you_mean(child, known)));
            }
            children_[parent].push_back(static_cast<std::uint32_t>(at->second));
            add_link(static_cast<std::uint32_t>(at->second), parent, entry.line);
        }
    }

    void add_link(std::uint32_t from, std::uint32_t to, std::uint32_t line) {
        if (from == to) {
            source_.refuse(line, fmt::format("switch {} is its own child", in_quotes(fabric_.nodes[to].name)));
        }
        FabricLink link;
        link.from = from;
        link.to = to;
        link.line = line;
        fabric_.links.push_back(link);
    }

    /// Takes switches away whose children are all gone; what is left lies on a cycle or above one.
    void refuse_cycles() const {
        std::map<std::uint32_t, std::vector<std::uint32_t>> left = children_;
        for (bool removed = true; removed;) {
            removed = false;
            for (auto at = left.begin(); at != left.end();) {
                const bool free = std::none_of(at->second.begin(), at->second.end(),
                                               [&](std::uint32_t child) { return left.count(child) != 0; });
                at = free ? left.erase(at) : std::next(at);
                removed = removed || free;
            }
        }
        if (!left.empty()) {
            const FabricNode& node = fabric_.nodes[left.begin()->first];
            source_.refuse(node.line, fmt::format("switch {} is above itself: Switches= go round in a circle",
                                                  in_quotes(node.name)));
        }
    }

    const SourceText& source_;
    FabricDescription fabric_;
    bool blocks_ = false;
    std::map<std::string, std::size_t> switch_at_, host_at_;
    std::map<std::uint32_t, std::vector<std::uint32_t>> children_;
};

}  // namespace

FabricDescription read_slurm_topology(const SourceText& source) { return Reader(source).read(); }

}  // namespace fabricast::importers
