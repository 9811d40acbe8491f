// Accounts of every rank in integer picoseconds.
//
// At each instant a rank is in the first state that holds: computing; moving data (lowest Account first); waiting for
// members of a collective; waiting for a message; idle. Time is charged when the state changes. Two charges are
// settled later: computing is split when the segment ends, waiting for members when the last one arrives.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "models/program/account.hpp"
#include "topologies/graph/units.hpp"

namespace fabricast::engine {

class Ledger {
public:
    static constexpr std::size_t kComputing = kAccountCount;           ///< being computed, not yet split
    static constexpr std::size_t kWaitingMembers = kAccountCount + 1;  ///< waiting, culprit not yet known
    static constexpr std::size_t kBuckets = kAccountCount + 2;
    using Buckets = std::array<Picoseconds, kBuckets>;

    struct Rank {
        Picoseconds since = 0;
        Picoseconds waited = 0;
        std::uint32_t state = static_cast<std::uint32_t>(Account::idle);
        std::uint32_t moving_mask = 0;
        std::uint16_t members = 0, messages = 0;
        bool computing = false;
        std::array<std::uint16_t, kAccountCount> moving = {};  ///< operations and messages of each kind
        Buckets bucket = {};
    };

    explicit Ledger(std::size_t ranks) : ranks_(ranks) {}

    const Buckets& buckets(std::uint32_t rank) const { return ranks_[rank].bucket; }
    Picoseconds amount(std::uint32_t rank, Account account) const {
        return ranks_[rank].bucket[static_cast<std::size_t>(account)];
    }
    Picoseconds waited(std::uint32_t rank) const { return ranks_[rank].waited; }

    /// Brings a rank's buckets up to `now`.
    void charge(std::uint32_t rank, Picoseconds now) {
        Rank& r = ranks_[rank];
        const Picoseconds passed = now - r.since;
        if (passed == 0)
            return;
        r.bucket[r.state] += passed;
        if (r.state == kWaitingMembers)
            r.waited += passed;
        r.since = now;
    }

    void computing(std::uint32_t rank, bool on, Picoseconds now) {
        charge(rank, now);
        ranks_[rank].computing = on;
        choose(ranks_[rank]);
    }
    void moving(std::uint32_t rank, Account account, int change, Picoseconds now) {
        charge(rank, now);
        Rank& r = ranks_[rank];
        const auto a = static_cast<std::size_t>(account);
        r.moving[a] = static_cast<std::uint16_t>(r.moving[a] + change);
        if (r.moving[a] == 0)
            r.moving_mask &= ~(1u << a);
        else
            r.moving_mask |= 1u << a;
        choose(r);
    }
    void waiting_members(std::uint32_t rank, int change, Picoseconds now) {
        charge(rank, now);
        ranks_[rank].members = static_cast<std::uint16_t>(ranks_[rank].members + change);
        choose(ranks_[rank]);
    }
    void waiting_message(std::uint32_t rank, int change, Picoseconds now) {
        charge(rank, now);
        ranks_[rank].messages = static_cast<std::uint16_t>(ranks_[rank].messages + change);
        choose(ranks_[rank]);
    }
    void add(std::uint32_t rank, Account account, Picoseconds amount) {
        ranks_[rank].bucket[static_cast<std::size_t>(account)] += amount;
    }
    /// From moving data of one account alone to moving data of another alone at a later time; what passed is in `add`.
    void jump(std::uint32_t rank, Account from, Account to, Picoseconds waited, Picoseconds then) {
        moving(rank, from, -1, ranks_[rank].since);
        ranks_[rank].since = then;
        ranks_[rank].waited += waited;
        moving(rank, to, +1, then);
    }
    /// All that is kept of a rank, to be put back.
    Rank rank(std::uint32_t rank) const { return ranks_[rank]; }
    void set_rank(std::uint32_t rank, const Rank& value) { ranks_[rank] = value; }
    void add_computing(std::uint32_t rank, Picoseconds amount) { ranks_[rank].bucket[kComputing] += amount; }
    /// Moves at most `amount` of the unsettled waiting to an account; returns what was moved.
    Picoseconds settle_waiting(std::uint32_t rank, Account account, Picoseconds amount) {
        Picoseconds& pending = ranks_[rank].bucket[kWaitingMembers];
        const Picoseconds moved = amount < pending ? amount : pending;
        pending -= moved;
        add(rank, account, moved);
        return moved;
    }

private:
    static void choose(Rank& r) {
        if (r.computing)
            r.state = kComputing;
        else if (r.moving_mask != 0)
            r.state = static_cast<std::uint32_t>(std::countr_zero(r.moving_mask));
        else if (r.members != 0)
            r.state = kWaitingMembers;
        else if (r.messages != 0)
            r.state = static_cast<std::uint32_t>(Account::bubble);
        else
            r.state = static_cast<std::uint32_t>(Account::idle);
    }
    std::vector<Rank> ranks_;
};

}  // namespace fabricast::engine
