#include <fmt/format.h>
#include <algorithm>

#include "sim/scenario/comm_env.hpp"
#include "sim/scenario/fill.hpp"

namespace fabricast {

void fill_comm(Answers& answers, Scenario& s, Diagnostics& diagnostics) {
    const Answer& library = answers.get("comm.library");
    const std::string name = library.text.substr(0, library.text.find(' '));
    s.comm.library = library.text;
    if (name != "nccl" && name != "hccl" && name != "rccl")
        diagnostics.error(library.place,
                          fmt::format("comm.library: `{}` is not known; write the name and version, such as nccl 2.28",
                                      library.text));
    else if (name != "nccl") {
        s.comm.library = "nccl 2.28";
        s.comm_notes.push_back(
            fmt::format("comm.library: {} does not run on NVIDIA GPUs; modelled as nccl 2.28", library.text));
    } else if (nccl_version(library.text) == 0 && library.text != "nccl")
        diagnostics.error(
            library.place,
            fmt::format("comm.library: `{}` has no readable version; write it like nccl 2.28", library.text));
    else if (const int version = nccl_version(library.text); version != 0 && (version < 223 || version > 230))
        s.comm_notes.push_back(
            fmt::format("comm.library: the tables are those of nccl 2.28; {} differs in places", library.text));

    std::vector<EnvEntry> env;
    for (const auto& [key, answer] : answers.below("comm.env."))
        env.push_back({key, answer->text, answer->place});
    const CommContext context{.sms = static_cast<int>(s.gpu.sms),
                              .nvlink = s.gpu.nvlink_nominal_bytes_per_s > 0 && s.node.board != Board::pcie,
                              .nvls = s.gpu.nvls,
                              .network = s.nodes > 1};
    apply_comm_env(env, context, s.comm, s.comm_notes, diagnostics);
    if (s.network && !s.network->ll128 && s.nodes > 1 && s.comm.protocols.empty()) {
        s.comm.protocols = {Protocol::simple};
        if (s.network->ll)
            s.comm.protocols.push_back(Protocol::ll);
        std::sort(s.comm.protocols.begin(), s.comm.protocols.end());
        s.comm_notes.push_back(fmt::format("cluster.fabric.network: over {} NCCL runs without {}LL128 ({})",
                                           s.network->name, s.network->ll ? "" : "LL and ",
                                           s.network->sources.at("ll128")));
    }
}

void fill_run(Answers& answers, Scenario& s, Diagnostics&) {
    if (const Answer* tokens = answers.given("run.tokens"))
        s.tokens = tokens->number;
    if (const Answer* price = answers.given("run.price")) {
        s.price_per_gpu_hour = price->number;
        s.currency = price->unit;
    }
    for (const auto& [key, answer] : answers.below("expect.")) {
        if (key == "outcome")
            s.expect_outcome = answer->text;
        else
            s.expect.push_back({key, answer->numbers[0], answer->numbers[1], answer->place.text()});
    }
    if (const Answer* quantum = answers.given("simulation.quantum"))
        s.quantum = picoseconds_from_s(quantum->number);
    s.seed = static_cast<std::uint64_t>(answers.get("seed").integer);
}

}  // namespace fabricast
