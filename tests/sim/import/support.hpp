// Files beside the tests, and what an import makes of them.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "sim/import/importers.hpp"

namespace fabricast::import {

inline std::string data_file(const std::string& name) {
    const std::string path = std::string(FABRICAST_SOURCE_DIR) + "/tests/sim/import/data/" + name;
    std::ifstream in(path, std::ios::binary);
    if (!in)
        throw std::runtime_error("no file " + path);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
}

inline Source source(const std::string& name) { return {name.substr(name.find_last_of('/') + 1), data_file(name)}; }

/// All sentences in one text.
inline std::string told(const Plan& plan) { return remarks(plan); }

inline bool says(const Plan& plan, const std::string& words) { return told(plan).find(words) != std::string::npos; }

template <typename Call>
std::string refusal(const Call& call) {
    try {
        call();
    } catch (const ImportError& error) {
        return error.what();
    }
    return {};
}

}  // namespace fabricast::import
