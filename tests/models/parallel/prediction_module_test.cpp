// A multi-token prediction module costs a layer, a projection and the head once more, on the last stage.
#include <gtest/gtest.h>

#include "models/parallel/stage_builder.hpp"

namespace fabricast {
namespace {

TEST(PredictionModule, ParametersAreThoseCounted) {
    Architecture model = *find_architecture("deepseek-v3");
    Layout layout;
    layout.pp = 1;
    const std::int64_t without = stage_parameters(model, layout, 0).total();
    model.mtp_layers = 1;
    const ParameterCount count = count_parameters(model, padded_vocab(model, 1));
    EXPECT_EQ(stage_parameters(model, layout, 0).total() - without, count.mtp);
    layout.pp = 61;  // it sits behind the last stage
    model.mtp_layers = 0;
    const std::int64_t last = stage_parameters(model, layout, 60).total(),
                       before = stage_parameters(model, layout, 59).total();
    model.mtp_layers = 1;
    EXPECT_EQ(stage_parameters(model, layout, 60).total() - last, count.mtp);
    EXPECT_EQ(stage_parameters(model, layout, 59).total(), before);
}

}  // namespace
}  // namespace fabricast
