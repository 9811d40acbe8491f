// Lowered code against an interpreter that unrolls the template.
#include "sim/engine/code.hpp"

#include <algorithm>
#include <map>
#include <random>
#include <stdexcept>

#include <gtest/gtest.h>

#include "tests/sim/engine/program_builder.hpp"

namespace fabricast::engine {
namespace {

using program::Node;
using program::OpKind;
using program::Template;
using test::ProgramBuilder;

/// One execution of an operation: `needs` lists (stream, operations that must be over).
struct Instance {
    std::uint32_t operation;
    std::vector<std::pair<int, std::int64_t>> needs;
    bool operator==(const Instance&) const = default;
};
using Streams = std::vector<std::vector<Instance>>;

// Walks the code as the engine does.
Streams run_code(const Code& code) {
    Streams streams;
    for (const std::uint32_t entry : code.entry) {
        std::vector<Instance>& out = streams.emplace_back();
        std::array<std::int64_t, kMaxDepth> loop = {};
        for (std::uint32_t counter = entry; code.instructions[counter].kind != Instruction::Kind::halt;) {
            const Instruction& in = code.instructions[counter];
            if (in.kind == Instruction::Kind::loop_end) {
                if (++loop[in.level] < in.operation) {
                    counter = in.payload;
                } else {
                    loop[in.level] = 0;
                    ++counter;
                }
                continue;
            }
            Instance instance{in.operation, {}};
            for (std::uint32_t w = in.waits; w < in.waits + in.wait_count; ++w) {
                const Wait& wait = code.waits[w];
                if (wait.skip_first >= 0 && loop[static_cast<std::size_t>(wait.skip_first)] == 0)
                    continue;
                std::int64_t needed = wait.base;
                for (std::size_t level = 0; level < kMaxDepth; ++level)
                    needed += wait.stride[level] * loop[level];
                instance.needs.emplace_back(wait.stream, needed);
            }
            out.push_back(std::move(instance));
            ++counter;
        }
    }
    return streams;
}

// Unrolls the tree: every instance has its iteration of every enclosing repeat.
class Unrolled {
public:
    Unrolled(const Template& tmpl, const std::vector<std::int64_t>& bindings)
        : tmpl_(tmpl), bindings_(bindings), done_(tmpl.streams) {
        walk(0, static_cast<std::uint32_t>(tmpl.nodes.size()));
    }

    Streams streams() const {
        Streams streams(tmpl_.streams);
        for (const Executed& e : executed_) {
            const program::Operation& op = tmpl_.operations[tmpl_.nodes[e.node].operation];
            Instance instance{tmpl_.nodes[e.node].operation, {}};
            for (const std::uint32_t producer : op.waits) {
                if (const auto needed = find(e, producer); needed > 0) {
                    instance.needs.emplace_back(tmpl_.operations[tmpl_.nodes[producer].operation].stream, needed);
                }
            }
            streams[op.stream].push_back(std::move(instance));
        }
        return streams;
    }

private:
    struct Executed {
        std::uint32_t node;
        std::vector<std::pair<std::uint32_t, std::int64_t>> loops;  ///< (repeat node, iteration), outermost first
        std::int64_t over;                                          ///< operations of its stream up to and with it
    };

    void walk(std::uint32_t begin, std::uint32_t end) {
        for (std::uint32_t n = begin; n < end;
             n = tmpl_.nodes[n].kind == Node::Kind::operation ? n + 1 : tmpl_.nodes[n].end) {
            const Node& node = tmpl_.nodes[n];
            if (node.kind == Node::Kind::operation) {
                const std::uint8_t stream = tmpl_.operations[node.operation].stream;
                executed_.push_back({n, loops_, ++done_[stream]});
            } else if (node.kind == Node::Kind::block) {
                walk(n + 1, node.end);
            } else {
                const std::int64_t count = node.bound == program::kNone ? node.count : bindings_[node.bound];
                for (std::int64_t i = 0; i < count; ++i) {
                    loops_.emplace_back(n, i);
                    walk(n + 1, node.end);
                    loops_.pop_back();
                }
            }
        }
    }

