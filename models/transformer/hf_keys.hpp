// Internal: the keys of a config.json, with a record of which were read.
#pragma once

#include <initializer_list>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace fabricast::detail {

class HfKeys {
public:
    /// Throws ConfigError: not JSON (line and column), not a map, a key twice.
    HfKeys(const std::string& json, std::string file);

    bool has(std::string_view key);  ///< present and not null; counts as read
    /// The first of several spellings that is there. Throws ConfigError when none is, or the value is no whole number.
    std::int64_t integer(std::initializer_list<std::string_view> keys);
    std::int64_t integer(std::string_view key) { return integer({key}); }
    std::int64_t integer(std::string_view key, std::int64_t fallback) { return has(key) ? integer(key) : fallback; }
    bool flag(std::string_view key, bool fallback);
    std::string text(std::string_view key, std::string fallback = {});
    std::vector<std::string> texts(std::string_view key);  ///< list of strings; empty when absent
    std::vector<std::int64_t> integers(std::string_view key);

    /// Goes down into a map ("text_config") for everything that follows; keys above it stay for the list of ignored ones.
    void enter(std::string_view key);
    const nlohmann::ordered_json* map(std::string_view key);  ///< nullptr when absent

    std::vector<std::string> unread() const;
    [[noreturn]] void fail(const std::string& sentence) const;

private:
    nlohmann::ordered_json root_;
    const nlohmann::ordered_json* at_;
    std::string file_, prefix_;
    std::set<std::string, std::less<>> read_;
};

}  // namespace fabricast::detail
