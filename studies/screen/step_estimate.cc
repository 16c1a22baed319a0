#include "studies/screen/step_estimate.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/input_error.h"
#include "models/spec/parallel_layout.h"
#include "models/spec/pipeline_setup.h"

namespace spillway::studies {
namespace {

Picos per_bytes(double seconds_per_byte, Bytes bytes) {
  return from_seconds(seconds_per_byte * static_cast<double>(bytes.count()));
}
Bytes share(Bytes bytes, std::int64_t ranks) { return Bytes((bytes.count() + ranks - 1) / ranks); }

// One stage of the step.
struct StageSum {
  ShapeTimes times;       // of one micro-batch through all its chunks
  ShapeTimes last_chunk;  // the chunk whose backward comes last: its first
  Bytes kept{};           // of all micro-batches in flight
  Bytes transient{}, update_transient{};
  Bytes weights{}, gradients{}, states{}, buffers{};
};

class Estimator {
 public:
  Estimator(const StepMachine& machine, const StepShape& shape, const TrainingSetup& setup)
      : machine_(machine),
        shape_(shape),
        setup_(setup),
        layout_(setup, *machine.model, machine.cluster.gpus_per_machine,
                looped_plan({}, setup.pipeline_parallel, setup.gradient_accumulation, setup.pipeline_chunks)),
        replicas_(setup.data_parallel * setup.context_parallel) {
    layer_ = layer_times();
    for (std::int64_t stage = 0; stage < layout_.stages(); ++stage) stages_.push_back(sum_of(stage));
    if (layout_.stages() > 1) message_ = message_time();
  }

  // Work alone, without fill, transfers and what follows the backward.
  [[nodiscard]] Picos least() const {
    Picos work{};
    for (const StageSum& stage : stages_) work += stage.times.forward + stage.times.backward;
    return work / layout_.stages() * setup_.gradient_accumulation;
  }

  // Of the fullest stage, its activations but those of two layers elsewhere.
  [[nodiscard]] Bytes least_held() const {
    Bytes most{};
    for (std::int64_t index = 0; index < layout_.stages(); ++index) {
      StageSum stage = stages_[static_cast<std::size_t>(index)];
      stage.kept = Bytes(0);
      for (std::int64_t chunk = 0; chunk < layout_.chunks(); ++chunk) {
        const std::int64_t layers = std::min<std::int64_t>(2, layout_.layers(index, chunk).count);
        stage.kept = std::max(stage.kept, chunk_shape(index, chunk).kept + shape_.layer_kept * layers);
      }
      most = std::max(most, peak(stage));
    }
    return most;
  }

  // Of the passes alone, and of what every GPU holds at least when gradients and states are shared out.
  [[nodiscard]] StepEstimate least_sharded() const {
    StepEstimate estimate;
    estimate.step_time = pipeline_time();
    for (const StageSum& stage : stages_) {
      const Bytes weights = setup_.zero_stage == 3 ? stage.weights / replicas_ : stage.weights;
      const Bytes shared = (stage.gradients + stage.states) / replicas_;
      estimate.peak_allocated = std::max(estimate.peak_allocated, weights + shared + stage.kept);
    }
    estimate.peak_reserved = estimate.peak_allocated;
    return estimate;
  }

  StepEstimate run() const {
    StepEstimate estimate;
    const Picos pipeline = pipeline_time();
    Picos after{}, all_after{};
    for (std::int64_t stage = 0; stage < layout_.stages(); ++stage) {
      after = std::max(after, after_backward(stage) - head_start(stage));
      all_after += after_backward(stage);
    }
    estimate.step_time = pipeline + after;
    estimate.busy = std::min(estimate.step_time, least() + all_after / layout_.stages());
    for (std::int64_t stage = 0; stage < layout_.stages(); ++stage)
      estimate.peak_allocated = std::max(estimate.peak_allocated, peak(stages_[static_cast<std::size_t>(stage)]));
    estimate.peak_reserved = with_cached(estimate.peak_allocated);
    return estimate;
  }

