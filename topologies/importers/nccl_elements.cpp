#include "topologies/importers/nccl_elements.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <utility>

#include <fmt/format.h>

#include "topologies/importers/pci_ids.hpp"
#include "topologies/importers/xml_document.hpp"

namespace fabricast::importers {
namespace {

constexpr int kDeepest = 32;  ///< PCIe trees of servers have five levels
constexpr std::size_t kMostDevices = 4096;

class Reader {
public:
    explicit Reader(const SourceText& source) : source_(source), xml_(source, "system") {}

    NcclElements read();

private:
    std::string text(pugi::xml_node node, const char* name) const { return node.attribute(name).as_string(); }
    int integer(pugi::xml_node node, const char* name, int otherwise) const;
    std::uint32_t hexadecimal(pugi::xml_node node, const char* name) const;
    void check_one_document() const;
    void read_cpus(pugi::xml_node root);
    void read_cpu(pugi::xml_node node);
    void read_children(pugi::xml_node node, int parent, int numa, int depth);
    void read_pci(pugi::xml_node node, int parent, int numa, int depth);
    void read_gpu(pugi::xml_node node, int pci, int numa);
    void read_nic(pugi::xml_node node, int pci, int numa);

    const SourceText& source_;
    XmlDocument xml_;
    NcclElements elements_;
    Machine& machine_ = elements_.machine;
    std::map<std::string, std::uint32_t> unknown_elements_;  // name -> first line
};

int Reader::integer(pugi::xml_node node, const char* name, int otherwise) const {
    const std::string value = text(node, name);
    if (value.empty()) {
        return otherwise;
    }
    const bool negative = value[0] == '-';
    const auto number = to_unsigned(std::string_view(value).substr(negative ? 1 : 0));
    if (!number || *number > 1'000'000'000) {
        source_.refuse(xml_.line_of(node),
                       fmt::format("<{}> {}={}: a whole number is expected", node.name(), name, in_quotes(value)));
    }
    return negative ? -static_cast<int>(*number) : static_cast<int>(*number);
}

std::uint32_t Reader::hexadecimal(pugi::xml_node node, const char* name) const {
    const auto value = to_hex(text(node, name));
    return value && *value <= 0xFFFFFFFF ? static_cast<std::uint32_t>(*value) : 0;
}

void Reader::check_one_document() const {
    const std::vector<pugi::xml_node> roots = xml_.roots();
    const auto printed = [](pugi::xml_node node) {
        std::ostringstream stream;
        node.print(stream, "", pugi::format_raw);
        return stream.str();
    };
    for (std::size_t i = 1; i < roots.size(); ++i) {
        if (printed(roots[i]) != printed(roots[0])) {
            source_.refuse(xml_.line_of(roots[i]),
                           fmt::format("a second <system> that differs from the one of line {}: two files are glued "
                                       "together, split them",
                                       xml_.line_of(roots[0])));
        }
    }
}

void Reader::read_cpu(pugi::xml_node node) {
    NumaNode numa;
    numa.id = integer(node, "numaid", static_cast<int>(machine_.numa.size()));
    numa.cpus = text(node, "affinity");
    numa.arch = text(node, "arch");
    numa.vendor = text(node, "vendor");
    numa.family = integer(node, "familyid", -1);
    numa.model = integer(node, "modelid", -1);
    numa.cpu = cpu_name(numa.vendor, numa.family, numa.model);
    for (const NumaNode& other : machine_.numa) {
        if (other.id == numa.id) {
            machine_.note(NoteKind::suspicious, xml_.line_of(node),
                          fmt::format("NUMA node {} is there twice", numa.id));
        }
    }
    machine_.numa.push_back(numa);
    read_children(node, -1, static_cast<int>(machine_.numa.size()) - 1, 0);
}

void Reader::read_children(pugi::xml_node node, int parent, int numa, int depth) {
    if (depth > kDeepest) {
        source_.refuse(xml_.line_of(node), fmt::format("elements are nested deeper than {}", kDeepest));
    }
    for (const pugi::xml_node child : node.children()) {
        const std::string_view name = child.name();
        if (name == "pci") {
            read_pci(child, parent, numa, depth + 1);
        } else if (name == "gpu") {
            read_gpu(child, parent, numa);
        } else if (name == "nic") {
            read_nic(child, parent, numa);
        } else if (child.type() == pugi::node_element) {
            unknown_elements_.emplace(name, xml_.line_of(child));
        }
    }
}

void Reader::read_pci(pugi::xml_node node, int parent, int numa, int depth) {
    PciDevice device;
    device.line = xml_.line_of(node);
    device.bus_id = text(node, "busid");
    device.parent = parent;
    device.numa = numa;
    device.vendor = hexadecimal(node, "vendor");
    device.device = hexadecimal(node, "device");
    device.subsystem_vendor = hexadecimal(node, "subsystem_vendor");
    device.subsystem_device = hexadecimal(node, "subsystem_device");
    const std::string class_text = text(node, "class");
    const std::uint32_t pci_class = hexadecimal(node, "class") >> 8;  // base class and subclass
    device.kind = class_text.empty()                                                            ? PciKind::unknown
                  : pci_class == 0x0604                                                         ? PciKind::bridge
                  : pci_class == 0x0302                                                         ? PciKind::gpu
                  : (pci_class >> 8) == 0x02                                                    ? PciKind::network
                  : pci_class == 0x0680                                                         ? PciKind::nvswitch
                  : device.vendor == kVendorAmd && (pci_class == 0x0380 || pci_class == 0x1200) ? PciKind::gpu
                                                                                                : PciKind::other;
    const std::string speed = text(node, "link_speed");  // "16 GT/s", "16.0 GT/s PCIe", "", "Unknown"
    const auto rate = to_number(std::string_view(speed).substr(0, speed.find(' ')));
    device.gigatransfers_per_s = rate && *rate > 0 && *rate < 1000 ? *rate : 0;
    const int width = integer(node, "link_width", 0);
    device.width = width > 0 && width <= 32 ? static_cast<std::uint32_t>(width) : 0;
    if (machine_.pci.size() >= kMostDevices) {
        source_.refuse(device.line, fmt::format("more than {} PCI devices", kMostDevices));
    }
    machine_.pci.push_back(device);
    read_children(node, static_cast<int>(machine_.pci.size()) - 1, numa, depth);
}

void Reader::read_gpu(pugi::xml_node node, int pci, int numa) {
    GpuElement element;
    element.line = xml_.line_of(node);
    element.has_number = !text(node, "dev").empty();
    element.gpu.number = static_cast<std::uint32_t>(std::max(0, integer(node, "dev", 0)));
    element.gpu.gfx = integer(node, "gcn", 0);
    element.gpu.sm = element.gpu.gfx > 0 ? 0 : integer(node, "sm", 0);  // RCCL writes a dummy sm
    element.gpu.pci = pci;
    element.gpu.numa = numa >= 0 ? machine_.numa[static_cast<std::size_t>(numa)].id : -1;
    if (pci >= 0) {
        element.gpu.bus_id = machine_.pci[static_cast<std::size_t>(pci)].bus_id;
        machine_.pci[static_cast<std::size_t>(pci)].kind = PciKind::gpu;
    }
    for (const pugi::xml_node child : node.children()) {
        const std::string_view name = child.name();
        if (name == "nvlink" || name == "xgmi") {
            elements_.any_links = true;
            machine_.link_name = name == "xgmi" ? "xGMI" : "NVLink";
            const int count = integer(child, "count", 1);
            if (count < 1 || count > 99) {
                source_.refuse(xml_.line_of(child), fmt::format("<{}> count='{}': 1 to 99 is expected", name, count));
            }
            element.links.push_back({lower_case(text(child, "target")), static_cast<std::uint32_t>(count),
                                     (hexadecimal(child, "tclass") >> 8) == 0x0680, xml_.line_of(child)});
        } else if (name == "c2c") {
            element.gpu.c2c_links = static_cast<std::uint32_t>(std::max(1, integer(child, "count", 1)));
        } else if (child.type() == pugi::node_element) {
            unknown_elements_.emplace(name, xml_.line_of(child));
        }
    }
    elements_.gpus.push_back(std::move(element));
}

void Reader::read_nic(pugi::xml_node node, int pci, int numa) {
    const std::size_t first = machine_.nics.size();
    for (const pugi::xml_node net : node.children("net")) {
        Nic nic;
        nic.name = text(net, "name");
        if (nic.name.empty()) {
            nic.name = fmt::format("net{}", machine_.nics.size());
        }
        const int megabits = integer(net, "speed", 0);
        nic.bits_per_s = megabits > 0 ? megabits * 1e6 : 0;
        nic.port = integer(net, "port", -1);
        nic.card = static_cast<std::uint32_t>(first);
        nic.pci = pci;
        nic.numa = numa >= 0 ? machine_.numa[static_cast<std::size_t>(numa)].id : -1;
        if (pci >= 0) {
            const PciDevice& device = machine_.pci[static_cast<std::size_t>(pci)];
            nic.bus_id = device.bus_id;
            nic.rated_bits_per_s = network_card_bits_per_s(device.vendor, device.device);
        }
        machine_.nics.push_back(nic);
    }
    const std::size_t ports = machine_.nics.size() - first;
    for (std::size_t i = first; i < machine_.nics.size(); ++i) {
        machine_.nics[i].ports_on_card = static_cast<std::uint32_t>(ports);
        machine_.nics[i].plane = ports > 1 ? static_cast<int>(i - first) : -1;
    }
}

void Reader::read_cpus(pugi::xml_node root) {
    std::set<std::string> hosts;
    std::string first_host;
    for (const pugi::xml_node child : root.children()) {
        if (std::string_view(child.name()) == "cpu") {
            const std::string host = text(child, "host_hash");
            first_host = hosts.empty() ? host : first_host;
            hosts.insert(host);
            if (host == first_host) {
                read_cpu(child);
            }
        } else if (std::string_view(child.name()) == "pci" || std::string_view(child.name()) == "nic") {
            source_.refuse(xml_.line_of(child),
                           fmt::format("<{}> directly under <system>: a <cpu> is expected around it", child.name()));
        } else if (child.type() == pugi::node_element) {
            unknown_elements_.emplace(child.name(), xml_.line_of(child));
        }
    }
    if (machine_.numa.empty()) {
        source_.refuse(xml_.line_of(root), "<system> without <cpu>: no machine is described");
    }
    machine_.hosts = static_cast<std::uint32_t>(hosts.size());
    if (hosts.size() > 1) {
        machine_.note(NoteKind::fact, 0,
                      fmt::format("the file merges {} hosts (host_hash); the first is described", hosts.size()));
    }
}

NcclElements Reader::read() {
    check_one_document();
    const std::vector<pugi::xml_node> roots = xml_.roots();
    if (roots.empty()) {
        source_.refuse(0, "no <system> element at the top");
    }
    const pugi::xml_node root = roots.front();
    machine_.source = source_.name();
    machine_.format = "NCCL topology XML";
    machine_.numa_known = true;
    machine_.notes = source_.notes();
    machine_.notes.insert(machine_.notes.end(), xml_.notes().begin(), xml_.notes().end());
    if (roots.size() > 1) {
        machine_.note(NoteKind::repaired, xml_.line_of(roots[1]),
                      fmt::format("the same document is there {} times", roots.size()));
    }
    const int version = integer(root, "version", 1);
    if (version < 1 || version > 2) {
        machine_.note(NoteKind::suspicious, xml_.line_of(root),
                      fmt::format("system version {}: 1 and 2 are known", version));
    }
    read_cpus(root);
    for (const auto& [name, line] : unknown_elements_) {
        machine_.note(NoteKind::fact, line, fmt::format("element <{}> is not known and was left out", name));
    }
    return std::move(elements_);
}

}  // namespace

NcclElements read_nccl_elements(const SourceText& source) { return Reader(source).read(); }

}  // namespace fabricast::importers
