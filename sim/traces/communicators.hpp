// The groups of a job as the engine knows them: who is in them, which links their collectives load, what a call costs.
//
// A collective of all ranks runs dimension by dimension, over the lines of the grid, as ASTRA-sim's does: all-reduce as
// reduce-scatters up to the last dimension, all-reduce there, all-gathers back (localBWAware), or one all-reduce after
// the other (baseline); reduce-scatter, gather, reduce and all-to-all from the first dimension on, all-gather, scatter
// and broadcast from the last. Its chunks follow one another through the phases. A group of some ranks is a ring in the
// order it was given, whatever the system file says, as in ASTRA-sim; so are the one... algorithms over all ranks.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "models/program/program.hpp"
#include "sim/traces/collective_price.hpp"
#include "sim/traces/grid_network.hpp"
#include "sim/traces/link_table.hpp"
#include "sim/traces/system_file.hpp"
#include "sim/traces/workload.hpp"

namespace fabricast::traces {

/// One phase of a collective: in the lines of a dimension, or in the group as a whole.
struct Phase {
    static constexpr std::uint32_t kFlat = 0xFFFFFFFFu;
    std::uint32_t dimension = kFlat;
    CollectiveKind kind = CollectiveKind::all_reduce;
    DimensionAlgorithm algorithm;
    double bytes = 0;  ///< of a rank before it, all chunks
};

/// What a call of the program is.
struct CallSpec {
    std::uint16_t slot = 0;
    CollectiveKind kind = CollectiveKind::all_reduce;
    std::uint32_t dimension = Phase::kFlat;
    DimensionAlgorithm algorithm;
    double bytes = 0;  ///< of all chunks
    std::uint32_t chunks = 1;
    enum class Part : std::uint8_t { all, chunk, last_chunk } part = Part::all;
};

class Communicators {
public:
    Communicators(const GridNetwork& network, const SystemConfig& system, const Workload& workload, LinkTable& links,
                  program::Program& program);

    /// Throws std::runtime_error where the algorithm cannot.
    std::vector<Phase> phases_of(const TraceNode& node, const GroupUse& use) const;

    /// The program's group of a phase for a rank; made when it is new.
    std::uint32_t group_of(const GroupUse& use, std::uint32_t dimension, std::uint32_t rank);
    /// Index of the call; made when it is new.
    std::uint32_t call_of(const CallSpec& spec);
    /// Time of a call alone in seconds; makes what it needs.
    double time_alone(std::uint32_t call, std::uint32_t group);
    /// Says that the members of the group make the call.
    void enter(std::uint32_t call, std::uint32_t group);
    /// Fills Program::plans and the shapes of the groups. Last of all.
    void finish();

    std::string narrowest_link(std::uint32_t call, std::uint32_t group) const;

private:
    static constexpr std::size_t kPatterns = static_cast<std::size_t>(Pattern::count);
    struct Group {
        std::size_t dimension = PatternBuilder::kNoLine;
        std::array<std::uint32_t, kPatterns> demand;
        std::array<std::uint32_t, kPatterns> shape;  ///< index into shapes_
        std::array<LinkId, kPatterns> narrowest = {};
    };
    struct Call {
        CallSpec spec;
        Pattern pattern = Pattern::ring;
    };
    void need(std::uint32_t group, Pattern pattern);
    program::Plan plan(const Call& call, const PatternShape& shape) const;
    double part_time(const Call& call, const ChunkPrice& price) const;

    const GridNetwork& network_;
    const SystemConfig& system_;
    const Workload& workload_;
    program::Program& program_;
    PatternBuilder patterns_;
    std::vector<Group> groups_;
    std::vector<Call> calls_;
    std::vector<PatternShape> shapes_;
    std::vector<std::uint32_t> flat_;                ///< workload group -> program group
    std::vector<std::vector<std::uint32_t>> lines_;  ///< dimension, first rank of the line -> program group
    using CallKey = std::tuple<std::uint16_t, int, std::uint32_t, int, std::uint32_t, double, std::uint32_t, int>;
    std::map<CallKey, std::uint32_t> call_of_;
    std::vector<std::vector<std::uint32_t>> groups_of_call_;
};

}  // namespace fabricast::traces
