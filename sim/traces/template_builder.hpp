// One template of the program from one list of nodes, as a rank that stands for others binds it.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "models/program/program.hpp"
#include "sim/traces/communicators.hpp"
#include "sim/traces/compile_trace.hpp"

namespace fabricast::traces {

/// What a communicator slot of a template stands for: a group slot of the list, or the line of a dimension.
struct SlotSpec {
    std::uint32_t dimension = Phase::kFlat;
    std::uint32_t group_slot = 0;  ///< flat only
    bool operator==(const SlotSpec&) const = default;
};

struct BuiltTemplate {
    std::uint32_t tmpl = 0;
    std::vector<SlotSpec> slots;
    std::vector<std::vector<std::uint32_t>> calls_of_slot;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> traffic;  ///< index, how often
    bool uses_memory = false;
};

class TemplateBuilder {
public:
    TemplateBuilder(const TraceInputs& inputs, Communicators& communicators, CompiledTrace& out)
        : inputs_(inputs), communicators_(communicators), out_(out), program_(out.program) {}

    /// not_before: by node, when it ended in an earlier run; may be empty. Throws ImportError.
    BuiltTemplate build(std::uint32_t rank, const std::vector<Picoseconds>& not_before);

    bool shared_streams() const { return shared_streams_; }

private:
    static constexpr std::uint32_t kStreams = 32;
    /// A collective of the list: its phases, their calls, its time alone.
    struct Collective {
        std::vector<Phase> phases;
        std::vector<std::uint16_t> slot;                  ///< by phase
        std::vector<std::array<std::uint32_t, 2>> calls;  ///< by phase: of a chunk, of the last (or only) one
        std::uint32_t chunks = 1, traffic = 0;
        Picoseconds alone = 0;
    };

    void begin(std::uint32_t rank);
    void find_streams();
    const Collective& collective_of(const TraceNode& node);
    void price(const TraceNode& node, Collective& out);
    Picoseconds alone(const TraceNode& node);
    std::uint32_t resource(const TraceNode& node);
    std::uint8_t stream_of(const TraceNode& node, const Collective* collective, std::size_t phase) const;
    std::uint16_t slot_of(const SlotSpec& spec);
    Picoseconds compute_time(const TraceNode& node) const;

    void emit(std::uint32_t n);
    void emit_collective(std::uint32_t n);
    std::uint32_t add(program::OpKind kind, std::uint8_t stream, std::uint32_t payload, std::uint32_t label);
    void end_step();

    std::uint32_t label(std::uint32_t name, Account account);
    std::uint32_t duration(Picoseconds time);
    std::uint32_t cost(const TraceNode& node);
    std::uint32_t batch(const TraceNode& node, bool is_send);
    std::uint32_t transfer(Bytes bytes);
    std::uint32_t traffic_of(const std::string& kind, std::uint32_t ranks, Bytes bytes, const std::string& algorithm,
                             bool& fresh);
    void count_message(const TraceNode& node);
    [[noreturn]] void refuse(const TraceNode& node, const std::string& sentence) const;

    const TraceInputs& inputs_;
    Communicators& communicators_;
    CompiledTrace& out_;
    program::Program& program_;
    bool shared_streams_ = false;
    // entered once, for all templates
    std::map<std::pair<std::uint32_t, Account>, std::uint32_t> label_of_;
    std::map<Picoseconds, std::uint32_t> duration_of_;
    std::map<std::pair<Picoseconds, Picoseconds>, std::uint32_t> cost_of_;  ///< whole, part at the peak
    std::map<std::tuple<std::uint32_t, bool, Bytes>, std::uint32_t> batch_of_;
    std::map<Bytes, std::uint32_t> transfer_of_;
    std::map<std::tuple<std::string, std::uint32_t, Bytes, std::string>, std::uint32_t> traffic_of_;
    // of the template being built
    std::uint32_t rank_ = 0;
    const NodeList* list_ = nullptr;
    const RankTrace* bound_ = nullptr;
    BuiltTemplate built_;
    program::Template tmpl_;
    std::map<std::tuple<std::uint32_t, CollectiveKind, Bytes>, Collective> collectives_;
    std::vector<std::uint32_t> traffic_count_;
    std::uint8_t host_stream_ = 0, memory_stream_ = 0, replay_stream_ = 0;
    std::vector<std::uint8_t> dimension_stream_, group_stream_, message_stream_;
    std::vector<std::vector<std::uint32_t>> ends_;     ///< by node: operations that end it
    std::array<std::uint32_t, kStreams> needed_ = {};  ///< by stream: operations that must be done, + 1
    std::array<std::array<std::uint32_t, kStreams>, kStreams> waited_ = {};  ///< [stream][other]: known to be done, + 1
    std::vector<std::uint32_t> last_communication_;  ///< operations that end the communication node before
};

}  // namespace fabricast::traces
