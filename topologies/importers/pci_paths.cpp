#include "topologies/importers/pci_paths.hpp"

#include <algorithm>
#include <vector>

#include "topologies/importers/pci_ids.hpp"

namespace fabricast::importers {
namespace {

/// PCIe generation of a Broadcom switch in base mode at this level of its two, 0 when it is none.
/// Ids from NCCL's getBcmGen: subsystem device 0xa000.. (gen 4), 0x0000.. and 0x1000.. (gen 5, upper and lower level).
int broadcom_generation(const PciDevice& device, std::uint32_t level) {
    if (device.vendor != kVendorBroadcom || device.subsystem_vendor != kVendorBroadcom) {
        return 0;
    }
    const std::uint32_t family = device.subsystem_device & 0xf000;
    if (device.device == 0xc010 && family == 0xa000) {
        return 4;
    }
    return device.device == 0xc030 && family == level * 0x1000 ? 5 : 0;
}

/// Bridges from the device upwards, itself included when it is one, fused ones left out.
std::vector<int> bridges_above(const Machine& machine, int device) {
    std::vector<int> chain;
    for (int at = device; at >= 0; at = machine.pci[static_cast<std::size_t>(at)].parent) {
        const bool counts = at != device && !machine.pci[static_cast<std::size_t>(at)].fused;
        if (counts) {
            chain.push_back(at);
        }
    }
    return chain;
}

}  // namespace

std::uint32_t fuse_two_level_switches(Machine& machine) {
    std::uint32_t fused = 0;
    for (PciDevice& device : machine.pci) {
        if (device.parent < 0 || device.kind != PciKind::bridge) {
            continue;
        }
        const int generation = broadcom_generation(machine.pci[static_cast<std::size_t>(device.parent)], 0);
        if (generation != 0 && broadcom_generation(device, 1) == generation) {
            device.fused = true;
            ++fused;
        }
    }
    return fused;
}

PathType pci_path(const Machine& machine, int a, int b) {
    if (a == b) {
        return PathType::loc;
    }
    if (machine.pci[static_cast<std::size_t>(a)].numa != machine.pci[static_cast<std::size_t>(b)].numa) {
        return PathType::sys;
    }
    const std::vector<int> above_a = bridges_above(machine, a);
    const std::vector<int> above_b = bridges_above(machine, b);
    for (std::size_t i = 0; i < above_a.size(); ++i) {
        const auto common = std::find(above_b.begin(), above_b.end(), above_a[i]);
        if (common != above_b.end()) {
            const bool one_bridge = i == 0 && common == above_b.begin();
            return one_bridge ? PathType::pix : PathType::pxb;
        }
    }
    return PathType::phb;
}

}  // namespace fabricast::importers
