// How a reader refuses a file, and how it tells what it noticed in one that it took.
//
// A reader either returns a complete, checked description or throws ImportError; it never returns half of one.
// what() reads "file:line: sentence", or "file: sentence" when no single line is to blame; the sentence names what
// was found and what was expected. Lines count from 1. A Note is for the reader of the report: a fact worth knowing,
// a repair that was made (and could be wrong), or something suspicious that was kept as the file says.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace fabricast::importers {

class ImportError : public std::runtime_error {
public:
    /// line 0: the file as a whole.
    ImportError(std::string file, std::uint32_t line, std::string sentence)
        : std::runtime_error(file + (line > 0 ? ":" + std::to_string(line) : std::string()) + ": " + sentence),
          file_(std::move(file)),
          line_(line),
          sentence_(std::move(sentence)) {}

    const std::string& file() const { return file_; }
    std::uint32_t line() const { return line_; }
    const std::string& sentence() const { return sentence_; }

private:
    std::string file_;
    std::uint32_t line_;
    std::string sentence_;
};

enum class NoteKind : std::uint8_t { fact, repaired, suspicious };

struct Note {
    NoteKind kind = NoteKind::fact;
    std::uint32_t line = 0;  ///< 0: no single line
    std::string text;
};
using Notes = std::vector<Note>;

}  // namespace fabricast::importers