    // The last instance of the producer that shares all common repeats with the consumer; one iteration of the
    // innermost of them earlier when the producer comes later. 0: nothing to wait for.
    std::int64_t find(const Executed& consumer, std::uint32_t producer) const {
        std::int64_t over = 0;
        for (const Executed& candidate : executed_) {
            if (candidate.node != producer)
                continue;
            std::size_t common = 0;
            while (common < candidate.loops.size() && common < consumer.loops.size() &&
                   candidate.loops[common].first == consumer.loops[common].first) {
                ++common;
            }
            auto want = consumer.loops;
            want.resize(common);
            if (producer > consumer.node)
                --want.back().second;
            if (std::equal(want.begin(), want.end(), candidate.loops.begin()))
                over = std::max(over, candidate.over);
        }
        return over;
    }

    const Template& tmpl_;
    const std::vector<std::int64_t>& bindings_;
    std::vector<std::int64_t> done_;
    std::vector<std::pair<std::uint32_t, std::int64_t>> loops_;
    std::vector<Executed> executed_;
};

void expect_equal_to_unrolled(const ProgramBuilder& b, const std::vector<std::int64_t>& bindings = {}) {
    const Streams expected = Unrolled(b.program.templates.back(), bindings).streams();
    const Streams got =
        run_code(lower(b.program, static_cast<std::uint32_t>(b.program.templates.size() - 1), bindings));
    ASSERT_EQ(got.size(), expected.size());
    for (std::size_t s = 0; s < got.size(); ++s) {
        ASSERT_EQ(got[s].size(), expected[s].size()) << "stream " << s;
        for (std::size_t i = 0; i < got[s].size(); ++i) {
            EXPECT_EQ(got[s][i].operation, expected[s][i].operation) << "stream " << s << " position " << i;
            EXPECT_EQ(got[s][i].needs, expected[s][i].needs) << "stream " << s << " position " << i;
        }
    }
}

std::uint32_t host(ProgramBuilder& b, std::uint8_t stream, std::vector<std::uint32_t> waits = {}) {
    return b.timed(OpKind::host, stream, 1, Account::idle, std::move(waits));
}

TEST(Code, WaitsAcrossStreamsInACommonLoop) {
    ProgramBuilder b;
    b.begin("t", 2);
    b.repeat(3);
    const std::uint32_t a = host(b, 0);
    const std::uint32_t c = host(b, 1, {a});
    host(b, 0, {c});
    b.end();
    const Streams streams = run_code(lower(b.program, 0, {}));
    ASSERT_EQ(streams[1].size(), 3u);
    EXPECT_EQ(streams[1][0].needs, (std::vector<std::pair<int, std::int64_t>>{{0, 1}}));
    EXPECT_EQ(streams[1][2].needs, (std::vector<std::pair<int, std::int64_t>>{{0, 5}}));
    EXPECT_EQ(streams[0][5].needs, (std::vector<std::pair<int, std::int64_t>>{{1, 3}}));
    expect_equal_to_unrolled(b);
}

TEST(Code, WaitOnALaterOperationMeansThePreviousIteration) {
    ProgramBuilder b;
    b.begin("t", 2);
    b.repeat(4);
    host(b, 0, {3});  // node 3: the operation on stream 1 below
    host(b, 0);
    host(b, 1);
    b.end();
    const Streams streams = run_code(lower(b.program, 0, {}));
    EXPECT_TRUE(streams[0][0].needs.empty());
    EXPECT_EQ(streams[0][2].needs, (std::vector<std::pair<int, std::int64_t>>{{1, 1}}));
    EXPECT_EQ(streams[0][6].needs, (std::vector<std::pair<int, std::int64_t>>{{1, 3}}));
    expect_equal_to_unrolled(b);
}

TEST(Code, WaitOnAnInnerLoopMeansItsLastIteration) {
    ProgramBuilder b;
    b.begin("t", 2);
    b.repeat(2);
    b.repeat(5);
    const std::uint32_t inner = host(b, 1);
    b.end();
    host(b, 0, {inner});
    b.end();
    const Streams streams = run_code(lower(b.program, 0, {}));
    EXPECT_EQ(streams[0][0].needs, (std::vector<std::pair<int, std::int64_t>>{{1, 5}}));
    EXPECT_EQ(streams[0][1].needs, (std::vector<std::pair<int, std::int64_t>>{{1, 10}}));
    expect_equal_to_unrolled(b);
}

TEST(Code, WaitFromAnInnerLoopOnAnOuterOperation) {
    ProgramBuilder b;
    b.begin("t", 2);
    b.repeat(3);
    const std::uint32_t outer = host(b, 1);
    b.repeat(2);
    host(b, 0, {outer});
    b.end();
    b.end();
    const Streams streams = run_code(lower(b.program, 0, {}));
    for (std::size_t i = 0; i < 6; ++i) {
        EXPECT_EQ(streams[0][i].needs,
                  (std::vector<std::pair<int, std::int64_t>>{{1, static_cast<std::int64_t>(i / 2 + 1)}}));
    }
    expect_equal_to_unrolled(b);
}

TEST(Code, ARepeatOfZeroIsNothingAndNobodyWaitsForIt) {
    ProgramBuilder b;
    b.begin("t", 2);
    b.repeat(0);
    const std::uint32_t never = host(b, 1);
    b.end();
    host(b, 0, {never});
    b.repeat(1);
    host(b, 1);
    b.end();
    const Streams streams = run_code(lower(b.program, 0, {}));
    ASSERT_EQ(streams[0].size(), 1u);
    EXPECT_TRUE(streams[0][0].needs.empty());
    EXPECT_EQ(streams[1].size(), 1u);
    expect_equal_to_unrolled(b);
}

TEST(Code, CountsBoundPerRank) {
    ProgramBuilder b;
    b.begin("t", 2);
    b.repeat(99, 1);
    const std::uint32_t a = host(b, 0);
    b.repeat(99, 0);
    host(b, 1, {a});
    b.end();
    b.end();
    EXPECT_EQ(run_code(lower(b.program, 0, {2, 3}))[1].size(), 6u);
    EXPECT_EQ(run_code(lower(b.program, 0, {0, 3}))[1].size(), 0u);
    expect_equal_to_unrolled(b, {2, 3});
    expect_equal_to_unrolled(b, {0, 3});
    expect_equal_to_unrolled(b, {4, 1});
}

TEST(Code, RefusesWhatCannotBeLowered) {
    ProgramBuilder deep;
    deep.begin("deep");
    for (int level = 0; level <= kMaxDepth; ++level)
        deep.repeat(2);
    host(deep, 0);
    for (int level = 0; level <= kMaxDepth; ++level)
        deep.end();
    EXPECT_THROW(lower(deep.program, 0, {}), std::logic_error);
    ProgramBuilder later;
    later.begin("later", 2);
    host(later, 0, {1});
    host(later, 1);
    EXPECT_THROW(lower(later.program, 0, {}), std::logic_error);
}

TEST(Code, RandomTreesEqualTheUnrolledTemplate) {
    for (std::uint32_t seed = 0; seed < 300; ++seed) {
        std::mt19937 random(seed);
        const auto number = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
        ProgramBuilder b;
        b.begin("t", 3);
        int open = 0;
        for (int i = number(5, 25); i > 0; --i) {
            const int what = number(0, 9);
            if (what < 2 && open < kMaxDepth) {
                if (number(0, 3) == 0)
                    b.repeat(0, static_cast<std::uint32_t>(number(0, 2)));
                else
                    b.repeat(number(0, 3));
                ++open;
            } else if (what < 4 && open > 0) {
                b.end();
                --open;
            } else {
                host(b, static_cast<std::uint8_t>(number(0, 2)));
            }
        }
        while (open-- > 0)
            b.end();
        Template& tmpl = b.program.templates.back();
        std::vector<std::uint32_t> node_of(tmpl.operations.size());
        for (std::uint32_t n = 0; n < tmpl.nodes.size(); ++n) {
            if (tmpl.nodes[n].kind == Node::Kind::operation)
                node_of[tmpl.nodes[n].operation] = n;
        }
        for (std::size_t i = 0; i < tmpl.operations.size(); ++i) {
            for (int w = number(0, 2); w > 0; --w) {
                const auto other = static_cast<std::size_t>(number(0, static_cast<int>(tmpl.operations.size()) - 1));
                const bool later = node_of[other] > node_of[i];
                const bool common = std::any_of(
                    tmpl.nodes.begin(), tmpl.nodes.begin() + node_of[i],
                    [&](const Node& node) { return node.kind == Node::Kind::repeat && node.end > node_of[other]; });
                if (tmpl.operations[other].stream == tmpl.operations[i].stream || (later && !common))
                    continue;
                tmpl.operations[i].waits.push_back(node_of[other]);
            }
        }
        SCOPED_TRACE("seed " + std::to_string(seed));
        expect_equal_to_unrolled(b, {number(0, 3), number(0, 3), number(0, 3)});
    }
}

}  // namespace
}  // namespace fabricast::engine
