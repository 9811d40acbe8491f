// Names of links, made when asked for: a hundred thousand GPUs have more letters in the names of their links than numbers.
//
// A name is a text, or told by what the link joins in a server. The names of a server's links stand for those of the servers
// after it that are built alike (repeat): only the server's number differs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace fabricast {

struct LinkName {
    enum class Form : std::uint8_t {
        text,
        nvlink_up,  ///< "node 3 gpu 5 nvlink up"
        nvlink_down,
        nvlink_to,  ///< "node 3 gpu 5 nvlink to gpu 6"
        gpu_pcie_up,
        gpu_pcie_down,
        nic_up,
        nic_down,
        nic_pcie_up,
        nic_pcie_down,
        joined,     ///< "node 3 pcie switch 0 to node 3 host 0"
        throughput  ///< "node 3 host 0 throughput"
    };
    enum class Part : std::uint8_t { pcie_switch, host };
    Form form = Form::text;
    Part a_part = Part::host, b_part = Part::host;  ///< joined, throughput
    std::uint32_t node = 0, a = 0, b = 0;           ///< numbers in the server
    std::string words = {};                         ///< text

    std::string text(std::uint32_t nodes_after = 0) const;
};

/// By link, in the order in which they were added.
class LinkNames {
public:
    std::size_t size() const { return size_; }
    std::string operator[](std::size_t link) const;
    std::vector<std::string> all() const;
    void add(const LinkName& name);
    /// The links from `first` on are repeated `copies` times, each for the next server. Precondition: none has a text.
    void repeat(std::size_t first, std::uint32_t copies);

private:
    struct Entry {
        LinkName::Form form;
        LinkName::Part a_part, b_part;
        std::uint32_t node, a, b;  ///< text: a is the place in texts_
    };
    struct Part {  ///< entries [first_entry, end of the part) hold for `times` servers
        std::size_t first_link, first_entry, times;
    };
    std::vector<Entry> entries_;
    std::vector<std::string> texts_;
    std::vector<Part> parts_;
    std::size_t size_ = 0;
};

}  // namespace fabricast
