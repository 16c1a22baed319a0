#include "planners/pipeline/schedule_search.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "base/input_error.h"
#include "models/pipeline/named_schedules.h"
#include "models/pipeline/pipeline_check.h"
#include "models/pipeline/schedule_builders.h"
#include "planners/pipeline/lane_orders.h"
#include "planners/pipeline/order_search.h"
#include "planners/pipeline/order_space.h"
#include "planners/pipeline/schedule_moves.h"

namespace spillway::planners {
namespace {

constexpr double whole_activations = 1e6;
constexpr std::int64_t most_exact_devices = 4, most_exact_micro_batches = 8;
constexpr double slack = 1e-9;
constexpr std::size_t most_blocks = 40;

[[noreturn]] void refuse(const char* place, const std::string& cause, const std::string& remedy) {
  throw InputError("", place, cause, remedy);
}

class Search {
 public:
  explicit Search(const SearchRequest& request) : request_(request) {
    if (request.limits.size() > 1 && request.limits.size() != static_cast<std::size_t>(request.devices))
      refuse("memory-limit", "there are neither one nor as many limits as stages", "give one, or one per stage");
    if (request.beam < 1) refuse("beam", "no states to keep", "give 1 or more");
    for (std::int64_t d = 0; d < request.devices && !request.limits.empty(); ++d)
      limits_.push_back(request.limits[request.limits.size() == 1 ? 0 : static_cast<std::size_t>(d)]);
  }

  SearchResult run() {
    for (const std::int64_t chunks : chunk_counts()) named(chunks);
    if (result_.found) {
      result_.best_named = result_.plan.name;
      result_.best_named_makespan = result_.timeline.makespan;
    }
    if (allows(1)) one_chunk();
    if (allows(2)) two_chunks();
    improve();
    result_.lower_bound = std::max(result_.lower_bound, work_bound());
    result_.proven = result_.found && result_.timeline.makespan <= result_.lower_bound;
    return std::move(result_);
  }

 private:
  [[nodiscard]] bool allows(std::int64_t chunks) const { return request_.chunks == 0 || request_.chunks == chunks; }
  [[nodiscard]] std::vector<std::int64_t> chunk_counts() const {
    return request_.chunks == 0 ? std::vector<std::int64_t>{1, 2, 4} : std::vector<std::int64_t>{request_.chunks};
  }

  // Parts cut into equal pieces.
  [[nodiscard]] StageTimes times_for(std::int64_t chunks) const {
    StageTimes times = request_.times;
    const std::int64_t given = std::max<std::int64_t>(1, request_.chunks), cut = chunks / given;
    const auto parts = static_cast<std::int64_t>(times.positions.size());
    if (parts != 1 && parts != request_.devices * given)
      refuse("times",
             "there are " + std::to_string(parts) + " of them for " + std::to_string(request_.devices * given) +
                 " parts of the model",
             "give one, or one per part");
    std::vector<PassTimes> pieces;
    for (const PassTimes& part : times.positions)
      for (std::int64_t i = 0; i < (parts == 1 ? 1 : cut); ++i)
        pieces.push_back(
            {part.forward / cut, part.input_gradient / cut, part.weight_gradient / cut, part.recompute / cut});
    times.positions = std::move(pieces);
    if (times.paired >= 0) times.paired /= cut;
    times.offload /= cut;
    times.reload /= cut;
    return times;
  }

  // The result becomes this plan if it runs, fits and is shorter; the shortest of its kind is remembered.
  void offer(PipelinePlan plan, const StageTimes& times) {
    PipelineTimeline timeline = execute_plan(plan, times);
    std::vector<double> peaks = activation_peaks(plan, timeline, request_.rules);
    for (std::size_t d = 0; d < limits_.size(); ++d)
      if (peaks[d] > limits_[d] + slack) return;
    if (!is_improving_) remember(plan, times, timeline.makespan);
    if (result_.found && timeline.makespan >= result_.timeline.makespan) return;
    check_plan(plan);
    result_.found = true;
    result_.plan = std::move(plan);
    result_.times = times;
    result_.timeline = std::move(timeline);
    result_.peaks = std::move(peaks);
  }

  // Plans to begin improving from: of each number of chunks and each placement, with and without recomputation.
  struct Start {
    PipelinePlan plan;
    StageTimes times;
    Ticks makespan = 0;
    bool recomputes = false;
    [[nodiscard]] bool is_like(const Start& other) const {
      const auto same = [](const PipelinePlan::Place& a, const PipelinePlan::Place& b) { return a.device == b.device; };
      return recomputes == other.recomputes && plan.chunks == other.plan.chunks &&
             std::equal(plan.routes[0].begin(), plan.routes[0].end(), other.plan.routes[0].begin(),
                        other.plan.routes[0].end(), same);
    }
  };

  void remember(const PipelinePlan& plan, const StageTimes& times, Ticks makespan) {
    Start start{plan, times, makespan, false};
    split_backwards(start.plan);
    if (!LaneOrders::covers(start.plan)) return;
    for (const auto& lane : plan.compute)
      for (const PipelineOp& op : lane) start.recomputes |= op.kind == PipelineOpKind::recompute;
    const auto like =
        std::find_if(starts_.begin(), starts_.end(), [&](const Start& other) { return other.is_like(start); });
    if (like == starts_.end())
      starts_.push_back(std::move(start));
    else if (makespan < like->makespan)
      *like = std::move(start);
  }

  [[nodiscard]] PipelineRequest named_request(std::int64_t chunks) const {
    PipelineRequest request;
    request.devices = request_.devices;
    request.micro_batches = request_.micro_batches;
    request.chunks = chunks;
    request.times = times_for(chunks);
    request.weight_part = request_.rules.weight_part;
    return request;
  }

