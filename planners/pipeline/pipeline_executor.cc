#include "planners/pipeline/pipeline_executor.h"

#include <algorithm>
#include <string>

#include "base/input_error.h"
#include "planners/pipeline/pass_table.h"

namespace spillway::planners {
namespace {

using Kind = PipelineOpKind;
constexpr Ticks unknown_ticks = -1;
constexpr Ticks longest_run = std::int64_t{1} << 62;

class PlanRun {
 public:
  PlanRun(const PipelinePlan& plan, const StageTimes& times)
      : plan_(plan), times_(times), table_(plan), devices_(static_cast<std::size_t>(plan.devices)) {
    forward_.assign(table_.size(), unknown_ticks);
    backward_.assign(table_.size(), unknown_ticks);
    lanes_.resize(2 * devices_);
    out_.compute.resize(devices_);
    out_.copies.resize(devices_);
    for (std::size_t d = 0; d < devices_; ++d) {
      lanes_[2 * d] = {&plan.compute[d], &out_.compute[d], 0, 0};
      lanes_[2 * d + 1] = {&plan.copies[d], &out_.copies[d], 0, 0};
      out_.compute[d].resize(plan.compute[d].size());
      out_.copies[d].resize(plan.copies[d].size());
    }
    waiters_of_forward_.assign(table_.size(), nobody);
    waiters_of_backward_.assign(table_.size(), nobody);
  }

  PipelineTimeline run() {
    check_total();
    for (std::uint32_t lane = 0; lane < lanes_.size(); ++lane) awake_.push_back(lane);
    while (!awake_.empty()) {
      const std::uint32_t lane = awake_.back();
      awake_.pop_back();
      while (step(lane)) continue;
    }
    for (const Lane& lane : lanes_)
      if (lane.next < lane.ops->size()) report_deadlock();
    summarize();
    return std::move(out_);
  }

 private:
  static constexpr std::uint32_t nobody = 0xFFFFFFFFu;
  struct Lane {
    const std::vector<PipelineOp>* ops = nullptr;
    std::vector<TickSpan>* spans = nullptr;
    std::size_t next = 0;
    Ticks free_at = 0;
  };

  // The sum of all durations bounds every time.
  void check_total() const {
    __extension__ using Wide = __int128;
    Wide total = 0;
    for (std::size_t d = 0; d < devices_; ++d)
      for (const auto* lane : {&plan_.compute[d], &plan_.copies[d]})
        for (const PipelineOp& op : *lane) total += Wide{duration(d, op)} + 2 * Wide{times_.transfer};
    if (total > longest_run)
      throw InputError("", "schedule", "the times add up to more than can be counted", "give smaller times");
  }

  [[nodiscard]] std::size_t position(std::size_t device, const PipelinePass& pass) const {
    return table_.position(device, pass.chunk);
  }

  [[nodiscard]] Ticks duration(std::size_t device, const PipelineOp& op) const {
    const PassTimes& times = times_.at(position(device, op.pass));
    Ticks whole = 0;
    switch (op.kind) {
      case Kind::forward:
        whole = times.forward;
        break;
      case Kind::backward:
        whole = times.backward();
        break;
      case Kind::input_gradient:
        whole = times.input_gradient;
        break;
      case Kind::weight_gradient:
        whole = times.weight_gradient;
        break;
      case Kind::recompute:
        whole = times.recompute;
        break;
      case Kind::paired:
        whole = times_.paired >= 0 ? times_.paired : times.forward + times_.at(position(device, op.second)).backward();
        break;
      case Kind::offload:
        whole = times_.offload;
        break;
      case Kind::reload:
        whole = times_.reload;
        break;
    }
    return whole / plan_.slices + (times_.blocking_transfers ? sent(device, op) * times_.transfer : 0);
  }
  // Results that go to another device.
  [[nodiscard]] Ticks sent(std::size_t device, const PipelineOp& op) const {
    switch (op.kind) {
      case Kind::forward:
        return leaves(device, op.pass, 1);
      case Kind::backward:
      case Kind::input_gradient:
        return leaves(device, op.pass, -1);
      case Kind::paired:
        return leaves(device, op.pass, 1) + leaves(device, op.second, -1);
      case Kind::weight_gradient:
      case Kind::recompute:
      case Kind::offload:
      case Kind::reload:
        return 0;
    }
    return 0;
  }
  [[nodiscard]] Ticks leaves(std::size_t device, const PipelinePass& pass, int step) const {
    const auto& route = plan_.routes[table_.route(device, pass.chunk)];
    const std::size_t at = position(device, pass);
    if (step < 0 ? at == 0 : at + 1 == route.size()) return 0;
    return static_cast<std::size_t>(route[step < 0 ? at - 1 : at + 1].device) == device ? 0 : 1;
  }

  // Lowers `ready` to what `time` allows; false if that isn't known yet, and the lane then waits for it.
  static bool after(Ticks time, Ticks lag, std::uint32_t lane, std::uint32_t& waiter, Ticks& ready) {
    if (time == unknown_ticks) {
      waiter = lane;
      return false;
    }
    ready = std::max(ready, time + lag);
    return true;
  }
  [[nodiscard]] Ticks lag(std::size_t device, const PipelinePass& pass, int step) const {
    return times_.blocking_transfers ? 0 : leaves(device, pass, step) * times_.transfer;
  }

