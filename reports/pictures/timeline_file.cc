#include "reports/pictures/timeline_file.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/output_file.h"
#include "reports/pictures/timeline_svg.h"
#include "scenario/scenario_memory.h"
#include "sim/replay/replayed_trace.h"
#include "studies/diagnosis/counters.h"
#include "traces/formats/chrome_writer.h"

namespace spillway::reports {
namespace {

std::string unit_words(studies::CounterUnit unit) {
  switch (unit) {
    case studies::CounterUnit::share:
      return "share";
    case studies::CounterUnit::bytes_per_second:
      return "bytes per second";
    case studies::CounterUnit::transfers:
      break;
  }
  return "transfers";
}

std::vector<ChromeCounter> curves_of(const Trace& trace, const Result& result) {
  std::vector<ChromeCounter> curves;
  for (std::uint32_t rank = 0; rank < std::max<std::uint32_t>(1, trace.rank_count); ++rank)
    for (studies::Counter& counter : studies::counters_of(trace, result, static_cast<std::uint16_t>(rank)))
      curves.push_back({std::move(counter.name), unit_words(counter.unit), static_cast<std::uint16_t>(rank),
                        std::move(counter.at), std::move(counter.value)});
  return curves;
}

}  // namespace

void write_timeline(const LoadedScenario& loaded, const ScenarioRun& run, const std::string& path) {
  const Trace& trace = run.trace(loaded);
  OutputFile out(path);
  if (path.ends_with(".svg")) {
    out.write(timeline_svg(trace, result_on_gpu_clock(loaded, run)));
    return out.commit();
  }
  Trace replayed = replayed_trace(trace, run.result);
  const bool is_placed = std::any_of(trace.memory_events.begin(), trace.memory_events.end(),
                                     [](const MemoryEvent& event) { return event.address != Addr(0); });
  if (run.result.memory.known && is_placed)
    replayed.memory_events = placed_allocations(loaded, run).trace.memory_events;
  write_chrome_timeline(replayed, curves_of(trace, run.result), out);
  out.commit();
}

}  // namespace spillway::reports
