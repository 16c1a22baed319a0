// Memory kept free on a GPU, and the verdict that follows. "fits": the step runs within the capacity less the reserve.
// "tight": it runs only without the reserve's margin, within the capacity less what is really taken. It is tight as
// well if even there the allocator gives cached memory back in each step. DeepSpeed warns of that as high memory
// pressure (runtime/zero/stage3.py). Found by replays under these limits, not by subtraction: PyTorch reserves more
// where it may.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "planners/replayer.h"
#include "scenario/scenario_run.h"

namespace spillway::scenario {

// The reserve of each device of a loaded scenario, which has its trace, machine and capacity:
//   CUDA context     the profile's gpu.context_memory, taken off the capacity already
//   library handles  as far as that is below the 0.5 GiB that context, handles and loaded kernels take at least
//   NCCL             0.1 GiB a communicator: of a generated step its tensor, context, pipeline, data and expert groups
//   of
//                    more than one GPU, of a capture the groups of its collectives
//   margin           up to the upper ends of these ranges (0.5 GiB a communicator, 1 GiB for context and handles), and
//                    what a peak like it may be more than predicted (peak_within()), of a recording 1.5 % of the memory
// All are assumed: no published figures were found. memory.reserve replaces all but the context: what it names covers
// the parts above first, and what is left is margin. The parts that loading put into its reserve (a tower's weights)
// come on top. A recording on the GPU it ran on keeps nothing: it did fit. Empty where no capacity is known.
Reserve reserve_of(const LoadedScenario& loaded);

// Sets the scenario's capacity and reserve, and has its replays keep the reserve free. Throws InputError where the
// scenario's own reserve leaves nothing.
void keep_reserve(LoadedScenario& loaded);

// The capacity less what is taken, without the margin: what a tight step runs within. At least 1 byte.
Bytes capacity_without_margin(const LoadedScenario& loaded);
// Has its replays keep free what is really taken alone.
void give_up_margin(LoadedScenario& loaded);
// Whether a device's memory, not the host's, is too small.
bool runs_out(const Result& result);
// Marks a step that runs there as tight. `kept`: its result within the capacity less the whole reserve.
void mark_tight(Result& result, const Result& kept);

// Whether a run that doesn't fit says what it is short of (MemoryResult::short_of). That takes a dozen runs of its
// allocations; a caller that leaves it out finds it beside other work (shortage_of()).
enum class Shortage : std::uint8_t { found, left_out };

// Runs as `evaluate` does on the replayer; where that does not fit, once more with the margin given up. Fills in the
// result's capacity, reserve and, where it does not fit, what it is short of (with the margin given up).
ScenarioRun within_reserve(const LoadedScenario& loaded, const Replayer& replayer,
                           const std::function<ScenarioRun(const Replayer&)>& evaluate,
                           Shortage shortage = Shortage::found);

// A run's shortage, where it was left out; 0 if it fits, or if the scenario asks for no details. `is_in_order`:
// take_replayed_order(loaded, run) was called. None of a folded step that can't tell it. A dozen runs of its
// allocations.
std::optional<Bytes> shortage_of(const LoadedScenario& loaded, const ScenarioRun& run, bool is_in_order);

}  // namespace spillway::scenario
