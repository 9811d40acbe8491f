// A flat JSON object whose keys are known: values by key, with the line of each for messages.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "topologies/importers/source_text.hpp"

namespace fabricast::traces {

class JsonFile {
public:
    /// Throws ImportError for what is no object, and for keys that are unknown or there twice.
    JsonFile(const std::string& path, const std::vector<std::string_view>& known);
    JsonFile(const JsonFile&) = delete;
    JsonFile& operator=(const JsonFile&) = delete;
    ~JsonFile();

    bool has(std::string_view key) const;
    const nlohmann::json& at(std::string_view key) const;
    /// Throws ImportError: "file:line: key: sentence".
    [[noreturn]] void refuse(std::string_view key, const std::string& sentence) const;

    /// A number in [low, high]; `otherwise` where the key is missing.
    double number(std::string_view key, double low, double high, double otherwise) const;
    std::uint32_t whole(std::string_view key, std::uint32_t low, std::uint32_t high, std::uint32_t otherwise) const;
    bool flag(std::string_view key) const;  ///< 0, 1, true or false; false where missing
    /// One of the words; empty where the key is missing.
    std::string word(std::string_view key, const std::vector<std::string_view>& allowed) const;

private:
    std::uint32_t line_of(std::string_view key) const;
    importers::SourceText source_;
    nlohmann::json* root_;
};

}  // namespace fabricast::traces
