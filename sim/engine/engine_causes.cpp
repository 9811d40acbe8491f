// Records of operations and the chains of their causes. A record lives while a stream, a later record or a waiting
// message names it, so that the causes of everything in flight are at hand without keeping the whole run.
#include "sim/engine/engine.hpp"

namespace fabricast::engine {

void Engine::hold_record(std::uint32_t record) {
    if (record != program::kNone) ++records_[record].holders;
}

void Engine::drop_record(std::uint32_t record) {
    while (record != program::kNone && --records_[record].holders == 0 && !options_.record_timeline) {
        free_records_.push_back(record);
        record = records_[record].record.cause;
    }
}

void Engine::set_cause(std::uint32_t record, std::uint32_t cause) {
    hold_record(cause);
    drop_record(records_[record].record.cause);
    records_[record].record.cause = cause;
}

// The stream now names the new record; the one before lives on if it caused something.
void Engine::begin_record(std::uint32_t rank, std::uint8_t stream, const Instruction& in) {
    hold_record(trigger_);
    Stream& s = stream_of(rank, stream);
    drop_record(s.record);
    if (free_records_.empty()) {
        s.record = static_cast<std::uint32_t>(records_.size());
        records_.emplace_back();
    } else {
        s.record = free_records_.back();
        free_records_.pop_back();
    }
    records_[s.record] = {{rank, trigger_, in.label, in.operation, stream, now_, now_, now_}, 1};
}

void Engine::collect_path(EngineResult& out) const {
    if (!recording_ || steps_done_ == 0) return;
    const std::uint32_t last = boundaries_[steps_done_ - 1].last_record;
    out.path_end = records_[last].record.finished;
    out.path_begin = out.path_end - out.period;
    for (std::uint32_t at = last; at != program::kNone; at = records_[at].record.cause) {
        out.path.push_back(records_[at].record);
        out.path.back().cause = static_cast<std::uint32_t>(out.path.size());
        if (records_[at].record.started <= out.path_begin) break;
    }
    out.path.back().cause = program::kNone;
}

}  // namespace fabricast::engine
