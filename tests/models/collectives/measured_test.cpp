// One-node NCCL tables measured by others, a small sample: the model must stay near them. The bound is loose, it
// guards against regressions; the scores over all rows are the business of validate/score.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "models/hardware/catalogue.hpp"
#include "tests/models/collectives/support.hpp"

namespace fabricast {
namespace {

using namespace test;

TEST(Measured, OneNodeSample) {
    std::ifstream file(FABRICAST_SOURCE_DIR "/tests/models/collectives/data/nccl_one_node.csv");
    ASSERT_TRUE(file) << "sample not found";
    std::string line;
    std::getline(file, line);
    std::vector<double> large, small;
    while (std::getline(file, line)) {
        std::istringstream cells(line);
        std::string gpu, op, ranks, bytes, latency;
        std::getline(cells, gpu, ',');
        std::getline(cells, op, ',');
        std::getline(cells, ranks, ',');
        std::getline(cells, bytes, ',');
        std::getline(cells, latency, ',');
        const std::string name = gpu == "H100-SXM"   ? "H100-SXM-80G"
                                 : gpu == "H200-SXM" ? "H200-SXM-141G"
                                 : gpu == "B200"     ? "B200-SXM-180G"
                                                     : gpu;
        const GpuSpec* spec = Catalogue::builtin().find_gpu(name);
        ASSERT_NE(spec, nullptr) << name;
        Platform p;
        p.node = {.nics = 0, .nvlink = spec->nvlink_achieved_bytes_per_s, .pcie = spec->pcie_bytes_per_s, .nic = 1e9};
        const Cluster cluster = cluster_of(p, 1);
        CommFacts facts;
        facts.generation = spec->generation;
        facts.nvls = spec->nvls;
        facts.nvlink_nccl_bytes_per_s = spec->nvlink_nccl_bytes_per_s;
        const CommModel model(cluster, facts, {});
        const CommGroup group = model.make_group(gpus(static_cast<std::uint32_t>(std::stoul(ranks))));
        const Collective kind = op == "all_reduce"   ? Collective::all_reduce
                                : op == "all_gather" ? Collective::all_gather
                                                     : Collective::reduce_scatter;
        const Bytes size = std::stoll(bytes);
        const double time = run_seconds(cluster, model, group, kind, model.plan(group, kind, size));
        const double error = std::abs(time * 1e6 / std::stod(latency) - 1);
        EXPECT_LT(error, .45) << line << " predicted " << time * 1e6 << " us";
        (size >= kMiB ? large : small).push_back(error);
    }
    ASSERT_GT(large.size(), 40u);
    ASSERT_GT(small.size(), 10u);
    for (std::vector<double>* errors : {&large, &small}) {
        std::sort(errors->begin(), errors->end());
        EXPECT_LT((*errors)[errors->size() / 2], .08);
        EXPECT_LT((*errors)[errors->size() * 9 / 10], .25);
    }
}

}  // namespace
}  // namespace fabricast
