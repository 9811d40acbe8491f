// Internal: script text -> statements of raw words (quotes and `$` still in them).
#pragma once

#include <string>
#include <vector>

namespace fabricast::import {

struct Statement {
    std::vector<std::string> words;
    std::string end;       ///< what ended it: ";" (also newline), "&&", "||", "|", ";;", ")", "key" (a reserved word)
    std::string document;  ///< here-document
    bool literal = false;  ///< its delimiter was quoted: no expansion
    int line = 0;
};

std::vector<Statement> lex_shell(const std::string& text);

/// Position after the closing quote, bracket or backquote of what opens at `at`.
std::size_t skip_quoted(const std::string& text, std::size_t at);

}  // namespace fabricast::import
