#include "planners/stalloc/memory_profile.h"

#include <algorithm>
#include <array>
#include <map>

#include "base/input_error.h"
#include "sim/devices/memory/recorded_state.h"

namespace spillway::planners {
namespace {

constexpr Bytes largest_small{512};

// "step 1 mb 3 F": requests of equal pairs of these form a group.
std::string phase_name(const Trace& trace, OpId anchor) {
  if (anchor == OpId::none) return "";
  const std::size_t op = index_of(anchor);
  const auto number = [](std::uint16_t index) { return index == no_index16 ? "-" : std::to_string(index); };
  const Phase phase = trace.ops.phase[op] == Phase::recompute ? Phase::backward : trace.ops.phase[op];
  return "step " + number(trace.ops.step[op]) + " mb " + number(trace.ops.micro_batch[op]) + " " +
         std::string(to_string(phase));
}

// First ticks of the steps and of what follows the last; empty where they are fewer than three or hold nothing.
class StepMarks {
 public:
  explicit StepMarks(const Trace& trace) {
    for (const Step& step : trace.steps)
      if (step.rank == trace.steps.front().rank) begins_.push_back(step.start);
    if (begins_.size() >= 3)
      begins_.push_back(trace.steps[begins_.size() - 1].start + trace.steps[begins_.size() - 1].duration);
  }
  void event(Picos time, std::int64_t tick) {
    if (time == unknown_time) return;
    for (; next_ < begins_.size() && time >= begins_[next_]; ++next_) ticks_.push_back(tick);
  }
  [[nodiscard]] std::vector<std::int64_t> ticks(std::int64_t end) const {
    std::vector<std::int64_t> ticks = ticks_;
    if (ticks.size() + 1 == begins_.size()) ticks.push_back(end);  // nothing behind the last step
    const bool rising = std::adjacent_find(ticks.begin(), ticks.end(), std::greater_equal<>()) == ticks.end();
    return begins_.size() < 4 || ticks.size() < begins_.size() || !rising ? std::vector<std::int64_t>{} : ticks;
  }

 private:
  std::vector<Picos> begins_;
  std::vector<std::int64_t> ticks_;
  std::size_t next_ = 0;
};

// Rows of experts: what a generated step allocates between routing and unrouting, sized by the tokens an expert gets.
bool is_of_experts(const Trace& trace, const MemoryEvent& event) {
  if (event.tensor == TensorId::none) return false;
  const TensorRole role = trace.tensors.role[index_of(event.tensor)];
  if (role != TensorRole::activation && role != TensorRole::temporary) return false;
  return trace.strings.text(trace.tensors.name[index_of(event.tensor)]).find("mlp.experts.") != std::string_view::npos;
}

// Passes through the experts of a layer, from their first request to their last.
class ExpertPasses {
 public:
  explicit ExpertPasses(const Trace& trace) : trace_(trace) {}

  void request(ProfiledRequest& request, OpId anchor, std::int64_t tick) {
    const Key key = key_of(anchor);
    if (layers_.empty() || key != last_ || layers_.back().end < tick - patience) {
      const std::string direction = key.backward ? " B" : " F";
      layers_.push_back({"moe-" + std::to_string(key.layer) + direction, tick, tick});
      last_ = key;
    }
    layers_.back().end = tick + 1;
    request.layer_allocated = static_cast<std::int32_t>(layers_.size()) - 1;
  }
  // Of dynamic requests freed within a pass.
  void finish(MemoryProfile& profile) {
    for (ProfiledRequest& request : profile.requests) {
      if (!request.dynamic() || !request.freed) continue;
      auto after = std::upper_bound(layers_.begin(), layers_.end(), request.upper,
                                    [](std::int64_t tick, const ProfiledLayer& layer) { return tick < layer.begin; });
      if (after != layers_.begin() && request.upper < (after - 1)->end)
        request.layer_freed = static_cast<std::int32_t>(after - 1 - layers_.begin());
    }
    profile.layers = std::move(layers_);
  }

