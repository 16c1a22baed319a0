// The bytes that a step's offloading moves to and from drives, tensor by tensor, as its replay moved them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/devices/drive_load.h"
#include "sim/replay/result.h"
#include "traces/trace.h"

namespace spillway::studies {

struct TrafficCause {
  std::string name;  // the operator that makes them; under a plan, what moves them and when
  std::int64_t tensors = 0;
  Bytes written{}, read{};
};

struct OffloadTraffic {
  std::uint16_t rank = 0;            // the one that writes most
  DriveLoad load;                    // of that rank's GPU, over one step
  std::vector<DriveLoad> loads;      // of a GPU of every rank
  std::vector<TrafficCause> causes;  // most bytes first
  std::int64_t tensors = 0;
  std::string basis;             // in words, for the report
  std::string technique;         // of the plan that moves them; empty: no plan does
  Bytes to_host{}, from_host{};  // of a plan that uses no drives, by all ranks
  Picos replayed{};              // the step as it ran; longer than load.step where its transfers held it up
};

// True when drives are part of the step, whatever is planned for its activations. O(ops).
bool uses_drives(const Trace& trace);

// The replay's own transfers to and from drives and, by a plan, host memory. `trace`: what `result` is of (run_traced).
// Throws InputError when the trace lacks memory, uses or phases, or a step. O(n log n) in ops and uses.
OffloadTraffic offload_traffic(const Trace& trace, const Result& result);

// The same transfers in a step of `step`, each at its place in it. If they held the replay up, its demand on drives and
// links is more than what it got. Precondition: step > 0. O(spans).
void set_pace(OffloadTraffic& traffic, Picos step);

// Rates due in each of `bins` equal parts of the step, in bytes a second: writes, or reads. O(spans x bins).
std::vector<double> traffic_course(const DriveLoad& load, bool writes, std::size_t bins);

}  // namespace spillway::studies
