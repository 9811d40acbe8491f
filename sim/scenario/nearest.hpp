// Spelling suggestions: the known word that is nearest to what was typed.
//
// Distance: optimal string alignment (insert, delete, replace, swap of neighbours cost 1), letters compared
// without case. A suggestion is made up to a third of the longer word, at least one edit; a typed word that
// starts like a known one (or the other way round, from three letters on) also counts as near.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fabricast {

int edit_distance(std::string_view a, std::string_view b);

/// Nearest of `known` or empty. Ties go to the first.
std::string nearest(std::string_view typed, std::span<const std::string> known);

/// "; did you mean `x`?" or empty.
std::string did_you_mean(std::string_view typed, std::span<const std::string> known);

/// "a, b, c".
std::string listed(std::span<const std::string> words);

}  // namespace fabricast
