// What a collective asks of the cluster: NCCL's choice of algorithm, protocol and channels, its latency,
// and the load it puts on links. No clock: the network decides how long the load takes.
//
// Choice (tuner.hpp): time = latency + size / bandwidth for each available (algorithm, protocol) with NCCL's
// tables; the smallest wins. Cost: a latency (latency.hpp: hops, and the time to fill the pipeline), then
// activities on the network. An activity moves `work` bytes; each link of its demand carries coefficient/65536 of
// them. Ring channels are rotations of one node order, so link coefficients are (channels that cross the link) /
// channels (wiring.hpp). Channels with another bottleneck, a slow NIC say, are an activity of their own.
//
// Wire volumes per rank and payload S (n ranks): ring all-reduce 2 S (n-1)/n, ring all-gather and
// reduce-scatter S (n-1)/n, broadcast S, NVLS all-reduce S (1 + 1/n) each way, double binary tree between
// nodes and a chain inside the node. LL doubles wire bytes, LL128 multiplies by 128/120.
// No setting may finish a collective below its wire floor.
//
// A node is a server or, where an NVSwitch spans servers, its domain (locality_of in node_rings.hpp). Without an NVSwitch
// rings and chains follow direct NVLinks or, where these make no ring, the nearest GPU over PCIe, host bridges and sockets.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/collectives/search_presets.hpp"
#include "models/collectives/wiring.hpp"
#include "models/hardware/catalogue.hpp"
#include "topologies/graph/cluster.hpp"

namespace fabricast {

enum class Collective : std::uint8_t {
    all_reduce,
    all_gather,
    reduce_scatter,
    broadcast,
    reduce,
    all_to_all,
    send_recv,
    gather,
    scatter,  ///< point-to-point engine: exchange.hpp
    barrier,  ///< an all-reduce of one word
    count
};
/// p2p is what the point-to-point collectives run; it is never chosen among the others.
enum class Algorithm : std::uint8_t { tree, ring, collnet_direct, collnet_chain, nvls, nvls_tree, pat, p2p, count };
enum class Protocol : std::uint8_t { ll, ll128, simple, count };

std::string_view collective_name(Collective kind);  ///< "all_reduce"
std::optional<Collective> find_collective(std::string_view name);
/// Made of sends and receives, not of rings or trees.
constexpr bool is_exchange(Collective kind) { return kind >= Collective::all_to_all && kind <= Collective::scatter; }
/// nccl-tests: bus bandwidth = size / time x this. 0 for a barrier.
double bus_bandwidth_factor(Collective kind, std::uint32_t ranks);
std::string_view algorithm_name(Algorithm a);  ///< "Ring"
std::string_view protocol_name(Protocol p);    ///< "LL128"

/// What a network's transport costs beyond NCCL's tables; zero is nothing. Known to the clock, not to the choice.
/// Fitted by class of network (models/hardware/networks.yaml).
struct NetworkTiming {
    double hop_us[static_cast<int>(Protocol::count)] = {
        0, 0, 0};                 ///< added to each network hop of a tree (rings: latency.hpp)
    double slot_us = 0;           ///< Simple on trees: each of the first 8 chunks of a channel waits so long
    double channel_gb_per_s = 0;  ///< most that a channel of a ring over nodes moves; 0 = as inside a node
};

/// What one collective of a site lacks beyond what its links carry, measured (sim/scenario/calibration.hpp). It only slows.
struct CollectiveCorrection {
    double latency_s = 0;  ///< on top of the plan's; at least 0
    double rate = 1;       ///< share of the links' rate that it reaches; at most 1
};

/// What NCCL knows of the hardware (filled from the catalogue by sim/scenario).
struct CommFacts {
    GpuGeneration generation = GpuGeneration::hopper;
    bool nvswitch = true;
    bool nvls = false;
    bool amd_cpu = false;
    bool sharp = false;                  ///< switches reduce (InfiniBand SHARP); used with CommSettings::collnet
    double nvlink_nccl_bytes_per_s = 0;  ///< NCCL's figure for one GPU and direction (370.8e9 on H100)
    double nvlink_bytes_per_s = 0;       ///< what links of that figure are built with; 0 = the same
    double pcie_nccl_bytes_per_s = 48e9;
    double socket_nccl_bytes_per_s = 0;  ///< between sockets; 0 = no narrower than PCIe
    double nic_line_bytes_per_s = 0;     ///< line rate of one NIC
    NetworkTiming network = {};
    /// By collective, for groups on one node and over several.
    std::array<CollectiveCorrection, static_cast<std::size_t>(Collective::count)> inside = {}, outside = {};
};

/// What the catalogue says of a node: everything but `network` and `sharp`.
CommFacts comm_facts(const GpuSpec& gpu, const NodeSpec& node);

/// Settings that change the choice. Empty list = everything allowed.
struct CommSettings {
    std::string library = "nccl 2.28";
    std::vector<Algorithm> algorithms;  ///< NCCL_ALGO, for every collective: Tree alone leaves no all-gather
    std::vector<Protocol> protocols;    ///< NCCL_PROTO
    /// The same for one collective ("allreduce:tree"), in place of the lists above.
    struct Function {
        Collective kind;
        std::optional<std::vector<Algorithm>> algorithms;
        std::optional<std::vector<Protocol>> protocols;
    };
    std::vector<Function> functions;  ///< at most one of a kind
    const std::vector<Algorithm>& algorithms_for(Collective kind) const;
    const std::vector<Protocol>& protocols_for(Collective kind) const;
    std::optional<int> min_channels, max_channels;
    bool nvls_enabled = true;
    bool collnet = false;  ///< NCCL_COLLNET_ENABLE: reduce in switches that can
    bool pxn = true;       ///< NCCL_PXN_DISABLE=0: reach another rail through the GPU on it
};

/// Seconds that a byte sent by one rank of a ring takes on a hop in a node and between nodes by the links alone, all
/// channels busy. Best links of the group: slower ones show in the load of the network.
struct RingPace {
    double inside = 0, outside = 0;
};

/// Members of a communicator and everything about them the choice depends on.
struct CommGroup {
    std::vector<GpuId> members;                              ///< in rank order
    std::uint32_t ranks = 0, nodes = 0, ranks_per_node = 0;  ///< ranks_per_node = ranks / nodes (floor)
    /// Groups with equal shape (and equal link capacities along their routes) share plans.
    std::uint64_t shape_hash = 0;

