#include "validate/ingest/nccl_info.hpp"

#include <algorithm>
#include <array>

#include "sim/observed/text.hpp"

namespace fabricast {
namespace {

constexpr std::array<std::string_view, 3> kLevels = {" NCCL INFO ", " NCCL WARN ", " NCCL TRACE "};
constexpr std::size_t kKeptWarnings = 8;

/// Position of the level in the line, and what stands behind it.
struct Level {
    std::size_t at = std::string_view::npos;
    std::string_view text;
    bool warning = false;
};

Level level_of(std::string_view line) {
    Level found;
    for (const std::string_view level : kLevels) {
        const std::size_t at = line.find(level);
        if (at < found.at) {
            found = {at, line.substr(at + level.size()), level == kLevels[1]};
        }
    }
    return found;
}

bool is_whole(std::string_view text) { return whole_number(text).has_value() && text.front() != '-'; }

/// "host:pid:tid" with anything glued before it: the length of what is glued, or nothing if it is no such word.
std::optional<std::size_t> glued_before_host(std::string_view word) {
    const std::size_t last = word.rfind(':');
    if (last == std::string_view::npos || last == 0 || !is_whole(word.substr(last + 1))) {
        return std::nullopt;
    }
    const std::size_t middle = word.rfind(':', last - 1);
    if (middle == std::string_view::npos || !is_whole(word.substr(middle + 1, last - middle - 1))) {
        return std::nullopt;
    }
    const std::size_t host = word.find_first_not_of("-.0123456789");
    return host < middle ? std::optional(host) : std::optional<std::size_t>(0);
}

std::string after(std::string_view text, std::string_view key, std::string_view until = " ") {
    const std::size_t at = text.find(key);
    if (at == std::string_view::npos) {
        return "";
    }
    text.remove_prefix(at + key.size());
    return std::string(trimmed(text.substr(0, until.empty() ? text.size() : text.find_first_of(until))));
}

std::optional<int> number_before(std::string_view text, std::string_view key) {
    const std::size_t at = text.find(key);
    if (at == std::string_view::npos) {
        return std::nullopt;
    }
    const std::vector<std::string_view> before = words(text.substr(0, at));
    const std::optional<std::int64_t> value = before.empty() ? std::nullopt : whole_number(before.back());
    return value ? std::optional(static_cast<int>(*value)) : std::nullopt;
}

std::string transport_of(std::string_view network) {
    const std::string name = lower(network);
    if (contains(name, "socket")) {
        return "socket";
    }
    if (contains(name, "ofi") || contains(name, "libfabric")) {
        return "ofi";
    }
    return starts_with(name, "ib") || contains(name, "infiniband") ? "ib" : "";
}

void set_network(const std::string& network, NcclFacts& facts) {
    if (facts.network.empty() && !network.empty()) {
        facts.network = network;
        facts.network_transport = transport_of(network);
    }
}

void version(std::string_view text, NcclFacts& facts) {
    const std::string full = after(text, "NCCL version ");
    const std::size_t cuda = full.find("+cuda");
    if (facts.nccl_version.empty() && !full.empty() && full.front() >= '0' && full.front() <= '9') {
        facts.nccl_version = full.substr(0, cuda);
        facts.cuda_version = cuda == std::string::npos ? "" : full.substr(cuda + 5);
    }
}

void connection(std::string_view text, NcclFacts& facts) {
    const std::size_t via = text.find(" via ");
    if (via == std::string_view::npos || !contains(text, "->")) {
        return;
    }
    const std::string_view way = text.substr(via + 5);
    if (starts_with(way, "NET/")) {
        const std::string_view rest = way.substr(4);
        set_network(std::string(rest.substr(0, rest.find('/'))), facts);
        ++facts.net_connections;
        facts.gdr_connections += contains(way, "/GDRDMA") ? 1 : 0;
        facts.gpu_direct = facts.gdr_connections == facts.net_connections;
    } else if (starts_with(way, "P2P")) {
        ++facts.p2p_connections;
    } else if (starts_with(way, "SHM") || starts_with(way, "direct shared memory")) {
        ++facts.shm_connections;
    }
}

/// "Channel 00/16 :  0 7 6 ..." (the number of channels stands behind the slash), "Ring 00 : 0 1 2", "Trees [0] ...".
void wiring(std::string_view text, NcclFacts& facts) {
    const bool channel = starts_with(text, "Channel ");
    if ((channel || starts_with(text, "Ring ")) && contains(text, " : ") && !contains(text, "->")) {
        ++facts.ring_lines;
        const std::optional<std::int64_t> total = whole_number(after(text, "/"));
        if (channel && total && !facts.coll_channels) {
            facts.coll_channels = static_cast<int>(*total);
        }
    }
    facts.tree_lines += starts_with(text, "Trees [") || starts_with(text, "Tree ") ? 1 : 0;
    if (const std::optional<int> channels = number_before(text, " coll channels")) {
        facts.coll_channels = channels;
        facts.nvls_channels = number_before(text, " nvls channels");
        facts.p2p_channels = number_before(text, " p2p channels");
    }
}

}  // namespace

std::optional<std::size_t> nccl_message_start(std::string_view line) {
    const Level level = level_of(line);
    if (level.at == std::string_view::npos) {
        return std::nullopt;
    }
    const std::vector<std::string_view> before = words(line.substr(0, level.at));
    for (std::size_t i = before.size(); i-- > 0;) {  // backwards over [cudaDev] and file.cc:line to host:pid:tid
        if (const std::optional<std::size_t> glued = glued_before_host(before[i])) {
            return static_cast<std::size_t>(before[i].data() - line.data()) + *glued;
        }
    }
    return 0;
}

void gather_facts(std::string_view message, NcclFacts& facts) {
    const Level level = level_of(message);
    if (level.at == std::string_view::npos) {
        version(message, facts);
        return;
    }
    ++facts.lines;
    const std::string_view text = trimmed(level.text);
    if (level.warning) {
        const std::string kept(text);
        const bool known = std::find(facts.warnings.begin(), facts.warnings.end(), kept) != facts.warnings.end();
        if (!known && facts.warnings.size() < kKeptWarnings) {
            facts.warnings.push_back(kept);
        }
    }
    version(text, facts);
    set_network(after(text, "Using network ", ""), facts);
    if (contains(text, "NET/IB : Using [")) {
        set_network("IB", facts);
    } else if (contains(text, "NET/Socket : Using [")) {
        set_network("Socket", facts);
    }
    if (facts.provider.empty()) {
        facts.provider = after(text, "Selected Provider is ", " (,");
    }
    if (contains(text, "Could not find: libnccl-net") || contains(text, "No plugin found (libnccl-net")) {
        facts.plugin_not_found = true;
    }
    if (contains(text, "GPU Direct RDMA Disabled") && facts.net_connections == 0) {
        facts.gpu_direct = false;
    }
    if (contains(text, "NVLS multicast support is ")) {
        facts.nvls = !contains(text, "is not available");
    }
    connection(text, facts);
    wiring(text, facts);
    if (const std::optional<std::int64_t> ranks = whole_number(after(text, " nranks ")); ranks && *ranks > 0) {
        facts.ranks = static_cast<int>(*ranks);
    }
    if (starts_with(text, "NCCL_") && contains(text, " set by environment to ")) {
        std::string value = after(text, " set by environment to ", "");
        if (!value.empty() && value.back() == '.') {
            value.pop_back();
        }
        facts.environment.emplace(text.substr(0, text.find(' ')), value);
    }
}

}  // namespace fabricast
