// Activations that leave the device between their forward and their backward.
#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "base/input_error.h"
#include "models/pipeline/plan_lane.h"
#include "models/pipeline/schedule_builders.h"

namespace spillway::models {
namespace {

using Kind = PipelineOpKind;

// 1F1B's order on one device with at most `room` micro-batches held, those on the way out counted. The newest leave as
// soon as they are made and come back, oldest first, as soon as there is room again.
class EvictingDevice {
 public:
  EvictingDevice(std::vector<PipelineOp>& compute, std::vector<PipelineOp>& copies, std::int64_t room,
                 std::int16_t peer)
      : compute_(compute), copies_(copies), room_(static_cast<std::size_t>(room)), peer_(peer) {}

  void run() {
    for (place_ = 0; place_ < static_cast<std::int32_t>(compute_.size()); ++place_) {
      PipelineOp& op = compute_[static_cast<std::size_t>(place_)];
      if (op.kind == Kind::forward)
        forward(op);
      else
        backward(op);
    }
  }

 private:
  [[nodiscard]] bool forward_follows() const {
    const auto next = static_cast<std::size_t>(place_) + 1;
    return next < compute_.size() && compute_[next].kind == Kind::forward;
  }

  void forward(PipelineOp& op) {
    // So many of the latest may still be on the way out when this one begins.
    const std::size_t leaving = room_ - 1 - held_.size();
    if (evictions_.size() > leaving) op.after = evictions_[evictions_.size() - 1 - leaving];
    held_.push_back(op.pass.micro_batch);
    if (away_.empty() && !(forward_follows() && held_.size() + 1 >= room_)) return;
    evict();
    if (!forward_follows() && away_.size() > 1 && held_.size() < room_) fetch();
  }
  void backward(PipelineOp& op) {
    if (const auto fetched = fetched_.find(op.pass.micro_batch); fetched != fetched_.end()) op.after = fetched->second;
    SPILLWAY_ASSERT(!held_.empty() && held_.front() == op.pass.micro_batch);
    held_.erase(held_.begin());
    if (!away_.empty() && held_.size() + (forward_follows() ? 2 : 1) <= room_) fetch();
  }

  void evict() {
    copies_.push_back({.pass = pass_of(held_.back()), .after = place_, .peer = peer_, .kind = Kind::offload});
    evictions_.push_back(static_cast<std::int32_t>(copies_.size()) - 1);
    away_.push_back(held_.back());
    held_.pop_back();
  }
  void fetch() {
    fetched_[away_.front()] = static_cast<std::int32_t>(copies_.size());
    copies_.push_back({.pass = pass_of(away_.front()), .after = place_, .peer = peer_, .kind = Kind::reload});
    held_.push_back(away_.front());
    away_.erase(away_.begin());
  }

  std::vector<PipelineOp>&compute_, &copies_;
  std::size_t room_;
  std::int16_t peer_;
  std::int32_t place_ = 0;
  std::vector<std::int32_t> held_, away_;  // micro-batches, oldest first; all held ones are older
  std::vector<std::int32_t> evictions_;    // places in the copy lane
  std::map<std::int32_t, std::int32_t> fetched_;
};

using PassKey = std::tuple<std::int32_t, std::int16_t, std::int16_t>;
PassKey key_of(const PipelinePass& pass) { return {pass.micro_batch, pass.chunk, pass.slice}; }

// The time an operation takes on a looped placement, slices and transfers aside.
Ticks time_of(const PipelineRequest& request, std::size_t device, const PipelineOp& op) {
  const auto position = static_cast<std::size_t>(op.pass.chunk * request.devices) + device;
  const PassTimes& times = request.times.at(position);
  switch (op.kind) {
    case Kind::forward:
      return times.forward;
    case Kind::backward:
      return times.backward();
    case Kind::input_gradient:
      return times.input_gradient;
    case Kind::weight_gradient:
      return times.weight_gradient;
    case Kind::recompute:
      return times.recompute;
    case Kind::paired:
    case Kind::offload:
    case Kind::reload:
      break;
  }
  return 0;
}

}  // namespace

PipelinePlan build_bpipe(const PipelineRequest& request) {
  PipelinePlan plan = build_one_f_one_b(request, false);
  const std::int64_t p = request.devices, room = (p + 3) / 2;
  for (std::int64_t d = 0; p - d > room; ++d) {
    const auto device = static_cast<std::size_t>(d);
    EvictingDevice(plan.compute[device], plan.copies[device], room, static_cast<std::int16_t>(p - 1 - d)).run();
  }
  return plan;
}

// One copy lane for both directions: each forward's activations leave as soon as it is done; those of a backward come
// back so early that one copy each way fits in before it.
void offload_chunks(PipelinePlan& plan, const PipelineRequest& request) {
  const std::int64_t chunks = request.offloaded_chunks;
  for (std::size_t d = 0; d < plan.compute.size(); ++d) {
    auto& compute = plan.compute[d];
    auto& copies = plan.copies[d];
    std::vector<std::size_t> backwards, leads;  // places of the backwards that need a reload, and of what it waits for
    for (std::size_t at = 0; at < compute.size(); ++at) {
      const Kind kind = compute[at].kind;
      if ((kind != Kind::backward && kind != Kind::input_gradient) || compute[at].pass.chunk >= chunks) continue;
      std::size_t lead = at - 1;
      for (Ticks room = 0; lead > 0 && room < request.times.offload + request.times.reload; --lead)
        room += time_of(request, d, compute[lead]);
      backwards.push_back(at);
      leads.push_back(std::max(lead, leads.empty() ? 0 : leads.back()));
    }
    std::map<PassKey, std::int32_t> left;
    std::size_t next = 0;
    for (std::size_t at = 0; at < compute.size(); ++at) {
      const auto place = static_cast<std::int32_t>(at);
      if (compute[at].kind == Kind::forward && compute[at].pass.chunk < chunks) {
        left[key_of(compute[at].pass)] = place;
        copies.push_back({.pass = compute[at].pass, .after = place, .kind = Kind::offload});
      }
      for (; next < backwards.size() && leads[next] <= at; ++next) {
        PipelineOp& backward = compute[backwards[next]];
        if (!left.contains(key_of(backward.pass))) break;
        backward.after = static_cast<std::int32_t>(copies.size());
        copies.push_back({.pass = backward.pass, .after = place, .kind = Kind::reload});
      }
    }
  }
}

}  // namespace spillway::models
