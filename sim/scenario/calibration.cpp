#include "sim/scenario/calibration.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "models/transformer/software.hpp"
#include "sim/scenario/calibration_keys.hpp"
#include "sim/scenario/diagnostics.hpp"
#include "sim/scenario/document.hpp"
#include "sim/scenario/nearest.hpp"
#include "sim/scenario/scenario.hpp"

namespace fabricast {
namespace {

constexpr int kVersion = 1;
constexpr std::array<std::string_view, 8> kProvenance = {"date",      "method", "devices", "driver",
                                                         "libraries", "clocks", "files",   "tool"};

/// Networks keep their hops in us, everything else is in base units.
double spec_scale(std::string_view part, const CalibrationKey& key) {
    return part == "networks" && key.unit == "us" ? 1 : key.scale;
}

class Reader {
public:
    Reader(const std::string& file, Diagnostics& diagnostics) : diagnostics_(diagnostics) { out_.file = file; }
    Calibration read(const Value& root);

private:
    using Handler = void (Reader::*)(const Member&);
    bool map(const Value& value, std::string_view what) {
        if (value.kind == Value::Kind::map)
            return true;
        error(value.place, fmt::format("{}: {} is no map of keys", what, value.what()));
        return false;
    }
    void error(const Place& place, const std::string& sentence) { diagnostics_.error(place, sentence); }
    void unknown(const Member& member, std::string_view where, const std::vector<std::string>& known) {
        error(member.place, fmt::format("{}: unknown key `{}`{}; known are {}", where, member.key,
                                        did_you_mean(member.key, known), listed(known)));
    }
    double number(const Value& value, std::string_view what, const CalibrationKey& key);
    double plain(const Value& value, std::string_view what, double least, double most);
    std::string text(const Value& value, std::string_view what);

    void read_provenance(const Member& section);
    void read_owned(const Member& section, std::string_view part, const std::vector<std::string>& owners,
                    Calibration::Owned& out);
    void read_collectives(const Member& section);
    void read_fits(const Member& section);
    void read_outliers(const Member& section);

