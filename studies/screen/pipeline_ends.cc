#include "studies/screen/pipeline_ends.h"

#include <algorithm>
#include <optional>

#include "base/digest.h"
#include "base/input_error.h"
#include "models/pipeline/named_schedules.h"

namespace spillway::studies {
namespace {

constexpr std::int64_t steady_groups = 4;
constexpr Picos unknown{-1};

std::uint64_t digest_of(const PipelineWork& work) {
  Digest digest;
  const auto add = [&digest](std::int64_t number) { digest.add(static_cast<std::uint64_t>(number)); };
  digest.add(work.schedule);
  for (const std::int64_t count : {work.stages, work.chunks, work.micro_batches}) add(count);
  add(work.waits ? 1 : 0);
  for (const PipelineWork::Pass& pass : work.passes)
    for (const PipelineWork::Turn& turn : {pass.forward, pass.backward})
      for (const Picos time : {turn.first.device, turn.first.host, turn.second.device, turn.second.host, turn.rest})
        add(time.count());
  for (const Picos time : work.messages) add(time.count());
  return digest.value();
}

class Run {
 public:
  Run(const PipelineWork& work, std::int64_t micro_batches)
      : work_(work),
        positions_(static_cast<std::size_t>(work.stages * work.chunks)),
        plan_(build_schedule(work.schedule,
                             {.devices = work.stages, .micro_batches = micro_batches, .chunks = work.chunks})),
        stages_(static_cast<std::size_t>(work.stages)) {
    for (std::vector<Picos>& ends : ends_) ends.assign(positions_ * static_cast<std::size_t>(micro_batches), unknown);
  }

  // Every stage as far as it comes, until all have come to their ends.
  std::vector<Picos> last_backwards() {
    bool is_done = false;
    while (!is_done) {
      is_done = true;
      bool moved = false;
      for (std::size_t stage = 0; stage < stages_.size(); ++stage) {
        while (step(stage)) moved = true;
        is_done = is_done && stages_[stage].next == plan_.compute[stage].size();
      }
      SPILLWAY_ASSERT(moved || is_done);
    }
    std::vector<Picos> ends;
    for (const Stage& stage : stages_) ends.push_back(stage.free);
    return ends;
  }

 private:
  struct Stage {
    std::size_t next = 0;    // of its passes
    Picos free{}, posted{};  // the device, and its host when it comes to the next pass
    Picos sent{}, received{};
  };
  // What a pass takes and gets over the network; both know the place it is kept under.
  struct Message {
    std::size_t from = 0;
    Picos time{};
  };

  [[nodiscard]] std::optional<Message> needed(std::size_t position, std::size_t at, bool is_backward) const {
    if (is_backward ? position + 1 == positions_ : position == 0) return std::nullopt;
    if (is_backward) return Message{at + 1, work_.messages[position]};
    return Message{at - 1, work_.messages[position - 1]};
  }

  bool step(std::size_t number) {
    Stage& stage = stages_[number];
    if (stage.next == plan_.compute[number].size()) return false;
    const PipelineOp& op = plan_.compute[number][stage.next];
    const bool is_backward = op.kind != PipelineOpKind::forward;
    const auto position = static_cast<std::size_t>(op.pass.chunk) * stages_.size() + number;
    const std::size_t at = static_cast<std::size_t>(op.pass.micro_batch) * positions_ + position;
    std::vector<Picos>& ends = ends_[is_backward ? 1 : 0];
    Picos begin = stage.free;
    Picos host_begin = stage.posted;
    if (const auto message = needed(position, at, is_backward)) {
      if (ends[message->from] == unknown) return false;
      stage.received = std::max({ends[message->from], stage.posted, stage.received}) + message->time;
      begin = std::max(begin, stage.received);
      if (work_.waits) host_begin = begin = std::max(begin, stage.sent);
    }
    const PipelineWork::Turn& turn = is_backward ? work_.passes[position].backward : work_.passes[position].forward;
    stage.free = ends[at] = turn.end(begin, host_begin);
    stage.posted = host_begin + turn.host();
    if (is_backward ? position > 0 : position + 1 < positions_)
      stage.sent = std::max(stage.sent, stage.free) + work_.messages[is_backward ? position - 1 : position];
    ++stage.next;
    return true;
  }

  const PipelineWork& work_;
  std::size_t positions_;
  PipelinePlan plan_;
  std::vector<Stage> stages_;
  std::vector<Picos> ends_[2];  // of forwards and backwards, by micro-batch and position
};

}  // namespace

Picos PipelineWork::Turn::end(Picos begin, Picos host_begin) const {
  const Picos launched = host_begin + first.host;
  return std::max(std::max(begin + first.device, launched) + second.device, launched + second.host) + rest;
}

PipelineEnds PipelineRuns::ends(const PipelineWork& work) {
  const std::uint64_t key = digest_of(work);
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = known_.find(key); found != known_.end()) return found->second;
  }
  const std::int64_t p = work.stages, m = work.micro_batches;
  const std::int64_t groups = std::max<std::int64_t>(0, m / p - steady_groups);  // not run
  PipelineEnds ends{.last_backward = Run(work, m - groups * p).last_backwards()};
  if (groups > 0) {
    const std::vector<Picos> before = Run(work, m - (groups + 1) * p).last_backwards();
    for (std::size_t stage = 0; stage < before.size(); ++stage)
      ends.last_backward[stage] += (ends.last_backward[stage] - before[stage]) * groups;
  }
  ends.end = *std::max_element(ends.last_backward.begin(), ends.last_backward.end());
  const std::lock_guard lock(mutex_);
  return known_.emplace(key, std::move(ends)).first->second;
}

}  // namespace spillway::studies
