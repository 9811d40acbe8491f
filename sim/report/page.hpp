// Lines and tables for a terminal: pieces of text with a paint, clipped to the page's columns. Whether paint becomes
// colour, and bars and ticks stay Unicode, is the page's business; who prints does not care.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/report/text.hpp"

namespace fabricast::report {

enum class Paint : std::uint8_t { plain, bold, dim, good, warn, bad, ideal, loss };

/// Lines of painted pieces; how they end up depends on the terminal.
class Page {
public:
    Page(bool color, bool unicode, std::size_t columns) : color_(color), unicode_(unicode), columns_(columns) {}

    Page& add(std::string_view text, Paint paint = Paint::plain);  ///< to the current line
    Page& end();                                                   ///< of the current line, clipped to the page
    void blank() { end(); }
    void heading(std::string_view text);
    std::size_t lines() const { return lines_; }
    const std::string& text() const { return text_; }

private:
    bool color_, unicode_;
    std::size_t columns_, used_ = 0, lines_ = 0;
    std::string text_, line_;
};

/// Columns as wide as their widest cell. The first row is the heading.
class Table {
public:
    /// One letter a column: 'l' or 'r'.
    explicit Table(std::string alignment) : alignment_(std::move(alignment)) {}
    void row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
    void print(Page& page) const;

private:
    std::string alignment_;
    std::vector<std::vector<std::string>> rows_;
};

}  // namespace fabricast::report
