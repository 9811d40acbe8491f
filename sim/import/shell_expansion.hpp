// Internal: what a word of a shell becomes. Variables, defaults, arrays, arithmetic on integers, quotes and splitting.
// Whatever is not known stays with its `$`.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace fabricast::import {

class ShellExpansion {
public:
    using Fields = std::vector<std::string>;

    ShellExpansion(std::string file, const std::map<std::string, std::string>& environment, Fields positional);

    std::optional<std::string> value(const std::string& name) const;  ///< of an array its first element
    static std::string joined(const Fields& fields);
    /// The right side of an assignment is not split.
    Fields expand_assignment(const std::string& raw);
    Fields expand(const std::string& raw);
    /// Expands what begins with `$` at `at`; returns the position behind it.
    std::size_t dollar(const std::string& raw, std::size_t at, std::vector<Fields>& out);
    std::string arithmetic(const std::string& text);

protected:
    std::string file_;
    Fields positional_;
    std::map<std::string, Fields> values_;
    bool unset_is_empty_ = false;  ///< inside tests an unset variable is the empty text

private:
    template <typename Push>
    void add(const Fields& fields, bool quoted, std::string& field, bool& has, const Push& push) const;
    /// What stands in ${...}.
    Fields parameter(const std::string& body);
    Fields defaulted(const std::string& name, const std::string& rest, std::size_t skip, bool missing,
                     const std::optional<Fields>& found);
    std::optional<Fields> look_up(const std::string& name) const;
    static void blanks(const std::string& text, std::size_t& at);
    std::optional<std::int64_t> sum(const std::string& text, std::size_t& at);
    std::optional<std::int64_t> product(const std::string& text, std::size_t& at);
    std::optional<std::int64_t> atom(const std::string& text, std::size_t& at);

    bool splitting_ = true;
};

}  // namespace fabricast::import
