// A capture with some of its time taken away, for replays that ask what that would give.
#pragma once

#include <string>
#include <vector>

#include "studies/diagnosis/busy_time.h"
#include "traces/trace.h"

namespace spillway::studies {

// As if the host had not spent these intervals: its calls move up, and those inside take no time.
Trace without_host_time(const Trace& trace, const std::vector<TimeInterval>& intervals);
// As if device work of this name took no time.
Trace without_work(const Trace& trace, StringId name);

}  // namespace spillway::studies
