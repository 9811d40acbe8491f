#include "sim/scenario/comm_env.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "sim/scenario/comm_env_variables.hpp"
#include "sim/scenario/nearest.hpp"

namespace fabricast {
namespace {

using comm_env::Effect;
using comm_env::Function;
using comm_env::kAny;
using comm_env::kFunctions;
using comm_env::Kind;
using comm_env::kVariables;
using comm_env::Variable;

std::vector<std::string> variable_names() {
    std::vector<std::string> names;
    for (const Variable& v : kVariables)
        names.emplace_back(v.name);
    return names;
}

std::optional<std::int64_t> whole(const std::string& text) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || text.empty())
        return {};
    return value;
}

std::string lower(std::string text) {
    for (char& c : text)
        if (c >= 'A' && c <= 'Z')
            c = static_cast<char>(c - 'A' + 'a');
    return text;
}

std::vector<std::string> split(const std::string& text, char at) {
    std::vector<std::string> parts(1);
    for (const char c : text)
        if (c == at)
            parts.emplace_back();
        else if (c != ' ')
            parts.back() += c;
    return parts;
}

class Environment {
public:
    Environment(const CommContext& context, CommSettings& settings, std::vector<std::string>& notes,
                Diagnostics& diagnostics)
        : context_(context),
          settings_(settings),
          notes_(notes),
          diagnostics_(diagnostics),
          max_channels_(nccl_version(settings.library) >= 225 || nccl_version(settings.library) == 0 ? 64 : 32) {}

    void apply(std::span<const EnvEntry> env) {
        for (const EnvEntry& entry : env)
            one(entry);
        bounds(env);
        sockets(env);
    }

private:
    void note(const EnvEntry& e, const std::string& sentence) {
        notes_.push_back(fmt::format("{}={}: {}", e.name, e.value, sentence));
    }
    void error(const EnvEntry& e, const std::string& sentence) {
        diagnostics_.error(e.place, fmt::format("comm.env.{}: `{}` {}", e.name, e.value, sentence));
    }

    void one(const EnvEntry& e) {
        const auto v = std::find_if(std::begin(kVariables), std::end(kVariables),
                                    [&](const Variable& known) { return known.name == e.name; });
        if (v == std::end(kVariables))
            return stranger(e);
        switch (v->kind) {
            case Kind::algo: {
                static constexpr std::array<std::string_view, 7> kNames = {
                    "Tree", "Ring", "CollnetDirect", "CollnetChain", "NVLS", "NVLSTree", "PAT"};
                return select(e, kNames, settings_.algorithms, [&](Collective kind, std::vector<Algorithm> list) {
                    function_settings(kind).algorithms = std::move(list);
                });
            }
            case Kind::proto: {
                static constexpr std::array<std::string_view, 3> kNames = {"LL", "LL128", "Simple"};
                return select(e, kNames, settings_.protocols, [&](Collective kind, std::vector<Protocol> list) {
                    function_settings(kind).protocols = std::move(list);
                });
            }
            case Kind::channels: return channels(e);
            case Kind::nvls: return nvls(e);
            case Kind::collnet: return collnet(e);
            case Kind::pxn: return pxn(e);
            case Kind::ib_timeout: return ib_timeout(e);
            case Kind::ib_retry: return ib_retry(e);
            case Kind::integer: return integer(e, *v);
            case Kind::gdr_level:
            case Kind::level: return level(e, *v);
            case Kind::text: return note(e, effect_text(*v));
        }
    }

    std::string effect_text(const Variable& v) const {
        std::string text;
        switch (v.effect) {
            case Effect::acts: break;
            case Effect::unmodelled: text = "accepted, its effect is not modelled"; break;
            case Effect::faults: text = "acts only after a fault, not on a step forecast"; break;
            case Effect::sockets: text = "no effect: only the TCP transport reads it, not InfiniBand or RoCE"; break;
            case Effect::logs: text = "no effect on a forecast"; break;
            case Effect::network:
                text =
                    context_.network ? "accepted, its effect on the network is not modelled" : "no effect on one node";
                break;
        }
        return v.remark.empty() ? text : fmt::format("{} ({})", text, v.remark);
    }

