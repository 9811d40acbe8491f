// A typed scenario: everything a forecast needs, checked and with units removed.
//
// Read from YAML (load_scenario) with strict keys; every diagnostic has file:line:column, the value, what is
// allowed and the nearest match. `extends:` merges a base file (paths relative to the file); `--set a.b=c`
// overrides afterwards. Everything the user did not say is entered in `assumptions` with its origin.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "models/collectives/comm_model.hpp"
#include "models/hardware/catalogue.hpp"
#include "models/parallel/layout.hpp"
#include "models/transformer/architecture.hpp"
#include "sim/scenario/job_plan.hpp"
#include "sim/scenario/plan_spec.hpp"
#include "sim/scenario/run_plan.hpp"
#include "topologies/builders/grid.hpp"
#include "topologies/builders/hand_made.hpp"
#include "topologies/graph/routing_policy.hpp"
#include "topologies/importers/fabric.hpp"
#include "topologies/importers/machine.hpp"

namespace fabricast {

struct Calibration;  ///< calibration.hpp

/// User error. what() is the full text "file:line:column: sentence"; exit code 2.
struct ScenarioError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

enum class Origin : std::uint8_t { stated, measured, fitted, published, datasheet, guess };
std::string_view origin_name(Origin origin);

struct Assumption {
    std::string what;   ///< "cluster.node.nic_efficiency"
    std::string value;  ///< "0.93"
    Origin origin = Origin::guess;
    std::string source;  ///< sentence from the catalogue, may be empty
};

struct Scenario {
    std::string name;
    std::string file;  ///< as given on the command line
    // cluster
    std::uint32_t nodes = 1;
    NodeSpec node;  ///< preset with overrides applied
    GpuSpec gpu;    ///< preset with overrides applied
    FabricSpec fabric;
    double oversubscription = 1;
    bool rails = true;
    std::uint32_t levels = 2, pods_per_block = 1, planes = 1, spines = 0;
    double block_oversubscription = 1;
    RoutingPolicy routing;
    std::optional<NetworkSpec> network;         ///< what a hop costs beyond NCCL's tables; where said or the node's own
    std::optional<importers::Machine> machine;  ///< cluster.node.topology: the server as its file tells
    std::optional<importers::FabricDescription> fabric_file;  ///< cluster.fabric.file without dimensions
    std::vector<std::string> hosts;                           ///< of it, in node order; empty: all
    std::uint32_t gpus_per_server = 1;                        ///< of it, where it lists GPUs alone
    std::vector<GridAxis> grid;                               ///< cluster.fabric.dimensions, or those of the file
    std::uint32_t inner_dimensions = 1;
    std::optional<HandMade> graph;  ///< cluster.graph
    std::string shape_where;        ///< place of the key that says what the cluster is, for errors
    struct DegradedPart {
        std::string what;  ///< "nic 3.2", "gpu 1.0 nvlink", a link name
        double factor = 1;
        std::uint32_t lanes_lost = 0, lanes = 0;  ///< instead; lanes 0: the link's own
    };
    std::vector<DegradedPart> degraded;
    std::string degraded_where;  ///< place of the key, for errors
    double power_limit_w = 0;    ///< 0 = nominal
    bool gpu_draw_each = false;  ///< each GPU draws its speed; else one is the expected slowest
    double gpu_spread = 0;       ///< standard deviation of speed between GPUs of one kind, as a share
    double kernel_jitter = 0;    ///< standard deviation of a second of kernels on 8 GPUs, in s

    /// Where rates and counts come from a file, a grid or a graph and not from a preset.
    bool fabric_is_listed() const { return fabric_file || !grid.empty() || graph; }
    // model, training
    Architecture model;
    TrainingPlan training;
    SoftwareFeatures software;
    std::string offload_where;      ///< place of training.offload, for errors
    double compression_warmup = 0;  ///< share of the run whose gradients are not compressed yet
    // communication library
    CommSettings comm;
    std::vector<std::string> comm_notes;  ///< env settings without effect, out of range, deprecated
    // data, patience, faults
    DataPlan data;
    TimeOuts time_outs;
    std::vector<StepFault> faults;
    // run
    double tokens = 0;              ///< of the whole run; 0 = not stated
    double price_per_gpu_hour = 0;  ///< 0 = not stated
    std::string currency = "USD";
    RunPlan run;
    double slow_gpu = 1;  ///< compute of one GPU, of the busiest stage, takes so many times as long
    // expectations: key of result.json's step object -> [low, high]
    struct Expectation {
        std::string what;
        double low, high;
        std::string where;
    };
    std::vector<Expectation> expect;
    PlanSpec plan;
    bool layout_given = false;   ///< training.layout was typed
    bool layout_open = false;    ///< loaded to plan: the layout need not fit the cluster
    std::string expect_outcome;  ///< "ok", "out_of_memory", "deadlock", "stuck", "hang" ...; empty = not stated
    std::uint64_t seed = 1;
    Picoseconds quantum = 0;                         ///< the network is solved at most so often; 0 = exact
    std::shared_ptr<const Calibration> calibration;  ///< laid over the catalogue; null = none
    std::vector<Assumption> assumptions;
    std::vector<std::string> notes;  ///< accepted keys that this version does not use yet, and the like
};

/// cluster: a file without `model` and `training` will do; what it has is read and checked all the same. plan: the layout is
/// a beginning and need not fit; data and faults are not read.
enum class Scope : std::uint8_t { step, cluster, plan };

/// Throws ScenarioError. `overrides`: "training.layout.tp=4" each. A calibration that has nothing for this cluster and stack
/// is told in the notes.
Scenario load_scenario(const std::string& path, const std::vector<std::string>& overrides, Scope scope = Scope::step,
                       std::shared_ptr<const Calibration> calibration = nullptr);

/// Same from text, for tests; `name` stands in diagnostics for the file.
Scenario parse_scenario(const std::string& yaml, const std::string& name,
                        const std::vector<std::string>& overrides = {}, Scope scope = Scope::step,
                        std::shared_ptr<const Calibration> calibration = nullptr);

/// `plan` as `phase` of the run changes it; dp takes the GPUs that remain.
void apply_phase(const RunPlan::Phase& phase, std::int64_t gpus, TrainingPlan& plan);

/// Adds a fault from the command line: "gpu 29.2 clock 1200 MHz at 2 h". Throws ScenarioError.
void inject_fault(Scenario& scenario, const std::string& text);

/// JSON Schema (draft 7) of the scenario file, pretty-printed.
std::string scenario_schema();
/// Its reference in Markdown, a table for each section: scenarios/REFERENCE.md.
std::string scenario_reference();

}  // namespace fabricast
