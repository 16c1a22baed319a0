// A generated step at the clock that its kernels settle at (models/cost/gpu_power.h).
//
// Kernels are recorded at the highest clock. The power controller sees one micro-batch through the stage, with the
// GPU's waits in between, for most of a step. Its sums give the clock in closed form, and the recording is stretched
// once: kernels by their clocked part, starts of what follows by what that takes. Bubbles and the update, which are
// longer than the controller's window or rare, do not raise the clock of what is between them.
#pragma once

#include <cstdint>
#include <span>

#include "models/cost/cost_model.h"
#include "models/session/eager_session.h"
#include "models/step/stage_program.h"

namespace spillway::models {

// `drawing`: in the order of the ops, as the session of the program's trace recorded them.
void settle_clock(StageProgram& program, std::span<const DrawingOp> drawing, const CostModel& cost);
// The clock of a whole step on one GPU: part of it is there `times` times, of which the trace may show some.
struct RepeatedDrawing {
  std::span<const DrawingOp> shown;                    // all of the trace, in its order
  std::span<const DrawingOp> before, repeated, after;  // of it; repeated: once
  std::int64_t times = 0;
};
// `duration`: the whole step's as recorded.
void settle_clock(Trace& step, const RepeatedDrawing& drawing, Picos duration, const CostModel& cost);

}  // namespace spillway::models
