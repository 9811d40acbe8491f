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
        const TableNode node = table_node(gpu);
        ASSERT_NE(node.spec, nullptr) << gpu;
        const CommModel model(node.cluster, node.facts, {});
        const CommGroup group = model.make_group(gpus(static_cast<std::uint32_t>(std::stoul(ranks))));
        const Collective kind = op == "all_reduce"   ? Collective::all_reduce
                                : op == "all_gather" ? Collective::all_gather
                                                     : Collective::reduce_scatter;
        const Bytes size = std::stoll(bytes);
        const double time = run_seconds(node.cluster, model, group, kind, model.plan(group, kind, size));
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
