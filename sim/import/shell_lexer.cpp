#include "sim/import/shell_lexer.hpp"

#include <algorithm>
#include <cctype>
#include <set>
#include <string_view>

namespace fabricast::import {
namespace {

const std::set<std::string_view> kAlone = {"if", "then", "elif", "else", "do", "while", "until", "{", "}"};

std::size_t skip_brackets(const std::string& text, std::size_t at, char open, char close) {
    int depth = 0;
    while (at < text.size()) {
        const char c = text[at];
        if (c == '\'' || c == '"' || c == '`') {
            at = skip_quoted(text, at);
            continue;
        }
        if (c == '\\') {
            at += 2;
            continue;
        }
        if (c == '#' && open == '(' && (at == 0 || std::isspace(static_cast<unsigned char>(text[at - 1])))) {
            at = std::min(text.find('\n', at), text.size());
            continue;
        }
        depth += c == open ? 1 : c == close ? -1 : 0;
        ++at;
        if (depth == 0)
            return at;
    }
    return text.size();
}

class Lexer {
public:
    explicit Lexer(const std::string& text) : text_(text) {}

    std::vector<Statement> run() {
        while (at_ < text_.size())
            step();
        end_statement(";");
        return std::move(out_);
    }

private:
    void step() {
        const char c = text_[at_];
        if (c == '\\') {
            std::size_t end = at_ + 1;
            while (end < text_.size() && (text_[end] == ' ' || text_[end] == '\t'))
                ++end;
            if (end >= text_.size() || text_[end] == '\n') {
                end_word();
                at_ = std::min(end + 1, text_.size());
                ++line_;
                return;
            }
            word_ += text_.substr(at_, 2);
            at_ += 2;
        } else if (c == '\'' || c == '"' || c == '`') {
            take(skip_quoted(text_, at_));
        } else if (c == '$' && at_ + 1 < text_.size() && (text_[at_ + 1] == '(' || text_[at_ + 1] == '{')) {
            const char open = text_[at_ + 1];
            take(skip_brackets(text_, at_ + 1, open, open == '(' ? ')' : '}'));
        } else if (c == '#' && word_.empty()) {
            at_ = std::min(text_.find('\n', at_), text_.size());
        } else if (c == '\n') {
            ++at_;
            end_statement(";");
            ++line_;
            if (!delimiter_.empty())
                read_document();
        } else if (c == ' ' || c == '\t' || c == '\r') {
            ++at_;
            end_word();
        } else {
            symbol(c);
        }
    }

    void symbol(char c) {
        const bool twice = at_ + 1 < text_.size() && text_[at_ + 1] == c;
        if (c == '(') {
            if (!word_.empty() && word_.back() == '=') {
                take(skip_brackets(text_, at_, '(', ')'));
            } else if (twice && word_.empty()) {  // (( arithmetic ))
                at_ = skip_brackets(text_, at_, '(', ')');
            } else {
                word_.clear();  // a function's name, or a subshell
                at_ += at_ + 1 < text_.size() && text_[at_ + 1] == ')' ? 2 : 1;
            }
        } else if (in_test_ && (c == '&' || c == '|') && twice) {
            end_word();
            words_.push_back(std::string(2, c));
            at_ += 2;
        } else if (c == ';') {
            at_ += twice ? 2 : 1;
            end_statement(twice ? ";;" : ";");
        } else if (c == '&' || c == '|') {
            at_ += twice ? 2 : 1;
            end_statement(twice ? std::string(2, c) : std::string(c == '|' ? "|" : ";"));
        } else if (c == ')') {
            ++at_;
            end_statement(")");
        } else if (c == '<' && twice && !in_test_) {
            here_document();
        } else if ((c == '>' || c == '<') && !in_test_) {
            redirection();
        } else {
            word_ += c;
            ++at_;
        }
    }

    void redirection() {
        if (std::all_of(word_.begin(), word_.end(), [](unsigned char d) { return std::isdigit(d); }))
            word_.clear();
        end_word();
        ++at_;
        while (at_ < text_.size() && text_[at_] == '>')
            ++at_;
        if (at_ < text_.size() && text_[at_] == '&') {
            ++at_;
            while (at_ < text_.size() && std::isalnum(static_cast<unsigned char>(text_[at_])))
                ++at_;
            return;
        }
        words_.emplace_back(">");
    }

    void here_document() {
        at_ += 2;
        if (at_ < text_.size() && text_[at_] == '-')
            ++at_;
        while (at_ < text_.size() && text_[at_] == ' ')
            ++at_;
        while (at_ < text_.size() && !std::isspace(static_cast<unsigned char>(text_[at_])) && text_[at_] != '>' &&
               text_[at_] != ';') {
            literal_ = literal_ || text_[at_] == '\'' || text_[at_] == '"' || text_[at_] == '\\';
            if (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_')
                delimiter_ += text_[at_];
            ++at_;
        }
    }

    void read_document() {
        std::string body;
        while (at_ < text_.size()) {
            const std::size_t end = std::min(text_.find('\n', at_), text_.size());
            std::string line = text_.substr(at_, end - at_);
            at_ = std::min(end + 1, text_.size());
            ++line_;
            std::string bare = line;
            bare.erase(0, std::min(bare.find_first_not_of(" \t"), bare.size()));
            if (bare == delimiter_)
                break;
            body += line + "\n";
        }
        if (!out_.empty()) {
            out_.back().document = std::move(body);
            out_.back().literal = literal_;
        }
        delimiter_.clear();
        literal_ = false;
    }

    void take(std::size_t end) {
        const std::string piece = text_.substr(at_, end - at_);
        line_ += static_cast<int>(std::count(piece.begin(), piece.end(), '\n'));
        word_ += piece;
        at_ = end;
    }

    void end_word() {
        if (word_.empty())
            return;
        if (words_.empty())
            start_line_ = line_;
        if (word_ == "[[")
            in_test_ = true;
        if (word_ == "]]")
            in_test_ = false;
        words_.push_back(std::move(word_));
        word_.clear();
        if (words_.size() == 1 && kAlone.contains(words_[0]))
            emit("key");
        else if (words_.size() > 2 && words_[0] == "case" && words_.back() == "in")
            emit("key");
    }

    void end_statement(const std::string& end) {
        end_word();
        if (!words_.empty() || end == ";;" || end == ")")
            emit(end);
    }

    void emit(const std::string& end) {
        Statement s;
        s.words = std::move(words_);
        s.end = end;
        s.line = start_line_;
        out_.push_back(std::move(s));
        words_.clear();
    }

    const std::string& text_;
    std::size_t at_ = 0;
    std::string word_, delimiter_;
    std::vector<std::string> words_;
    std::vector<Statement> out_;
    bool in_test_ = false, literal_ = false;
    int line_ = 1, start_line_ = 1;
};

}  // namespace

std::size_t skip_quoted(const std::string& text, std::size_t at) {
    const char quote = text[at++];
    while (at < text.size()) {
        if (text[at] == quote)
            return at + 1;
        if (quote != '\'' && text[at] == '\\')
            ++at;
        else if (quote == '"' && text[at] == '$' && at + 1 < text.size() &&
                 (text[at + 1] == '(' || text[at + 1] == '{')) {
            at = skip_brackets(text, at + 1, text[at + 1], text[at + 1] == '(' ? ')' : '}');
            continue;
        }
        ++at;
    }
    return text.size();
}

std::vector<Statement> lex_shell(const std::string& text) { return Lexer(text).run(); }

}  // namespace fabricast::import
