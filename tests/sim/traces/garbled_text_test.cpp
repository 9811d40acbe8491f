// Text files cut short and garbled: read or refused in one sentence, never anything else.
#include <functional>

#include <gtest/gtest.h>

#include "sim/traces/group_file.hpp"
#include "sim/traces/simai_reader.hpp"
#include "sim/traces/system_file.hpp"
#include "tests/sim/traces/trace_writer.hpp"
#include "topologies/importers/import_error.hpp"

namespace fabricast::traces {
namespace {

struct Format {
    const char* name;
    std::string text;
    std::function<void(const std::string&)> read;
};

std::vector<Format> formats() {
    return {
        {"system",
         R"({"scheduling-policy": "LIFO", "endpoint-delay": 10, "active-chunks-per-dimension": 2,
             "preferred-dataset-splits": 4, "all-reduce-implementation": ["ring", "direct4"],
             "collective-optimization": "localBWAware", "local-mem-bw": 3350, "boost-mode": 0})",
         [](const std::string& path) { read_system_file(path, 2); }},
        {"memory",
         R"({"memory-type": "PER_NODE_MEMORY_EXPANSION", "num-nodes": 2, "num-npus-per-node": 8,
             "remote-mem-latency": 100, "remote-mem-bw": 50})",
         [](const std::string& path) { read_remote_memory(path); }},
        {"groups", R"({"1": [0, 1, 2, 3], "2": [4, 5, 6, 7], "3": [0, 4], "4": [1, 5]})",
         [](const std::string& path) {
             Workload workload;
             workload.groups.emplace_back();
             read_group_file(path, workload, 8);
         }},
        {"simai",
         "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 2 pp: 1 vpp: 8 ga: 1 all_gpus: 8 "
         "checkpoints: 1 0 checkpoint_initiates: 1 1 pp_comm: 0\n2\n"
         "embedding\t-1\t10\tALLREDUCE\t4096\t20\tALLTOALL_EP\t4096\t30\tREDUCESCATTER\t800\t100\n"
         "mlp -1 11 NONE 0 0 NONE 0 31 ALLGATHER_DP_EP 64 100\n",
         [](const std::string& path) { read_simai(path, 8); }},
    };
}

TEST(GarbledText, IsReadOrRefused) {
    const test::Folder folder;
    std::uint64_t random = 7;
    const auto next = [&] { return (random = random * 6364136223846793005ull + 1442695040888963407ull) >> 33; };
    for (const Format& format : formats()) {
        int read = 0, refused = 0;
        const auto attempt = [&](const std::string& text) {
            try {
                format.read(folder.write("file", text));
                ++read;
            } catch (const importers::ImportError& error) {
                ++refused;
                EXPECT_FALSE(error.sentence().empty());
                EXPECT_EQ(error.sentence().find('\n'), std::string::npos) << error.sentence();
            }
        };
        attempt(format.text);
        ASSERT_EQ(read, 1) << format.name;
        for (std::size_t length = 0; length < format.text.size(); length += 3)
            attempt(format.text.substr(0, length));
        for (int turn = 0; turn < 120; ++turn) {
            std::string text = format.text;
            for (int change = 0; change <= turn % 3; ++change)
                text[next() % text.size()] = static_cast<char>(turn % 2 == 0 ? next() : "0-{}[],:\" eE.9"[next() % 14]);
            attempt(text);
        }
        EXPECT_GT(refused, 100) << format.name;
    }
}

}  // namespace
}  // namespace fabricast::traces
