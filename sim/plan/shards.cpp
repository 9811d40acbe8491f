#include "sim/plan/shards.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>

#include <fmt/format.h>

#include "sim/scenario/calibration.hpp"

namespace fabricast::plan {
namespace {

namespace fs = std::filesystem;

std::string value_of(const Facts& facts, std::string_view part, std::string_view key) {
    const auto found =
        std::find_if(facts.begin(), facts.end(), [&](const Fact& f) { return f.part == part && f.key == key; });
    return found == facts.end() ? std::string() : found->value;
}

std::string absolute(const std::string& file) {
    return file.empty() ? file : fs::absolute(file).lexically_normal().string();
}

bool whole_number(std::string_view text, std::uint32_t& out) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
    return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

// plan.db.0, plan.db.1 ... that are beside plan.db, in this order.
std::vector<std::string> beside(const std::string& store) {
    const fs::path path(store);
    const std::string begin = path.filename().string() + ".";
    const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
    std::map<std::uint32_t, std::string> found;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error)) {
        const std::string name = entry.path().filename().string();
        std::uint32_t shard = 0;
        if (name.starts_with(begin) && whole_number(std::string_view(name).substr(begin.size()), shard))
            found[shard] = shard_store(store, shard);
    }
    if (error)
        throw ScenarioError(fmt::format("{}: cannot read the folder: {}", folder.string(), error.message()));
    std::vector<std::string> out;
    for (auto& [shard, file] : found)
        out.push_back(std::move(file));
    return out;
}

Facts without(const Facts& facts, std::string_view part, std::string_view key = {}) {
    Facts out;
    for (const Fact& fact : facts) {
        if (fact.part != part || (!key.empty() && fact.key != key))
            out.push_back(fact);
    }
    return out;
}

}  // namespace

std::string shard_store(const std::string& store, std::uint32_t shard) { return fmt::format("{}.{}", store, shard); }

Facts question_of(const PlanRequest& request) {
    Facts out;
    const auto add = [&](std::string key, std::string value) {
        out.push_back({"question", std::move(key), std::move(value)});
    };
    const auto add_list = [&](std::string_view key, const std::vector<std::string>& list) {
        for (std::size_t i = 0; i < list.size(); ++i)
            add(fmt::format("{} {:04}", key, i), list[i]);
    };
    if (request.source.calibration)
        add("calibration", absolute(request.source.calibration->file));
    add("file", request.source.text.empty() ? absolute(request.source.file) : request.source.file);
    add("prune", request.search.prune ? "yes" : "no");
    add_list("set", request.source.overrides);
    if (!request.source.text.empty())
        add("text", request.source.text);
    add_list("what-if", request.what_ifs);
    add_list("where", request.where);
    return out;
}

PlanRequest request_of(const Facts& question) {
    PlanRequest out;
    for (const Fact& fact : question) {
        const std::string key = fact.key.substr(0, fact.key.find(' '));
        if (key == "calibration")
            out.source.calibration = std::make_shared<const Calibration>(read_calibration(fact.value));
        else if (key == "file")
            out.source.file = fact.value;
        else if (key == "prune")
            out.search.prune = fact.value == "yes";
        else if (key == "set")
            out.source.overrides.push_back(fact.value);
        else if (key == "text")
            out.source.text = fact.value;
        else if (key == "what-if")
            out.what_ifs.push_back(fact.value);
        else if (key == "where")
            out.where.push_back(fact.value);
    }
    return out;
}

Facts store_facts(const PlanSource& source, const SearchOptions& search, const std::vector<std::string>& where,
                  const std::vector<std::unique_ptr<PlanCluster>>& clusters, const PlanSpace& space) {
    Facts out = facts_of(source, clusters, space);
    if (search.shards > 0) {
        const Facts more = shard_facts(source, search, where);
        out.insert(out.end(), more.begin(), more.end());
    }
    std::sort(out.begin(), out.end());
    return out;
}

Merged merge_shards(const std::string& store, std::vector<std::string> files) {
    if (files.empty())
        files = beside(store);
    if (files.empty())
        throw ScenarioError(fmt::format("{}: no store of a shard is beside it ({}, {} ...)", store,
                                        shard_store(store, 0), shard_store(store, 1)));
    Merged out;
    std::unique_ptr<Store> whole;
    Facts first;
    for (const std::string& file : files) {
        Store part(file);
        const Facts all = without(part.facts(), "shard", "number");
        std::uint32_t number = 0, shards = 0;
        if (!whole_number(value_of(part.facts(), "shard", "number"), number) ||
            !whole_number(value_of(part.facts(), "shard", "shards"), shards) || number >= shards)
            throw ScenarioError(fmt::format("{}: it is the store of a whole plan, not of a shard", file));
        if (!whole) {
            first = all;
            out.shards = shards;
            out.there.resize(shards);
            whole = std::make_unique<Store>(store, without(all, "shard"), part.question());
            out.request = request_of(part.question());
        }
        if (const std::string differ = differences(first, all); !differ.empty())
            throw ScenarioError(fmt::format("{}: it is the shard of another plan than {}: {} (there: {})", file,
                                            files.front(), differ, files.front()));
        out.there[number] = true;
        whole->take(part);
    }
    out.request.store = store;
    out.request.search.only_known = true;
    out.request.search.parts = out.shards;
    return out;
}

std::string missing_text(const Merged& merged, const std::vector<std::uint64_t>& missing, std::string& list) {
    constexpr std::size_t kMostNamed = 12;
    std::map<std::uint32_t, std::size_t> by_shard;
    for (const std::uint64_t index : missing)
        ++by_shard[shard_of(index, merged.shards)];
    std::string text;
    list.clear();
    std::size_t named = 0;
    for (const auto& [shard, count] : by_shard) {
        list += fmt::format("{}{}", list.empty() ? "" : ",", shard);
        if (++named <= kMostNamed)
            text +=
                fmt::format("{}shard {} {} {} layout{}", text.empty() ? "" : ", ", shard,
                            merged.there[shard] ? "lacks" : "was not begun and lacks", count, count == 1 ? "" : "s");
    }
    if (named > kMostNamed)
        text += fmt::format(", and {} shards more", named - kMostNamed);
    return text;
}

}  // namespace fabricast::plan
