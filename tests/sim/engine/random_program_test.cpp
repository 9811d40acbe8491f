// Properties of random valid programs: they end, accounts are exact, links carry no more than they can, faster links
// do not hurt.
#include <algorithm>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "tests/sim/engine/program_builder.hpp"

namespace fabricast::engine {
namespace {

using program::OpKind;
using test::account_sum;
using test::kMicrosecond;
using test::ProgramBuilder;

struct Shape {
    bool shared_links;  ///< messages and groups draw links from a common pool; otherwise each has its own
    std::uint8_t streams;
    bool several_steps;
};

// One global list of actions, drawn in order and appended to every rank that takes part: whatever the timing, the
// first unfinished action can always go on, so the program is free of deadlock.
class RandomProgram {
public:
    RandomProgram(std::uint32_t seed, Shape shape) : random_(seed), shape_(shape) {
        const auto ranks = static_cast<std::uint32_t>(number(2, 16));
        for (int l = 0; l < 8; ++l)
            pool_.push_back(b.link(number(10, 100) * 1e9));
        for (std::uint32_t r = 0; r < ranks; ++r)
            b.rank(r);
        for (int g = number(1, 5); g > 0; --g)
            draw_group(ranks);
        std::vector<Action> actions(static_cast<std::size_t>(number(5, 60)));
        for (Action& action : actions)
            action = draw_action(ranks);
        for (std::uint32_t r = 0; r < ranks; ++r)
            write_rank(r, actions);
    }

    ProgramBuilder b;
    std::vector<Bytes> link_bytes;  ///< by link, in one step
    int steps = 1;

private:
    struct Action {
        OpKind kind;
        std::uint32_t first, second;  ///< ranks of a message; compute: rank; collective: group
        std::uint32_t payload;        ///< cost, call or bytes
        std::uint16_t slot_first = 0, slot_second = 0;
        bool both_ways = false;
        std::uint32_t wait_stream = 0;
    };

    int number(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }

    std::uint32_t draw_demand() {
        if (!shape_.shared_links)
            return b.demand({b.link(number(10, 100) * 1e9)});
        const auto a = static_cast<std::size_t>(number(0, 7)), c = static_cast<std::size_t>(number(0, 7));
        return a == c ? b.demand({pool_[a]}) : b.demand({pool_[a], pool_[c]});
    }

    void draw_group(std::uint32_t ranks) {
        std::vector<std::uint32_t> members;
        for (std::uint32_t r = 0; r < ranks; ++r) {
            if (number(0, 1) == 0)
                members.push_back(r);
        }
        if (members.empty())
            members.push_back(0);
        const std::uint32_t demand = draw_demand();
        b.group("group " + std::to_string(b.program.groups.size()), members, {demand});
        stream_of_group_.push_back(static_cast<std::uint8_t>(number(0, shape_.streams - 1)));
    }

