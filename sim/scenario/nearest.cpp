#include "sim/scenario/nearest.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace fabricast {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool starts_like(std::string_view text, std::string_view start) {
    if (start.size() < 3 || text.size() < start.size())
        return false;
    for (std::size_t i = 0; i < start.size(); ++i)
        if (lower(text[i]) != lower(start[i]))
            return false;
    return true;
}

}  // namespace

int edit_distance(std::string_view a, std::string_view b) {
    const std::size_t columns = b.size() + 1;
    std::vector<int> before(columns), previous(columns), current(columns);
    for (std::size_t j = 0; j < columns; ++j)
        previous[j] = static_cast<int>(j);
    for (std::size_t i = 1; i <= a.size(); ++i) {
        current[0] = static_cast<int>(i);
        for (std::size_t j = 1; j < columns; ++j) {
            const int replace = previous[j - 1] + (lower(a[i - 1]) == lower(b[j - 1]) ? 0 : 1);
            current[j] = std::min({previous[j] + 1, current[j - 1] + 1, replace});
            if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1]))
                current[j] = std::min(current[j], before[j - 2] + 1);
        }
        std::swap(before, previous);
        std::swap(previous, current);
    }
    return previous[b.size()];
}

std::string nearest(std::string_view typed, std::span<const std::string> known) {
    if (typed.size() > 64)
        return {};
    std::string best;
    int best_distance = 1 << 20;
    for (const std::string& word : known) {
        const int limit = std::max(1, static_cast<int>(std::max(typed.size(), word.size())) / 3);
        int distance = edit_distance(typed, word);
        if (distance > limit && (starts_like(typed, word) || starts_like(word, typed)))
            distance = limit;
        if (distance <= limit && distance < best_distance) {
            best_distance = distance;
            best = word;
        }
    }
    return best;
}

std::string did_you_mean(std::string_view typed, std::span<const std::string> known) {
    const std::string word = nearest(typed, known);
    return word.empty() ? std::string() : fmt::format("; did you mean `{}`?", word);
}

std::string listed(std::span<const std::string> words) { return fmt::format("{}", fmt::join(words, ", ")); }

}  // namespace fabricast
