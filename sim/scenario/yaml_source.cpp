#include "sim/scenario/yaml_source.hpp"

#include <algorithm>
#include <sstream>
#include <string_view>

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

namespace fabricast {
namespace {

constexpr std::size_t kMaxBytes = 1 << 20;
constexpr std::size_t kMaxValues = 100'000;  // after aliases are written out

/// Turns (line, byte column) into a Place.
class Locator {
public:
    Locator(const std::string& text, const std::string& source) : text_(text), source_(source) {
        starts_.push_back(0);
        for (std::size_t i = 0; i < text.size(); ++i)
            if (text[i] == '\n')
                starts_.push_back(i + 1);
    }
    explicit Locator(const Place& fixed) : fixed_(&fixed) {}

    Place operator()(const YAML::Mark& mark) const {
        if (fixed_)
            return *fixed_;
        return at(std::max(mark.line, 0), std::max(mark.column, 0));
    }
    Place at(int line, int byte_column) const {
        if (fixed_)
            return *fixed_;
        int column = 1;
        if (static_cast<std::size_t>(line) < starts_.size()) {
            const std::size_t begin = starts_[static_cast<std::size_t>(line)];
            for (std::size_t i = begin; i < text_.size() && i < begin + static_cast<std::size_t>(byte_column); ++i)
                if ((static_cast<unsigned char>(text_[i]) & 0xC0) != 0x80)
                    ++column;
        }
        return {source_, line + 1, column};
    }

private:
    std::string_view text_;
    std::string source_;
    std::vector<std::size_t> starts_;
    const Place* fixed_ = nullptr;
};

struct Stop {};  // leaves the parser after a fatal error

class Builder final : public YAML::EventHandler {
public:
    Builder(const Locator& locate, Diagnostics& diagnostics) : locate_(locate), diagnostics_(diagnostics) {}
    Value root;

    void OnDocumentStart(const YAML::Mark&) override {}
    void OnDocumentEnd() override {}
    void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
        Value v;
        v.place = locate_(mark);
        add(std::move(v), anchor);
    }
    void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
        if (anchor >= anchors_.size() || anchors_[anchor].place.source.empty())
            fail(mark, "this alias stands inside the value it names");
        Value copy = anchors_[anchor];
        count(copy, mark);
        add(std::move(copy), 0);
    }
    void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  const std::string& text) override {
        Value v;
        v.kind = Value::Kind::scalar;
        v.text = text;
        v.quoted = tag == "!";
        v.place = locate_(mark);
        add(std::move(v), anchor);
    }
    void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                         YAML::EmitterStyle::value) override {
        open(mark, Value::Kind::list, anchor);
    }
    void OnSequenceEnd() override { close(); }
    void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                    YAML::EmitterStyle::value) override {
        open(mark, Value::Kind::map, anchor);
    }
    void OnMapEnd() override { close(); }

