// What the evaluations of a plan depend on, as facts that can be compared one by one: two stores whose facts are equal hold
// the same evaluations under the same numbers.
//
//   program      version, and a digest of the sources that compute a forecast (code.cmake)
//   scenario     every key that is said, presets and files it names by their contents; not the name, expectations, conditions,
//                prices, tokens of the run: these change the table and not an evaluation
//   space        values of every dimension in their order: they number the layouts
//   constants    files of the catalogue, a calibration, and every assumption the scenario makes
//   shard        which of how many; conditions, what they may ask for and `top`, by which a shard cuts
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/plan/search.hpp"

namespace fabricast::plan {

struct Fact {
    std::string part, key, value;
    auto operator<=>(const Fact&) const = default;
};
using Facts = std::vector<Fact>;  ///< in order of part and key, no two alike in both

Facts facts_of(const PlanSource& source, const std::vector<std::unique_ptr<PlanCluster>>& clusters,
               const PlanSpace& space);

/// Of the part `shard`: `where` are all conditions.
Facts shard_facts(const PlanSource& source, const SearchOptions& search, const std::vector<std::string>& where);

/// The first differences as a person would say them: "training.global_batch is 512 there and 256 here"; empty: none.
std::string differences(const Facts& there, const Facts& here);

/// 16 hexadecimal digits over all facts (FNV-1a).
std::string digest(const Facts& facts);
std::string digest(std::string_view text);

}  // namespace fabricast::plan
