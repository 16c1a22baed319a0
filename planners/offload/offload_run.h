// Offloading as a runtime does it: decisions that depend on how the step runs (which loads find their store still in
// flight, at what rate stores go) are taken from replays, until a replay confirms them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planners/offload/offload_settings.h"
#include "sim/replay/replay.h"

namespace spillway {

struct OffloadOutcome {
  OffloadPlan plan;
  PlannedTrace planned;  // what `result` is of
  Result result;
  std::vector<OffloadScope> scopes;
  double store_bytes_per_second =
      0;  // measured: bytes stored over the time from the first store to the end of the last
  Bytes candidates{}, stored{}, loaded{}, forwarded{}, kept{}, recomputed{};
  int rounds = 0;        // replays
  bool settled = false;  // the last replay took no decision back
};

// Plans and replays a step under SSDTrain. Throws InputError when the trace lacks times, memory, uses or phases, or the
// hardware a place to offload to. At most ten replays.
OffloadOutcome run_ssdtrain(const Trace& trace, const HardwareProfile& hardware, const ReplayOptions& options,
                            const OffloadSettings& settings);

OffloadResult summary_of(const OffloadOutcome& outcome);

// Replays `plan`, marking absences as forwarded whose load is asked for before their store has ended, until none is
// new. Adds its replays to outcome.rounds.
void replay_with_forwarding(const Trace& trace, const HardwareProfile& hardware, const ReplayOptions& options,
                            OffloadOutcome& outcome);

}  // namespace spillway
