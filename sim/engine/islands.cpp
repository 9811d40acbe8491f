#include "sim/engine/islands.hpp"

#include <algorithm>
#include <map>

namespace fabricast::engine {
namespace {

using program::kNone;

class Finder {
public:
    Finder(const program::Program& program, std::span<const Code* const> code,
           const std::vector<std::vector<LinkUse>>& demands, std::span<const Rate> capacity,
           std::span<const Rate> alone)
        : program_(program), code_(code), demands_(demands), capacity_(capacity), alone_(alone) {}

    Islands find() {
        out_.of_rank.assign(program_.ranks.size(), kNone);
        out_.of_group.assign(program_.groups.size(), kNone);
        out_.place.assign(program_.ranks.size(), 0);
        choose_ranks();
        find_inner_groups();
        close();
        keep_closed();
        sort_by_kind();
        return std::move(out_);
    }

private:
    // The slot whose calls stand most often in the code, by code.
    std::uint32_t busiest_slot(const Code& code) {
        const auto [at, fresh] = busiest_.try_emplace(&code, kNone);
        if (!fresh)
            return at->second;
        std::vector<std::uint32_t> calls;
        for (const Instruction& in : code.instructions) {
            if (in.kind != Instruction::Kind::collective)
                continue;
            const std::size_t slot = program_.calls[in.payload].slot;
            if (calls.size() <= slot)
                calls.resize(slot + 1, 0);
            ++calls[slot];
        }
        if (!calls.empty())
            at->second = static_cast<std::uint32_t>(std::max_element(calls.begin(), calls.end()) - calls.begin());
        return at->second;
    }

    std::uint32_t busiest_group(std::uint32_t rank) {
        const std::uint32_t slot = busiest_slot(*code_[rank]);
        return slot == kNone ? kNone : program_.ranks[rank].groups[slot];
    }

    void choose_ranks() {
        for (std::uint32_t rank = 0; rank < program_.ranks.size(); ++rank) {
            if (out_.of_rank[rank] != kNone)
                continue;
            const std::uint32_t group = busiest_group(rank);
            if (group == kNone)
                continue;
            std::vector<std::uint32_t> ranks = program_.groups[group].members;
            std::sort(ranks.begin(), ranks.end());
            const bool agreed = std::all_of(ranks.begin(), ranks.end(), [&](std::uint32_t member) {
                return code_[member] == code_[rank] && busiest_group(member) == group;
            });
            if (!agreed || std::adjacent_find(ranks.begin(), ranks.end()) != ranks.end())
                continue;
            for (std::uint32_t place = 0; place < ranks.size(); ++place) {
                out_.of_rank[ranks[place]] = static_cast<std::uint32_t>(out_.list.size());
                out_.place[ranks[place]] = place;
            }
            out_.list.emplace_back().ranks = std::move(ranks);
        }
    }

    void find_inner_groups() {
        for (std::uint32_t g = 0; g < program_.groups.size(); ++g) {
            const std::vector<std::uint32_t>& members = program_.groups[g].members;
            const std::uint32_t island = members.empty() ? kNone : out_.of_rank[members.front()];
            if (island == kNone || members.size() != out_.list[island].ranks.size())
                continue;
            std::vector<bool> met(members.size(), false);
            const bool inner = std::all_of(members.begin(), members.end(), [&](std::uint32_t member) {
                if (out_.of_rank[member] != island || met[out_.place[member]])
                    return false;
                met[out_.place[member]] = true;
                return true;
            });
            if (!inner)
                continue;
            out_.of_group[g] = island;
            out_.list[island].groups.push_back(g);
        }
        for (Island& island : out_.list) {
            for (const std::uint32_t rank : island.ranks) {
                const std::vector<std::uint32_t>& groups = program_.ranks[rank].groups;
                for (const std::uint32_t g : island.groups) {
                    const auto slot = std::find(groups.begin(), groups.end(), g);
                    island.slots.push_back(slot == groups.end() ? kNone
                                                                : static_cast<std::uint32_t>(slot - groups.begin()));
                }
            }
        }
    }

    void open(std::uint32_t island) { closed_[island] = false; }

    // Who loads a link of an island without being in it opens it.
    void used_by(std::span<const std::uint32_t> demands, std::span<const std::uint32_t> ranks) {
        ++user_;
        for (const std::uint32_t rank : ranks) {
            if (out_.of_rank[rank] != kNone)
                last_user_[out_.of_rank[rank]] = user_;
        }
        for (const std::uint32_t demand : demands) {
            for (const LinkUse& use : demands_[demand]) {
                const std::uint32_t island = of_link_[index(use.link)];
                if (island != kNone && last_user_[island] != user_)
                    open(island);
            }
        }
    }

