#include "studies/diagnosis/relieved_trace.h"

#include <algorithm>

namespace spillway::studies {

Trace without_host_time(const Trace& trace, const std::vector<TimeInterval>& intervals) {
  const BusyTime removed(intervals);
  Trace out = trace;
  const auto moved = [&](Picos time) { return time - removed.within(Picos(0), std::max(time, Picos(0))); };
  std::vector<bool> shortened(trace.ops.size(), false);
  for (std::size_t i = 0; i < out.ops.size(); ++i) {
    if (out.ops.start[i] == unknown_time) continue;
    const Picos begin = trace.ops.start[i];
    out.ops.start[i] = moved(begin);
    if (!is_host_call(out.ops.kind[i]) || out.ops.duration[i] == unknown_time) continue;
    const Picos end = begin + trace.ops.duration[i];
    out.ops.duration[i] = moved(end) - out.ops.start[i];
    shortened[i] = out.ops.duration[i] < trace.ops.duration[i];
  }
  std::erase_if(out.unexplained_waits, [&](const UnexplainedWait& wait) { return shortened[index_of(wait.op)]; });
  return out;
}

Trace without_work(const Trace& trace, StringId name) {
  Trace out = trace;
  for (std::size_t i = 0; i < out.ops.size(); ++i)
    if (is_device_work(out.ops.kind[i]) && out.ops.name[i] == name && out.ops.duration[i] != unknown_time)
      out.ops.duration[i] = Picos(0);
  return out;
}

}  // namespace spillway::studies
