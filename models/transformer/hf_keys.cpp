#include "models/transformer/hf_keys.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "models/transformer/hf_config.hpp"

namespace fabricast::detail {

namespace {

using Json = nlohmann::ordered_json;

std::string shown(const Json& value) {
    std::string text = value.dump();
    return text.size() > 40 ? text.substr(0, 37) + "..." : text;
}

}  // namespace

HfKeys::HfKeys(const std::string& json, std::string file) : at_(nullptr), file_(std::move(file)) {
    std::vector<std::set<std::string>> open;
    std::string twice;
    const auto watch = [&](int, Json::parse_event_t event, Json& parsed) {
        if (event == Json::parse_event_t::object_start)
            open.emplace_back();
        else if (event == Json::parse_event_t::object_end)
            open.pop_back();
        else if (event == Json::parse_event_t::key && !open.back().insert(parsed.get<std::string>()).second)
            twice = parsed.get<std::string>();
        return true;
    };
    try {
        root_ = Json::parse(json, watch);
    } catch (const Json::parse_error& error) {
        const std::size_t byte = std::min(error.byte > 0 ? error.byte - 1 : 0, json.size());
        const auto line = std::count(json.begin(), json.begin() + static_cast<std::ptrdiff_t>(byte), '\n') + 1;
        const std::size_t start = byte == 0 ? std::string::npos : json.rfind('\n', byte - 1);
        const std::size_t column = byte - (start == std::string::npos ? 0 : start + 1) + 1;
        throw ConfigError(fmt::format("{}:{}:{}: this is not JSON from here on", file_, line, column));
    }
    if (!root_.is_object())
        fail("a config.json is a map of keys, but this is " + shown(root_));
    if (!twice.empty())
        fail(fmt::format("key `{}` appears twice; which one counts is not for the reader to choose", twice));
    at_ = &root_;
}

void HfKeys::fail(const std::string& sentence) const { throw ConfigError(fmt::format("{}: {}", file_, sentence)); }

bool HfKeys::has(std::string_view key) {
    const auto found = at_->find(std::string(key));
    if (found == at_->end())
        return false;
    read_.insert(prefix_ + std::string(key));
    return !found->is_null();
}

std::int64_t HfKeys::integer(std::initializer_list<std::string_view> keys) {
    for (const std::string_view key : keys) {
        if (!has(key))
            continue;
        const Json& value = at_->at(std::string(key));
        if (!value.is_number_integer() || value.get<std::int64_t>() < 0 || value.get<std::int64_t>() > 1'000'000'000)
            fail(fmt::format("{}{} is {}; it needs a whole number from 0", prefix_, key, shown(value)));
        return value.get<std::int64_t>();
    }
    std::string names;
    for (const std::string_view key : keys)
        names += fmt::format("{}`{}{}`", names.empty() ? "" : " or ", prefix_, key);
    fail(fmt::format("{} is missing", names));
}

bool HfKeys::flag(std::string_view key, bool fallback) {
    if (!has(key))
        return fallback;
    const Json& value = at_->at(std::string(key));
    if (!value.is_boolean())
        fail(fmt::format("{}{} is {}; it needs true or false", prefix_, key, shown(value)));
    return value.get<bool>();
}

std::string HfKeys::text(std::string_view key, std::string fallback) {
    if (!has(key))
        return fallback;
    const Json& value = at_->at(std::string(key));
    if (!value.is_string())
        fail(fmt::format("{}{} is {}; it needs a text", prefix_, key, shown(value)));
    return value.get<std::string>();
}

std::vector<std::string> HfKeys::texts(std::string_view key) {
    std::vector<std::string> out;
    if (!has(key))
        return out;
    const Json& value = at_->at(std::string(key));
    for (const Json& item : value) {
        if (!item.is_string())
            fail(fmt::format("{}{} holds {}; it needs texts", prefix_, key, shown(item)));
        out.push_back(item.get<std::string>());
    }
    return out;
}

std::vector<std::int64_t> HfKeys::integers(std::string_view key) {
    std::vector<std::int64_t> out;
    if (!has(key))
        return out;
    const Json& value = at_->at(std::string(key));
    for (const Json& item : value) {
        if (!item.is_number_integer())
            fail(fmt::format("{}{} holds {}; it needs whole numbers", prefix_, key, shown(item)));
        out.push_back(item.get<std::int64_t>());
    }
    return out;
}

const Json* HfKeys::map(std::string_view key) {
    if (!has(key))
        return nullptr;
    const Json& value = at_->at(std::string(key));
    if (!value.is_object())
        fail(fmt::format("{}{} is {}; it needs a map", prefix_, key, shown(value)));
    return &value;
}

void HfKeys::enter(std::string_view key) {
    if (const Json* inner = map(key)) {
        at_ = inner;
        prefix_ += std::string(key) + ".";
    }
}

std::vector<std::string> HfKeys::unread() const {
    std::vector<std::string> out;
    for (const auto& [key, value] : root_.items())
        if (!read_.contains(key))
            out.push_back(key);
    if (at_ != &root_) {
        for (const auto& [key, value] : at_->items())
            if (!read_.contains(prefix_ + key))
                out.push_back(prefix_ + key);
    }
    return out;
}

}  // namespace fabricast::detail