    Diagnostics& diagnostics_;
    Calibration out_;
};

double Reader::plain(const Value& value, std::string_view what, double least, double most) {
    std::string problem = "is no number";
    const auto found = value.kind == Value::Kind::scalar ? parse_number(value.text, problem) : std::nullopt;
    if (!found) {
        error(value.place, fmt::format("{}: {} {}", what, value.what(), problem));
        return least;
    }
    if (!(*found >= least && *found <= most))
        error(value.place, fmt::format("{}: `{}` is not between {:g} and {:g}", what, value.text, least, most));
    return *found;
}

double Reader::number(const Value& value, std::string_view what, const CalibrationKey& key) {
    if (value.kind != Value::Kind::scalar) {
        error(value.place, fmt::format("{}: {} is no value", what, value.what()));
        return key.least;
    }
    std::string text = value.text;
    if (!key.unit.empty()) {
        const std::string ending = " " + std::string(key.unit);
        if (!text.ends_with(ending)) {
            error(value.place,
                  fmt::format("{}: `{}` needs the unit {}, as in `3.5 {}`", what, text, key.unit, key.unit));
            return key.least;
        }
        text.resize(text.size() - ending.size());
    }
    std::string problem;
    const auto found = parse_number(text, problem);
    if (!found) {
        error(value.place, fmt::format("{}: `{}` {}", what, value.text, problem));
        return key.least;
    }
    const double base = *found * key.scale;
    // ranges are typed in decimal, and so are values at their ends
    const double slack = 1e-9 * std::max(std::abs(key.least), std::abs(key.most));
    if (!(base >= key.least - slack && base <= key.most + slack)) {
        error(value.place,
              fmt::format("{}: `{}` is not between {:g} and {:g}{}{}", what, value.text, key.least / key.scale,
                          key.most / key.scale, key.unit.empty() ? "" : " ", key.unit));
    }
    return base;
}

std::string Reader::text(const Value& value, std::string_view what) {
    if (value.kind == Value::Kind::scalar)
        return value.text;
    error(value.place, fmt::format("{}: {} is no text", what, value.what()));
    return {};
}

void Reader::read_provenance(const Member& section) {
    if (!map(section.value, "provenance"))
        return;
    for (const Member& one : section.value.members) {
        if (std::find(kProvenance.begin(), kProvenance.end(), one.key) == kProvenance.end()) {
            unknown(one, "provenance", std::vector<std::string>(kProvenance.begin(), kProvenance.end()));
            continue;
        }
        std::vector<std::string> words;
        if (one.value.kind == Value::Kind::list) {
            for (const Value& item : one.value.items)
                words.push_back(text(item, "provenance." + one.key));
        } else {
            words.push_back(text(one.value, "provenance." + one.key));
        }
        out_.provenance.emplace_back(one.key, std::move(words));
    }
}

void Reader::read_owned(const Member& section, std::string_view part, const std::vector<std::string>& owners,
                        Calibration::Owned& out) {
    if (!map(section.value, part))
        return;
    for (const Member& owner : section.value.members) {
        const std::string path = fmt::format("{}.{}", part, owner.key);
        if (!owners.empty() && std::find(owners.begin(), owners.end(), owner.key) == owners.end()) {
            unknown(owner, part, owners);
            continue;
        }
        if (!map(owner.value, path))
            continue;
        Calibration::Values values;
        for (const Member& one : owner.value.members) {
            const CalibrationKey* key = find_calibration_key(part, one.key);
            bool has = key != nullptr;
            if (has && part == "gpus" && one.key.starts_with("attention.")) {
                GpuSpec gpu = *Catalogue::builtin().find_gpu(owner.key);
                has = calibrated_value(gpu, one.key) != nullptr;
            }
            if (!has) {
                unknown(one, path, calibration_keys(part));
                continue;
            }
            values.emplace_back(one.key, number(one.value, path + "." + one.key, *key));
        }
        out.emplace_back(owner.key, std::move(values));
    }
}

void Reader::read_collectives(const Member& section) {
    std::vector<std::string> links = {"node"}, kinds;
    for (const NetworkSpec& network : Catalogue::builtin().networks())
        links.push_back(network.name);
    for (int k = 0; k < static_cast<int>(Collective::barrier); ++k)
        kinds.emplace_back(collective_name(static_cast<Collective>(k)));
    if (!map(section.value, "collectives"))
        return;
    for (const Member& link : section.value.members) {
        if (std::find(links.begin(), links.end(), link.key) == links.end()) {
            unknown(link, "collectives", links);
            continue;
        }
        const std::string where = "collectives." + link.key;
        if (!map(link.value, where))
            continue;
        for (const Member& one : link.value.members) {
            const auto kind = find_collective(one.key);
            if (!kind || *kind == Collective::barrier) {
                unknown(one, where, kinds);
                continue;
            }
            const std::string path = where + "." + one.key;
            if (!map(one.value, path))
                continue;
            Calibration::CollectiveRow row{link.key, *kind, {}};
            for (const Member& field : one.value.members) {
                const CalibrationKey* key = find_calibration_key("collectives", field.key);
                if (key == nullptr)
                    unknown(field, path, calibration_keys("collectives"));
                else
                    (field.key == "rate" ? row.correction.rate : row.correction.latency_s) =
                        number(field.value, path + "." + field.key, *key);
            }
            out_.collectives.push_back(row);
        }
    }
}

void Reader::read_fits(const Member& section) {
    static const std::vector<std::string> keys = {"what", "points", "median", "default_median", "p10", "p90", "gpus"};
    if (section.value.kind != Value::Kind::list)
        return error(section.value.place, fmt::format("fits: {} is no list", section.value.what()));
    for (const Value& item : section.value.items) {
        if (!map(item, "fits"))
            continue;
        CalibrationFit fit;
        for (const Member& one : item.members) {
            const std::string path = "fits." + one.key;
            if (one.key == "what")
                fit.what = text(one.value, path);
            else if (one.key == "points")
                fit.points = static_cast<int>(plain(one.value, path, 1, 1e9));
            else if (one.key == "median")
                fit.median = plain(one.value, path, 0, 100);
            else if (one.key == "default_median")
                fit.default_median = plain(one.value, path, 0, 1e6);
            else if (one.key == "p10")
                fit.p10 = plain(one.value, path, 1e-3, 1e3);
            else if (one.key == "p90")
                fit.p90 = plain(one.value, path, 1e-3, 1e3);
            else if (one.key == "gpus" && one.value.kind == Value::Kind::list)
                for (const Value& count : one.value.items)
                    fit.gpus.push_back(static_cast<std::int64_t>(plain(count, path, 1, 1e9)));
            else
                unknown(one, "fits", keys);
        }
        if (fit.what.empty() || fit.points < 1 || fit.p90 < fit.p10)
            error(item.place, "fits: an entry has what, points of 1 and more, and p10 not above p90");
        out_.fits.push_back(std::move(fit));
    }
}

void Reader::read_outliers(const Member& section) {
    if (section.value.kind != Value::Kind::list)
        return error(section.value.place, fmt::format("outliers: {} is no list", section.value.what()));
    for (const Value& item : section.value.items)
        out_.outliers.push_back(text(item, "outliers"));
}

Calibration Reader::read(const Value& root) {
    static const std::vector<std::string> keys = {"calibration", "name",     "provenance", "gpus", "networks",
                                                  "collectives", "software", "host",       "fits", "outliers"};
    std::vector<std::string> gpus, networks, stacks;
    for (const GpuSpec& gpu : Catalogue::builtin().gpus())
        gpus.push_back(gpu.name);
    for (const NetworkSpec& network : Catalogue::builtin().networks())
        networks.push_back(network.name);
    for (const SoftwareFeatures& stack : software_stacks())
        stacks.push_back(stack.name);
    if (!map(root, "calibration file"))
        return out_;
    if (root.find("calibration") == nullptr) {
        error({out_.file, 0, 0}, fmt::format("no calibration file: it has no line `calibration: {}`; "
                                             "`fabricast-validate fit` writes one",
                                             kVersion));
        return out_;
    }
    for (const Member& one : root.members) {
        if (one.key == "calibration") {
            if (one.value.text != std::to_string(kVersion))
                error(one.value.place, fmt::format("calibration: version {}; this program reads version {}",
                                                   one.value.what(), kVersion));
        } else if (one.key == "name") {
            out_.name = text(one.value, "name");
        } else if (one.key == "provenance") {
            read_provenance(one);
        } else if (one.key == "gpus") {
            read_owned(one, "gpus", gpus, out_.gpus);
        } else if (one.key == "networks") {
            read_owned(one, "networks", networks, out_.networks);
        } else if (one.key == "collectives") {
            read_collectives(one);
        } else if (one.key == "software") {
            read_owned(one, "software", stacks, out_.software);
        } else if (one.key == "host") {
            read_owned(one, "host", {}, out_.hosts);
        } else if (one.key == "fits") {
            read_fits(one);
        } else if (one.key == "outliers") {
            read_outliers(one);
        } else {
            unknown(one, "calibration file", keys);
        }
    }
    return std::move(out_);
}

/// The words of a source that list_software looks for, by key.
std::string_view stack_words(std::string_view key) {
    return key == "host_per_kernel"  ? "host time per kernel"
           : key == "host_per_layer" ? "host time per layer pass"
           : key == "host_per_step"  ? "host time a step"
                                     : "share of TP traffic hidden";
}

template <typename Spec>
bool lay_over(const Calibration& calibration, std::string_view part, const Calibration::Owned& owned, Spec& spec) {
    const Calibration::Values* values = calibration.find(owned, spec.name);
    if (values == nullptr)
        return false;
    bool any = false;
    for (const auto& [key, value] : *values) {
        const CalibrationKey& entry = *find_calibration_key(part, key);
        if (double* const into = calibrated_value(spec, key)) {
            *into = value / entry.scale * spec_scale(part, entry);
            any = true;
        }
    }
    return any;
}

std::string quoted(const std::string& text) {
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\')
            out += '\\';
        out += c == '\n' || c == '\t' ? ' ' : c;
    }
    return out + "\"";
}

void write_owned(std::string& text, std::string_view part, const Calibration::Owned& owned) {
    if (owned.empty())
        return;
    text += fmt::format("{}:\n", part);
    for (const auto& [owner, values] : owned) {
        text += fmt::format("  {}:{}\n", owner, values.empty() ? " {}" : "");
        for (const auto& [key, value] : values)
            text += fmt::format("    {}: {}\n", key, calibration_value_text(part, key, value));
    }
}

}  // namespace

