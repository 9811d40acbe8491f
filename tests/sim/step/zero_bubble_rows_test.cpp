// Forty-eight published steps of four GPT models under four pipeline schedules (arXiv:2401.10241, tables 3 to 5): pure
// pipelines of 8 to 32 A100s, three micro-batch counts each. What a schedule changes is the ratio of its step to the
// 1F1B step of the same model and micro-batch count; the step itself also carries what the paper leaves out (attention
// kernel, dropout, vocabulary). No constant of the simulator belongs to these rows.
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "support.hpp"

namespace fabricast {
namespace {

using test::Forecast;
using test::Table;

// First and last stage hold a layer fewer; interleaved chunks hold one layer, so that the first and the last hold none.
std::string layers_of_chunks(const Table& t, std::size_t row) {
    const int pp = std::stoi(t.at(row, "pp")), vpp = std::stoi(t.at(row, "vpp"));
    const int even = (std::stoi(t.at(row, "layers")) + 2) / (pp * vpp);
    std::string out = fmt::format("{}", even - 1);
    for (int chunk = 1; chunk + 1 < pp * vpp; ++chunk)
        out += fmt::format(", {}", even);
    return out + fmt::format(", {}", even - 1);
}

// As public 2022-23 Megatron tables: unfused attention with dropout. Fabric: RoCE of unstated rate, 200 Gb/s a GPU.
std::string scenario_of(const Table& t, std::size_t row) {
    return fmt::format(
        "name: {}\n"
        "cluster: {{nodes: {}, node: {{preset: hgx-a100-80g}}}}\n"
        "model: {{family: gpt, layers: {}, hidden: {}, heads: {}, vocab: 50257, max_positions: {}, "
        "tied_embeddings: false}}\n"
        "training:\n"
        "  sequence: {} tokens\n"
        "  global_batch: {} sequences\n"
        "  micro_batch: {}\n"
        "  layout: {{pp: {}, vpp: {}, stage_layers: [{}]}}\n"
        "  schedule: {}\n"
        "  software: megatron-2022\n",
        t.at(row, "id"), std::stoi(t.at(row, "gpus")) / 8, t.at(row, "layers"), t.at(row, "hidden"), t.at(row, "heads"),
        t.at(row, "seq_len"), t.at(row, "seq_len"), t.at(row, "global_batch"), t.at(row, "micro_batch"),
        t.at(row, "pp"), t.at(row, "vpp"), layers_of_chunks(t, row), t.at(row, "schedule"));
}

TEST(ZeroBubbleRows, RatiosBetweenSchedules) {
    const Table table(std::string(FABRICAST_SOURCE_DIR) + "/tests/sim/step/data/zerobubble.csv");
    ASSERT_EQ(table.size(), 48u);
    struct Step {
        double measured, predicted;
    };
    std::map<std::pair<std::string, int>, std::map<std::string, Step>> cases;
    for (std::size_t row = 0; row < table.size(); ++row) {
        const Forecast run = test::run_text(scenario_of(table, row));
        ASSERT_EQ(run.result.failure, "") << table.at(row, "id");
        const int m = std::stoi(table.at(row, "global_batch")) / std::stoi(table.at(row, "micro_batch"));
        cases[{table.at(row, "model"), m}][table.at(row, "schedule")] = {table.number(row, "measured_step_s"),
                                                                         run.seconds()};
    }
    double worst = 0, sum = 0;
    int ratios = 0;
    for (const auto& [key, steps] : cases) {
        const Step& base = steps.at("1f1b");
        fmt::print("{:>9} m {:>3}: 1f1b {:6.3f} s measured, {:+5.1f} %;", key.first, key.second, base.measured,
                   100 * (base.predicted / base.measured - 1));
        for (const auto& [schedule, step] : steps) {
            if (schedule == "1f1b")
                continue;
            const double measured = step.measured / base.measured, predicted = step.predicted / base.predicted;
            fmt::print(" {} {:.3f} measured {:.3f} predicted ({:+.1f});", schedule, measured, predicted,
                       100 * (predicted - measured));
            EXPECT_NEAR(predicted, measured, 0.05) << key.first << ' ' << key.second << ' ' << schedule;
            worst = std::max(worst, std::abs(predicted - measured));
            sum += std::abs(predicted - measured);
            ++ratios;
        }
        fmt::print("\n");
    }
    fmt::print("ratios to 1F1B: mean absolute error {:.1f} points, worst {:.1f}\n", 100 * sum / ratios, 100 * worst);
}

}  // namespace
}  // namespace fabricast
