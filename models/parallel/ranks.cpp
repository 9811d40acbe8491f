#include "models/parallel/ranks.hpp"

#include <algorithm>
#include <sstream>
#include <stdexcept>

namespace fabricast {
namespace {

std::vector<std::string> dimensions(const std::string& order) {
    std::vector<std::string> out;
    std::istringstream stream(order);
    for (std::string part; std::getline(stream, part, '-');)
        out.push_back(part);
    return out;
}

}  // namespace

bool valid_order(const std::string& order) {
    std::vector<std::string> parts = dimensions(order);
    std::sort(parts.begin(), parts.end());
    return parts == std::vector<std::string>{"cp", "dp", "ep", "pp", "tp"};
}

RankMap::RankMap(const Layout& layout)
    : tp_(layout.tp),
      cp_(layout.cp),
      dp_(layout.dp),
      pp_(layout.pp),
      world_(static_cast<std::uint32_t>(layout.world())),
      etp_(layout.expert_tp()),
      ep_(layout.ep),
      edp_(tp_ * cp_ * dp_ / (etp_ * ep_)) {
    if (!valid_order(layout.order))
        throw std::invalid_argument("rank order " + layout.order + " is no permutation of tp-cp-ep-dp-pp");
    std::int64_t stride = 1;
    for (const std::string& dimension : dimensions(layout.order)) {
        if (dimension == "tp")
            tp_stride_ = stride, stride *= tp_;
        else if (dimension == "cp")
            cp_stride_ = stride, stride *= cp_;
        else if (dimension == "dp")
            dp_stride_ = stride, stride *= dp_;
        else if (dimension == "pp")
            pp_stride_ = stride, stride *= pp_;
    }
    stride = 1;
    for (const std::string& dimension : dimensions(layout.order)) {
        if (dimension == "tp")
            etp_stride_ = stride, stride *= etp_;
        else if (dimension == "ep")
            ep_stride_ = stride, stride *= ep_;
        else if (dimension == "dp")
            edp_stride_ = stride, stride *= edp_;
    }
    stages_.resize(static_cast<std::size_t>(pp_));
    position_.resize(world_);
    for (std::uint32_t rank = 0; rank < world_; ++rank) {
        std::vector<std::uint32_t>& stage = stages_[static_cast<std::size_t>(at(rank).pp)];
        position_[rank] = static_cast<std::uint32_t>(stage.size());
        stage.push_back(rank);
    }
}

std::vector<std::uint32_t> RankMap::data_group(const Coordinates& c) const {
    std::vector<std::uint32_t> out;
    for (std::int64_t dp = 0; dp < dp_; ++dp) {
        for (std::int64_t cp = 0; cp < cp_; ++cp)
            out.push_back(rank({c.tp, cp, dp, c.pp}));
    }
    std::sort(out.begin(), out.end());
    return out;
}

ExpertCoordinates RankMap::expert_at(std::uint32_t rank) const {
    const std::int64_t at = position_[rank];
    return {at / etp_stride_ % etp_, at / ep_stride_ % ep_, at / edp_stride_ % edp_};
}

std::vector<std::uint32_t> RankMap::expert_line(std::uint32_t rank, char dimension) const {
    const std::vector<std::uint32_t>& stage = stages_[static_cast<std::size_t>(this->at(rank).pp)];
    ExpertCoordinates c = expert_at(rank);
    std::int64_t& varying = dimension == 't' ? c.etp : dimension == 'e' ? c.ep : c.edp;
    const std::int64_t size = dimension == 't' ? etp_ : dimension == 'e' ? ep_ : edp_;
    std::vector<std::uint32_t> out;
    for (varying = 0; varying < size; ++varying) {
        const std::int64_t position = c.etp * etp_stride_ + c.ep * ep_stride_ + c.edp * edp_stride_;
        out.push_back(stage[static_cast<std::size_t>(position)]);
    }
    return out;
}

Coordinates RankMap::at(std::uint32_t rank) const {
    return {rank / tp_stride_ % tp_, rank / cp_stride_ % cp_, rank / dp_stride_ % dp_, rank / pp_stride_ % pp_};
}

std::uint32_t RankMap::rank(const Coordinates& c) const {
    return static_cast<std::uint32_t>(c.tp * tp_stride_ + c.cp * cp_stride_ + c.dp * dp_stride_ + c.pp * pp_stride_);
}

std::vector<std::uint32_t> RankMap::line(Coordinates c, char dimension) const {
    std::int64_t& varying = dimension == 't' ? c.tp : dimension == 'c' ? c.cp : dimension == 'd' ? c.dp : c.pp;
    const std::int64_t size = dimension == 't' ? tp_ : dimension == 'c' ? cp_ : dimension == 'd' ? dp_ : pp_;
    std::vector<std::uint32_t> out;
    for (varying = 0; varying < size; ++varying)
        out.push_back(rank(c));
    return out;
}

}  // namespace fabricast