private:
    struct Frame {
        Value value;
        YAML::anchor_t anchor = 0;
        bool has_key = false;
        std::string key;
        Place key_place;
    };

    [[noreturn]] void fail(const YAML::Mark& mark, const std::string& sentence) {
        diagnostics_.error(locate_(mark), sentence);
        throw Stop{};
    }
    void count(const Value& v, const YAML::Mark& mark) {
        if (++values_ > kMaxValues)
            fail(mark, fmt::format("more than {} values; a scenario is smaller", kMaxValues));
        for (const Value& item : v.items)
            count(item, mark);
        for (const Member& member : v.members)
            count(member.value, mark);
    }
    void open(const YAML::Mark& mark, Value::Kind kind, YAML::anchor_t anchor) {
        Frame frame;
        frame.value.kind = kind;
        frame.value.place = locate_(mark);
        frame.anchor = anchor;
        if (!frames_.empty() && frames_.back().value.kind == Value::Kind::map && !frames_.back().has_key)
            fail(mark, "a list or a map cannot be a key; is a `]` or `}` missing?");
        frames_.push_back(std::move(frame));
    }
    void close() {
        Frame frame = std::move(frames_.back());
        frames_.pop_back();
        add(std::move(frame.value), frame.anchor);
    }
    void add(Value value, YAML::anchor_t anchor) {
        if (++values_ > kMaxValues) {
            diagnostics_.error(value.place, fmt::format("more than {} values; a scenario is smaller", kMaxValues));
            throw Stop{};
        }
        if (anchor != 0) {
            if (anchors_.size() <= anchor)
                anchors_.resize(anchor + 1);
            anchors_[anchor] = value;
        }
        if (frames_.empty()) {
            root = std::move(value);
            return;
        }
        Frame& top = frames_.back();
        if (top.value.kind == Value::Kind::list) {
            top.value.items.push_back(std::move(value));
        } else if (!top.has_key) {
            take_key(top, value);
        } else {
            top.has_key = false;
            if (value.kind == Value::Kind::empty)
                value.place = top.key_place;
            if (const Member* first = top.value.find(top.key)) {
                diagnostics_.error(top.key_place, fmt::format("key `{}` appears twice; it was given before at {}",
                                                              top.key, first->place.text()));
                return;
            }
            top.value.members.push_back({top.key, top.key_place, std::move(value)});
        }
    }
    void take_key(Frame& top, const Value& value) {
        if (value.kind != Value::Kind::scalar) {
            diagnostics_.error(value.place, "a key must be a word; here it is empty");
            throw Stop{};
        }
        if (value.text == "<<" && !value.quoted) {
            diagnostics_.error(value.place,
                               "merge keys `<<` are not supported; use `extends: FILE` or repeat the keys");
            throw Stop{};
        }
        top.has_key = true;
        top.key = value.text;
        top.key_place = value.place;
    }

    const Locator& locate_;
    Diagnostics& diagnostics_;
    std::vector<Frame> frames_;
    std::vector<Value> anchors_;
    std::size_t values_ = 0;
};

/// yaml-cpp's terse texts in words a user can act on.
std::string explain(const std::string& message) {
    struct Entry {
        std::string_view part, text;
    };
    static constexpr Entry kTexts[] = {
        {"end of map flow", "a `{` has no matching `}`"},
        {"end of sequence flow", "a `[` has no matching `]`"},
        {"end of map not found",
         "this line does not fit the indentation of the lines above, or the `:` after its key is missing"},
        {"end of sequence not found", "this line does not fit the list above; a list item starts with `- `"},
        {"illegal map value", "a second `:` in one line; put a text that holds `: ` in quotes, one key a line"},
        {"illegal block entry", "a list item `- ` cannot stand here; start the list on its own line"},
        {"illegal EOF in scalar", "a quotation mark is not closed"},
        {"illegal document indicator in scalar", "a quotation mark is not closed"},
        {"the referenced anchor is not defined", "this alias `*name` has no anchor `&name` before it"},
        {"illegal flow end", "a `]` or `}` has no matching `[` or `{`"},
        {"illegal map key", "a key cannot stand here; check the indentation"},
        {"scanning alias", "`*` starts an alias; put the value in quotes"},
        {"alias not found", "`*` starts an alias; put the value in quotes"},
        {"scanning anchor", "`&` starts an anchor; put the value in quotes"},
        {"anchor not found", "`&` starts an anchor; put the value in quotes"},
        {"unknown token", "a character that cannot start a value; put the value in quotes"},
    };
    for (const Entry& entry : kTexts)
        if (message.find(entry.part) != std::string::npos)
            return fmt::format("not valid YAML: {}", entry.text);
    return fmt::format("not valid YAML: {}", message);
}

void run_parser(const std::string& text, const Locator& locate, Diagnostics& diagnostics, Value& root) {
    Builder builder(locate, diagnostics);
    try {
        std::istringstream stream(text);
        YAML::Parser parser(stream);
        if (parser.HandleNextDocument(builder)) {
            root = builder.root;
            Builder second(locate, diagnostics);
            if (parser.HandleNextDocument(second))
                diagnostics.error(second.root.place, "a second document starts here; a scenario file holds one");
        }
    } catch (const Stop&) {
        root = builder.root;
    } catch (const YAML::Exception& e) {
        diagnostics.error(locate(e.mark), explain(e.msg));
    }
}

