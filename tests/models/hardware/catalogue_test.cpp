#include "models/hardware/catalogue.hpp"

#include <charconv>
#include <fstream>
#include <span>
#include <sstream>

#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

namespace fabricast {

namespace embedded {
std::span<const std::pair<std::string_view, std::string_view>> models_hardware();
}

namespace {

bool is_number(const YAML::Node& node) {
    if (!node.IsScalar())
        return false;
    const std::string text = node.Scalar();
    double value = 0;
    return std::from_chars(text.data(), text.data() + text.size(), value).ec == std::errc{};
}

/// Walks below gpus, nodes, fabrics; `covered` = an enclosing map names a source.
void expect_sources(const YAML::Node& node, const std::string& where, bool covered, int& numbers) {
    if (is_number(node)) {
        ++numbers;
        EXPECT_TRUE(covered) << where << " has no source";
    }
    if (!node.IsMap())
        return;
    const bool here = covered || node["source"].IsDefined();
    for (const auto& entry : node)
        expect_sources(entry.second, where + "." + entry.first.Scalar(), here, numbers);
}

TEST(Catalogue, EmbeddedFilesAreTheSourceFiles) {
    const auto files = embedded::models_hardware();
    EXPECT_GE(files.size(), 5u);
    for (const auto& [name, content] : files) {
        std::ifstream in(std::string(FABRICAST_SOURCE_DIR) + "/" + std::string(name));
        ASSERT_TRUE(in) << name;
        std::stringstream text;
        text << in.rdbuf();
        EXPECT_EQ(text.str(), content) << name;
    }
}

TEST(Catalogue, EveryNumberHasASource) {
    int numbers = 0;
    for (const auto& [name, content] : embedded::models_hardware()) {
        const YAML::Node root = YAML::Load(std::string(content));
        for (const char* kind : {"gpus", "nodes", "fabrics"})
            if (root[kind])
                expect_sources(root[kind], std::string(name), false, numbers);
    }
    EXPECT_GT(numbers, 200);

    for (const GpuSpec& gpu : Catalogue::builtin().gpus()) {
        for (const char* field : {"sms", "peak_bf16", "memory", "hbm", "nvlink_achieved", "gemm.cap", "gemm.sustained",
                                  "attention.fa2.e128", "memory_bound.fused", "power"}) {
            const auto found = gpu.sources.find(field);
            ASSERT_NE(found, gpu.sources.end()) << gpu.name << ' ' << field;
            EXPECT_GT(found->second.size(), 10u) << gpu.name << ' ' << field;
        }
    }
    for (const NodeSpec& node : Catalogue::builtin().nodes()) {
        for (const char* field :
             {"gpus", "nics", "nic_rate", "nic_efficiency", "nvlink_latency", "pcie_latency", "nic_latency", "cpu"})
            EXPECT_EQ(node.sources.count(field), 1u) << node.name << ' ' << field;
        EXPECT_EQ(node.sources.count("socket"), node.socket_bytes_per_s > 0 ? 1u : 0u) << node.name;
        EXPECT_EQ(node.sources.count("nvlink_domain"), node.nvlink_domain > 1 ? 1u : 0u) << node.name;
    }
    for (const FabricSpec& fabric : Catalogue::builtin().fabrics())
        EXPECT_EQ(fabric.sources.size(), 2u) << fabric.name;
}

TEST(Catalogue, KnownNamesAreFoundUnknownOnesAreNot) {
    const Catalogue& catalogue = Catalogue::builtin();
    for (const char* name : {"A100-SXM-40G", "A100-SXM-80G", "A800-SXM-80G", "H100-SXM-80G", "H800-SXM-80G",
                             "H200-SXM-141G", "B200-SXM-180G", "GB200", "A100-PCIe-80G"})
        EXPECT_NE(catalogue.find_gpu(name), nullptr) << name;
    for (const char* name :
         {"hgx-a100-40g", "hgx-a100-80g", "hgx-a800", "hgx-h100", "hgx-h800", "hgx-h200", "hgx-b200", "dgx-h100"})
        EXPECT_NE(catalogue.find_node(name), nullptr) << name;
    EXPECT_NE(catalogue.find_fabric("rail-fat-tree"), nullptr);
    EXPECT_EQ(catalogue.find_gpu("H100"), nullptr);
    EXPECT_EQ(catalogue.find_node("hgx"), nullptr);
    EXPECT_EQ(catalogue.find_fabric(""), nullptr);
    EXPECT_TRUE(std::is_sorted(catalogue.gpus().begin(), catalogue.gpus().end(),
                               [](const GpuSpec& a, const GpuSpec& b) { return a.name < b.name; }));
}

TEST(Catalogue, BoardsThatAreNoNvswitch) {
    const auto node = [](const char* name) { return *Catalogue::builtin().find_node(name); };
    EXPECT_EQ(node("dgx1-v100").board, Board::cube_mesh);
    EXPECT_EQ(node("a100-pcie-pairs").board, Board::pairs);
    EXPECT_EQ(node("hgx-a100-4").board, Board::full_mesh);
    for (const char* name : {"a100-pcie-8", "l40s-server", "rtx4090-server"})
        EXPECT_EQ(node(name).board, Board::pcie) << name;
    EXPECT_EQ(node("rtx4090-server").pcie_layout, PcieLayout::node);
    EXPECT_DOUBLE_EQ(node("a100-pcie-8").socket_bytes_per_s, 10e9);
    EXPECT_EQ(node("gb200-nvl72-tray").nvlink_domain, 18u);
    EXPECT_EQ(node("gb200-nvl72-tray").gpus * 18, node("gb200-nvl72").gpus);
    EXPECT_EQ(node("hgx-h100").board, Board::nvswitch);
    EXPECT_FALSE(node("hgx-h100").network_named);
    EXPECT_TRUE(node("aws-p5").network_named);
    for (const Board board : {Board::nvswitch, Board::cube_mesh, Board::pairs, Board::full_mesh, Board::pcie})
        EXPECT_EQ(find_board(board_name(board)), board);
    EXPECT_FALSE(find_pcie_layout("qpi"));
    const auto lanes = [](const char* gpu) { return nvlink_lanes(*Catalogue::builtin().find_gpu(gpu)); };
    EXPECT_EQ(lanes("V100-SXM2-32G"), 6u);
    EXPECT_EQ(lanes("A100-SXM-80G"), 12u);
    EXPECT_EQ(lanes("H100-SXM-80G"), 18u);
    EXPECT_EQ(lanes("GB200"), 18u);
    EXPECT_EQ(lanes("L40S-48G"), 0u);
}

TEST(Catalogue, ValuesCarryTheirUnits) {
    const GpuSpec& h100 = *Catalogue::builtin().find_gpu("H100-SXM-80G");
    EXPECT_EQ(h100.generation, GpuGeneration::hopper);
    EXPECT_EQ(h100.sms, 132u);
    EXPECT_DOUBLE_EQ(h100.peak_bf16, 989.4e12);
    EXPECT_EQ(h100.memory_mib, 81559);
    EXPECT_DOUBLE_EQ(h100.hbm_bytes_per_s, 3.35e12);
    EXPECT_DOUBLE_EQ(h100.nvlink_nccl_bytes_per_s, 370.8e9);
    EXPECT_DOUBLE_EQ(h100.gemm.t0_s, 2.5e-6);
    EXPECT_TRUE(h100.nvls);
    const NodeSpec& node = *Catalogue::builtin().find_node("hgx-h800");
    EXPECT_EQ(node.gpu, "H800-SXM-80G");
    EXPECT_EQ(node.nics, 8u);
    EXPECT_DOUBLE_EQ(node.nic_bits_per_s, 400e9);
    EXPECT_EQ(Catalogue::builtin().find_fabric("rail-fat-tree")->nodes_per_pod, 32u);
}

TEST(Catalogue, DerivedEntriesKeepWhatTheyDoNotState) {
    const GpuSpec& h100 = *Catalogue::builtin().find_gpu("H100-SXM-80G");
    const GpuSpec& h800 = *Catalogue::builtin().find_gpu("H800-SXM-80G");
    EXPECT_EQ(h800.peak_bf16, h100.peak_bf16);
    EXPECT_EQ(h800.gemm.cap, h100.gemm.cap);
    EXPECT_EQ(h800.attention.size(), h100.attention.size());
    EXPECT_DOUBLE_EQ(h800.nvlink_nominal_bytes_per_s, 200e9);
    EXPECT_DOUBLE_EQ(h800.nvlink_achieved_bytes_per_s, 160e9);
    EXPECT_NE(h800.sources.at("nvlink_achieved"), h100.sources.at("nvlink_achieved"));
}

TEST(Catalogue, NumbersAreInTheRightOrderOfMagnitude) {
    for (const GpuSpec& gpu : Catalogue::builtin().gpus()) {
        EXPECT_GT(gpu.peak_bf16, gpu.peak_tf32) << gpu.name;
        EXPECT_TRUE(gpu.peak_fp8 == 0 || gpu.peak_fp8 > 1.9 * gpu.peak_bf16) << gpu.name;
        EXPECT_LE(gpu.nvlink_achieved_bytes_per_s, gpu.nvlink_nominal_bytes_per_s) << gpu.name;
        EXPECT_LE(gpu.nvlink_nccl_bytes_per_s, gpu.nvlink_nominal_bytes_per_s) << gpu.name;
        EXPECT_GT(gpu.memory_mib, 10000) << gpu.name;
        EXPECT_GT(gpu.hbm_bytes_per_s, 5e11) << gpu.name;
        EXPECT_GT(gpu.l2_bytes, 5e6) << gpu.name;
        EXPECT_TRUE(gpu.gemm.sustained > 0.5 && gpu.gemm.sustained <= 1) << gpu.name;
        EXPECT_TRUE(gpu.gemm.cap > 0.5 && gpu.gemm.cap < 1) << gpu.name;
        EXPECT_TRUE(gpu.attention.contains("fa2")) << gpu.name;
        for (const auto& [name, c] : gpu.attention) {
            EXPECT_TRUE(c.e128 > 0.05 && c.e128 < 0.8 && c.e64 <= c.e128) << gpu.name << ' ' << name;
            EXPECT_TRUE(c.backward_rate > 0.5 && c.backward_rate <= 1) << gpu.name << ' ' << name;
        }
    }
    for (const NodeSpec& node : Catalogue::builtin().nodes()) {
        EXPECT_NE(Catalogue::builtin().find_gpu(node.gpu), nullptr) << node.name;
        EXPECT_EQ(node.gpus % node.nics, 0u) << node.name;
        EXPECT_TRUE(node.cpu == "intel" || node.cpu == "amd" || node.cpu == "arm") << node.name;
    }
}

// Totals in PyTorch's out-of-memory messages (GiB); 178.35 from a device query of pytorch/ao PR 4002.
TEST(Catalogue, MemoryThatProgramsCanHave) {
    const struct {
        const char* gpu;
        double low, high;
    } parts[] = {{"H100-SXM-80G", 79.09, 79.19},
                 {"H200-SXM-141G", 139.7, 139.82},
                 {"B200-SXM-180G", 178.3, 178.4},
                 {"A100-SXM-80G", 79.1, 79.36},
                 {"H100-HBM2e-96G", 95.03, 95.05}};
    for (const auto& part : parts) {
        const GpuSpec& gpu = *Catalogue::builtin().find_gpu(part.gpu);
        const double gib = static_cast<double>(gpu.memory_mib - gpu.driver_memory_mib) / 1024;
        EXPECT_TRUE(gib >= part.low && gib <= part.high) << gpu.name << ' ' << gib;
    }
}

}  // namespace
}  // namespace fabricast
