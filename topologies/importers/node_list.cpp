#include "topologies/importers/node_list.hpp"

#include <utility>

#include <fmt/format.h>

#include "topologies/importers/import_error.hpp"
#include "topologies/importers/source_text.hpp"

namespace fabricast::importers {
namespace {

class Expander {
public:
    Expander(std::string_view list, const std::string& where, unsigned line)
        : list_(list), where_(where), line_(line) {}

    std::vector<std::string> expand() {
        std::size_t start = 0;
        bool in_bracket = false;
        for (std::size_t at = 0; at <= list_.size(); ++at) {
            const char c = at < list_.size() ? list_[at] : ',';
            if (c == '[') {
                if (in_bracket) {
                    refuse("a bracket inside a bracket");
                }
                in_bracket = true;
            } else if (c == ']') {
                if (!in_bracket) {
                    refuse("a closing bracket without an opening one");
                }
                in_bracket = false;
            } else if (at == list_.size() && in_bracket) {
                refuse("the closing bracket is missing");
            } else if (c == ',' && !in_bracket) {
                expand_item(trimmed(list_.substr(start, at - start)));
                start = at + 1;
            }
        }
        return std::move(names_);
    }

private:
    [[noreturn]] void refuse(const std::string& what) const {
        throw ImportError(where_, line_, fmt::format("node list {}: {}", in_quotes(list_), what));
    }

    void expand_item(std::string_view item) {
        if (item.empty()) {
            refuse("a name is missing between commas");
        }
        std::vector<std::string> built = {""};
        for (std::size_t at = 0; at < item.size();) {
            const std::size_t open = std::min(item.find('[', at), item.size());
            for (std::string& name : built) {
                name += item.substr(at, open - at);
            }
            if (open == item.size()) {
                break;
            }
            const std::size_t close = item.find(']', open);  // there: brackets were counted
            const std::vector<std::string> numbers = bracket(item.substr(open + 1, close - open - 1));
            if (built.size() * numbers.size() + names_.size() > kMostListedNodes) {
                refuse(fmt::format("more than {} names", kMostListedNodes));
            }
            std::vector<std::string> longer;
            longer.reserve(built.size() * numbers.size());
            for (const std::string& name : built) {
                for (const std::string& number : numbers) {
                    longer.push_back(name + number);
                }
            }
            built = std::move(longer);
            at = close + 1;
        }
        for (std::string& name : built) {
            if (name.find_first_of(" \t\n=\"'") != std::string::npos) {
                refuse(fmt::format("{} is no node name", in_quotes(name)));
            }
            names_.push_back(std::move(name));
        }
    }

    std::vector<std::string> bracket(std::string_view inside) const {
        std::vector<std::string> numbers;
        while (true) {
            const std::string_view item = trimmed(inside.substr(0, inside.find(',')));
            const std::size_t dash = item.find('-');
            const std::string_view first = item.substr(0, dash);
            const auto low = to_unsigned(first);
            const auto high = dash == std::string_view::npos ? low : to_unsigned(item.substr(dash + 1));
            if (!low || !high) {
                refuse(fmt::format("{} in the bracket; a number or a range such as 0-3 is expected", in_quotes(item)));
            }
            if (*high < *low) {
                refuse(fmt::format("range {} runs downwards", in_quotes(item)));
            }
            if (*high - *low >= kMostListedNodes || numbers.size() + (*high - *low) > kMostListedNodes) {
                refuse(fmt::format("more than {} names", kMostListedNodes));
            }
            const int width = first.size() > 1 && first[0] == '0' ? static_cast<int>(first.size()) : 1;
            for (std::uint64_t number = *low;; ++number) {
                numbers.push_back(fmt::format("{:0{}}", number, width));
                if (number == *high) {
                    break;
                }
            }
            if (inside.find(',') == std::string_view::npos) {
                return numbers;
            }
            inside.remove_prefix(inside.find(',') + 1);
        }
    }

    std::string_view list_;
    const std::string& where_;
    unsigned line_;
    std::vector<std::string> names_;
};

}  // namespace

std::vector<std::string> expand_node_list(std::string_view list, const std::string& where, unsigned line) {
    return Expander(trimmed(list), where, line).expand();
}

}  // namespace fabricast::importers
