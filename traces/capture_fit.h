// Fits a capture with recorded times: figures of its machine, and dependencies that the capture does not name.
//
// Kineto and Nsight files tell when work started, but often not what it waited for: event waits carry no
// event, CUDA graphs and orphans no launch. Replay never uses recorded start times of device work as times, so
// here they are turned once, at import, into things that still hold on another machine:
//
//   launch_to_start      lower quartile of (start - start of the host call) over work that met an idle stream
//   gaps                 mean pause between two queued ops of a stream by (stream, launcher, copy or not)
//   blocking_copy_overhead  what a call that waits for its own copy lasts beyond the copy, when the stream was idle
//   launch_queue_depth   works in flight when a launch took over 10 times the median and over 60 us
//                        (CUDA lets about 1,022 launches queue up; the host then blocks)
//   edges                work that started `late_threshold` after everything known allowed it gets an edge from
//                        the work of another stream that ended last before it: the event wait the capture
//                        does not name, or a busy device. Marked inferred; lag 0.
//   unexplained edges    what is still 0.1 ms late or more starts as late behind the work before it on its stream,
//                        behind that other stream's work or behind its launch as it did: idle time is kept
//   unexplained waits    how much longer a synchronising call lasted than the work it waited for explains
//   syncs                event waits guessed from call order are kept only when the recording agrees with them
//
// CaptureFit::unexplained_delay sums what is kept unexplained, and findings note it.
#pragma once

#include "traces/trace.h"

namespace spillway::traces {

inline constexpr Picos late_threshold = microseconds(15);
// A late start is put down to another stream's work that ended at most this long before.
inline constexpr Picos late_window = microseconds(1500);

// From the end of what a synchronising call waited for to its return; and the longest that cudaFree takes for itself.
inline constexpr Picos sync_return = microseconds(5);
inline constexpr Picos longest_free_call = microseconds(300);

// Fills trace.capture_fit and appends inferred edges; O(n log n). Does nothing unless ops have times and
// some device work has a start. Edges always point from an earlier recorded start to a later one,
// so they cannot close a cycle with launches and lane order.
void fit_capture(Trace& trace);

}  // namespace spillway::traces