const Calibration::Values* Calibration::find(const Owned& part, std::string_view owner) const {
    for (const auto& [name_of_owner, values] : part) {
        if (name_of_owner == owner)
            return &values;
    }
    return nullptr;
}

const CalibrationFit* Calibration::fit(std::string_view what) const {
    for (const CalibrationFit& one : fits) {
        if (one.what == what)
            return &one;
    }
    return nullptr;
}

std::string calibration_value_text(std::string_view part, std::string_view key, double value) {
    const CalibrationKey& entry = *find_calibration_key(part, key);
    return fmt::format("{:.6g}{}{}", value / entry.scale, entry.unit.empty() ? "" : " ", entry.unit);
}

Calibration parse_calibration(const std::string& text, const std::string& file) {
    Diagnostics diagnostics;
    const Value root = parse_yaml(text, file, diagnostics);
    diagnostics.throw_if_any();
    Calibration out = Reader(file, diagnostics).read(root);
    diagnostics.throw_if_any();
    return out;
}

Calibration read_calibration(const std::string& path) {
    Diagnostics diagnostics;
    std::string text;
    read_file(path, {"--calibration " + path, 0, 0}, text, diagnostics);
    diagnostics.throw_if_any();
    return parse_calibration(text, path);
}

std::string calibration_yaml(const Calibration& c) {
    std::string text = fmt::format(
        "# Constants of one site, fitted on its own measurements. Use: fabricast run SCENARIO.yaml --calibration FILE\n"
        "calibration: {}\nname: {}\n",
        kVersion, quoted(c.name));
    if (!c.provenance.empty())
        text += "provenance:\n";
    for (const auto& [key, words] : c.provenance) {
        std::vector<std::string> items;
        for (const std::string& word : words)
            items.push_back(quoted(word));
        text += words.size() == 1 ? fmt::format("  {}: {}\n", key, items.front())
                                  : fmt::format("  {}: [{}]\n", key, fmt::join(items, ", "));
    }
    write_owned(text, "gpus", c.gpus);
    write_owned(text, "networks", c.networks);
    write_owned(text, "software", c.software);
    write_owned(text, "host", c.hosts);
    std::string link;
    for (const Calibration::CollectiveRow& row : c.collectives) {
        if (link.empty())
            text += "collectives:\n";
        if (link != row.link)
            text += fmt::format("  {}:\n", row.link);
        link = row.link;
        text += fmt::format("    {}: {{latency: {:.6g} us, rate: {:.6g}}}\n", collective_name(row.kind),
                            row.correction.latency_s * 1e6, row.correction.rate);
    }
    if (!c.fits.empty())
        text +=
            "# errors of predicted times, with these constants and with the defaults; p10 and p90: predicted / "
            "measured\nfits:\n";
    for (const CalibrationFit& f : c.fits) {
        text += fmt::format(
            "  - {{what: {}, points: {}, median: {:.4f}, default_median: {:.4f}, p10: {:.4f}, p90: {:.4f}{}}}\n",
            quoted(f.what), f.points, f.median, f.default_median, f.p10, f.p90,
            f.gpus.empty() ? "" : fmt::format(", gpus: [{}]", fmt::join(f.gpus, ", ")));
    }
    if (!c.outliers.empty())
        text += "outliers:\n";
    for (const std::string& one : c.outliers)
        text += fmt::format("  - {}\n", quoted(one));
    return text;
}

