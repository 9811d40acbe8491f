#include "models/program/fold.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

#include "models/program/deciding_links.hpp"
#include "models/program/flat_demands.hpp"
#include "models/program/mix.hpp"
#include "models/program/sole_groups.hpp"

namespace fabricast::program {
namespace {

using Colour = std::uint64_t;

constexpr Colour kStep = 0x9e3779b97f4a7c15ull;

Colour join(Colour a, Colour b) { return mix((a + kStep) ^ mix(b + kStep)); }

// Number of different colours, and a dense number of each in order of first appearance.
class ColourIndex {
public:
    ColourIndex() : slots_(1024, {0, kNone}) {}

    std::uint32_t number(Colour colour) {
        std::size_t at = find(colour);
        if (slots_[at].second == kNone) {
            if (2 * (count_ + 1) > slots_.size()) {
                grow();
                at = find(colour);
            }
            slots_[at] = {colour, count_++};
        }
        return slots_[at].second;
    }
    std::uint32_t count() const { return count_; }

private:
    std::size_t find(Colour colour) const {
        std::size_t at = static_cast<std::size_t>(colour) & (slots_.size() - 1);
        while (slots_[at].second != kNone && slots_[at].first != colour)
            at = (at + 1) & (slots_.size() - 1);
        return at;
    }
    void grow() {
        std::vector<std::pair<Colour, std::uint32_t>> before(2 * slots_.size(), {0, kNone});
        before.swap(slots_);
        for (const auto& slot : before) {
            if (slot.second != kNone)
                slots_[find(slot.first)] = slot;
        }
    }

    std::vector<std::pair<Colour, std::uint32_t>> slots_;
    std::uint32_t count_ = 0;
};

// Classes of things by colour, numbered in order of first appearance.
struct Classes {
    std::vector<std::uint32_t> of, example, size;
};

Classes classes_of(const std::vector<Colour>& colours) {
    Classes out;
    ColourIndex numbers;
    out.of.reserve(colours.size());
    for (std::uint32_t i = 0; i < colours.size(); ++i) {
        const std::uint32_t c = numbers.number(colours[i]);
        if (c == out.example.size()) {
            out.example.push_back(i);
            out.size.push_back(0);
        }
        ++out.size[c];
        out.of.push_back(c);
    }
    return out;
}

std::uint32_t distinct(const std::vector<Colour>& colours) {
    ColourIndex numbers;
    for (const Colour colour : colours)
        numbers.number(colour);
    return numbers.count();
}

class Refinement {
public:
    Refinement(const Program& program, std::span<const Rate> capacity, const FlatDemands& demands)
        : p_(program), demands_(demands) {
        for (const std::uint64_t coefficient : demands.coefficients())
            factor_.push_back(coefficient * kStep);
        start_ranks();
        start_groups();
        for (const LinkId link : demands_.links())
            link_.push_back(join(3, static_cast<Colour>(capacity[index(link)])));
    }

    // Refines until a round tells nothing more apart.
    int run() {
        int rounds = 0;
        for (std::size_t before = 0, now = count(); now != before; before = now, now = count()) {
            refine();
            ++rounds;
        }
        return rounds;
    }

    const std::vector<Colour>& ranks() const { return rank_; }
    const std::vector<Colour>& groups() const { return group_; }
    const std::vector<Colour>& links() const { return link_; }  ///< by number of FlatDemands

private:
    // What a rank is joined to: a group in a slot, a peer, the host. Lists of one rank follow each other.
    struct Seat {
        std::uint32_t rank, group, slot;
    };
    struct Edge {
        std::uint32_t rank, peer, slot;
        std::uint32_t demand;  ///< kNone where it only receives
        Colour price;
    };
    struct Host {
        std::uint32_t rank, demand, slot;
        Colour price;
    };

    static Colour price(const Route& route) {
        return join(static_cast<Colour>(route.latency), static_cast<Colour>(route.cap));
    }

