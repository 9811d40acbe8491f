#include "sim/traces/simai_reader.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "topologies/importers/source_text.hpp"

namespace fabricast::traces {
namespace {

using importers::SourceText;

enum class Policy : std::uint8_t { data, model, transformer };
enum class GroupKind : std::uint8_t { tensor, data, expert, data_of_experts, all, count };
constexpr std::array<const char*, 5> kGroupNames = {"tp", "dp", "ep", "dp of experts", "all"};

constexpr double kMostNanoseconds = 1e15;
constexpr double kMostBytes = 1e15;
constexpr std::size_t kColumns = 12;

struct Collective {
    std::optional<CollectiveKind> kind;
    GroupKind group = GroupKind::tensor;
    Bytes bytes = 0;  ///< whole buffer
};
struct Part {
    Picoseconds compute = 0;
    Collective collective;
};
struct RowText {
    std::string name;
    std::array<Part, 3> parts;  ///< forward, input gradient, weight gradient
    Picoseconds update = 0;
};
struct Header {
    Policy policy = Policy::transformer;
    std::uint32_t tp = 1, ep = 1, pp = 1, gpus = 0;
    double pp_comm = 0;
    std::vector<std::uint32_t> checkpoints, initiates;
};

class SimaiReader {
public:
    SimaiReader(const std::string& path, std::uint32_t ranks) : source_(SourceText::from_file(path)), ranks_(ranks) {
        out_.source = path.substr(path.rfind('/') == std::string::npos ? 0 : path.rfind('/') + 1);
        out_.file_stem = path;
    }

    Workload read() {
        read_lines();
        read_header();
        read_rows();
        make_groups();
        make_list();
        out_.nodes_read = out_.lists[0].nodes.size() * ranks_;
        if (header_.pp > 1) {
            out_.notes.push_back(
                fmt::format("pp {}: every rank does the rows of one stage; the pipeline's bubble and its messages{} "
                            "are not simulated",
                            header_.pp, header_.pp_comm > 0 ? fmt::format(" of {:.0f} bytes", header_.pp_comm) : ""));
        }
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
            refuse(line, fmt::format("{} {}: a number from 0 to {} is expected", what, importers::quoted(text), most));
        return *value;
    }
    std::uint32_t whole(std::size_t line, std::string_view text, std::string_view what, std::uint32_t least) const {
        const auto value = importers::to_unsigned(text);
        if (!value || *value < least || *value > 100'000'000)
            refuse(line,
                   fmt::format("{} {}: a whole number from {} is expected", what, importers::quoted(text), least));
        return static_cast<std::uint32_t>(*value);
    }

