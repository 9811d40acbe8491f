#include "models/program/flat_demands.hpp"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "models/program/deciding_links.hpp"
#include "models/program/mix.hpp"

namespace fabricast::program {
namespace {

constexpr std::uint32_t kUnknown = 0xFFFFFFFFu;
constexpr std::size_t kMostCompared = 4096;  ///< links of a set that are compared with each other

// a / C of one link against another, for all demands of a set.
struct Row {
    std::vector<std::uint64_t> coefficients;
    LinkId link;
    Rate capacity;
};

bool never_before(const Row& l, const Row& m) {
    for (std::size_t d = 0; d < l.coefficients.size(); ++d) {
        if (static_cast<unsigned __int128>(l.coefficients[d]) * static_cast<std::uint64_t>(m.capacity) >
            static_cast<unsigned __int128>(m.coefficients[d]) * static_cast<std::uint64_t>(l.capacity))
            return false;
    }
    return true;
}

// The links that can decide; the first of equal ones.
std::vector<Row> deciding_rows(const std::vector<std::vector<LinkUse>>& demands, std::span<const Rate> capacity,
                               const std::vector<std::uint32_t>& set) {
    std::vector<std::uint64_t> all(capacity.size() * set.size(), 0);
    std::vector<bool> used(capacity.size(), false);
    for (std::size_t d = 0; d < set.size(); ++d) {
        for (const LinkUse& use : demands[set[d]]) {
            all[index(use.link) * set.size() + d] = use.coefficient;
            used[index(use.link)] = true;
        }
    }
    std::vector<Row> rows;
    std::unordered_map<std::uint64_t, std::uint32_t> known;  // hash of the coefficients -> row; looked up only
    for (std::uint32_t l = 0; l < used.size(); ++l) {
        if (!used[l])
            continue;
        const std::span<const std::uint64_t> row(all.data() + l * set.size(), set.size());
        std::uint64_t hash = 0;
        for (const std::uint64_t coefficient : row)
            hash = mix((hash ^ coefficient) + 0x9e3779b97f4a7c15ull);
        const auto [at, fresh] = known.try_emplace(hash, static_cast<std::uint32_t>(rows.size()));
        if (fresh || !std::equal(row.begin(), row.end(), rows[at->second].coefficients.begin())) {
            rows.push_back({{row.begin(), row.end()}, LinkId{l}, capacity[l]});
        } else if (capacity[l] < rows[at->second].capacity) {
            rows[at->second].link = LinkId{l};
            rows[at->second].capacity = capacity[l];
        }
    }
    std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.link < b.link; });
    if (rows.size() > kMostCompared)
        return rows;
    std::vector<Row> kept;
    for (Row& next : rows) {
        if (std::any_of(kept.begin(), kept.end(), [&](const Row& row_kept) { return never_before(next, row_kept); }))
            continue;
        std::erase_if(kept, [&](const Row& row_kept) { return never_before(row_kept, next); });
        kept.push_back(std::move(next));
    }
    return kept;
}

}  // namespace

FlatDemands::FlatDemands(const std::vector<std::vector<LinkUse>>& demands, std::span<const Rate> capacity,
                         const std::vector<std::vector<std::uint32_t>>& together)
    : number_(capacity.size(), kUnknown) {
    std::vector<std::uint32_t> place(together.empty() ? 0 : demands.size(), kUnknown);
    std::vector<std::vector<Use>> placed;
    for (const std::vector<std::uint32_t>& set : together) {
        for (std::size_t d = 0; d < set.size(); ++d)
            place[set[d]] = static_cast<std::uint32_t>(placed.size() + d);
        add_alone(demands, capacity, set, placed);
    }
    const auto alone = [&](std::size_t d) { return !place.empty() && place[d] != kUnknown; };
    LinkUsers users(capacity.size());
    for (std::uint32_t d = 0; d < demands.size(); ++d) {
        for (const LinkUse& use : demands[d]) {
            if (!alone(d))
                users.add(static_cast<std::uint32_t>(index(use.link)), d, use.coefficient);
        }
    }
    const std::vector<bool> decides = users.deciding([&](std::uint32_t l) { return capacity[l]; });
    first_.reserve(demands.size() + 1);
    for (std::size_t d = 0; d < demands.size(); ++d) {
        first_.push_back(static_cast<std::uint32_t>(uses_.size()));
        if (alone(d)) {
            uses_.insert(uses_.end(), placed[place[d]].begin(), placed[place[d]].end());
            continue;
        }
        for (const LinkUse& use : demands[d]) {
            if (decides[index(use.link)])
                uses_.push_back({link(use.link), coefficient(use.coefficient)});
        }
    }
    first_.push_back(static_cast<std::uint32_t>(uses_.size()));
    number_ = {};
}

std::uint32_t FlatDemands::coefficient(std::uint64_t value) {
    if (last_ >= coefficients_.size() || coefficients_[last_] != value) {
        last_ = known_.try_emplace(value, static_cast<std::uint32_t>(coefficients_.size())).first->second;
        if (last_ == coefficients_.size())
            coefficients_.push_back(value);
    }
    return last_;
}

std::uint32_t FlatDemands::link(LinkId id) {
    std::uint32_t& number = number_[index(id)];
    if (number == kUnknown) {
        number = static_cast<std::uint32_t>(links_.size());
        links_.push_back(id);
    }
    return number;
}

void FlatDemands::add_alone(const std::vector<std::vector<LinkUse>>& demands, std::span<const Rate> capacity,
                            const std::vector<std::uint32_t>& set, std::vector<std::vector<Use>>& out) {
    const std::size_t before = out.size();
    out.resize(before + set.size());
    for (const Row& row : deciding_rows(demands, capacity, set)) {
        const auto number = static_cast<std::uint32_t>(links_.size());
        links_.push_back(row.link);
        for (std::size_t d = 0; d < set.size(); ++d) {
            if (row.coefficients[d] > 0)
                out[before + d].push_back({number, coefficient(row.coefficients[d])});
        }
    }
}

}  // namespace fabricast::program
