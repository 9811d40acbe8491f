// The links a program uses, numbered from 0 as the engine wants them: those of the grid that are in use, and others.
#pragma once

#include <string>
#include <vector>

#include "sim/traces/grid_network.hpp"

namespace fabricast::traces {

class LinkTable {
public:
    explicit LinkTable(const GridNetwork& network)
        : network_(network), number_(network.link_count(), LinkId{0xFFFFFFFFu}) {}

    LinkId of(LinkId grid_link) {
        LinkId& number = number_[index(grid_link)];
        if (number == LinkId{0xFFFFFFFFu}) {
            number = LinkId{static_cast<std::uint32_t>(capacity_.size())};
            capacity_.push_back(rate_from_bytes_per_s(network_.bytes_per_s(grid_link)));
            grid_.push_back(grid_link);
        }
        return number;
    }
    /// A link that is not of the grid.
    LinkId add(double bytes_per_s) {
        capacity_.push_back(rate_from_bytes_per_s(bytes_per_s));
        grid_.push_back(LinkId{0xFFFFFFFFu});
        return LinkId{static_cast<std::uint32_t>(capacity_.size() - 1)};
    }

    const std::vector<Rate>& capacity() const { return capacity_; }
    std::string name(LinkId link) const {
        const LinkId grid = grid_[index(link)];
        return grid == LinkId{0xFFFFFFFFu} ? "remote memory" : network_.link_name(grid);
    }

private:
    const GridNetwork& network_;
    std::vector<LinkId> number_;  ///< by link of the grid
    std::vector<LinkId> grid_;
    std::vector<Rate> capacity_;
};

}  // namespace fabricast::traces