    void close() {
        closed_.assign(out_.list.size(), true);
        of_link_.assign(capacity_.size(), kNone);
        for (std::uint32_t island = 0; island < out_.list.size(); ++island) {
            for (const std::uint32_t g : out_.list[island].groups) {
                for (const std::uint32_t demand : program_.groups[g].demands) {
                    for (const LinkUse& use : demands_[demand]) {
                        std::uint32_t& owner = of_link_[index(use.link)];
                        if (owner != kNone && owner != island) {
                            open(owner);
                            open(island);
                        }
                        owner = island;
                    }
                }
            }
        }
        last_user_.assign(out_.list.size(), 0);
        for (const program::Group& group : program_.groups)
            used_by(group.demands, group.members);
        for (std::uint32_t rank = 0; rank < program_.ranks.size(); ++rank) {
            for (const program::Peer& peer : program_.ranks[rank].peers) {
                if (peer.rank == kNone || peer.send_route == kNone)
                    continue;
                const std::uint32_t ends[] = {rank, peer.slots > 0 ? rank : peer.rank};
                used_by({&program_.routes[peer.send_route].demand, 1}, ends);
            }
            for (const std::uint32_t route : program_.ranks[rank].transfer_routes)
                used_by({&program_.routes[route].demand, 1}, {&rank, 1});
        }
    }

    void keep_closed() {
        std::vector<std::uint32_t> renamed(out_.list.size(), kNone);
        std::vector<Island> kept;
        for (std::size_t i = 0; i < out_.list.size(); ++i) {
            if (!closed_[i])
                continue;
            renamed[i] = static_cast<std::uint32_t>(kept.size());
            kept.push_back(std::move(out_.list[i]));
        }
        out_.list = std::move(kept);
        for (std::vector<std::uint32_t>* of : {&out_.of_rank, &out_.of_group}) {
            for (std::uint32_t& island : *of)
                island = island == kNone ? kNone : renamed[island];
        }
    }

    // All an island's course depends on, as numbers; links are named in the order in which they occur.
    std::vector<std::int64_t> description(const Island& island) {
        std::vector<std::int64_t> out;
        const auto add = [&](auto value) { out.push_back(static_cast<std::int64_t>(value)); };
        const Code* code = code_[island.ranks.front()];
        add(code_ids_.try_emplace(code, code_ids_.size()).first->second);
        add(island.ranks.size());
        for (const std::uint32_t rank : island.ranks)
            add(program_.ranks[rank].slowness);
        for (const std::uint32_t slot : island.slots)
            add(slot);
        std::map<std::size_t, std::size_t> links;
        for (const std::uint32_t g : island.groups) {
            add(program_.groups[g].shape);
            add(program_.groups[g].demands.size());
            for (const std::uint32_t demand : program_.groups[g].demands) {
                add(alone_[demand]);
                add(demands_[demand].size());
                for (const LinkUse& use : demands_[demand]) {
                    add(links.try_emplace(index(use.link), links.size()).first->second);
                    add(use.coefficient);
                    add(capacity_[index(use.link)]);
                }
            }
        }
        return out;
    }

    void sort_by_kind() {
        std::map<std::vector<std::int64_t>, std::uint32_t> kinds;
        for (Island& island : out_.list) {
            const auto [at, fresh] =
                kinds.try_emplace(description(island), static_cast<std::uint32_t>(out_.of_kind.size()));
            if (fresh)
                out_.of_kind.push_back(0);
            island.kind = at->second;
            ++out_.of_kind[island.kind];
        }
    }

    const program::Program& program_;
    std::span<const Code* const> code_;
    const std::vector<std::vector<LinkUse>>& demands_;
    std::span<const Rate> capacity_, alone_;
    std::map<const Code*, std::uint32_t> busiest_;
    std::map<const Code*, std::size_t> code_ids_;
    std::vector<bool> closed_;
    std::vector<std::uint32_t> of_link_;    ///< island whose inner groups load the link
    std::vector<std::uint64_t> last_user_;  ///< by island: the last user with a rank in it
    std::uint64_t user_ = 0;
    Islands out_;
};

}  // namespace

Islands find_islands(const program::Program& program, std::span<const Code* const> code,
                     const std::vector<std::vector<LinkUse>>& demands, std::span<const Rate> capacity,
                     std::span<const Rate> alone) {
    return Finder(program, code, demands, capacity, alone).find();
}

}  // namespace fabricast::engine
