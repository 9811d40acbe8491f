// Format of the YAML files in this folder:
//
//   sources:                      # short name -> sentence
//     datasheet: vendor data sheet
//   gpus:                         # or nodes:, fabrics:, networks:
//     NAME:
//       like: OTHER               # optional: start from an entry above in the same file
//       hbm: {value: 3.35 TB/s, source: datasheet}
//       gemm:
//         source: fit             # holds for every plain value of the group
//         t0: 2.5 us
//         sustained: {value: 0.80, source: runs-fit}
//
// A value without a source, an unknown key, a wrong unit or a source that is not listed is refused.
// GpuSpec::sources and its siblings map "hbm", "gemm.t0", "attention.fa2.e128" to the sentence.
#include "models/hardware/catalogue.hpp"

#include <algorithm>
#include <charconv>
#include <set>
#include <span>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include "models/hardware/read_catalogue.hpp"

namespace fabricast {

namespace embedded {
std::span<const std::pair<std::string_view, std::string_view>> models_hardware();
}

namespace {

using Texts = std::map<std::string, std::string, std::less<>>;

enum class Dimension { none, time, byte_rate, bit_rate, flop_rate, bytes, mib, power };

struct Unit {
    Dimension dimension;
    std::string_view suffix;
    double scale;
};
constexpr Unit kUnits[] = {
    {Dimension::none, "", 1},
    {Dimension::time, "us", 1e-6},
    {Dimension::byte_rate, "GB/s", 1e9},
    {Dimension::byte_rate, "TB/s", 1e12},
    {Dimension::bit_rate, "Gb/s", 1e9},
    {Dimension::flop_rate, "TFLOP/s", 1e12},
    {Dimension::bytes, "MiB", 1048576},
    {Dimension::bytes, "GiB", 1073741824},
    {Dimension::bytes, "GB", 1e9},
    {Dimension::bytes, "TB", 1e12},
    {Dimension::mib, "MiB", 1},
    {Dimension::power, "W", 1},
};

double parse_number(std::string_view text, Dimension dimension, const std::string& where) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{})
        throw std::logic_error(fmt::format("{}: '{}' is not a number", where, text));
    std::string_view suffix(end, static_cast<std::size_t>(text.data() + text.size() - end));
    if (!suffix.empty() && suffix.front() == ' ')
        suffix.remove_prefix(1);
    for (const Unit& unit : kUnits)
        if (unit.dimension == dimension && unit.suffix == suffix)
            return value * unit.scale;
    throw std::logic_error(fmt::format("{}: '{}' has the wrong unit", where, text));
}

/// One map of the YAML: reads each key once, records where its value comes from, refuses what is left.
class Section {
public:
    Section(YAML::Node node, std::string where, std::string prefix, bool derived, const Texts& legend, Texts& sources)
        : node_(std::move(node)),
          where_(std::move(where)),
          prefix_(std::move(prefix)),
          derived_(derived),
          legend_(&legend),
          sources_(&sources) {
        if (node_.IsDefined() && !node_.IsMap())
            fail("", "is not a map");
        if (has("source"))
            group_source_ = take("source").as<std::string>();
    }

    void number(const char* key, Dimension dimension, double& out) {
        std::string text;
        if (value(key, text))
            out = parse_number(text, dimension, place(key));
    }
    template <typename Integer>
    void integer(const char* key, Dimension dimension, Integer& out) {
        double value = static_cast<double>(out);
        number(key, dimension, value);
        out = static_cast<Integer>(value);
        if (static_cast<double>(out) != value)
            fail(key, "is not a whole number");
    }
    void flag(const char* key, bool& out) {
        std::string text;
        if (!value(key, text))
            return;
        if (text != "true" && text != "false")
            fail(key, "is neither true nor false");
        out = text == "true";
    }
    void text(const char* key, std::string& out) { value(key, out); }

    /// Identity rather than measurement: needs no source.
    std::string name(const char* key) {
        if (has(key))
            return take(key).as<std::string>();
        if (!derived_)
            fail(key, "is missing");
        return {};
    }
    Section group(const std::string& key, bool derived) {
        if (!has(key) && !derived)
            fail(key, "is missing");
        return Section(take(key), place(key), prefix_ + key + ".", derived, *legend_, *sources_);
    }
    std::vector<std::string> unread_keys() const {
        std::vector<std::string> keys;
        if (node_.IsDefined())
            for (const auto& entry : node_)
                if (!read_.contains(entry.first.as<std::string>()))
                    keys.push_back(entry.first.as<std::string>());
        return keys;
    }
    void finish() const {
        for (const std::string& key : unread_keys())
            fail(key, "is not a known key");
    }
    [[noreturn]] void fail(const std::string& key, const std::string& what) const {
        throw std::logic_error(fmt::format("{}: {}", place(key), what));
    }