 private:
  static constexpr std::int64_t patience = 1000;  // ticks between two requests of one pass
  struct Key {
    std::uint16_t layer = no_index16, micro_batch = no_index16;
    bool backward = false;
    bool operator==(const Key&) const = default;
  };
  [[nodiscard]] Key key_of(OpId anchor) const {
    if (anchor == OpId::none) return {};
    const std::size_t op = index_of(anchor);
    return {trace_.ops.layer[op], trace_.ops.micro_batch[op],
            trace_.ops.phase[op] == Phase::backward || trace_.ops.phase[op] == Phase::recompute};
  }

  const Trace& trace_;
  std::vector<ProfiledLayer> layers_;
  Key last_;
};

}  // namespace

std::string_view to_string(RequestClass request_class) {
  constexpr std::array<std::string_view, request_class_count> names{
      "small", "persistent", "initial", "scoped", "transient", "dynamic", "unreleased", "repeated"};
  return names[static_cast<std::size_t>(request_class)];
}

RequestClass MemoryProfile::class_of(const ProfiledRequest& request) const {
  if (request.bytes <= largest_small) return RequestClass::small;
  if (request.lower >= period_end()) return RequestClass::repeated;
  if (request.dynamic()) return RequestClass::dynamic;
  const bool is_held = !request.freed || (repeats() && request.upper >= iterations.back());
  if (repeats() && request.lower < iterations.front()) {
    if (is_held) return RequestClass::persistent;
    return request.upper < iterations.front() ? RequestClass::initial : RequestClass::unreleased;
  }
  if (is_held && (!repeats() || request.lower < period_begin())) return RequestClass::persistent;
  return request.phase_allocated != request.phase_freed ? RequestClass::scoped : RequestClass::transient;
}

MemoryProfile profile_of(const Trace& trace, std::int16_t device) {
  MemoryProfile profile;
  std::map<std::string, std::int32_t> phases;
  std::map<Addr, std::size_t> live, live_before;
  for (const BlockBefore& block : blocks_before(trace, device)) {
    if (!block.is_pending) live_before[block.address] = profile.before.size();
    profile.before.push_back({.upper = 1, .bytes = block.bytes, .freed = block.is_pending});
  }
  StepMarks steps(trace);
  ExpertPasses experts(trace);
  OpId last_anchor = OpId::none;
  std::int32_t phase = 0;
  std::int64_t tick = profile.before.empty() ? 0 : 1;
  const auto free_of = [&](std::map<Addr, std::size_t>& among, std::vector<ProfiledRequest>& requests, Addr address) {
    const auto found = among.find(address);
    if (found == among.end()) return false;
    ProfiledRequest& request = requests[found->second];
    request.upper = tick++;
    request.phase_freed = phase;
    request.freed = true;
    among.erase(found);
    return true;
  };
  const auto free = [&](Addr address) {
    if (!free_of(live, profile.requests, address)) free_of(live_before, profile.before, address);
  };
  for (const MemoryEvent& event : trace.memory_events) {
    if (event.device != device) continue;
    if (event.anchor != last_anchor || phases.empty()) {
      last_anchor = event.anchor;
      const auto [at, is_new] =
          phases.emplace(phase_name(trace, event.anchor), static_cast<std::int32_t>(phases.size()));
      if (is_new) profile.phases.push_back(at->first);
      phase = at->second;
    }
    steps.event(event.time, tick);
    if (event.action == MemoryAction::allocate && event.bytes > Bytes::zero()) {
      free(event.address);
      live[event.address] = profile.requests.size();
      profile.requests.push_back({.lower = tick, .bytes = event.bytes, .phase_allocated = phase, .phase_freed = phase});
      if (is_of_experts(trace, event)) experts.request(profile.requests.back(), event.anchor, tick);
      ++tick;
    } else if (event.action == MemoryAction::free_requested || event.action == MemoryAction::free_completed) {
      free(event.address);
    }
  }
  if (profile.requests.empty())
    throw InputError(trace.provenance.empty() ? "" : trace.provenance.front().file, "device " + std::to_string(device),
                     "the trace has no allocations of this device",
                     "record with torch.cuda.memory._record_memory_history() or profile_memory=True");
  profile.end = tick;
  profile.iterations = steps.ticks(tick);
  for (std::vector<ProfiledRequest>* requests : {&profile.requests, &profile.before})
    for (ProfiledRequest& request : *requests)
      if (!request.freed) request.upper = tick;
  experts.finish(profile);
  return profile;
}

}  // namespace spillway::planners