    GroupOrder order;  ///< members by node
    std::uint32_t fewest_on_node = 0, most_on_node = 0;
    SearchResult search;                       ///< channels NCCL's topology search finds; empty for one rank
    RingPace pace;                             ///< several nodes only
    double ranks_per_nic = 1;                  ///< of a node, at least 1
    ChannelClasses ring, tree, nvls, collnet;  ///< empty where the algorithm cannot run, or is not laid yet
    /// By algorithm laid (CommModel::lay): its part of the shape, the links of its classes.
    struct Laid {
        std::uint64_t hash = 0;
        std::vector<std::vector<LinkUse>> demands;
    };
    std::array<Laid, static_cast<std::size_t>(Algorithm::count)> laid;
};

/// Members of one node reach each other over NVLink alone.
bool over_nvlink(const Cluster& cluster, const CommGroup& group);

/// One class of channels of a collective. All of them must finish.
struct PlannedActivity {
    Bytes work = 0;            ///< wire bytes per unit coefficient
    std::uint32_t weight = 1;  ///< connections it counts for in fair sharing (its channels)
    Rate cap = 0;              ///< own ceiling of the work rate; 0 = none
    std::uint32_t demand = 0;  ///< which entry of CommGroupDemands
};

struct CollectivePlan {
    Algorithm algorithm = Algorithm::ring;
    Protocol protocol = Protocol::simple;
    int channels = 0;
    Picoseconds latency = 0;                  ///< passes first and holds no link; includes `fill`
    Picoseconds fill = 0;                     ///< part of latency that grows with size (execution.hpp)
    std::vector<PlannedActivity> activities;  ///< empty when one rank or zero bytes
    bool uses_nvlink = false, uses_network = false;
    double tuner_s = 0;  ///< NCCL's own estimate
};

struct RingStep;     ///< latency.hpp
struct TunerInput;   ///< tuner.hpp
struct PairTraffic;  ///< exchange.hpp
struct MoeTraffic;   ///< moe.hpp
struct PlannedExchange {
    CollectivePlan plan;
    std::vector<std::vector<LinkUse>> demands;  ///< by PlannedActivity::demand
};

/// What the tuner thinks, for tables and tests.
struct TunerEntry {
    double latency_us = 0;
    double bandwidth_gb_per_s = 0;  ///< algorithm bandwidth; 0 = not available
};
struct TunerTable {
    TunerEntry entry[static_cast<int>(Algorithm::count)][static_cast<int>(Protocol::count)];
};

class CommModel {
public:
    /// Keeps a reference to the cluster. Throws std::invalid_argument for settings that leave no algorithm, an
    /// unknown library, channels out of range, facts without a link speed.
    CommModel(const Cluster& cluster, CommFacts facts, CommSettings settings);

