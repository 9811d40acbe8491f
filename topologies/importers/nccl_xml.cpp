#include "topologies/importers/nccl_xml.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <utility>

#include <fmt/format.h>

#include "topologies/importers/machine_checks.hpp"
#include "topologies/importers/pci_ids.hpp"
#include "topologies/importers/pci_paths.hpp"
#include "topologies/importers/xml_document.hpp"

namespace fabricast::importers {
namespace {

constexpr int kDeepest = 32;  ///< PCIe trees of servers have five levels
constexpr std::size_t kMostDevices = 4096;

struct LinkTo {
    std::string target;
    std::uint32_t count = 0;
    bool to_switch = false;
    std::uint32_t line = 0;
};

struct GpuElement {
    Gpu gpu;
    bool has_number = false;
    std::vector<LinkTo> links;
    std::uint32_t switch_links = 0;
    std::uint32_t line = 0;
};

class Reader {
public:
    explicit Reader(const SourceText& source) : source_(source), xml_(source, "system") {}

    Machine read();

private:
    std::string text(pugi::xml_node node, const char* name) const { return node.attribute(name).as_string(); }
    int integer(pugi::xml_node node, const char* name, int otherwise) const;
    std::uint32_t hexadecimal(pugi::xml_node node, const char* name) const;
    void check_one_document() const;
    void read_cpu(pugi::xml_node node);
    void read_children(pugi::xml_node node, int parent, int numa, int depth);
    void read_pci(pugi::xml_node node, int parent, int numa, int depth);
    void read_gpu(pugi::xml_node node, int pci, int numa);
    void read_nic(pugi::xml_node node, int pci, int numa);
    void add_bare_devices();
    void order_gpus();
    void place_paths();
    void add_links(std::vector<Path>& paths);
    void note_devices();

    const SourceText& source_;
    XmlDocument xml_;
    Machine machine_;
    std::vector<GpuElement> gpus_;
    bool any_link_element_ = false;
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
                       fmt::format("<{}> {}={}: a whole number is expected", node.name(), name, quoted(value)));
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
            any_link_element_ = true;
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
    gpus_.push_back(std::move(element));
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

/// GPUs and networks by PCI class, where the file has no element for any.
void Reader::add_bare_devices() {
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

void Reader::order_gpus() {
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

void Reader::place_paths() {
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

void Reader::add_links(std::vector<Path>& paths) {
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
        if (any_link_element_ || element.gpu.sm > 0) {
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

void Reader::note_devices() {
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
    for (const auto& [name, line] : unknown_elements_) {
        machine_.note(NoteKind::fact, line, fmt::format("element <{}> is not known and was left out", name));
    }
    const bool amd = std::any_of(gpus_.begin(), gpus_.end(), [](const GpuElement& e) { return e.gpu.gfx > 0; });
    if (amd) {
        machine_.note(NoteKind::fact, 0, fmt::format("AMD GPUs (gfx{}), written by RCCL", gpus_.front().gpu.gfx));
    }
}

Machine Reader::read() {
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
    return Reader(source).read();
}

}  // namespace fabricast::importers
