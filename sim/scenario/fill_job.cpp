// data and comm.time_outs -> DataPlan, TimeOuts.
#include <optional>

#include <fmt/format.h>

#include "sim/scenario/fill.hpp"
#include "sim/scenario/places.hpp"

namespace fabricast {
namespace {

void fill_data(Answers& answers, Scenario& s, Diagnostics& diagnostics) {
    DataPlan& d = s.data;
    if (!answers.given("data"))
        return;
    const Answer* samples = answers.given("data.samples");
    const std::int64_t dp = s.training.layout.dp;
    if (const Answer* workers = answers.given("data.loader_workers"))
        d.workers = workers->integer;
    if (const Answer* time = answers.given("data.sample_time")) {
        d.sample_s = time->number;
        d.prefetch = answers.get("data.prefetch").integer;
    } else if (const Answer* prefetch = answers.given("data.prefetch")) {
        d.prefetch = prefetch->integer;
    }
    if (const Answer* start = answers.given("data.worker_start"))
        d.worker_start_s = start->number;
    if (const Answer* persistent = answers.given("data.persistent_workers"))
        d.persistent = persistent->flag;
    if (const Answer* pinned = answers.given("data.pin_memory"))
        d.pageable = !pinned->flag;
    if (!samples) {
        if (const Answer* epochs = answers.given("data.epochs"))
            diagnostics.error(epochs->place, "data.epochs: an epoch needs data.samples");
        if (d.sample_s <= 0 && !d.pageable)
            s.notes.push_back(
                "data: accepted, not used by a step forecast without data.samples (epochs) or data.sample_time (a "
                "loader)");
        return;
    }
    d.samples = samples->integer;
    d.where = samples->place.text();
    d.epochs = answers.get("data.epochs").integer;
    d.meets = answers.get("data.epochs_meet").flag;
    d.drop_last = answers.get("data.sampler.drop_last").flag;
    const std::string sharding = answers.get("data.sampler.sharding").text;
    d.sharding = sharding == "strided" ? DataPlan::Sharding::strided
                 : sharding == "files" ? DataPlan::Sharding::files
                 : sharding == "whole" ? DataPlan::Sharding::whole
                                       : DataPlan::Sharding::padded;
    if (const Answer* same = answers.given("data.sampler.same_order"))
        d.own_order = !same->flag;
    if (const Answer* rotate = answers.given("data.sampler.rotate"))
        d.rotates = rotate->flag;
    if (const Answer* files = answers.given("data.sampler.files"))
        d.files = files->integer;
    if (d.sharding == DataPlan::Sharding::files && d.files < dp)
        diagnostics.error(
            answers.place("data.sampler.files"),
            fmt::format("data.sampler.files: {} files are not enough for {} data-parallel ranks", d.files, dp));
    if (const Answer* counts = answers.given("data.sampler.counts")) {
        d.sharding = DataPlan::Sharding::counts;
        for (const double n : counts->numbers)
            d.counts.push_back(static_cast<std::int64_t>(n));
        if (static_cast<std::int64_t>(d.counts.size()) != dp)
            diagnostics.error(counts->place, fmt::format("data.sampler.counts: {} counts for {} data-parallel ranks",
                                                         d.counts.size(), dp));
    }
    const std::int64_t batch = s.training.global_batch / dp;
    if (d.sharding != DataPlan::Sharding::counts && d.samples / dp < batch)
        diagnostics.error(samples->place, fmt::format("data.samples: {} samples do not fill one step of {} sequences",
                                                      d.samples, s.training.global_batch));
    const Answer* ends = answers.given("data.epoch_end");
    for (std::int64_t i = 0; ends && i < ends->integer; ++i) {
        const std::string base = fmt::format("data.epoch_end[{}]", i);
        DataPlan::Boundary b;
        b.where = answers.place(base).text();
        const Answer* what = answers.given(base + ".what");
        b.what = what ? what->text : "end of epoch";
        if (const Answer* takes = answers.given(base + ".takes"))
            b.takes_s = takes->number;
        if (const Answer* grows = answers.given(base + ".grows"))
            b.grows_s = grows->number;
        if (const Answer* every = answers.given(base + ".every"))
            b.every = every->integer;
        if (const Answer* on = answers.given(base + ".on")) {
            b.who = on->text;
            const std::string wrong = wrong_place(s, b.who);
            if (!wrong.empty())
                diagnostics.error(on->place, fmt::format("{}.on: {}", base, wrong));
            else if (!names_ranks(b.who))
                diagnostics.error(on->place,
                                  fmt::format("{}.on: `{}` names no rank; write {}", base, b.who, kRankPlaces));
        }
        if (b.takes_s <= 0 && b.grows_s <= 0)
            diagnostics.error(answers.place(base), fmt::format("{}: it takes no time; write takes or grows", base));
        d.boundaries.push_back(std::move(b));
    }
}

// HCCL: HCCL_EXEC_TIMEOUT 1800 s by default, versions before 8 round down to a multiple of 68; HCCL_CONNECT_TIMEOUT 120 s and
// 20 more (CANN documentation). PyTorch over NCCL: 600 s for a collective, the watchdog's heartbeat 480 s. Transport: 4.096 us
// x 2^NCCL_IB_TIMEOUT a try, NCCL_IB_RETRY_CNT of them (InfiniBand specification; 20 and 7 in NCCL).
void fill_time_outs(Answers& answers, Scenario& s) {
    TimeOuts& t = s.time_outs;
    const std::string library = answers.get("comm.library").text;
    t.hccl = library.starts_with("hccl");
    const auto variable = [&](const char* name) -> std::optional<double> {
        const Answer* answer = answers.given(std::string("comm.env.") + name);
        std::string problem;
        return answer ? parse_number(answer->text, problem) : std::nullopt;
    };
    if (t.hccl) {
        const auto seconds = static_cast<std::int64_t>(variable("HCCL_EXEC_TIMEOUT").value_or(1800));
        std::string problem;
        const std::size_t blank = library.find(' ');
        const std::optional<double> version =
            blank == std::string::npos ? std::nullopt : parse_number(library.substr(blank + 1), problem);
        t.collective_s = static_cast<double>(version && *version < 8 ? seconds / 68 * 68 : seconds);
        t.connect_s = variable("HCCL_CONNECT_TIMEOUT").value_or(120) + 20;
    }
    if (const Answer* collective = answers.given("comm.time_outs.collective")) {
        t.collective_s = collective->number;
        t.where = collective->place.text();
    } else {
        t.where = answers.place("comm.time_outs").text();
    }
    if (const Answer* off = answers.given("comm.time_outs.off"))
        t.off = off->flag;
    if (const Answer* connect = answers.given("comm.time_outs.connect"))
        t.connect_s = connect->number + (t.hccl ? 20 : 0);
    if (const Answer* heartbeat = answers.given("comm.time_outs.heartbeat"))
        t.heartbeat_s = heartbeat->number;
    t.ib_exponent = static_cast<int>(variable("NCCL_IB_TIMEOUT").value_or(t.ib_exponent));
    t.ib_retries = static_cast<int>(variable("NCCL_IB_RETRY_CNT").value_or(t.ib_retries));
    if (t.ib_exponent < 0 || t.ib_exponent > 31) {
        s.comm_notes.push_back("NCCL_IB_TIMEOUT: the exponent has 5 bits, 0 to 31; the default 20 is taken for faults");
        t.ib_exponent = 20;
    }
    t.ib_retries &= 7;  // a field of 3 bits: what lies above is cut off
    t.transport_s = 4.096e-6 * static_cast<double>(std::int64_t{1} << t.ib_exponent) * t.ib_retries;
}

}  // namespace

void fill_job(Answers& answers, Scenario& s, Diagnostics& diagnostics) {
    fill_data(answers, s, diagnostics);
    fill_time_outs(answers, s);
    fill_faults_of_step(answers, s, diagnostics);
}

}  // namespace fabricast
