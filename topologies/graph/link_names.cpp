#include "topologies/graph/link_names.hpp"

#include <algorithm>
#include <cassert>

#include <fmt/format.h>

namespace fabricast {
namespace {

std::string part_name(LinkName::Part part, std::uint32_t node, std::uint32_t number) {
    return fmt::format("node {} {} {}", node, part == LinkName::Part::host ? "host" : "pcie switch", number);
}

}  // namespace

std::string LinkName::text(std::uint32_t nodes_after) const {
    const std::uint32_t server = node + nodes_after;
    switch (form) {
        case Form::nvlink_up: return fmt::format("node {} gpu {} nvlink up", server, a);
        case Form::nvlink_down: return fmt::format("node {} gpu {} nvlink down", server, a);
        case Form::nvlink_to: return fmt::format("node {} gpu {} nvlink to gpu {}", server, a, b);
        case Form::gpu_pcie_up: return fmt::format("node {} gpu {} pcie up", server, a);
        case Form::gpu_pcie_down: return fmt::format("node {} gpu {} pcie down", server, a);
        case Form::nic_up: return fmt::format("node {} nic {} up", server, a);
        case Form::nic_down: return fmt::format("node {} nic {} down", server, a);
        case Form::nic_pcie_up: return fmt::format("node {} nic {} pcie up", server, a);
        case Form::nic_pcie_down: return fmt::format("node {} nic {} pcie down", server, a);
        case Form::joined: return part_name(a_part, server, a) + " to " + part_name(b_part, server, b);
        case Form::throughput: return part_name(a_part, server, a) + " throughput";
        case Form::text: break;
    }
    return words;
}

std::string LinkNames::operator[](std::size_t link) const {
    assert(link < size_);
    const auto after = std::upper_bound(parts_.begin(), parts_.end(), link,
                                        [](std::size_t at, const Part& part) { return at < part.first_link; });
    const Part& part = *std::prev(after);
    const std::size_t entries = (after == parts_.end() ? entries_.size() : after->first_entry) - part.first_entry;
    const std::size_t place = link - part.first_link;
    const Entry& entry = entries_[part.first_entry + place % entries];
    if (entry.form == LinkName::Form::text)
        return texts_[entry.a];
    const LinkName name = {entry.form, entry.a_part, entry.b_part, entry.node, entry.a, entry.b};
    return name.text(static_cast<std::uint32_t>(place / entries));
}

std::vector<std::string> LinkNames::all() const {
    std::vector<std::string> out;
    out.reserve(size_);
    for (std::size_t link = 0; link < size_; ++link)
        out.push_back((*this)[link]);
    return out;
}

void LinkNames::add(const LinkName& name) {
    if (parts_.empty() || parts_.back().times > 1)
        parts_.push_back({size_, entries_.size(), 1});
    Entry entry = {name.form, name.a_part, name.b_part, name.node, name.a, name.b};
    if (name.form == LinkName::Form::text) {
        entry.a = static_cast<std::uint32_t>(texts_.size());
        texts_.push_back(name.words);
    }
    entries_.push_back(entry);
    ++size_;
}

void LinkNames::repeat(std::size_t first, std::uint32_t copies) {
    if (copies == 0 || first == size_)
        return;
    const std::size_t links = size_ - first;
    assert(parts_.back().times == 1 && parts_.back().first_link <= first);
    const std::size_t entry = entries_.size() - links;
    if (parts_.back().first_link == first)
        parts_.pop_back();
    parts_.push_back({first, entry, std::size_t{1} + copies});
    size_ += links * copies;
}

}  // namespace fabricast
