#include "sim/traces/simai_text.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "topologies/importers/source_text.hpp"

namespace fabricast::traces::simai {
namespace {

using importers::SourceText;

constexpr double kMostNanoseconds = 1e15;
constexpr double kMostBytes = 1e15;
constexpr std::size_t kColumns = 12;

class Reader {
public:
    Reader(const std::string& path, std::uint32_t ranks) : source_(SourceText::from_file(path)), ranks_(ranks) {}

    WorkloadText read() {
        read_lines();
        read_header();
        read_rows();
        return std::move(out_);
    }

private:
    using Words = std::vector<std::string_view>;

    [[noreturn]] void refuse(std::size_t line, const std::string& sentence) const {
        source_.refuse(static_cast<std::uint32_t>(line + 1), sentence);
    }

    /// Lines that hold something.
    void read_lines() {
        for (std::size_t line = 0; line < source_.line_count(); ++line) {
            Words words = importers::words(source_.line(line));
            if (!words.empty())
                lines_.emplace_back(line, std::move(words));
        }
        if (lines_.size() < 3)
            refuse(0, "a policy, a number of rows and rows are expected");
    }

    double number(std::size_t line, std::string_view text, const char* what, double most) const {
        const auto value = importers::to_number(text);
        if (!value || !(*value >= 0 && *value <= most))
            refuse(line,
                   fmt::format("{} {}: a number from 0 to {} is expected", what, importers::in_quotes(text), most));
        return *value;
    }
    std::uint32_t whole(std::size_t line, std::string_view text, std::string_view what, std::uint32_t least) const {
        const auto value = importers::to_unsigned(text);
        if (!value || *value < least || *value > 100'000'000)
            refuse(line,
                   fmt::format("{} {}: a whole number from {} is expected", what, importers::in_quotes(text), least));
        return static_cast<std::uint32_t>(*value);
    }

    void read_header() {
        const std::size_t line = lines_[0].first;
        const Words& words = lines_[0].second;
        static const std::vector<std::string_view> policies = {"DATA", "MODEL", "HYBRID_TRANSFORMER",
                                                               "HYBRID_TRANSFORMER_FWD_IN_BCKWD"};
        const auto policy = std::find(policies.begin(), policies.end(), words[0]);
        if (policy == policies.end()) {
            refuse(line, fmt::format("policy {}: {} are simulated{}", importers::in_quotes(words[0]),
                                     fmt::join(policies, ", "), importers::did_you_mean(words[0], policies)));
        }
        out_.header.policy = static_cast<Policy>(std::min<std::ptrdiff_t>(policy - policies.begin(), 2));
        for (std::size_t w = 1; w < words.size();) {
            const std::string key(words[w].back() == ':' ? words[w].substr(0, words[w].size() - 1) : words[w]);
            ++w;
            const auto next = [&]() -> std::string_view {
                if (w == words.size())
                    refuse(line, fmt::format("{} has no value", key));
                return words[w++];
            };
            if (key == "model_parallel_NPU_group") {
                out_.header.tp = whole(line, next(), key, 1);
            } else if (key == "ep" || key == "expert_parallel_npu_group") {
                out_.header.ep = whole(line, next(), key, 1);
            } else if (key == "pp") {
                out_.header.pp = whole(line, next(), key, 1);
            } else if (key == "all_gpus") {
                out_.header.gpus = whole(line, next(), key, 1);
            } else if (key == "vpp" || key == "ga") {
                whole(line, next(), key, 0);  // the rows hold all micro-batches already
            } else if (key == "pp_comm") {
                out_.header.pp_comm = number(line, next(), "pp_comm", kMostBytes);
            } else if (key == "checkpoints" || key == "checkpoint_initiates") {
                std::vector<std::uint32_t>& ids =
                    key == "checkpoints" ? out_.header.checkpoints : out_.header.initiates;
                const std::uint32_t count = whole(line, next(), key, 0);
                for (std::uint32_t i = 0; i < count; ++i)
                    ids.push_back(whole(line, next(), key, 0));
            } else {
                static const std::vector<std::string_view> keys = {"model_parallel_NPU_group",
                                                                   "ep",
                                                                   "expert_parallel_npu_group",
                                                                   "pp",
                                                                   "vpp",
                                                                   "ga",
                                                                   "all_gpus",
                                                                   "checkpoints",
                                                                   "checkpoint_initiates",
                                                                   "pp_comm"};
                refuse(line, fmt::format("key {} is unknown{}", importers::in_quotes(key),
                                         importers::did_you_mean(key, keys)));
            }
        }
        if (out_.header.gpus != 0 && out_.header.gpus != ranks_)
            refuse(line, fmt::format("all_gpus {}, the network has {} ranks", out_.header.gpus, ranks_));
        const std::uint64_t stage = static_cast<std::uint64_t>(out_.header.tp) * out_.header.pp;
        if (ranks_ % stage != 0)
            refuse(line, fmt::format("tp {} x pp {} does not divide {} ranks", out_.header.tp, out_.header.pp, ranks_));
        if (ranks_ / stage % out_.header.ep != 0) {
            refuse(line,
                   fmt::format("ep {} does not divide the {} data-parallel ranks", out_.header.ep, ranks_ / stage));
        }
    }

