#include "models/parallel/stage_emitter.hpp"

namespace fabricast::stage {

// Of names a stage knows by their order of first use.
std::uint32_t StageEmitter::name_of(std::string_view name) {
    for (const std::uint32_t known : names_) {
        if (p_.names[known] == name)
            return known;
    }
    std::uint32_t id = 0;
    while (id < p_.names.size() && p_.names[id] != name)
        ++id;
    names_.push_back(id);
    return id;
}

std::uint32_t StageEmitter::label(std::string_view name, Account account, Phase phase, std::int64_t layer) {
    const std::uint32_t id = name_of(name);
    const auto [at, fresh] =
        labels_.try_emplace(LabelKey{id, account, phase, layer}, static_cast<std::uint32_t>(p_.labels.size()));
    if (fresh) {
        if (id == p_.names.size())
            p_.names.emplace_back(name);
        p_.labels.push_back(
            {id, account, phase, static_cast<std::int16_t>(stage_), static_cast<std::int16_t>(layer), -1});
    }
    return at->second;
}

std::uint32_t StageEmitter::push(Operation op) {
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

std::uint32_t StageEmitter::open_repeat(std::int64_t count) {
    Node n;
    n.kind = Node::Kind::repeat;
    n.count = count;
    t_.nodes.push_back(n);
    return static_cast<std::uint32_t>(t_.nodes.size() - 1);
}

void StageEmitter::add(std::vector<Kernel> kernels, bool recompute) {
    for (Kernel& kernel : kernels) {
        if (recompute)
            kernel.account = Account::recompute;
        segment_.push_back(kernel);
    }
}

void StageEmitter::hold(MemoryCause cause, Bytes bytes) {
    if (bytes != 0)
        memory_.push_back({cause, bytes});
}

// Ends the running segment; memory changes and waits ride on it.
void StageEmitter::flush(std::string_view name, Phase phase, std::int64_t layer) {
    if (segment_.empty() && memory_.empty() && next_waits_.empty())
        return;
    Operation op;
    op.kind = OpKind::compute;
    op.payload = parts_.costs.intern(segment_, passes_);
    op.label = label(name, Account::gemm_ideal, phase, layer);
    op.memory = std::move(memory_);
    memory_.clear();
    segment_.clear();
    passes_ = {};
    push(std::move(op));
}

std::uint32_t StageEmitter::call(const CallInfo& wanted) {
    for (std::uint32_t i = 0; i < parts_.calls.size(); ++i) {
        if (parts_.calls[i] == wanted)
            return i;
    }
    parts_.calls.push_back(wanted);
    p_.calls.push_back({static_cast<std::uint16_t>(wanted.slot), static_cast<std::uint8_t>(wanted.kind),
                        wanted.bytes * wanted.share / 1000});
    return static_cast<std::uint32_t>(p_.calls.size() - 1);
}

std::uint32_t StageEmitter::collective(std::uint8_t stream, Slot slot, Collective kind, Bytes bytes,
                                       std::string_view what, Account account, Phase phase,
                                       std::vector<std::uint32_t> waits, std::int64_t layer, std::int32_t share) {
    CallInfo info;
    info.what = what;
    info.kind = kind;
    info.slot = slot;
    info.bytes = bytes;
    info.share = share;
    return collective(stream, info, account, phase, std::move(waits), layer);
}

std::uint32_t StageEmitter::collective(std::uint8_t stream, const CallInfo& info, Account account, Phase phase,
                                       std::vector<std::uint32_t> waits, std::int64_t layer) {
    Operation op;
    op.kind = OpKind::collective;
    op.stream = stream;
    op.payload = call(info);
    op.label = label(info.what, account, phase, layer);
    for (const std::uint32_t wait : waits) {
        if (wait != program::kNone && t_.operations[t_.nodes[wait].operation].stream != stream)
            op.waits.push_back(wait);
    }
    return push(std::move(op));
}

}  // namespace fabricast::stage
