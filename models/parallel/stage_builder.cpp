#include "models/parallel/stage_builder.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

namespace fabricast {
namespace {

using program::MemoryChange;
using program::Node;
using program::Operation;
using program::OpKind;
using program::Phase;

// Default bucket of Megatron's distributed optimizer: max(40e6, 1e6 * dp) parameters (distributed_data_parallel_config.py).
constexpr std::int64_t kBucketParameters = 40'000'000;
constexpr std::int64_t kBucketParametersPerRank = 1'000'000;
// Of the copies sharded training makes (SoftwareFeatures::fsdp_copy_bytes, half with 16-bit reduction) the copy-out of the
// forward's gather; the backward has another copy-out, the copy-in, cast and pre-divide of the reduction. Estimate.
constexpr double kShardCopyForwardShare = 0.3;

enum StreamName : std::uint8_t {
    kCompute,
    kTensor,
    kParameter,
    kGradient,
    kReceiveForward,
    kSendForward,
    kReceiveBackward,
    kSendBackward,
    kStreamNames
};

class StageBuilder {
public:
    StageBuilder(const Architecture& a, const TrainingPlan& plan, const SoftwareFeatures& software, std::int64_t stage,
                 ProgramParts parts)
        : a_(a),
          plan_(plan),
          layout_(plan.layout),
          software_(software),
          stage_(stage),
          parts_(parts),
          p_(parts.program),
          parameters_(stage_parameters(a, plan.layout, stage)) {
        shard_.tp = layout_.tp;
        shard_.sequence_parallel = layout_.sequence_parallel && layout_.tp > 1;
        shard_.micro_batch = plan.micro_batch;
        shard_.sequence = plan.sequence;
        shard_.precision = plan.precision;
        activation_bytes_ = plan.precision == Precision::fp32 ? 4 : 2;
        gradient_bytes_ = software.fp32_reduce || plan.precision == Precision::fp32 ? 4 : 2;
        hidden_ = static_cast<std::int32_t>(software.tp_hidden_fraction * 1000 + 0.5);
        tensor_stream_ = software.tp_backward_overlap || hidden_ > 0 ? kTensor : kCompute;
        sharded_ = layout_.zero == 3 && layout_.dp > 1;
        overlap_p2p_ = software.p2p_overlap && layout_.schedule == Schedule::interleaved;
        layers_per_chunk_ = a.layers / (layout_.pp * layout_.vpp);
    }

    std::uint32_t build(std::int64_t steps);

private:
    // ---- emission ----
    std::uint32_t label(std::string_view name, Account account, Phase phase, std::int64_t layer = -1) {
        const std::string key =
            fmt::format("{}|{}|{}|{}|{}", name, static_cast<int>(account), static_cast<int>(phase), stage_, layer);
        const auto [at, fresh] = labels_.try_emplace(key, static_cast<std::uint32_t>(p_.labels.size()));
        if (fresh) {
            std::uint32_t id = 0;
            while (id < p_.names.size() && p_.names[id] != name)
                ++id;
            if (id == p_.names.size())
                p_.names.emplace_back(name);
            p_.labels.push_back(
                {id, account, phase, static_cast<std::int16_t>(stage_), static_cast<std::int16_t>(layer), -1});
        }
        return at->second;
    }
    std::uint32_t push(Operation op) {
        const auto node = static_cast<std::uint32_t>(t_.nodes.size());
        Node n;
        n.operation = static_cast<std::uint32_t>(t_.operations.size());
        n.end = node + 1;
        if (op.stream == kCompute) {
            last_main_ = node;
            for (const std::uint32_t wait : next_waits_) {
                if (t_.operations[t_.nodes[wait].operation].stream != kCompute)
                    op.waits.push_back(wait);
            }
            next_waits_.clear();
        }
        t_.nodes.push_back(n);
        t_.operations.push_back(std::move(op));
        return node;
    }
    std::uint32_t open_repeat(std::int64_t count) {
        Node n;
        n.kind = Node::Kind::repeat;
        n.count = count;
        t_.nodes.push_back(n);
        return static_cast<std::uint32_t>(t_.nodes.size() - 1);
    }
    void close(std::uint32_t node) { t_.nodes[node].end = static_cast<std::uint32_t>(t_.nodes.size()); }

