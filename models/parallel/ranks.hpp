// Coordinates of ranks and the groups they form.
//
// `order` lists the dimensions fastest-varying first ("tp-cp-ep-dp-pp"); expert parallelism lives inside dp and takes
// no rank digit of its own. Rank r sits on GPU r of the cluster.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/parallel/layout.hpp"

namespace fabricast {

struct Coordinates {
    std::int64_t tp = 0, cp = 0, dp = 0, pp = 0;
};

class RankMap {
public:
    /// Throws std::invalid_argument when order is no permutation of tp, cp, ep, dp, pp.
    explicit RankMap(const Layout& layout);

    Coordinates at(std::uint32_t rank) const;
    std::uint32_t rank(const Coordinates& c) const;
    /// Ranks that share every coordinate of `c` but the named dimension ('t', 'c', 'd' or 'p'), in its order.
    std::vector<std::uint32_t> line(Coordinates c, char dimension) const;
    std::uint32_t world() const { return world_; }

private:
    std::int64_t tp_, cp_, dp_, pp_;
    std::int64_t tp_stride_ = 1, cp_stride_ = 1, dp_stride_ = 1, pp_stride_ = 1;
    std::uint32_t world_;
};

/// True when order is a permutation of tp, cp, ep, dp, pp joined by '-'.
bool valid_order(const std::string& order);

}  // namespace fabricast
