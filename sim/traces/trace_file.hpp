// A trace file as bytes and records.
//
// Records follow one another, each a base-128 varint of its length and so many bytes; the file ends where a record ends.
// Files are read whole into storage that is used again: thousands of small ones cost less so than mapped one by one. A
// file that starts with 1f 8b is gzip of the same. Refused: what cannot be read, is empty, or ends inside a record.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace fabricast::traces {

inline constexpr std::size_t kMostTraceBytes = std::size_t{8} << 30;

/// Reads `path` into `into` (its storage is reused). False when there is no such file. Throws ImportError.
bool read_trace_file(const std::string& path, std::string& into);

/// Walks the records of a file's bytes.
class Records {
public:
    Records(std::string_view bytes, const std::string& file) : bytes_(bytes), file_(file) {}
    /// False at the end. Throws ImportError where the bytes end inside a record.
    bool next(std::string_view& record);
    std::size_t offset() const { return at_; }    ///< of the next record
    std::size_t count() const { return count_; }  ///< records so far

private:
    std::string_view bytes_;
    const std::string& file_;
    std::size_t at_ = 0, count_ = 0;
};

}  // namespace fabricast::traces
