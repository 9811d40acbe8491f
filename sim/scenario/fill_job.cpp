// data, comm.time_outs and faults.events -> DataPlan, TimeOuts, StepFault.
//
// A fault is the same in a file and on the command line: `where what [value] [every N] [for T] [at T]`.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "sim/scenario/fill.hpp"
#include "sim/scenario/nearest.hpp"

namespace fabricast {
namespace {

using Kind = StepFault::Kind;

constexpr double kLatest = 1e7;  // s

constexpr std::array<std::string_view, 18> kKinds = {
    "clock",   "slow",   "rate",      "lanes", "collision", "congestion", "loss",     "flap", "down",
    "storage", "loader", "wandering", "leak",  "allocator", "garbage",    "sequence", "hang", "crash"};

std::optional<Kind> find_kind(std::string_view word) {
    const auto at = std::find(kKinds.begin(), kKinds.end(), word);
    if (at == kKinds.end())
        return std::nullopt;
    return static_cast<Kind>(at - kKinds.begin());
}

// Dense bf16 FLOP of a streaming multiprocessor and clock (white papers of the generations; the clock that matches the dense
// peak is then 1410 MHz on A100 and 1830 MHz on H100).
double flops_per_clock(GpuGeneration generation) {
    switch (generation) {
        case GpuGeneration::volta: return 1024;
        case GpuGeneration::ampere: return 2048;
        case GpuGeneration::hopper: return 4096;
        case GpuGeneration::blackwell: return 8192;
    }
    return 0;
}

double nominal_mhz(const GpuSpec& gpu) {
    const double each = flops_per_clock(gpu.generation);
    const double mhz = gpu.peak_bf16 / (each * gpu.sms) / 1e6;
    // Chips of a generation that are built or held otherwise (no HBM, H20) give no clock.
    return gpu.hbm_bytes_per_s > 0.9e12 && mhz > 1000 && mhz < 2600 ? mhz : 0;
}

/// "29.2" after a word: false when it is not there.
bool read_two(std::string_view text, std::uint32_t& first, std::uint32_t* second, std::string_view& rest) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), first);
    if (error != std::errc())
        return false;
    rest = text.substr(static_cast<std::size_t>(end - text.data()));
    if (!second)
        return true;
    if (!rest.starts_with('.'))
        return false;
    rest.remove_prefix(1);
    const auto [stop, wrong] = std::from_chars(rest.data(), rest.data() + rest.size(), *second);
    if (wrong != std::errc())
        return false;
    rest = rest.substr(static_cast<std::size_t>(stop - rest.data()));
    return true;
}

/// What is wrong with a place such as "gpu 29.2"; empty when it exists or is a link's name.
std::string wrong_place(const Scenario& s, const std::string& where) {
    std::uint32_t a = 0, b = 0;
    std::string_view rest;
    const std::string_view text = where;
    const std::uint32_t gpus = s.node.gpus;
    const bool listed = s.fabric_is_listed();  // counts come from the file
    if (text.starts_with("gpu ") && read_two(text.substr(4), a, &b, rest)) {
        if (!listed && (a >= s.nodes || b >= gpus))
            return fmt::format("there is no {}: the cluster has nodes 0 to {} with GPUs 0 to {}", where, s.nodes - 1,
                               gpus - 1);
    } else if (text.starts_with("nic ") && read_two(text.substr(4), a, &b, rest)) {
        if (!listed && !s.machine && (a >= s.nodes || b >= s.node.nics))
            return fmt::format("there is no {}: the cluster has nodes 0 to {} with {} adapters each", where,
                               s.nodes - 1, s.node.nics);
    } else if (text.starts_with("node ") && read_two(text.substr(5), a, nullptr, rest) && rest.empty()) {
        if (!listed && a >= s.nodes)
            return fmt::format("there is no {}: the cluster has nodes 0 to {}", where, s.nodes - 1);
    } else if (text.starts_with("rank ") && read_two(text.substr(5), a, nullptr, rest) && rest.empty()) {
        if (a >= s.training.layout.world())
            return fmt::format("there is no {}: the job has ranks 0 to {}", where, s.training.layout.world() - 1);
    } else if (text.starts_with("stage ") && read_two(text.substr(6), a, nullptr, rest) && rest.empty()) {
        if (a >= s.training.layout.pp)
            return fmt::format("there is no {}: the pipeline has stages 0 to {}", where, s.training.layout.pp - 1);
    }
    return {};
}