 private:
  [[nodiscard]] bool is_gpipe() const { return setup_.pipeline_schedule == all_forwards_first; }
  [[nodiscard]] const ChunkShape& chunk_shape(std::int64_t stage, std::int64_t chunk) const {
    const bool first = layout_.is_first(stage, chunk), last = layout_.is_last(stage, chunk);
    if (first && last) return shape_.only;
    return first ? shape_.first : last ? shape_.last : shape_.middle;
  }

  // ZeRO stage 2 reduces a layer's gradients in each backward, stage 3 also gathers its weights for each pass, on one
  // communicator: where that takes longer than the passes, it sets the pace.
  [[nodiscard]] ShapeTimes layer_times() const {
    if (setup_.zero_stage < 2 || replicas_ == 1 || machine_.model->has_experts()) return shape_.layer;
    const GroupShape group = layout_.gradient_group();
    std::int64_t elements = 0;  // the shape's weights hold what was gathered when they were counted
    for (const std::int64_t parameter : machine_.layer_parameters) elements += parameter;
    const Bytes weights(elements / setup_.tensor_parallel * setup_.weight_bytes());
    const Bytes gradients(weights.count() / setup_.weight_bytes() *
                          (setup_.fp32_reduction ? 4 : setup_.weight_bytes()));
    const Picos gather =
        setup_.zero_stage == 3 ? machine_.cluster.timer(NetworkCollective::all_gather, weights, group) : Picos(0);
    const Picos reduce = machine_.cluster.timer(NetworkCollective::reduce_scatter, gradients, group);
    return {std::max(shape_.layer.forward, gather), std::max(shape_.layer.backward, gather + reduce)};
  }

  [[nodiscard]] StageSum sum_of(std::int64_t stage) const {
    StageSum sum;
    for (std::int64_t chunk = 0; chunk < layout_.chunks(); ++chunk) {
      const ChunkShape& extra = chunk_shape(stage, chunk);
      const std::int64_t layers = layout_.layers(stage, chunk).count;
      const ShapeTimes times = pass_times(extra, layers);
      if (chunk == 0) sum.last_chunk = times;
      sum.times.forward += times.forward;
      sum.times.backward += times.backward;
      sum.kept += (extra.kept + shape_.layer_kept * layers) * in_flight(stage, chunk);
      sum.transient = std::max(sum.transient, extra.transient);
      sum.update_transient = std::max(sum.update_transient, extra.update_transient);
      sum.weights += extra.weights + shape_.layer_weights * layers;
      sum.gradients += extra.gradients + shape_.layer_gradients * layers;
      sum.states += extra.states + shape_.layer_states * layers;
      sum.buffers = std::max(sum.buffers, extra.buffers);
    }
    return sum;
  }

  // Without a pipeline host and device run beside each other over a whole micro-batch, so the slower sets the pace; in
  // one each pass begins with what it receives, and its host-bound stretches are in the device's times.
  [[nodiscard]] ShapeTimes pass_times(const ChunkShape& chunk, std::int64_t layers) const {
    const ShapeTimes device{chunk.extra.forward + layer_.forward * layers,
                            chunk.extra.backward + layer_.backward * layers};
    const ShapeTimes host{chunk.extra_host.forward + shape_.layer_host.forward * layers,
                          chunk.extra_host.backward + shape_.layer_host.backward * layers};
    const Picos lag = host.forward + host.backward - device.forward - device.backward;
    if (lag <= Picos(0) || layout_.stages() > 1) return device;
    return {device.forward + lag / 2, device.backward + (lag - lag / 2)};
  }

  [[nodiscard]] Picos message_time() const {
    return machine_.cluster.timer(NetworkCollective::send_receive, shape_.message, layout_.stage_pair(0, 1));
  }