    void read_header() {
        const std::size_t line = lines_[0].first;
        const Words& words = lines_[0].second;
        static const std::vector<std::string_view> policies = {"DATA", "MODEL", "HYBRID_TRANSFORMER",
                                                               "HYBRID_TRANSFORMER_FWD_IN_BCKWD"};
        const auto policy = std::find(policies.begin(), policies.end(), words[0]);
        if (policy == policies.end()) {
            refuse(line, fmt::format("policy {}: {} are simulated{}", importers::quoted(words[0]),
                                     fmt::join(policies, ", "), importers::did_you_mean(words[0], policies)));
        }
        header_.policy = static_cast<Policy>(std::min<std::ptrdiff_t>(policy - policies.begin(), 2));
        for (std::size_t w = 1; w < words.size();) {
            const std::string key(words[w].back() == ':' ? words[w].substr(0, words[w].size() - 1) : words[w]);
            ++w;
            const auto next = [&]() -> std::string_view {
                if (w == words.size())
                    refuse(line, fmt::format("{} has no value", key));
                return words[w++];
            };
            if (key == "model_parallel_NPU_group") {
                header_.tp = whole(line, next(), key, 1);
            } else if (key == "ep" || key == "expert_parallel_npu_group") {
                header_.ep = whole(line, next(), key, 1);
            } else if (key == "pp") {
                header_.pp = whole(line, next(), key, 1);
            } else if (key == "all_gpus") {
                header_.gpus = whole(line, next(), key, 1);
            } else if (key == "vpp" || key == "ga") {
                whole(line, next(), key, 0);  // the rows hold all micro-batches already
            } else if (key == "pp_comm") {
                header_.pp_comm = number(line, next(), "pp_comm", kMostBytes);
            } else if (key == "checkpoints" || key == "checkpoint_initiates") {
                std::vector<std::uint32_t>& ids = key == "checkpoints" ? header_.checkpoints : header_.initiates;
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
                refuse(line,
                       fmt::format("key {} is unknown{}", importers::quoted(key), importers::did_you_mean(key, keys)));
            }
        }
        if (header_.gpus != 0 && header_.gpus != ranks_)
            refuse(line, fmt::format("all_gpus {}, the network has {} ranks", header_.gpus, ranks_));
        const std::uint64_t stage = static_cast<std::uint64_t>(header_.tp) * header_.pp;
        if (ranks_ % stage != 0)
            refuse(line, fmt::format("tp {} x pp {} does not divide {} ranks", header_.tp, header_.pp, ranks_));
        if (ranks_ / stage % header_.ep != 0) {
            refuse(line, fmt::format("ep {} does not divide the {} data-parallel ranks", header_.ep, ranks_ / stage));
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
        out.group = ends("_DP_EP")                          ? GroupKind::data_of_experts
                    : ends("_EP")                           ? GroupKind::expert
                    : header_.policy != Policy::transformer ? GroupKind::all
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
            refuse(line,
                   fmt::format("collective {} is unknown; {} are, with _EP or _DP_EP behind them{}",
                               importers::quoted(word), fmt::join(known, ", "), importers::did_you_mean(name, known)));
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
            RowText& row = rows_.emplace_back();
            row.name = std::string(words[0]);
            for (std::size_t part = 0; part < 3; ++part) {
                const std::size_t at = 2 + 3 * part;
                row.parts[part].compute =
                    picoseconds_from_s(number(line, words[at], "compute ns", kMostNanoseconds) / 1e9);
                row.parts[part].collective = collective(line, words[at + 1], words[at + 2], part == 2);
            }
            row.update = picoseconds_from_s(number(line, words[11], "update ns", kMostNanoseconds) / 1e9);
        }
        if (told != rows_.size())
            out_.notes.push_back(fmt::format("line 2 tells {} rows, the file has {}: those count", told, rows_.size()));
        for (const std::vector<std::uint32_t>* ids : {&header_.checkpoints, &header_.initiates}) {
            for (const std::uint32_t id : *ids) {
                if (id >= rows_.size())
                    refuse(lines_[0].first, fmt::format("checkpoint at row {}, there are {}", id, rows_.size()));
            }
        }
    }

    // ---- groups --------------------------------------------------------------------------------------------------------

    /// Ranks that share a group with `rank`, in order.
    std::vector<std::uint32_t> members_of(GroupKind kind, std::uint32_t rank) const {
        const std::uint32_t tp = header_.tp, ep = header_.ep, dp = ranks_ / (tp * header_.pp);
        std::uint32_t stride = 1, count = ranks_;
        switch (kind) {
            case GroupKind::tensor: count = tp; break;
            case GroupKind::data:
                stride = tp;
                count = dp;
                break;
            case GroupKind::expert:
                stride = tp;
                count = ep;
                break;
            case GroupKind::data_of_experts:
                stride = tp * ep;
                count = dp / ep;
                break;
            case GroupKind::all:
            case GroupKind::count: break;
        }
        const std::uint32_t first = rank - rank / stride % count * stride;
        std::vector<std::uint32_t> members(count);
        for (std::uint32_t i = 0; i < count; ++i)
            members[i] = first + i * stride;
        return members;
    }

    void make_groups() {
        TraceGroup world;
        world.name = "all ranks";
        world.members.resize(ranks_);
        std::iota(world.members.begin(), world.members.end(), 0u);
        out_.groups.push_back(std::move(world));
        out_.ranks.resize(ranks_);
        for (const RowText& row : rows_) {
            for (const Part& part : row.parts) {
                if (part.collective.kind)
                    used_[static_cast<std::size_t>(part.collective.group)] = true;
            }
        }
        slot_.fill(kNone);
        std::uint32_t slots = 0;
        for (std::size_t k = 0; k < used_.size(); ++k) {
            const auto kind = static_cast<GroupKind>(k);
            sizes_[k] = static_cast<std::uint32_t>(members_of(kind, 0).size());
            if (!used_[k] || sizes_[k] < 2)
                continue;
            slot_[k] = slots++;
            std::vector<std::uint32_t> group_of(ranks_, kNone);
            for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
                if (group_of[rank] == kNone) {
                    const std::vector<std::uint32_t> members = members_of(kind, rank);
                    const auto group = members.size() == ranks_ ? 0u : static_cast<std::uint32_t>(out_.groups.size());
                    for (const std::uint32_t member : members)
                        group_of[member] = group;
                    if (group != 0)
                        out_.groups.push_back({fmt::format("{} of rank {}", kGroupNames[k], rank), members});
                }
                out_.ranks[rank].groups.push_back({group_of[rank], kAllDimensions});
            }
        }
        // Kinds that are all ranks alike are one communicator.
        merge_equal_slots();
    }

