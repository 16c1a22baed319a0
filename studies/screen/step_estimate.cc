#include "studies/screen/step_estimate.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "base/input_error.h"
#include "models/spec/model_part.h"
#include "models/spec/models_beside.h"
#include "models/spec/parallel_layout.h"
#include "models/spec/pipeline_setup.h"
#include "models/step/inference_engine.h"
#include "models/step/parallel_trace.h"

namespace spillway::studies {
namespace {

Picos per_bytes(double seconds_per_byte, Bytes bytes) {
  return from_seconds(seconds_per_byte * static_cast<double>(bytes.count()));
}
Bytes share(Bytes bytes, std::int64_t ranks) { return Bytes((bytes.count() + ranks - 1) / ranks); }

// One stage of the step.
struct StageSum {
  ShapeTimes times;  // of one micro-batch through all its chunks
  Bytes kept{};      // of all micro-batches in flight
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
        replicas_(setup.data_parallel * setup.context_parallel),
        shards_(setup.shards()) {
    layer_ = layer_times();
    for (std::int64_t stage = 0; stage < layout_.stages(); ++stage) stages_.push_back(sum_of(stage));
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
    estimate.step_time = pipeline_ends().end;
    for (const StageSum& stage : stages_) {
      const Bytes weights = setup_.zero_stage == 3 ? stage.weights / shards_ : stage.weights;
      const Bytes shared = (stage.gradients + stage.states) / shards_;
      estimate.peak_allocated = std::max(estimate.peak_allocated, weights + shared + stage.kept);
    }
    estimate.peak_reserved = estimate.peak_allocated;
    return estimate;
  }

  // Every kernel of the layers runs on some stage; where micro-batches go through the stages in turn, a stage works
  // between what the first of them takes to come there and what the last takes to go back. Gradients may come as
  // activations go; of the chunks of an interleaved schedule the one at work is not yet kept.
  [[nodiscard]] StepEstimate least_step(std::span<const char> counted) const {
    StepEstimate estimate;
    const std::int64_t states = setup_.zero_stage == 1 ? shards_ : 1, m = setup_.gradient_accumulation;
    std::int64_t all = 0, before = 0, longest = 0;  // layers: of the step, ahead of a stage, passed one after the other
    for (std::int64_t stage = 0; stage < layout_.stages(); ++stage) {
      const StageSum& sum = stages_[static_cast<std::size_t>(stage)];
      const Bytes held = setup_.zero_stage == 3 ? Bytes(0) : sum.weights + share(sum.states, states);
      const ChunkShape& first = chunk_shape(stage, 0);
      const Bytes at_work =
          layout_.chunks() == 1 ? Bytes(0) : first.kept + shape_.layer_kept * layout_.layers(stage, 0).count;
      estimate.peak_allocated = std::max(estimate.peak_allocated, held + sum.kept - at_work);
      std::int64_t layers = 0;
      for (std::int64_t chunk = 0; chunk < layout_.chunks(); ++chunk) layers += layers_of(stage, chunk, counted);
      longest = std::max(longest, layers * m + before);
      before += layers_of(stage, 0, counted);
      all += layers;
    }
    const Picos of_layer = shape_.in_turn.forward + shape_.in_turn.backward;
    estimate.step_time = estimate.busy = of_layer * all * m / layout_.stages();
    if (has_closed_form(setup_)) estimate.step_time = std::max(estimate.step_time, of_layer * longest);
    estimate.peak_reserved = estimate.peak_allocated;
    return estimate;
  }

  [[nodiscard]] std::vector<Bytes> peaks() const {
    std::vector<Bytes> held;
    for (const StageSum& stage : stages_) held.push_back(peak(stage));
    return held;
  }

  StepEstimate run() const {
    StepEstimate estimate;
    const PipelineEnds ends = pipeline_ends();
    const Picos shared = shared_reduction();
    Picos all_after{}, met{};  // first and last stage sum the gradients of what both have
    const std::int64_t last = layout_.stages() - 1;
    const auto reduced = [&](std::int64_t stage) {
      return ends.last_backward[static_cast<std::size_t>(stage)] + reduction(stage);
    };
    if (shared > Picos(0)) met = std::max(reduced(0), reduced(last)) + shared;
    for (std::int64_t stage = 0; stage <= last; ++stage) {
      const Picos update = update_time(stage);
      const Picos begin = stage == 0 || stage == last ? std::max(met, reduced(stage)) : reduced(stage);
      estimate.step_time = std::max(estimate.step_time, begin + update);
      all_after += reduction(stage) + update + (stage == 0 || stage == last ? shared : Picos(0));
    }
    estimate.busy = std::min(estimate.step_time, least() + all_after / layout_.stages());
    for (const Bytes held : peaks()) estimate.peak_allocated = std::max(estimate.peak_allocated, held);
    estimate.peak_reserved = estimate.peak_allocated + shape_.cached;
    if (setup_.has_phases()) add_phases(estimate);
    return estimate;
  }

