// fabricast-validate score gemm|attention FILE: measured kernel tables against models/compute.
#include <fmt/format.h>

#include "validate/cli/command_line.hpp"
#include "validate/score/kernel_score.hpp"

namespace fabricast::validate_cli {

int score_kernels(const std::string& kind, const Arguments& arguments) {
    const std::string usage = fmt::format("fabricast-validate score {} TABLE.csv [--json]", kind);
    bool json = false;
    std::string file;
    for (const std::string& word : arguments) {
        if (word == "--help" || word == "-h") {
            print_result("usage: " + usage + "\n");
            return kDone;
        }
        if (word == "--json")
            json = true;
        else if (word.starts_with('-') || !file.empty())
            throw UsageError(fmt::format("fabricast-validate score {}: unexpected `{}`; usage: {}", kind, word, usage));
        else
            file = word;
    }
    if (file.empty())
        throw UsageError(fmt::format("fabricast-validate score {}: no file given; usage: {}", kind, usage));
    const KernelScore result = kind == "gemm" ? score_gemm(file) : score_attention(file);
    print_result(json ? kernel_score_json(result).dump(2) + "\n" : kernel_score_text(result));
    return kDone;
}

}  // namespace fabricast::validate_cli