  // Those with slices change the model's inputs, and copies take a link's time that nobody stated: only where a time of
  // theirs is given.
  [[nodiscard]] bool is_comparable(const NamedSchedule& named) const {
    if (named.slices || (named.two_copies && !request_.two_copies)) return false;
    return named.moves == ScheduleMoves::nothing || request_.times.offload > 0 || request_.times.reload > 0;
  }

  void named(std::int64_t chunks) {
    for (const NamedSchedule& each : named_schedules()) {
      if (!is_comparable(each)) continue;
      for (std::int64_t recomputed = 0; recomputed < (chunks > 1 ? chunks + 1 : 1); ++recomputed) {
        PipelineRequest request = named_request(chunks);
        request.recomputed_chunks = recomputed;
        try {
          offer(build_schedule(each.name, request), request.times);
        } catch (const InputError&) {
          break;  // not for these sizes
        }
      }
    }
  }

  [[nodiscard]] std::vector<std::int64_t> chunk_limits(std::int64_t chunks) const {
    std::vector<std::int64_t> out;
    const double none = static_cast<double>(request_.micro_batches);
    for (std::int64_t d = 0; d < request_.devices; ++d) {
      const double limit = limits_.empty() ? none : std::min(none, limits_[static_cast<std::size_t>(d)]);
      out.push_back(
          static_cast<std::int64_t>(std::floor(limit * static_cast<double>(chunks) * whole_activations + 0.5)));
    }
    return out;
  }

  void one_chunk() {
    const StageTimes times = times_for(1);
    PipelinePlan plan = looped_plan("search", request_.devices, request_.micro_batches, 1);
    const OrderSpace space(plan, times, chunk_limits(1), request_.rules.weight_part);
    if (request_.chunks == 1) result_.lower_bound = space.bound(space.root());
    if (auto greedy = zero_bubble_within(named_request(1), chunk_limits(1))) offer(std::move(*greedy), times);
    beam(space, plan, times);
    if (request_.devices > most_exact_devices || request_.micro_batches > most_exact_micro_batches) return;
    const Ticks upper = result_.found ? result_.timeline.makespan : std::int64_t{1} << 62;
    const ExactOrder exact = exact_search(space, upper, request_.effort, request_.progress);
    if (exact.best) {
      write_order(space, *exact.best, plan);
      plan.name = "exact";
      offer(plan, times);
    }
    if (exact.complete && result_.found && request_.chunks == 1) result_.lower_bound = result_.timeline.makespan;
  }

  void two_chunks() {
    const StageTimes times = times_for(2);
    if (auto greedy = zero_bubble_v_within(named_request(2), chunk_limits(2))) offer(std::move(*greedy), times);
    const std::vector<std::int64_t> room = chunk_limits(2);
    const auto most =
        static_cast<std::int64_t>(static_cast<double>(*std::max_element(room.begin(), room.end())) / whole_activations);
    for (PipelinePlan& block : v_blocks_within(named_request(2), most, most_blocks)) offer(std::move(block), times);
    for (const bool is_zigzag : {false, true}) {
      PipelinePlan plan = is_zigzag ? zigzag_plan("search", request_.devices, request_.micro_batches, 2)
                                    : looped_plan("search", request_.devices, request_.micro_batches, 2);
      beam(OrderSpace(plan, times, chunk_limits(2), request_.rules.weight_part), plan, times);
    }
  }

  void beam(const OrderSpace& space, PipelinePlan plan, const StageTimes& times) {
    const auto found = beam_search(space, static_cast<std::size_t>(request_.beam), request_.progress);
    if (!found) return;
    write_order(space, *found, plan);
    plan.name = "beam";
    offer(std::move(plan), times);
  }

  // A few moves from every start, all of them from the one that has come furthest.
  void improve() {
    if (!result_.found || result_.timeline.makespan <= result_.lower_bound) return;
    is_improving_ = true;
    for (Start& start : starts_) improve(start, request_.moves / 8);
    const auto shortest = std::min_element(starts_.begin(), starts_.end(),
                                           [](const Start& a, const Start& b) { return a.makespan < b.makespan; });
    if (shortest != starts_.end()) improve(*shortest, request_.moves);
  }

  void improve(Start& start, std::int64_t moves) {
    MoveRequest request;
    request.times = start.times;
    request.limits = limits_;
    request.rules = request_.rules;
    request.moves = moves;
    request.seed = request_.seed;
    request.progress = request_.progress;
    start.makespan = improve_plan(start.plan, request);
    PipelinePlan plan = start.plan;
    if (!plan.name.ends_with("improved")) plan.name += ", improved";
    offer(std::move(plan), start.times);
  }

  // A device's own work, whatever the placement, if nothing is recomputed.
  [[nodiscard]] Ticks work_bound() const {
    Ticks total = 0;
    for (const PassTimes& part : request_.times.positions) total += part.forward + part.backward();
    const auto parts = static_cast<Ticks>(request_.times.positions.size());
    const Ticks given = std::max<std::int64_t>(1, request_.chunks);
    const Ticks all = parts == 1 ? total * request_.devices * given : total;
    return all * request_.micro_batches / request_.devices;
  }

  const SearchRequest& request_;
  std::vector<double> limits_;
  std::vector<Start> starts_;
  bool is_improving_ = false;
  SearchResult result_;
};

}  // namespace

SearchResult search_schedule(const SearchRequest& request) { return Search(request).run(); }

}  // namespace spillway::planners
