// Scenarios as text, and forecasts of them.
#pragma once

#include <algorithm>
#include <cctype>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "models/parallel/compiler.hpp"
#include "sim/engine/engine.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/step/build_cluster.hpp"
#include "sim/step/forecast.hpp"

namespace fabricast::test {

using Overrides = std::vector<std::string>;

/// A forecast with the scenario it points to.
struct Forecast {
    std::unique_ptr<Scenario> scenario;
    Result result;

    const StepResult& step() const { return result.step; }
    double seconds() const { return fabricast::seconds(result.step.ps); }
    double mfu() const {
        const StepResult& s = result.step;
        return s.model_flops / seconds() / static_cast<double>(s.ranks) / s.peak_flops;
    }
    double account(Account a) const {
        const double all = static_cast<double>(result.step.ps) * static_cast<double>(result.step.ranks);
        return static_cast<double>(result.step.accounts[static_cast<std::size_t>(a)]) / all;
    }
};

inline Forecast run_scenario(Scenario scenario, ForecastOptions options = {}) {
    Forecast run;
    run.scenario = std::make_unique<Scenario>(std::move(scenario));
    run.result = forecast(*run.scenario, options);
    return run;
}
inline Forecast run_text(const std::string& yaml, const Overrides& overrides = {}) {
    return run_scenario(parse_scenario(yaml, "test.yaml", overrides));
}
/// `path` from the root of the tree.
inline Forecast run_file(const std::string& path, const Overrides& overrides = {}) {
    return run_scenario(load_scenario(std::string(FABRICAST_SOURCE_DIR) + "/" + path, overrides));
}

/// Time that data moved while nothing was computed, as a share of the step.
inline double exposed(const Forecast& run) {
    double sum = 0;
    for (const Account a : {Account::comm_tp, Account::comm_cp, Account::comm_ep, Account::comm_pp,
                            Account::comm_gradient, Account::comm_parameter, Account::comm_other, Account::contention})
        sum += run.account(a);
    return sum;
}

/// Every picosecond of every rank is in one account, none is negative.
inline void expect_exact_accounts(const Forecast& run) {
    const StepResult& s = run.step();
    __int128 sum = 0;
    for (std::size_t a = 0; a < kAccountCount; ++a) {
        EXPECT_TRUE(s.accounts[a] >= 0) << account_name(static_cast<Account>(a)) << " is negative";
        sum += s.accounts[a];
        __int128 stages = 0;
        for (const auto& stage : s.by_stage)
            stages += stage[a];
        if (static_cast<Account>(a) != Account::idle) {
            EXPECT_TRUE(stages == s.accounts[a]) << account_name(static_cast<Account>(a)) << " of all stages";
        }
    }
    EXPECT_TRUE(sum == static_cast<__int128>(s.ps) * s.ranks);
}

/// Splits a line of a CSV file; quotes group, a doubled quote stands for one.
inline std::vector<std::string> csv_cells(const std::string& line) {
    std::vector<std::string> cells(1);
    bool quoted = false;
    for (std::size_t i = 0; i < line.size(); ++i) {
        if (line[i] == '"' && quoted && i + 1 < line.size() && line[i + 1] == '"') {
            cells.back() += line[++i];
        } else if (line[i] == '"') {
            quoted = !quoted;
        } else if (line[i] == ',' && !quoted) {
            cells.emplace_back();
        } else {
            cells.back() += line[i];
        }
    }
    return cells;
}

/// Rows of a CSV file as column -> text, found by name.
class Table {
public:
    explicit Table(const std::string& path) {
        std::ifstream file(path);
        EXPECT_TRUE(file) << path;
        std::string line;
        std::getline(file, line);
        head_ = csv_cells(line);
        while (std::getline(file, line))
            rows_.push_back(csv_cells(line));
    }
    std::size_t size() const { return rows_.size(); }
    const std::string& at(std::size_t row, const std::string& column) const {
        const auto found = std::find(head_.begin(), head_.end(), column);
        EXPECT_NE(found, head_.end()) << column;
        return rows_[row].at(static_cast<std::size_t>(found - head_.begin()));
    }
    double number(std::size_t row, const std::string& column) const { return std::stod(at(row, column)); }

private:
    std::vector<std::string> head_;
    std::vector<std::vector<std::string>> rows_;
};

}  // namespace fabricast::test
