#include "sim/traces/simai_reader.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "sim/traces/simai_text.hpp"

namespace fabricast::traces {
namespace {

constexpr std::array<const char*, 5> kGroupNames = {"tp", "dp", "ep", "dp of experts", "all"};

constexpr auto kGroupKinds = static_cast<std::size_t>(simai::GroupKind::count);

class SimaiReader {
public:
    SimaiReader(const std::string& path, std::uint32_t ranks) : text_(simai::read_text(path, ranks)), ranks_(ranks) {
        out_.source = path.substr(path.rfind('/') == std::string::npos ? 0 : path.rfind('/') + 1);
        out_.file_stem = path;
        out_.notes = text_.notes;
    }

    Workload read() {
        make_groups();
        make_list();
        out_.nodes_read = out_.lists[0].nodes.size() * ranks_;
        const simai::Header& header = text_.header;
        if (header.pp > 1) {
            out_.notes.push_back(
                fmt::format("pp {}: every rank does the rows of one stage; the pipeline's bubble and its messages{} "
                            "are not simulated",
                            header.pp, header.pp_comm > 0 ? fmt::format(" of {:.0f} bytes", header.pp_comm) : ""));
        }
        return std::move(out_);
    }

private:
    // ---- groups --------------------------------------------------------------------------------------------------------

    /// Ranks that share a group with `rank`, in order.
    std::vector<std::uint32_t> members_of(simai::GroupKind kind, std::uint32_t rank) const {
        const std::uint32_t tp = text_.header.tp, ep = text_.header.ep, dp = ranks_ / (tp * text_.header.pp);
        std::uint32_t stride = 1, count = ranks_;
        switch (kind) {
            case simai::GroupKind::tensor: count = tp; break;
            case simai::GroupKind::data:
                stride = tp;
                count = dp;
                break;
            case simai::GroupKind::expert:
                stride = tp;
                count = ep;
                break;
            case simai::GroupKind::data_of_experts:
                stride = tp * ep;
                count = dp / ep;
                break;
            case simai::GroupKind::all:
            case simai::GroupKind::count: break;
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
        for (const simai::Row& row : text_.rows) {
            for (const simai::Part& part : row.parts) {
                if (part.collective.kind)
                    used_[static_cast<std::size_t>(part.collective.group)] = true;
            }
        }
        slot_.fill(kNone);
        std::uint32_t slots = 0;
        for (std::size_t k = 0; k < used_.size(); ++k) {
            const auto kind = static_cast<simai::GroupKind>(k);
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

    std::uint32_t communicate(const std::string& name, const simai::Collective& what, std::uint32_t after) {
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
            last = compute(text_.rows[r].name + what, text_.rows[r].parts[0].compute, last);
            last = communicate(text_.rows[r].name + what, text_.rows[r].parts[0].collective, last);
        };
        for (std::size_t r = 0; r < text_.rows.size(); ++r)
            forward(r, " forward");
        for (std::size_t r = text_.rows.size(); r-- > 0;) {
            if (std::find(text_.header.initiates.begin(), text_.header.initiates.end(), r) !=
                text_.header.initiates.end()) {
                std::size_t from = r + 1;
                for (const std::uint32_t checkpoint : text_.header.checkpoints) {
                    if (checkpoint <= r && (from > r || checkpoint > from))
                        from = checkpoint;
                }
                for (; from <= r; ++from)
                    forward(from, " forward again");
            }
            const simai::Row& row = text_.rows[r];
            last = compute(row.name + " input gradient", row.parts[1].compute, last);
            last = communicate(row.name + " input gradient", row.parts[1].collective, last);
            last = compute(row.name + " weight gradient", row.parts[2].compute, last);
            const std::uint32_t reduced = communicate(row.name + " weight gradient", row.parts[2].collective, last);
            if (reduced != last)
                compute(row.name + " update", row.update, reduced);
        }
        out_.lists[0].group_slots = group_slots_;
    }

    simai::WorkloadText text_;
    std::uint32_t ranks_;
    Workload out_;
    std::array<bool, kGroupKinds> used_ = {};
    std::array<std::uint32_t, kGroupKinds> slot_ = {}, sizes_ = {};
    std::uint32_t group_slots_ = 0;
    std::unordered_map<std::string, std::uint32_t> name_of_;
};

}  // namespace

Workload read_simai(const std::string& path, std::uint32_t ranks) { return SimaiReader(path, ranks).read(); }

}  // namespace fabricast::traces