    void integer(const EnvEntry& e, const Variable& v) {
        const auto value = whole(e.value);
        if (!value)
            return note(e, fmt::format("is not a whole number; the library would ignore it{}", default_text(v)));
        if (*value < v.low || *value > v.high)
            return note(e, v.high == kAny ? fmt::format("out of range, must be at least {}{}", v.low, default_text(v))
                                          : fmt::format("out of range {} to {}{}", v.low, v.high, default_text(v)));
        note(e,
             *value == v.fallback && v.effect != Effect::sockets ? "no effect: this is the default" : effect_text(v));
    }
    static std::string default_text(const Variable& v) {
        return v.fallback >= 0 ? fmt::format("; the default is {}", v.fallback) : "";
    }

    void level(const EnvEntry& e, const Variable& v) {
        std::string word = e.value;
        const bool gdr = v.kind == Kind::gdr_level;
        std::vector<std::string> levels = {"LOC", "PIX", "PXB", "PHB", "SYS"};
        if (!gdr)
            levels.insert(levels.begin() + 1, "NVL");
        if (const auto number = whole(e.value)) {
            static constexpr std::array<std::string_view, 5> kOld = {"LOC", "PIX", "PXB", "PHB", "SYS"};
            if (*number < 0)
                return error(e, fmt::format("is not one of {}", listed(levels)));
            const auto at = static_cast<std::size_t>(std::min<std::int64_t>(*number, 4));
            word = kOld[at];
        }
        if (std::find(levels.begin(), levels.end(), word) == levels.end())
            return error(e, fmt::format("is not one of {}{}", listed(levels), did_you_mean(word, levels)));
        const std::string as = word == e.value ? "" : fmt::format(" (old style for {})", word);
        if (gdr && word == "PXB")
            return note(e, fmt::format("no effect: PXB is the default level{}", as));
        if (gdr && (word == "PHB" || word == "SYS"))
            return note(
                e, fmt::format("accepted{}: GPUDirect RDMA is assumed anyway, the adapter sits beside its GPU", as));
        if (gdr)
            return note(e,
                        fmt::format("accepted{}: would switch GPUDirect RDMA off; the extra copy is not modelled", as));
        if (word == "LOC")
            return note(
                e,
                fmt::format("accepted{}: would switch peer access off; the detour over the host is not modelled", as));
        note(e, context_.nvlink ? fmt::format("no effect{}: the GPUs of a node are joined by NVLink", as)
                                : fmt::format("accepted{}, its effect is not modelled", as));
    }

    /// "ring,tree;allreduce:^ring": what every function may use, and what single ones may instead.
    template <typename T, std::size_t N, typename Restrict>
    void select(const EnvEntry& e, const std::array<std::string_view, N>& names, std::vector<T>& everywhere,
                Restrict restrict_one) {
        const std::vector<std::string> known(names.begin(), names.end());
        std::vector<bool> all(N, true);
        std::array<std::optional<std::vector<bool>>, std::size(kFunctions)> single;
        bool first = true;
        for (const std::string& part : split(e.value, ';')) {
            const std::size_t colon = part.find(':');
            if (colon == std::string::npos) {
                if (!first)
                    return error(e, fmt::format("lists `{}` for no function; only the first list may, others are "
                                                "headed like allreduce:{}",
                                                part, part));
                apply_list(e, part, known, all);
            } else if (const auto at = function_of(e, part.substr(0, colon))) {
                if (!single[*at])
                    single[*at] = all;
                apply_list(e, part.substr(colon + 1), known, *single[*at]);
            }
            first = false;
        }
        if (!diagnostics_.ok())
            return;
        const auto chosen = [&](const std::vector<bool>& allowed) {
            std::vector<T> out;
            for (std::size_t i = 0; i < N; ++i) {
                if (allowed[i])
                    out.push_back(static_cast<T>(i));
            }
            return out;
        };
        everywhere = chosen(all);
        if (everywhere.empty())
            return error(e, "leaves nothing to choose from");
        if (everywhere.size() == N)
            everywhere.clear();
        for (std::size_t f = 0; f < single.size(); ++f) {
            if (!single[f])
                continue;
            std::vector<T> list = chosen(*single[f]);
            if (list.empty())
                return error(e, fmt::format("leaves nothing to choose from for {}", kFunctions[f].name));
            restrict_one(kFunctions[f].kind, std::move(list));
        }
    }