 private:
  // What comes before the training: its time, and what the engine takes awake beside what is kept between steps
  // (scenario/step_phases.h). Other models' weights and states are there all the time; what they take is the
  // training's, by their parameters.
  void add_phases(StepEstimate& estimate) const {
    const ModelSpec& model = *machine_.model;
    const std::int64_t states = setup_.zero_stage == 1 ? shards_ : 1;
    Picos forward{};
    Bytes held{};
    for (const StageSum& stage : stages_) {
      forward += stage.times.forward;
      held = std::max(held, stage.weights + share(stage.states, states));
    }
    const Picos forwards = forward * setup_.gradient_accumulation, training = estimate.step_time;
    if (setup_.reference != Reference::none) estimate.step_time += forwards;
    Bytes beside{};
    const auto add_model = [&](const std::optional<ModelSpec>& other, bool is_trained) {
      if (!other) return;
      const std::int64_t elements = parameter_count(*other), ranks = setup_.tensor_parallel * layout_.stages();
      const double size = static_cast<double>(elements) / static_cast<double>(parameter_count(model));
      estimate.step_time += from_seconds(size * to_seconds(is_trained ? forwards + training : forwards));
      const std::int64_t each = elements / ranks, sharers = setup_.data_parallel / setup_.shard_groups;
      beside += share(Bytes(each * setup_.weight_bytes()), setup_.zero_stage == 3 ? sharers : 1);
      if (is_trained)
        beside += share(Bytes(each * setup_.optimizer_bytes_per_parameter()), setup_.zero_stage > 0 ? sharers : 1);
    };
    add_model(reward_model(model, setup_), false);
    add_model(value_model(model, setup_), true);
    estimate.peak_allocated += beside;
    estimate.peak_reserved += beside;
    if (!setup_.has_engine()) return;
    const InferenceEngine engine = inference_engine(model, setup_, machine_.hardware.gpu);
    estimate.step_time += engine.time();
    const Bytes awake = held + beside + engine.taken - engine.asleep;
    estimate.peak_allocated = std::max(estimate.peak_allocated, awake);
    estimate.peak_reserved = std::max(estimate.peak_reserved, awake);
  }

  [[nodiscard]] bool is_gpipe() const { return setup_.pipeline_schedule == all_forwards_first; }
  [[nodiscard]] const ChunkShape& chunk_shape(std::int64_t stage, std::int64_t chunk) const {
    const bool first = layout_.is_first(stage, chunk), last = layout_.is_last(stage, chunk);
    if (first && last) return shape_.only;
    return first ? shape_.first : last ? shape_.last : shape_.middle;
  }

  // Those that count.
  [[nodiscard]] std::int64_t layers_of(std::int64_t stage, std::int64_t chunk, std::span<const char> counted) const {
    const LayerRange layers = layout_.layers(stage, chunk);
    if (counted.empty()) return layers.count;
    std::int64_t count = 0;
    for (std::int64_t layer = layers.first; layer < layers.first + layers.count; ++layer)
      count += counted[static_cast<std::size_t>(layer)] != 0 ? 1 : 0;
    return count;
  }

  // ZeRO stage 2 reduces a layer's gradients in each backward, stage 3 also gathers its weights for each pass, on one
  // communicator, and adds shares up over the groups on another: where one takes longer than the passes, it sets the
  // pace.
  [[nodiscard]] ShapeTimes layer_times() const {
    if (setup_.zero_stage < 2 || replicas_ == 1 || machine_.model->has_experts()) return shape_.layer;
    const GroupShape group = layout_.shard_group();
    std::int64_t elements = 0;  // the shape's weights hold what was gathered when they were counted
    for (const std::int64_t parameter : machine_.layer_parameters) elements += parameter;
    const Bytes weights(elements / setup_.tensor_parallel * setup_.weight_bytes());
    const Bytes gradients(weights.count() / setup_.weight_bytes() *
                          (setup_.fp32_reduction ? 4 : setup_.weight_bytes()));
    const Picos gather =
        setup_.zero_stage == 3 ? machine_.cluster.timer(NetworkCollective::all_gather, weights, group) : Picos(0);
    const Picos reduce = machine_.cluster.timer(NetworkCollective::reduce_scatter, gradients, group);
    if (setup_.late_reduction && setup_.gradient_accumulation > 1)
      return {std::max(shape_.layer.forward, gather), std::max(shape_.layer.backward, gather)};
    const Picos slowest = std::max(gather + reduce, over_groups(gradients));
    return {std::max(shape_.layer.forward, gather), std::max(shape_.layer.backward, slowest)};
  }

