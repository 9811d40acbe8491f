#include "sim/traces/json_file.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace fabricast::traces {

using nlohmann::json;

JsonFile::JsonFile(const std::string& path, const std::vector<std::string_view>& known)
    : source_(importers::SourceText::from_file(path)), root_(nullptr) {
    std::set<std::string> seen;
    std::string twice;
    int depth = 0;
    const json::parser_callback_t watch = [&](int, json::parse_event_t event, json& parsed) {
        depth += event == json::parse_event_t::object_start ? 1 : event == json::parse_event_t::object_end ? -1 : 0;
        if (event == json::parse_event_t::key && depth == 1 && !seen.insert(parsed.get<std::string>()).second)
            twice = parsed.get<std::string>();
        return true;
    };
    auto root = std::make_unique<json>();
    try {
        *root = json::parse(source_.text(), watch);
    } catch (const json::parse_error& error) {
        const std::size_t at = std::min(error.byte > 0 ? error.byte - 1 : 0, source_.text().size());
        source_.refuse(source_.line_number(at), "no JSON from here on");
    }
    if (!root->is_object())
        source_.refuse(1, "a JSON object, {\"key\": value, ...}, is expected");
    if (!twice.empty())
        source_.refuse(line_of(twice), fmt::format("key {} is there twice", importers::in_quotes(twice)));
    for (const auto& [key, value] : root->items()) {
        if (std::find(known.begin(), known.end(), key) == known.end()) {
            source_.refuse(line_of(key), fmt::format("key {} is unknown{}", importers::in_quotes(key),
                                                     importers::did_you_mean(key, known)));
        }
    }
    root_ = root.release();
}

JsonFile::~JsonFile() { delete root_; }

std::uint32_t JsonFile::line_of(std::string_view key) const {
    const std::size_t at = source_.text().find(fmt::format("\"{}\"", key));
    return at == std::string_view::npos ? 0 : source_.line_number(at);
}

bool JsonFile::has(std::string_view key) const { return root_->contains(std::string(key)); }
const json& JsonFile::at(std::string_view key) const { return root_->at(std::string(key)); }

void JsonFile::refuse(std::string_view key, const std::string& sentence) const {
    source_.refuse(line_of(key), fmt::format("{}: {}", key, sentence));
}

double JsonFile::number(std::string_view key, double low, double high, double otherwise) const {
    if (!has(key))
        return otherwise;
    const json& value = at(key);
    if (!value.is_number() || !(value.get<double>() >= low && value.get<double>() <= high))
        refuse(key,
               fmt::format("{}: a number from {} to {} is expected", importers::in_quotes(value.dump()), low, high));
    return value.get<double>();
}

std::uint32_t JsonFile::whole(std::string_view key, std::uint32_t low, std::uint32_t high,
                              std::uint32_t otherwise) const {
    const double value = number(key, low, high, otherwise);
    if (value != std::floor(value))
        refuse(key, fmt::format("{}: a whole number is expected", value));
    return static_cast<std::uint32_t>(value);
}

bool JsonFile::flag(std::string_view key) const {
    if (!has(key))
        return false;
    const json& value = at(key);
    if (value.is_boolean())
        return value.get<bool>();
    if (!value.is_number_integer() || (value != 0 && value != 1))
        refuse(key, fmt::format("{}: 0 or 1 is expected", importers::in_quotes(value.dump())));
    return value == 1;
}

std::string JsonFile::word(std::string_view key, const std::vector<std::string_view>& allowed) const {
    if (!has(key))
        return {};
    const json& value = at(key);
    const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    if (!value.is_string() || std::find(allowed.begin(), allowed.end(), text) == allowed.end()) {
        refuse(key, fmt::format("{} is expected, not {}{}", fmt::join(allowed, ", "), importers::in_quotes(text),
                                importers::did_you_mean(text, allowed)));
    }
    return text;
}

}  // namespace fabricast::traces