    void merge_equal_slots() {
        std::vector<GroupUse>& first = out_.ranks[0].groups;
        std::uint32_t all = kNone, kept = 0;
        std::vector<std::uint32_t> moved(first.size());
        for (std::uint32_t s = 0; s < first.size(); ++s) {
            const bool again = first[s].group == 0 && all != kNone;
            moved[s] = again ? all : kept++;
            if (first[s].group == 0 && !again)
                all = moved[s];
        }
        for (RankTrace& rank : out_.ranks) {
            std::vector<GroupUse> groups(kept);
            for (std::uint32_t s = 0; s < rank.groups.size(); ++s)
                groups[moved[s]] = rank.groups[s];
            rank.groups = std::move(groups);
        }
        for (std::uint32_t& slot : slot_)
            slot = slot == kNone ? kNone : moved[slot];
        group_slots_ = kept;
    }

    // ---- nodes ---------------------------------------------------------------------------------------------------------

    std::uint32_t add(NodeKind kind, const std::string& name, std::uint32_t parent) {
        NodeList& list = out_.lists[0];
        TraceNode& node = list.nodes.emplace_back();
        node.id = list.nodes.size() - 1;
        node.kind = kind;
        node.first_parent = static_cast<std::uint32_t>(list.parents.size());
        if (parent != kNone) {
            list.parents.push_back(parent);
            node.parent_count = 1;
        }
        const auto [at, fresh] = name_of_.try_emplace(name, static_cast<std::uint32_t>(out_.names.size()));
        if (fresh)
            out_.names.push_back(name);
        node.name = at->second;
        return static_cast<std::uint32_t>(node.id);
    }

    std::uint32_t compute(const std::string& name, Picoseconds time, std::uint32_t after) {
        if (time == 0)
            return after;
        const std::uint32_t n = add(NodeKind::compute, name, after);
        out_.lists[0].nodes[n].duration = time;
        return n;
    }

    std::uint32_t communicate(const std::string& name, const Collective& what, std::uint32_t after) {
        const auto g = static_cast<std::size_t>(what.group);
        if (!what.kind || slot_[g] == kNone)
            return after;
        const std::uint32_t n = add(NodeKind::collective, name, after);
        TraceNode& node = out_.lists[0].nodes[n];
        node.collective = *what.kind;
        node.slot = slot_[g];
        node.bytes = *what.kind == CollectiveKind::all_gather ? what.bytes / sizes_[g] : what.bytes;
        return n;
    }

    void make_list() {
        out_.lists.emplace_back();
        std::uint32_t last = kNone;
        const auto forward = [&](std::size_t r, const char* what) {
            last = compute(rows_[r].name + what, rows_[r].parts[0].compute, last);
            last = communicate(rows_[r].name + what, rows_[r].parts[0].collective, last);
        };
        for (std::size_t r = 0; r < rows_.size(); ++r)
            forward(r, " forward");
        for (std::size_t r = rows_.size(); r-- > 0;) {
            if (std::find(header_.initiates.begin(), header_.initiates.end(), r) != header_.initiates.end()) {
                std::size_t from = r + 1;
                for (const std::uint32_t checkpoint : header_.checkpoints) {
                    if (checkpoint <= r && (from > r || checkpoint > from))
                        from = checkpoint;
                }
                for (; from <= r; ++from)
                    forward(from, " forward again");
            }
            const RowText& row = rows_[r];
            last = compute(row.name + " input gradient", row.parts[1].compute, last);
            last = communicate(row.name + " input gradient", row.parts[1].collective, last);
            last = compute(row.name + " weight gradient", row.parts[2].compute, last);
            const std::uint32_t reduced = communicate(row.name + " weight gradient", row.parts[2].collective, last);
            if (reduced != last)
                compute(row.name + " update", row.update, reduced);
        }
        out_.lists[0].group_slots = group_slots_;
    }

    SourceText source_;
    std::uint32_t ranks_;
    Workload out_;
    std::vector<std::pair<std::size_t, Words>> lines_;
    Header header_;
    std::vector<RowText> rows_;
    bool broadcast_ = false;
    std::array<bool, static_cast<std::size_t>(GroupKind::count)> used_ = {};
    std::array<std::uint32_t, static_cast<std::size_t>(GroupKind::count)> slot_ = {}, sizes_ = {};
    std::uint32_t group_slots_ = 0;
    std::unordered_map<std::string, std::uint32_t> name_of_;
};

}  // namespace

Workload read_simai(const std::string& path, std::uint32_t ranks) { return SimaiReader(path, ranks).read(); }

}  // namespace fabricast::traces
