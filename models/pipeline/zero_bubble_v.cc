// ZB-V (Qi et al. 2024b, appendix on the V-shaped zero-bubble schedule): two chunks in a V, passes added round by round
// to all stages, weight gradients where a stage would wait or memory is full. A run is repeated with the idle time it
// reached as allowance for the stages that had less, as long as that helps.
#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "base/input_error.h"
#include "models/pipeline/plan_lane.h"
#include "models/pipeline/schedule_builders.h"

namespace spillway::models {
namespace {

constexpr std::size_t pass_kinds = 4;  // F of chunk 0, F of chunk 1, B of chunk 1, B of chunk 0
constexpr bool runs_down(std::size_t kind) { return kind % 2 == 0; }
constexpr std::int64_t chunk_of(std::size_t kind) { return kind == 1 || kind == 2 ? 1 : 0; }
constexpr std::int64_t whole_chunk = 1'000'000;  // the activations of one chunk

struct VOptions {
  bool fill_forward = true, fill_backward = true;  // W in gaps in front of forwards, of chunk 0's backwards
};

class VGreedy {
 public:
  VGreedy(const PipelineRequest& request, const std::vector<std::int64_t>& limits, VOptions options,
          const std::vector<Ticks>& allowance)
      : request_(request),
        options_(options),
        allowance_(allowance),
        p_(static_cast<std::size_t>(request.devices)),
        m_(static_cast<std::size_t>(request.micro_batches)),
        limits_(limits),
        stages_(p_) {
    for (const Ticks ticks : allowance_) most_allowance_ = std::max(most_allowance_, ticks);
  }

  // False if memory or the order of passes doesn't allow it.
  bool run() {
    warm_up();
    for (std::size_t round = 0; round < 2 * m_ && !stuck_; ++round) {
      backwards();
      forwards();
    }
    for (std::size_t i = 0; i < p_; ++i)
      while (has_weights(i)) put_weights(i);
    return !stuck_;
  }

  [[nodiscard]] Ticks most_idle() const {
    Ticks most = 0;
    for (const Stage& stage : stages_) most = std::max(most, stage.idle);
    return most;
  }
  [[nodiscard]] Ticks makespan() const {
    Ticks end = 0;
    for (const Stage& stage : stages_) end = std::max(end, stage.clock);
    return end;
  }
  [[nodiscard]] std::vector<Ticks> idle() const {
    std::vector<Ticks> idle;
    for (const Stage& stage : stages_) idle.push_back(stage.idle);
    return idle;
  }
  std::vector<std::vector<PipelineOp>> take_lanes() {
    std::vector<std::vector<PipelineOp>> lanes;
    for (Stage& stage : stages_) lanes.push_back(std::move(stage.lane));
    return lanes;
  }

 private:
  struct Stage {
    std::array<std::vector<Ticks>, pass_kinds> ends;
    std::vector<PipelinePass> backwards;  // whose W may run
    std::size_t weights = 0;
    std::int64_t memory = 0;
    Ticks clock = 0, idle = 0;
    std::vector<PipelineOp> lane;
  };

  [[nodiscard]] std::size_t count(std::size_t i, std::size_t kind) const { return stages_[i].ends[kind].size(); }
  [[nodiscard]] bool has_weights(std::size_t i) const { return stages_[i].weights < stages_[i].backwards.size(); }
  [[nodiscard]] const PassTimes& times(std::size_t i, std::int64_t chunk) const {
    return request_.times.at(chunk == 0 ? i : 2 * p_ - 1 - i);
  }
  [[nodiscard]] bool is_first(std::size_t i, std::size_t kind) const { return runs_down(kind) ? i == 0 : i + 1 == p_; }
  // When the next pass of that kind has its input from the neighbour: nothing if not known; 0 if it needs none.
  [[nodiscard]] std::optional<Ticks> arrival(std::size_t i, std::size_t kind) const {
    if (is_first(i, kind)) return 0;
    const std::size_t neighbour = runs_down(kind) ? i - 1 : i + 1, j = count(i, kind);
    if (count(neighbour, kind) <= j) return std::nullopt;
    return stages_[neighbour].ends[kind][j] + request_.times.transfer;
  }
  [[nodiscard]] bool can_put(std::size_t i, std::size_t kind) const {
    return count(i, kind) < m_ && arrival(i, kind) && (kind == 0 || count(i, kind - 1) > count(i, kind));
  }

