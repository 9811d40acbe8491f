#include "sim/plan/store.hpp"

#include <cstring>
#include <filesystem>

#include <fmt/format.h>
#include <sqlite3.h>

#include "models/program/mix.hpp"
#include "sim/plan/stored_step.hpp"
#include "sim/scenario/scenario.hpp"

namespace fabricast::plan {
namespace {

constexpr std::int64_t kApplication = 0x4641504c, kFormat = 1;        // "FAPL"
constexpr int kWaitMs = 2000;                                         // for a process that is about to end
constexpr std::string_view kQuestion = "question", kStore = "store";  // parts of `about` that are no facts

constexpr const char* kTables =
    "CREATE TABLE about(part TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY(part, key)) WITHOUT "
    "ROWID;"
    "CREATE TABLE evaluations(layout INTEGER PRIMARY KEY, times INTEGER NOT NULL, fits INTEGER NOT NULL,"
    " failure TEXT NOT NULL, stage INTEGER NOT NULL, memory INTEGER NOT NULL, capacity INTEGER NOT NULL,"
    " step_ps INTEGER NOT NULL, events INTEGER NOT NULL, step BLOB NOT NULL, sum INTEGER NOT NULL);";

std::int64_t sum_of(std::uint64_t layout, const Evaluation& e, std::string_view step) {
    std::uint64_t sum = mix(layout + 1);
    const auto add = [&](std::uint64_t value) { sum = mix(sum * 3 + value); };
    const auto add_text = [&](std::string_view text) {
        add(text.size());
        for (const char c : text)
            add(static_cast<unsigned char>(c));
    };
    add(e.fits);
    add_text(e.failure);
    add(static_cast<std::uint64_t>(e.stage));
    add(static_cast<std::uint64_t>(e.memory));
    add(static_cast<std::uint64_t>(e.capacity));
    add(static_cast<std::uint64_t>(e.step.ps));
    add(e.events);
    add_text(step);
    return static_cast<std::int64_t>(sum);
}

std::string_view bytes_of(sqlite3_stmt* statement, int column) {
    const void* data = sqlite3_column_blob(statement, column);
    const int size = sqlite3_column_bytes(statement, column);
    return data == nullptr ? std::string_view()
                           : std::string_view(static_cast<const char*>(data), static_cast<std::size_t>(size));
}

}  // namespace

void Store::Close::operator()(sqlite3* database) const { sqlite3_close(database); }
void Store::Close::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }

Store::Store(std::string file, const Facts& facts, const Facts& question) : file_(std::move(file)) {
    open(true);
    if (number("SELECT count(*) FROM sqlite_schema") == 0)
        make_tables(facts);
    read_about();
    if (const std::string differ = differences(facts_, facts); !differ.empty())
        refuse(fmt::format("it holds other evaluations: {}; name another file for this plan", differ));
    run("BEGIN IMMEDIATE; DELETE FROM about WHERE part = 'question'");
    write_about(question);
    run("COMMIT");
    question_ = question;
}

Store::Store(std::string file) : file_(std::move(file)) {
    std::error_code error;
    if (!std::filesystem::exists(file_, error))
        refuse("there is no such file");
    open(false);
    if (number("SELECT count(*) FROM sqlite_schema") == 0)
        refuse("it is empty: no evaluation was begun with it");
    read_about();
}

Store::~Store() = default;

void Store::open(bool make) {
    std::error_code error;
    if (std::filesystem::is_directory(file_, error))
        refuse("it is a directory");
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | (make ? SQLITE_OPEN_CREATE : 0);
    sqlite3* database = nullptr;
    const int opened = sqlite3_open_v2(file_.c_str(), &database, flags, nullptr);
    database_.reset(database);
    if (opened != SQLITE_OK)
        fail(opened, "open");
    sqlite3_busy_timeout(database, kWaitMs);
    run("PRAGMA locking_mode = exclusive");
    if (number("SELECT count(*) FROM sqlite_schema") > 0) {
        if (number("PRAGMA application_id") != kApplication)
            refuse("it is a SQLite file, but not a store of fabricast plan");
        if (const std::int64_t format = number("PRAGMA user_version"); format != kFormat)
            refuse(fmt::format("its format is {}, this program reads {}", format, kFormat));
        const Prepared check = prepare("PRAGMA quick_check(1)");
        const int code = sqlite3_step(check.get());
        if (code != SQLITE_ROW)
            fail(code, "read");
        if (const std::string_view said = bytes_of(check.get(), 0); said != "ok")
            refuse(fmt::format("it is damaged: {}", said));
    }
    run("PRAGMA journal_mode = wal");
    run("PRAGMA synchronous = normal");
    run("BEGIN IMMEDIATE; COMMIT");  // from here on it is ours
}

