#include <algorithm>

#include <fmt/format.h>

#include "models/parallel/ranks.hpp"
#include "models/parallel/stage_parameters.hpp"
#include "sim/scenario/fill.hpp"

namespace fabricast {
namespace {

Compression method_from(const std::string& word) {
    for (const Compression method : compressions())
        if (word == compression_name(method))
            return method;
    return Compression::none;
}

/// Ranks of a gradient group that share a server, when every server has as many of them; 1 when there is but one level.
std::int64_t ranks_inside(const Layout& layout, std::int64_t gpus_a_server) {
    if (layout.schedule == Schedule::dual_pipe)  // groups join two stages
        return 1;
    std::vector<std::uint32_t> group = RankMap(layout).data_group({0, 0, 0, 0});
    group.resize(static_cast<std::size_t>(
        std::min<std::int64_t>(dense_sharding(layout).ranks, static_cast<std::int64_t>(group.size()))));
    const auto server = [&](std::uint32_t rank) { return rank / gpus_a_server; };
    const auto inside = static_cast<std::size_t>(std::count_if(
        group.begin(), group.end(), [&](std::uint32_t rank) { return server(rank) == server(group.front()); }));
    if (group.size() % inside != 0 || inside == group.size())
        return 1;
    for (std::size_t i = 0; i < group.size(); ++i)
        if (server(group[i]) != server(group[i / inside * inside]))
            return 1;
    return static_cast<std::int64_t>(inside);
}

}  // namespace

void fill_compression(Answers& answers, Scenario& s, Diagnostics& diagnostics) {
    CompressedTraffic& c = s.training.compression;
    if (!answers.given("comm.compression"))
        return;
    c.gradients = method_from(answers.get("comm.compression.gradients").text);
    c.parameters = method_from(answers.get("comm.compression.parameters").text);
    c.tensor_parallel = method_from(answers.get("comm.compression.tensor_parallel").text);
    const bool late = c.gradients == Compression::one_bit_adam || c.gradients == Compression::powersgd;
    if (const Answer* rank = answers.given("comm.compression.rank")) {
        c.rank = rank->integer;
        if (c.gradients != Compression::powersgd)
            diagnostics.error(rank->place, "comm.compression.rank: only powersgd sends factors of a rank");
    } else if (c.gradients == Compression::powersgd) {
        c.rank = answers.get("comm.compression.rank").integer;
    }
    const bool wide = s.software.fp32_reduce || s.training.precision == Precision::fp32;
    if ((c.gradients == Compression::fp16 || c.gradients == Compression::bf16) && !wide)
        diagnostics.error(answers.place("comm.compression.gradients"),
                          fmt::format("comm.compression.gradients: gradients of {} travel in 16 bit already "
                                      "(training.software.fp32_reduce: false)",
                                      s.software.name));
    if (const Answer* warmup = answers.given("comm.compression.warmup")) {
        s.compression_warmup = warmup->number;
        if (!late)
            diagnostics.error(warmup->place,
                              "comm.compression.warmup: only 1-bit-adam and powersgd begin after steps without "
                              "compression");
    } else if (late) {
        s.compression_warmup = c.gradients == Compression::one_bit_adam ? 0.2 : 0;
        if (c.gradients == Compression::one_bit_adam)
            s.notes.emplace_back(
                "comm.compression: the first fifth of the run is taken to be 1-bit Adam's warm-up without compression "
                "(15-25 % in its paper; comm.compression.warmup changes it); the step is one after it");
    }
    if (c.gradients != Compression::none && s.training.layout.shard_group > 0)
        s.notes.emplace_back("comm.compression.gradients: sums across sharding groups stay as they are");
    if (c.tensor_parallel != Compression::none && s.software.tp_hidden_fraction > 0)
        s.notes.push_back(
            fmt::format("comm.compression.tensor_parallel: {:.0f} % of that traffic is hidden by chunked "
                        "products in {}",
                        100 * s.software.tp_hidden_fraction, s.software.name));
}

void place_compression(Scenario& s) {
    CompressedTraffic& c = s.training.compression;
    if (c.gradients == Compression::int8 || c.gradients == Compression::int4)
        c.inside = ranks_inside(s.training.layout, s.node.gpus);
}

}  // namespace fabricast
