#include "validation/trainer/overlap.h"

#include <algorithm>

namespace spillway::validation {
namespace {

constexpr double shortest_pause = 20e-6;

// Disjoint and rising; pauses shorter than `bridged` are closed.
std::vector<TimeSpan> merged(std::vector<TimeSpan> spans, double bridged) {
  std::erase_if(spans, [](const TimeSpan& span) { return !(span.end > span.begin); });
  std::sort(spans.begin(), spans.end(), [](const TimeSpan& a, const TimeSpan& b) { return a.begin < b.begin; });
  std::vector<TimeSpan> found;
  for (const TimeSpan& span : spans)
    if (!found.empty() && span.begin - found.back().end <= bridged)
      found.back().end = std::max(found.back().end, span.end);
    else
      found.push_back(span);
  return found;
}

}  // namespace

Overlap overlap_of(std::vector<TimeSpan> transfers, std::vector<TimeSpan> kernels, double step_seconds) {
  const std::vector<TimeSpan> moving = merged(std::move(transfers), 0),
                              busy = merged(std::move(kernels), shortest_pause);
  Overlap overlap;
  overlap.step_seconds = step_seconds;
  auto kernel = busy.begin();
  for (const TimeSpan& transfer : moving) {
    overlap.transfer_seconds += transfer.end - transfer.begin;
    while (kernel != busy.end() && kernel->end <= transfer.begin) ++kernel;
    for (auto with = kernel; with != busy.end() && with->begin < transfer.end; ++with)
      overlap.hidden_seconds += std::min(with->end, transfer.end) - std::max(with->begin, transfer.begin);
  }
  return overlap;
}

}  // namespace spillway::validation
