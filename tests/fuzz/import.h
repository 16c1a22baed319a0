// What read_trace() does to a trace once its reader is done, for the readers' fuzz targets.
#pragma once

#include "traces/capture_fit.h"
#include "traces/derive.h"
#include "traces/size_check.h"
#include "traces/trace.h"

namespace spillway::traces {

inline void import_trace(Trace trace, bool fit = false) {
  trace.check_invariants();
  check_sizes(trace);
  derive(trace);
  if (fit) fit_capture(trace);
  trace.check_invariants();
}

}  // namespace spillway::traces
