// An XML document cut out of a text, parsed, with line numbers: log lines before and after are left out, missing
// blanks between attributes are put in (both noted), files that end early are refused with the element they end in.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <pugixml.hpp>

#include "topologies/importers/source_text.hpp"

namespace fabricast::importers {

class XmlDocument {
public:
    /// root: name of the outermost element. Throws ImportError when it is not there or the XML is broken.
    XmlDocument(const SourceText& source, std::string_view root);
    XmlDocument(const XmlDocument&) = delete;
    XmlDocument& operator=(const XmlDocument&) = delete;

    /// The outermost elements of that name; more than one only if documents are glued together.
    std::vector<pugi::xml_node> roots() const;
    std::uint32_t line_of(pugi::xml_node node) const;
    const Notes& notes() const { return notes_; }

private:
    std::string root_;
    std::string text_;  ///< what was parsed
    std::vector<std::size_t> line_starts_;
    std::uint32_t first_line_ = 1;  ///< line of the source where text_ starts
    pugi::xml_document document_;
    Notes notes_;
};

/// Offset of "<name" outside comments, npos when there is none.
std::size_t find_element(std::string_view text, std::string_view name, std::size_t from = 0);

}  // namespace fabricast::importers
