#include "topologies/importers/xml_document.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace fabricast::importers {
namespace {

std::size_t skip_comment(std::string_view text, std::size_t at) {
    const std::size_t end = text.find("-->", at + 4);
    return end == std::string_view::npos ? text.size() : end + 3;
}

bool is_name_end(std::string_view text, std::size_t at) {
    return at >= text.size() || is_blank(text[at]) || text[at] == '>' || text[at] == '/';
}

/// Puts a blank between a closing quote and the next attribute; `put` counts them.
std::string spaced_attributes(std::string_view text, std::size_t& put) {
    std::string spaced;
    spaced.reserve(text.size());
    bool in_tag = false;
    char quote = 0;
    for (std::size_t at = 0; at < text.size(); ++at) {
        if (!in_tag && starts_with(text.substr(at, 4), "<!--")) {
            const std::size_t end = skip_comment(text, at);
            spaced += text.substr(at, end - at);
            at = end - 1;
            continue;
        }
        const char c = text[at];
        spaced += c;
        if (quote != 0) {
            if (c == quote) {
                quote = 0;
                if (at + 1 < text.size() && is_letter(text[at + 1])) {
                    spaced += ' ';
                    ++put;
                }
            }
        } else if (in_tag && (c == '"' || c == '\'')) {
            quote = c;
        } else if (c == '<') {
            in_tag = true;
        } else if (c == '>') {
            in_tag = false;
        }
    }
    return spaced;
}

/// The innermost element still open at the end, as it is written: `<pci busid="0000:0f:00.0" ...`.
std::string open_element(std::string_view text) {
    std::vector<std::string_view> open;
    for (std::size_t at = text.find('<'); at < text.size(); at = text.find('<', at)) {
        if (starts_with(text.substr(at, 4), "<!--")) {
            at = skip_comment(text, at);
            continue;
        }
        const std::size_t end = text.find('>', at);
        const std::string_view tag = text.substr(at, end == std::string_view::npos ? end : end - at);
        if (starts_with(tag, "</")) {
            if (!open.empty()) {
                open.pop_back();
            }
        } else if (end == std::string_view::npos || tag.back() != '/') {
            open.push_back(tag);
        }
        at = end == std::string_view::npos ? text.size() : end;
    }
    return open.empty() ? "" : std::string(open.back().substr(0, 60));
}

std::size_t find_closing(std::string_view text, std::string_view root) {
    const std::string closing = fmt::format("</{}>", root);
    return text.rfind(closing);
}

}  // namespace

std::size_t find_element(std::string_view text, std::string_view name, std::size_t from) {
    for (std::size_t at = text.find('<', from); at != std::string_view::npos; at = text.find('<', at)) {
        if (starts_with(text.substr(at, 4), "<!--")) {
            at = skip_comment(text, at);
            continue;
        }
        if (text.substr(at + 1, name.size()) == name && is_name_end(text, at + 1 + name.size())) {
            return at;
        }
        ++at;
    }
    return std::string_view::npos;
}

XmlDocument::XmlDocument(const SourceText& source, std::string_view root) : root_(root) {
    const std::string_view text = source.text();
    const std::size_t begin = find_element(text, root);
    if (begin == std::string_view::npos) {
        source.refuse(0, fmt::format("no <{}> element in it", root));
    }
    first_line_ = source.line_number(begin);
    const std::size_t closing = find_closing(text, root);
    const std::size_t tag_end = text.find('>', begin);
    const bool empty_element = tag_end != std::string_view::npos && text[tag_end - 1] == '/';
    if (!empty_element && (closing == std::string_view::npos || closing < begin)) {
        source.refuse(source.line_number(text.size() - 1),
                      fmt::format("the file ends inside {} ...: </{}> is missing, it was cut off",
                                  in_quotes(open_element(text.substr(begin))), root));
    }
    const std::size_t end = empty_element && (closing == std::string_view::npos || closing < begin)
                                ? tag_end + 1
                                : closing + root.size() + 3;
    for (const auto& [outside, where] : {std::pair{text.substr(0, begin), "before"}, {text.substr(end), "after"}}) {
        const std::size_t comment = outside.find("<!--");
        const std::string_view plain = trimmed(outside.substr(0, comment));
        if (!plain.empty() && !starts_with(plain, "<?xml") && !starts_with(plain, "<!DOCTYPE")) {
            notes_.push_back({NoteKind::repaired, where[0] == 'b' ? 1 : source.line_number(end),
                              fmt::format("text {} the <{}> element was left out", where, root)});
        }
    }
    std::size_t put = 0;
    text_ = spaced_attributes(text.substr(begin, end - begin), put);
    if (put > 0) {
        notes_.push_back(
            {NoteKind::repaired, first_line_, fmt::format("{} missing blanks between attributes were put in", put)});
    }
    line_starts_.push_back(0);
    for (std::size_t at = text_.find('\n'); at != std::string::npos; at = text_.find('\n', at + 1)) {
        line_starts_.push_back(at + 1);
    }
    const pugi::xml_parse_result result =
        document_.load_buffer(text_.data(), text_.size(), pugi::parse_default, pugi::encoding_utf8);
    if (!result) {
        const auto after = std::upper_bound(line_starts_.begin(), line_starts_.end(),
                                            static_cast<std::size_t>(std::max<std::ptrdiff_t>(result.offset, 0)));
        const auto line = static_cast<std::uint32_t>(after - line_starts_.begin()) + first_line_ - 1;
        const bool mismatch = result.status == pugi::status_end_element_mismatch;
        source.refuse(
            line, mismatch ? std::string(
                                 "a closing tag that does not fit: lines are missing, or two files are glued together")
                           : fmt::format("broken XML: {}", lower_case(result.description())));
    }
}

std::vector<pugi::xml_node> XmlDocument::roots() const {
    std::vector<pugi::xml_node> found;
    for (const pugi::xml_node node : document_.children(root_.c_str())) {
        found.push_back(node);
    }
    return found;
}

std::uint32_t XmlDocument::line_of(pugi::xml_node node) const {
    const std::ptrdiff_t offset = node.offset_debug();
    if (offset < 0) {
        return first_line_;
    }
    const auto after = std::upper_bound(line_starts_.begin(), line_starts_.end(), static_cast<std::size_t>(offset));
    return static_cast<std::uint32_t>(after - line_starts_.begin()) + first_line_ - 1;
}

}  // namespace fabricast::importers
