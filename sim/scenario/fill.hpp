// Answers -> the parts of a Scenario. Each function takes presets from the catalogue, lays the overrides on
// top and checks what no single field can check alone. Errors are collected; a function that cannot go on
// returns false.
#pragma once

#include "sim/scenario/check.hpp"
#include "sim/scenario/scenario.hpp"

namespace fabricast {

bool fill_cluster(Answers& answers, Scenario& scenario, Diagnostics& diagnostics);
/// Parts of fill_cluster: what the server is, and what the network is. Need the GPU and the NICs of the presets.
void fill_board(Answers& answers, Scenario& scenario, Diagnostics& diagnostics);
void fill_shape(Answers& answers, Scenario& scenario, Diagnostics& diagnostics);
/// A path of the scenario: relative to the file that names it, or to the working directory for an override.
std::string path_beside(const Answer& file);
bool fill_model(Answers& answers, Scenario& scenario, Diagnostics& diagnostics);
/// Needs cluster and model. Ends with check_layout.
bool fill_training(Answers& answers, Scenario& scenario, Diagnostics& diagnostics);
/// Need precision, layout and software.
void fill_compression(Answers& answers, Scenario& scenario, Diagnostics& diagnostics);
void place_compression(Scenario& scenario);  ///< behind check_layout: who shares a server
void fill_optimizer(Answers& answers, Scenario& scenario, Diagnostics& diagnostics);
void fill_comm(Answers& answers, Scenario& scenario, Diagnostics& diagnostics);
/// Needs cluster, training and comm.
void fill_job(Answers& answers, Scenario& scenario, Diagnostics& diagnostics);
void fill_faults_of_step(const Answers& answers, Scenario& scenario, Diagnostics& diagnostics);
void fill_run(Answers& answers, Scenario& scenario, Diagnostics& diagnostics);
void fill_plan(Answers& answers, Scenario& scenario, Diagnostics& diagnostics);
Schedule schedule_from(std::string_view word);  ///< words of the field table
Recompute recompute_from(std::string_view word);
ContextExchange context_from(std::string_view word);
/// Need model, training and the tokens of the run. fill_faults is a part of fill_campaign.
void fill_campaign(Answers& answers, Scenario& scenario, Diagnostics& diagnostics);
void fill_faults(Answers& answers, Scenario& scenario, Diagnostics& diagnostics);
void fill_monitors(Answers& answers, Scenario& scenario, Diagnostics& diagnostics);  ///< another part
/// False without `faults`, and where all it has are events of the step (`what`), as a bare list of them has.
bool faults_of_campaign(const Answers& answers);

/// Everything that decides the forecast and was not typed, or replaces a catalogue figure.
void list_assumptions(const Answers& answers, Scenario& scenario);

void list_run(const Answers& answers, Scenario& scenario);  ///< the part of it that a campaign rests on

/// Class of a source sentence of the catalogue: an estimate is a guess even when it starts from a data sheet.
Origin origin_of(std::string_view source);

/// Records that `path` must be given; `why` continues "is missing".
void missing(const Answers& answers, std::string_view path, std::string_view why, Diagnostics& diagnostics);

}  // namespace fabricast
