// Activations that leave the device between their forward and their backward.
#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "models/pipeline/plan_lane.h"
#include "models/pipeline/schedule_builders.h"

namespace spillway {
namespace {

using Kind = PipelineOpKind;

// 1F1B's order on one device with at most `room` micro-batches held: the newest ones go to the peer, and come back when
// a backward has made room.
class EvictingDevice {
 public:
  EvictingDevice(std::vector<PipelineOp>& compute, std::vector<PipelineOp>& copies, std::int64_t room,
                 std::int16_t peer)
      : compute_(compute), copies_(copies), room_(room), peer_(peer) {}

  void run() {
    for (PipelineOp& op : compute_) {
      if (op.kind == Kind::forward)
        forward(op);
      else
        backward(op);
      ++place_;
    }
  }

 private:
  void forward(PipelineOp& op) {
    if (static_cast<std::int64_t>(held_.size()) == room_) {
      copy(Kind::offload, held_.back(), forward_place_[held_.back()]);
      away_.insert(away_.begin(), held_.back());
      held_.pop_back();
      op.after = static_cast<std::int32_t>(copies_.size()) - 1;
    }
    forward_place_[op.pass.micro_batch] = place_;
    held_.push_back(op.pass.micro_batch);
  }
  // Backwards come in the order of their micro-batches, so the next one is held. What is fetched in its place is the
  // oldest that is away.
  void backward(PipelineOp& op) {
    if (const auto fetched = fetched_.find(op.pass.micro_batch); fetched != fetched_.end()) op.after = fetched->second;
    held_.erase(std::find(held_.begin(), held_.end(), op.pass.micro_batch));
    if (away_.empty()) return;
    const auto oldest = std::min_element(away_.begin(), away_.end());
    copy(Kind::reload, *oldest, place_);
    fetched_[*oldest] = static_cast<std::int32_t>(copies_.size()) - 1;
    held_.insert(std::upper_bound(held_.begin(), held_.end(), *oldest), *oldest);
    away_.erase(oldest);
  }
  void copy(Kind kind, std::int32_t micro_batch, std::int32_t after) {
    copies_.push_back({.pass = pass_of(micro_batch), .after = after, .peer = peer_, .kind = kind});
  }

  std::vector<PipelineOp>&compute_, &copies_;
  std::int64_t room_;
  std::int16_t peer_;
  std::int32_t place_ = 0;
  std::vector<std::int32_t> held_, away_;  // micro-batches, oldest first
  std::map<std::int32_t, std::int32_t> forward_place_, fetched_;
};

using PassKey = std::tuple<std::int32_t, std::int16_t, std::int16_t>;
PassKey key_of(const PipelinePass& pass) { return {pass.micro_batch, pass.chunk, pass.slice}; }

}  // namespace

PipelinePlan build_bpipe(const PipelineRequest& request) {
  PipelinePlan plan = build_one_f_one_b(request, false);
  plan.name = "bpipe";
  const std::int64_t p = request.devices, room = (p + 3) / 2;
  for (std::int64_t d = 0; d < p / 2; ++d) {
    const auto device = static_cast<std::size_t>(d);
    EvictingDevice(plan.compute[device], plan.copies[device], room, static_cast<std::int16_t>(p - 1 - d)).run();
  }
  return plan;
}

// One copy lane for both directions, turn by turn: each forward's activations leave as soon as it is done; those of a
// backward come back one backward ahead of it.
void offload_chunks(PipelinePlan& plan, std::int64_t chunks) {
  for (std::size_t d = 0; d < plan.compute.size(); ++d) {
    auto& compute = plan.compute[d];
    auto& copies = plan.copies[d];
    std::map<PassKey, std::int32_t> left;
    std::vector<std::size_t> backwards;  // places of the backwards that need a reload, in order
    for (std::size_t at = 0; at < compute.size(); ++at) {
      const Kind kind = compute[at].kind;
      if ((kind == Kind::backward || kind == Kind::input_gradient) && compute[at].pass.chunk < chunks)
        backwards.push_back(at);
    }
    // A reload begins when the operation before the backward's predecessor has ended.
    std::size_t next = 0;
    const auto lead = [&](std::size_t backward) { return backward < 4 ? std::size_t{0} : backward - 4; };
    for (std::size_t at = 0; at < compute.size(); ++at) {
      if (compute[at].kind == Kind::forward && compute[at].pass.chunk < chunks) {
        left[key_of(compute[at].pass)] = static_cast<std::int32_t>(copies.size());
        copies.push_back({.pass = compute[at].pass, .after = static_cast<std::int32_t>(at), .kind = Kind::offload});
      }
      while (next < backwards.size() && lead(backwards[next]) <= at) {
        PipelineOp& backward = compute[backwards[next]];
        if (!left.contains(key_of(backward.pass))) break;
        backward.after = static_cast<std::int32_t>(copies.size());
        copies.push_back({.pass = backward.pass, .after = static_cast<std::int32_t>(at), .kind = Kind::reload});
        ++next;
      }
    }
  }
}

}  // namespace spillway
