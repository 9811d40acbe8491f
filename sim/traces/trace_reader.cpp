#include "sim/traces/trace_reader.hpp"

#include <algorithm>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "sim/traces/list_builder.hpp"
#include "sim/traces/trace_file.hpp"
#include "topologies/importers/import_error.hpp"

namespace fabricast::traces {
namespace {

using importers::ImportError;

constexpr std::size_t kKeptFiles = 32;  ///< that later ones are compared with before they are decoded

/// The latest file of a list, kept to compare others with.
struct Seen {
    std::string bytes;
    std::vector<RecordPlace> records;  ///< of nodes
    ListBuilder::Built built;
};

bool operator<(const GroupUse& a, const GroupUse& b) {
    return std::tie(a.group, a.dimensions) < std::tie(b.group, b.dimensions);
}
bool operator<(const MessageUse& a, const MessageUse& b) {
    return std::tie(a.peer, a.tag, a.bytes, a.is_send) < std::tie(b.peer, b.tag, b.bytes, b.is_send);
}
template <typename Use>
bool all_differ(std::vector<Use> uses) {
    std::sort(uses.begin(), uses.end(), [](const Use& a, const Use& b) { return a < b; });
    return std::adjacent_find(uses.begin(), uses.end()) == uses.end();
}

/// True when the nodes differ at most in their group, tag and peers.
bool alike(const ChakraNode& a, const ChakraNode& b) {
    return a.id == b.id && a.type == b.type && a.duration_us == b.duration_us && a.cpu == b.cpu && a.has == b.has &&
           a.ops == b.ops && a.comm_size == b.comm_size && a.comm_type == b.comm_type && a.involved == b.involved &&
           a.involved_count == b.involved_count && a.tensor_size == b.tensor_size && a.name == b.name &&
           a.parents == b.parents;
}

class Reader {
public:
    Reader(const std::string& prefix, std::uint32_t ranks, std::uint32_t dimensions)
        : binding_(out_, ranks, dimensions), builder_(binding_) {
        const std::size_t slash = prefix.rfind('/');
        out_.source = (slash == std::string::npos ? prefix : prefix.substr(slash + 1)) + ".*.et";
        out_.file_stem = prefix + ".";
        out_.file_ending = ".et";
        TraceGroup world;
        world.name = "all ranks";
        world.members.resize(ranks);
        std::iota(world.members.begin(), world.members.end(), 0u);
        out_.groups.push_back(std::move(world));
    }

    Workload read(const std::string& groups) {
        const std::uint32_t ranks = binding_.ranks();
        if (!groups.empty())
            names_ = read_group_file(groups, out_, ranks);
        out_.ranks.resize(ranks);
        for (std::uint32_t rank = 0; rank < ranks; ++rank) {
            binding_.begin(rank, out_.file_of(rank));
            if (!read_trace_file(binding_.file(), bytes_)) {
                throw ImportError(binding_.file(), 0,
                                  fmt::format("does not exist; the network has {} ranks, each needs its trace", ranks));
            }
            if (!like_an_earlier_one())
                decode();
        }
        std::string beyond;
        if (read_trace_file(out_.file_of(ranks), beyond)) {
            throw ImportError(out_.file_of(ranks), 0,
                              fmt::format("a trace too many: the network has {} ranks, 0 to {}", ranks, ranks - 1));
        }
        if (builder_.equal_nodes() > 0)
            out_.notes.push_back(fmt::format("{} nodes were written twice and count once", builder_.equal_nodes()));
        if (builder_.cpu_communication() > 0) {
            out_.notes.push_back("communication nodes that are marked as CPU operations use the network like others");
        }
        return std::move(out_);
    }

private:
    RankTrace& bound() { return out_.ranks[binding_.rank()]; }

    bool like_an_earlier_one() {
        for (std::size_t at = seen_.size(); at-- > 0;) {  // the latest first
            Seen& seen = *seen_[at];
            if (!(bytes_ == seen.bytes ? repeats(seen) : resembles(seen)))
                continue;
            out_.nodes_read += seen.records.size();
            std::rotate(seen_.begin() + static_cast<std::ptrdiff_t>(at),
                        seen_.begin() + static_cast<std::ptrdiff_t>(at) + 1, seen_.end());
            return true;
        }
        return false;
    }

