#include "models/program/sole_groups.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace fabricast::program {
namespace {

bool communicates(OpKind kind) {
    return kind == OpKind::collective || kind == OpKind::p2p_batch || kind == OpKind::transfer;
}

// What is over when the operations of a template begin. Two passes of the step, one where it does not repeat.
class Order {
public:
    explicit Order(const Template& t)
        : t_(t), size_(static_cast<std::uint32_t>(t.nodes.size())), inner_(size_, kNone), known_(2 * size_) {
        const bool repeats = size_ > 0 && t.nodes[0].kind == Node::Kind::repeat && t.nodes[0].end == size_;
        passes_ = repeats ? 2 : 1;
        for (std::uint32_t n = 0; n < size_; ++n) {
            const Node& node = t.nodes[n];
            if (node.kind != Node::Kind::repeat)
                continue;
            if (node.bound != kNone || node.count < 1)
                followed_ = false;  // may run no iteration: nothing is known of what is inside
            if ((n > 0 || !repeats) && inner_[n] == kNone)
                std::fill(inner_.begin() + n, inner_.begin() + node.end, n);
        }
        if (followed_)
            follow();
    }

    bool followed() const { return followed_; }
    std::uint32_t passes() const { return passes_; }
    /// In a repeat besides that of the step.
    bool repeated_inside(std::uint32_t node) const { return inner_[node] != kNone; }
    /// Node `first` in pass p is over when `then` begins in pass q.
    bool over(std::uint32_t first, std::uint32_t p, std::uint32_t then, std::uint32_t q) const {
        return known_[q * size_ + then][stream(first)] > p * size_ + first;
    }

private:
    std::uint8_t stream(std::uint32_t node) const { return t_.operations[t_.nodes[node].operation].stream; }

    void learn(std::vector<std::uint32_t>& known, std::uint32_t at) const {
        const std::vector<std::uint32_t>& more = known_[at];
        for (std::size_t s = 0; s < known.size(); ++s)
            known[s] = std::max(known[s], more[s]);
        std::uint32_t& own = known[stream(at % size_)];
        own = std::max(own, at + 1);
    }

    void follow() {
        std::vector<std::uint32_t> latest(t_.streams, kNone);
        for (std::uint32_t pass = 0; pass < passes_; ++pass) {
            for (std::uint32_t n = 0; n < size_; ++n) {
                if (t_.nodes[n].kind != Node::Kind::operation)
                    continue;
                std::vector<std::uint32_t> known(t_.streams, 0);
                if (latest[stream(n)] != kNone)
                    learn(known, latest[stream(n)]);
                for (const std::uint32_t wait : t_.operations[t_.nodes[n].operation].waits) {
                    if (wait < n)
                        learn(known, pass * size_ + wait);
                    else if (pass > 0 && (inner_[n] == kNone || inner_[n] != inner_[wait]))
                        learn(known, wait);  // of the step before; inside an inner repeat: not followed
                }
                known_[pass * size_ + n] = std::move(known);
                latest[stream(n)] = pass * size_ + n;
            }
        }
    }