    void start_ranks() {
        edges_.reserve(p_.ranks.empty() ? 0 : p_.ranks.size() * p_.ranks.front().peers.size());
        for (std::uint32_t r = 0; r < p_.ranks.size(); ++r) {
            const Rank& rank = p_.ranks[r];
            Colour colour = join(rank.tmpl, rank.slowness);
            for (const std::int64_t count : rank.bindings)
                colour = join(colour, static_cast<Colour>(count));
            for (const std::uint32_t source : rank.sources)
                colour = join(colour, source + 0x20000u);
            rank_.push_back(colour);
            for (std::uint32_t slot = 0; slot < rank.groups.size(); ++slot) {
                if (rank.groups[slot] != kNone)
                    seats_.push_back({r, rank.groups[slot], slot});
            }
            for (std::uint32_t slot = 0; slot < rank.peers.size(); ++slot) {
                if (rank.peers[slot].rank != kNone)
                    edges_.push_back(edge(r, slot));
            }
            for (std::uint32_t slot = 0; slot < rank.transfer_routes.size(); ++slot) {
                const Route& route = p_.routes[rank.transfer_routes[slot]];
                hosts_.push_back({r, route.demand, slot, price(route)});
            }
        }
    }
    // What of an edge to a peer never changes, and which slots of the peer lead back.
    Edge edge(std::uint32_t r, std::uint32_t slot) const {
        const Peer& peer = p_.ranks[r].peers[slot];
        Edge out{r, peer.rank, slot, kNone, join(peer.channel, peer.slots)};
        if (peer.send_route != kNone) {
            const Route& route = p_.routes[peer.send_route];
            out.demand = route.demand;
            out.price = join(out.price, price(route));
            out.price = join(out.price, (route.uses_nvlink ? 1u : 0u) + (route.uses_network ? 2u : 0u));
        }
        const std::vector<Peer>& back = p_.ranks[peer.rank].peers;
        for (std::uint32_t other = 0; other < back.size(); ++other) {
            if (back[other].rank == r && back[other].channel == peer.channel)
                out.price += join(other, back[other].send_route != kNone ? 1 : 2);
        }
        return out;
    }
    void start_groups() {
        for (const Group& group : p_.groups)
            group_.push_back(join(group.shape, group.members.size()));
    }

    std::size_t count() const { return static_cast<std::size_t>(distinct(rank_)) + distinct(group_) + distinct(link_); }

    void use(std::uint32_t demand, Colour activity) {
        for (const FlatDemands::Use& use : demands_.of(demand))
            next_link_[use.link] += mix(activity ^ factor_[use.coefficient]);
    }

    void refine() {
        demand_.assign(demands_.size(), 0);
        for (std::uint32_t d = 0; d < demand_.size(); ++d) {
            for (const FlatDemands::Use& use : demands_.of(d))
                demand_[d] += mix(link_[use.link] ^ factor_[use.coefficient]);
        }
        seen_.assign(rank_.size(), 0);
        next_group_ = group_;
        next_link_.assign(link_.size(), 0);
        for (const Seat& seat : seats_) {
            seen_[seat.rank] += join(group_[seat.group], seat.slot);
            next_group_[seat.group] += join(rank_[seat.rank], seat.slot);
        }
        for (const Edge& edge : edges_) {
            Colour colour = join(edge.price, rank_[edge.peer]);
            if (edge.demand != kNone) {
                colour = join(colour, demand_[edge.demand]);
                use(edge.demand, join(rank_[edge.rank], 2 * edge.slot));
            }
            seen_[edge.rank] += join(colour, edge.slot + 0x100u);
        }
        for (const Host& host : hosts_) {
            seen_[host.rank] += join(join(host.price, demand_[host.demand]), host.slot + 0x10000u);
            use(host.demand, join(rank_[host.rank], 2 * host.slot + 1));
        }
        for (std::size_t r = 0; r < rank_.size(); ++r)
            rank_[r] = join(rank_[r], seen_[r]);
        for (std::uint32_t g = 0; g < p_.groups.size(); ++g) {
            Colour seen = 0;
            for (std::uint32_t k = 0; k < p_.groups[g].demands.size(); ++k) {
                seen += join(demand_[p_.groups[g].demands[k]], k);
                use(p_.groups[g].demands[k], join(group_[g], k + 0x1000u));
            }
            next_group_[g] = join(next_group_[g], seen);
        }
        for (std::size_t l = 0; l < link_.size(); ++l)
            link_[l] = join(link_[l], next_link_[l]);
        group_.swap(next_group_);
    }