    Action draw_action(std::uint32_t ranks) {
        Action action{};
        const int what = number(0, 9);
        action.wait_stream = static_cast<std::uint32_t>(number(0, shape_.streams - 1));
        action.first = static_cast<std::uint32_t>(number(0, static_cast<int>(ranks) - 1));
        if (what < 5) {
            action.kind = OpKind::compute;
            program::CostClass& cost = b.cost(number(0, 100) * kMicrosecond + number(0, 999'999));
            if (number(0, 2) == 0) {
                cost.host = number(0, 60) * kMicrosecond;
                cost.host_first = std::min<Picoseconds>(cost.host, 2 * kMicrosecond);
            }
            if (shape_.streams > 1) {
                for (std::size_t s = 1; s < program::kSpeedStates; ++s)
                    cost.speed[s] = static_cast<std::uint32_t>(number(30'000, 65'536));
            }
            action.payload = static_cast<std::uint32_t>(b.program.costs.size() - 1);
        } else if (what < 8) {
            action.kind = OpKind::collective;
            action.first = static_cast<std::uint32_t>(number(0, static_cast<int>(b.program.groups.size()) - 1));
            action.payload = static_cast<std::uint32_t>(number(0, 3) == 0 ? 0 : number(1, 4'000'000));
        } else {
            action.kind = OpKind::p2p_batch;
            action.second = static_cast<std::uint32_t>(number(0, static_cast<int>(ranks) - 2));
            if (action.second >= action.first)
                ++action.second;
            action.payload = static_cast<std::uint32_t>(number(0, 3) == 0 ? 0 : number(1, 4'000'000));
            action.both_ways = number(0, 1) == 0;
            const auto channel = static_cast<std::uint32_t>(b.program.routes.size());
            const std::uint32_t there = b.route(draw_demand(), number(0, 9) * kMicrosecond);
            const std::uint32_t back = b.route(draw_demand(), number(0, 9) * kMicrosecond);
            action.slot_first = b.peer(action.first, action.second, there, channel);
            action.slot_second = b.peer(action.second, action.first, back, channel);
        }
        return action;
    }

    void write_rank(std::uint32_t rank, const std::vector<Action>& actions) {
        b.begin("rank " + std::to_string(rank), shape_.streams);
        steps = shape_.several_steps ? 4 : 1;
        b.repeat(steps);
        std::vector<std::uint32_t> latest(shape_.streams, program::kNone);
        const auto add = [&](std::uint8_t stream, const auto& append, std::uint32_t wait_stream) {
            std::vector<std::uint32_t> waits;
            if (wait_stream != stream && latest[wait_stream] != program::kNone)
                waits.push_back(latest[wait_stream]);
            latest[stream] = append(stream, std::move(waits));
        };
        for (const Action& action : actions) {
            if (action.kind == OpKind::compute && action.first == rank) {
                add(
                    0, [&](std::uint8_t, auto waits) { return b.compute_class(action.payload, std::move(waits)); },
                    action.wait_stream);
            } else if (action.kind == OpKind::collective) {
                const auto& groups = b.program.ranks[rank].groups;
                const auto slot = std::find(groups.begin(), groups.end(), action.first);
                if (slot == groups.end())
                    continue;
                const std::uint32_t call = b.call(static_cast<std::uint16_t>(slot - groups.begin()), action.payload,
                                                  kMicrosecond, action.payload);
                add(
                    stream_of_group_[action.first],
                    [&](std::uint8_t stream, auto waits) {
                        return b.collective(stream, call, Account::comm_tp, std::move(waits));
                    },
                    action.wait_stream);
                if (rank == b.program.groups[action.first].members.front())
                    load(b.program.groups[action.first].demands[0], action.payload);
            } else if (action.kind == OpKind::p2p_batch && (action.first == rank || action.second == rank)) {
                const std::uint16_t slot = action.first == rank ? action.slot_first : action.slot_second;
                std::vector<program::MessageHalf> halves;
                if (action.first == rank || action.both_ways)
                    halves.push_back(test::sends(slot, action.payload));
                if (action.second == rank || action.both_ways)
                    halves.push_back(test::receives(slot, action.payload));
                if (halves.front().is_send)
                    load(b.program.routes[b.program.ranks[rank].peers[slot].send_route].demand, action.payload);
                add(
                    static_cast<std::uint8_t>(shape_.streams - 1),
                    [&](std::uint8_t stream, auto waits) {
                        return b.batch(stream, std::move(halves), std::move(waits));
                    },
                    action.wait_stream);
            }
        }
        std::vector<std::uint32_t> waits;
        for (std::size_t s = 1; s < latest.size(); ++s) {
            if (latest[s] != program::kNone)
                waits.push_back(latest[s]);
        }
        b.end_step(waits);
    }

    void load(std::uint32_t demand, Bytes bytes) {
        link_bytes.resize(b.capacity.size(), 0);
        for (const LinkUse& use : b.program.demands[demand])
            link_bytes[index(use.link)] += bytes;
    }

    std::mt19937 random_;
    Shape shape_;
    std::vector<LinkId> pool_;
    std::vector<std::uint8_t> stream_of_group_;
};

TEST(RandomPrograms, EndWithExactAccountsAndNoLinkAboveItsCapacity) {
    for (std::uint32_t seed = 0; seed < 300; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        const RandomProgram random(seed, {seed % 4 != 0, static_cast<std::uint8_t>(1 + seed % 3), seed % 2 == 0});
        ASSERT_EQ(program::validate(random.b.program), "");
        EngineOptions options;
        options.stop_when_periodic = false;
        const EngineResult result = random.b.run(options);
        ASSERT_EQ(result.outcome, Outcome::done) << result.message;
        ASSERT_EQ(result.steps, static_cast<std::uint32_t>(random.steps));
        for (std::uint32_t rank = 0; rank < random.b.program.ranks.size(); ++rank) {
            for (const Picoseconds part : result.accounts[rank])
                ASSERT_GE(part, 0) << "rank " << rank;
        }
        for (std::size_t l = 0; l < random.link_bytes.size(); ++l) {
            if (random.link_bytes[l] == 0)
                continue;
            ASSERT_GE(result.end, Network::duration(random.link_bytes[l] * random.steps, random.b.capacity[l]))
                << "link " << l;
        }
        // each rank's accounts are its own last step
        EngineOptions again = options;
        again.record_timeline = true;
        const EngineResult recorded = random.b.run(again);
        ASSERT_EQ(recorded.fingerprint, result.fingerprint);
        ASSERT_EQ(recorded.end, result.end);
        std::vector<std::vector<Picoseconds>> ends(random.b.program.ranks.size(), {0});
        for (const Record& record : recorded.timeline) {
            const auto& tmpl = random.b.program.templates[random.b.program.ranks[record.rank].tmpl];
            if (tmpl.operations[record.operation].kind == OpKind::step_end)
                ends[record.rank].push_back(record.finished);
        }
        for (std::uint32_t rank = 0; rank < ends.size(); ++rank) {
            ASSERT_EQ(ends[rank].size(), static_cast<std::size_t>(random.steps) + 1);
            ASSERT_EQ(account_sum(result, rank), ends[rank].back() - ends[rank][ends[rank].size() - 2])
                << "rank " << rank;
        }
        Picoseconds total = 0;
        for (const PathPart& part : critical_path(random.b.program, recorded.timeline, 0, recorded.end))
            total += part.time;
        ASSERT_EQ(total, recorded.end);
    }
}

// Where links are shared, a message that ends earlier may let another start and slow a third: no order can be promised.
// Where every message and group has its own, the end is a maximum over sums of durations.
TEST(RandomPrograms, MoreBandwidthNeverEndsLaterWhereNoLinkIsShared) {
    for (std::uint32_t seed = 0; seed < 200; ++seed) {
        RandomProgram random(seed + 1000, {false, 1, false});
        const Picoseconds before = random.b.run().end;
        std::mt19937 faster(seed);
        for (Rate& capacity : random.b.capacity) {
            if (faster() % 2 == 0)
                capacity += capacity / 3;
        }
        ASSERT_LE(random.b.run().end, before) << "seed " << seed;
        for (Rate& capacity : random.b.capacity)
            capacity *= 2;
        ASSERT_LE(random.b.run().end, before) << "seed " << seed;
    }
}

}  // namespace
}  // namespace fabricast::engine