    void add(std::vector<Kernel> kernels, bool recompute = false) {
        for (Kernel& kernel : kernels) {
            if (recompute)
                kernel.account = Account::recompute;
            segment_.push_back(kernel);
        }
    }
    void hold(MemoryCause cause, Bytes bytes) {
        if (bytes != 0)
            memory_.push_back({cause, bytes});
    }
    // On the gather just emitted.
    void hold_gathered(Bytes bytes) {
        t_.operations.back().memory.push_back({MemoryCause::gathered_parameters, bytes});
    }
    // Ends the running segment; memory changes and waits ride on it.
    void flush(std::string_view name, Phase phase, std::int64_t layer = -1) {
        if (segment_.empty() && memory_.empty() && next_waits_.empty())
            return;
        Operation op;
        op.kind = OpKind::compute;
        op.payload = parts_.costs.intern(segment_, passes_);
        op.label = label(name, Account::gemm_ideal, phase, layer);
        op.memory = std::move(memory_);
        memory_.clear();
        segment_.clear();
        passes_ = 0;
        push(std::move(op));
    }
    std::uint32_t call(Slot slot, Collective kind, Bytes bytes, std::string_view what, std::int32_t share) {
        const auto key = std::make_tuple(slot, kind, bytes, share, std::string(what));
        for (std::uint32_t i = 0; i < parts_.calls.size(); ++i) {
            const CallInfo& info = parts_.calls[i];
            if (std::make_tuple(info.slot, info.kind, info.bytes, info.share, info.what) == key)
                return i;
        }
        parts_.calls.push_back({std::string(what), kind, slot, bytes, share});
        p_.calls.push_back({static_cast<std::uint16_t>(slot), static_cast<std::uint8_t>(kind), bytes * share / 1000});
        return static_cast<std::uint32_t>(p_.calls.size() - 1);
    }
    std::uint32_t collective(std::uint8_t stream, Slot slot, Collective kind, Bytes bytes, std::string_view what,
                             Account account, Phase phase, std::vector<std::uint32_t> waits = {},
                             std::int64_t layer = -1, std::int32_t share = 1000) {
        Operation op;
        op.kind = OpKind::collective;
        op.stream = stream;
        op.payload = call(slot, kind, bytes, what, share);
        op.label = label(what, account, phase, layer);
        for (const std::uint32_t wait : waits) {
            if (wait != program::kNone && t_.operations[t_.nodes[wait].operation].stream != stream)
                op.waits.push_back(wait);
        }
        return push(std::move(op));
    }

    // ---- tensor parallelism ----
    Bytes hidden_bytes() const { return shard_.tokens() * a_.hidden * activation_bytes_; }
    // Communicates between segments; the next segment needs the result.
    void tensor(Collective kind, Bytes bytes, std::string_view what, std::string_view segment, Phase phase,
                std::int64_t layer, std::int32_t share = 1000) {
        if (layout_.tp == 1)
            return;
        flush(segment, phase, layer);
        const std::uint32_t node = collective(tensor_stream_, Slot::tp, kind, bytes, what, Account::comm_tp, phase,
                                              {last_main_}, layer, share);
        if (tensor_stream_ != kCompute)
            next_waits_.push_back(node);
    }
    // Chunked GEMMs hide a share of the traffic: that part of a collective runs beside the linear layers it feeds (in)
    // or that feed it (out), the rest stands between segments.
    void beside(Collective kind, std::string_view what, Phase phase, std::int64_t layer, std::uint32_t after) {
        if (hidden_ > 0)
            collective(tensor_stream_, Slot::tp, kind, hidden_bytes(), what, Account::comm_tp, phase, {after}, layer,
                       hidden_);
    }
    void tensor_in(std::string_view segment, Phase phase, std::int64_t layer) {
        if (!shard_.sequence_parallel)
            return;
        constexpr std::string_view what = "tp all-gather";
        tensor(Collective::all_gather, hidden_bytes(), what, segment, phase, layer, 1000 - hidden_);
        beside(Collective::all_gather, what, phase, layer, last_main_);
    }
    void tensor_out(std::string_view segment, Phase phase, std::int64_t layer) {
        if (layout_.tp == 1)
            return;
        const Collective kind = shard_.sequence_parallel ? Collective::reduce_scatter : Collective::all_reduce;
        const std::string_view what = shard_.sequence_parallel ? "tp reduce-scatter" : "tp all-reduce";
        const std::uint32_t before = last_main_;
        flush(segment, phase, layer);
        const bool split = before != last_main_ && before != program::kNone;
        if (split)
            beside(kind, what, phase, layer, before);
        tensor(kind, hidden_bytes(), what, segment, phase, layer, split ? 1000 - hidden_ : 1000);
    }