bool names_ranks(std::string_view where) {
    std::uint32_t a = 0, b = 0;
    std::string_view rest;
    if (where == "all")
        return true;
    if (where.starts_with("gpu ") && read_two(where.substr(4), a, &b, rest))
        return rest.empty();
    for (const std::string_view word : {"node ", "rank ", "stage "}) {
        if (where.starts_with(word) && read_two(where.substr(word.size()), a, nullptr, rest))
            return rest.empty();
    }
    return false;
}

constexpr std::string_view kRankPlaces = "gpu NODE.GPU, node N, rank N, stage N or all";

/// What is wrong with a fault that was read; empty when it can be.
std::string wrong_fault(const Scenario& s, const StepFault& f) {
    const std::string_view what = kKinds[static_cast<std::size_t>(f.kind)];
    if (const std::string wrong = wrong_place(s, f.where); !wrong.empty())
        return wrong;
    const auto ranks = [&]() -> std::string {
        if (names_ranks(f.where))
            return {};
        return fmt::format("`{}` cannot be {}; write {}", f.where, what, kRankPlaces);
    };
    const bool above_one = f.factor >= 1;
    switch (f.kind) {
        case Kind::clock:
            if (nominal_mhz(s.gpu) <= 0)
                return fmt::format("the clock of a {} is not known; write slow and a factor", s.gpu.name);
            if (!(above_one && std::isfinite(f.factor)))
                return fmt::format("a clock is above 0 and at most the {:.0f} MHz of a {}", nominal_mhz(s.gpu),
                                   s.gpu.name);
            return ranks();
        case Kind::slow:
            if (!above_one)
                return "slow needs a factor of at least 1: compute takes so many times as long";
            return ranks();
        case Kind::rate:
            if (!(f.factor > 0 && f.factor < 1))
                return "rate needs the share that is left, above 0 and below 1";
            return {};
        case Kind::lanes: return f.count > 0 ? "" : "lanes needs how many are lost";
        case Kind::loss:
            return f.factor > 0 && f.factor < 0.5 ? "" : "loss needs the share of packets, above 0 and below 0.5";
        case Kind::congestion: return above_one ? "" : "congestion needs a factor of at least 1";
        case Kind::flap:
            if (f.lasts_s <= 0 || !f.timed())
                return "a flap needs a time and a length: nic 3.2 flap at 10 s for 5 s";
            return {};
        case Kind::down:
        case Kind::hang:
        case Kind::crash:
            if (!f.timed())
                return fmt::format("{} needs a time: ... {} at 10 min", what, what);
            return f.kind == Kind::down ? "" : ranks();
        case Kind::storage:
        case Kind::loader:
        case Kind::wandering:
        case Kind::leak:
            if (s.data.sample_s <= 0)
                return fmt::format("{} needs data.sample_time: without it data are always there", what);
            if (f.kind != Kind::leak && !above_one)
                return fmt::format("{} needs a factor of at least 1", what);
            if (f.timed())
                return fmt::format("{} acts from the start of the run; leave `at` out", what);
            return f.kind == Kind::loader ? ranks() : "";
        case Kind::allocator:
        case Kind::garbage:
            if (f.seconds <= 0)
                return fmt::format("{} needs the length of a stop: all {} 300 ms every 20", what, what);
            [[fallthrough]];
        case Kind::sequence:
            if (f.timed())
                return fmt::format("{} acts from the start of the run; leave `at` out", what);
            if (f.kind == Kind::sequence && !(f.factor > 0 && f.factor < 2))
                return "sequence needs the coefficient of variation of a step's compute, above 0 and below 2";
            return f.where.empty() || names_ranks(f.where) ? "" : ranks();
        case Kind::collision: return {};
    }
    return {};
}