    const CommSettings& settings() const { return settings_; }

    /// members: distinct, at least one. Any placement is allowed. Throws std::invalid_argument otherwise.
    CommGroup make_group(std::span<const GpuId> members) const;

    /// The same without any channel: enough to choose an algorithm. lay() adds the channels that plan() and demand() of an
    /// algorithm ask for; equal shape_hash and equal laid[].hash of it share its plans.
    CommGroup outline(std::span<const GpuId> members) const;
    void lay(CommGroup& group, Algorithm a) const;
    /// What plan() runs; nothing for exchanges and what costs nothing. Throws as plan() does.
    std::optional<Algorithm> algorithm(const CommGroup& group, Collective kind, Bytes size) const;

    TunerTable tuner(const CommGroup& group, Collective kind) const;

    /// size as nccl-tests counts it: all-reduce, broadcast, reduce the buffer, all-gather the gathered buffer,
    /// reduce-scatter the input buffer, all-to-all what a rank sends in all (to itself too), send-recv the message,
    /// gather and scatter all at the root (the first member); a barrier has no size. size >= 0. One rank or zero
    /// bytes cost nothing. Throws
    /// std::invalid_argument where the settings leave nothing that NCCL offers to this group.
    CollectivePlan plan(const CommGroup& group, Collective kind, Bytes size) const;

    /// The steps of a ring over several nodes as `plan` counts them (latency.hpp). Precondition: a ring's plan of all-reduce,
    /// all-gather or reduce-scatter, size > 0.
    RingStep ring_steps(const CommGroup& group, Collective kind, Bytes size, const CollectivePlan& plan) const;

    /// Links of one planned activity of this group; equal `demand` numbers of equal shapes correspond.
    std::vector<LinkUse> demand(const CommGroup& group, Collective kind, const CollectivePlan& plan,
                                std::uint32_t demand_index) const;

    /// Any traffic between the members at once (exchange.cpp): all_to_all_v, a neighbour's load.
    PlannedExchange exchange(const CommGroup& group, const PairTraffic& traffic) const;

    /// Node-aware dispatch or combine of tokens to experts (moe.hpp), on `sms` thread blocks.
    PlannedExchange expert_exchange(const CommGroup& group, const MoeTraffic& traffic, int sms) const;

    /// A point-to-point message (message.cpp): latency, links (coefficient one each, two for small ones inside a
    /// node) and class.
    struct Message {
        Picoseconds latency = 0;
        std::vector<LinkUse> links;
        Rate cap = 0;
        bool uses_nvlink = false, uses_network = false;
    };
    Message message(GpuId from, GpuId to, Bytes size) const;

private:
    struct Choice {
        Algorithm algorithm = Algorithm::ring;
        Protocol protocol = Protocol::simple;
        double time_s = 0;
    };
    Choice choose(const CommGroup& group, const TunerInput& in, const TunerTable& table, Collective kind,
                  Bytes size) const;
    ChannelClasses classify(const CommGroup& group, Wiring wiring, int channels, std::uint64_t& hash,
                            std::vector<std::vector<LinkUse>>* demands) const;
    RingPace ring_pace(const CommGroup& group, std::uint32_t nics) const;
    CollectivePlan uncorrected_plan(const CommGroup& group, Collective kind, Bytes size) const;

    const Cluster* cluster_;
    CommFacts facts_;
    CommSettings settings_;
};

}  // namespace fabricast