  bool forward_ready(std::size_t device, const PipelinePass& pass, std::uint32_t lane, Ticks& ready) {
    const std::size_t at = position(device, pass), index = table_.index(pass, at);
    return at == 0 || after(forward_[index - 1], lag(device, pass, -1), lane, waiters_of_forward_[index - 1], ready);
  }
  bool backward_ready(std::size_t device, const PipelinePass& pass, std::uint32_t lane, Ticks& ready) {
    const std::size_t at = position(device, pass), index = table_.index(pass, at);
    if (at + 1 == table_.positions()) return after(forward_[index], 0, lane, waiters_of_forward_[index], ready);
    return after(backward_[index + 1], lag(device, pass, 1), lane, waiters_of_backward_[index + 1], ready);
  }

  bool is_ready(std::size_t device, const PipelineOp& op, std::uint32_t lane, Ticks& ready) {
    if (op.after >= 0) {
      const Lane& other = lanes_[lane ^ 1u];
      if (static_cast<std::size_t>(op.after) >= other.next) return false;  // woken when the other lane moves on
      ready = std::max(ready, (*other.spans)[static_cast<std::size_t>(op.after)].end);
    }
    switch (op.kind) {
      case Kind::forward:
        return forward_ready(device, op.pass, lane, ready);
      case Kind::backward:
      case Kind::input_gradient:
        return backward_ready(device, op.pass, lane, ready);
      case Kind::paired:
        return forward_ready(device, op.pass, lane, ready) && backward_ready(device, op.second, lane, ready);
      case Kind::weight_gradient:
      case Kind::recompute:
      case Kind::offload:
      case Kind::reload:
        return true;  // their inputs lie earlier in a lane of the same device, or in `after`
    }
    return true;
  }

  void wake(std::uint32_t& waiter) {
    if (waiter != nobody) awake_.push_back(waiter);
    waiter = nobody;
  }
  void publish(std::vector<Ticks>& ends, std::vector<std::uint32_t>& waiters, std::size_t index, Ticks end) {
    ends[index] = end;
    wake(waiters[index]);
  }

  bool step(std::uint32_t number) {
    Lane& lane = lanes_[number];
    if (lane.next == lane.ops->size()) return false;
    const PipelineOp& op = (*lane.ops)[lane.next];
    const std::size_t device = number / 2;
    Ticks start = lane.free_at;
    if (!is_ready(device, op, number, start)) return false;
    const Ticks end = start + duration(device, op);
    (*lane.spans)[lane.next++] = {start, end};
    lane.free_at = end;
    const auto index = [&](const PipelinePass& pass) { return table_.index(pass, position(device, pass)); };
    if (op.kind == Kind::forward || op.kind == Kind::paired)
      publish(forward_, waiters_of_forward_, index(op.pass), end);
    if (op.kind == Kind::backward || op.kind == Kind::input_gradient)
      publish(backward_, waiters_of_backward_, index(op.pass), end);
    if (op.kind == Kind::paired) publish(backward_, waiters_of_backward_, index(op.second), end);
    const Lane& other = lanes_[number ^ 1u];
    if (other.next < other.ops->size() && (*other.ops)[other.next].after == static_cast<std::int32_t>(lane.next) - 1)
      awake_.push_back(number ^ 1u);
    return true;
  }

  [[noreturn]] void report_deadlock() const {
    std::string waiting;
    int named = 0;
    for (std::size_t n = 0; n < lanes_.size(); ++n) {
      if (lanes_[n].next == lanes_[n].ops->size() || ++named > 4) continue;
      waiting += (named > 1 ? ", " : "") + std::string("device ") + std::to_string(n / 2) + " at " +
                 text_of(plan_, (*lanes_[n].ops)[lanes_[n].next]);
    }
    throw InputError("", "schedule", "deadlock: operations wait for each other (" + waiting + ")",
                     "let each device run its passes in an order in which their inputs can come");
  }

  void summarize() {
    for (std::size_t d = 0; d < devices_; ++d) {
      const auto& spans = out_.compute[d];
      Ticks work = 0;
      for (const TickSpan& span : spans) work += span.end - span.begin;
      out_.work.push_back(work);
      if (spans.empty()) continue;
      out_.makespan = std::max(out_.makespan, spans.back().end);
      out_.longest_span = std::max(out_.longest_span, spans.back().end - spans.front().begin);
    }
  }

  const PipelinePlan& plan_;
  const StageTimes& times_;
  PassTable table_;
  std::size_t devices_;
  std::vector<Ticks> forward_, backward_;  // ends, by pass
  std::vector<std::uint32_t> waiters_of_forward_, waiters_of_backward_;
  std::vector<Lane> lanes_;  // a device's compute lane, then its copy lane
  std::vector<std::uint32_t> awake_;
  PipelineTimeline out_;
};

}  // namespace

double PipelineTimeline::bubble(Ticks span) const {
  if (span == 0 || work.empty()) return 0;
  double total = 0;
  for (const Ticks ticks : work) total += static_cast<double>(ticks);
  return 1 - total / static_cast<double>(work.size()) / static_cast<double>(span);
}

PipelineTimeline execute_plan(const PipelinePlan& plan, const StageTimes& times) { return PlanRun(plan, times).run(); }

}  // namespace spillway::planners
