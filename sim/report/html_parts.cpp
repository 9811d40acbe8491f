#include "sim/report/html_parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "sim/report/embedded_text.hpp"
#include "sim/report/text.hpp"

namespace fabricast::report {

std::string escape(std::string_view text) {
    std::string out;
    for (const char c : text) {
        switch (c) {
            case '&': out += "&amp;"; break;
            case '<': out += "&lt;"; break;
            case '>': out += "&gt;"; break;
            case '"': out += "&quot;"; break;
            default: out += c;
        }
    }
    return out;
}

Json checked_result(const std::string& text) {
    Json result = Json::parse(text, nullptr, false);
    if (!result.is_object() || word(result, "/program") != "fabricast" || number(result, "/schema_version") != 1)
        throw std::invalid_argument("not a result of fabricast in schema version 1");
    return result;
}

const Json& at(const Json& json, const char* path) {
    static const Json none;
    const Json::json_pointer pointer(path);
    return json.contains(pointer) ? json.at(pointer) : none;
}

double number(const Json& json, const char* path) {
    const Json& value = at(json, path);
    return value.is_number() ? value.get<double>() : 0;
}

std::string word(const Json& json, const char* path) {
    const Json& value = at(json, path);
    return value.is_string() ? value.get<std::string>() : std::string();
}

HtmlTable::HtmlTable(std::vector<std::string> columns, bool stacks) : columns_(std::move(columns)), stacks_(stacks) {}

void HtmlTable::row(const std::vector<std::string>& cells) {
    rows_ += "<tr>";
    for (std::size_t i = 0; i < cells.size() && i < columns_.size(); ++i) {
        const bool right = columns_[i].starts_with('+');
        const std::string head = columns_[i].substr(right ? 1 : 0);
        rows_ += right ? "<td class=n" : "<td";
        if (stacks_ && i > 0 && !head.empty() && !cells[i].empty())
            rows_ += " data-head=\"" + escape(head) + "\"";
        rows_ += ">" + escape(cells[i]);
    }
    rows_ += "\n";
}

std::string HtmlTable::finish() const {
    std::string out = fmt::format("<div class=wide><table{}><thead><tr>", stacks_ ? " class=stack" : "");
    for (const std::string& column : columns_) {
        const bool right = column.starts_with('+');
        out += (right ? "<th class=n>" : "<th>") + escape(column.substr(right ? 1 : 0));
    }
    return out + "</thead><tbody>\n" + rows_ + "</tbody></table></div>\n";
}

std::string bar_row(const std::string& name, const std::vector<Part>& parts, const std::string& figure, double mark) {
    std::string out = fmt::format(
        "<span class=name>{}</span><span class=bar><span class=track style=\"display:block\">", escape(name));
    for (const Part& part : parts) {
        out += fmt::format("<i class=\"{}\" style=\"left:{:.3f}%;width:{:.3f}%\" title=\"{}\"></i>", part.css,
                           part.begin * 100, part.length * 100, escape(part.title));
    }
    if (mark >= 0)
        out += fmt::format("<i class=full style=\"left:0;width:{:.3f}%\"></i>", mark * 100);
    return out + "</span></span><span class=n>" + escape(figure) + "</span>\n";
}

std::string account_words(const std::string& name) {
    for (std::size_t i = 0; i < kAccountCount; ++i) {
        if (account_name(static_cast<Account>(i)) == name)
            return std::string(account_text(static_cast<Account>(i)));
    }
    return name;
}

std::string cause_words(const std::string& name) {
    for (std::size_t i = 0; i < kMemoryCauseCount; ++i) {
        if (memory_cause_name(static_cast<MemoryCause>(i)) == name)
            return std::string(memory_cause_text(static_cast<MemoryCause>(i)));
    }
    return name;
}

std::vector<Part> memory_parts(const Json& stage, double scale,
                               std::vector<std::pair<std::string, std::string>>& entries) {
    std::vector<Part> parts;
    double begin = 0;
    for (const auto& [cause, bytes] : at(stage, "/parts").items()) {
        const double length = bytes.get<double>() / scale;
        const std::string css = cause == "optimizer" ? "m-optimizer" : "k-" + cause;
        if (length <= 0)
            continue;
        if (std::none_of(entries.begin(), entries.end(), [&](const auto& entry) { return entry.first == css; }))
            entries.emplace_back(css, cause_words(cause));
        parts.push_back({css, begin, length, cause_words(cause) + " " + gib(bytes.get<std::int64_t>()) + " GiB"});
        begin += length;
    }
    return parts;
}

std::string card(const std::string& figure, const std::string& what) {
    return fmt::format("<div class=card><b>{}</b><span>{}</span></div>\n", escape(figure), escape(what));
}

std::string page_begin(const std::string& title) {
    return fmt::format(
        "<!doctype html>\n<html lang=en><head><meta charset=utf-8>\n"
        "<meta name=viewport content=\"width=device-width,initial-scale=1\">\n<link rel=icon href=\"data:,\">\n"
        "<title>{} · fabricast</title>\n<style>\n{}</style></head>\n<body><main>\n",
        escape(title), embedded_text("page.css"));
}

std::string page_end(const std::string& version, const std::string& scripts) {
    return "<footer>Made by fabricast " + escape(version) + ". No network is used by this page.</footer>\n</main>\n" +
           scripts + "</body></html>\n";
}

std::string legend(const std::vector<std::pair<std::string, std::string>>& css_and_text) {
    std::string out = "<div class=legend>";
    for (const auto& [css, text] : css_and_text)
        out += fmt::format("<span><i class=\"{}\"></i>{}</span>", css, escape(text));
    return out + "</div>\n";
}

}  // namespace fabricast::report
