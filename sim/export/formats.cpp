#include <array>

#include <fmt/format.h>

#include "sim/export/launch.hpp"

namespace fabricast::launch {

std::span<const Format> formats() {
    static constexpr std::array<Format, 3> kFormats = {
        {{"megatron", megatron_launch}, {"torchtitan", torchtitan_launch}, {"deepspeed", deepspeed_launch}}};
    return kFormats;
}

std::string follows(const TrainingPlan& p) {
    return fmt::format("dp {}, {} micro-batches of {} a step on each", p.layout.dp, p.micro_batches(), p.micro_batch);
}

}  // namespace fabricast::launch
