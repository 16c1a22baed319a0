// A captured step as it runs without the profiler that recorded it.
//
// A profiler makes host calls and the pauses between them longer, and leaves the GPU's work as it is. Where it was
// measured what the steps take without one (Trace::unprofiled_steps), the host's times are shortened in one proportion,
// no more than that the replayed step is as short as the measured one, or than no step of this GPU work is shorter for.
// Where it wasn't, the host's known cost a launched work (HostProfile::dispatch_cost) says what the profiler may hold.
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

// Of a capture with host calls and memory events, profiled fully: its step with the host as fast as `dispatch_cost` has
// it. 0: the host takes no longer than that as recorded, or it is no such capture.
Picos estimated_unprofiled_step(const Trace& trace, const HardwareProfile& hardware);

}  // namespace spillway::sim
