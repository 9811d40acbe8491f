// A layout in the words of the program that will train it.
//
//   megatron     a launch script: torchrun and Megatron-LM's arguments; model, layout, batch, precision, overlap, optimizer
//   torchtitan   a job file: layout, batch, recomputation; the model by its name
//   deepspeed    ds_config.json: batch, ZeRO, precision, optimizer, offload; it has neither model nor layout
//
// What is written reads back through sim/import to the same layout; what a program cannot say stands in `notes` and, where the
// format has comments, on top of the text. Names and meanings: those of the readers (sim/import), which name their sources.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/scenario/scenario.hpp"

namespace fabricast::launch {

struct Launch {
    std::string text;
    std::vector<std::string> notes;  ///< sentences
};

/// `scenario`: the cluster and the model; `plan` instead of its own training.
Launch megatron_launch(const Scenario& scenario, const TrainingPlan& plan);
Launch torchtitan_launch(const Scenario& scenario, const TrainingPlan& plan);
Launch deepspeed_launch(const Scenario& scenario, const TrainingPlan& plan);

struct Format {
    std::string_view name;
    Launch (*write)(const Scenario& scenario, const TrainingPlan& plan);
};
std::span<const Format> formats();

/// "dp 16, 8 micro-batches of 2 sequences": what follows and is said nowhere.
std::string follows(const TrainingPlan& plan);

}  // namespace fabricast::launch
