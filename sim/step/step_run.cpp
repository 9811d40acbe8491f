#include "sim/step/step_run.hpp"

#include <stdexcept>
#include <string>
#include <utility>

namespace fabricast {

namespace {

// False when it has to be run rank by rank.
bool run_folded(program::Folded folded, const engine::EngineOptions& options, StepRun& out) {
    out.folded = std::move(folded.program);
    if (const std::string broken = options.brief ? std::string() : program::validate(out.folded); !broken.empty())
        throw std::logic_error("folded program: " + broken);
    out.is_folded = true;
    out.capacity = std::move(folded.capacity);
    out.engine = engine::Engine(out.folded, out.capacity, options).run();
    for (std::size_t row = 0; row < folded.examples.size(); ++row)
        out.rows.push_back({folded.examples[row], out.folded.ranks[row].copies});
    return out.engine.outcome == engine::Outcome::done;
}

void run_whole(const program::Program& program, std::span<const Rate> capacity, engine::EngineOptions options,
               StepRun& out) {
    out.is_folded = false;
    out.engine = engine::Engine(program, capacity, options).run();
    if (out.engine.outcome != engine::Outcome::done && options.fold_time) {
        options.fold_time = false;
        out.engine = engine::Engine(program, capacity, options).run();
    }
    out.rows.clear();
    for (std::uint32_t rank = 0; rank < program.ranks.size(); ++rank)
        out.rows.push_back({rank, 1});
}

}  // namespace

StepRun run_program(const program::Program& program, std::span<const Rate> capacity, bool fold,
                    engine::EngineOptions options) {
    StepRun out;
    if (fold && run_folded(program::fold(program, capacity), options, out))
        return out;
    options.fold_time = options.fold_time && !fold;
    run_whole(program, capacity, options, out);
    return out;
}

StepRun run_program(program::Program&& program, std::span<const Rate> capacity, bool fold,
                    engine::EngineOptions options) {
    StepRun out;
    if (fold) {
        if (run_folded(program::fold(std::move(program), capacity), options, out))
            return out;
        program::move_common(out.folded, program);
    }
    options.fold_time = options.fold_time && !fold;
    run_whole(program, capacity, options, out);
    return out;
}

}  // namespace fabricast