/// MHz of "1200 MHz".
std::optional<double> megahertz(std::string_view text) {
    std::string problem;
    const bool unit = text.ends_with("MHz");
    if (unit)
        text.remove_suffix(3);
    while (text.ends_with(' '))
        text.remove_suffix(1);
    return unit ? parse_number(text, problem) : std::nullopt;
}

std::string words_of(const StepFault& f) {
    std::string text = f.where;
    text += (text.empty() ? "" : " ") + std::string(kKinds[static_cast<std::size_t>(f.kind)]);
    return text;
}

void fill_faults_of_step(const Answers& answers, Scenario& s, Diagnostics& diagnostics) {
    const Answer* list = answers.given("faults.events");
    for (std::int64_t i = 0; list && i < list->integer; ++i) {
        const std::string base = fmt::format("faults.events[{}]", i);
        const auto given = [&](const char* key) { return answers.given(base + "." + key); };
        const Answer* what = given("what");
        if (given("kind"))  // of a campaign: fill_faults
            continue;
        if (!what) {
            missing(answers, base + ".what", "; what happens?", diagnostics);
            continue;
        }
        StepFault f;
        f.kind = *find_kind(what->text);
        f.place = what->place.text();
        if (const Answer* where = given("where"))
            f.where = where->text;
        else if (f.kind != Kind::storage && f.kind != Kind::wandering && f.kind != Kind::leak)
            f.where = "all";
        f.text = words_of(f);
        if (const Answer* by = given("by"))
            f.factor = by->number;
        if (const Answer* to = given("to")) {
            const std::optional<double> mhz = megahertz(to->text);
            f.factor = mhz ? nominal_mhz(s.gpu) / *mhz : 0;
            f.text += " " + to->text;
            if (f.kind != Kind::clock)
                diagnostics.error(to->place, fmt::format("{}.to: only a clock is set to something; write by", base));
        } else if (f.kind == Kind::clock) {
            missing(answers, base + ".to", "; write it like 1200 MHz", diagnostics);
            continue;
        }
        if (f.kind == Kind::collision)
            f.factor = 0.5;
        if (const Answer* count = given("count"))
            f.count = count->integer;
        if (const Answer* takes = given("takes"))
            f.seconds = takes->number;
        if (const Answer* every = given("every"))
            f.every = every->integer;
        if (const Answer* together = given("synchronised"))
            f.synchronised = together->flag;
        if (const Answer* at = given("at")) {
            f.at_s = at->number;
            if (f.at_s > kLatest)
                diagnostics.error(at->place,
                                  fmt::format("{}.at: `{}` must be at most {:.0f} s", base, at->text, kLatest));
        }
        for (const char* key : {"duration", "node", "gpu", "nic", "severity"}) {
            if (const Answer* other = given(key))
                diagnostics.error(
                    other->place,
                    fmt::format("{}.{}: belongs to an event with `kind`, of a campaign; with `what` write where and "
                                "lasts",
                                base, key));
        }
        if (const Answer* lasts = given("lasts"))
            f.lasts_s = lasts->number;
        if (const std::string wrong = wrong_fault(s, f); !wrong.empty())
            diagnostics.error(what->place, fmt::format("{}: {}", base, wrong));
        else
            s.faults.push_back(std::move(f));
    }
}

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
    if (!samples) {
        if (const Answer* epochs = answers.given("data.epochs"))
            diagnostics.error(epochs->place, "data.epochs: an epoch needs data.samples");
        if (d.sample_s <= 0)
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
void fill_time_outs(Answers& answers, Scenario& s, Diagnostics& diagnostics) {
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
    (void)diagnostics;
}

}  // namespace

void fill_job(Answers& answers, Scenario& s, Diagnostics& diagnostics) {
    fill_data(answers, s, diagnostics);
    fill_time_outs(answers, s, diagnostics);
    fill_faults_of_step(answers, s, diagnostics);
}

namespace {

/// Cuts " at 2 h" off the end; what follows the word, or nothing.
std::optional<std::string> cut_behind(std::string& text, const std::string& word) {
    const std::size_t at = text.rfind(word);
    if (at == std::string::npos)
        return std::nullopt;
    std::string value = text.substr(at + word.size());
    text.resize(at);
    return value;
}

}  // namespace