    bool can_bind(const std::vector<GroupUse>& groups, const std::vector<MessageUse>& messages) {
        return std::all_of(
                   groups.begin(), groups.end(),
                   [&](const GroupUse& use) { return binding_.is_member(use.group) && !binding_.is_alone(use); }) &&
               std::none_of(messages.begin(), messages.end(),
                            [&](const MessageUse& use) { return use.peer == binding_.rank(); });
    }

    /// The file is that of an earlier rank.
    bool repeats(const Seen& seen) {
        if (seen.built.own_rank || !can_bind(seen.built.bound.groups, seen.built.bound.messages))
            return false;
        bound() = seen.built.bound;
        return true;
    }

    /// True when the file is that of an earlier rank except for groups and peers; it then takes that one's place.
    bool resembles(Seen& seen) {
        if (seen.built.own_groups)
            return false;
        const NodeList& list = out_.lists[seen.built.bound.list];
        std::vector<GroupUse> groups = seen.built.bound.groups;
        std::vector<MessageUse> messages = seen.built.bound.messages;
        enum : std::uint8_t { kOpen, kSame, kOther };
        group_state_.assign(groups.size(), kOpen);
        message_state_.assign(messages.size(), kOpen);
        places_.clear();
        Records records(bytes_, binding_.file());
        std::string_view record;
        records.next(record);  // metadata
        for (std::size_t k = 0; records.next(record); ++k) {
            if (k == seen.records.size())
                return false;
            places_.push_back({records.offset() - record.size(), record.size()});
            const TraceNode& node = list.nodes[seen.built.node_of[k]];
            const std::string_view other = seen.records[k].in(seen.bytes);
            const bool same = record == other;
            if (node.slot == kNone) {
                if (!same)
                    return false;
                continue;
            }
            const bool is_collective = node.kind == NodeKind::collective;
            std::uint8_t& state = is_collective ? group_state_[node.slot] : message_state_[node.slot];
            if (same) {
                if (state == kOther || (!is_collective && seen.built.own_rank))
                    return false;
                state = kSame;
                continue;
            }
            binding_.decode(record, k + 1, raw_);
            binding_.decode(other, k + 1, other_);
            if (state == kSame || !alike(raw_, other_))
                return false;
            if (is_collective) {
                const GroupUse use = binding_.group_of(raw_, names_);
                if (state == kOther && !(groups[node.slot] == use))
                    return false;
                groups[node.slot] = use;
            } else {
                const MessageUse use = binding_.message_of(raw_);
                if (state == kOther && !(messages[node.slot] == use))
                    return false;
                messages[node.slot] = use;
            }
            state = kOther;
        }
        if (places_.size() != seen.records.size() || !all_differ(groups) || !all_differ(messages) ||
            !can_bind(groups, messages))
            return false;
        bound() = {seen.built.bound.list, std::move(groups), std::move(messages)};
        seen.built.bound = bound();
        std::swap(seen.bytes, bytes_);
        std::swap(seen.records, places_);
        return true;
    }

    void decode() {
        auto seen = std::make_unique<Seen>();
        Records records(bytes_, binding_.file());
        std::string_view record;
        records.next(record);
        try {
            check_chakra_metadata(record);
        } catch (const std::runtime_error& error) {
            throw ImportError(binding_.file(), 0, error.what());
        }
        while (records.next(record))
            seen->records.push_back({records.offset() - record.size(), record.size()});
        seen->built = builder_.build(bytes_, seen->records, names_);
        bound() = seen->built.bound;
        out_.nodes_read += seen->records.size();
        const bool known = std::any_of(seen_.begin(), seen_.end(), [&](const std::unique_ptr<Seen>& other) {
            return other->built.bound.list == bound().list;
        });
        if (known)
            return;
        std::swap(seen->bytes, bytes_);
        if (seen_.size() == kKeptFiles)
            seen_.erase(seen_.begin());
        seen_.push_back(std::move(seen));
    }

    Workload out_;
    NodeBinding binding_;
    ListBuilder builder_;
    GroupNames names_;
    std::vector<std::unique_ptr<Seen>> seen_;
    // of the file being read
    std::string bytes_;
    ChakraNode raw_, other_;
    std::vector<std::uint8_t> group_state_, message_state_;
    std::vector<RecordPlace> places_;
};

}  // namespace

Workload read_traces(const std::string& prefix, const std::string& groups, std::uint32_t ranks,
                     std::uint32_t dimensions) {
    return Reader(prefix, ranks, dimensions).read(groups);
}

}  // namespace fabricast::traces