    bool has(const std::string& key) const { return node_.IsDefined() && node_[key].IsDefined(); }

private:
    std::string place(const std::string& key) const { return key.empty() ? where_ : where_ + "." + key; }
    YAML::Node take(const std::string& key) {
        read_.insert(key);
        return has(key) ? node_[key] : YAML::Node(YAML::NodeType::Undefined);
    }
    bool value(const std::string& key, std::string& out) {
        if (!has(key)) {
            if (!derived_)
                fail(key, "is missing");
            return false;
        }
        const YAML::Node found = take(key);
        std::string source = group_source_;
        if (found.IsMap()) {
            if (found.size() != 2 || !found["value"] || !found["source"])
                fail(key, "wants {value: ..., source: ...}");
            out = found["value"].as<std::string>();
            source = found["source"].as<std::string>();
        } else {
            out = found.as<std::string>();
        }
        if (source.empty())
            fail(key, "has no source");
        const auto sentence = legend_->find(source);
        if (sentence == legend_->end())
            fail(key, fmt::format("names an unknown source '{}'", source));
        (*sources_)[prefix_ + key] = sentence->second;
        return true;
    }

    const YAML::Node node_;
    std::string where_, prefix_;
    bool derived_;  ///< starts from another entry, so that keys may be left out
    const Texts* legend_;
    Texts* sources_;
    std::string group_source_;
    std::set<std::string, std::less<>> read_;
};

GpuGeneration parse_generation(const Section& section, const std::string& text) {
    if (text == "volta")
        return GpuGeneration::volta;
    if (text == "ampere")
        return GpuGeneration::ampere;
    if (text == "hopper")
        return GpuGeneration::hopper;
    if (text == "blackwell")
        return GpuGeneration::blackwell;
    section.fail("generation", fmt::format("unknown generation '{}'", text));
}

void read_attention(Section in, AttentionConstants& out) {
    in.number("t0", Dimension::time, out.t0_s);
    in.number("e128", Dimension::none, out.e128);
    in.number("e64", Dimension::none, out.e64);
    in.number("s0", Dimension::none, out.s0);
    in.number("bandwidth", Dimension::none, out.bandwidth);
    in.number("backward_rate", Dimension::none, out.backward_rate);
    in.finish();
}

void read_gemm(Section in, GemmConstants& out) {
    in.number("t0", Dimension::time, out.t0_s);
    in.number("c_pro", Dimension::time, out.c_pro_s);
    in.number("emax", Dimension::none, out.emax);
    in.number("fall", Dimension::none, out.fall);
    in.number("bandwidth", Dimension::none, out.bandwidth);
    in.number("hot", Dimension::none, out.hot);
    in.number("p", Dimension::none, out.p);
    in.number("cap", Dimension::none, out.cap);
    in.number("wave", Dimension::none, out.wave);
    in.number("split_cost", Dimension::none, out.split_cost);
    in.number("sustained", Dimension::none, out.sustained);
    in.number("expert_reads", Dimension::none, out.expert_reads);
    in.finish();
}

void read_memory(Section in, MemoryConstants& out) {
    in.number("fused", Dimension::none, out.fused);
    in.number("compiled", Dimension::none, out.compiled);
    in.number("eager", Dimension::none, out.eager);
    in.number("copy", Dimension::none, out.copy);
    in.number("floor", Dimension::time, out.floor_s);
    in.finish();
}

void read_entry(Section& in, bool derived, GpuSpec& out) {
    if (const std::string generation = in.name("generation"); !generation.empty())
        out.generation = parse_generation(in, generation);
    in.integer("sms", Dimension::none, out.sms);
    in.number("peak_fp32", Dimension::flop_rate, out.peak_fp32);
    in.number("peak_tf32", Dimension::flop_rate, out.peak_tf32);
    in.number("peak_bf16", Dimension::flop_rate, out.peak_bf16);
    in.number("peak_fp8", Dimension::flop_rate, out.peak_fp8);
    in.integer("memory", Dimension::mib, out.memory_mib);
    if (in.has("driver_memory"))
        in.integer("driver_memory", Dimension::mib, out.driver_memory_mib);
    in.number("hbm", Dimension::byte_rate, out.hbm_bytes_per_s);
    in.number("l2", Dimension::bytes, out.l2_bytes);
    in.number("nvlink_nominal", Dimension::byte_rate, out.nvlink_nominal_bytes_per_s);
    in.number("nvlink_achieved", Dimension::byte_rate, out.nvlink_achieved_bytes_per_s);
    in.number("nvlink_nccl", Dimension::byte_rate, out.nvlink_nccl_bytes_per_s);
    in.number("pcie", Dimension::byte_rate, out.pcie_bytes_per_s);
    if (in.has("network_channel"))
        in.number("network_channel", Dimension::byte_rate, out.network_channel_bytes_per_s);
    in.flag("nvls", out.nvls);
    in.number("power", Dimension::power, out.power_w);
    read_gemm(in.group("gemm", derived), out.gemm);
    read_memory(in.group("memory_bound", derived), out.memory);
    Section attention = in.group("attention", derived);
    for (const std::string& name : attention.unread_keys()) {
        const bool known = out.attention.contains(name);
        read_attention(attention.group(name, known), out.attention[name]);
    }
}

