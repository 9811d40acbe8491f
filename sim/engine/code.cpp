#include "sim/engine/code.hpp"

#include <algorithm>
#include <stdexcept>

namespace fabricast::engine {
namespace {

using program::Node;
using program::Operation;
using program::Template;

struct Loop {
    std::uint32_t node;
    std::int64_t count;
    std::vector<std::int64_t> stride;  ///< operations per iteration, by stream
};

struct Position {
    std::vector<std::uint32_t> loops;  ///< indices into loops_, outermost first
    std::int64_t sequence = 0;         ///< operations of its stream before it, all counters zero
    bool reachable = false;
};

class Lowering {
public:
    Lowering(const Template& tmpl, const std::vector<std::int64_t>& bindings) : tmpl_(tmpl), bindings_(bindings) {
        positions_.resize(tmpl.operations.size());
        node_of_.resize(tmpl.operations.size());
        std::vector<std::int64_t> done(tmpl.streams, 0);
        std::vector<std::uint32_t> path;
        locate(0, static_cast<std::uint32_t>(tmpl.nodes.size()), path, done);
    }

    Code emit(std::uint32_t tmpl_index) {
        code_.tmpl = tmpl_index;
        for (std::uint8_t stream = 0; stream < tmpl_.streams; ++stream) {
            code_.entry.push_back(static_cast<std::uint32_t>(code_.instructions.size()));
            emit_stream(0, static_cast<std::uint32_t>(tmpl_.nodes.size()), 0, stream);
            code_.instructions.emplace_back();  // halt
            code_.recurs.resize(code_.instructions.size(), false);
        }
        return std::move(code_);
    }

private:
    std::int64_t count_of(const Node& node) const {
        return node.bound == program::kNone ? node.count : bindings_.at(node.bound);
    }

    bool ends_step(std::uint32_t loop) const {
        for (std::uint32_t n = loop + 1; n < tmpl_.nodes[loop].end; ++n) {
            if (tmpl_.nodes[n].kind == Node::Kind::operation &&
                tmpl_.operations[tmpl_.nodes[n].operation].kind == program::OpKind::step_end)
                return true;
        }
        return false;
    }

    void locate(std::uint32_t begin, std::uint32_t end, std::vector<std::uint32_t>& path,
                std::vector<std::int64_t>& done) {
        for (std::uint32_t n = begin; n < end;) {
            const Node& node = tmpl_.nodes[n];
            switch (node.kind) {
                case Node::Kind::operation: {
                    Position& position = positions_[node.operation];
                    const std::uint8_t stream = tmpl_.operations[node.operation].stream;
                    position.loops = path;
                    position.sequence = done[stream]++;
                    position.reachable = true;
                    node_of_[node.operation] = n;
                    ++n;
                    break;
                }
                case Node::Kind::block:
                    locate(n + 1, node.end, path, done);
                    n = node.end;
                    break;
                case Node::Kind::repeat: {
                    const std::int64_t count = count_of(node);
                    if (count > 0) {
                        if (path.size() == kMaxDepth)
                            throw std::logic_error("program loops nest too deep");
                        const std::vector<std::int64_t> before = done;
                        const auto loop = static_cast<std::uint32_t>(loops_.size());
                        loops_.push_back({n, count, {}});
                        path.push_back(loop);
                        locate(n + 1, node.end, path, done);
                        path.pop_back();
                        std::vector<std::int64_t> stride(done.size());
                        for (std::size_t s = 0; s < done.size(); ++s) {
                            stride[s] = done[s] - before[s];
                            done[s] = before[s] + stride[s] * count;
                        }
                        loops_[loop].stride = std::move(stride);
                    }
                    n = node.end;
                    break;
                }
            }
        }
    }

