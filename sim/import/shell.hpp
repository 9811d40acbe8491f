// A small reader of launch scripts. It follows assignments and conditions and collects command lines; it runs nothing.
//
// Understood: comments, line continuations (also with trailing blanks), quotes, assignments (export, +=, arrays, defaults
// ${X:-d}), prefix assignments, arithmetic $(( )), [ ] and [[ ]] tests in if, case, && and ||, here-documents, source of
// files that were given. Whatever cannot be known ($(...), variables that are not set) stays in the text with its `$`.
// A condition that cannot be decided is left out with a sentence, loops are skipped.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace fabricast::import {

struct Launch {
    std::vector<std::string> words;
    std::map<std::string, std::string> variables;  ///< as they stood
    int line = 0;
};

struct ShellScript {
    std::vector<Launch> commands;  ///< everything that is not an assignment or a builtin
    std::map<std::string, std::string> variables;
    std::vector<std::pair<std::string, std::string>> documents;  ///< here-documents: target file, text
    std::vector<std::string> told;
};

/// `files`: name -> text of further scripts; `environment` counts as set; `positional` are $1, $2 ...
ShellScript read_shell(const std::string& text, const std::string& file,
                       const std::map<std::string, std::string>& files,
                       const std::map<std::string, std::string>& environment,
                       const std::vector<std::string>& positional);

/// Words of a text by blanks and quotes, without expansion.
std::vector<std::string> shell_words(const std::string& text);

}  // namespace fabricast::import