void read_entry(Section& in, bool, NodeSpec& out) {
    if (const std::string gpu = in.name("gpu"); !gpu.empty())
        out.gpu = gpu;
    in.integer("gpus", Dimension::none, out.gpus);
    in.integer("nics", Dimension::none, out.nics);
    in.number("nic_rate", Dimension::bit_rate, out.nic_bits_per_s);
    in.number("nic_efficiency", Dimension::none, out.nic_efficiency);
    in.number("nvlink_latency", Dimension::time, out.nvlink_latency_s);
    in.number("pcie_latency", Dimension::time, out.pcie_latency_s);
    in.number("nic_latency", Dimension::time, out.nic_latency_s);
    in.text("cpu", out.cpu);
    if (in.has("network")) {
        out.network = in.name("network");
        out.network_named = true;
    }
    if (in.has("board")) {
        const std::string name = in.name("board");
        const auto board = find_board(name);
        if (!board)
            in.fail("board", fmt::format("unknown board '{}'", name));
        out.board = *board;
    }
    if (in.has("pcie_layout")) {
        std::string name;
        in.text("pcie_layout", name);
        const auto layout = find_pcie_layout(name);
        if (!layout)
            in.fail("pcie_layout", fmt::format("unknown layout '{}'", name));
        out.pcie_layout = *layout;
    }
    for (const auto& [key, count] : {std::pair{"numa_nodes", &out.numa_nodes},
                                     {"gpus_per_switch", &out.gpus_per_switch},
                                     {"nvlink_domain", &out.nvlink_domain}})
        if (in.has(key))
            in.integer(key, Dimension::none, *count);
    for (const auto& [key, rate] : {std::pair{"socket", &out.socket_bytes_per_s},
                                    {"pcie_uplink", &out.uplink_bytes_per_s},
                                    {"host_bridge", &out.host_bytes_per_s},
                                    {"host_bandwidth", &out.host_memory_bytes_per_s}})
        if (in.has(key))
            in.number(key, Dimension::byte_rate, *rate);
    if (in.has("host_memory"))
        in.number("host_memory", Dimension::bytes, out.host_memory_bytes);
}

void read_entry(Section& in, bool, FabricSpec& out) {
    in.integer("nodes_per_pod", Dimension::none, out.nodes_per_pod);
    in.number("switch_latency", Dimension::time, out.switch_latency_s);
}

void read_entry(Section& in, bool, NetworkSpec& out) {
    in.number("efficiency", Dimension::none, out.efficiency);
    const auto microseconds = [&](const char* key, double& out_us) {
        double value_s = out_us * 1e-6;
        in.number(key, Dimension::time, value_s);
        out_us = value_s * 1e6;
    };
    microseconds("ll_hop", out.ll_hop_us);
    microseconds("ll128_hop", out.ll128_hop_us);
    microseconds("simple_hop", out.simple_hop_us);
    microseconds("slot", out.slot_us);
    in.flag("ll", out.ll);
    in.flag("ll128", out.ll128);
}

template <typename Spec>
const Spec* find_named(const std::vector<Spec>& all, std::string_view name) {
    const auto found = std::find_if(all.begin(), all.end(), [&](const Spec& spec) { return spec.name == name; });
    return found == all.end() ? nullptr : &*found;
}

template <typename Spec>
void read_all(const YAML::Node& entries, std::string_view file, const Texts& legend, std::vector<Spec>& out) {
    if (!entries.IsDefined())
        return;
    for (const auto& entry : entries) {
        const auto name = entry.first.as<std::string>();
        const std::string where = fmt::format("{}: {}", file, name);
        if (find_named(out, name) != nullptr)
            throw std::logic_error(where + ": named twice");
        Spec spec{};
        const bool derived = entry.second["like"].IsDefined();
        if (derived) {
            const Spec* base = find_named(out, entry.second["like"].as<std::string>());
            if (base == nullptr)
                throw std::logic_error(where + ".like: no such entry above");
            spec = *base;
        }
        spec.name = name;
        Section section(entry.second, where, "", derived, legend, spec.sources);
        if (derived)
            section.name("like");
        read_entry(section, derived, spec);
        section.finish();
        out.push_back(std::move(spec));
    }
}