    // ---- layers ----
    std::vector<Kernel> forward(Piece piece) { return forward_kernels(a_, shard_, software_, piece); }
    void layer_forward(std::int64_t layer, Phase phase, std::string_view name) {
        const bool again = phase == Phase::recompute;
        ++passes_;
        add(forward(Piece::norm_attention), again);
        tensor_in(name, phase, layer);
        add(forward(Piece::attention), again);
        tensor_out(name, phase, layer);
        add(forward(Piece::residual_attention), again);
        add(forward(Piece::norm_mlp), again);
        tensor_in(name, phase, layer);
        add(forward(Piece::mlp), again);
        tensor_out(name, phase, layer);
        add(forward(Piece::residual_mlp), again);
    }
    // Backward of a column-row pair of linear layers: input gradients first, then weight gradients.
    void block_backward(Piece piece, std::int64_t layer) {
        constexpr std::string_view kName = "backward";
        const Phase phase = Phase::backward;
        const bool overlap = hidden_ == 0 && tensor_stream_ != kCompute && layout_.tp > 1;
        tensor_in(kName, phase, layer);  // gradient of the reduce-scatter
        if (!overlap) {
            // The weight gradient needs the whole input again; with chunked GEMMs its gather runs beside the input gradient.
            if (shard_.sequence_parallel && hidden_ > 0) {
                flush(kName, phase, layer);
                collective(tensor_stream_, Slot::tp, Collective::all_gather, hidden_bytes(),
                           "tp all-gather (saved input)", Account::comm_tp, phase, {last_main_}, layer);
            } else if (shard_.sequence_parallel) {
                tensor(Collective::all_gather, hidden_bytes(), "tp all-gather (saved input)", kName, phase, layer);
            }
            add(backward_data_kernels(a_, shard_, software_, piece));
            add(backward_weight_kernels(a_, shard_, software_, piece));
            tensor_out(kName, phase, layer);
            return;
        }
        std::uint32_t gathered = program::kNone;
        flush(kName, phase, layer);
        if (shard_.sequence_parallel) {
            gathered = collective(tensor_stream_, Slot::tp, Collective::all_gather, hidden_bytes(),
                                  "tp all-gather (saved input)", Account::comm_tp, phase, {last_main_}, layer);
        }
        add(backward_data_kernels(a_, shard_, software_, piece));
        flush(kName, phase, layer);
        const std::uint32_t reduced = collective(
            tensor_stream_, Slot::tp, shard_.sequence_parallel ? Collective::reduce_scatter : Collective::all_reduce,
            hidden_bytes(), shard_.sequence_parallel ? "tp reduce-scatter" : "tp all-reduce", Account::comm_tp, phase,
            {last_main_}, layer);
        if (gathered != program::kNone)
            next_waits_.push_back(gathered);
        add(backward_weight_kernels(a_, shard_, software_, piece));
        flush(kName, phase, layer);
        next_waits_.push_back(reduced);
    }
    void simple_backward(Piece piece) {
        add(backward_data_kernels(a_, shard_, software_, piece));
        add(backward_weight_kernels(a_, shard_, software_, piece));
    }
    void layer_backward(std::int64_t layer) {
        const ActivationBytes activation = layer_activation(a_, shard_, software_, plan_.recompute);
        hold(MemoryCause::temporary, activation.working);
        if (plan_.recompute == Recompute::full) {
            layer_forward(layer, Phase::recompute, "recompute");
            flush("recompute", Phase::recompute, layer);
        }
        ++passes_;
        simple_backward(Piece::residual_mlp);
        block_backward(Piece::mlp, layer);
        simple_backward(Piece::norm_mlp);
        simple_backward(Piece::residual_attention);
        if (plan_.recompute == Recompute::selective)
            add(attention_core_forward(a_, shard_, software_), true);
        block_backward(Piece::attention, layer);
        simple_backward(Piece::norm_attention);
        hold(MemoryCause::temporary, -activation.working);
        hold(MemoryCause::activations, -activation.kept);
        if (activation.working > 0)
            flush("backward", Phase::backward, layer);  // given back before the next layer needs it
    }