  // The time between two micro-batches at the stage that sets the pace.
  [[nodiscard]] Picos period() const {
    Picos longest{}, path{};
    for (const StageSum& stage : stages_) {
      longest = std::max(longest, stage.times.forward + stage.times.backward);
      path += stage.times.forward + stage.times.backward;
    }
    const std::int64_t p = layout_.stages(), v = layout_.chunks();
    if (p == 1 || is_gpipe()) return longest;
    // Chunk passes that the first stage works ahead, and the way of one micro-batch down and up.
    const std::int64_t lead = v == 1 ? p - 1 : 2 * (p - 1) + (v - 1) * p;
    const Picos way = path + message_ * (2 * (p * v - 1));
    const Picos own = (stages_[0].times.forward + stages_[0].times.backward) / v;
    const Picos needed = (way - own) * v / lead;
    return std::max(longest, needed);
  }

  [[nodiscard]] Picos pipeline_time() const {
    const std::int64_t p = layout_.stages(), v = layout_.chunks(), m = setup_.gradient_accumulation;
    Picos path{}, longest{};
    for (const StageSum& stage : stages_) {
      path += stage.times.forward + stage.times.backward;
      longest = std::max(longest, stage.times.forward + stage.times.backward);
    }
    if (p == 1) return path * m;
    // The first micro-batch's way through all other stages is filled by nothing.
    const Picos fill = (path - longest) / v + message_ * (2 * (p - 1));
    const std::int64_t steady = std::max<std::int64_t>(0, m - (v == 1 ? p : 0));
    if (is_gpipe() || m < p) return longest * m + fill;
    return longest * (m - steady) + period() * steady + fill;
  }

  // How much earlier than the first stage this one is done with its last backward.
  [[nodiscard]] Picos head_start(std::int64_t stage) const {
    Picos time{};
    for (std::int64_t s = 0; s < stage; ++s)
      time += stages_[static_cast<std::size_t>(s)].last_chunk.backward + message_;
    return time;
  }

  [[nodiscard]] Picos after_backward(std::int64_t index) const {
    const StageSum& stage = stages_[static_cast<std::size_t>(index)];
    Picos time = per_bytes(shape_.tail_per_byte, stage.weights);
    const std::int64_t split = setup_.zero_stage == 1 ? replicas_ : 1;
    time += per_bytes(shape_.update_per_byte, share(stage.weights, split));
    if (setup_.zero_stage >= 2 || replicas_ == 1) return time;
    const Bytes gradients(stage.weights.count() / setup_.weight_bytes() * setup_.gradient_bytes());
    time += reduction(gradients, stage.times.backward);
    if (setup_.zero_stage == 1) time += pieces_time(NetworkCollective::all_gather, stage.weights);
    return time;
  }

  // A bucket takes whole parameters until it is full.
  [[nodiscard]] std::int64_t buckets(Bytes bytes) const {
    const double of_layer =
        static_cast<double>(shape_.layer_weights.count()) / static_cast<double>(setup_.weight_bytes());
    double filled = 0, of_parameters = 0;
    std::int64_t count = 0;
    for (const std::int64_t elements : machine_.layer_parameters) of_parameters += static_cast<double>(elements);
    const double local = of_parameters > 0 ? of_layer / of_parameters : 1;
    const auto each = static_cast<double>(setup_.gradient_bytes());
    for (const std::int64_t elements : machine_.layer_parameters) {
      filled += static_cast<double>(elements) * local * each;
      if (filled < static_cast<double>(setup_.bucket_bytes)) continue;
      filled = 0;
      ++count;
    }
    const double rest = filled / static_cast<double>(setup_.bucket_bytes);
    const double layers = static_cast<double>(bytes.count()) / (of_layer * each);
    return std::max<std::int64_t>(1, std::llround((static_cast<double>(count) + rest) * layers));
  }

  [[nodiscard]] Picos pieces_time(NetworkCollective kind, Bytes bytes) const {
    const std::int64_t pieces = buckets(bytes);
    return machine_.cluster.timer(kind, bytes / pieces, layout_.gradient_group()) * pieces;
  }