    std::optional<std::size_t> function_of(const EnvEntry& e, const std::string& name) {
        std::vector<std::string> known;
        for (std::size_t f = 0; f < std::size(kFunctions); ++f) {
            if (lower(name) == kFunctions[f].name)
                return f;
            known.emplace_back(kFunctions[f].name);
        }
        error(e, fmt::format("names the function `{}`, which is not one of {}{}", name, listed(known),
                             did_you_mean(name, known)));
        return std::nullopt;
    }

    /// "Ring,Tree" puts these alone, "^NVLS" takes them away.
    void apply_list(const EnvEntry& e, const std::string& list, const std::vector<std::string>& known,
                    std::vector<bool>& allowed) {
        const bool exclude = list.starts_with("^");
        if (!exclude)
            allowed.assign(known.size(), false);
        for (const std::string& word : split(exclude ? list.substr(1) : list, ',')) {
            std::size_t i = 0;
            while (i < known.size() && lower(known[i]) != lower(word))
                ++i;
            if (i == known.size())
                error(e, fmt::format("names `{}`, which is not one of {}{}", word, listed(known),
                                     did_you_mean(word, known)));
            else
                allowed[i] = !exclude;
        }
    }

    CommSettings::Function& function_settings(Collective kind) {
        for (CommSettings::Function& f : settings_.functions) {
            if (f.kind == kind)
                return f;
        }
        settings_.functions.push_back({kind, std::nullopt, std::nullopt});
        return settings_.functions.back();
    }

    void channels(const EnvEntry& e) {
        const auto value = whole(e.value);
        if (!value || *value < 1)
            return error(e, "is not a whole number from 1");
        const bool minimum = e.name.find("_MIN_") != std::string::npos, old = e.name.ends_with("NCHANNELS");
        const std::string modern = minimum ? "NCCL_MIN_CTAS" : "NCCL_MAX_CTAS";
        const int used = static_cast<int>(std::min<std::int64_t>(*value, max_channels_));
        std::optional<int>& target = minimum ? settings_.min_channels : settings_.max_channels;
        bool& modern_seen = minimum ? modern_min_ : modern_max_;
        if (old && modern_seen)
            return note(e, fmt::format("no effect: {} is set as well", modern));
        target = used;
        if (!old)
            modern_seen = true;
        if (*value > max_channels_)
            note(e, fmt::format(
                        "clamped to {}, the most channels {} has{}", max_channels_, settings_.library,
                        minimum ? fmt::format("; each takes one of the {} SMs from compute while it runs", context_.sms)
                                : ""));
        if (old)
            note(e, fmt::format("deprecated since 2.17; {} replaces it", modern));
    }

    void nvls(const EnvEntry& e) {
        const auto value = whole(e.value);
        if (!value || *value < 0 || *value > 2)
            return error(e, "is not 0 (off), 1 (on) or 2 (automatic)");
        settings_.nvls_enabled = *value != 0;
        if (*value == 2)
            note(e, "no effect: this is the default");
        else if (!context_.nvls)
            note(e, "no effect: this node has no NVLink SHARP");
    }

    void collnet(const EnvEntry& e) {
        if (const auto on = zero_or_one(e)) {
            settings_.collnet = *on;
            note(e, *on ? "acts where the switches reduce (NVLink SHARP over InfiniBand); needs the SHARP plug-in"
                        : "no effect: this is the default");
        }
    }
    void pxn(const EnvEntry& e) {
        if (const auto off = zero_or_one(e)) {
            settings_.pxn = !*off;
            if (!*off)
                note(e, "no effect: this is the default");
        }
    }
    std::optional<bool> zero_or_one(const EnvEntry& e) {
        const auto value = whole(e.value);
        if (value && (*value == 0 || *value == 1))
            return *value == 1;
        error(e, "is not 0 or 1");
        return std::nullopt;
    }