    // ---- units: embedding, layers, head ----
    bool first_virtual(std::int64_t chunk) const { return stage_ == 0 && chunk == 0; }
    bool last_virtual(std::int64_t chunk) const { return stage_ == layout_.pp - 1 && chunk == layout_.vpp - 1; }
    std::int64_t first_layer(std::int64_t chunk) const { return (chunk * layout_.pp + stage_) * layers_per_chunk_; }
    struct Unit {
        enum class Kind : std::uint8_t { embedding, layer, head } kind;
        std::int64_t layer;
        std::int64_t parameters;
    };
    std::vector<Unit> units(std::int64_t chunk) const {
        std::vector<Unit> out;
        if (first_virtual(chunk))
            out.push_back({Unit::Kind::embedding, -1, parameters_.embedding});
        for (std::int64_t i = 0; i < layers_per_chunk_; ++i)
            out.push_back({Unit::Kind::layer, first_layer(chunk) + i, parameters_.layer});
        if (last_virtual(chunk))
            out.push_back({Unit::Kind::head, -1, parameters_.head});
        return out;
    }
    void unit_forward(const Unit& unit) {
        constexpr std::string_view kName = "forward";
        switch (unit.kind) {
            case Unit::Kind::embedding:
                hold(MemoryCause::activations, embedding_activation(a_, shard_, software_));
                add(embedding_forward(a_, shard_, software_));
                tensor_out("embedding", Phase::forward, -1);
                break;
            case Unit::Kind::layer: {
                const ActivationBytes activation = layer_activation(a_, shard_, software_, plan_.recompute);
                hold(MemoryCause::activations, activation.kept);
                layer_forward(unit.layer, Phase::forward, kName);
                break;
            }
            case Unit::Kind::head:
                if (shard_.sequence_parallel)
                    tensor(Collective::all_gather, hidden_bytes(), "tp all-gather", kName, Phase::forward, -1);
                hold(MemoryCause::logits, logits_bytes(a_, shard_, software_));
                add(head_forward(a_, shard_, software_));
                for (int i = 0; i < 3 && layout_.tp > 1; ++i) {  // vocabulary-parallel loss: maximum, target logit, sum
                    tensor(Collective::all_reduce, shard_.tokens() * 4, "tp all-reduce (loss)", "head and loss",
                           Phase::forward, -1);
                }
                break;
        }
    }
    void unit_backward(const Unit& unit) {
        switch (unit.kind) {
            case Unit::Kind::embedding:
                tensor_in("backward", Phase::backward, -1);  // gradient of the reduce-scatter
                add(embedding_backward(a_, shard_, software_));
                hold(MemoryCause::activations, -embedding_activation(a_, shard_, software_));
                break;
            case Unit::Kind::layer: layer_backward(unit.layer); break;
            case Unit::Kind::head:
                if (shard_.sequence_parallel)
                    tensor(Collective::all_gather, hidden_bytes(), "tp all-gather (saved input)", "head and loss",
                           Phase::backward, -1);
                add(head_backward(a_, shard_, software_));
                hold(MemoryCause::logits, -logits_bytes(a_, shard_, software_));
                tensor_out("head and loss", Phase::backward, -1);
                if (layout_.tp == 1)
                    flush("head and loss", Phase::backward);  // logits are gone before the layers' turn
                break;
        }
    }
    Kernel shard_copies(const Unit& unit, double share) const {
        Kernel kernel;
        kernel.fusion = Fusion::eager;
        const double bytes = software_.fsdp_copy_bytes * (gradient_bytes_ == 4 ? 1.0 : 0.5) * share;
        kernel.bytes = static_cast<std::int64_t>(bytes * static_cast<double>(unit.parameters));
        return kernel;
    }

