// Turns a Trace into the engine's ActivityGraph: what starts when, as dependencies and lanes.
//
//   trace                                   engine
//   host thread, stream                     lane (in order)
//   host call                               delay of its recorded duration; the pause since the call it followed
//                                           is a gap (same thread) or an edge with a lag (another thread)
//   launch -> work                          edge start-to-start with the launch latency
//   kernel, memset, collective              delay of its duration / relative speed
//   copy host <-> device                    flow over the PCIe path, capped at its recorded rate
//   stream/device/event sync, blocking copy wait: edges from the work waited for, then the call's own cost
//   stream_wait                             edge from the work the event marked to the stream's next work
//   launch queue of depth d                 edge from the start of work i-d to launch i
//   Trace::edges                            edges; of idle time that nothing explains, with its lag
//   Trace::unexplained_waits                a longer call
//   op of a transfer lane                   flow over that lane's path, as fast as sharing allows; `latency` after what
//                                           it waits for
//   the allocator's calls of the driver     delay on the host thread, behind the call they followed; waits for the
//                                           device's work where the driver does
//
// A host call follows the call of its rank, on any thread, that ended last before it. A backward thread starts when the
// main thread handed over, and the main thread goes on when backward is done. A thread that happens to run beside (a
// data loader) is thereby tied in as well; the capture can't distinguish the two.
//
// Recorded start times of device work are not used, with one exception: work without a launch record keeps its place on
// its stream. If it met an idle stream (as at the beginning of a capture, launched before it began), only its recorded
// start can place it, so it is released then.
#pragma once

#include <utility>
#include <vector>

#include "sim/engine/activity_graph.h"
#include "sim/replay/driver_times.h"
#include "sim/replay/relative_speed.h"
#include "traces/capture_fit.h"
#include "traces/trace.h"

namespace spillway::sim {

// A lane of a planned trace with transfers over links as ops.
struct LaneTransfer {
  LaneId lane = LaneId::none;
  PathId path{};
  std::uint32_t width = 1;  // transfers at work at once
  Picos latency{};
};

// Device memory that the memory-bound kernels of a GPU share with its copies. A kernel moves its bytes at its recorded
// rate, and slower if that and the copies' rates are more than `capacity`. A kernel with a higher rate than that takes
// all of it. Kernels bound by arithmetic are not slowed.
struct SharedMemory {
  std::uint16_t rank = 0;
  std::int16_t device = -1;  // -1: any of the rank
  LinkId link{};
  Rate capacity{};
};

struct LoweringOptions {
  RelativeSpeed speed;
  Picos launch_to_start = microseconds(5);  // from the end of the host call; used when the capture shows none
  Picos kernel_gap{};                       // between queued works where the capture shows none
  std::uint32_t launch_queue_depth = 0;     // 0: the capture's, or unlimited
  std::uint32_t collective_places = 1;      // of that queue, that a collective takes up
  Picos sync_cost = traces::sync_return;    // from the end of the awaited work to the host's return
  double machine_balance = 0;               // flops per HBM byte, for classify()
  std::vector<HostDelay> host_delays;       // by op, ascending
  std::vector<LaneTransfer> transfers;
  std::vector<SharedMemory> shared_memory;
};

// Where copies go. Links live in the graph; an empty path means recorded durations as they are.
struct CopyPaths {
  std::vector<PathId> host_to_device;  // by GPU ordinal
  std::vector<PathId> device_to_host;
};

struct LoweredTrace {
  ActivityGraph graph;
  std::vector<ActivityId> begin;  // by op: starts when the op starts
  std::vector<ActivityId> end;    // by op: ends when the op ends (differs for blocking copies)
  std::vector<OpId> op;           // by activity
  std::vector<WorkClass> work;    // by op
  std::vector<TrackId> lane;      // by trace lane
  // Time that was recorded and that nothing explains, kept: edges of Trace::edges, ascending by target, and parts of
  // host calls' own durations, ascending by activity.
  struct KeptLag {
    ActivityId target{}, source{};
    Picos lag{};          // of the edge in the graph
    Picos unexplained{};  // of that; the rest is the launching call's
  };
  std::vector<KeptLag> lags;
  std::vector<std::pair<ActivityId, Picos>> unexplained;
};

// `graph` may already hold links and paths (a machine); lanes, activities and edges are added and finished.
// Needs Capability::times. Throws InputError when an op to be replayed has no duration.
// O(ops + edges + syncs x streams of the device).
LoweredTrace lower(const Trace& trace, const LoweringOptions& options, const CopyPaths& paths, ActivityGraph graph);

}  // namespace spillway::sim
