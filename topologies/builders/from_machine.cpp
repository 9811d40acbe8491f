#include "topologies/builders/from_machine.hpp"

#include <algorithm>
#include <map>
#include <vector>

#include "topologies/builders/checks.hpp"
#include "topologies/importers/pci_paths.hpp"

namespace fabricast {
namespace {

using Told = importers::PathType;

/// Ends (GPUs, then NICs) in classes: two are in one when a chain of paths no worse than a type joins them.
class Classes {
public:
    explicit Classes(std::size_t ends) : first_(ends) {
        for (std::size_t i = 0; i < ends; ++i) {
            first_[i] = i;
        }
    }
    void join(std::size_t a, std::size_t b) {
        const std::size_t from = std::max(first_[a], first_[b]), to = std::min(first_[a], first_[b]);
        std::replace(first_.begin(), first_.end(), from, to);
    }
    std::size_t of(std::size_t end) const { return first_[end]; }  ///< least member
    std::size_t size(std::size_t end) const {
        return static_cast<std::size_t>(std::count(first_.begin(), first_.end(), first_[end]));
    }

private:
    std::vector<std::size_t> first_;
};

/// PCIe path of two ends, also where NVLink hides it.
Told pcie_path(const importers::Machine& machine, std::size_t a, std::size_t b) {
    const Told told = machine.paths[a * machine.ends() + b].type;
    const bool hidden = told == Told::nvl || told == Told::nvb || told == Told::c2c;
    if (!hidden) {
        return told == Told::p2c || told == Told::pxn ? Told::phb : told;
    }
    const importers::Gpu &x = machine.gpus[a], &y = machine.gpus[b];
    if (x.pci >= 0 && y.pci >= 0) {
        return importers::pci_path(machine, x.pci, y.pci);
    }
    return x.numa >= 0 && x.numa == y.numa ? Told::node : Told::sys;
}

Classes classes_within(const importers::Machine& machine, Told limit) {
    Classes classes(machine.ends());
    for (std::size_t a = 0; a < machine.ends(); ++a) {
        for (std::size_t b = a + 1; b < machine.ends(); ++b) {
            if (pcie_path(machine, a, b) <= limit) {
                classes.join(a, b);
            }
        }
    }
    return classes;
}

/// Gives every end its place, and fills switches and hosts.
std::vector<ServerShape::Place> place_ends(const importers::Machine& machine, const ServerRates& rates,
                                           ServerShape& shape) {
    const Classes pix = classes_within(machine, Told::pix), pxb = classes_within(machine, Told::pxb),
                  phb = classes_within(machine, Told::phb), node = classes_within(machine, Told::node);
    std::map<std::size_t, std::uint32_t> hosts, numas;
    std::map<std::size_t, int> upper, lower;  // class -> switch
    std::vector<ServerShape::Place> places;
    const auto add_switch = [&](ServerShape::Place above) {
        shape.switches.push_back({above, rates.uplink_bytes_per_s});
        return static_cast<int>(shape.switches.size()) - 1;
    };
    for (std::size_t end = 0; end < machine.ends(); ++end) {
        const auto numa = numas.emplace(node.of(end), static_cast<std::uint32_t>(numas.size())).first->second;
        const auto [host, is_new] = hosts.emplace(phb.of(end), static_cast<std::uint32_t>(hosts.size()));
        if (is_new) {
            shape.hosts.push_back({numa});
        }
        ServerShape::Place place = {-1, host->second};
        if (pxb.size(end) > pix.size(end)) {
            const auto known = upper.find(pxb.of(end));
            place.switch_index = known != upper.end() ? known->second : upper[pxb.of(end)] = add_switch(place);
        }
        if (pxb.size(end) > 1) {
            const auto known = lower.find(pix.of(end));
            place.switch_index = known != lower.end() ? known->second : lower[pix.of(end)] = add_switch(place);
        }
        places.push_back(place);
    }
    return places;
}

/// The lesser of what the file and the caller say; 0: not said.
double lesser(double told, double most, const std::string& what) {
    if (told <= 0 && most <= 0) {
        refuse_build("{}: its rate is not in the file and not given", what);
    }
    return told <= 0 ? most : most <= 0 ? told : std::min(told, most);
}

void add_nvlink(const importers::Machine& machine, const MachineRates& rates, ServerShape& shape) {
    const bool told =
        machine.nvswitch == importers::NvSwitch::told || machine.nvswitch == importers::NvSwitch::inferred;
    const bool assumed =
        machine.kind == importers::MachineKind::not_told && rates.nvswitch_links > 0 && machine.gpus.size() > 1;
    if (told || assumed) {
        shape.nvswitch = true;
        for (const importers::Gpu& gpu : machine.gpus) {
            const std::uint32_t links =
                told ? gpu.nvlinks.value_or(machine.nvlinks_per_gpu.value_or(rates.nvswitch_links))
                     : rates.nvswitch_links;
            check_positive("nvlink_bytes_per_s", links * rates.rates.nvlink_bytes_per_s, "where a server has NVLink");
            shape.nvswitch_bytes_per_s.push_back(links * rates.rates.nvlink_bytes_per_s);
        }
        return;
    }
    for (std::uint32_t a = 0; a < machine.gpus.size(); ++a) {
        for (std::uint32_t b = a + 1; b < machine.gpus.size(); ++b) {
            const importers::Path path = machine.gpu_path(a, b);
            if (path.type == Told::nvl) {
                shape.pairs.push_back({a, b, std::max<std::uint32_t>(1, path.nvlinks)});
            }
        }
    }
}

}  // namespace

PathType path_type_of(importers::PathType type) {
    switch (type) {
        case Told::loc: return PathType::loc;
        case Told::nvl: return PathType::nvl;
        case Told::nvb: return PathType::nvb;
        case Told::c2c: return PathType::c2c;
        case Told::pix: return PathType::pix;
        case Told::pxb: return PathType::pxb;
        case Told::p2c: return PathType::p2c;
        case Told::pxn: return PathType::pxn;
        case Told::phb: return PathType::phb;
        case Told::node: return PathType::node;
        case Told::sys: return PathType::sys;
        default: return PathType::dis;
    }
}

ServerShape server_from_machine(const importers::Machine& machine, const MachineRates& rates) {
    if (machine.gpus.empty()) {
        refuse_build("{}: no GPU in it", machine.source);
    }
    check_positive("pcie_efficiency", rates.pcie_efficiency, "(achieved / raw)");
    check_positive("nic_efficiency", rates.nic_efficiency, "(achieved / line rate)");
    ServerShape shape;
    shape.rates = rates.rates;
    const std::vector<ServerShape::Place> places = place_ends(machine, rates.rates, shape);
    const auto nics_of_gpus = importers::nics_of_gpus(machine);
    for (std::size_t g = 0; g < machine.gpus.size(); ++g) {
        const importers::Gpu& gpu = machine.gpus[g];
        ServerShape::GpuPart part;
        part.place = places[g];
        part.pcie_bytes_per_s = lesser(importers::pcie_bytes_per_s(machine, gpu.pci) * rates.pcie_efficiency,
                                       rates.rates.pcie_bytes_per_s, "PCIe of " + importers::gpu_name(gpu));
        part.nics = nics_of_gpus[g];
        shape.c2c = shape.c2c || gpu.c2c_links > 0;
        shape.gpus.push_back(part);
    }
    for (std::size_t n = 0; n < machine.nics.size(); ++n) {
        const importers::Nic& nic = machine.nics[n];
        const double port =
            lesser(nic.bits_per_s / 8 * rates.nic_efficiency, rates.rates.nic_bytes_per_s, "NIC " + nic.name);
        shape.nics.push_back({places[machine.gpus.size() + n],
                              lesser(importers::pcie_bytes_per_s(machine, nic.pci) * rates.pcie_efficiency, port,
                                     "PCIe of NIC " + nic.name)});
    }
    add_nvlink(machine, rates, shape);
    return shape;
}

Cluster build_from_machine(const importers::Machine& machine, const MachineRates& rates, const FabricShape& fabric) {
    return build_cluster_of(server_from_machine(machine, rates), fabric);
}

}  // namespace fabricast
