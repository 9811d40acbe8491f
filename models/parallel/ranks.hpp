// Coordinates of ranks and the groups they form.
//
// `order` lists the dimensions fastest-varying first ("tp-cp-ep-dp-pp"). Rank r sits on GPU r of the cluster.
//
// Expert parallelism takes no digit of its own: the tp cp dp ranks of a stage, in ascending order, are cut a second time
// into etp, ep and what is left, edp, in the order in which tp, ep and dp stand in `order` (as Megatron-Core's expert
// rank generator does). Gradients and optimizer state of everything but routed experts are shared by the cp dp ranks
// of equal tp and pp (the data group), those of routed experts by the edp ranks of equal etp, ep and pp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/parallel/layout.hpp"

namespace fabricast {

struct Coordinates {
    std::int64_t tp = 0, cp = 0, dp = 0, pp = 0;
};

struct ExpertCoordinates {
    std::int64_t etp = 0, ep = 0, edp = 0;
};

class RankMap {
public:
    /// Throws std::invalid_argument when order is no permutation of tp, cp, ep, dp, pp.
    explicit RankMap(const Layout& layout);

    Coordinates at(std::uint32_t rank) const;
    std::uint32_t rank(const Coordinates& c) const;
    /// Ranks that share every coordinate of `c` but the named dimension ('t', 'c', 'd' or 'p'), in its order.
    std::vector<std::uint32_t> line(Coordinates c, char dimension) const;
    /// Ranks of equal tp and pp, ascending.
    std::vector<std::uint32_t> data_group(const Coordinates& c) const;

    ExpertCoordinates expert_at(std::uint32_t rank) const;
    /// Ranks of the stage that share every expert coordinate with `rank` but the named one ('t' etp, 'e' ep, 'd' edp).
    std::vector<std::uint32_t> expert_line(std::uint32_t rank, char dimension) const;
    std::int64_t expert_data() const { return edp_; }  ///< tp cp dp / (etp ep)
    std::uint32_t world() const { return world_; }

private:
    std::int64_t tp_, cp_, dp_, pp_;
    std::int64_t tp_stride_ = 1, cp_stride_ = 1, dp_stride_ = 1, pp_stride_ = 1;
    std::uint32_t world_;
    std::int64_t etp_, ep_, edp_;
    std::int64_t etp_stride_ = 1, ep_stride_ = 1, edp_stride_ = 1;  ///< in positions within the stage
    std::vector<std::vector<std::uint32_t>> stages_;                ///< ranks of a stage, ascending
    std::vector<std::uint32_t> position_;                           ///< of a rank within its stage
};

/// True when order is a permutation of tp, cp, ep, dp, pp joined by '-'.
bool valid_order(const std::string& order);

}  // namespace fabricast