  void put(std::size_t i, std::size_t kind) {
    Stage& stage = stages_[i];
    const std::int64_t change = kind < 2 ? whole_chunk : request_.weight_part - whole_chunk;
    if (!can_put(i, kind) || stage.memory + change > limits_[i]) {
      stuck_ = true;
      return;
    }
    const PassTimes& times_here = times(i, chunk_of(kind));
    const Ticks start = std::max(stage.clock, *arrival(i, kind));
    if (count(i, 0) > 0) stage.idle += start - stage.clock;
    stage.clock = start + (kind < 2 ? times_here.forward : times_here.input_gradient);
    const PipelinePass pass = pass_of(static_cast<std::int64_t>(count(i, kind)), chunk_of(kind));
    stage.ends[kind].push_back(stage.clock);
    stage.memory += change;
    PlanLane(stage.lane).add(kind < 2 ? PipelineOpKind::forward : PipelineOpKind::input_gradient, pass);
    if (kind >= 2) stage.backwards.push_back(pass);
  }
  void put_weights(std::size_t i) {
    Stage& stage = stages_[i];
    const PipelinePass pass = stage.backwards[stage.weights++];
    stage.clock += times(i, pass.chunk).weight_gradient;
    stage.memory -= request_.weight_part;
    PlanLane(stage.lane).weight_gradient(pass);
  }

  void make_room(std::size_t i, std::int64_t change) {
    while (stages_[i].memory + change > limits_[i]) {
      if (!has_weights(i)) {
        stuck_ = true;
        return;
      }
      put_weights(i);
    }
  }
  void fill(std::size_t i, std::size_t kind, bool fills_rest) {
    if (is_first(i, kind)) return;
    const std::optional<Ticks> at = arrival(i, kind);
    if (!at) return;
    const auto weight = [&] { return times(i, stages_[i].backwards[stages_[i].weights].chunk).weight_gradient; };
    while (has_weights(i) && *at >= stages_[i].clock + weight()) put_weights(i);
    const Ticks allowed = std::max(most_idle(), allowance_.empty() ? 0 : most_allowance_ - allowance_[i]);
    if (fills_rest && has_weights(i) && *at - stages_[i].clock > allowed - stages_[i].idle) put_weights(i);
  }

  void warm_up() {
    for (std::size_t i = 0; i < p_; ++i) put(i, 0);
    for (std::size_t i = p_; i-- > 0;) {
      if (i + 1 < p_) {
        const Ticks until = stages_[i + 1].ends[1][0] + request_.times.transfer;
        while (stages_[i].memory + whole_chunk * static_cast<std::int64_t>(2 + 2 * i) <= limits_[i] &&
               stages_[i].clock + times(i, 0).forward <= until && count(i, 0) < m_)
          for (std::size_t j = 0; j <= i; ++j)
            if (count(j, 0) < m_) put(j, 0);
      }
      put(i, 1);
      if (stuck_) return;
    }
    std::size_t kind = 0;
    const auto forwards_of = [&](std::size_t i) { return count(i, 0) + count(i, 1); };
    for (std::size_t i = 1; i < p_; ++i) {
      while (forwards_of(i) < forwards_of(i - 1) || (count(i, 1) <= count(i - 1, 1) && count(i - 1, 1) < m_)) {
        for (std::size_t j = p_; j-- > i;)
          if (count(j, kind) < m_) put(j, kind);
        if (stuck_) return;
        kind = 1 - kind;
      }
    }
  }

