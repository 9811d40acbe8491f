// Evaluations that outlive the program: a SQLite file of one scenario's layouts, by number.
//
//   evaluations(layout, times, fits, failure, stage, memory, capacity, step_ps, events, step, sum)    one row a layout
//   about(part, key, value)      facts (facts.hpp), their digest, and the question that was asked of them last
//   application_id "FAPL", user_version 1 = version of this format
//
// A row is written when its evaluation ends: what one thread is handed while another writes goes into the next transaction.
// Write-ahead log, synchronous = normal: a killed process loses nothing that was written, a machine that loses power the last
// moments, neither ever half a row. `times` counts how often a layout was evaluated; `step` holds the rest of StepResult in
// words of 64 bits, so that all numbers come back exactly; `sum` is a checksum of the row.
//
// The file is locked as long as it is open (locking_mode = exclusive: no shared memory, so that file systems of clusters
// will do); the kernel lets go of it when the process ends, however it ends. All errors are ScenarioErrors.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "sim/plan/evaluate.hpp"
#include "sim/plan/facts.hpp"

struct sqlite3;
struct sqlite3_stmt;

namespace fabricast::plan {

class Store {
public:
    /// Opens or makes it. Refused, with what differs: a store of other facts. `question`: who asks now (part "question").
    Store(std::string file, const Facts& facts, const Facts& question);
    /// Opens one that exists, as it is.
    explicit Store(std::string file);
    ~Store();  ///< takes the log into the file
    Store(const Store&) = delete;
    Store& operator=(const Store&) = delete;

    const std::string& file() const { return file_; }
    const Facts& facts() const { return facts_; }
    const Facts& question() const { return question_; }

    /// From any thread.
    bool find(std::uint64_t layout, Evaluation& out);
    /// From any thread. On return it is written, or another thread is about to. What is there already counts once more.
    void keep(std::uint64_t layout, const Evaluation& evaluation);

    std::uint64_t size();     ///< rows
    std::uint64_t repeats();  ///< evaluations beyond the first of their layout
    /// Rows of `other` that are not here, as one transaction. Refused: a layout that both have with other results.
    void take(Store& other);

private:
    struct Row {
        std::uint64_t layout;
        std::int64_t times;
        Evaluation evaluation;
    };
    struct Close {
        void operator()(sqlite3* database) const;
        void operator()(sqlite3_stmt* statement) const;
    };
    using Prepared = std::unique_ptr<sqlite3_stmt, Close>;

    void open(bool make);
    void make_tables(const Facts& facts);
    void read_about();
    void write_about(const Facts& facts);
    Prepared prepare(const char* sql);
    void run(const char* sql);
    std::int64_t number(const char* sql);
    void write(const std::vector<Row>& rows);
    Row row_of(sqlite3_stmt* statement);
    void bind(const Row& row);
    [[noreturn]] void fail(int code, const char* doing);
    [[noreturn]] void refuse(const std::string& why);

    std::string file_;
    Facts facts_, question_;
    std::unique_ptr<sqlite3, Close> database_;
    Prepared find_, keep_;  ///< go before the database
    std::mutex database_mutex_, waiting_mutex_;
    std::vector<Row> waiting_;
    bool writing_ = false;
};

}  // namespace fabricast::plan
