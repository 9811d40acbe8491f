// Jobs as traces, run: what the tests of whole runs share.
#pragma once

#include <string>

#include <gtest/gtest.h>

#include "sim/traces/run_trace.hpp"
#include "tests/sim/traces/trace_writer.hpp"
#include "topologies/importers/import_error.hpp"

namespace fabricast::traces::test {

inline std::string data(const std::string& name) {
    return std::string(FABRICAST_SOURCE_DIR "/tests/sim/traces/data/") + name;
}

inline double seconds_of(const TraceResult& result) {
    EXPECT_EQ(result.failure, "");
    __int128 sum = 0;
    for (const __int128 part : result.accounts)
        sum += part;
    EXPECT_TRUE(sum == static_cast<__int128>(result.step) * result.ranks) << "accounts are whole";
    return seconds(result.step);
}

inline std::string refusal(const TraceArguments& arguments) {
    try {
        run_trace(arguments);
    } catch (const importers::ImportError& error) {
        return error.sentence();
    }
    return "";
}

/// A job whose ranks are written by a function of the rank.
class Job {
public:
    template <typename Write>
    Job(std::uint32_t ranks, const std::string& network, Write write) {
        for (std::uint32_t rank = 0; rank < ranks; ++rank) {
            TraceText trace;
            write(rank, trace);
            folder.write("t." + std::to_string(rank) + ".et", trace.bytes());
        }
        arguments.chakra = folder.path("t");
        arguments.network = folder.write("net.yml", network);
    }
    TraceResult run(const std::string& system = "") {
        if (!system.empty())
            arguments.system = folder.write("system.json", system);
        return run_trace(arguments);
    }
    Folder folder;
    TraceArguments arguments;
};

inline std::string system_of(const std::string& algorithms, const std::string& more = "", int splits = 1,
                             int active = 1) {
    std::string text = R"({"preferred-dataset-splits": )" + std::to_string(splits) +
                       R"(, "active-chunks-per-dimension": )" + std::to_string(active) +
                       R"(, "endpoint-delay": 0, "collective-optimization": "localBWAware")";
    for (const char* what : {"all-reduce", "all-gather", "reduce-scatter", "all-to-all"}) {
        if (!algorithms.empty() &&
            (std::string(what) == "all-reduce" || algorithms.find("doubleBinaryTree") == std::string::npos))
            text += std::string(", \"") + what + "-implementation\": [" + algorithms + "]";
    }
    return text + more + "}";
}

inline Job collective(int type, std::int64_t bytes, std::uint32_t ranks, const std::string& network) {
    return Job(ranks, network, [&](std::uint32_t, TraceText& trace) {
        trace.add(NodeText(0, "c", kCollective).collective(type, bytes));
    });
}

}  // namespace fabricast::traces::test