    void emit_stream(std::uint32_t begin, std::uint32_t end, int depth, std::uint8_t stream) {
        for (std::uint32_t n = begin; n < end;) {
            const Node& node = tmpl_.nodes[n];
            if (node.kind == Node::Kind::operation) {
                if (tmpl_.operations[node.operation].stream == stream)
                    emit_operation(node.operation);
                ++n;
                continue;
            }
            if (node.kind == Node::Kind::block) {
                emit_stream(n + 1, node.end, depth, stream);
            } else if (const std::int64_t count = count_of(node); count > 0) {
                const auto body = static_cast<std::uint32_t>(code_.instructions.size());
                emit_stream(n + 1, node.end, depth + 1, stream);
                if (code_.instructions.size() != body && count > 1) {
                    if (!ends_step(n)) {
                        code_.recurs.resize(code_.instructions.size(), false);
                        std::fill(code_.recurs.begin() + body, code_.recurs.end(), true);
                    }
                    Instruction back;
                    back.kind = Instruction::Kind::loop_end;
                    back.level = static_cast<std::uint8_t>(depth);
                    back.payload = body;
                    back.operation = static_cast<std::uint32_t>(count);
                    code_.instructions.push_back(back);
                }
            }
            n = node.end;
        }
    }

    void emit_operation(std::uint32_t op) {
        const Operation& operation = tmpl_.operations[op];
        Instruction in;
        in.kind = static_cast<Instruction::Kind>(operation.kind);
        in.host_sync = operation.host_sync;
        in.payload = operation.payload;
        in.operation = op;
        in.label = operation.label;
        in.late = operation.late;
        in.waits = static_cast<std::uint32_t>(code_.waits.size());
        for (const std::uint32_t node : operation.waits)
            add_wait(op, tmpl_.nodes.at(node).operation);
        in.wait_count = static_cast<std::uint8_t>(code_.waits.size() - in.waits);
        code_.instructions.push_back(in);
    }

    void add_wait(std::uint32_t consumer, std::uint32_t producer) {
        const Position& to = positions_[consumer];
        const Position& from = positions_[producer];
        if (!from.reachable)
            return;  // inside a repeat that runs zero times
        const std::uint8_t stream = tmpl_.operations[producer].stream;
        if (stream == tmpl_.operations[consumer].stream)
            throw std::logic_error("a wait inside one stream is stream order");
        Wait wait;
        wait.stream = stream;
        wait.base = from.sequence + 1;
        std::size_t common = 0;
        while (common < to.loops.size() && common < from.loops.size() && to.loops[common] == from.loops[common]) {
            wait.stride[common] = loops_[from.loops[common]].stride[stream];
            ++common;
        }
        for (std::size_t k = common; k < from.loops.size(); ++k) {  // the last iteration of inner loops
            const Loop& loop = loops_[from.loops[k]];
            wait.base += (loop.count - 1) * loop.stride[stream];
        }
        if (node_of_[producer] > node_of_[consumer]) {  // the previous iteration's
            if (common == 0)
                throw std::logic_error("a wait on a later operation needs a common loop");
            wait.base -= wait.stride[common - 1];
            wait.skip_first = static_cast<std::int8_t>(common - 1);
        }
        code_.waits.push_back(wait);
    }

    const Template& tmpl_;
    const std::vector<std::int64_t>& bindings_;
    std::vector<Loop> loops_;
    std::vector<Position> positions_;
    std::vector<std::uint32_t> node_of_;
    Code code_;
};

static_assert(static_cast<int>(Instruction::Kind::compute) == static_cast<int>(program::OpKind::compute));
static_assert(static_cast<int>(Instruction::Kind::step_end) == static_cast<int>(program::OpKind::step_end));
static_assert(static_cast<int>(Instruction::Kind::fetch) == static_cast<int>(program::OpKind::fetch));

}  // namespace

Code lower(const program::Program& program, std::uint32_t tmpl, const std::vector<std::int64_t>& bindings) {
    return Lowering(program.templates.at(tmpl), bindings).emit(tmpl);
}

}  // namespace fabricast::engine
