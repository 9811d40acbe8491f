// Configuration files of other programs as one kind of tree: YAML, JSON and TOML.
//
// Scalars stay text with their line. A key that appears twice is kept twice and told; the later one counts, as the
// programs have it. A record of what was read makes the list of what was not.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace fabricast::import {

/// what() is "file:line: sentence" or "file: sentence".
struct ImportError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct TreeMember;

struct Tree {
    enum class Kind { empty, scalar, list, map };
    Kind kind = Kind::empty;
    std::string text;
    bool quoted = false;
    int line = 0;
    std::string unknown;  ///< why the text has no value ("environment variable MINIBS is not set"); empty = it has one
    std::vector<Tree> items;
    std::vector<TreeMember> members;
    mutable bool read = false;

    const Tree* find(std::string_view key) const;  ///< the last of that name
    Tree* find(std::string_view key);
};

struct TreeMember {
    std::string key;
    Tree value;
};

/// Each throws ImportError. `told` receives a sentence for every key that appears twice.
Tree parse_yaml_tree(const std::string& text, const std::string& file, std::vector<std::string>& told);
Tree parse_json_tree(const std::string& text, const std::string& file, std::vector<std::string>& told);
Tree parse_toml_tree(const std::string& text, const std::string& file);

/// Typed reading by dotted path. A value that cannot be taken ("auto", a placeholder, an unresolved variable, a wrong
/// type) is told and counts as absent.
class Keys {
public:
    Keys(const Tree& root, std::string file, std::vector<std::string>& told)
        : root_(root), file_(std::move(file)), told_(told) {}

    const Tree* at(std::string_view path) const;  ///< nullptr when absent or null; marks it as read
    bool has(std::string_view path) const { return at(path) != nullptr; }
    std::optional<std::string> text(std::string_view path) const;
    std::optional<std::int64_t> integer(std::string_view path) const;
    std::optional<double> number(std::string_view path) const;
    std::optional<bool> flag(std::string_view path) const;
    bool is(std::string_view path, bool fallback = false) const { return flag(path).value_or(fallback); }
    /// Paths nobody read; a section none of whose keys was read is named as a whole.
    std::vector<std::string> unread() const;
    /// A value that is `auto`: it is told once and nullopt.
    std::string where(const Tree& value) const;

private:
    const Tree* usable(std::string_view path) const;

    const Tree& root_;
    std::string file_;
    std::vector<std::string>& told_;
};

/// A whole number as configuration files write it: 4096, 10_000, 3.0e4; nullopt for anything else.
std::optional<std::int64_t> whole_number(std::string_view text);

/// Any decimal number.
std::optional<double> real_number(std::string_view text);

/// GPU counts that comments mention ("preset for 128 H100 GPUs"): offered, never taken.
std::vector<std::int64_t> gpus_in_comments(const std::string& text);

}  // namespace fabricast::import