    void chunk_forward(const ScheduleStep& step);
    void chunk_backward(const ScheduleStep& step);
    void reduce_unit(const Unit& unit, std::int64_t chunk, bool last_unit);
    void reduce_bucket(Bytes bytes, bool blocking);
    void exchange(const ScheduleStep& step);
    void gather_message();
    std::uint32_t message(std::uint8_t stream, PeerSlot slot, bool send, std::vector<std::uint32_t> waits);
    void gather_after_optimizer();
    void reduce_at_end();
    void optimizer();
    void compact_streams();
    Bytes message_bytes() const {
        const bool cut = layout_.tp > 1 && (shard_.sequence_parallel || software_.p2p_scatter_gather);
        return cut ? hidden_bytes() / layout_.tp : hidden_bytes();
    }
    Bytes bucket_cap() const {
        if (plan_.bucket_bytes > 0)
            return plan_.bucket_bytes;
        return std::max(kBucketParameters, kBucketParametersPerRank * layout_.dp) * gradient_bytes_;
    }
    bool reduces_now(bool last) const {
        return layout_.dp > 1 && (sharded_ || layout_.zero == 2 || plan_.reduce_every == ReduceEvery::micro_batch ||
                                  (plan_.overlap_grad_reduce && last));
    }

    const Architecture& a_;
    const TrainingPlan& plan_;
    const Layout& layout_;
    const SoftwareFeatures& software_;
    std::int64_t stage_;
    ProgramParts parts_;
    program::Program& p_;
    StageParameters parameters_;
    Shard shard_;
    Bytes activation_bytes_ = 2, gradient_bytes_ = 4;
    std::uint8_t tensor_stream_ = kCompute;
    std::int32_t hidden_ = 0;  ///< per mille of TP traffic beside the linear layers
    bool sharded_ = false, overlap_p2p_ = false;
    std::int64_t layers_per_chunk_ = 0;