    const Template& t_;
    std::uint32_t size_, passes_ = 1;
    bool followed_ = true;
    std::vector<std::uint32_t> inner_;               ///< [node] outermost repeat around it but the step's
    std::vector<std::vector<std::uint32_t>> known_;  ///< [pass, node][stream] one past the latest position over
};

// How a message stands to the borders: it may end behind the next one, may begin before the last one; where it is in the step.
constexpr std::uint8_t kEnds = 1, kBegins = 2, kLoose = kEnds | kBegins, kBefore = 4, kBehind = 8;

// Communication of one template against the borders: transfers and collectives that may overlap one as a flag, halves of
// messages by slot.
struct Loose {
    bool other = false;
    std::map<std::pair<std::uint16_t, bool>, std::uint8_t> halves;  ///< (peer slot, sends)
};

// Calls of the slot against everything else in the template.
Loose around(const Program& p, const Template& t, std::uint32_t slot) {
    Loose out;
    const Order order(t);
    std::vector<std::uint32_t> borders, others;
    for (std::uint32_t n = 0; n < t.nodes.size(); ++n) {
        if (t.nodes[n].kind != Node::Kind::operation)
            continue;
        const Operation& op = t.operations[t.nodes[n].operation];
        if (op.kind == OpKind::collective && p.calls[op.payload].slot == slot)
            borders.push_back(n);
        else if (communicates(op.kind))
            others.push_back(n);
    }
    const bool ordered = order.followed() && std::none_of(borders.begin(), borders.end(),
                                                          [&](std::uint32_t b) { return order.repeated_inside(b); });
    const bool repeats = order.passes() == 2;
    // `first` is over when `then` begins, in every pass.
    const auto over = [&](std::uint32_t first, std::uint32_t then) {
        return order.over(first, 0, then, 0) && (!repeats || order.over(first, 1, then, 1));
    };
    const auto against = [&](std::uint32_t n, std::uint32_t border) {
        const bool before = n < border;
        const bool ends = before ? over(n, border) : !repeats || order.over(n, 0, border, 1);
        const bool begins = before ? !repeats || order.over(border, 0, n, 1) : over(border, n);
        return static_cast<std::uint8_t>((before ? kBefore : kBehind) | (ends ? 0 : kEnds) | (begins ? 0 : kBegins));
    };
    for (const std::uint32_t n : others) {
        std::uint8_t stands = ordered ? 0 : kLoose | kBefore | kBehind;
        for (const std::uint32_t border : borders) {
            if (ordered)
                stands |= against(n, border);
        }
        if (borders.size() > 1)  // between two: on both sides
            stands |= kBefore | kBehind;
        const Operation& op = t.operations[t.nodes[n].operation];
        if (op.kind != OpKind::p2p_batch) {
            out.other = out.other || (stands & kLoose) != 0;
            continue;
        }
        for (const MessageHalf& half : p.batches[op.payload].halves)
            out.halves[{half.peer_slot, half.is_send}] |= stands;
    }
    return out;
}

// Neither the sender nor the receiver tells that the message keeps clear of the borders. The k-th message of a step is the
// k-th on both sides; where all of them are on one side of the border in both templates, one may tell that it is over
// before and the other that it begins behind. Otherwise one side has to tell both.
bool may_overlap(std::uint8_t send, std::uint8_t receive) {
    constexpr std::uint8_t kSides = kBefore | kBehind;
    const std::uint8_t side = send & kSides;
    if (side == (receive & kSides) && side != kSides)
        return (send & receive & kLoose) != 0;
    return (send & kLoose) != 0 && (receive & kLoose) != 0;
}

bool has_to_itself(const Program& p, std::uint32_t g) {
    constexpr std::uint32_t kNot = kNone - 1;  // a template without ranks
    std::vector<std::uint32_t> slots(p.templates.size(), kNot);
    for (const Rank& rank : p.ranks) {
        const auto at = std::find(rank.groups.begin(), rank.groups.end(), g);
        if (at == rank.groups.end())
            return false;
        const auto slot = static_cast<std::uint32_t>(at - rank.groups.begin());
        if (slots[rank.tmpl] != kNot && slots[rank.tmpl] != slot)
            return false;
        slots[rank.tmpl] = slot;
    }
    std::vector<Loose> loose(p.templates.size());
    bool messages = false;
    for (std::size_t t = 0; t < p.templates.size(); ++t) {
        if (slots[t] == kNot)
            continue;
        loose[t] = around(p, p.templates[t], slots[t]);
        if (loose[t].other)
            return false;
        for (const auto& [half, stands] : loose[t].halves)
            messages = messages || (stands & kLoose) != 0;
    }
    if (!messages)
        return true;
    for (std::uint32_t r = 0; r < p.ranks.size(); ++r) {
        const Rank& rank = p.ranks[r];
        for (const auto& [half, stands] : loose[rank.tmpl].halves) {
            if (!half.second || (stands & kLoose) == 0)
                continue;  // a message needs its send
            const Peer& peer = rank.peers[half.first];
            if (peer.slots != 0)
                return false;  // buffered: goes without its receive
            const Rank& to = p.ranks[peer.rank];
            for (std::uint16_t back = 0; back < to.peers.size(); ++back) {
                const Peer& from = to.peers[back];
                if (from.rank != r ||
                    (from.receive_channel == kNone ? from.channel : from.receive_channel) != peer.channel)
                    continue;
                const auto at = loose[to.tmpl].halves.find({back, false});
                if (at != loose[to.tmpl].halves.end() && may_overlap(stands, at->second))
                    return false;
            }
        }
    }
    return true;
}

}  // namespace

std::vector<std::uint32_t> sole_groups(const Program& p) {
    std::vector<std::uint32_t> out;
    for (std::uint32_t g = 0; g < p.groups.size(); ++g) {
        if (p.groups[g].members.size() == p.ranks.size() && p.ranks.size() > 1 && has_to_itself(p, g))
            out.push_back(g);
    }
    return out;
}

}  // namespace fabricast::program