    void ib_timeout(const EnvEntry& e) {
        const auto value = whole(e.value);
        if (!value || *value < 0)
            return error(e, "is not a whole number from 0 to 31");
        if (*value == 0 || *value >= 32)
            return note(e, "waits for ever: a lost link would never become an error (default 20, 4.29 s an attempt)");
        const double one = 4.096e-6 * static_cast<double>(std::uint64_t{1} << *value);
        note(e,
             fmt::format(
                 "an exponent, not seconds: 4.096 us x 2^{} = {:.3g} s an attempt, {:.3g} to {:.3g} s until an error "
                 "(default 20: 4.29 s, 30 to 34 s); acts only after a link is lost",
                 *value, one, 7 * one, 8 * one));
    }

    void ib_retry(const EnvEntry& e) {
        const auto value = whole(e.value);
        if (!value || *value < 0)
            return error(e, "is not a whole number from 0 to 7");
        if (*value > 7)
            return note(e, fmt::format("out of range 0 to 7 (a 3-bit field): refused, or cut to {}, {} the default 7",
                                       *value & 7, (*value & 7) == 7 ? "which is" : "fewer retries than"));
        note(e,
             *value == 7 ? "no effect: this is the default" : "acts only after a link is lost, not on a step forecast");
    }

    void stranger(const EnvEntry& e) {
        static const std::vector<std::string> known = variable_names();
        if (e.name == "HCCL_EXEC_TIMEOUT" || e.name == "HCCL_CONNECT_TIMEOUT")
            return note(e, "acts only with comm.library hccl (of Ascend NPUs), after a fault or stall");
        if (e.name.starts_with("HCCL_"))
            return note(e, "no effect: HCCL is the library of Ascend NPUs, NVIDIA GPUs use NCCL");
        if (e.name.starts_with("TORCH_NCCL_"))
            return note(e, "a PyTorch watchdog or debugging setting: acts only after a fault or stall");
        if (e.name.starts_with("NCCL_"))
            return note(e, "unknown to NCCL, no effect" + did_you_mean(e.name, known));
        const std::string prefixed = "NCCL_" + e.name;
        if (std::find(known.begin(), known.end(), prefixed) != known.end())
            return note(e, fmt::format("no effect: not a variable NCCL reads; did you mean `{}`?", prefixed));
        note(e, "not a variable of the communication library; no effect on a forecast");
    }

    void bounds(std::span<const EnvEntry> env) {
        if (!settings_.min_channels || !settings_.max_channels || *settings_.min_channels <= *settings_.max_channels)
            return;
        for (const EnvEntry& e : env)
            if (e.name == "NCCL_MIN_NCHANNELS" || e.name == "NCCL_MIN_CTAS") {
                note(e, fmt::format("above the maximum of {} channels, which wins", *settings_.max_channels));
                break;
            }
        settings_.min_channels = settings_.max_channels;
    }

    void sockets(std::span<const EnvEntry> env) {
        std::int64_t product = 1;
        const EnvEntry* last = nullptr;
        for (const EnvEntry& e : env)
            if (e.name == "NCCL_SOCKET_NTHREADS" || e.name == "NCCL_NSOCKS_PERTHREAD")
                if (const auto value = whole(e.value); value && *value >= 1 && *value <= 16)
                    product *= *value, last = &e;
        if (last && product > 64)
            note(*last, fmt::format("threads x sockets = {}, above the limit of 64", product));
    }

    const CommContext& context_;
    CommSettings& settings_;
    std::vector<std::string>& notes_;
    Diagnostics& diagnostics_;
    int max_channels_;
    bool modern_min_ = false, modern_max_ = false;
};

}  // namespace

int nccl_version(const std::string& library) {
    const std::string name = lower(library);
    if (!name.starts_with("nccl "))
        return 0;
    const std::vector<std::string> parts = split(name.substr(5), '.');
    if (parts.size() < 2)
        return 0;
    const auto major = whole(parts[0]), minor = whole(parts[1]);
    if (!major || !minor || *major < 0 || *major > 99 || *minor < 0 || *minor > 99)
        return 0;
    return static_cast<int>(*major * 100 + *minor);
}

void apply_comm_env(std::span<const EnvEntry> env, const CommContext& context, CommSettings& settings,
                    std::vector<std::string>& notes, Diagnostics& diagnostics) {
    Environment(context, settings, notes, diagnostics).apply(env);
}

}  // namespace fabricast
