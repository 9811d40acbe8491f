#include "sim/step/step_run.hpp"

#include <stdexcept>
#include <string>
#include <utility>

namespace fabricast {

StepRun run_program(const program::Program& program, std::span<const Rate> capacity, bool fold,
                    engine::EngineOptions options) {
    StepRun out;
    if (fold) {
        program::Folded folded = program::fold(program, capacity);
        out.folded = std::move(folded.program);
        if (const std::string broken = options.brief ? std::string() : program::validate(out.folded); !broken.empty())
            throw std::logic_error("folded program: " + broken);
        out.is_folded = true;
        out.capacity = std::move(folded.capacity);
        out.engine = engine::Engine(out.folded, out.capacity, options).run();
        for (std::size_t row = 0; row < folded.examples.size(); ++row)
            out.rows.push_back({folded.examples[row], out.folded.ranks[row].copies});
        if (out.engine.outcome == engine::Outcome::done)
            return out;
    }
    out.is_folded = false;
    options.fold_time = options.fold_time && !fold;
    out.engine = engine::Engine(program, capacity, options).run();
    if (out.engine.outcome != engine::Outcome::done && options.fold_time) {
        options.fold_time = false;
        out.engine = engine::Engine(program, capacity, options).run();
    }
    out.rows.clear();
    for (std::uint32_t rank = 0; rank < program.ranks.size(); ++rank)
        out.rows.push_back({rank, 1});
    return out;
}

}  // namespace fabricast
