// Zero Bubble's automatic schedule (Qi et al. 2024, section 3.1): micro-batch by micro-batch, each stage adds a forward
// and a backward, and weight gradients where it would wait, where it would become the stage that waits most, or where
// memory is full. Eight variants are tried; the shortest span of a stage wins, then the shortest whole.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/input_error.h"
#include "models/pipeline/plan_lane.h"
#include "models/pipeline/schedule_builders.h"

namespace spillway::models {
namespace {

struct Variant {
  bool bubble_before_backward = false;  // no warm-up forward that would delay the first backward
  bool backward_first = false;          // hold a forward back where it would delay the next stage's backward
  bool fill_always = false;             // W in every gap, not only where the stage would wait most
};

struct Outcome {
  Ticks longest_span = 0, makespan = 0;
  std::vector<std::vector<PipelineOp>> lanes;
  [[nodiscard]] bool beats(const Outcome& other) const {
    return std::pair(longest_span, makespan) < std::pair(other.longest_span, other.makespan);
  }
};

// Memory in millionths of one stage's activations of a micro-batch.
constexpr std::int64_t whole = 1'000'000;

class StageGreedy {
 public:
  StageGreedy(const PipelineRequest& request, const std::vector<std::int64_t>& limits, Variant variant)
      : request_(request),
        variant_(variant),
        p_(static_cast<std::size_t>(request.devices)),
        m_(static_cast<std::size_t>(request.micro_batches)),
        limits_(limits),
        stages_(p_) {
    for (Stage& stage : stages_) {
      stage.forward_end.reserve(m_);
      stage.backward_end.reserve(m_);
      stage.lane.reserve(3 * m_);
    }
  }

  // Nothing if memory doesn't suffice.
  std::optional<Outcome> run() {
    warm_up();
    for (std::size_t j = p_; j-- > 0;) put_backward(j);
    for (std::size_t round = 1; round < m_; ++round) {
      const std::vector<bool> wanted = wanted_forwards();
      for (std::size_t j = 0; j < p_; ++j)
        if (wanted[j] && !add_forward(j)) return std::nullopt;
      for (std::size_t j = p_; j-- > 0;) {
        if (!make_room(j, request_.weight_part - whole)) return std::nullopt;
        fill(j, backward_arrival(j));
        if (j == 0 && stages_[0].forward_end.size() == m_)
          while (has_weights(0)) put_weights(0);
        put_backward(j);
      }
    }
    Outcome outcome;
    for (std::size_t j = 0; j < p_; ++j) {
      while (has_weights(j)) put_weights(j);
      const Stage& stage = stages_[j];
      const Ticks begin = stage.forward_end[0] - times(j).forward;
      outcome.longest_span = std::max(outcome.longest_span, stage.clock - begin);
      outcome.makespan = std::max(outcome.makespan, stage.clock);
      outcome.lanes.push_back(stage.lane);
    }
    return outcome;
  }

 private:
  struct Stage {
    std::vector<Ticks> forward_end, backward_end;
    std::size_t weights = 0;
    std::int64_t memory = 0;
    Ticks clock = 0, idle = 0;
    std::vector<PipelineOp> lane;
  };

  [[nodiscard]] const PassTimes& times(std::size_t j) const { return request_.times.at(j); }
  [[nodiscard]] Ticks transfer() const { return request_.times.transfer; }
  [[nodiscard]] bool has_weights(std::size_t j) const { return stages_[j].weights < stages_[j].backward_end.size(); }
  [[nodiscard]] Ticks most_idle() const {
    Ticks most = 0;
    for (const Stage& stage : stages_) most = std::max(most, stage.idle);
    return most;
  }
  [[nodiscard]] Ticks forward_arrival(std::size_t j) const {
    return j == 0 ? 0 : stages_[j - 1].forward_end[stages_[j].forward_end.size()] + transfer();
  }
  [[nodiscard]] Ticks backward_arrival(std::size_t j) const {
    return j + 1 == p_ ? 0 : stages_[j + 1].backward_end[stages_[j].backward_end.size()] + transfer();
  }

  Ticks advance(Stage& stage, Ticks arrival, Ticks duration) {
    const Ticks start = std::max(stage.clock, arrival);
    if (!stage.forward_end.empty()) stage.idle += start - stage.clock;
    return stage.clock = start + duration;
  }
  bool add_forward(std::size_t j) {
    if (!can_forward(j) || !make_room(j, whole)) return false;
    fill(j, forward_arrival(j));
    put_forward(j);
    return true;
  }
  void put_forward(std::size_t j) {
    Stage& stage = stages_[j];
    PlanLane(stage.lane).forward(pass_of(static_cast<std::int64_t>(stage.forward_end.size())));
    const Ticks end = advance(stage, forward_arrival(j), times(j).forward);
    stage.forward_end.push_back(end);
    stage.memory += whole;
  }
  void put_backward(std::size_t j) {
    Stage& stage = stages_[j];
    PlanLane(stage.lane).input_gradient(pass_of(static_cast<std::int64_t>(stage.backward_end.size())));
    const Ticks end = advance(stage, backward_arrival(j), times(j).input_gradient);
    stage.backward_end.push_back(end);
    stage.memory -= whole - request_.weight_part;
  }
  void put_weights(std::size_t j) {
    Stage& stage = stages_[j];
    PlanLane(stage.lane).weight_gradient(pass_of(static_cast<std::int64_t>(stage.weights++)));
    advance(stage, 0, times(j).weight_gradient);
    stage.memory -= request_.weight_part;
  }