/// Length of the UTF-8 character at i, or 0.
std::size_t character_length(std::string_view text, std::size_t i) {
    const auto byte = [&](std::size_t k) { return static_cast<unsigned char>(text[k]); };
    const unsigned char c = byte(i);
    std::size_t n = c < 0x80 ? 1 : c >= 0xC2 && c < 0xE0 ? 2 : (c & 0xF0) == 0xE0 ? 3 : c >= 0xF0 && c < 0xF5 ? 4 : 0;
    if (n == 0 || i + n > text.size())
        return 0;
    for (std::size_t k = 1; k < n; ++k)
        if ((byte(i + k) & 0xC0) != 0x80)
            return 0;
    if ((c == 0xE0 && byte(i + 1) < 0xA0) || (c == 0xF0 && byte(i + 1) < 0x90) || (c == 0xED && byte(i + 1) >= 0xA0))
        return 0;
    return n;
}

/// False after an error that makes parsing useless.
bool check_text(const std::string& text, const Locator& locate, const std::string& source, Diagnostics& diagnostics) {
    if (text.size() > kMaxBytes) {
        diagnostics.error({source, 1, 1}, fmt::format("the file has {} bytes; a scenario has at most {} (1 MiB)",
                                                      text.size(), kMaxBytes));
        return false;
    }
    int line = 0;
    std::size_t start = 0;
    bool indent = true;
    for (std::size_t i = 0; i < text.size();) {
        const auto c = static_cast<unsigned char>(text[i]);
        const int column = static_cast<int>(i - start);
        const std::size_t n = character_length(text, i);
        if (n == 0 || (c < 0x20 && c != '\n' && c != '\r' && c != '\t') || c == 0x7F) {
            diagnostics.error(locate.at(line, column),
                              n == 0 ? fmt::format("byte 0x{:02x} is not UTF-8; save the scenario as UTF-8 text", c)
                                     : fmt::format("byte 0x{:02x} is not text; this is not a scenario file", c));
            return false;
        }
        if (c == '\t' && indent) {
            const std::size_t next = text.find_first_not_of(" \t\r", i);
            if (next != std::string::npos && text[next] != '\n' && text[next] != '#') {
                diagnostics.error(locate.at(line, column), "a tab in the indentation; YAML wants spaces");
                return false;
            }
        }
        if (c != ' ' && c != '\t')
            indent = false;
        i += n;
        if (c == '\n') {
            ++line;
            start = i;
            indent = true;
        }
    }
    return true;
}

}  // namespace

const Member* Value::find(const std::string& key) const {
    for (const Member& member : members)
        if (member.key == key)
            return &member;
    return nullptr;
}
Member* Value::find(const std::string& key) {
    for (Member& member : members)
        if (member.key == key)
            return &member;
    return nullptr;
}

std::string Value::what() const {
    switch (kind) {
        case Kind::empty: return "empty";
        case Kind::scalar: return fmt::format("`{}`", text);
        case Kind::list: return "a list";
        case Kind::map: return "a map";
    }
    return {};
}

Value parse_yaml(const std::string& text, const std::string& source, Diagnostics& diagnostics) {
    const std::string body = text.starts_with("\xEF\xBB\xBF") ? text.substr(3) : text;  // byte order mark
    Value root;
    root.place = {source, 1, 1};
    const Locator locate(body, source);
    if (check_text(body, locate, source, diagnostics))
        run_parser(body, locate, diagnostics, root);
    return root;
}

Value parse_yaml_value(const std::string& text, const Place& place, Diagnostics& diagnostics) {
    Value root;
    root.place = place;
    const Locator locate(place);
    if (check_text(text, locate, place.source, diagnostics))
        run_parser(text, locate, diagnostics, root);
    return root;
}

}  // namespace fabricast
