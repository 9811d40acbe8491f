// A job given as traces, from files to figures: workload -> program -> engine -> result.
//
// Nothing in a result depends on the machine. Every rank runs its trace once, from an idle start; the step is the time of
// the last rank.
//
// In which order a rank takes its nodes depends on when messages and members of collectives arrive, and that on the other
// ranks' orders. Orders are first made as if everything arrived at once, then again from when it really did, until they
// stay the same, kMostRounds at most; the run that ended first counts. A run that stands still tells what must not be
// waited for first, too: only one that comes no further is a deadlock. Jobs in which all ranks do the same, without
// messages, need one run.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "models/program/account.hpp"
#include "sim/traces/compile_trace.hpp"

namespace fabricast::traces {

struct TraceArguments {
    std::string chakra;  ///< prefix of execution traces, or
    std::string simai;   ///< a SimAI workload
    std::string network, system, groups, memory;
    bool serial_communication = false;
};

/// Ranks that do the same at the same time.
struct RankClass {
    std::vector<std::uint32_t> ranks;
    std::string trace;  ///< "like rank 0"
    Picoseconds finish = 0;
    std::array<Picoseconds, kAccountCount> accounts = {};
};

struct TraceResult {
    std::string version, source, network, system;
    std::string verdict;  ///< "done", "deadlock", "mismatch", "unmatched message"
    std::string failure;  ///< empty when done
    std::uint32_t ranks = 0, templates = 0;
    std::uint64_t nodes = 0;  ///< of all ranks
    Picoseconds step = 0;
    std::array<__int128, kAccountCount> accounts = {};  ///< rank-picoseconds, sum = step * ranks
    std::vector<RankClass> classes;                     ///< by first rank
    std::vector<TraceTraffic> traffic;
    std::vector<std::string> notes;
    std::uint64_t events = 0, fingerprint = 0;
};

/// Throws ImportError for files that cannot be used.
TraceResult run_trace(const TraceArguments& arguments);

}  // namespace fabricast::traces
