// A job over epochs, or over the time in which faults strike: the program of job_program.hpp, run rank by rank.
//
// Steps of an epoch repeat themselves, so a stretch of them is left out of the program and its time added back afterwards:
// after `settling` steps whose times repeat to the picosecond (with W workers that feed too slowly they come in runs of W),
// the state at the next boundary is that of this one, and k more steps take k periods. The last steps of an epoch, and those
// around a fault with a time, are simulated. Where times do not repeat, ever longer stretches are tried; the last stands for
// what is left out by its mean, and JobResult::settled is false.
//
// How the job ends: messages (time_outs.hpp) where somebody loses patience; an endless stall where nobody does.
#pragma once

#include "sim/step/forecast.hpp"

namespace fabricast {

/// The scenario has epochs, or a fault with a time.
bool runs_as_job(const Scenario& scenario);

/// step: of the forecast, the first guess of a period. skip: false simulates every step. Sets verdict and failure of the
/// result when the job fails. Throws ScenarioError for time-outs shorter than a step and for places that do not exist.
void run_job(const Scenario& scenario, const BuiltStep& built, bool skip, Result& result);

/// One stretch of steps that differ (a loader, stops, lengths): means over kSampledSteps of them into `result.step`.
void run_differing_steps(const Scenario& scenario, const BuiltStep& built, Result& result);

}  // namespace fabricast
