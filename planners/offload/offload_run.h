// Offloading as a runtime does it. Decisions that depend on how the step runs (loads that find their store in flight,
// rates of stores) are taken from replays, until a replay confirms them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "planners/offload/offload_settings.h"
#include "planners/replayer.h"

namespace spillway::planners {

struct OffloadOutcome {
  OffloadPlan plan;
  PlannedTrace planned;  // what `result` is of
  Result result;
  std::vector<OffloadScope> scopes;
  OffloadResult moved;             // of `result`, which holds it too once a technique is done
  int rounds = 0;                  // replays
  bool forwards = true;            // OffloadSettings::forwards
  std::vector<std::string> notes;  // what it could not do
};

// Device memory that the step has, or the device's where it has no limit.
Bytes memory_of(const Replayer& replayer);

// A plan that moves nothing yet, with the settings' limit of unfinished stores; without one: none.
OffloadPlan empty_plan(std::string_view technique, const OffloadSettings& settings);
// The same; without one: a tenth of the memory.
OffloadPlan limited_plan(std::string_view technique, const Replayer& replayer, const OffloadSettings& settings);

// Plans and replays a step under SSDTrain. Throws InputError when the trace lacks times, memory, uses or phases, or the
// hardware a place to offload to.
OffloadOutcome run_ssdtrain(const Trace& trace, const Replayer& replayer, const OffloadSettings& settings);

// Replays outcome.plan until no mark changes or twelve replays are done; then `moved.settled` is false, and the last
// replay stands. An absence is marked as forwarded if its load is asked for before its store has ended. Fills `moved`
// except its candidates and what was kept of them. Adds its replays to outcome.rounds. `adapt`: changes each planned
// trace before its replay.
void replay_with_forwarding(const Trace& trace, const Replayer& replayer, OffloadOutcome& outcome,
                            const std::function<void(PlannedTrace&)>& adapt = {});

// The same with a limit of unfinished stores for each rank, unless the settings give one. A replay without a limit
// finds the least under which every launch is made before the device reaches it. If the step takes longer all the same,
// the limits double, and in the end there is none.
void replay_within_limits(const Trace& trace, const Replayer& replayer, OffloadOutcome& outcome,
                          const OffloadSettings& settings);

}  // namespace spillway::planners
