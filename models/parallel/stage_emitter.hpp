// Emission of a stage's template: operations in program order, segments that collect kernels until they are flushed.
//
// Waits: next_waits_ ride on the next operation of the compute stream; an operation of another stream names its own.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "models/parallel/stage_builder.hpp"

namespace fabricast::stage {

using program::MemoryChange;
using program::Node;
using program::Operation;
using program::OpKind;
using program::Phase;

enum StreamName : std::uint8_t {
    kCompute,
    kTensor,
    kContext,
    kParameter,
    kGradient,
    kReceiveForward,
    kSendForward,
    kReceiveBackward,
    kSendBackward,
    kReceiveForwardUp,  // the same for chunks that run up
    kSendForwardUp,
    kReceiveBackwardUp,
    kSendBackwardUp,
    kNorm,
    kExpert,    // DualPipe: dispatch and combine
    kDownload,  // copies to host memory, and back
    kUpload,
    kHost,  // updates on the CPU
    kStreamNames
};

class StageEmitter {
protected:
    StageEmitter(const Architecture& a, const TrainingPlan& plan, const SoftwareFeatures& software, std::int64_t stage,
                 ProgramParts parts)
        : a_(a),
          plan_(plan),
          layout_(plan.layout),
          software_(software),
          stage_(stage),
          parts_(parts),
          p_(parts.program) {}

    std::uint32_t name_of(std::string_view name);
    std::uint32_t label(std::string_view name, Account account, Phase phase, std::int64_t layer = -1);
    std::uint32_t push(Operation op);
    std::uint32_t open_repeat(std::int64_t count);
    void close(std::uint32_t node) { t_.nodes[node].end = static_cast<std::uint32_t>(t_.nodes.size()); }
    void add(std::vector<Kernel> kernels, bool recompute = false);
    void hold(MemoryCause cause, Bytes bytes);
    // Ends the running segment; memory changes and waits ride on it.
    void flush(std::string_view name, Phase phase, std::int64_t layer = -1);
    std::uint32_t call(const CallInfo& info);
    std::uint32_t collective(std::uint8_t stream, Slot slot, Collective kind, Bytes bytes, std::string_view what,
                             Account account, Phase phase, std::vector<std::uint32_t> waits = {},
                             std::int64_t layer = -1, std::int32_t share = 1000);
    std::uint32_t collective(std::uint8_t stream, const CallInfo& info, Account account, Phase phase,
                             std::vector<std::uint32_t> waits, std::int64_t layer);

    const Architecture& a_;
    const TrainingPlan& plan_;
    const Layout& layout_;
    const SoftwareFeatures& software_;
    std::int64_t stage_;
    ProgramParts parts_;
    program::Program& p_;
    program::Template t_;
    using LabelKey = std::tuple<std::uint32_t, Account, Phase, std::int64_t>;  ///< name, account, phase, layer
    std::map<LabelKey, std::uint32_t> labels_;
    std::vector<std::uint32_t> names_;  ///< used by this stage: indices into p_.names
    std::vector<Kernel> segment_;
    std::vector<MemoryChange> memory_;
    LayerPasses passes_;  ///< layer passes in the open segment
    std::vector<std::uint32_t> next_waits_;
    std::uint32_t last_main_ = program::kNone;  ///< latest node of the compute stream
};

}  // namespace fabricast::stage
