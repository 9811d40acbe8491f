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
      world_(static_cast<std::uint32_t>(layout.world())) {
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
