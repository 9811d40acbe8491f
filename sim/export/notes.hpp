// What a program cannot say of a layout: sentences for the reader, and lines of comment where the format has comments.
#pragma once

#include <string>
#include <vector>

#include "sim/scenario/scenario.hpp"

namespace fabricast::launch {

class Notes {
public:
    void add(std::string sentence) { sentences_.push_back(std::move(sentence)); }
    void add_if(bool on, const char* sentence) {
        if (on)
            add(sentence);
    }
    void order(const Layout& layout);                        ///< where it is not tp-cp-ep-dp-pp
    void compression(const CompressedTraffic& compression);  ///< all that is not `none`
    std::string comments() const;                            ///< "# not said here: ..." a line each
    std::vector<std::string> take() { return std::move(sentences_); }

private:
    std::vector<std::string> sentences_;
};

}  // namespace fabricast::launch
