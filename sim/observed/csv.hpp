// Tables as CSV (RFC 4180): a header line of column names, then one record a row.
//
// Fields may be quoted; a quoted field may hold commas, line ends and quotes (written twice). Line ends "\n" and
// "\r\n", a byte order mark and blank lines are accepted. Refused with file and line: a row with more or fewer fields
// than the header, a quote that never closes, text after a closing quote, a column name given twice.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fabricast {

class Csv {
public:
    /// Throws IngestError.
    static Csv read(const std::filesystem::path& path);
    static Csv parse(std::string_view text, const std::string& file);

    std::size_t size() const { return rows_.size(); }
    const std::vector<std::string>& header() const { return header_; }
    bool has(std::string_view column) const { return find(column).has_value(); }
    /// The line of the file on which a row begins, from 1.
    int line(std::size_t row) const { return rows_[row].line; }

    /// The field as written. Throws IngestError naming the columns there are when there is no such column.
    const std::string& text(std::size_t row, std::string_view column) const;
    /// Throws IngestError with file, line and column when the field is not a number.
    double number(std::size_t row, std::string_view column) const;
    std::int64_t integer(std::size_t row, std::string_view column) const;
    /// Nothing for an empty field.
    std::optional<double> number_if_any(std::size_t row, std::string_view column) const;

private:
    struct Row {
        int line = 0;
        std::vector<std::string> fields;
    };
    std::optional<std::size_t> find(std::string_view column) const;

    std::string file_;
    std::vector<std::string> header_;
    std::vector<Row> rows_;
};

}  // namespace fabricast