  // What of it the last backward doesn't hide.
  [[nodiscard]] Picos reduction(Bytes gradients, Picos backward) const {
    const NetworkCollective kind =
        setup_.zero_stage == 0 ? NetworkCollective::all_reduce : NetworkCollective::reduce_scatter;
    const GroupShape group = layout_.gradient_group();
    if (!setup_.overlap_gradients) return machine_.cluster.timer(kind, gradients, group);
    const Picos all = pieces_time(kind, gradients);
    return std::max(all / buckets(gradients), all - backward);
  }

  // Micro-batches in flight in a chunk of a stage when its warm-up is done: interleaved ones fill the chunks in turn,
  // p micro-batches each, the last as far as the warm-up goes, and what is left begins with the first again.
  [[nodiscard]] std::int64_t in_flight(std::int64_t stage, std::int64_t chunk) const {
    const std::int64_t p = layout_.stages(), v = layout_.chunks(), m = setup_.gradient_accumulation;
    if (is_gpipe()) return m;
    if (v == 1) return std::min(p - stage, m);
    const std::int64_t rest = 2 * (p - 1 - stage) + 1;
    std::int64_t count = chunk < v - 1 ? p : std::min(p, rest);
    if (chunk == 0) count += std::max<std::int64_t>(0, rest - p);
    return std::min(count, m);
  }

  // Under stage 3 what lies cached is of the buffers of a few gathered layers, however many a stage has; else of blocks
  // of every layer.
  [[nodiscard]] Bytes with_cached(Bytes allocated) const {
    if (setup_.zero_stage == 3) return allocated + shape_.cached;
    return Bytes(std::llround(static_cast<double>(allocated.count()) * shape_.reserved_per_allocated));
  }

  [[nodiscard]] Bytes peak(const StageSum& stage) const {
    const std::int64_t states = setup_.zero_stage == 1 ? replicas_ : 1;
    const Bytes fixed = stage.weights + stage.gradients + stage.buffers + share(stage.states, states);
    Bytes update = stage.update_transient;
    if (shape_.update_scales) {
      const double growth =
          static_cast<double>(stage.weights.count()) /
          std::max(1.0,
                   static_cast<double>((shape_.middle.weights + shape_.layer_weights * shape_.probed_layers).count()));
      update = Bytes(std::llround(static_cast<double>(update.count()) * growth));
    }
    return fixed + std::max(stage.kept + stage.transient, share(update, states));
  }

  const StepMachine& machine_;
  const StepShape& shape_;
  const TrainingSetup& setup_;
  ParallelLayout layout_;
  std::int64_t replicas_;
  ShapeTimes layer_;
  std::vector<StageSum> stages_;
  Picos message_{};
};

}  // namespace

bool has_closed_form(const TrainingSetup& setup) {
  if (!setup.step_barrier || setup.optimizer_device != StateDevice::gpu) return false;
  if (setup.offloaded_states > 0 || setup.recomputed_chunks > 0) return false;
  if (setup.pipeline_plan) return false;
  const std::string schedule = schedule_name(setup);
  return schedule == default_schedule || schedule == interleaved_schedule || schedule == all_forwards_first;
}

Picos least_step_time(const StepMachine& machine, const StepShape& shape, const TrainingSetup& setup) {
  return Estimator(machine, shape, setup).least();
}

Bytes least_peak(const StepMachine& machine, const StepShape& shape, const TrainingSetup& setup) {
  SPILLWAY_ASSERT(has_closed_form(setup));
  return Estimator(machine, shape, setup).least_held();
}

StepEstimate least_sharded_step(const StepMachine& machine, const StepShape& plain, const TrainingSetup& setup) {
  SPILLWAY_ASSERT(has_closed_form(setup) && setup.zero_stage >= 2);
  return Estimator(machine, plain, setup).least_sharded();
}

StepEstimate estimate_step(const StepMachine& machine, const StepShape& shape, const TrainingSetup& setup) {
  SPILLWAY_ASSERT(has_closed_form(setup));
  return Estimator(machine, shape, setup).run();
}

}  // namespace spillway::studies
