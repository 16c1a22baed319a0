#include "studies/diagnosis/passes.h"

#include <algorithm>
#include <tuple>

#include "base/stop.h"
#include "scenario/drawn_run.h"

namespace spillway::studies {
namespace {

constexpr std::int64_t pauses_in_a_replay = 200;

struct Work {
  std::int64_t begin, end;
  std::size_t op;
};

std::vector<std::vector<Work>> work_by_rank(const Trace& trace, const Result& result) {
  std::vector<std::vector<Work>> ranks(std::max<std::size_t>(1, trace.rank_count));
  const std::size_t count = std::min({trace.ops.size(), result.op_start.size(), result.op_end.size()});
  for (std::size_t i = 0; i < count; ++i) {
    const Picos start = result.op_start[i], end = result.op_end[i];
    if (start == unknown_time || end == unknown_time || end < start) continue;
    const Lane& lane = trace.lanes[index_of(trace.ops.lane[i])];
    if (lane.kind == LaneKind::stream && lane.rank < ranks.size())
      ranks[lane.rank].push_back({start.count(), end.count(), i});
  }
  for (auto& works : ranks)
    std::sort(works.begin(), works.end(),
              [](const Work& a, const Work& b) { return std::tuple(a.begin, a.op) < std::tuple(b.begin, b.op); });
  return ranks;
}

}  // namespace

bool has_micro_batches(const Trace& trace) {
  return std::any_of(trace.ops.micro_batch.begin(), trace.ops.micro_batch.end(),
                     [](std::uint16_t batch) { return batch != no_index16 && batch > 0; });
}

std::vector<std::vector<Pass>> passes_of(const Trace& trace, const Result& result) {
  const std::int64_t longest_pause = end_of_drawn(result).count() / pauses_in_a_replay;
  std::vector<std::vector<Pass>> ranks;
  for (const std::vector<Work>& works : work_by_rank(trace, result)) {
    std::vector<Pass>& passes = ranks.emplace_back();
    std::int64_t end = 0;
    for (const Work& work : works) {
      check_stop();
      const Phase phase = trace.ops.phase[work.op];
      const std::uint16_t batch = trace.ops.micro_batch[work.op];
      const bool goes_on = !passes.empty() && work.begin - end <= longest_pause && passes.back().micro_batch == batch &&
                           passes.back().phase == phase;
      if (!goes_on) passes.push_back({std::max(work.begin, end), std::max(work.begin, end), batch, phase});
      passes.back().end = end = std::max(end, work.end);
    }
  }
  return ranks;
}

std::string pass_name(const Pass& pass, bool numbered) {
  const std::string number =
      numbered && pass.micro_batch != no_index16 ? std::to_string(pass.micro_batch) + " " : std::string();
  return number + std::string(to_string(pass.phase));
}

}  // namespace spillway::studies
