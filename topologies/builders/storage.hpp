// Storage servers on the network of the job: what all of them take in and give together, as two links behind the top of the
// fabric.
//
//   a server's host -> NIC up -> up links of the fabric, lowest first -> intake          (writes)
//   outlet -> down links of the fabric, highest first -> NIC down -> a server's host     (reads)
//
// Data are striped over all storage servers, so that they fill evenly and stand as one link each way. Where routes do not climb
// levels (grids, described networks) the NIC alone is shared. The cluster stays as it is: the two links are appended to a copy
// of its capacities. Not modelled: the servers' own adapters (they are the intake), hot spots of metadata, the host's PCIe.
#pragma once

#include <vector>

#include "topologies/graph/cluster.hpp"

namespace fabricast {

struct Storage {
    std::vector<Rate> capacity;  ///< of the cluster's links, then intake and outlet
    LinkId intake, outlet;
};

/// Rates in byte/s, above 0. Precondition: the cluster has NICs.
Storage attach_storage(const Cluster& cluster, double write_bytes_per_s, double read_bytes_per_s);

/// Appends the links of a write from, or a read to, the server behind a NIC.
void append_write(const Cluster& cluster, const Storage& storage, GpuId gpu, std::vector<LinkId>& out);
void append_read(const Cluster& cluster, const Storage& storage, GpuId gpu, std::vector<LinkId>& out);

}  // namespace fabricast
