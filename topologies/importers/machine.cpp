#include "topologies/importers/machine.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

namespace fabricast::importers {

std::string path_name(PathType type) {
    constexpr const char* names[] = {"LOC", "NVL", "NVB", "C2C",  "PIX", "PXB",
                                     "P2C", "PXN", "PHB", "NODE", "SYS", "DIS"};
    return names[static_cast<std::size_t>(type)];
}

std::string machine_kind_name(MachineKind kind) {
    constexpr const char* names[] = {"NVSwitch",     "hybrid cube mesh", "NVLink mesh",
                                     "NVLink pairs", "PCIe only",        "not told"};
    return names[static_cast<std::size_t>(kind)];
}

std::string gpu_name(const Gpu& gpu) { return fmt::format("GPU{}", gpu.number); }

std::vector<std::pair<std::string, std::uint32_t>> link_classes(const Machine& machine) {
    std::map<std::pair<PathType, std::uint16_t>, std::uint32_t> counts;
    for (std::size_t a = 0; a < machine.gpus.size(); ++a) {
        for (std::size_t b = a + 1; b < machine.gpus.size(); ++b) {
            const Path path = machine.gpu_path(a, b);
            ++counts[{path.type, path.type == PathType::nvl ? path.nvlinks : std::uint16_t{0}}];
        }
    }
    std::vector<std::pair<std::string, std::uint32_t>> classes;
    for (const auto& [path, count] : counts) {
        classes.emplace_back(path.first == PathType::nvl ? fmt::format("NV{}", path.second) : path_name(path.first),
                             count);
    }
    return classes;
}

std::size_t listed_nics(const Machine& machine) {
    return static_cast<std::size_t>(
        std::count_if(machine.nics.begin(), machine.nics.end(), [](const Nic& nic) { return nic.listed; }));
}

std::size_t bare_nics(const Machine& machine) { return machine.nics.size() - listed_nics(machine); }

std::vector<std::vector<std::uint32_t>> nearest_nics(const Machine& machine) {
    std::vector<std::vector<std::uint32_t>> nearest(machine.gpus.size());
    for (std::size_t gpu = 0; gpu < machine.gpus.size(); ++gpu) {
        PathType best = PathType::dis;
        for (std::size_t nic = 0; nic < machine.nics.size(); ++nic) {
            const PathType type = machine.gpu_nic_path(gpu, nic).type;
            if (type < best) {
                best = type;
                nearest[gpu].clear();
            }
            if (type == best) {
                nearest[gpu].push_back(static_cast<std::uint32_t>(nic));
            }
        }
    }
    return nearest;
}

std::vector<std::vector<std::uint32_t>> nics_of_gpus(const Machine& machine) {
    const std::vector<std::vector<std::uint32_t>> nearest = nearest_nics(machine);
    std::map<std::vector<std::uint32_t>, std::vector<std::size_t>> sharers;  // set of NICs -> its GPUs, in order
    for (std::size_t gpu = 0; gpu < nearest.size(); ++gpu) {
        sharers[nearest[gpu]].push_back(gpu);
    }
    std::vector<std::vector<std::uint32_t>> assigned(nearest.size());
    for (const auto& [nics, gpus] : sharers) {
        for (std::size_t i = 0; i < gpus.size() && !nics.empty(); ++i) {
            const std::size_t begin = i * nics.size() / gpus.size();
            const std::size_t end = std::max(begin + 1, (i + 1) * nics.size() / gpus.size());
            assigned[gpus[i]].assign(nics.begin() + static_cast<std::ptrdiff_t>(begin),
                                     nics.begin() + static_cast<std::ptrdiff_t>(end));
        }
    }
    return assigned;
}

double pcie_link_bytes_per_s(const PciDevice& device) {
    const double raw = device.gigatransfers_per_s * 1e9 * device.width / 8;
    const double encoding = device.gigatransfers_per_s <= 5 ? 0.8 : device.gigatransfers_per_s <= 32 ? 128.0 / 130 : 1;
    return raw * encoding;
}

double pcie_bytes_per_s(const Machine& machine, int pci) {
    double least = 0;
    for (int at = pci; at >= 0; at = machine.pci[static_cast<std::size_t>(at)].parent) {
        const PciDevice& device = machine.pci[static_cast<std::size_t>(at)];
        const double rate = device.fused ? 0 : pcie_link_bytes_per_s(device);
        if (rate > 0 && (least == 0 || rate < least)) {
            least = rate;
        }
    }
    return least;
}

}  // namespace fabricast::importers
