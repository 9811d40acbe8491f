#include "sim/report/html_parts.hpp"

#include <fmt/format.h>

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

std::string legend(const std::vector<std::pair<std::string, std::string>>& css_and_text) {
    std::string out = "<div class=legend>";
    for (const auto& [css, text] : css_and_text)
        out += fmt::format("<span><i class=\"{}\"></i>{}</span>", css, escape(text));
    return out + "</div>\n";
}

}  // namespace fabricast::report