    const Program& p_;
    const FlatDemands& demands_;
    std::vector<Colour> factor_;  ///< coefficient, spread over 64 bits
    std::vector<Seat> seats_;
    std::vector<Edge> edges_;
    std::vector<Host> hosts_;
    std::vector<Colour> rank_, group_, link_, seen_, next_group_, next_link_, demand_;
};

class Quotient {
public:
    Quotient(const Program& program, std::span<const Rate> capacity, const FlatDemands& demands,
             const Refinement& refined)
        : p_(program),
          capacity_(capacity),
          demands_(demands),
          rank_(classes_of(refined.ranks())),
          group_(classes_of(refined.groups())),
          link_(classes_of(refined.links())) {}

    Folded build() {
        number_messages();
        for (std::uint32_t g = 0; g < group_.example.size(); ++g)
            fold_group(g);
        for (std::uint32_t c = 0; c < rank_.example.size(); ++c)
            fold_rank(c);
        for (const std::uint32_t number : link_.example) {
            out_.links.push_back(demands_.links()[number]);
            out_.capacity.push_back(capacity_[index(demands_.links()[number])]);
        }
        out_.program.ranks = std::move(ranks_);
        out_.program.groups = std::move(groups_);
        out_.program.routes = std::move(routes_);
        out_.program.demands = std::move(folded_);
        out_.program.alone = std::move(alone_);
        out_.examples = std::move(rank_.example);
        out_.class_of = std::move(rank_.of);
        return std::move(out_);
    }

private:
    // A number for the messages of each (class, sending slot).
    void number_messages() {
        std::uint32_t next = 0;
        for (const std::uint32_t r : rank_.example) {
            first_number_.push_back(next);
            next += static_cast<std::uint32_t>(p_.ranks[r].peers.size()) + 1;
        }
    }

    // The demand of one of `copies` equal activities, as all of them load the links.
    std::uint32_t fold_demand(std::uint32_t demand, std::uint64_t copies) {
        std::vector<std::pair<std::uint32_t, unsigned __int128>> sums;  // link class -> sum of coefficients
        for (const FlatDemands::Use& use : demands_.of(demand)) {
            const std::uint32_t l = link_.of[use.link];
            const std::uint64_t coefficient = demands_.coefficients()[use.coefficient];
            const auto at = std::find_if(sums.begin(), sums.end(), [l](const auto& sum) { return sum.first == l; });
            if (at == sums.end())
                sums.emplace_back(l, coefficient);
            else
                at->second += coefficient;
        }
        std::vector<LinkUse> uses;
        for (const auto& [l, sum] : sums) {
            const unsigned __int128 load = sum * copies;
            if (load % link_.size[l] != 0)
                throw std::logic_error("folding: uneven load on links that should be equal");
            const unsigned __int128 coefficient = load / link_.size[l];
            if (coefficient > std::numeric_limits<std::uint64_t>::max() >> 20)
                throw std::logic_error("folding: too many activities on a link");
            uses.push_back({LinkId{l}, static_cast<std::uint64_t>(coefficient)});
        }
        folded_.push_back(std::move(uses));
        alone_.push_back(alone_rate(p_.demands[demand], capacity_));
        return static_cast<std::uint32_t>(folded_.size() - 1);
    }

    void fold_group(std::uint32_t g) {
        const Group& group = p_.groups[group_.example[g]];
        Group folded{group.name, {}, group.shape, {}};
        for (const std::uint32_t member : group.members)
            folded.members.push_back(rank_.of[member]);
        std::sort(folded.members.begin(), folded.members.end());
        folded.members.erase(std::unique(folded.members.begin(), folded.members.end()), folded.members.end());
        for (const std::uint32_t demand : group.demands)
            folded.demands.push_back(fold_demand(demand, group_.size[g]));
        groups_.push_back(std::move(folded));
    }

    std::uint32_t fold_route(std::uint32_t route, std::uint64_t copies) {
        routes_.push_back(p_.routes[route]);
        routes_.back().demand = fold_demand(p_.routes[route].demand, copies);
        return static_cast<std::uint32_t>(routes_.size() - 1);
    }

    // First slot of a rank that sends to a peer on a channel; without one, `otherwise`, or a number past all slots.
    static std::uint32_t first_sender(const Rank& rank, std::uint32_t to, std::uint32_t channel,
                                      std::uint32_t otherwise) {
        for (std::uint32_t slot = 0; slot < rank.peers.size(); ++slot) {
            const Peer& peer = rank.peers[slot];
            if (peer.rank == to && peer.channel == channel && peer.send_route != kNone)
                return slot;
        }
        return otherwise != kNone ? otherwise : static_cast<std::uint32_t>(rank.peers.size());
    }