void inject_fault(Scenario& s, const std::string& text) {
    const std::string place = "--inject '" + text + "'";
    const auto refuse = [&](const std::string& why) { throw ScenarioError(place + ": " + why); };
    StepFault f;
    f.place = place;
    f.text = text;
    std::string rest = text;
    const auto time = [&](const std::optional<std::string>& value, double& out) {
        if (!value)
            return;
        std::string problem;
        const auto quantity = parse_quantity(*value, Dimension::time, "s", problem);
        if (!quantity)
            refuse(fmt::format("`{}` {}", *value, problem));
        if (!(quantity->value >= 0))
            refuse(fmt::format("`{}` must be at least 0", *value));
        if (quantity->value > kLatest)
            refuse(fmt::format("`{}` must be at most {:.0f} s", *value, kLatest));
        out = quantity->value;
    };
    // In either order: the one further behind is cut off first.
    for (int turn = 0; turn < 2; ++turn) {
        const std::size_t at = rest.rfind(" at "), during = rest.rfind(" for ");
        if (at != std::string::npos && (during == std::string::npos || at > during))
            time(cut_behind(rest, " at "), f.at_s);
        else if (during != std::string::npos)
            time(cut_behind(rest, " for "), f.lasts_s);
    }
    if (rest.ends_with(" synchronised")) {
        f.synchronised = true;
        rest.resize(rest.size() - 13);
    }
    if (const auto every = cut_behind(rest, " every ")) {
        std::string problem;
        const auto number = parse_integer(every->substr(0, every->find(" step")), problem);
        if (!number || *number < 1)
            refuse(fmt::format("`every {}` needs a number of steps", *every));
        f.every = *number;
    }
    std::vector<std::string> words;
    for (std::size_t begin = 0; begin < rest.size();) {
        const std::size_t blank = std::min(rest.find(' ', begin), rest.size());
        if (blank > begin)
            words.push_back(rest.substr(begin, blank - begin));
        begin = blank + 1;
    }
    const auto at =
        std::find_if(words.begin(), words.end(), [](const std::string& w) { return find_kind(w).has_value(); });
    if (at == words.end()) {
        std::vector<std::string> known(kKinds.begin(), kKinds.end());
        std::string nearest = words.empty() ? "" : did_you_mean(words.back(), known);
        for (const std::string& word : words)
            if (nearest.empty())
                nearest = did_you_mean(word, known);
        refuse(
            fmt::format("says nothing that can happen; write where, what and how much, such as gpu 29.2 clock 1200 MHz "
                        "at 2 h; what is one of {}{}",
                        listed(known), nearest));
    }
    f.kind = *find_kind(*at);
    for (auto word = words.begin(); word != at; ++word)
        f.where += (f.where.empty() ? "" : " ") + *word;
    if (f.where.empty() && f.kind != Kind::storage && f.kind != Kind::wandering && f.kind != Kind::leak)
        f.where = "all";
    std::string value;
    for (auto word = at + 1; word != words.end(); ++word)
        value += (value.empty() ? "" : " ") + *word;
    std::string problem;
    if (f.kind == Kind::clock) {
        const std::optional<double> mhz = megahertz(value);
        if (!mhz)
            refuse(fmt::format("`{}` is no clock; write it like 1200 MHz", value));
        f.factor = nominal_mhz(s.gpu) / *mhz;
    } else if (f.kind == Kind::allocator || f.kind == Kind::garbage) {
        time(value, f.seconds);
    } else if (f.kind == Kind::collision) {
        f.factor = 0.5;
    } else if (!value.empty()) {
        const auto number = parse_number(value, problem);
        if (!number)
            refuse(fmt::format("`{}` {}", value, problem));
        if (f.kind == Kind::lanes)
            f.count = static_cast<std::int64_t>(*number);
        else
            f.factor = *number;
    }
    if (const std::string wrong = wrong_fault(s, f); !wrong.empty())
        refuse(wrong);
    s.faults.push_back(std::move(f));
}

}  // namespace fabricast