  // Chunk 1's backward where its input comes from a later stage already, else chunk 0's; the former from the last stage
  // up, then the latter from the first down, so that inputs are known.
  void backwards() {
    std::vector<std::pair<std::size_t, std::size_t>> down, up;
    for (std::size_t i = 0; i < p_; ++i) {
      make_room(i, request_.weight_part - whole_chunk);
      const bool only_first = count(i, 3) >= count(i, 2);
      const bool takes_second = !only_first && (i + 1 == p_ || count(i + 1, 3) > count(i, 3) || count(i, 2) >= m_);
      if (takes_second)
        up.emplace_back(i, 3);
      else
        down.emplace_back(i, 2);
    }
    std::reverse(up.begin(), up.end());
    up.insert(up.end(), down.begin(), down.end());
    for (const auto& [i, kind] : up) {
      if (stuck_) return;
      fill(i, kind, kind == 3 || options_.fill_backward);
      put(i, kind);
    }
  }

  void forwards() {
    for (std::size_t i = 0; i < p_ && !stuck_; ++i) {
      if (count(i, 1) >= m_) continue;
      std::size_t kind = pass_kinds;
      if (count(i, 1) >= count(i, 0) && count(i, 0) < m_)
        kind = 0;
      else if (arrival(i, 1))
        kind = 1;
      else if (count(i, 0) < m_ && arrival(i, 0))
        kind = 0;
      if (kind == pass_kinds) continue;
      make_room(i, whole_chunk);
      if (stuck_) return;
      fill(i, kind, options_.fill_forward);
      put(i, kind);
    }
  }

  const PipelineRequest& request_;
  VOptions options_;
  std::vector<Ticks> allowance_;  // idle time of the run before, by stage; empty: none
  Ticks most_allowance_ = 0;
  std::size_t p_, m_;
  const std::vector<std::int64_t>& limits_;  // by stage
  std::vector<Stage> stages_;
  bool stuck_ = false;
};

}  // namespace

namespace {

struct VBest {
  std::optional<std::pair<Ticks, Ticks>> score;  // most idle time of a stage, makespan
  std::vector<std::vector<PipelineOp>> lanes;
};

VBest best_of_variants(const PipelineRequest& request, const std::vector<std::int64_t>& limits) {
  VBest best;
  for (int bits = 0; bits < 4; ++bits) {
    const VOptions options{(bits & 1) == 0, (bits & 2) == 0};
    std::vector<Ticks> allowance;
    for (Ticks reached = -1;;) {
      VGreedy greedy(request, limits, options, allowance);
      if (!greedy.run() || (reached >= 0 && greedy.most_idle() >= reached)) break;
      reached = greedy.most_idle();
      allowance = greedy.idle();
      const std::pair score(reached, greedy.makespan());
      if (best.score && *best.score <= score) continue;
      best.score = score;
      best.lanes = greedy.take_lanes();
    }
  }
  return best;
}

PassTimes mean(const std::vector<PassTimes>& all) {
  PassTimes sum;
  for (const PassTimes& times : all) {
    sum.forward += times.forward;
    sum.input_gradient += times.input_gradient;
    sum.weight_gradient += times.weight_gradient;
  }
  const auto count = static_cast<Ticks>(all.size());
  return {sum.forward / count, sum.input_gradient / count, sum.weight_gradient / count, 0};
}

}  // namespace

// Rounds that give every stage a pass can get stuck where parts of the model differ; their mean then says the order.
std::optional<PipelinePlan> zero_bubble_v_within(const PipelineRequest& request,
                                                 const std::vector<std::int64_t>& limits) {
  VBest best = best_of_variants(request, limits);
  if (!best.score) {
    PipelineRequest even = request;
    even.times.positions = {mean(request.times.positions)};
    best = best_of_variants(even, limits);
  }
  if (!best.score) return std::nullopt;
  PipelinePlan plan = zigzag_plan({}, request.devices, request.micro_batches, 2);
  plan.compute = std::move(best.lanes);
  return plan;
}

PipelinePlan build_zero_bubble_v(const PipelineRequest& request) {
  const std::vector<std::int64_t> limits(static_cast<std::size_t>(request.devices), 2 * request.devices * whole_chunk);
  std::optional<PipelinePlan> plan = zero_bubble_v_within(request, limits);
  if (!plan) throw InputError("", "schedule", "ZB-V's rounds find no order for these times", "use v-half");
  return std::move(*plan);
}

}  // namespace spillway::models
