#include "topologies/builders/degradation.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "topologies/builders/checks.hpp"

namespace fabricast {
namespace {

/// Reads "word <number>[.<number>]" off the front; false and nothing taken when it is not there.
bool take(std::string_view& text, std::string_view word, std::uint32_t& first, std::uint32_t* second) {
    std::string_view rest = text;
    if (rest.substr(0, word.size()) != word) {
        return false;
    }
    rest.remove_prefix(word.size());
    const auto number = [&](std::uint32_t& value) {
        const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
        if (error != std::errc()) {
            return false;
        }
        rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
        return true;
    };
    if (!number(first)) {
        return false;
    }
    if (second != nullptr) {
        if (rest.substr(0, 1) != ".") {
            return false;
        }
        rest.remove_prefix(1);
        if (!number(*second)) {
            return false;
        }
    }
    text = rest;
    return true;
}

/// Edits that turn one text into the other.
std::size_t distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j) {
        row[j] = j;
    }
    for (std::size_t i = 1; i <= a.size(); ++i) {
        std::size_t diagonal = row[0];
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
            diagonal = row[j];
            row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
        }
    }
    return row[b.size()];
}

[[noreturn]] void refuse_unknown(const Cluster& cluster, const std::string& what) {
    const LinkNames& names = cluster.links().name;
    // Long lists are thinned by length before the costly comparison; the first of equals is named.
    std::optional<std::size_t> best;
    std::size_t least = std::max<std::size_t>(3, what.size() / 3) + 1;
    for (std::size_t i = 0; i < names.size(); ++i) {
        const std::string name = names[i];
        const std::size_t gap = std::max(name.size(), what.size()) - std::min(name.size(), what.size());
        if (gap < least) {
            const std::size_t edits = distance(what, name);
            if (edits < least) {
                least = edits;
                best = i;
            }
        }
    }
    refuse_build(
        "'{}': no link of this cluster; expected nic NODE.NIC, gpu NODE.GPU nvlink, gpu NODE.GPU pcie or a "
        "link name{}",
        what, best ? fmt::format("; did you mean '{}'?", names[*best]) : "");
}

/// Names of links of direct pairs are composed so when the graph is built.
std::vector<LinkId> direct_nvlinks(const Cluster& cluster, std::uint32_t node, std::uint32_t gpu,
                                   std::optional<std::uint32_t> peer) {
    std::vector<LinkId> found;
    std::vector<LinkId> route;
    for (std::uint32_t other = 0; other < cluster.gpus_per_node(); ++other) {
        const GpuId a{node * cluster.gpus_per_node() + gpu}, b{node * cluster.gpus_per_node() + other};
        if (other == gpu || (peer && *peer != other) || cluster.path_type(a, b) != PathType::nvl) {
            continue;
        }
        for (const auto& [from, to] : {std::pair{a, b}, std::pair{b, a}}) {
            route.clear();
            cluster.route(from, to, route);
            found.insert(found.end(), route.begin(), route.end());
        }
    }
    return found;
}

void check_member(const char* word, const std::string& what, std::uint32_t node, std::uint32_t nodes,
                  std::uint32_t local, std::uint32_t locals) {
    if (node >= nodes || local >= locals) {
        refuse_build("'{}': the cluster has nodes 0 to {} with {} {}s each", what, nodes - 1, locals, word);
    }
}

}  // namespace

std::vector<LinkId> links_named(const Cluster& cluster, const std::string& what) {
    std::string_view text = what;
    std::uint32_t node = 0, local = 0, peer = 0;
    std::vector<LinkId> found;
    if (take(text, "nic ", node, &local) && text.empty()) {
        check_member("NIC", what, node, cluster.node_count(), local, cluster.nics_per_node());
        const NicId nic{node * cluster.nics_per_node() + local};
        found = {cluster.nic_up(nic), cluster.nic_down(nic)};
    } else if (text = what; take(text, "gpu ", node, &local)) {
        const auto gpu = [&] { return GpuId{node * cluster.gpus_per_node() + local}; };
        const auto check_gpu = [&] {
            check_member("GPU", what, node, cluster.node_count(), local, cluster.gpus_per_node());
        };
        if (text == " pcie") {
            check_gpu();
            if (!cluster.has_pcie()) {
                refuse_build("'{}': the GPUs of this cluster have no PCIe link", what);
            }
            found = {cluster.pcie_up(gpu()), cluster.pcie_down(gpu())};
        } else if (text == " nvlink") {
            check_gpu();
            found = cluster.has_nvswitch() ? std::vector{cluster.nvlink_up(gpu()), cluster.nvlink_down(gpu())}
                                           : direct_nvlinks(cluster, node, local, std::nullopt);
            if (found.empty()) {
                refuse_build("'{}': this GPU has no NVLink", what);
            }
        } else if (take(text, " nvlink gpu ", peer, nullptr) && text.empty()) {
            check_gpu();
            check_member("GPU", what, node, cluster.node_count(), peer, cluster.gpus_per_node());
            found = cluster.has_nvswitch() ? std::vector<LinkId>() : direct_nvlinks(cluster, node, local, peer);
            if (found.empty()) {
                refuse_build("'{}': no direct NVLink joins these GPUs", what);
            }
        }
    }
    if (found.empty()) {
        const LinkNames& names = cluster.links().name;
        for (std::size_t i = 0; i < names.size(); ++i) {
            if (names[i] == what) {
                found.push_back(LinkId{static_cast<std::uint32_t>(i)});
            }
        }
    }
    if (found.empty()) {
        refuse_unknown(cluster, what);
    }
    std::sort(found.begin(), found.end());
    return found;
}

void apply(Cluster& cluster, const std::vector<Degradation>& degradations) {
    for (const Degradation& d : degradations) {
        const int ways = (d.factor != 1 ? 1 : 0) + (d.bytes_per_s != 0 ? 1 : 0) + (d.lanes_lost != 0 ? 1 : 0);
        if (ways != 1 || !(d.factor > 0 && d.factor <= 1) || !(d.bytes_per_s >= 0)) {
            refuse_build("'{}': one of factor {} (above 0, below 1), bytes_per_s {} and lanes_lost {} is expected",
                         d.what, d.factor, d.bytes_per_s, d.lanes_lost);
        }
        for (const LinkId link : links_named(cluster, d.what)) {
            const double present = bytes_per_s(cluster.links().capacity[index(link)]);
            double rate = d.bytes_per_s > 0 ? d.bytes_per_s : present * d.factor;
            if (d.lanes_lost > 0) {
                const std::uint32_t lanes = d.lanes > 0 ? d.lanes : cluster.links().parallel[index(link)];
                if (d.lanes_lost >= lanes) {
                    refuse_build("'{}': {} lanes lost of {}; a link that is gone is left out of the build", d.what,
                                 d.lanes_lost, lanes);
                }
                rate = present * (lanes - d.lanes_lost) / lanes;
            }
            if (!(rate >= 1 && rate <= present)) {
                refuse_build("'{}': {} bytes/s is not below the {} that {} has", d.what, rate, present,
                             cluster.links().name[index(link)]);
            }
            cluster.degrade(link, rate_from_bytes_per_s(rate), d.lanes == 0 ? d.lanes_lost : 0);
        }
    }
}

}  // namespace fabricast
