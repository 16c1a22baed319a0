#include "planners/pipeline/schedule_moves.h"

#include <algorithm>
#include <random>
#include <utility>

#include "planners/pipeline/pipeline_check.h"
#include "planners/pipeline/pipeline_executor.h"
#include "traces/base/input_error.h"

namespace spillway {
namespace {

using Kind = PipelineOpKind;

bool has_copies(const PipelinePlan& plan) {
  return std::any_of(plan.copies.begin(), plan.copies.end(), [](const auto& lane) { return !lane.empty(); });
}

// May `later` run right before `earlier`, which it follows? Their inputs on this device and the order of slices.
bool may_swap(const PipelineOp& earlier, const PipelineOp& later) {
  if (earlier.kind == Kind::paired || later.kind == Kind::paired) return false;
  const bool same_part = earlier.pass.micro_batch == later.pass.micro_batch && earlier.pass.chunk == later.pass.chunk;
  return !same_part;
}

// A plan with lanes to change, and what its makespan is.
class Improvement {
 public:
  Improvement(PipelinePlan& plan, const MoveRequest& request)
      : plan_(plan), request_(request), random_(request.seed), best_(execute_plan(plan, request.times)) {}

  Ticks run() {
    for (std::int64_t i = 0; i < request_.moves; ++i) {
      if (i % 64 == 0 && request_.progress && !request_.progress()) break;
      const std::size_t device = draw(plan_.compute.size());
      auto& lane = plan_.compute[device];
      if (lane.size() < 2) continue;
      const std::size_t from = critical_place(device);
      const std::size_t steps = 1 + draw(draw(4) == 0 ? 6 : 1);
      const std::size_t to = draw(2) == 0 ? from - std::min(from, steps) : std::min(from + steps, lane.size() - 1);
      if (to != from) attempt(lane, from, to);
    }
    return best_.makespan;
  }

 private:
  std::size_t draw(std::size_t below) { return static_cast<std::size_t>(random_() % below); }

  // A pass in front of which the device waits, or any.
  std::size_t critical_place(std::size_t device) {
    const auto& spans = best_.compute[device];
    const std::size_t start = draw(spans.size());
    for (std::size_t i = start; i + 1 < spans.size() && i < start + 16; ++i)
      if (spans[i + 1].begin > spans[i].end) return i + draw(2);
    return start;
  }

  void attempt(std::vector<PipelineOp>& lane, std::size_t from, std::size_t to) {
    const auto moved = [&](std::size_t a, std::size_t b) {
      const auto at = [&](std::size_t i) { return lane.begin() + static_cast<std::ptrdiff_t>(i); };
      if (a < b)
        std::rotate(at(a), at(a + 1), at(b + 1));
      else
        std::rotate(at(b), at(a), at(a + 1));
    };
    for (std::size_t i = std::min(from, to); i <= std::max(from, to); ++i) {
      if (i == from) continue;
      if (from < to ? !may_swap(lane[from], lane[i]) : !may_swap(lane[i], lane[from])) return;
    }
    moved(from, to);
    if (!keeps()) moved(to, from);
  }

  bool keeps() {
    try {
      PipelineTimeline timeline = execute_plan(plan_, request_.times);
      if (timeline.makespan > best_.makespan) return false;
      const std::vector<double> peaks = activation_peaks(plan_, timeline, request_.rules);
      for (std::size_t d = 0; d < request_.limits.size(); ++d)
        if (peaks[d] > request_.limits[d] + 1e-9) return false;
      best_ = std::move(timeline);
      return true;
    } catch (const InputError&) {
      return false;  // they wait for each other for ever
    }
  }

  PipelinePlan& plan_;
  const MoveRequest& request_;
  std::mt19937_64 random_;
  PipelineTimeline best_;
};

}  // namespace

void split_backwards(PipelinePlan& plan) {
  for (auto& lane : plan.compute) {
    std::vector<PipelineOp> split;
    split.reserve(lane.size() * 3 / 2);
    for (PipelineOp op : lane) {
      if (op.kind != Kind::backward) {
        split.push_back(op);
        continue;
      }
      op.kind = Kind::input_gradient;
      split.push_back(op);
      op.kind = Kind::weight_gradient;
      op.after = -1;
      split.push_back(op);
    }
    lane = std::move(split);
  }
}

Ticks improve_plan(PipelinePlan& plan, const MoveRequest& request) {
  if (has_copies(plan) || plan.slices > 1) return execute_plan(plan, request.times).makespan;
  const Ticks reached = Improvement(plan, request).run();
  check_plan(plan);
  return reached;
}

}  // namespace spillway