  bool make_room(std::size_t j, std::int64_t change) {
    while (stages_[j].memory + change > limits_[j]) {
      if (!has_weights(j)) return false;
      put_weights(j);
    }
    return true;
  }
  void fill(std::size_t j, Ticks arrival) {
    while (has_weights(j) && stages_[j].clock + times(j).weight_gradient <= arrival) put_weights(j);
    const Ticks gap = arrival - stages_[j].clock;
    if (has_weights(j) && gap > 0 && (variant_.fill_always || gap > most_idle() - stages_[j].idle)) put_weights(j);
  }

  // Forwards ahead of the first backward: as many as fit into the wait for it, fewer on every later stage.
  void warm_up() {
    for (std::size_t j = 0; j < p_; ++j) put_forward(j);
    std::vector<std::size_t> extra(p_, 0);
    Ticks backward_end = stages_[p_ - 1].clock + times(p_ - 1).input_gradient;
    for (std::size_t j = p_ - 1; j-- > 0;) {
      Ticks clock = stages_[j].clock;
      std::int64_t memory = stages_[j].memory;
      const Ticks forward = times(j).forward;
      while (1 + extra[j] < m_ && memory + whole <= limits_[j]) {
        if (clock + (variant_.bubble_before_backward ? forward : 1) > backward_end + transfer()) break;
        memory += whole;
        clock += forward;
        ++extra[j];
      }
      backward_end = std::max(clock, backward_end + transfer()) + times(j).input_gradient;
    }
    for (std::size_t j = 1; j < p_; ++j)
      while (extra[j] > 0 && extra[j] >= extra[j - 1] && 1 + extra[j] < m_) --extra[j];
    for (std::size_t j = 0; j < p_; ++j)
      for (std::size_t i = 0; i < extra[j] && can_forward(j); ++i) put_forward(j);
  }
  [[nodiscard]] bool can_forward(std::size_t j) const {
    return j == 0 || stages_[j - 1].forward_end.size() > stages_[j].forward_end.size();
  }

  // A stage adds a forward only if all later ones do.
  std::vector<bool> wanted_forwards() {
    std::vector<bool> wanted(p_, false);
    for (std::size_t j = 0; j < p_; ++j) wanted[j] = stages_[j].forward_end.size() < m_ && !held_back(j);
    for (std::size_t j = p_ - 1; j-- > 0;) wanted[j] = wanted[j] && wanted[j + 1];
    return wanted;
  }
  [[nodiscard]] bool held_back(std::size_t j) const {
    if (!variant_.backward_first || j + 1 >= p_) return false;
    const Stage &here = stages_[j], &next = stages_[j + 1];
    if (here.forward_end.size() < next.forward_end.size() + 2) return false;
    const Ticks needed = next.clock + times(j + 1).forward + times(j + 1).input_gradient + transfer();
    if (here.clock >= needed) return true;
    std::int64_t memory = here.memory + whole;
    Ticks weights = 0;
    for (std::size_t w = here.weights; memory > limits_[j] && w < here.backward_end.size(); ++w) {
      weights += times(j).weight_gradient;
      memory -= request_.weight_part;
    }
    if (here.clock + times(j).forward + weights <= needed) return false;
    return needed - here.clock <= most_idle() - here.idle;
  }

  const PipelineRequest& request_;
  Variant variant_;
  std::size_t p_, m_;
  const std::vector<std::int64_t>& limits_;  // by stage
  std::vector<Stage> stages_;
};

}  // namespace

std::optional<PipelinePlan> zero_bubble_within(const PipelineRequest& request,
                                               const std::vector<std::int64_t>& limits) {
  std::optional<Outcome> best;
  for (int bits = 0; bits < 8; ++bits) {
    const Variant variant{(bits & 4) == 0, (bits & 2) == 0, (bits & 1) == 0};
    std::optional<Outcome> outcome = StageGreedy(request, limits, variant).run();
    if (outcome && (!best || outcome->beats(*best))) best = std::move(outcome);
  }
  if (!best) return std::nullopt;
  PipelinePlan plan = looped_plan({}, request.devices, request.micro_batches, 1);
  plan.compute = std::move(best->lanes);
  return plan;
}

PipelinePlan build_zero_bubble(const PipelineRequest& request, std::int64_t memory_in_p) {
  const std::vector<std::int64_t> limits(static_cast<std::size_t>(request.devices),
                                         memory_in_p * request.devices * whole);
  std::optional<PipelinePlan> plan = zero_bubble_within(request, limits);
  if (!plan)
    throw InputError("", "schedule", "no zero-bubble order keeps within p micro-batches of activations", "use zb-h1");
  return std::move(*plan);
}

}  // namespace spillway::models