    Collective collective(std::size_t line, std::string_view word, std::string_view bytes, bool weights) {
        Collective out;
        out.bytes = static_cast<Bytes>(number(line, bytes, "bytes", kMostBytes));
        std::string_view name = word;
        const auto ends = [&](std::string_view suffix) {
            if (!name.ends_with(suffix))
                return false;
            name.remove_suffix(suffix.size());
            return true;
        };
        out.group = ends("_DP_EP")                              ? GroupKind::data_of_experts
                    : ends("_EP")                               ? GroupKind::expert
                    : out_.header.policy != Policy::transformer ? GroupKind::all
                                                                : (weights ? GroupKind::data : GroupKind::tensor);
        if (name == "NONE")
            return out;
        if (name == "ALLREDUCE" || name == "ALLREDUCEALLTOALL") {
            out.kind = CollectiveKind::all_reduce;  // the second is read so by SimAI, too
        } else if (name == "ALLGATHER") {
            out.kind = CollectiveKind::all_gather;
        } else if (name == "REDUCESCATTER") {
            out.kind = CollectiveKind::reduce_scatter;
        } else if (name == "ALLTOALL") {
            out.kind = CollectiveKind::all_to_all;
        } else if (name == "BROADCAST") {
            if (!broadcast_)
                out_.notes.push_back("BROADCAST rows move nothing, as in SimAI");
            broadcast_ = true;
        } else {
            static const std::vector<std::string_view> known = {"NONE",          "ALLREDUCE", "ALLGATHER",
                                                                "REDUCESCATTER", "ALLTOALL",  "BROADCAST"};
            refuse(line, fmt::format("collective {} is unknown; {} are, with _EP or _DP_EP behind them{}",
                                     importers::in_quotes(word), fmt::join(known, ", "),
                                     importers::did_you_mean(name, known)));
        }
        if (out.bytes == 0)
            out.kind.reset();
        return out;
    }

    void read_rows() {
        const auto& [count_line, count_words] = lines_[1];
        if (count_words.size() != 1)
            refuse(count_line, "the number of rows is expected");
        const std::uint32_t told = whole(count_line, count_words[0], "number of rows", 0);
        for (std::size_t l = 2; l < lines_.size(); ++l) {
            const auto& [line, words] = lines_[l];
            if (words.size() != kColumns)
                refuse(line, fmt::format("{} columns, 12 are expected", words.size()));
            Row& row = out_.rows.emplace_back();
            row.name = std::string(words[0]);
            for (std::size_t part = 0; part < 3; ++part) {
                const std::size_t at = 2 + 3 * part;
                row.parts[part].compute =
                    picoseconds_from_s(number(line, words[at], "compute ns", kMostNanoseconds) / 1e9);
                row.parts[part].collective = collective(line, words[at + 1], words[at + 2], part == 2);
            }
            row.update = picoseconds_from_s(number(line, words[11], "update ns", kMostNanoseconds) / 1e9);
        }
        if (told != out_.rows.size())
            out_.notes.push_back(
                fmt::format("line 2 tells {} rows, the file has {}: those count", told, out_.rows.size()));
        for (const std::vector<std::uint32_t>* ids : {&out_.header.checkpoints, &out_.header.initiates}) {
            for (const std::uint32_t id : *ids) {
                if (id >= out_.rows.size())
                    refuse(lines_[0].first, fmt::format("checkpoint at row {}, there are {}", id, out_.rows.size()));
            }
        }
    }

    SourceText source_;
    std::uint32_t ranks_;
    WorkloadText out_;
    std::vector<std::pair<std::size_t, Words>> lines_;
    bool broadcast_ = false;
};

}  // namespace

WorkloadText read_text(const std::string& path, std::uint32_t ranks) { return Reader(path, ranks).read(); }

}  // namespace fabricast::traces::simai