void read_file(std::string_view file, std::string_view content, std::vector<GpuSpec>& gpus,
               std::vector<NodeSpec>& nodes, std::vector<FabricSpec>& fabrics, std::vector<NetworkSpec>& networks) {
    const YAML::Node root = YAML::Load(std::string(content));
    Texts legend;
    for (const auto& entry : root["sources"])
        legend[entry.first.as<std::string>()] = entry.second.as<std::string>();
    for (const auto& entry : root) {
        const auto key = entry.first.as<std::string>();
        if (key != "sources" && key != "gpus" && key != "nodes" && key != "fabrics" && key != "networks")
            throw std::logic_error(fmt::format("{}: unknown section '{}'", file, key));
    }
    read_all(root["gpus"], file, legend, gpus);
    read_all(root["nodes"], file, legend, nodes);
    read_all(root["fabrics"], file, legend, fabrics);
    read_all(root["networks"], file, legend, networks);
}

template <typename Spec>
void sort_by_name(std::vector<Spec>& all) {
    std::sort(all.begin(), all.end(), [](const Spec& a, const Spec& b) { return a.name < b.name; });
}

}  // namespace

namespace {

constexpr std::string_view kBoards[] = {"nvswitch", "cube-mesh", "pairs", "full-mesh", "pcie"};
constexpr std::string_view kLayouts[] = {"pix", "pxb", "phb", "node", "sys"};

template <typename Enum, std::size_t N>
std::optional<Enum> find_word(const std::string_view (&words)[N], std::string_view name) {
    const auto found = std::find(std::begin(words), std::end(words), name);
    return found == std::end(words) ? std::nullopt : std::optional(static_cast<Enum>(found - std::begin(words)));
}

}  // namespace

std::uint32_t nvlink_lanes(const GpuSpec& gpu) {
    const double lane = gpu.generation == GpuGeneration::blackwell ? 50e9 : 25e9;
    return static_cast<std::uint32_t>(gpu.nvlink_nominal_bytes_per_s / lane + .5);
}

std::string_view board_name(Board board) { return kBoards[static_cast<std::size_t>(board)]; }
std::optional<Board> find_board(std::string_view name) { return find_word<Board>(kBoards, name); }
std::string_view pcie_layout_name(PcieLayout layout) { return kLayouts[static_cast<std::size_t>(layout)]; }
std::optional<PcieLayout> find_pcie_layout(std::string_view name) { return find_word<PcieLayout>(kLayouts, name); }

std::span<const CatalogueFile> catalogue_files() { return embedded::models_hardware(); }

CatalogueEntries read_catalogue(std::span<const CatalogueFile> files) {
    CatalogueEntries out;
    for (const auto& [file, content] : files) {
        try {
            read_file(file, content, out.gpus, out.nodes, out.fabrics, out.networks);
        } catch (const YAML::Exception& error) {
            throw std::logic_error(fmt::format("{}: {}", file, error.what()));
        }
    }
    for (const NodeSpec& node : out.nodes)
        if (find_named(out.gpus, node.gpu) == nullptr)
            throw std::logic_error(fmt::format("{}.gpu: no such GPU '{}'", node.name, node.gpu));
    for (const NodeSpec& node : out.nodes)
        if (find_named(out.networks, node.network) == nullptr)
            throw std::logic_error(fmt::format("{}.network: no such network '{}'", node.name, node.network));
    sort_by_name(out.gpus);
    sort_by_name(out.nodes);
    sort_by_name(out.fabrics);
    sort_by_name(out.networks);
    return out;
}

const Catalogue& Catalogue::builtin() {
    static const Catalogue catalogue = [] {
        CatalogueEntries entries = read_catalogue(catalogue_files());
        Catalogue out;
        out.gpus_ = std::move(entries.gpus);
        out.nodes_ = std::move(entries.nodes);
        out.fabrics_ = std::move(entries.fabrics);
        out.networks_ = std::move(entries.networks);
        return out;
    }();
    return catalogue;
}

const GpuSpec* Catalogue::find_gpu(std::string_view name) const { return find_named(gpus_, name); }
const NodeSpec* Catalogue::find_node(std::string_view name) const { return find_named(nodes_, name); }
const FabricSpec* Catalogue::find_fabric(std::string_view name) const { return find_named(fabrics_, name); }
const NetworkSpec* Catalogue::find_network(std::string_view name) const { return find_named(networks_, name); }

}  // namespace fabricast
