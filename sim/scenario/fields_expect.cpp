// The field table from `expect` on.
#include "sim/scenario/field_kinds.hpp"

namespace fabricast {
namespace {

using namespace field_kinds;

constexpr Field kExpectFields[] = {
    section("expect", "What must come out; the exit code is 1 otherwise."),
    expected("expect.mfu", 1, "Model FLOP utilisation, a fraction."),
    expected("expect.hfu", 2, "Hardware FLOP utilisation, a fraction."),
    expected("expect.mfu_causal", 1, "Model FLOP utilisation with attention scores halved, a fraction."),
    expected("expect.hfu_causal", 2, "Hardware FLOP utilisation with attention scores halved, a fraction."),
    expected("expect.mfu_whole", 1, "Model FLOP utilisation with the scores of whole sequences, packed or not."),
    expected("expect.hfu_whole", 2, "Hardware FLOP utilisation with the scores of whole sequences."),
    expected("expect.step_time_s", 1e9, "Time of one step, seconds."),
    expected("expect.tokens_per_s", 1e18, "Tokens a second, whole cluster."),
    expected("expect.tokens_per_s_per_gpu", 1e18, "Tokens a second and GPU."),
    expected("expect.model_tflops_per_gpu", 1e9, "Model TFLOP/s of one GPU."),
    expected("expect.exposed_comm_fraction", 1, "Part of the step spent in exposed communication."),
    expected("expect.bubble_fraction", 1, "Part of the step spent in pipeline bubbles."),
    expected("expect.memory_gib", 1e9, "Memory of the fullest GPU, GiB."),
    expected("expect.days", 1e9, "Days of the run without failures."),
    expected("expect.gpu_hours", 1e18, "GPU-hours of the run without failures."),
    expected("expect.cost", 1e18, "Cost of the run without failures."),
    expected("expect.failed_at_s", 1e9, "When the job failed, seconds from its start."),
    expected("expect.epochs_done", 1e9, "Epochs that were completed."),
    expected("expect.job_s", 1e9, "Time of all epochs, seconds."),
    expected("expect.longest_step_s", 1e9, "The longest step of the job, seconds."),
    expected("expect.reporting_ranks", 1e9, "Ranks that report a time-out or error of their own."),
    expected("expect.samples_missed", 1, "Share of an epoch's samples that no rank reads."),
    expected("expect.ettr", 1, "Kept steps over wall time of the campaign, median of the replicas."),
    expected("expect.campaign_days", 1e9, "Days of the campaign, median."),
    expected("expect.campaign_tokens", 1e18, "Tokens that were kept, median."),
    expected("expect.campaign_gpu_hours", 1e18, "GPU-hours billed, spares and down time included, median."),
    expected("expect.campaign_cost", 1e18, "Cost of these GPU-hours, median."),
    expected("expect.stops", 1e9, "Faults that stop the job, mean of the replicas."),
    expected("expect.mttf_h", 1e9, "Mean time between stops of the job, hours."),
    expected("expect.best_interval_s", 1e9, "Best checkpoint interval by simulation, seconds."),
    expected("expect.best_to_young", 1e9, "The same over Young's."),
    expected("expect.best_to_daly", 1e9, "The same over Daly's."),
    expected("expect.lost_h", 1e9, "Time of steps that were done and lost, hours, mean."),
    expected("expect.stop_detection_s", 1e9, "From a fault that all come back from to its notice, seconds, mean."),
    expected("expect.stop_restart_s", 1e9, "From then to the first new step, loading and waits included, mean."),
    expected("expect.stop_lost_s", 1e9, "Steps done and lost by such a fault, seconds, mean."),
    expected("expect.warnings", 1e9, "Times the step passed the warning level, mean."),
    expected("expect.criticals", 1e9, "Times it passed the critical level, mean."),
    expected("expect.first_warning_d", 1e9, "Day of the first warning, median of the lives that had one."),
    expected("expect.first_critical_d", 1e9, "The same of the critical level."),
    expected("expect.monitor_false_alarms", 1e9, "Alarms of our and your rules that belong to nothing."),
    expected("expect.monitor_caught", 1e9, "Things that went wrong which these rules caught."),
    expected("expect.monitor_restarts", 1e9, "Restarts that rules asked for."),
    expected("expect.case_a_false_alarms", 1e9, "Alarms of the field report's rules that belong to nothing."),
    expected("expect.case_a_caught", 1e9, "Things that went wrong which the field report's rules caught."),
    expected("expect.monitor_warning_d", 1e9,
             "Day on which a rule of the monitors that holds the step against its base first warned."),
    expected("expect.monitor_critical_d", 1e9, "Day on which such a rule first was critical."),
    choice("expect.outcome", "ok|out_of_memory|deadlock|stuck|mismatch|hang|time-out|transport_error|crash", "",
           "How the simulated job must end; a hang also ends in a time-out."),
    section("simulation", "How exactly time is simulated."),
    {.path = "simulation.quantum",
     .kind = K::quantity,
     .doc =
         "The network is solved at most so often; 0 or absent: at every change, exactly. The report says by how much "
         "a step can be too long for it.",
     .dimension = D::time,
     .example = "us",
     .high = 1},
    integer("seed", 0, 9e15, "1", "Seed of everything random."),
};

}  // namespace

std::span<const Field> expect_fields() { return kExpectFields; }

}  // namespace fabricast
