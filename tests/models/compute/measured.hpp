// Reads the published measurements in tests/models/compute/data and summarises prediction errors.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace fabricast::test {

using CsvRow = std::map<std::string, std::string>;

/// Rows of a CSV without quoted fields, by column name.
inline std::vector<CsvRow> read_csv(const std::string& file) {
    std::ifstream in(std::string(FABRICAST_SOURCE_DIR) + "/tests/models/compute/data/" + file);
    if (!in)
        throw std::runtime_error("cannot read " + file);
    const auto split = [](const std::string& line) {
        std::vector<std::string> cells;
        std::stringstream stream(line);
        for (std::string cell; std::getline(stream, cell, ',');)
            cells.push_back(cell);
        return cells;
    };
    std::string line;
    std::getline(in, line);
    const std::vector<std::string> names = split(line);
    std::vector<CsvRow> rows;
    while (std::getline(in, line)) {
        const std::vector<std::string> cells = split(line);
        if (cells.size() != names.size())
            throw std::runtime_error(file + ": ragged row: " + line);
        CsvRow row;
        for (std::size_t i = 0; i < names.size(); ++i)
            row[names[i]] = cells[i];
        rows.push_back(std::move(row));
    }
    return rows;
}

inline double number(const CsvRow& row, const char* column) { return std::stod(row.at(column)); }
inline std::int64_t whole(const CsvRow& row, const char* column) { return std::stoll(row.at(column)); }

struct Errors {
    std::vector<double> signed_error;  ///< predicted time / measured time - 1

    double quantile(double q, bool absolute) const {
        std::vector<double> sorted = signed_error;
        if (absolute)
            for (double& e : sorted)
                e = std::fabs(e);
        std::sort(sorted.begin(), sorted.end());
        return sorted.at(static_cast<std::size_t>(q * static_cast<double>(sorted.size())));
    }
    double median() const { return quantile(0.5, true); }
    double p90() const { return quantile(0.9, true); }
    double bias() const { return quantile(0.5, false); }

    void print(const std::string& what) const {
        std::printf("%-34s n %3zu  median %4.1f %%  p90 %4.1f %%  bias %+5.1f %%\n", what.c_str(), signed_error.size(),
                    100 * median(), 100 * p90(), 100 * bias());
    }
};

}  // namespace fabricast::test
