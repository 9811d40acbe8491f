// A measured curve with the machine it ran on: what fits, scores and verdicts work on.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/collectives/comm_model.hpp"
#include "validate/ingest/nccl_log.hpp"
#include "validate/score/platform.hpp"
#include "validate/score/predict.hpp"

namespace fabricast {

/// What an index says of a log.
enum class Label { none, healthy, sick };

struct RunCase {
    std::string file;  ///< name of the log, the unit that is left out
    NcclRun run;       ///< usable
    Platform platform;
    Collective kind{};
    Label label = Label::none;
    CommSettings settings = {};  ///< protocols and algorithms of the platform and the library
    int gpus_per_thread = 1;     ///< GPUs that one CPU thread of the test launches on

    /// Class whose constants the run shows: the one it is told to use, else the expected one. Empty on one node.
    std::string_view carried_by() const {
        return platform.told == "sockets" ? "sockets" : std::string_view(platform.expected);
    }
};

struct RunRefusal {
    std::string file, collective, reason;
    bool failed = false;  ///< the log itself reports a failure or contradicts itself; else the model lacks something
    Label label = Label::none;
};

/// What can be scored of the arguments: logs, an index.csv (columns file, hardware, network, nodes, gpus, shows; its
/// logs lie beside it). Options in `hint` hold for every log. Throws IngestError for a file that cannot be read.
struct RunCases {
    std::vector<RunCase> cases;
    std::vector<RunRefusal> refused;
};
RunCases read_cases(const std::vector<std::string>& arguments, const PlatformHint& hint);

/// What NCCL may choose from on a platform. `before_trees`: a library before 2.4 (2019), with rings, LL and Simple only.
CommSettings settings_for(const Platform& platform, bool before_trees);

}  // namespace fabricast
