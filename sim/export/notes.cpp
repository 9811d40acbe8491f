#include "sim/export/notes.hpp"

#include <fmt/format.h>

namespace fabricast::launch {

void Notes::order(const Layout& layout) {
    if (layout.order != "tp-cp-ep-dp-pp")
        add(fmt::format("ranks placed in the order {}", layout.order));
}

void Notes::compression(const CompressedTraffic& c) {
    const auto tell = [&](const char* what, Compression method) {
        if (method != Compression::none)
            add(fmt::format("{} compressed as {}", what, compression_name(method)));
    };
    tell("gradients", c.gradients);
    tell("gathered parameters", c.parameters);
    tell("tensor-parallel traffic", c.tensor_parallel);
}

std::string Notes::comments() const {
    std::string out;
    for (const std::string& sentence : sentences_)
        out += "# not said here: " + sentence + "\n";
    return out;
}

}  // namespace fabricast::launch
