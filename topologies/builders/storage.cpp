#include "topologies/builders/storage.hpp"

#include <cassert>

namespace fabricast {

Storage attach_storage(const Cluster& cluster, double write_bytes_per_s, double read_bytes_per_s) {
    assert(write_bytes_per_s > 0 && read_bytes_per_s > 0 && cluster.nics_per_node() > 0 && "storage on a network");
    Storage storage;
    storage.capacity = cluster.links().capacity;
    const auto first = static_cast<std::uint32_t>(storage.capacity.size());
    storage.intake = LinkId{first};
    storage.outlet = LinkId{first + 1};
    storage.capacity.push_back(rate_from_bytes_per_s(write_bytes_per_s));
    storage.capacity.push_back(rate_from_bytes_per_s(read_bytes_per_s));
    return storage;
}

void append_write(const Cluster& cluster, const Storage& storage, GpuId gpu, std::vector<LinkId>& out) {
    out.push_back(cluster.nic_up(cluster.nic_of(gpu)));
    if (cluster.has_ends()) {
        const std::span<const LinkId> levels = cluster.ends(gpu).levels;
        for (std::size_t level = 0; level < levels.size(); level += 2)
            out.push_back(levels[level]);
    }
    out.push_back(storage.intake);
}

void append_read(const Cluster& cluster, const Storage& storage, GpuId gpu, std::vector<LinkId>& out) {
    out.push_back(storage.outlet);
    if (cluster.has_ends()) {
        const std::span<const LinkId> levels = cluster.ends(gpu).levels;
        for (std::size_t level = levels.size(); level > 0; level -= 2)
            out.push_back(levels[level - 1]);
    }
    out.push_back(cluster.nic_down(cluster.nic_of(gpu)));
}

}  // namespace fabricast
