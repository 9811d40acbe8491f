// Messages of a pipeline stage, and the pairs of passes that run around them side by side.
#include "models/parallel/stage_program.hpp"

namespace fabricast::stage {

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

void StageBuilder::receive(const ScheduleStep& step, bool forward) {
    if (!(forward ? step.receives_forward : step.receives_backward))
        return;
    const bool up = runs_up(layout_.schedule, step.chunk);
    const std::uint8_t stream =
        forward ? (up ? kReceiveForwardUp : kReceiveForward) : (up ? kReceiveBackwardUp : kReceiveBackward);
    const PeerSlot slot = forward ? (up ? PeerSlot::receive_forward_up : PeerSlot::receive_forward)
                                  : (up ? PeerSlot::receive_backward_up : PeerSlot::receive_backward);
    const std::uint32_t node = message(stream, slot, false, {});
    if (splits_backward(layout_.schedule))
        post_after(node, step.ahead);
    next_waits_.push_back(node);
    gather_message();
}

// The receive of the step at hand is posted when all but `ahead` of the steps before it are done.
void StageBuilder::post_after(std::uint32_t receive, std::int64_t ahead) {
    const auto here = static_cast<std::int64_t>(ends_.size());
    const std::int64_t after = here - 1 - ahead;
    if (after >= block_begin_ || block_steps_ == 0) {
        const std::uint32_t node = after >= 0 ? ends_[static_cast<std::size_t>(after)] : updated_;
        t_.operations[t_.nodes[receive].operation].waits.push_back(node);
    } else {  // a step of the iteration before; its node comes later
        late_posts_.emplace_back(receive, std::max(after + block_steps_, here));
    }
}

void StageBuilder::send(const ScheduleStep& step, bool forward) {
    if (!(forward ? step.sends_forward : step.sends_backward))
        return;
    const bool up = runs_up(layout_.schedule, step.chunk);
    const std::uint8_t stream = forward ? (up ? kSendForwardUp : kSendForward) : (up ? kSendBackwardUp : kSendBackward);
    const PeerSlot slot = forward ? (up ? PeerSlot::send_forward_up : PeerSlot::send_forward)
                                  : (up ? PeerSlot::send_backward_up : PeerSlot::send_backward);
    message(stream, slot, true, {last_main_});
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
    op.host_sync = software_.host_waits_for_messages;
    p_.batches.push_back(std::move(batch));
    push(std::move(op));
    if (step.receives_forward)
        gather_message();
    if (step.receives_backward)
        gather_message();
}

// A forward and the backward of another micro-batch side by side: both inputs first, both outputs last, between them the
// work of one runs while the other communicates on a stream of its own.
void StageBuilder::chunk_pair(const ScheduleStep& forward, const ScheduleStep& backward) {
    receive(forward, true);
    receive(backward, false);
    ScheduleStep ahead = forward, back = backward;
    ahead.receives_forward = ahead.sends_forward = back.receives_backward = back.sends_backward = false;
    const std::size_t begin = t_.nodes.size();
    chunk_forward(ahead);
    const std::size_t middle = t_.nodes.size();
    chunk_backward(back);
    interleave(begin, middle);
    send(forward, true);
    send(backward, false);
}

// Merges the operations of [begin, middle) and those from middle on: in turn from each, a run of the compute stream with
// the communication behind it.
void StageBuilder::interleave(std::size_t begin, std::size_t middle) {
    const std::size_t end = t_.nodes.size();
    const auto on_compute = [&](std::size_t node) {
        return t_.operations[t_.nodes[node].operation].stream == kCompute;
    };
    std::vector<std::size_t> order;
    const auto take = [&](std::size_t& at, std::size_t stop) {
        while (at < stop && on_compute(at))
            order.push_back(at++);
        while (at < stop && !on_compute(at))
            order.push_back(at++);
    };
    for (std::size_t first = begin, second = middle; first < middle || second < end;) {
        take(first, middle);
        take(second, end);
    }
    std::vector<std::uint32_t> place(end - begin);
    std::vector<std::uint32_t> operations;
    for (std::size_t i = 0; i < order.size(); ++i) {
        place[order[i] - begin] = static_cast<std::uint32_t>(begin + i);
        operations.push_back(t_.nodes[order[i]].operation);
    }
    const auto moved = [&](std::uint32_t& node) {
        if (node != program::kNone && node >= begin)
            node = place[node - begin];
    };
    for (std::size_t i = 0; i < operations.size(); ++i) {
        t_.nodes[begin + i].operation = operations[i];
        for (std::uint32_t& wait : t_.operations[operations[i]].waits)
            moved(wait);
        if (on_compute(begin + i))
            last_main_ = static_cast<std::uint32_t>(begin + i);
    }
    for (std::uint32_t& wait : next_waits_)
        moved(wait);
}

}  // namespace fabricast::stage
