#include "planners/pipeline/optimizer_window.h"

#include <algorithm>

#include "base/input_error.h"

namespace spillway::planners {
namespace {

using Kind = PipelineOpKind;

// When a device is done with each of its chunks' gradients, and begins each of them.
struct ChunkTimes {
  std::vector<Ticks> last_end, first_begin;
};

ChunkTimes times_of_chunks(const PipelinePlan& plan, const PipelineTimeline& timeline, std::size_t device) {
  const auto chunks = static_cast<std::size_t>(plan.chunks_of_device());
  ChunkTimes times{std::vector<Ticks>(chunks, 0), std::vector<Ticks>(chunks, -1)};
  for (std::size_t i = 0; i < plan.compute[device].size(); ++i) {
    const PipelineOp& op = plan.compute[device][i];
    const TickSpan span = timeline.compute[device][i];
    const auto chunk = static_cast<std::size_t>(op.pass.chunk);
    if (op.kind == Kind::forward && times.first_begin[chunk] < 0) times.first_begin[chunk] = span.begin;
    if (op.kind == Kind::backward || op.kind == Kind::weight_gradient) times.last_end[chunk] = span.end;
    if (op.kind != Kind::paired) continue;
    if (times.first_begin[chunk] < 0) times.first_begin[chunk] = span.begin;
    times.last_end[static_cast<std::size_t>(op.second.chunk)] = span.end;
  }
  return times;
}

// One piece at a time.
struct Server {
  Ticks free_at = 0;
  Ticks serve(Ticks ready, Ticks duration) { return free_at = std::max(free_at, ready) + duration; }
};

}  // namespace

WindowReport optimizer_windows(const PipelinePlan& plan, const PipelineTimeline& timeline,
                               const OffloadedOptimizer& optimizer) {
  SPILLWAY_ASSERT(plan.routes.size() == 1 && optimizer.pieces >= 1);
  SPILLWAY_ASSERT(optimizer.chunks >= 0 && optimizer.chunks <= plan.chunks);
  WindowReport report;
  for (std::size_t d = 0; d < plan.compute.size(); ++d) {
    const ChunkTimes times = times_of_chunks(plan, timeline, d);
    Server out, update, in;
    for (std::int64_t i = 0; i < optimizer.chunks; ++i) {
      const auto chunk = static_cast<std::size_t>(plan.chunks - 1 - i);
      OptimizerWindow window;
      window.device = static_cast<std::int32_t>(d);
      window.chunk = static_cast<std::int32_t>(chunk);
      window.tail = timeline.makespan - times.last_end[chunk];
      window.head = times.first_begin[chunk];
      Ticks ready = times.last_end[chunk];
      for (std::int64_t piece = 0; piece < optimizer.pieces; ++piece) {
        const Ticks begin = times.last_end[chunk];
        const bool on_host = optimizer.place == OptimizerPlace::host;
        const Ticks input = on_host ? out.serve(begin, optimizer.out / optimizer.pieces)
                                    : in.serve(begin, optimizer.in / optimizer.pieces);
        const Ticks updated = update.serve(input, optimizer.update / optimizer.pieces);
        ready = on_host ? in.serve(updated, optimizer.in / optimizer.pieces) : updated;
        if (!on_host) out.serve(updated, optimizer.out / optimizer.pieces);
      }
      window.ready = ready - times.last_end[chunk];
      window.exposed = std::max<Ticks>(0, window.ready - window.tail - window.head);
      report.exposed = std::max(report.exposed, window.exposed);
      report.windows.push_back(window);
    }
  }
  return report;
}

}  // namespace spillway::planners
