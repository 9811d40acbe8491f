#include "models/collectives/hierarchy.hpp"

#include <fmt/format.h>

#include <stdexcept>

#include "models/collectives/execution.hpp"

namespace fabricast {

std::vector<Phase> hierarchical_phases(const GroupOrder& order, Collective kind, Bytes size) {
    if (kind != Collective::all_reduce && kind != Collective::all_gather && kind != Collective::reduce_scatter) {
        throw std::invalid_argument(fmt::format(
            "{} has no hierarchical form here; all_reduce, all_gather and reduce_scatter have", collective_name(kind)));
    }
    const std::size_t local = order.node(0).size();
    Phase inside{Collective::reduce_scatter, size, {}},
        between{kind, scaled_up(size, 1, static_cast<std::int64_t>(local)), {}};
    between.groups.resize(local);
    for (std::uint32_t node = 0; node < order.nodes(); ++node) {
        const auto gpus = order.node(node);
        if (gpus.size() != local) {
            throw std::invalid_argument(fmt::format("a hierarchical {} needs as many members on every node: {} and {}",
                                                    collective_name(kind), local, gpus.size()));
        }
        inside.groups.emplace_back(gpus.begin(), gpus.end());
        for (std::size_t i = 0; i < local; ++i)
            between.groups[i].push_back(gpus[i]);
    }
    std::vector<Phase> phases;
    const bool down = kind != Collective::all_gather, up = kind != Collective::reduce_scatter;
    if (down && local > 1)
        phases.push_back(inside);
    if (order.nodes() > 1)
        phases.push_back(between);
    if (up && local > 1) {
        inside.kind = Collective::all_gather;
        phases.push_back(inside);
    }
    return phases;
}

}  // namespace fabricast
