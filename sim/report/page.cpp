#include "sim/report/page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

namespace fabricast::report {
namespace {

std::string_view ansi(Paint paint) {
    switch (paint) {
        case Paint::plain: return "";
        case Paint::bold: return "\x1b[1m";
        case Paint::dim: return "\x1b[2m";
        case Paint::good: return "\x1b[1;32m";
        case Paint::warn: return "\x1b[1;33m";
        case Paint::bad: return "\x1b[1;31m";
        case Paint::ideal: return "\x1b[32m";
        case Paint::loss: return "\x1b[33m";
    }
    return "";
}

}  // namespace

Page& Page::add(std::string_view text, Paint paint) {
    const std::string clipped = clip(text, columns_ - std::min(columns_, used_));
    used_ += width(clipped);
    const std::string shown = unicode_ ? clipped : to_ascii(clipped);
    if (color_ && paint != Paint::plain && !shown.empty()) {
        line_ += fmt::format("{}{}\x1b[0m", ansi(paint), shown);
    } else {
        line_ += shown;
    }
    return *this;
}

Page& Page::end() {
    while (!line_.empty() && line_.back() == ' ')
        line_.pop_back();
    text_ += line_;
    text_ += '\n';
    line_.clear();
    used_ = 0;
    ++lines_;
    return *this;
}

void Page::heading(std::string_view text) {
    end();
    add(text, Paint::bold).end();
}

void Table::print(Page& page) const {
    std::vector<std::size_t> widths(alignment_.size(), 0);
    for (const auto& row : rows_) {
        assert(row.size() == widths.size() && "a row has one cell a column");
        for (std::size_t i = 0; i < row.size(); ++i)
            widths[i] = std::max(widths[i], width(row[i]));
    }
    for (std::size_t r = 0; r < rows_.size(); ++r) {
        std::string line = "  ";
        for (std::size_t i = 0; i < widths.size(); ++i) {
            const std::string& cell = rows_[r][i];
            if (i > 0)
                line += "  ";
            line += alignment_[i] == 'r' ? pad_left(cell, widths[i]) : pad_right(cell, widths[i]);
        }
        page.add(line, r == 0 ? Paint::dim : Paint::plain).end();
    }
}

}  // namespace fabricast::report