bool apply(const Calibration& calibration, GpuSpec& gpu) {
    if (!lay_over(calibration, "gpus", calibration.gpus, gpu))
        return false;
    for (const auto& [key, value] : *calibration.find(calibration.gpus, gpu.name))
        gpu.sources[key] = "fitted from " + calibration.file;
    return true;
}

bool apply(const Calibration& calibration, NetworkSpec& network) {
    if (!lay_over(calibration, "networks", calibration.networks, network))
        return false;
    for (const auto& [key, value] : *calibration.find(calibration.networks, network.name))
        network.sources[key] = "fitted from " + calibration.file;
    return true;
}

bool apply(const Calibration& calibration, NodeSpec& node) {
    const Calibration::Values* values = calibration.find(calibration.networks, node.network);
    if (values == nullptr)
        return false;
    for (const auto& [key, value] : *values) {
        if (key != "nic_latency")
            continue;
        node.nic_latency_s = value;
        node.sources[key] = "fitted from " + calibration.file;
        return true;
    }
    return false;
}

bool apply(const Calibration& calibration, SoftwareFeatures& software) {
    if (!lay_over(calibration, "software", calibration.software, software))
        return false;
    for (const auto& [key, value] : *calibration.find(calibration.software, software.name))
        software.sources.insert(software.sources.begin(),
                                fmt::format("{} fitted from {}", stack_words(key), calibration.file));
    return true;
}

void apply(const Calibration& calibration, std::string_view network, CommFacts& facts) {
    for (const Calibration::CollectiveRow& row : calibration.collectives) {
        if (row.link == "node")
            facts.inside[static_cast<std::size_t>(row.kind)] = row.correction;
        else if (row.link == network)
            facts.outside[static_cast<std::size_t>(row.kind)] = row.correction;
    }
}

std::string provenance_sentence(const Calibration& c) {
    std::string text = c.file;
    for (const auto& [key, words] : c.provenance) {
        if (key != "tool" && key != "files")
            text += fmt::format("; {}: {}", key, fmt::join(words, ", "));
    }
    return text;
}

}  // namespace fabricast
