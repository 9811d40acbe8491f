// Files that are no topology, and topologies that were cut or damaged anywhere: an answer or a clear refusal, no crash.
#include <gtest/gtest.h>

#include "tests/topologies/importers/samples.hpp"
#include "topologies/importers/source_text.hpp"

namespace fabricast::importers::test {
namespace {

/// Counts texts that are read; every other must be refused with a sentence.
bool read_or_refused(const std::string& text) {
    try {
        import_text(SourceText::from_text("x", text));
        return true;
    } catch (const ImportError& error) {
        EXPECT_GT(std::string(error.what()).size(), 8u);
        return false;
    }
}

TEST(Robustness, EveryPrefix) {
    for (const char* file : {"8xh200-sxm_gcp-a3ultra_8roce_ansi-escapes.txt", "8xv100_dgx1-2ib_topo-n8-dump.xml"}) {
        const std::string text = slurp(data_path(file));
        for (std::size_t length = 0; length < text.size(); ++length) {
            read_or_refused(text.substr(0, length));
        }
        EXPECT_TRUE(read_or_refused(text));
    }
    const std::string xml = slurp(data_path("8xh100_azure-ndv5_topo.xml"));
    const std::size_t whole = xml.find("</system>") + 9;
    for (std::size_t length = 0; length < whole; ++length) {
        EXPECT_FALSE(read_or_refused(xml.substr(0, length))) << length;  // nothing short of all is taken
    }
}

TEST(Robustness, DamagedSamples) {
    std::uint64_t state = 1;
    const auto draw = [&state](std::uint64_t below) {  // splitmix64
        state += 0x9E3779B97F4A7C15u;
        std::uint64_t z = state;
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
        return (z ^ (z >> 31)) % below;
    };
    std::vector<std::string> texts = {
        "5 1 4\n4\n0 4 200Gbps 0.0005ms 0\n1 4 200Gbps 0.0005ms 0\n2 4 25GBps 500ns 0.01\n3 4 1Gbps 1us 0\n",
        "topology: [ Ring, Switch ]\nnpus_count: [ 8, 4 ]\nbandwidth: [ 50.0, 1 ]\nlatency: [ 500.0, 1 ]\n",
        "SwitchName=leaf0 Nodes=n[0-3]\nSwitchName=leaf1 Nodes=n[4-7]\nSwitchName=core Switches=leaf[0-1]\n",
        "Switch\t41 \"S-aa\"\t# \"MF0;leaf01:x/U1\" enhanced port 0 lid 12\n[1]\t\"H-c0\"[1](c0) # \"n1 mlx5_0\" lid "
        "20 4xHDR\n",
        "4 3[  ] ==( 4X 25.78 Gbps Active/  LinkUp)==>  15 1[  ] \"n2 HCA-1\" ( )\n"};
    for (const Sample& sample : samples()) {
        texts.push_back(slurp(data_path(sample.file)));
    }
    std::size_t taken = 0;
    for (const std::string& text : texts) {
        for (int round = 0; round < 60; ++round) {
            std::string damaged = text;
            for (std::uint64_t hits = 1 + draw(4); hits > 0 && !damaged.empty(); --hits) {
                const std::size_t at = draw(damaged.size());
                switch (draw(5)) {
                    case 0: damaged[at] = static_cast<char>(draw(256)); break;
                    case 1: damaged.erase(at, 1 + draw(20)); break;
                    case 2: damaged.insert(at, text.substr(draw(text.size()), draw(40))); break;
                    case 3: damaged[at] = "0123456789<>\"[]XN,-"[draw(19)]; break;
                    default: damaged.insert(at, damaged.substr(at, draw(200))); break;
                }
            }
            taken += read_or_refused(damaged) ? 1 : 0;
        }
    }
    EXPECT_GT(taken, 0u);
}

TEST(Robustness, NoText) {
    EXPECT_HAS(refusal(""), "x: is empty");
    EXPECT_HAS(refusal(" \n\t\n"), "x: is empty");
    EXPECT_HAS(refusal(std::string("GPU0\0GPU1", 9)), "x: is binary (a zero byte at offset 4)");
    EXPECT_HAS(refusal("\x1f\x8b\x08"), "x: is gzip-compressed; unpack it first");
    EXPECT_HAS(refusal("\x28\xb5\x2f\xfd"), "is zstd-compressed");
    EXPECT_HAS(refusal(std::string(1000, '\xff')), "is no text");
    EXPECT_HAS(refusal(std::string(kMaxFileBytes + 1, 'a')), "is larger than 64 MiB");
    EXPECT_THROW(import_file(data_path("nowhere.txt")), ImportError);
    EXPECT_THROW(import_file(data_path("")), ImportError);
}

TEST(Robustness, OtherFilesAreNamedAsSuch) {
    const std::string said = refusal("name: case-a\ncluster:\n  nodes: 128\n");
    EXPECT_HAS(said, "x: is none of: nvidia-smi topo -m, NCCL topology XML, ns-3 topology file");
    EXPECT_EQ(detect(SourceText::from_text("x", "size count type\n8 2 float\n")), Format::unknown);
    EXPECT_EQ(detect(SourceText::from_text("x", "GPU0 temperature is high\n")), Format::unknown);
}

TEST(Robustness, Encodings) {
    const std::string topo = slurp(data_path("2xgpu_nv2.txt"));
    std::string wide = "\xFF\xFE";
    for (const char c : topo) {
        wide += c;
        wide += '\0';
    }
    const Imported imported = import_text(SourceText::from_text("x", wide));
    EXPECT_EQ(std::get<Machine>(imported).gpus.size(), 2u);
    EXPECT_HAS(all_notes(std::get<Machine>(imported).notes), "UTF-16 text was read as ASCII");
    const Imported junk = import_text(SourceText::from_text("x", "caf\xe9\n" + topo));
    EXPECT_HAS(all_notes(std::get<Machine>(junk).notes), "1 bytes that are no text were replaced");
}

TEST(Robustness, LongLinesAndManyNames) {
    std::string header = "\t";
    for (int i = 0; i < 2000; ++i) {
        header += "GPU" + std::to_string(i) + "\t";
    }
    EXPECT_FALSE(read_or_refused(header + "\nGPU0\tX\n"));
    EXPECT_FALSE(read_or_refused("GPU0 " + std::string(1 << 20, 'x') + "\n"));
    EXPECT_HAS(refusal("topology: [Ring]\nlatency: " + std::string(100000, '[')), "no YAML");
    std::string headers;
    for (int i = 0; i < 20000; ++i) {
        headers += "GPU0 GPU1\nnothing\n";
    }
    EXPECT_HAS(refusal(headers), "without rows");
    std::string many = "<system version=\"1\"><cpu numaid=\"0\">";
    for (int i = 0; i < 5000; ++i) {
        many += "<pci busid=\"" + std::to_string(i) + "\" class=\"0x030200\"/>";
    }
    EXPECT_HAS(refusal(many + "</cpu></system>"), "more than 4096 PCI devices");
}

}  // namespace
}  // namespace fabricast::importers::test
