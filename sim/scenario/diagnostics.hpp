// Where something was written, and the list of what is wrong with it.
//
// A place is "file:line:column" (1-based; columns count characters, not bytes) or, for an override, the text
// of the option itself ("--set training.layout.tp=4"). Errors are collected while a pass can go on, so that a
// user mends several at once; the pass then ends with one ScenarioError, one error a line, at most kMaxShown.
#pragma once

#include <string>
#include <vector>

namespace fabricast {

struct Place {
    std::string source;        ///< file as given, or the whole option
    int line = 0, column = 0;  ///< line 0: the source alone says where
    std::string text() const;  ///< "a.yaml:3:7" or "--set a=b"
};

class Diagnostics {
public:
    static constexpr std::size_t kMaxShown = 10;

    /// Equal texts are kept once.
    void error(const Place& place, const std::string& sentence);
    bool ok() const { return lines_.empty(); }
    /// Throws ScenarioError when there is an error.
    void throw_if_any() const;

private:
    std::vector<std::string> lines_;
};

}  // namespace fabricast