    program::Template t_;
    std::map<std::string, std::uint32_t> labels_;
    std::vector<Kernel> segment_;
    std::vector<MemoryChange> memory_;
    int passes_ = 0;
    std::vector<std::uint32_t> next_waits_;
    std::uint32_t last_main_ = program::kNone;
    std::uint32_t updated_ = program::kNone;          ///< the optimizer: parameters of this step exist
    std::map<std::int64_t, std::uint32_t> gathered_;  ///< unit index in the stage -> parameter gather of this step
    std::vector<std::uint32_t> reduction_nodes_;      ///< overlapped reductions the norm waits for
    Bytes bucket_ = 0, reduced_ = 0;                  ///< gradient bytes in the open bucket, already reduced
};

// Unit index within the stage, forward order over chunks.
std::int64_t unit_number(std::int64_t chunk, std::size_t unit, std::int64_t layers_per_chunk) {
    return chunk * (layers_per_chunk + 2) + static_cast<std::int64_t>(unit);
}

void StageBuilder::chunk_forward(const ScheduleStep& step) {
    if (step.receives_forward) {
        next_waits_.push_back(message(kReceiveForward, PeerSlot::receive_forward, false, {}));
        gather_message();
    }
    const std::vector<Unit> list = units(step.chunk);
    std::vector<std::uint32_t> ends;  // last main operation of each unit
    for (std::size_t u = 0; u < list.size(); ++u) {
        if (sharded_) {
            // Prefetch: the gather of a unit may run while the unit before it computes.
            flush("forward", Phase::forward);
            const std::uint8_t stream = plan_.overlap_param_gather ? kParameter : kCompute;
            std::vector<std::uint32_t> waits;
            if (stream != kCompute)
                waits = {u >= 2 ? ends[u - 2] : step.first ? updated_ : program::kNone};
            const std::uint32_t node =
                collective(stream, Slot::parameter, Collective::all_gather, list[u].parameters * activation_bytes_,
                           "parameter all-gather", Account::comm_parameter, Phase::forward, waits, list[u].layer);
            // Prefetched parameters are there while the unit before computes.
            if (stream == kCompute || u == 0)
                hold_gathered(list[u].parameters * activation_bytes_);
            if (stream != kCompute && u + 1 < list.size())
                hold_gathered(list[u + 1].parameters * activation_bytes_);
            if (stream != kCompute)
                next_waits_.push_back(node);
            add({shard_copies(list[u], kShardCopyForwardShare)});
        } else if (step.first) {
            const auto at = gathered_.find(unit_number(step.chunk, u, layers_per_chunk_));
            if (at != gathered_.end()) {
                flush("forward", Phase::forward);
                next_waits_.push_back(at->second);
            }
        }
        unit_forward(list[u]);
        if (sharded_) {
            hold(MemoryCause::gathered_parameters, -list[u].parameters * activation_bytes_);
            flush("forward", Phase::forward, list[u].layer);
            ends.push_back(last_main_);
        }
    }
    flush("forward", Phase::forward);
    if (step.sends_forward)
        message(kSendForward, PeerSlot::send_forward, true, {last_main_});
}

void StageBuilder::chunk_backward(const ScheduleStep& step) {
    if (step.receives_backward) {
        next_waits_.push_back(message(kReceiveBackward, PeerSlot::receive_backward, false, {}));
        gather_message();
    }
    const std::vector<Unit> list = units(step.chunk);
    std::vector<std::uint32_t> ends;
    for (std::size_t done = 0; done < list.size(); ++done) {
        const Unit& unit = list[list.size() - 1 - done];
        if (sharded_) {
            flush("backward", Phase::backward);
            const std::uint8_t stream = plan_.overlap_param_gather ? kParameter : kCompute;
            std::vector<std::uint32_t> waits;
            if (stream != kCompute)
                waits = {done >= 2 ? ends[done - 2] : program::kNone};
            const std::uint32_t node =
                collective(stream, Slot::parameter, Collective::all_gather, unit.parameters * activation_bytes_,
                           "parameter all-gather", Account::comm_parameter, Phase::backward, waits, unit.layer);
            if (stream == kCompute || done == 0)
                hold_gathered(unit.parameters * activation_bytes_);
            if (stream != kCompute && done + 1 < list.size())
                hold_gathered(list[list.size() - 2 - done].parameters * activation_bytes_);
            hold_gathered(unit.parameters * gradient_bytes_);
            if (stream != kCompute)
                next_waits_.push_back(node);
        }
        unit_backward(unit);
        if (sharded_) {
            add({shard_copies(unit, 1.0 - kShardCopyForwardShare)});
            hold(MemoryCause::gathered_parameters, -unit.parameters * (activation_bytes_ + gradient_bytes_));
            flush("backward", Phase::backward, unit.layer);
            ends.push_back(last_main_);
        }
        if (reduces_now(step.last))
            reduce_unit(unit, step.chunk, done + 1 == list.size());
    }
    flush("backward", Phase::backward);
    if (step.sends_backward)
        message(kSendBackward, PeerSlot::send_backward, true, {last_main_});
}

// Gradients of a unit are complete: reduce whole buckets. Every model chunk has buckets of its own.
void StageBuilder::reduce_unit(const Unit& unit, std::int64_t chunk, bool last_unit) {
    const bool blocking = !plan_.overlap_grad_reduce;
    if (sharded_) {
        reduce_bucket(unit.parameters * gradient_bytes_, blocking);
        return;
    }
    bucket_ += unit.parameters * gradient_bytes_;
    if (!plan_.bucket_split.empty()) {
        double sum = 0, upto = 0;
        for (const double part : plan_.bucket_split)
            sum += part;
        Bytes total = 0;
        for (const Unit& one : units(chunk))
            total += one.parameters * gradient_bytes_;
        for (std::size_t i = 0; i < plan_.bucket_split.size(); ++i) {
            upto += plan_.bucket_split[i];
            const Bytes edge = i + 1 == plan_.bucket_split.size()
                                   ? total
                                   : static_cast<Bytes>(upto / sum * static_cast<double>(total));
            if (edge <= reduced_)
                continue;
            if (reduced_ + bucket_ < edge)
                break;
            reduce_bucket(edge - reduced_, blocking);
            bucket_ -= edge - reduced_;
            reduced_ = edge;
        }
    } else {
        const Bytes cap = bucket_cap();
        while (bucket_ >= cap) {
            reduce_bucket(cap, blocking);
            bucket_ -= cap;
        }
    }
    if (last_unit && bucket_ > 0) {
        reduce_bucket(bucket_, blocking);
        bucket_ = 0;
    }
    if (last_unit)
        reduced_ = 0;
}

void StageBuilder::reduce_bucket(Bytes bytes, bool blocking) {
    flush("backward", Phase::backward);
    const Collective kind = layout_.zero >= 1 ? Collective::reduce_scatter : Collective::all_reduce;
    const std::string_view what = kind == Collective::all_reduce ? "gradient all-reduce" : "gradient reduce-scatter";
    const std::uint8_t stream = plan_.overlap_grad_reduce ? kGradient : kCompute;
    const std::uint32_t node =
        collective(stream, Slot::gradient, kind, bytes, what, Account::comm_gradient, Phase::reduce, {last_main_});
    if (!blocking)
        reduction_nodes_ = {node};  // later reductions of the stream end later
}

std::uint32_t StageBuilder::message(std::uint8_t stream, PeerSlot slot, bool send, std::vector<std::uint32_t> waits) {
    program::Batch batch;
    batch.halves.push_back({static_cast<std::uint16_t>(slot), send, message_bytes()});
    Operation op;
    op.kind = OpKind::p2p_batch;
    op.stream = stream;
    op.payload = static_cast<std::uint32_t>(p_.batches.size());
    op.label = label(send ? "pipeline send" : "pipeline receive", Account::comm_pp, Phase::none);
    for (const std::uint32_t wait : waits) {
        if (wait != program::kNone)
            op.waits.push_back(wait);
    }
    p_.batches.push_back(std::move(batch));
    return push(std::move(op));
}

// A message that came in 1/tp pieces is put together inside the node.
void StageBuilder::gather_message() {
    if (layout_.tp == 1 || shard_.sequence_parallel || !software_.p2p_scatter_gather)
        return;
    tensor(Collective::all_gather, hidden_bytes(), "tp all-gather (pipeline input)", "pipeline input", Phase::none, -1);
}

void StageBuilder::exchange(const ScheduleStep& step) {
    flush("forward", Phase::forward);
    program::Batch batch;
    const auto half = [&](bool wanted, PeerSlot slot, bool send) {
        if (wanted)
            batch.halves.push_back({static_cast<std::uint16_t>(slot), send, message_bytes()});
    };
    half(step.sends_forward, PeerSlot::send_forward, true);
    half(step.receives_forward, PeerSlot::receive_forward, false);
    half(step.sends_backward, PeerSlot::send_backward, true);
    half(step.receives_backward, PeerSlot::receive_backward, false);
    Operation op;
    op.kind = OpKind::p2p_batch;
    op.payload = static_cast<std::uint32_t>(p_.batches.size());
    op.label = label("pipeline exchange", Account::comm_pp, Phase::none);
    p_.batches.push_back(std::move(batch));
    push(std::move(op));
    if (step.receives_forward)
        gather_message();
    if (step.receives_backward)
        gather_message();
}

void StageBuilder::optimizer() {
    const std::int64_t held = parameters_.total();
    const std::int64_t own = layout_.zero >= 1 ? (held + layout_.dp - 1) / layout_.dp : held;
    const std::int64_t gradients = layout_.zero >= 1 ? own : held;
    std::vector<Kernel> kernels = optimizer_kernels(own, gradients, gradient_bytes_ == 4);
    if (!plan_.clip_gradients)
        kernels.erase(kernels.begin());  // the gradient norm
    add(std::move(kernels));
    flush("optimizer", Phase::optimizer);
    updated_ = last_main_;
    if ((layout_.zero == 1 || layout_.zero == 2) && layout_.dp > 1)
        gather_after_optimizer();
}

void StageBuilder::gather_after_optimizer() {
    const bool overlap = plan_.overlap_param_gather;
    const std::uint8_t stream = overlap ? kParameter : kCompute;
    const Bytes cap =
        overlap ? bucket_cap() / gradient_bytes_ * activation_bytes_ : parameters_.total() * activation_bytes_;
    Bytes open = 0;
    std::vector<std::int64_t> members;
    const auto emit = [&] {
        if (open == 0)
            return;
        const std::uint32_t node =
            collective(stream, Slot::parameter, Collective::all_gather, open, "parameter all-gather",
                       Account::comm_parameter, Phase::gather, {last_main_});
        if (overlap) {
            for (const std::int64_t unit : members)
                gathered_[unit] = node;
        }
        open = 0;
        members.clear();
    };
    for (std::int64_t chunk = 0; chunk < layout_.vpp; ++chunk) {
        const std::vector<Unit> list = units(chunk);
        for (std::size_t u = 0; u < list.size(); ++u) {
            open += list[u].parameters * activation_bytes_;
            members.push_back(unit_number(chunk, u, layers_per_chunk_));
            if (open >= cap)
                emit();
        }
    }
    emit();
}

// Reductions that were not hidden behind the backward pass, and those of gradients shared by two stages.
void StageBuilder::reduce_at_end() {
    const bool late = layout_.dp > 1 && !sharded_ && layout_.zero != 2 && plan_.reduce_every == ReduceEvery::step &&
                      !plan_.overlap_grad_reduce;
    if (late) {
        bucket_ = 0;
        reduced_ = 0;
        for (std::int64_t chunk = layout_.vpp - 1; chunk >= 0; --chunk) {
            const std::vector<Unit> list = units(chunk);
            for (std::size_t done = 0; done < list.size(); ++done) {
                reduce_unit(list[list.size() - 1 - done], chunk, done + 1 == list.size());
            }
        }
    }
    if (a_.tied_embeddings && layout_.pp > 1 && (stage_ == 0 || stage_ == layout_.pp - 1)) {
        for (const std::uint32_t node : reduction_nodes_)
            next_waits_.push_back(node);
        flush("embedding gradient", Phase::reduce);
        collective(kCompute, Slot::embedding, Collective::all_reduce,
                   padded_vocab(a_, layout_.tp) * a_.hidden / layout_.tp * gradient_bytes_, "embedding all-reduce",
                   Account::comm_other, Phase::reduce);
    }
    for (const std::uint32_t node : reduction_nodes_)
        next_waits_.push_back(node);
    const std::int64_t members = layout_.zero >= 1 ? layout_.world() : layout_.tp * layout_.pp;
    if (plan_.clip_gradients && members > 1) {
        collective(kCompute, Slot::norm, Collective::all_reduce, 4, "gradient norm", Account::comm_other,
                   Phase::reduce);
        t_.operations.back().host_sync = true;
    } else {
        flush("step end", Phase::none);
    }
}

// Streams that are used, numbered without gaps; the compute stream stays 0.
void StageBuilder::compact_streams() {
    std::uint8_t number[kStreamNames] = {};
    bool used[kStreamNames] = {true};
    for (const Operation& op : t_.operations)
        used[op.stream] = true;
    std::uint8_t next = 0;
    for (std::uint8_t s = 0; s < kStreamNames; ++s) {
        if (used[s])
            number[s] = next++;
    }
    t_.streams = next;
    for (Operation& op : t_.operations)
        op.stream = number[op.stream];
}

std::uint32_t StageBuilder::build(std::int64_t steps) {
    t_.name = fmt::format("stage {}", stage_);
    const std::uint32_t repeat = open_repeat(steps);
    optimizer();
    const std::vector<ScheduleStep> order =
        schedule_steps(layout_.schedule, stage_, layout_.pp, layout_.vpp, plan_.micro_batches(), overlap_p2p_);
    for (const ScheduleBlock& block : fold(order, layout_.pp, layout_.vpp)) {
        const std::uint32_t node = block.count > 1 ? open_repeat(block.count) : 0;
        for (const ScheduleStep& step : block.steps) {
            switch (step.kind) {
                case ScheduleStep::Kind::forward: chunk_forward(step); break;
                case ScheduleStep::Kind::backward: chunk_backward(step); break;
                case ScheduleStep::Kind::exchange: exchange(step); break;
            }
        }
        flush("forward", Phase::forward);
        if (block.count > 1)
            close(node);
    }
    reduce_at_end();
    Operation end;
    end.kind = OpKind::step_end;
    end.label = label("step end", Account::idle, Phase::none);
    push(std::move(end));
    close(repeat);
    compact_streams();
    p_.templates.push_back(std::move(t_));
    return static_cast<std::uint32_t>(p_.templates.size() - 1);
}

}  // namespace

StageParameters stage_parameters(const Architecture& a, const Layout& layout, std::int64_t stage) {
    Architecture held = a;
    held.kv_heads = std::max(a.kv_heads, layout.tp);  // fewer heads than ranks: several ranks hold the same one
    const ParameterCount count = count_parameters(held, padded_vocab(a, layout.tp));
    StageParameters out;
    out.layer = (count.attention + count.mlp) / layout.tp + count.norms;
    out.layers = a.layers / layout.pp;
    if (stage == 0)
        out.embedding = count.embedding / layout.tp + count.positions;
    if (stage == layout.pp - 1) {
        out.head = count.head / layout.tp + count.final_norm;
        if (a.tied_embeddings && layout.pp > 1)
            out.head += count.embedding / layout.tp;  // the last stage keeps a copy
    }
    return out;
}

std::uint32_t build_stage(const Architecture& a, const TrainingPlan& plan, const SoftwareFeatures& software,
                          std::int64_t stage, std::int64_t steps, ProgramParts parts) {
    return StageBuilder(a, plan, software, stage, parts).build(steps);
}

}  // namespace fabricast
