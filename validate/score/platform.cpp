#include "validate/score/platform.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/observed/text.hpp"

namespace fabricast {
namespace {

struct Word {
    std::string_view text, means;
};

// Named machines; the first that occurs counts.
constexpr Word kMachines[] = {
    {"p3dn", "aws-p3dn"},
    {"p4de", "aws-p4de"},
    {"p4d", "aws-p4d"},
    {"p5.48", "aws-p5"},
    {"p5-efa", "aws-p5"},
    {"_p5", "aws-p5"},
    {"a3-highgpu", "gcp-a3-high"},
    {"a3high", "gcp-a3-high"},
    {"a3-megagpu", "gcp-a3-mega"},
    {"a3mega", "gcp-a3-mega"},
    {"a3-ultragpu", "gcp-a3-ultra"},
    {"a3ultra", "gcp-a3-ultra"},
    {"a4-highgpu", "gcp-a4"},
    {"gcp-a4", "gcp-a4"},
    {"bm.gpu.b4", "oci-bm-gpu-b4"},
    {"bm.gpu.h100", "oci-bm-gpu-h100"},
    {"polaris", "polaris"},
    {"gh200", "alps-gh200"},
    {"nvl72", "gb200-nvl72"},
    {"dgx-1", "dgx1-v100"},
    {"dgx1", "dgx1-v100"},
    {"dgx a100", "dgx-a100"},
    {"dgxa100", "dgx-a100"},
    {"2080 ti", "pc-rtx2080ti"},
    {"2080ti", "pc-rtx2080ti"},
    {"l40s", "l40s-server"},
};

// GPUs on their reference boards. Longer names before those they contain.
constexpr Word kBoards[] = {
    {"b200", "hgx-b200"}, {"h200", "hgx-h200"},     {"h800", "hgx-h800"},  {"h100", "hgx-h100"},
    {"a800", "hgx-a800"}, {"a100", "hgx-a100-80g"}, {"v100", "dgx1-v100"},
};

constexpr Word kNetworks[] = {
    {"tcpxo", "tcpxo"},
    {"fastrak", "tcpxo"},
    {"tcpx", "tcpx"},
    {"socket", "sockets"},
    {"efa", "efa"},
    {"tcp-default", "sockets"},
    {"tcp-fallback", "sockets"},
    {"tcp ", "sockets"},
    {"roce", "roce"},
    {"slingshot", "slingshot_ofi"},
    {"cxi", "slingshot_ofi"},
    {"infiniband", "ib"},
    {"hdr", "ib"},
    {"ndr", "ib"},
    {"ib", "ib"},
};

template <std::size_t N>
std::string meaning(const Word (&words)[N], const std::string& text) {
    for (const Word& word : words) {
        if (text.find(word.text) != std::string::npos) {
            return std::string(word.means);
        }
    }
    return {};
}

/// "32x100G", "8x HDR 200G", "400G": adapters of a node (0: not said) and Gb/s of one.
struct Adapters {
    int count = 0;
    double gbit = 0;
};
std::optional<Adapters> adapters_in(const std::string& text) {
    for (std::size_t g = text.find('g'); g != std::string::npos; g = text.find('g', g + 1)) {
        std::size_t begin = g;
        while (begin > 0 && std::isdigit(static_cast<unsigned char>(text[begin - 1])) != 0) {
            --begin;
        }
        const bool ends =
            g + 1 == text.size() || std::isalnum(static_cast<unsigned char>(text[g + 1])) == 0 || text[g + 1] == 'b';
        if (begin == g || !ends) {
            continue;
        }
        Adapters found{0, std::stod(text.substr(begin, g - begin))};
        const std::size_t times = text.rfind('x', begin);
        if (times != std::string::npos && times > 0 && std::isdigit(static_cast<unsigned char>(text[times - 1])) != 0 &&
            begin - times < 8) {
            std::size_t first = times;
            while (first > 0 && std::isdigit(static_cast<unsigned char>(text[first - 1])) != 0) {
                --first;
            }
            found.count = std::stoi(text.substr(first, times - first));
        }
        if (found.gbit >= 10) {
            return found;
        }
    }
    return std::nullopt;
}

const NodeSpec& preset(const std::string& name) {
    const NodeSpec* found = Catalogue::builtin().find_node(name);
    if (found == nullptr) {
        std::vector<std::string> names;
        for (const NodeSpec& node : Catalogue::builtin().nodes()) {
            names.push_back(node.name);
        }
        throw PlatformError(fmt::format("no node preset `{}`; known are {}", name, fmt::join(names, ", ")));
    }
    return *found;
}

std::string preset_name(const NcclRun& run, const PlatformHint& hint, bool& named) {
    named = true;
    if (!hint.preset.empty()) {
        return hint.preset;
    }
    std::string devices;
    for (const NcclDevice& device : run.devices) {
        devices = lower(device.name);
        if (!devices.empty()) {
            break;
        }
    }
    const std::string file = lower(std::filesystem::path(run.file).filename().string());
    const std::string words = lower(hint.hardware);
    std::string name = meaning(kMachines, words);
    for (const std::string& text : {file, devices}) {
        if (name.empty()) {
            name = meaning(kMachines, text);
        }
    }
    if (!name.empty()) {
        return name;
    }
    named = false;
    for (const std::string& text : {devices, words, file}) {
        name = meaning(kBoards, text);
        if (!name.empty()) {
            const bool small = name == "hgx-a100-80g" && (devices + words + file).find("40gb") != std::string::npos;
            return small ? "hgx-a100-40g" : name;
        }
    }
    throw PlatformError("the GPU is not told by the log nor by its name; give --node PRESET");
}

void use_part(Platform& platform, std::uint32_t gpus) {
    NodeSpec& node = platform.node;
    platform.board = node;
    platform.board_gpus = node.gpus;
    if (gpus > node.gpus) {
        throw PlatformError(fmt::format("{} ranks on a node of {} GPUs ({})", gpus, node.gpus, node.name));
    }
    if (node.nics > node.gpus) {  // several adapters of one GPU
        node.nic_bits_per_s *= static_cast<double>(node.nics) / node.gpus;
        node.nics = node.gpus;
    }
    std::uint32_t nics = std::max(1u, (gpus * node.nics + node.gpus - 1) / node.gpus);
    while (gpus % nics != 0) {
        ++nics;
    }
    node.nics = nics;
    node.gpus = gpus;
}

}  // namespace

std::optional<double> adapter_rate(const std::string& words) {
    const auto found = adapters_in(lower(words));
    return found ? std::optional(found->gbit * 1e9) : std::nullopt;
}

std::string Platform::name() const {
    std::string text = nodes == 1 ? node.name : fmt::format("{} x {}", nodes, node.name);
    text += fmt::format(", {} of {} GPUs", node.gpus, board_gpus);
    if (nodes > 1) {
        text += fmt::format(" a node, {} {} x {:.0f} Gb/s", expected, node.nics, node.nic_bits_per_s * 1e-9);
    }
    return text;
}

std::string Platform::group() const {
    return nodes == 1 ? node.name
                      : fmt::format("{} {} {}x{:.0f}", node.name, expected, node.nics, node.nic_bits_per_s * 1e-9);
}

std::string Platform::machine() const {
    return fmt::format("{} {} {:.0f}", node.name, expected, node.nic_bits_per_s * 1e-9);
}

Platform preset_platform(const std::string& name, std::uint32_t nodes, std::uint32_t gpus) {
    Platform platform;
    platform.node = preset(name);
    platform.gpu = *Catalogue::builtin().find_gpu(platform.node.gpu);
    platform.nodes = nodes;
    platform.rate_told = true;
    if (nodes > 1) {
        platform.expected = platform.node.network;
    }
    use_part(platform, gpus == 0 ? platform.node.gpus : gpus);
    return platform;
}

Platform find_platform(const NcclRun& run, const PlatformHint& hint) {
    bool named = false;
    Platform platform;
    platform.node = preset(preset_name(run, hint, named));
    platform.gpu = *Catalogue::builtin().find_gpu(platform.node.gpu);
    const int ranks = run.ranks > 0 ? run.ranks : hint.gpus.value_or(0);
    if (ranks <= 0) {
        throw PlatformError("the number of ranks is not told");
    }
    const bool one_domain = ranks <= static_cast<int>(platform.node.gpus) && platform.node.gpus > 16;
    const int board = static_cast<int>(platform.node.gpus);
    int nodes = hint.nodes.value_or(run.nodes.value_or((ranks + board - 1) / board));
    if (one_domain) {
        nodes = 1;
    }
    if (nodes >= 1 && ranks > nodes * board) {
        nodes = (ranks + board - 1) / board;  // the words contradict the log
    }
    if (nodes < 1 || ranks % nodes != 0) {
        throw PlatformError(fmt::format("{} ranks do not spread evenly over {} nodes", ranks, nodes));
    }
    platform.nodes = static_cast<std::uint32_t>(nodes);
    if (nodes > 1) {
        const std::string file = lower(std::filesystem::path(run.file).filename().string());
        const std::string words = lower(hint.network);
        platform.told = meaning(kNetworks, words.empty() ? file : words);
        if (run.facts.network_transport == "socket") {
            platform.told = "sockets";
        } else if (platform.told.empty() && run.facts.network_transport == "ofi") {
            platform.told = run.facts.provider == "efa" ? "efa" : run.facts.provider == "cxi" ? "slingshot_ofi" : "";
        }
        const bool usable_class = !platform.told.empty() && platform.told != "sockets";
        if (platform.told == "efa" && platform.node.network == "efa_gen1") {
            platform.told = platform.node.network;  // words do not say the generation
        }
        platform.expected = usable_class ? platform.told : platform.node.network;
        platform.rate_told = named;
        platform.sharp = words.find("sharp") != std::string::npos;
        if (const auto found = adapters_in(words)) {
            platform.rate_told = true;
            if (found->count > 0) {
                platform.node.nics = static_cast<std::uint32_t>(found->count);
            }
            platform.node.nic_bits_per_s = found->gbit * 1e9;
        }
    }
    use_part(platform, static_cast<std::uint32_t>(ranks / nodes));
    return platform;
}

}  // namespace fabricast
