// Pipelines of p stages written by hand, messages of no size.
#pragma once

#include <algorithm>
#include <vector>

#include "tests/sim/engine/run_well.hpp"

namespace fabricast::engine {

enum class Pipeline { gpipe, one_f_one_b };

// Stage s of p equal stages and m micro-batches; messages of no size.
inline void pipeline_stage(ProgramBuilder& b, Pipeline kind, int s, int p, int m, Picoseconds forward,
                           Picoseconds backward, std::uint32_t closing) {
    // peer slots: 0 the stage before, 1 the stage after
    b.begin("stage " + std::to_string(s));
    b.step(3);
    const bool first = s == 0, last = s == p - 1;
    const int warm = kind == Pipeline::gpipe ? m : std::min(m, p - s - 1);
    const auto take = [&] {
        if (!first)
            b.batch(0, {receives(0, 0)}, {}, "receive forward");
    };
    const auto give = [&] {
        if (!last)
            b.batch(0, {sends(1, 0)}, {}, "send forward");
    };
    const auto take_back = [&] {
        if (!last)
            b.batch(0, {receives(1, 0)}, {}, "receive backward");
    };
    const auto give_back = [&] {
        if (!first)
            b.batch(0, {sends(0, 0)}, {}, "send backward");
    };
    for (int i = 0; i < warm; ++i) {
        take();
        b.compute(forward, {}, "forward");
        give();
    }
    const int steady = m - warm;
    if (steady > 0)
        take();
    for (int i = 0; i < steady; ++i) {
        b.compute(forward, {}, "forward");
        if (!last)
            b.batch(0, {sends(1, 0), receives(1, 0)}, {}, "send forward, receive backward");
        b.compute(backward, {}, "backward");
        if (i + 1 < steady) {
            if (!first)
                b.batch(0, {sends(0, 0), receives(0, 0)}, {}, "send backward, receive forward");
        } else {
            give_back();
        }
    }
    for (int i = 0; i < warm; ++i) {
        take_back();
        b.compute(backward, {}, "backward");
        give_back();
    }
    if (closing != program::kNone)
        b.collective(0, closing, Account::comm_other, {}, "close");
    b.end_step();
}

inline ProgramBuilder pipeline(Pipeline kind, int p, int m, Picoseconds forward, Picoseconds backward,
                               bool global_close) {
    ProgramBuilder b;
    const std::uint32_t route = b.route(b.demand({b.link(50e9)}), 0);
    const std::uint32_t closing = global_close ? b.call(0, 8, 0, 0) : program::kNone;
    for (int s = 0; s < p; ++s)
        pipeline_stage(b, kind, s, p, m, forward, backward, closing);
    std::vector<std::uint32_t> members;
    for (int s = 0; s < p; ++s) {
        const auto rank = static_cast<std::uint32_t>(s);
        b.rank(rank);
        b.peer(rank, rank == 0 ? 0 : rank - 1, rank == 0 ? program::kNone : route);
        b.peer(rank, s == p - 1 ? rank : rank + 1, s == p - 1 ? program::kNone : route);
        members.push_back(rank);
    }
    if (global_close)
        b.group("world", members);
    return b;
}

}  // namespace fabricast::engine
