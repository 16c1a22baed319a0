#include "studies/fit/fit_layouts.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "models/pipeline/named_schedules.h"

namespace spillway::studies {
namespace {

constexpr std::int64_t shortest_part = 4096;  // tokens of a sequence on one rank of several
constexpr std::int64_t most_context = 64, most_stages = 64;

bool may_share_sequence(const ModelSpec& model) { return !model.pretraining_heads && !model.reads_images(); }

class Layouts {
 public:
  Layouts(const FitSubject& subject, const FitPoints& points, std::int64_t gpus)
      : model_(*subject.model),
        machine_gpus_(subject.hardware.gpu_count),
        gpus_(gpus),
        points_of_(points),
        given_(points.as_given()) {
    sequence_ = given_.setup.sequence > 0 ? given_.setup.sequence : model_.max_positions;
    batch_ = given_.setup.step_sequences();
  }

  std::vector<FitPoint> all() {
    for (const std::int64_t t : divisors(gpus_))
      if (t <= machine_gpus_ && model_.heads % t == 0 && model_.kv_heads % t == 0)
        for (const std::int64_t c : divisors(gpus_ / t))
          if (c == 1 || (c <= most_context && sequence_ / c >= shortest_part))
            for (const std::int64_t p : divisors(gpus_ / t / c))
              if (p <= std::min(most_stages, model_.all_layers())) spread(t, c, p);
    return std::move(points_);
  }

 private:
  void spread(std::int64_t t, std::int64_t c, std::int64_t p) {
    FitPoint point = given_;
    TrainingSetup& setup = point.setup;
    setup.tensor_parallel = t;
    setup.sequence_parallel =
        t > 1 && (given_.setup.tensor_parallel > 1 ? given_.setup.sequence_parallel : may_share_sequence(model_));
    setup.context_parallel = c;
    setup.pipeline_parallel = p;
    setup.data_parallel = gpus_ / t / c / p;
    if (batch_ % setup.data_parallel != 0) return;
    for (const std::int64_t e : divisors(model_.has_experts() ? setup.data_parallel * c : 1)) {
      if (!is_looked_at(e, setup.data_parallel * c)) continue;
      setup.expert_parallel = e;
      for (std::int64_t zero = 0; zero <= (setup.data_parallel * c == 1 ? 0 : p > 1 ? 1 : 3); ++zero) {
        setup.zero_stage = zero;
        setup.shard_groups = 1;
        points_of_.drop_idle(setup);
        cut_batch(point);
        if (zero == 0) continue;
        setup.shard_groups = machines_of(setup);
        if (setup.shard_groups > 1) cut_batch(point);
      }
    }
  }

  // Of experts over several machines the whole machines, up to eight, and all GPUs; single edits find the others.
  [[nodiscard]] bool is_looked_at(std::int64_t e, std::int64_t ranks) const {
    if (model_.has_experts() && model_.experts.count % e != 0) return false;
    const bool is_all = e == std::gcd(ranks, model_.experts.count);
    return ranks <= machine_gpus_ || e == 1 || is_all || (e % machine_gpus_ == 0 && e <= 8 * machine_gpus_);
  }

  // Groups that keep what is gathered within a machine; 1 where that can't be.
  [[nodiscard]] std::int64_t machines_of(const TrainingSetup& setup) const {
    const std::int64_t ranks = machine_gpus_ / setup.tensor_parallel / setup.context_parallel;
    if (ranks < 1 || ranks * setup.context_parallel < 2 || setup.data_parallel % ranks != 0) return 1;
    const std::int64_t groups = setup.data_parallel / ranks;
    return setup.expert_replicas() % groups == 0 ? groups : 1;
  }

  // One sequence at a time, everything kept: the search goes on from there (fit_search.h).
  void cut_batch(FitPoint point) {
    TrainingSetup& setup = point.setup;
    setup.micro_batch = 1;
    setup.recomputed_chunks = setup.offloaded_states = setup.recompute_layers = 0;
    setup.recompute_every = 1;
    setup.recompute = Recompute::none;
    setup.split_backward = false;
    setup.pipeline_schedule = default_schedule;
    setup.pipeline_chunks = 1;
    points_.push_back(point);
    const std::int64_t p = setup.pipeline_parallel, micro_batches = batch_ / setup.data_parallel;
    if (p == 1 || micro_batches % p != 0 || 2 * p > model_.all_layers() || model_.has_encoder()) return;
    setup.pipeline_schedule = interleaved_schedule;
    setup.pipeline_chunks = 2;
    points_.push_back(std::move(point));
  }

  const ModelSpec& model_;
  std::int64_t machine_gpus_, gpus_, sequence_ = 0, batch_ = 0;
  const FitPoints& points_of_;
  const FitPoint& given_;
  std::vector<FitPoint> points_;
};

}  // namespace

std::vector<std::int64_t> divisors(std::int64_t whole) {
  std::vector<std::int64_t> found;
  for (std::int64_t each = 1; each <= whole; ++each)
    if (whole % each == 0) found.push_back(each);
  return found;
}

std::vector<FitPoint> fit_layouts(const FitSubject& subject, const FitPoints& points, std::int64_t gpus) {
  return Layouts(subject, points, gpus).all();
}

int ways_split(const TrainingSetup& setup) {
  int ways = 0;
  for (const std::int64_t ranks : {setup.tensor_parallel, setup.context_parallel, setup.pipeline_parallel})
    ways += ranks > 1 ? 1 : 0;
  return ways;
}

bool is_recipe(const FitSubject& subject, const TrainingSetup& setup) {
  const int ways = ways_split(setup) + (setup.expert_parallel > 1 ? 1 : 0);
  const bool fills_machines = setup.tensor_parallel == std::min(subject.gpus, subject.hardware.gpu_count);
  return ways <= 1 || (ways == 2 && fills_machines && setup.pipeline_parallel > 1);
}

std::vector<FitPoint> neighbouring_layouts(const FitSubject& subject, const FitPoints& points, const FitPoint& point) {
  constexpr std::array kinds = {&TrainingSetup::tensor_parallel, &TrainingSetup::context_parallel,
                                &TrainingSetup::pipeline_parallel, &TrainingSetup::data_parallel};
  std::vector<FitPoint> found;
  for (const auto from : kinds)
    for (const auto to : kinds) {
      FitPoint next = point;
      TrainingSetup& setup = next.setup;
      if (from == to || setup.*from % 2 != 0) continue;
      setup.*from /= 2;
      setup.*to *= 2;
      if (setup.tensor_parallel > subject.hardware.gpu_count) continue;
      if (setup.step_sequences() % (setup.data_parallel * setup.micro_batch) != 0) continue;
      setup.sequence_parallel = setup.tensor_parallel > 1 && may_share_sequence(*subject.model);
      if (setup.data_parallel % setup.shard_groups != 0 || setup.shards() == 1) setup.shard_groups = 1;
      if (setup.weight_device != StateDevice::gpu) setup.zero_stage = 3;
      points.drop_idle(setup);
      if (setup.pipeline_parallel == 1) {
        setup.pipeline_schedule = default_schedule;
        setup.pipeline_chunks = 1;
      }
      found.push_back(std::move(next));
    }
  return found;
}

}  // namespace spillway::studies
