// A replayed step as a document: the answer, where memory and time go, what every figure rests on; against a baseline
// where there is one.
#pragma once

#include "reports/report_document.h"
#include "sim/replay/result.h"

namespace spillway::reports {

// baseline: null: none. O(figures).
ReportDocument step_report(const Result& result, const Result* baseline);

// Allocated, reserved and capacity in GiB over milliseconds. O(points), some hundreds are kept.
ReportChart memory_chart(const MemoryResult& memory);

}  // namespace spillway::reports
