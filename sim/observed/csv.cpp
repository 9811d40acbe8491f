#include "sim/observed/csv.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "sim/observed/ingest_error.hpp"
#include "sim/observed/text.hpp"

namespace fabricast {
namespace {

/// Reads record by record and counts lines.
class Scanner {
public:
    Scanner(std::string_view text, const std::string& file) : text_(text), file_(file) {
        if (starts_with(text_, "\xEF\xBB\xBF")) {
            at_ = 3;
        }
    }

    /// False at the end. `line` is the line on which the record begins. Blank lines are skipped.
    bool next(std::vector<std::string>& fields, int& line) {
        while (at_ < text_.size() && (text_[at_] == '\n' || text_[at_] == '\r')) {
            end_line();
        }
        if (at_ >= text_.size()) {
            return false;
        }
        fields.clear();
        line = line_;
        while (true) {
            fields.push_back(field());
            if (at_ >= text_.size()) {
                return true;
            }
            if (text_[at_] == ',') {
                ++at_;
                continue;
            }
            end_line();
            return true;
        }
    }

private:
    /// Stops at a comma, a line end or the end of the text.
    std::string field() {
        std::string value;
        if (at_ < text_.size() && text_[at_] == '"') {
            in_quotes(value);
            if (at_ < text_.size() && text_[at_] != ',' && text_[at_] != '\n' && text_[at_] != '\r') {
                throw IngestError(file_, line_, "text after the closing quote of a field");
            }
            return value;
        }
        while (at_ < text_.size() && text_[at_] != ',' && text_[at_] != '\n' && text_[at_] != '\r') {
            value += text_[at_++];
        }
        return value;
    }

    void in_quotes(std::string& value) {
        const int opened = line_;
        for (++at_; at_ < text_.size(); ++at_) {
            if (text_[at_] == '"') {
                if (at_ + 1 < text_.size() && text_[at_ + 1] == '"') {
                    ++at_;
                } else {
                    ++at_;
                    return;
                }
            }
            line_ += text_[at_] == '\n' ? 1 : 0;
            value += text_[at_];
        }
        throw IngestError(file_, opened, "the quote that opens here never closes");
    }

    void end_line() {
        if (text_[at_] == '\r' && at_ + 1 < text_.size() && text_[at_ + 1] == '\n') {
            ++at_;
        }
        ++at_;
        ++line_;
    }

    std::string_view text_;
    const std::string& file_;
    std::size_t at_ = 0;
    int line_ = 1;
};

}  // namespace

Csv Csv::read(const std::filesystem::path& path) { return parse(read_text_file(path), path.string()); }

Csv Csv::parse(std::string_view text, const std::string& file) {
    Csv csv;
    csv.file_ = file;
    Scanner scanner(text, file);
    std::vector<std::string> fields;
    int line = 0;
    if (!scanner.next(fields, line)) {
        throw IngestError(file, 0, "is empty: a CSV begins with a line of column names");
    }
    for (const std::string& name : fields) {
        csv.header_.emplace_back(trimmed(name));
    }
    for (std::size_t i = 0; i < csv.header_.size(); ++i) {
        if (std::count(csv.header_.begin(), csv.header_.end(), csv.header_[i]) > 1) {
            throw IngestError(file, line, fmt::format("column '{}' is there twice", csv.header_[i]));
        }
    }
    while (scanner.next(fields, line)) {
        if (fields.size() != csv.header_.size()) {
            throw IngestError(file, line,
                              fmt::format("{} fields where the header names {}", fields.size(), csv.header_.size()));
        }
        csv.rows_.push_back({line, fields});
    }
    return csv;
}

std::optional<std::size_t> Csv::find(std::string_view column) const {
    const auto found = std::find(header_.begin(), header_.end(), column);
    return found == header_.end() ? std::nullopt : std::optional(static_cast<std::size_t>(found - header_.begin()));
}

const std::string& Csv::text(std::size_t row, std::string_view column) const {
    const std::optional<std::size_t> at = find(column);
    if (!at) {
        throw IngestError(file_, 1, fmt::format("no column '{}'; there are: {}", column, fmt::join(header_, ", ")));
    }
    return rows_.at(row).fields[*at];
}

double Csv::number(std::size_t row, std::string_view column) const {
    const std::optional<Printed> value = printed_number(trimmed(text(row, column)));
    if (!value) {
        throw IngestError(file_, line(row),
                          fmt::format("column '{}' holds '{}', which is not a number", column, text(row, column)));
    }
    return value->value;
}

std::int64_t Csv::integer(std::size_t row, std::string_view column) const {
    const std::optional<std::int64_t> value = whole_number(trimmed(text(row, column)));
    if (!value) {
        throw IngestError(
            file_, line(row),
            fmt::format("column '{}' holds '{}', which is not a whole number", column, text(row, column)));
    }
    return *value;
}

std::optional<double> Csv::number_if_any(std::size_t row, std::string_view column) const {
    return trimmed(text(row, column)).empty() ? std::nullopt : std::optional(number(row, column));
}

}  // namespace fabricast
