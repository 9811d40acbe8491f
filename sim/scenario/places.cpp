#include "sim/scenario/places.hpp"

#include <charconv>
#include <cstdint>

#include <fmt/format.h>

namespace fabricast {
namespace {

/// "29.2" after a word: false when it is not there.
bool read_two(std::string_view text, std::uint32_t& first, std::uint32_t* second, std::string_view& rest) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), first);
    if (error != std::errc())
        return false;
    rest = text.substr(static_cast<std::size_t>(end - text.data()));
    if (!second)
        return true;
    if (!rest.starts_with('.'))
        return false;
    rest.remove_prefix(1);
    const auto [stop, wrong] = std::from_chars(rest.data(), rest.data() + rest.size(), *second);
    if (wrong != std::errc())
        return false;
    rest = rest.substr(static_cast<std::size_t>(stop - rest.data()));
    return true;
}

}  // namespace

std::string wrong_place(const Scenario& s, const std::string& where) {
    std::uint32_t a = 0, b = 0;
    std::string_view rest;
    const std::string_view text = where;
    const std::uint32_t gpus = s.node.gpus;
    const bool listed = s.fabric_is_listed();  // counts come from the file
    if (text.starts_with("gpu ") && read_two(text.substr(4), a, &b, rest)) {
        if (!listed && (a >= s.nodes || b >= gpus))
            return fmt::format("there is no {}: the cluster has nodes 0 to {} with GPUs 0 to {}", where, s.nodes - 1,
                               gpus - 1);
    } else if (text.starts_with("nic ") && read_two(text.substr(4), a, &b, rest)) {
        if (!listed && !s.machine && (a >= s.nodes || b >= s.node.nics))
            return fmt::format("there is no {}: the cluster has nodes 0 to {} with {} adapters each", where,
                               s.nodes - 1, s.node.nics);
    } else if (text.starts_with("node ") && read_two(text.substr(5), a, nullptr, rest) && rest.empty()) {
        if (!listed && a >= s.nodes)
            return fmt::format("there is no {}: the cluster has nodes 0 to {}", where, s.nodes - 1);
    } else if (text.starts_with("rank ") && read_two(text.substr(5), a, nullptr, rest) && rest.empty()) {
        if (a >= s.training.layout.world())
            return fmt::format("there is no {}: the job has ranks 0 to {}", where, s.training.layout.world() - 1);
    } else if (text.starts_with("stage ") && read_two(text.substr(6), a, nullptr, rest) && rest.empty()) {
        if (a >= s.training.layout.pp)
            return fmt::format("there is no {}: the pipeline has stages 0 to {}", where, s.training.layout.pp - 1);
    }
    return {};
}

bool names_ranks(std::string_view where) {
    std::uint32_t a = 0, b = 0;
    std::string_view rest;
    if (where == "all")
        return true;
    if (where.starts_with("gpu ") && read_two(where.substr(4), a, &b, rest))
        return rest.empty();
    for (const std::string_view word : {"node ", "rank ", "stage "}) {
        if (where.starts_with(word) && read_two(where.substr(word.size()), a, nullptr, rest))
            return rest.empty();
    }
    return false;
}

}  // namespace fabricast
