// A scenario's run with its ops, for pictures of the step. A generated step of very many equal micro-batches is drawn
// by few of them, as run_briefly() replays it. Its figures are the whole step's. Its ops, and its memory over time, are
// those of the micro-batches that were generated.
#pragma once

#include <cstdint>
#include <string>

#include "scenario/brief_run.h"

namespace spillway::scenario {

// Whether the step has more operators than a picture has use for, some million, and can be told by fewer. Throws
// InputError as resolve() does.
bool is_drawn_in_part(const Scenario& scenario);

// The run, in part where that is so. Throws as load() and Evaluator::run() do.
BriefRun run_to_draw(const Scenario& scenario);

// Micro-batches of the step that its trace lacks; 0: it has all.
std::int64_t micro_batches_left_out(const LoadedScenario& loaded);
// "58 of 256 micro-batches"; empty: all are drawn.
std::string drawn_words(const LoadedScenario& loaded);

// The end of a run's last op: Result::replayed, or the end of what a part of the step takes by itself.
Picos end_of_drawn(const Result& result);

}  // namespace spillway::scenario
