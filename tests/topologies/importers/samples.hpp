// The sample files under data/, and what index.csv says of each.
#pragma once

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "topologies/importers/detect.hpp"

namespace fabricast::importers::test {

inline std::string data_path(const std::string& file) {
    return std::string(FABRICAST_SOURCE_DIR) + "/tests/topologies/importers/data/" + file;
}

inline std::string slurp(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
}

struct Sample {
    std::string file, verdict, gpus, nics, bare_nics, link_classes, net_megabits, nvlinks_per_gpu, numa_groups, source;
};

inline std::vector<Sample> samples() {
    std::vector<Sample> all;
    std::ifstream stream(data_path("index.csv"));
    std::string line;
    std::getline(stream, line);
    while (std::getline(stream, line)) {
        std::vector<std::string> cells;
        std::string cell;
        std::istringstream cut(line);
        while (std::getline(cut, cell, ',')) {
            cells.push_back(cell);
        }
        cells.resize(10);
        all.push_back(
            {cells[0], cells[1], cells[2], cells[3], cells[4], cells[5], cells[6], cells[7], cells[8], cells[9]});
    }
    return all;
}

inline Machine sample_machine(const std::string& file) { return std::get<Machine>(import_file(data_path(file))); }

/// What a refusal says; empty when the text is taken.
inline std::string refusal(const std::string& text, const std::string& name = "x") {
    try {
        import_text(SourceText::from_text(name, text));
    } catch (const ImportError& error) {
        return error.what();
    }
    return "";
}

inline std::string all_notes(const Notes& notes) {
    std::string text;
    for (const Note& note : notes) {
        text += (note.kind == NoteKind::fact       ? "fact: "
                 : note.kind == NoteKind::repaired ? "repaired: "
                                                   : "suspicious: ") +
                note.text + "\n";
    }
    return text;
}

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

#define EXPECT_HAS(text, part) EXPECT_TRUE(::fabricast::importers::test::contains(text, part)) << (text)

}  // namespace fabricast::importers::test
