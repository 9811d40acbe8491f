// Conditions on plans, as the user types them: "tp <= 8", "tp * pp <= 16", "mfu > 0.4", "memory <= 70".
//
//   condition = product relation product        relation = < | <= | > | >= | = | == | !=
//   product   = factor { * factor }             factor = number | name
//
// Names known before a run: gpus tp cp pp vpp ep dp zero shard_group micro_batch global_batch micro_batches sp; after it:
// memory (GiB of the fullest stage), step (s), mfu, tokens_per_s, days, cost, bubble, exposed (shares of the step).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace fabricast::plan {

enum class Quantity : std::uint8_t {
    gpus,
    tp,
    sp,
    cp,
    pp,
    vpp,
    ep,
    dp,
    zero,
    shard_group,
    micro_batch,
    global_batch,
    micro_batches,
    memory,  ///< from here on: known after a run
    step,
    mfu,
    tokens_per_s,
    days,
    cost,
    bubble,
    exposed,
    count
};
inline constexpr std::size_t kQuantities = static_cast<std::size_t>(Quantity::count);
using Values = std::array<double, kQuantities>;

class Condition {
public:
    /// Throws ScenarioError that begins with `place`.
    Condition(const std::string& text, const std::string& place);

    bool holds(const Values& values) const;
    bool needs_run() const;  ///< asks for something that only a run tells
    const std::string& text() const { return text_; }

private:
    enum class Relation : std::uint8_t { less, at_most, more, at_least, equal, unequal };
    struct Product {
        double number = 1;
        std::vector<Quantity> names;
        double of(const Values& values) const;
    };
    static Product product(const std::string& text, const std::string& whole, const std::string& place);

    std::string text_;
    Product left_, right_;
    Relation relation_ = Relation::equal;
};

}  // namespace fabricast::plan
