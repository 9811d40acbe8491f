#include "topologies/importers/nccl_xml.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "topologies/importers/machine_checks.hpp"
#include "topologies/importers/nccl_elements.hpp"
#include "topologies/importers/pci_ids.hpp"
#include "topologies/importers/pci_paths.hpp"
#include "topologies/importers/xml_document.hpp"

namespace fabricast::importers {
namespace {

/// From elements to a machine with paths.
class Composer {
public:
    Composer(const SourceText& source, NcclElements elements)
        : source_(source),
          machine_(std::move(elements.machine)),
          gpus_(std::move(elements.gpus)),
          any_links_(elements.any_links) {}

    Machine compose();

private:
    void add_bare_devices();
    void order_gpus();
    void place_paths();
    void add_links(std::vector<Path>& paths);
    void note_devices();

    const SourceText& source_;
    Machine machine_;
    std::vector<GpuElement> gpus_;
    bool any_links_;
};

/// GPUs and networks by PCI class, where the file has no element for any.
void Composer::add_bare_devices() {
    const bool bare_gpus = gpus_.empty(), bare_networks = machine_.nics.empty();
    for (std::size_t i = 0; i < machine_.pci.size(); ++i) {
        const PciDevice& device = machine_.pci[i];
        const int numa = machine_.numa[static_cast<std::size_t>(device.numa)].id;
        if (bare_gpus && device.kind == PciKind::gpu) {
            GpuElement element;
            element.gpu.number = static_cast<std::uint32_t>(gpus_.size());
            element.gpu.pci = static_cast<int>(i);
            element.gpu.bus_id = device.bus_id;
            element.gpu.numa = numa;
            element.line = device.line;
            gpus_.push_back(element);
        } else if (bare_networks && device.kind == PciKind::network) {
            Nic nic;
            nic.name = device.bus_id;
            nic.bus_id = device.bus_id;
            nic.rated_bits_per_s = network_card_bits_per_s(device.vendor, device.device);
            nic.card = static_cast<std::uint32_t>(machine_.nics.size());
            nic.numa = numa;
            nic.pci = static_cast<int>(i);
            nic.listed = false;
            machine_.nics.push_back(nic);
        }
    }
    if (bare_gpus && !gpus_.empty()) {
        machine_.note(
            NoteKind::fact, 0,
            "a static file: GPUs and networks are known by their PCI class, NVLink and port rates are not told");
    }
    for (GpuElement& element : gpus_) {
        if (element.gpu.pci >= 0) {
            const PciDevice& device = machine_.pci[static_cast<std::size_t>(element.gpu.pci)];
            const GpuCard card = gpu_card(device.vendor, device.device);
            element.gpu.model = card.model;
            if (element.gpu.sm == 0 && element.gpu.gfx == 0) {
                element.gpu.sm = card.sm;
            } else if (card.sm != 0 && element.gpu.sm != card.sm) {
                machine_.note(NoteKind::suspicious, element.line,
                              fmt::format("sm {} on a {}, which has {}", element.gpu.sm, card.model, card.sm));
            }
        }
    }
}

void Composer::order_gpus() {
    const bool all_numbered = std::all_of(gpus_.begin(), gpus_.end(), [](const GpuElement& e) { return e.has_number; });
    if (all_numbered) {
        std::stable_sort(gpus_.begin(), gpus_.end(),
                         [](const GpuElement& a, const GpuElement& b) { return a.gpu.number < b.gpu.number; });
        for (std::size_t i = 1; i < gpus_.size(); ++i) {
            if (gpus_[i].gpu.number == gpus_[i - 1].gpu.number) {
                source_.refuse(gpus_[i].line, fmt::format("<gpu dev='{}'> is there twice (also line {})",
                                                          gpus_[i].gpu.number, gpus_[i - 1].line));
            }
        }
    } else {
        for (std::size_t i = 0; i < gpus_.size(); ++i) {
            gpus_[i].gpu.number = static_cast<std::uint32_t>(i);
        }
    }
}

void Composer::place_paths() {
    const std::size_t ends = gpus_.size() + machine_.nics.size();
    std::vector<Path> paths(ends * ends);
    const auto pci_of = [&](std::size_t end) {
        return end < gpus_.size() ? gpus_[end].gpu.pci : machine_.nics[end - gpus_.size()].pci;
    };
    const auto c2c_of = [&](std::size_t end) { return end < gpus_.size() && gpus_[end].gpu.c2c_links > 0; };
    for (std::size_t a = 0; a < ends; ++a) {
        for (std::size_t b = 0; b < ends; ++b) {
            Path& path = paths[a * ends + b];
            if (a == b) {
                path.type = PathType::loc;
            } else if (pci_of(a) < 0 || pci_of(b) < 0) {
                path.type = PathType::sys;  // a virtual network, not under any device
            } else {
                path.type = pci_path(machine_, pci_of(a), pci_of(b));
                if (path.type == PathType::loc) {
                    path.type = PathType::pix;  // two ports of one card
                }
                const bool at_cpu = path.type == PathType::phb;
                if (at_cpu && (c2c_of(a) != c2c_of(b)) && (a >= gpus_.size() || b >= gpus_.size())) {
                    path.type = PathType::p2c;
                }
            }
        }
    }
    add_links(paths);
    for (GpuElement& element : gpus_) {
        machine_.gpus.push_back(element.gpu);
    }
    machine_.paths = std::move(paths);
}

void Composer::add_links(std::vector<Path>& paths) {
    const std::size_t ends = gpus_.size() + machine_.nics.size();
    std::map<std::string, std::size_t> gpu_at;
    for (std::size_t i = 0; i < gpus_.size(); ++i) {
        gpu_at.emplace(lower_case(gpus_[i].gpu.bus_id), i);
    }
    std::set<std::string> outside;
    std::map<std::pair<std::size_t, std::size_t>, std::uint32_t> told;  // from, to -> links
    for (std::size_t i = 0; i < gpus_.size(); ++i) {
        GpuElement& element = gpus_[i];
        std::uint32_t total = 0;
        for (const LinkTo& link : element.links) {
            const auto peer = gpu_at.find(link.target);
            if (peer != gpu_at.end() && peer->second == i) {
                machine_.note(
                    NoteKind::suspicious, link.line,
                    fmt::format("{} has {} links to itself; left out", gpu_name(element.gpu), machine_.link_name));
                continue;
            }
            total += link.count;
            if (link.to_switch) {
                element.switch_links += link.count;
                machine_.nvswitch = NvSwitch::told;
            } else if (peer != gpu_at.end()) {
                told[{i, peer->second}] += link.count;
            } else {
                outside.insert(link.target);
            }
        }
        if (any_links_ || element.gpu.sm > 0) {
            element.gpu.nvlinks = total;
        }
    }
    std::vector<std::string> unequal;
    for (std::size_t a = 0; a < gpus_.size(); ++a) {
        for (std::size_t b = a + 1; b < gpus_.size(); ++b) {
            const auto count = [&](std::size_t from, std::size_t to) {
                const auto entry = told.find({from, to});
                return entry == told.end() ? 0u : entry->second;
            };
            std::uint32_t links = std::min(count(a, b), count(b, a));
            if (count(a, b) != count(b, a)) {
                unequal.push_back(gpu_name(gpus_[a].gpu) + "-" + gpu_name(gpus_[b].gpu));
            }
            links = std::max(links, std::min(gpus_[a].switch_links, gpus_[b].switch_links));
            if (links > 0) {
                paths[a * ends + b] =
                    paths[b * ends + a] = {PathType::nvl, static_cast<std::uint16_t>(std::min(links, 99u))};
            }
        }
    }
    if (!unequal.empty()) {
        machine_.note(NoteKind::repaired, 0,
                      fmt::format("{} counts differ by direction at {}; the lesser was taken", machine_.link_name,
                                  listed(unequal)));
    }
    if (!outside.empty()) {
        machine_.note(NoteKind::fact, 0,
                      fmt::format("{} targets that are not in the file: {}; the dump shows part of the machine",
                                  machine_.link_name, listed({outside.begin(), outside.end()})));
    }
}

void Composer::note_devices() {
    std::map<std::string, const PciDevice*> by_bus;
    std::size_t without_class = 0;
    for (const PciDevice& device : machine_.pci) {
        without_class += device.kind == PciKind::unknown ? 1 : 0;
        const bool wildcard = starts_with(device.bus_id, "ffff:ff");
        const auto [first, is_new] = by_bus.emplace(device.bus_id, &device);
        if (device.bus_id.empty()) {
            machine_.note(NoteKind::suspicious, device.line, "<pci> without busid");
        } else if (!is_new && !wildcard) {
            machine_.note(NoteKind::suspicious, device.line,
                          fmt::format("bus id {} is also on line {}", device.bus_id, first->second->line));
        }
    }
    if (without_class > 0) {
        machine_.note(NoteKind::suspicious, 0,
                      fmt::format("{} PCI devices without class: NCCL asks the running machine what they are, the file "
                                  "does not tell which are GPUs",
                                  without_class));
    }
    std::vector<std::string> without_affinity;
    for (const NumaNode& numa : machine_.numa) {
        if (numa.cpus.empty()) {
            without_affinity.push_back(fmt::format("NUMA node {}", numa.id));
        }
    }
    if (!without_affinity.empty()) {
        machine_.note(NoteKind::fact, 0, "no CPU affinity for " + listed(without_affinity));
    }
    const bool amd = std::any_of(gpus_.begin(), gpus_.end(), [](const GpuElement& e) { return e.gpu.gfx > 0; });
    if (amd) {
        machine_.note(NoteKind::fact, 0, fmt::format("AMD GPUs (gfx{}), written by RCCL", gpus_.front().gpu.gfx));
    }
}

Machine Composer::compose() {
    const bool told_gpus = !gpus_.empty();
    add_bare_devices();
    order_gpus();
    if (const std::uint32_t fused = fuse_two_level_switches(machine_); fused > 0) {
        machine_.note(NoteKind::fact, 0,
                      fmt::format("{} second-level PCIe switches count as one with their parent, as in NCCL", fused));
    }
    place_paths();
    note_devices();
    complete(machine_, told_gpus);
    return std::move(machine_);
}

}  // namespace

Machine read_nccl_xml(const SourceText& source) {
    if (const std::size_t graphs = find_element(source.text(), "graphs"); graphs != std::string_view::npos) {
        source.refuse(
            source.line_number(graphs),
            "a NCCL graph dump (<graphs>, written by NCCL_GRAPH_DUMP_FILE): it lists rings and trees, not the "
            "machine; the topology (<system>, written by NCCL_TOPO_DUMP_FILE) is expected");
    }
    return Composer(source, read_nccl_elements(source)).compose();
}

}  // namespace fabricast::importers