  // Shares of so many bytes of gradients, added up over the groups that hold copies.
  [[nodiscard]] Picos over_groups(Bytes gradients) const {
    const GroupShape group = layout_.copy_group();
    if (group.ranks == 1) return Picos(0);
    return machine_.cluster.timer(NetworkCollective::all_reduce, gradients / shards_, group);
  }

  [[nodiscard]] StageSum sum_of(std::int64_t stage) const {
    StageSum sum;
    for (std::int64_t chunk = 0; chunk < layout_.chunks(); ++chunk) {
      const ChunkShape& extra = chunk_shape(stage, chunk);
      const std::int64_t layers = layout_.layers(stage, chunk).count;
      const ShapeTimes times = pass_times(extra, layers);
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

  // What the collectives take longer than as many layers at the probe's own pace, which its first layers may set: of
  // the layers that the probe did not have, its passes being measured whole.
  [[nodiscard]] ShapeTimes beyond(std::int64_t layers) const {
    const std::int64_t more = layers - shape_.layers_with_collectives;
    return {(layer_.forward - shape_.layer.forward) * more, (layer_.backward - shape_.layer.backward) * more};
  }

  // Where the host never waits, host and device run beside each other over a whole micro-batch, so the slower sets the
  // pace. Where it waits for what a pass receives, its host-bound stretches are in the device's times.
  [[nodiscard]] ShapeTimes pass_times(const ChunkShape& chunk, std::int64_t layers) const {
    const ShapeTimes paced = beyond(layers);
    const ShapeTimes device{chunk.extra.forward + shape_.layer.forward * layers + paced.forward,
                            chunk.extra.backward + shape_.layer.backward * layers + paced.backward};
    const ShapeTimes host{chunk.extra_host.forward + shape_.layer_host.forward * layers,
                          chunk.extra_host.backward + shape_.layer_host.backward * layers};
    const Picos lag = host.forward + host.backward - device.forward - device.backward;
    if (lag <= Picos(0) || (layout_.stages() > 1 && setup_.traits().megatron)) return device;
    return {device.forward + lag / 2, device.backward + (lag - lag / 2)};
  }

  // Where the host never waits, it runs ahead or sets the pace. Under stage 3 work and gathers overlap from layer to
  // layer, so times are taken as measured unless the host sets the pace.
  [[nodiscard]] PipelineWork::Pass pipeline_pass(std::int64_t stage, std::int64_t chunk) const {
    const ChunkShape& extra = chunk_shape(stage, chunk);
    const std::int64_t layers = layout_.layers(stage, chunk).count;
    const bool host_leads =
        shape_.layer_host.forward + shape_.layer_host.backward > shape_.layer_work.forward + shape_.layer_work.backward;
    if (!setup_.traits().megatron || (setup_.zero_stage == 3 && !host_leads)) {
      const ShapeTimes times = pass_times(extra, layers);
      return {{{times.forward}}, {{times.backward}}};
    }
    const ChunkPlace place = layout_.is_first(stage, chunk)  ? ChunkPlace::first
                             : layout_.is_last(stage, chunk) ? ChunkPlace::last
                                                             : ChunkPlace::middle;
    PipelineWork::Pass pass = pass_of(shape_, extra, place, layers);
    pass.forward.rest = extra.rest.forward;
    pass.backward.rest = extra.rest.backward;
    const auto add = [](PipelineWork::Turn& turn, Picos time) {
      (time > Picos(0) ? turn.second.device : turn.rest) += time;
    };
    const ShapeTimes paced = beyond(layers);
    add(pass.forward, paced.forward);
    add(pass.backward, paced.backward);
    return pass;
  }

  // The last backward of every stage, one micro-batch after the other where there is one stage.
  [[nodiscard]] PipelineEnds pipeline_ends() const {
    const std::int64_t p = layout_.stages(), v = layout_.chunks(), m = setup_.gradient_accumulation;
    if (p == 1) {
      const Picos end = (stages_[0].times.forward + stages_[0].times.backward) * m;
      return {{end}, end};
    }
    PipelineWork work{.schedule = is_gpipe() ? std::string(all_forwards_first)
                                             : std::string(v > 1 ? interleaved_schedule : default_schedule),
                      .stages = p,
                      .chunks = v,
                      .micro_batches = m,
                      .waits = setup_.traits().megatron,
                      .passes = {},
                      .messages = {}};
    for (std::int64_t position = 0; position < p * v; ++position) {
      const std::int64_t stage = position % p, chunk = position / p;
      work.passes.push_back(pipeline_pass(stage, chunk));
      if (position + 1 < p * v)
        work.messages.push_back(machine_.cluster.timer(NetworkCollective::send_receive, shape_.message,
                                                       layout_.stage_pair(stage, (stage + 1) % p)));
    }
    return machine_.pipelines->ends(work);
  }

  // What a stage does when its gradients are what they are on all replicas.
  [[nodiscard]] Picos update_time(std::int64_t index) const {
    const StageSum& stage = stages_[static_cast<std::size_t>(index)];
    const std::int64_t split = setup_.zero_stage == 1 ? shards_ : 1;
    const Picos time =
        per_bytes(shape_.tail_per_byte, stage.weights) + per_bytes(shape_.update_per_byte, share(stage.weights, split));
    const bool gathers = setup_.zero_stage == 1 && replicas_ > 1;
    return gathers ? time + pieces_time(NetworkCollective::all_gather, stage.weights) : time;
  }

  [[nodiscard]] Picos reduction(std::int64_t index) const {
    if (setup_.zero_stage >= 2) return Picos(0);
    const StageSum& stage = stages_[static_cast<std::size_t>(index)];
    const Bytes gradients(stage.weights.count() / setup_.weight_bytes() * setup_.gradient_bytes());
    const Picos passes = passes_over(gradients);
    return replicas_ == 1 ? passes : passes + reduction(gradients, stage.times.backward);
  }

  // What Megatron-LM does with all gradients before they are reduced at once, however many replicas there are
  // (models/step/gradient_reducer.h). The probe reduces while it goes backwards.
  [[nodiscard]] Picos passes_over(Bytes gradients) const {
    if (!setup_.traits().megatron || setup_.overlap_gradients || !has_stages(setup_)) return Picos(0);
    const std::int64_t passes = setup_.traits().copies_gradients ? 3 : 1;
    return machine_.cost->duration({.bytes = gradients * 2, .memory = MemoryKind::optimizer}).time * passes;
  }

  // Of the embedding's gradients, which a tied head on another stage has a copy of.
  [[nodiscard]] Picos shared_reduction() const {
    const std::int64_t last = layout_.stages() - 1;
    if (last == 0 || machine_.shared_parameters == 0) return Picos(0);
    const std::int64_t parts = setup_.tensor_parallel * (setup_.zero_stage >= 2 ? shards_ : 1);
    const Bytes gradients(machine_.shared_parameters / parts * setup_.gradient_bytes());
    return machine_.cluster.timer(NetworkCollective::all_reduce, gradients, layout_.stage_pair(0, last));
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
    return machine_.cluster.timer(kind, bytes / pieces, layout_.shard_group()) * pieces;
  }

  // What of it the last backward doesn't hide.
  [[nodiscard]] Picos reduction(Bytes gradients, Picos backward) const {
    const NetworkCollective kind =
        setup_.zero_stage == 0 ? NetworkCollective::all_reduce : NetworkCollective::reduce_scatter;
    if (!setup_.overlap_gradients)
      return machine_.cluster.timer(kind, gradients, layout_.shard_group()) + over_groups(gradients);
    // Of the second communicator the first bucket waits for the first's, and the last is seen on both.
    const std::int64_t pieces = buckets(gradients);
    const Picos within = pieces_time(kind, gradients), over = over_groups(gradients / pieces) * pieces;
    const Picos all = std::max(within, over) + std::min(within, over) / pieces;
    return std::max((within + over) / pieces, all - backward);
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

  [[nodiscard]] Bytes peak(const StageSum& stage) const {
    const std::int64_t states = setup_.zero_stage == 1 ? shards_ : 1;
    const Bytes fixed = stage.weights + stage.gradients + stage.buffers + share(stage.states, states);
    Bytes update = stage.update_transient;
    if (shape_.update_scales) {
      const double growth =
          static_cast<double>(stage.weights.count()) /
          std::max(1.0,
                   static_cast<double>((shape_.middle.weights + shape_.layer_weights * shape_.updated_layers).count()));
      update = Bytes(std::llround(static_cast<double>(update.count()) * growth));
    }
    return fixed + std::max(stage.kept + stage.transient, share(update, states));
  }

  const StepMachine& machine_;
  const StepShape& shape_;
  const TrainingSetup& setup_;
  ParallelLayout layout_;
  std::int64_t replicas_, shards_;
  ShapeTimes layer_;
  std::vector<StageSum> stages_;
};

}  // namespace

bool has_closed_form(const TrainingSetup& setup) {
  if (!setup.step_barrier || setup.optimizer_device != StateDevice::gpu) return false;
  if (setup.offloaded_states > 0 || setup.recomputed_chunks > 0) return false;
  if (setup.pipeline_plan || (setup.late_reduction && setup.gradient_accumulation > 1)) return false;
  const std::string schedule = schedule_name(setup);
  return schedule == default_schedule || schedule == interleaved_schedule || schedule == all_forwards_first;
}

TrainingSetup nearest_closed_form(TrainingSetup setup) {
  if (has_closed_form(setup)) return setup;
  setup.pipeline_plan.reset();
  setup.step_barrier = true;
  setup.optimizer_device = StateDevice::gpu;
  setup.offloaded_states = setup.recomputed_chunks = 0;
  setup.late_reduction = false;
  const bool interleaves = setup.pipeline_chunks > 1 && setup.pipeline_parallel > 1 &&
                           setup.gradient_accumulation % setup.pipeline_parallel == 0;
  if (!interleaves) setup.pipeline_chunks = 1;
  setup.pipeline_schedule = interleaves ? interleaved_schedule : default_schedule;
  return setup;
}

std::vector<std::string_view> unseen_fields(const ModelSpec& model, const TrainingSetup& setup) {
  std::vector<std::string_view> fields;
  const bool alone = setup.data_parallel * setup.context_parallel == 1;
  if (alone || setup.zero_stage >= 2 || (setup.zero_stage == 0 && !setup.overlap_gradients))
    fields.emplace_back("bucket_bytes");
  // All that are no "chunked" one are one.
  TrainingSetup other = setup;
  other.loss = setup.loss == LossForm::fused ? LossForm::fp32 : LossForm::fused;
  if (setup.loss != LossForm::chunked && !setup.compares_answers() &&
      loss_in_effect(model, setup) == loss_in_effect(model, other))
    fields.emplace_back("loss");
  if (setup.zero_stage >= 2) fields.emplace_back("overlap_gradients");
  if (setup.zero_stage < 3) fields.emplace_back("prefetch");
  return fields;
}

Picos least_step_time(const StepMachine& machine, const StepShape& shape, const TrainingSetup& setup) {
  return Estimator(machine, shape, setup).least();
}

Bytes least_peak(const StepMachine& machine, const StepShape& shape, const TrainingSetup& setup) {
  SPILLWAY_ASSERT(has_closed_form(setup));
  return Estimator(machine, shape, setup).least_held();
}

StepEstimate least_step(const StepMachine& machine, const StepShape& shape, const TrainingSetup& setup,
                        std::span<const char> counted) {
  return Estimator(machine, shape, setup).least_step(counted);
}

StepEstimate least_sharded_step(const StepMachine& machine, const StepShape& plain, const TrainingSetup& setup) {
  SPILLWAY_ASSERT(has_closed_form(setup) && setup.zero_stage >= 2);
  return Estimator(machine, plain, setup).least_sharded();
}

std::vector<Bytes> stage_peaks(const StepMachine& machine, const StepShape& shape, const TrainingSetup& setup) {
  SPILLWAY_ASSERT(has_closed_form(setup));
  return Estimator(machine, shape, setup).peaks();
}

StepEstimate estimate_step(const StepMachine& machine, const StepShape& shape, const TrainingSetup& setup) {
  SPILLWAY_ASSERT(has_closed_form(setup));
  return Estimator(machine, shape, setup).run();
}

}  // namespace spillway::studies
