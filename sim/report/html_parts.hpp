// Pieces of the HTML page: escaped text, tables, bars. Everything that comes from a scenario passes through escape().
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fabricast::report {

using Json = nlohmann::ordered_json;

std::string escape(std::string_view text);

/// The value at a path ("/step/mfu"), null where there is none.
const Json& at(const Json& json, const char* path);
/// As a number; 0 where it is null or no number.
double number(const Json& json, const char* path);
std::string word(const Json& json, const char* path);

/// A table that scrolls sideways where it must. Columns: "collective", numbers "+time" (aligned right).
class HtmlTable {
public:
    /// `stacks`: on a phone rows become blocks, a cell a line.
    explicit HtmlTable(std::vector<std::string> columns, bool stacks = false);
    void row(const std::vector<std::string>& cells);  ///< plain texts, escaped here
    std::string finish() const;

private:
    std::vector<std::string> columns_;
    bool stacks_;
    std::string rows_;
};

/// A coloured part of a bar: css class, begin and length as fractions of the track.
struct Part {
    std::string css;
    double begin = 0, length = 0;
    std::string title;
};
/// A row of a chart of bars: name, track, figure.
std::string bar_row(const std::string& name, const std::vector<Part>& parts, const std::string& figure,
                    double mark = -1);

/// A text that is a result or a comparison. Throws std::invalid_argument where it is of no version this program knows.
Json checked_result(const std::string& text);

/// css class and text of an account or memory cause by its name in result.json; the name itself where it is unknown.
std::string account_words(const std::string& name);
std::string cause_words(const std::string& name);

/// A stage of result.json's memory, by cause, as shares of `scale` bytes; causes new to `entries` are appended.
std::vector<Part> memory_parts(const Json& stage, double scale,
                               std::vector<std::pair<std::string, std::string>>& entries);

std::string legend(const std::vector<std::pair<std::string, std::string>>& css_and_text);

/// A figure of the first screen and what it is.
std::string card(const std::string& figure, const std::string& what);

std::string page_begin(const std::string& title);
std::string page_end(const std::string& version, const std::string& scripts);

std::string head_section(const Json& result);      ///< html_head.cpp
std::string timeline_section(const Json& result);  ///< html_timeline.cpp
std::string timeline_script(const Json& result);   ///< data and scripts at the end of the page; empty without timeline

}  // namespace fabricast::report