    void fold_rank(std::uint32_t c) {
        const std::uint32_t r = rank_.example[c];
        const Rank& rank = p_.ranks[r];
        Rank folded = {.tmpl = rank.tmpl,
                       .groups = {},
                       .peers = {},
                       .transfer_routes = {},
                       .bindings = rank.bindings,
                       .sources = rank.sources,
                       .slowness = rank.slowness,
                       .copies = rank_.size[c]};
        for (const std::uint32_t g : rank.groups)
            folded.groups.push_back(g == kNone ? kNone : group_.of[g]);
        for (std::uint32_t slot = 0; slot < rank.peers.size(); ++slot) {
            const Peer& peer = rank.peers[slot];
            Peer& out = folded.peers.emplace_back(peer);
            if (peer.rank == kNone)
                continue;
            out.rank = rank_.of[peer.rank];
            if (peer.send_route != kNone)
                out.send_route = fold_route(peer.send_route, rank_.size[c]);
            // Slots that send to one peer on one channel share the number of the first of them.
            out.channel = first_number_[c] + first_sender(rank, peer.rank, peer.channel, slot);
            out.receive_channel = first_number_[out.rank] + first_sender(p_.ranks[peer.rank], r, peer.channel, kNone);
        }
        for (const std::uint32_t route : rank.transfer_routes)
            folded.transfer_routes.push_back(fold_route(route, rank_.size[c]));
        ranks_.push_back(std::move(folded));
    }

    const Program& p_;
    std::span<const Rate> capacity_;
    const FlatDemands& demands_;
    Classes rank_, group_, link_;
    std::vector<std::uint32_t> first_number_;
    std::vector<Rank> ranks_;
    std::vector<Group> groups_;
    std::vector<Route> routes_;
    std::vector<std::vector<LinkUse>> folded_;
    std::vector<Rate> alone_;
    Folded out_;
};

// Demands of groups that have the network to themselves, where they are theirs alone.
std::vector<std::vector<std::uint32_t>> sole_demands(const Program& program) {
    std::vector<std::vector<std::uint32_t>> out;
    for (const std::uint32_t sole : sole_groups(program)) {
        std::vector<bool> others(program.demands.size(), false);
        for (const Route& route : program.routes)
            others[route.demand] = true;
        for (std::uint32_t g = 0; g < program.groups.size(); ++g) {
            for (const std::uint32_t demand : program.groups[g].demands)
                others[demand] = others[demand] || g != sole;
        }
        const std::vector<std::uint32_t>& own = program.groups[sole].demands;
        if (std::none_of(own.begin(), own.end(), [&](std::uint32_t demand) { return others[demand]; }))
            out.push_back(own);
    }
    return out;
}

}  // namespace

namespace {

// All but what folding makes anew.
Folded fold_ranks(const Program& program, std::span<const Rate> capacity) {
    const FlatDemands demands(program.demands, capacity, sole_demands(program));
    Refinement refinement(program, capacity, demands);
    const int rounds = refinement.run();
    Folded out = Quotient(program, capacity, demands, refinement).build();
    out.rounds = rounds;
    return out;
}

}  // namespace

void move_common(Program& from, Program& to) {
    to.templates = std::move(from.templates);
    to.costs = std::move(from.costs);
    to.calls = std::move(from.calls);
    to.plans = std::move(from.plans);
    to.batches = std::move(from.batches);
    to.transfers = std::move(from.transfers);
    to.durations = std::move(from.durations);
    to.sources = std::move(from.sources);
    to.fetches = std::move(from.fetches);
    to.labels = std::move(from.labels);
    to.names = std::move(from.names);
}

Folded fold(const Program& program, std::span<const Rate> capacity) {
    Folded out = fold_ranks(program, capacity);
    Program common = {.templates = program.templates,
                      .ranks = {},
                      .costs = program.costs,
                      .calls = program.calls,
                      .plans = program.plans,
                      .groups = {},
                      .batches = program.batches,
                      .routes = {},
                      .transfers = program.transfers,
                      .durations = program.durations,
                      .sources = program.sources,
                      .fetches = program.fetches,
                      .demands = {},
                      .alone = {},
                      .labels = program.labels,
                      .names = program.names};
    move_common(common, out.program);
    return out;
}

Folded fold(Program&& program, std::span<const Rate> capacity) {
    Folded out = fold_ranks(program, capacity);
    move_common(program, out.program);
    return out;
}

}  // namespace fabricast::program