void Store::make_tables(const Facts& facts) {
    run("BEGIN IMMEDIATE");
    run(kTables);
    run(fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {}", kApplication, kFormat).c_str());
    write_about(facts);
    write_about({{std::string(kStore), "digest", digest(facts)}});
    run("COMMIT");
}

void Store::write_about(const Facts& facts) {
    const Prepared put = prepare("INSERT INTO about VALUES(?, ?, ?)");
    for (const Fact& fact : facts) {
        int place = 0;
        for (const std::string* text : {&fact.part, &fact.key, &fact.value})
            sqlite3_bind_text(put.get(), ++place, text->data(), static_cast<int>(text->size()), SQLITE_STATIC);
        if (const int code = sqlite3_step(put.get()); code != SQLITE_DONE)
            fail(code, "write");
        sqlite3_reset(put.get());
    }
}

void Store::read_about() {
    const Prepared all = prepare("SELECT part, key, value FROM about ORDER BY part, key");
    std::string sum;
    int code = SQLITE_ROW;
    while ((code = sqlite3_step(all.get())) == SQLITE_ROW) {
        const auto text = [&](int column) { return std::string(bytes_of(all.get(), column)); };
        Fact fact{text(0), text(1), text(2)};
        if (fact.part == kStore)
            sum = fact.value;
        else
            (fact.part == kQuestion ? question_ : facts_).push_back(std::move(fact));
    }
    if (code != SQLITE_DONE)
        fail(code, "read");
    if (sum != digest(facts_))
        refuse("it is damaged: what it says of itself does not fit its digest");
    find_ = prepare("SELECT * FROM evaluations WHERE layout = ?");
    keep_ = prepare(
        "INSERT INTO evaluations VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        " ON CONFLICT(layout) DO UPDATE SET times = times + excluded.times");
}

Store::Prepared Store::prepare(const char* sql) {
    sqlite3_stmt* statement = nullptr;
    const int code = sqlite3_prepare_v2(database_.get(), sql, -1, &statement, nullptr);
    if (code == SQLITE_ERROR)  // a table or column is not there
        refuse(fmt::format("it is damaged: {}", sqlite3_errmsg(database_.get())));
    if (code != SQLITE_OK)
        fail(code, "read");
    return Prepared(statement);
}

void Store::run(const char* sql) {
    if (const int code = sqlite3_exec(database_.get(), sql, nullptr, nullptr, nullptr); code != SQLITE_OK)
        fail(code, "write");
}

std::int64_t Store::number(const char* sql) {
    const Prepared one = prepare(sql);
    if (const int code = sqlite3_step(one.get()); code != SQLITE_ROW)
        fail(code, "read");
    return sqlite3_column_int64(one.get(), 0);
}

Store::Row Store::row_of(sqlite3_stmt* s) {
    Row row{};
    int column = 0;
    const auto next = [&] { return sqlite3_column_int64(s, column++); };
    Evaluation& e = row.evaluation;
    auto& [fits, failure, stage, memory, capacity, step, events] = e;  // one more member: the table has to have it
    row.layout = static_cast<std::uint64_t>(next());
    row.times = next();
    fits = next() != 0;
    failure = std::string(bytes_of(s, column++));
    stage = static_cast<int>(next());
    memory = next();
    capacity = next();
    step.ps = next();
    events = static_cast<std::uint64_t>(next());
    const std::string_view bytes = bytes_of(s, column++);
    if (next() != sum_of(row.layout, e, bytes) || !read_step(bytes, step))
        refuse(fmt::format("it is damaged: the evaluation of layout {} does not fit its checksum", row.layout));
    return row;
}

void Store::bind(const Row& row) {
    const Evaluation& e = row.evaluation;
    const std::string bytes = step_bytes(e.step);
    int place = 0;
    const auto put = [&](std::int64_t value) { sqlite3_bind_int64(keep_.get(), ++place, value); };
    put(static_cast<std::int64_t>(row.layout));
    put(row.times);
    put(e.fits);
    sqlite3_bind_text(keep_.get(), ++place, e.failure.data(), static_cast<int>(e.failure.size()), SQLITE_TRANSIENT);
    put(e.stage);
    put(e.memory);
    put(e.capacity);
    put(e.step.ps);
    put(static_cast<std::int64_t>(e.events));
    sqlite3_bind_blob(keep_.get(), ++place, bytes.data(), static_cast<int>(bytes.size()), SQLITE_TRANSIENT);
    put(sum_of(row.layout, e, bytes));
}

bool Store::find(std::uint64_t layout, Evaluation& out) {
    const std::lock_guard lock(database_mutex_);
    sqlite3_reset(find_.get());
    sqlite3_bind_int64(find_.get(), 1, static_cast<std::int64_t>(layout));
    const int code = sqlite3_step(find_.get());
    if (code == SQLITE_ROW)
        out = row_of(find_.get()).evaluation;
    sqlite3_reset(find_.get());
    if (code != SQLITE_ROW && code != SQLITE_DONE)
        fail(code, "read");
    return code == SQLITE_ROW;
}

void Store::keep(std::uint64_t layout, const Evaluation& evaluation) {
    std::unique_lock lock(waiting_mutex_);
    waiting_.push_back({layout, 1, evaluation});
    if (writing_)
        return;
    writing_ = true;
    while (!waiting_.empty()) {
        const std::vector<Row> rows = std::move(waiting_);
        waiting_.clear();
        lock.unlock();
        write(rows);  // throws: this store is at its end, and writing_ stays set
        lock.lock();
    }
    writing_ = false;
}

void Store::write(const std::vector<Row>& rows) {
    const std::lock_guard lock(database_mutex_);
    run("BEGIN IMMEDIATE");
    for (const Row& row : rows) {
        bind(row);
        const int code = sqlite3_step(keep_.get());
        sqlite3_reset(keep_.get());
        if (code != SQLITE_DONE)
            fail(code, "write");
    }
    run("COMMIT");
}

std::uint64_t Store::size() {
    const std::lock_guard lock(database_mutex_);
    return static_cast<std::uint64_t>(number("SELECT count(*) FROM evaluations"));
}

std::uint64_t Store::repeats() {
    const std::lock_guard lock(database_mutex_);
    return static_cast<std::uint64_t>(number("SELECT coalesce(sum(times - 1), 0) FROM evaluations"));
}

void Store::take(Store& other) {
    const std::lock_guard lock(database_mutex_);
    const Prepared all = other.prepare("SELECT * FROM evaluations ORDER BY layout");
    run("BEGIN IMMEDIATE");
    int code = SQLITE_ROW;
    while ((code = sqlite3_step(all.get())) == SQLITE_ROW) {
        const Row row = other.row_of(all.get());
        sqlite3_reset(find_.get());
        sqlite3_bind_int64(find_.get(), 1, static_cast<std::int64_t>(row.layout));
        const bool both = sqlite3_step(find_.get()) == SQLITE_ROW;
        const bool equal = both && sqlite3_column_int64(find_.get(), 10) == sqlite3_column_int64(all.get(), 10);
        sqlite3_reset(find_.get());
        if (both && !equal)
            refuse(fmt::format("{} has another result for layout {}: the programs that made them differ", other.file_,
                               row.layout));
        if (both)
            continue;
        bind(row);
        const int kept = sqlite3_step(keep_.get());
        sqlite3_reset(keep_.get());
        if (kept != SQLITE_DONE)
            fail(kept, "write");
    }
    if (code != SQLITE_DONE)
        other.fail(code, "read");
    run("COMMIT");
}

void Store::fail(int code, const char* doing) {
    const int system = !database_ ? 0 : sqlite3_system_errno(database_.get());
    const std::string said = !database_ ? sqlite3_errstr(code) : sqlite3_errmsg(database_.get());
    const auto reason = [&](const std::string& text) {
        return system != 0 ? fmt::format("{} ({})", text, std::strerror(system)) : text;
    };
    switch (code & 0xff) {
        case SQLITE_BUSY:
        case SQLITE_LOCKED: refuse("another process has it open; one at a time writes a store");
        case SQLITE_FULL:
            refuse("no room is left on the disk; what was evaluated is kept up to here: make room and ask again");
        case SQLITE_NOTADB:
        case SQLITE_FORMAT: refuse("it is not a store of fabricast plan");
        case SQLITE_CORRUPT: refuse(fmt::format("it is damaged: {}", said));
        case SQLITE_CANTOPEN: refuse(reason("it cannot be opened"));
        case SQLITE_READONLY: refuse(reason("it is read-only"));
        case SQLITE_PERM: refuse(reason("it may not be opened"));
        case SQLITE_IOERR:
            if (sqlite3_extended_errcode(database_.get()) == SQLITE_IOERR_WRITE)
                refuse(reason(
                    "cannot write it: a full disk, a quota or a limit on the size of files; what was evaluated is kept "
                    "up to here: make room and ask again"));
            refuse(reason(fmt::format("cannot {} it: {}", doing, said)));
        default: refuse(reason(fmt::format("cannot {} it: {}", doing, said)));
    }
}

void Store::refuse(const std::string& why) { throw ScenarioError(fmt::format("{}: {}", file_, why)); }

}  // namespace fabricast::plan
