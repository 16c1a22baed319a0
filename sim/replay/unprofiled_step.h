// A captured step as it runs without the profiler that recorded it.
//
// A profiler makes host calls and the pauses between them longer, and leaves the GPU's work as it is. If steps were
// also measured without one (Trace::unprofiled_steps), the host's times are shortened in one proportion. The replayed
// step becomes no shorter than the measured one, or than this GPU work allows. If not, the host's known cost a launched
// work (HostProfile::dispatch_cost) says what the profiler may hold.
#pragma once

#include "hwprofiles/hardware_profile.h"
#include "traces/trace.h"

namespace spillway::sim {

// The median of the measured steps; 0: none were.
Picos unprofiled_step(const Trace& trace);

// The trace at that speed, its ops where a replay has them, with the finding "profiler_host_time"; unchanged where
// nothing was measured or its step is no longer than that. Throws InputError as replay() does. Some ten replays of its
// times.
Trace at_unprofiled_speed(Trace trace, const HardwareProfile& hardware);

// The step of a capture with the host as fast as `dispatch_cost` has it. For captures with host calls and memory
// events, profiled fully. 0: the host takes no longer than that as recorded, steps were measured without a profiler, or
// it is no such capture.
Picos estimated_unprofiled_step(const Trace& trace, const HardwareProfile& hardware);

}  // namespace spillway::sim
