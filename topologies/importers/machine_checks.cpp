#include "topologies/importers/machine_checks.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>

#include "topologies/importers/pci_ids.hpp"
#include "topologies/importers/source_text.hpp"

namespace fabricast::importers {
namespace {

using Names = std::vector<std::string>;

bool near_enough(PathType type) { return type <= PathType::p2c; }  // GPUDirect RDMA without the host bridge

/// "GPU0 and GPU2 (x8)", or "all GPUs (x8)"; by_value: value -> GPUs that have it.
std::string gpus_by_value(const Machine& machine, const std::map<std::string, Names>& by_value) {
    Names parts;
    for (const auto& [value, names] : by_value) {
        const bool all = names.size() == machine.gpus.size() && names.size() > 1;
        parts.push_back((all ? "all GPUs" : listed(names)) + " (" + value + ")");
    }
    return listed(parts);
}

std::uint32_t neighbours(const Machine& machine, std::size_t gpu) {
    std::uint32_t count = 0;
    for (std::size_t peer = 0; peer < machine.gpus.size(); ++peer) {
        count += machine.gpu_path(gpu, peer).type == PathType::nvl ? 1 : 0;
    }
    return count;
}

/// Link totals of GPUs and the switch, from the pairs.
void count_links(Machine& machine) {
    bool switched = machine.nvswitch == NvSwitch::told;
    std::vector<std::uint32_t> sums(machine.gpus.size()), most(machine.gpus.size());
    for (std::size_t a = 0; a < machine.gpus.size(); ++a) {
        for (std::size_t b = 0; b < machine.gpus.size(); ++b) {
            sums[a] += machine.gpu_path(a, b).nvlinks;
            most[a] = std::max<std::uint32_t>(most[a], machine.gpu_path(a, b).nvlinks);
        }
        switched = switched || sums[a] > kMostNvlinksOfAGpu;
    }
    if (machine.nvswitch != NvSwitch::told) {
        machine.nvswitch = switched ? NvSwitch::inferred : NvSwitch::absent;
    }
    for (std::size_t gpu = 0; gpu < machine.gpus.size(); ++gpu) {
        if (!machine.gpus[gpu].nvlinks) {
            machine.gpus[gpu].nvlinks = switched ? most[gpu] : sums[gpu];
        }
    }
}

MachineKind kind_of(const Machine& machine) {
    if (machine.nvswitch == NvSwitch::told || machine.nvswitch == NvSwitch::inferred) {
        return MachineKind::nvswitch;
    }
    bool cube = machine.gpus.size() == 8, pairs = true, any = false;
    for (std::size_t gpu = 0; gpu < machine.gpus.size(); ++gpu) {
        const std::uint32_t count = neighbours(machine, gpu);
        cube = cube && count == 4;
        pairs = pairs && count <= 1;
        any = any || count > 0 || machine.gpus[gpu].nvlinks.value_or(0) > 0;
    }
    if (!any) {
        return MachineKind::pcie_only;
    }
    if (machine.gpus.size() < 2) {
        return MachineKind::nvlink_mesh;  // one visible GPU of several
    }
    return cube ? MachineKind::hybrid_cube_mesh : pairs ? MachineKind::nvlink_pairs : MachineKind::nvlink_mesh;
}

/// From link counts alone, for files that name no GPU.
std::string likeness(const Machine& machine) {
    const std::uint32_t links = machine.nvlinks_per_gpu.value_or(0);
    if (machine.kind == MachineKind::nvswitch) {
        return links == 18   ? "NVSwitch board with 18 links a GPU: H100, H200 or B200"
               : links == 12 ? "NVSwitch board with 12 links a GPU: A100"
               : links == 8  ? "NVSwitch board with 8 links a GPU: A800 or H800"
               : links == 6  ? "NVSwitch board with 6 links a GPU: V100 (DGX-2)"
                             : "";
    }
    if (machine.kind == MachineKind::hybrid_cube_mesh) {
        return links == 6   ? "hybrid cube mesh with 6 links a GPU: V100 (DGX-1)"
               : links == 4 ? "hybrid cube mesh with 4 links a GPU: P100 (DGX-1)"
                            : "";
    }
    return "";
}

void check_link_counts(Machine& machine) {
    std::uint32_t most = 0;
    for (const Gpu& gpu : machine.gpus) {
        most = std::max(most, gpu.nvlinks.value_or(0));
    }
    machine.nvlinks_per_gpu = most;
    Names below;
    for (const Gpu& gpu : machine.gpus) {
        if (gpu.nvlinks.value_or(0) < most) {
            below.push_back(fmt::format("{} ({})", gpu_name(gpu), gpu.nvlinks.value_or(0)));
        }
    }
    if (!below.empty()) {
        machine.note(NoteKind::suspicious, 0,
                     fmt::format("fewer {} links than the {} of the others: {}; lanes are down or not trained",
                                 machine.link_name, most, listed(below)));
    }
    const bool switched = machine.kind == MachineKind::nvswitch;
    const int sm = machine.gpus.empty() ? 0 : machine.gpus.front().sm;
    const std::uint32_t usual = usual_nvlinks(sm);
    const bool cut_down_part = most == 8;  // A800, H800
    if (switched && usual > 0 && most < usual && !cut_down_part) {
        machine.note(NoteKind::suspicious, 0,
                     fmt::format("{} NVLinks a GPU; boards with compute capability {}.{} have {}", most, sm / 10,
                                 sm % 10, usual));
    } else if (switched && usual == 0 && most != 6 && most != 8 && most != 12 && most != 18) {
        const std::uint32_t next = most < 6 ? 6 : most < 8 ? 8 : most < 12 ? 12 : 18;
        machine.note(NoteKind::suspicious, 0,
                     fmt::format("NV{} between all GPUs: NVSwitch boards have 6, 8, 12 or 18 links a GPU, so {} of {} "
                                 "are missing on every one",
                                 most, next - most, next));
    }
    if (switched) {
        Names missing;
        for (std::size_t a = 0; a < machine.gpus.size(); ++a) {
            for (std::size_t b = a + 1; b < machine.gpus.size(); ++b) {
                if (machine.gpu_path(a, b).type != PathType::nvl) {
                    missing.push_back(gpu_name(machine.gpus[a]) + "-" + gpu_name(machine.gpus[b]));
                }
            }
        }
        if (!missing.empty()) {
            machine.note(NoteKind::suspicious, 0,
                         "pairs without NVLink on an NVSwitch machine: " + listed(missing) +
                             "; a GPU left the fabric or the machine is partitioned");
        }
    } else if (machine.gpus.size() == 2 && most >= kMostNvlinksOfAGpu) {
        machine.note(NoteKind::fact, 0,
                     fmt::format("two GPUs with {} links: taken as a direct pair; a slice of an NVSwitch board prints "
                                 "the same",
                                 most));
    }
}

void check_near_nics(Machine& machine) {
    if (machine.nics.empty() || machine.gpus.empty()) {
        return;
    }
    const auto nearest = nearest_nics(machine);
    Names far;
    std::map<std::vector<std::uint32_t>, Names> sharers;
    for (std::size_t gpu = 0; gpu < nearest.size(); ++gpu) {
        const PathType type =
            nearest[gpu].empty() ? PathType::dis : machine.gpu_nic_path(gpu, nearest[gpu].front()).type;
        if (near_enough(type)) {
            sharers[nearest[gpu]].push_back(gpu_name(machine.gpus[gpu]));
        } else {
            far.push_back(fmt::format("{} ({})", gpu_name(machine.gpus[gpu]), path_name(type)));
        }
    }
    if (far.size() == machine.gpus.size()) {
        machine.note(NoteKind::fact, 0,
                     "no GPU has a NIC under its own PCIe switch: network traffic passes the host bridge");
    } else if (!far.empty()) {
        machine.note(NoteKind::suspicious, 0,
                     "GPUs without a near NIC: " + listed(far) +
                         "; their traffic crosses the host bridge or goes "
                         "through another GPU");
    }
    for (const auto& [nics, gpus] : sharers) {
        Names names;
        for (const std::uint32_t nic : nics) {
            names.push_back(machine.nics[nic].name);
        }
        if (gpus.size() > nics.size()) {
            machine.note(NoteKind::suspicious, 0, fmt::format("{} share {}", listed(gpus), listed(names)));
        } else if (gpus.size() > 1) {
            machine.note(
                NoteKind::fact, 0,
                fmt::format("{} are equally near to {}: divided among them in order", listed(gpus), listed(names)));
        }
    }
}

void check_pcie(Machine& machine) {
    std::map<std::string, Names> slow, narrow;
    for (const Gpu& gpu : machine.gpus) {
        if (gpu.pci < 0) {
            continue;
        }
        const PciDevice& device = machine.pci[static_cast<std::size_t>(gpu.pci)];
        const double able = card_gigatransfers_per_s(gpu.sm);
        if (device.gigatransfers_per_s > 0 && device.gigatransfers_per_s < able) {
            slow[fmt::format("{} of {} GT/s", device.gigatransfers_per_s, able)].push_back(gpu_name(gpu));
        }
        if (device.width > 0 && device.width < 16) {
            narrow[fmt::format("x{}", device.width)].push_back(gpu_name(gpu));
        }
    }
    if (!slow.empty()) {
        machine.note(NoteKind::suspicious, 0, "PCIe link slower than the card can do: " + gpus_by_value(machine, slow));
    }
    if (!narrow.empty()) {
        machine.note(NoteKind::suspicious, 0, "PCIe link narrower than x16: " + gpus_by_value(machine, narrow));
    }
    Names upward;
    std::uint32_t line = 0;
    for (const PciDevice& device : machine.pci) {
        if (device.parent < 0) {
            continue;
        }
        const PciDevice& above = machine.pci[static_cast<std::size_t>(device.parent)];
        const double rate_above = pcie_link_bytes_per_s(above);
        if (rate_above > 0 && rate_above < pcie_link_bytes_per_s(device) &&
            std::find(upward.begin(), upward.end(), above.bus_id) == upward.end()) {
            upward.push_back(above.bus_id);
            line = line == 0 ? above.line : line;
        }
    }
    if (!upward.empty()) {
        machine.note(NoteKind::suspicious, line,
                     "PCIe switches whose link upwards is slower than one below: " + listed(upward) +
                         "; an idle link saves power and then reports a low rate");
    }
}

void check_port_rates(Machine& machine) {
    static const std::set<double> rates = {1e9,  2.5e9, 5e9,   10e9,  20e9,  25e9, 40e9,
                                           50e9, 56e9,  100e9, 200e9, 400e9, 800e9};
    std::map<double, Names> by_rate;
    for (const Nic& nic : machine.nics) {
        if (nic.listed) {
            by_rate[nic.bits_per_s].push_back(nic.name);
        }
    }
    for (const auto& [rate, names] : by_rate) {
        const double gigabits = rate / 1e9;
        if (rate <= 0) {
            if (machine.format.find("XML") != std::string::npos) {
                machine.note(NoteKind::suspicious, 0, "no port rate told for " + listed(names));
            }
        } else if (rate < 10e9) {
            machine.note(NoteKind::suspicious, 0,
                         fmt::format("port rate {} Gb/s of {}: a management port, or a rate the driver did not tell",
                                     gigabits, listed(names)));
        } else if (rate == 10e9) {
            machine.note(
                NoteKind::fact, 0,
                fmt::format("port rate 10 Gb/s of {}: NCCL also writes this for an unknown rate", listed(names)));
        } else if (rates.count(rate) == 0) {
            machine.note(NoteKind::suspicious, 0,
                         fmt::format("port rate {} Gb/s of {}: no port has this rate", gigabits, listed(names)));
        }
    }
    for (const Nic& nic : machine.nics) {
        if (nic.rated_bits_per_s > 0 && nic.bits_per_s > nic.rated_bits_per_s) {
            machine.note(NoteKind::suspicious, 0,
                         fmt::format("{} tells {} Gb/s, its card has {} Gb/s at most", nic.name, nic.bits_per_s / 1e9,
                                     nic.rated_bits_per_s / 1e9));
        }
        const double pcie = nic.pci < 0 ? 0 : pcie_link_bytes_per_s(machine.pci[static_cast<std::size_t>(nic.pci)]) * 8;
        const double wanted = nic.bits_per_s * nic.ports_on_card;
        if (pcie > 0 && wanted > pcie) {
            machine.note(NoteKind::suspicious, 0,
                         fmt::format("{} tells {} Gb/s on {} port(s), its PCIe link carries {:.0f} Gb/s", nic.name,
                                     nic.bits_per_s / 1e9, nic.ports_on_card, pcie / 1e9));
        }
    }
}

void check_numa(Machine& machine) {
    Names missing, contradicting;
    for (std::size_t a = 0; a < machine.gpus.size(); ++a) {
        if (machine.gpus[a].numa < 0) {
            missing.push_back(gpu_name(machine.gpus[a]));
        }
        for (std::size_t nic = 0; nic < machine.nics.size(); ++nic) {
            const bool same_node = machine.gpu_nic_path(a, nic).type <= PathType::node;
            const bool one_known = machine.gpus[a].numa >= 0 && machine.nics[nic].numa >= 0;
            if (same_node && one_known && machine.gpus[a].numa != machine.nics[nic].numa) {
                contradicting.push_back(gpu_name(machine.gpus[a]) + "-" + machine.nics[nic].name);
            }
        }
    }
    if (!missing.empty()) {
        const bool all = missing.size() == machine.gpus.size();
        machine.note(NoteKind::fact, 0, "no NUMA node told for " + (all ? "any GPU" : listed(missing)));
    }
    if (!contradicting.empty()) {
        machine.note(
            NoteKind::suspicious, 0,
            "told to be within one NUMA node by their path but on two by their NUMA ids: " + listed(contradicting));
    }
}

}  // namespace

void complete(Machine& machine, bool told_nvlinks) {
    if (told_nvlinks) {
        count_links(machine);
        machine.kind = kind_of(machine);
        check_link_counts(machine);
        machine.looks_like = likeness(machine);
    }
    if (!told_nvlinks && !machine.gpus.empty() && machine.gpus.front().model.find("SXM") != std::string::npos) {
        machine.looks_like = fmt::format("{}: its boards have {} NVLinks a GPU, the file does not tell them",
                                         machine.gpus.front().model, usual_nvlinks(machine.gpus.front().sm));
    }
    check_near_nics(machine);
    check_pcie(machine);
    check_port_rates(machine);
    check_numa(machine);
}

}  // namespace fabricast::importers
