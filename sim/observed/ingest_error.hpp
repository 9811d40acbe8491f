// A file of measurements that cannot be read. The text is "file:line: sentence"; line 0 (the whole file) is left out.
#pragma once

#include <stdexcept>
#include <string>

namespace fabricast {

struct IngestError : std::runtime_error {
    IngestError(const std::string& file, int at, const std::string& sentence)
        : std::runtime_error(file + (at > 0 ? ":" + std::to_string(at) : "") + ": " + sentence), line(at) {}
    int line;
};

}  // namespace fabricast
