#include "studies/screen/step_shape.h"

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "base/field_setter.h"
#include "base/input_error.h"
#include "models/pipeline/named_schedules.h"
#include "models/session/communication.h"
#include "models/spec/expert_load.h"
#include "models/spec/model_part.h"
#include "models/spec/training_setup_fields.h"
#include "models/step/trace_generator.h"
#include "scenario/scenario_run.h"

namespace spillway::studies {
namespace {

constexpr std::int64_t micro_batches = 3, stages = 3;
constexpr std::size_t most_layers = 8;  // per stage of a probe
constexpr std::uint16_t middle_batch = 1;
constexpr std::int64_t most_cached_layers = 48;  // of a probe for the allocator

bool is_backward(Phase phase) { return phase == Phase::backward || phase == Phase::recompute; }

// Sections of a rank's work, by phase and micro-batch.
struct Section {
  Picos begin = Picos(std::numeric_limits<std::int64_t>::max()), end{};
  Picos free{};  // end of the section before it in program order, and of what that sent where it is waited for
  bool computes = false;
  void take(Picos from, Picos to) {
    begin = std::min(begin, from);
    end = std::max(end, to);
  }
};

// Last ends by layer of the stage.
struct LayerEnds {
  std::array<Picos, most_layers> forward{}, backward{};
  void take(bool is_backward, std::size_t layer, Picos end) {
    Picos& last = (is_backward ? backward : forward)[layer];
    last = std::max(last, end);
  }
};

// One rank of the probe.
struct Stage {
  std::array<Section, micro_batches> forward{}, backward{};
  LayerEnds device, host;               // middle micro-batch
  ShapeTimes layers_work, extra_work;   // its work, but for sends and receives
  ShapeTimes layers_in_turn;            // its kernels, and collectives that these stand still for, each by itself
  Picos covered{};                      // until when the device worked
  Section host_forward, host_backward;  // its calls
  Picos forward_received = Picos(-1), backward_received = Picos(-1);  // middle micro-batch
  Picos tail{}, update{};                                             // after the backward; the optimizer
  Picos done = Picos(-1);                                             // last end of either; -1: it waits for others
  // While ops are taken, in program order.
  Phase phase = Phase::forward;
  Section* section = nullptr;
  Picos sent{};
  Bytes message{};
};

// What runs one after the other on each rank, whatever else runs: the kernels of the stream that has most of them, and
// collectives of activations that these stand still for. Each waits for the kernel that was launched before it, and the
// kernel launched next waits for it. In program order. Of several at one time those of the lane that takes longest.
// Collectives of gradients and weights come by the bucket, not by the layer.
class InTurn {
 public:
  explicit InTurn(const Trace& trace) : trace_(trace), ranks_(trace.rank_count), is_(trace.ops.size(), 0) {
    std::vector<Picos> kernels(trace.lanes.size());
    for (std::size_t op = 0; op < trace.ops.size(); ++op)
      if (trace.ops.kind[op] == OpKind::kernel) kernels[index_of(trace.ops.lane[op])] += trace.ops.duration[op];
    for (std::size_t lane = 0; lane < kernels.size(); ++lane) {
      traces::LaneId& main = ranks_[trace.lanes[lane].rank].main;
      if (main == traces::LaneId::none || kernels[lane] > kernels[index_of(main)])
        main = traces::LaneId(static_cast<std::uint32_t>(lane));
    }
    std::vector<std::vector<OpId>> sources(trace.ops.size());
    for (const traces::Edge& edge : trace.edges) sources[index_of(edge.to)].push_back(edge.from);
    known_.assign(trace.ops.size(), 0);
    for (const traces::Lane& lane : trace.lanes) {
      const std::string_view name = trace.strings.text(lane.name);
      of_activations_.push_back(std::any_of(groups_.begin(), groups_.end(),
                                            [&](models::CommGroup group) { return name == to_string(group); }));
    }
    for (std::size_t op = 0; op < trace.ops.size(); ++op)
      if (is_device_work(trace.ops.kind[op])) take(op, sources[op]);
  }
  [[nodiscard]] bool has(std::size_t op) const { return is_[op] != 0; }

 private:
  struct Rank {
    traces::LaneId main = traces::LaneId::none;
    std::uint32_t kernels = 0;  // launched there so far
    std::map<traces::LaneId, std::uint32_t> known;
    std::map<traces::LaneId, std::vector<std::size_t>> waiting;  // collectives behind the last kernel
  };

  void take(std::size_t op, const std::vector<OpId>& sources) {
    const traces::LaneId lane = trace_.ops.lane[op];
    Rank& rank = ranks_[trace_.lanes[index_of(lane)].rank];
    std::uint32_t& known = rank.known[lane];  // of the kernels, those that are done when it begins
    for (const OpId from : sources) known = std::max(known, known_[index_of(from)]);
    if (lane == rank.main) {
      settle(rank, sources);
      known = ++rank.kernels;
      is_[op] = trace_.ops.kind[op] == OpKind::kernel ? 1 : 0;
    } else if (trace_.ops.kind[op] == OpKind::collective && known == rank.kernels && of_activations_[index_of(lane)]) {
      rank.waiting[lane].push_back(op);
    }
    known_[op] = known;
  }

  // A kernel of these sources is launched.
  void settle(Rank& rank, const std::vector<OpId>& sources) {
    Picos longest{};
    std::vector<std::size_t> found;
    for (const auto& [lane, collectives] : rank.waiting) {
      Picos time{};
      std::vector<std::size_t> held;
      for (const std::size_t op : collectives) {
        const bool holds = std::any_of(sources.begin(), sources.end(), [&, on = lane](OpId from) {
          return index_of(from) >= op && trace_.ops.lane[index_of(from)] == on;
        });
        if (!holds) continue;
        held.push_back(op);
        time += trace_.ops.duration[op];
      }
      if (time <= longest) continue;
      longest = time;
      found = std::move(held);
    }
    for (const std::size_t op : found) is_[op] = 1;
    rank.waiting.clear();
  }

  static constexpr std::array groups_ = {models::CommGroup::tensor, models::CommGroup::context,
                                         models::CommGroup::expert};

  const Trace& trace_;
  std::vector<Rank> ranks_;
  std::vector<char> of_activations_;  // by lane
  std::vector<char> is_;
  std::vector<std::uint32_t> known_;  // by op: kernels of its rank that are done when it is
};

class ProbeTimes {
 public:
  // `waits`: the host for its device, before a pass that receives.
  ProbeTimes(const Trace& trace, const Result& result, std::size_t layers, Picos kernel_gap, bool waits)
      : trace_(trace),
        result_(result),
        layers_(layers),
        kernel_gap_(kernel_gap),
        waits_(waits),
        in_turn_(trace),
        ranks_(trace.rank_count) {
    for (std::size_t i = 0; i < trace.ops.size(); ++i) {
      if (!is_device_work(trace.ops.kind[i]) || result.op_end[i] == unknown_time) continue;
      take(i);
    }
    for (const Collective& collective : trace.collectives)
      if (collective.kind == CollectiveKind::receive)
        ranks_[rank_of(index_of(collective.op))].message = collective.bytes;
  }

  [[nodiscard]] const Stage& stage(std::size_t rank) const { return ranks_[rank]; }

 private:
  [[nodiscard]] std::size_t rank_of(std::size_t op) const { return trace_.lanes[index_of(trace_.ops.lane[op])].rank; }

  void take(std::size_t op) {
    Stage& stage = ranks_[rank_of(op)];
    const Ops& ops = trace_.ops;
    const Picos begin = result_.op_start[op], end = result_.op_end[op];
    const std::uint16_t batch = ops.micro_batch[op];
    // A collective belongs to the pass of what comes before it; a pass that receives begins with that.
    const std::string_view name = trace_.strings.text(ops.name[op]);
    if (ops.phase[op] != Phase::communication) stage.phase = ops.phase[op];
    if (name == "receive_forward") stage.phase = Phase::forward;
    if (name == "receive_backward") stage.phase = Phase::backward;
    const bool backward = is_backward(stage.phase);
    if (batch == no_index16) {
      const bool updates = stage.phase == Phase::optimizer;
      if (updates || backward) add_rest(stage, op, updates ? stage.update : stage.tail);
      return;
    }
    const std::string_view lane = trace_.strings.text(trace_.lanes[index_of(ops.lane[op])].name);
    if (lane.find(send_lane) != std::string_view::npos) {
      stage.sent = end;
      return;
    }
    if (lane.find(receive_lane) != std::string_view::npos) {
      if (batch == middle_batch) (backward ? stage.backward_received : stage.forward_received) = end;
      return;
    }
    if (batch >= micro_batches) return;
    Section& section = (backward ? stage.backward : stage.forward)[batch];
    if (stage.section != &section) {
      section.free = stage.section == nullptr ? begin : stage.section->end;
      if (waits_) section.free = std::max(section.free, stage.sent);
      stage.section = &section;
    }
    section.take(begin, end);
    // Parts of what was received are gathered before the host waits; the pass begins after that.
    section.computes = section.computes || ops.phase[op] != Phase::communication;
    const bool counts = section.computes && batch == middle_batch;
    add_work(stage, op, counts, backward);
    if (counts) take_middle(stage, op, backward);
  }

  // Without pauses, but for those between queued kernels.
  void add_work(Stage& stage, std::size_t op, bool counts, bool backward) {
    const Picos begin = result_.op_start[op], end = result_.op_end[op];
    const Picos pause = std::clamp(begin - stage.covered, Picos(0), kernel_gap_);
    const Picos work = std::max(Picos(0), end - std::max(begin, stage.covered)) + pause;
    stage.covered = std::max(stage.covered, end);
    if (!counts) return;
    ShapeTimes& sum = trace_.ops.layer[op] != no_index16 ? stage.layers_work : stage.extra_work;
    (backward ? sum.backward : sum.forward) += work;
    if (trace_.ops.layer[op] == no_index16 || !in_turn_.has(op)) return;
    (backward ? stage.layers_in_turn.backward : stage.layers_in_turn.forward) += trace_.ops.duration[op];
  }

  void take_middle(Stage& stage, std::size_t op, bool backward) {
    const std::uint16_t layer = trace_.ops.layer[op];
    if (layer != no_index16) stage.device.take(backward, layer % layers_, result_.op_end[op]);
    const OpId call = trace_.ops.launched_by[op];
    if (call == OpId::none) return;
    const Picos begin = result_.op_start[index_of(call)], end = result_.op_end[index_of(call)];
    (backward ? stage.host_backward : stage.host_forward).take(begin, end);
    if (layer != no_index16) stage.host.take(backward, layer % layers_, end);
  }

  // Work and pauses between it, but for waiting for other stages.
  void add_rest(Stage& stage, std::size_t op, Picos& sum) const {
    const Picos begin = result_.op_start[op], end = result_.op_end[op];
    if (trace_.strings.text(trace_.lanes[index_of(trace_.ops.lane[op])].name) == stages_lane) {
      stage.done = Picos(-1);
      sum += end - begin;
      return;
    }
    sum += std::max(Picos(0), end - (stage.done < Picos(0) ? begin : stage.done));
    stage.done = std::max(stage.done, end);
  }

  const Trace& trace_;
  const Result& result_;
  std::size_t layers_;
  Picos kernel_gap_;
  bool waits_;
  InTurn in_turn_;
  std::vector<Stage> ranks_;
};

// The last layer's in steady state; backwards the first layer comes last. Under ZeRO stage 2 a bucket of gradients may
// hold several layers', and whoever ends one waits for it: the mean of them. Under stage 3 each layer but the last one
// at work also gathers the next: the mean of those in between.
ShapeTimes layer_times(const LayerEnds& ends, std::size_t layers, std::int64_t zero_stage) {
  const auto mean = [](Picos first, Picos last, std::size_t count) {
    return (last - first) / static_cast<std::int64_t>(count);
  };
  if (zero_stage == 3)
    return {mean(ends.forward[1], ends.forward[layers - 2], layers - 3),
            mean(ends.backward[layers - 2], ends.backward[1], layers - 3)};
  const std::size_t steps = zero_stage == 2 ? layers - 1 : 1;
  return {ends.forward[layers - 1] - ends.forward[layers - 2], mean(ends.backward[steps], ends.backward[0], steps)};
}

// When the stage is free for a section, and has what it needs from its neighbour.
Picos ready(const Section& section, Picos received) { return std::max(section.free, received); }

ShapeTimes extra_times(const Stage& stage, const ShapeTimes& layer, std::int64_t layers) {
  const Section& forward = stage.forward[middle_batch];
  const Section& backward = stage.backward[middle_batch];
  return {forward.end - ready(forward, stage.forward_received) - layer.forward * layers,
          backward.end - ready(backward, stage.backward_received) - layer.backward * layers};
}

// Memory of one rank of the probe, in host order.
struct StageMemory {
  std::array<Bytes, 8> by_role{};  // live when the middle backward begins, by TensorRole
  Bytes kept{}, layer_kept{}, transient{}, update_transient{};
};

class ProbeMemory {
 public:
  ProbeMemory(const Trace& trace, std::int16_t device) : trace_(trace), device_(device) { walk(); }
  [[nodiscard]] const StageMemory& memory() const { return memory_; }

 private:
  enum class Part : std::uint8_t { none, forward, backward, update };
  struct Place {
    Part part = Part::none;
    std::uint16_t batch = no_index16;
    std::uint16_t layer = no_index16;
    bool same_section(const Place& other) const { return part == other.part && batch == other.batch; }
  };

  [[nodiscard]] Place place_of(OpId anchor) const {
    if (anchor == OpId::none) return {};
    const std::size_t op = index_of(anchor);
    const Ops& ops = trace_.ops;
    Place place{Part::none, ops.micro_batch[op], ops.layer[op]};
    if (ops.phase[op] == Phase::communication) return {};
    if (place.batch == no_index16)
      place.part = ops.phase[op] == Phase::optimizer ? Part::update : Part::none;
    else
      place.part = is_backward(ops.phase[op]) ? Part::backward : Part::forward;
    return place;
  }

  void walk() {
    std::vector<Bytes> live_of(8);
    Place at;
    Bytes live{}, at_entry{}, peak{}, at_layer{};
    std::vector<Bytes> layer_steps;
    const auto leave = [&](const Place& next) {
      if (at.part == Part::forward && at.batch == middle_batch) {
        memory_.kept = live - at_entry;
        memory_.transient = std::max(memory_.transient, peak - live);
      }
      if (at.part == Part::backward && at.batch == middle_batch)
        memory_.transient = std::max(memory_.transient, peak - at_entry);
      if (at.part == Part::update) memory_.update_transient = std::max(memory_.update_transient, peak - at_entry);
      if (next.part == Part::backward && next.batch == middle_batch)
        std::copy(live_of.begin(), live_of.end(), memory_.by_role.begin());
      at_entry = peak = at_layer = live;
    };
    for (const MemoryEvent& event : trace_.memory_events) {
      if (event.device != device_) continue;
      const Place next = place_of(event.anchor);
      if (next.part != Part::none && !next.same_section(at)) leave(next);
      if (next.part == Part::forward && next.batch == middle_batch && next.layer != at.layer) {
        layer_steps.push_back(live - at_layer);
        at_layer = live;
      }
      if (next.part != Part::none) at = next;
      const auto role = static_cast<std::size_t>(trace_.tensors.role[index_of(event.tensor)]);
      if (event.action == MemoryAction::allocate) {
        live += event.bytes;
        live_of[role] += event.bytes;
      } else if (event.action == MemoryAction::free_requested) {
        live = live - event.bytes;
        live_of[role] = live_of[role] - event.bytes;
      }
      peak = std::max(peak, live);
    }
    leave({});
    // The steps between layers: into the first, first to second, second to third, out of the third.
    if (layer_steps.size() >= 3) memory_.layer_kept = layer_steps[2];
  }

  const Trace& trace_;
  std::int16_t device_;
  StageMemory memory_;
};

Bytes role_bytes(const StageMemory& memory, TensorRole role) { return memory.by_role[static_cast<std::size_t>(role)]; }

// What a stage holds beyond its layers.
ChunkShape chunk_shape(const Stage& stage, const StageMemory& memory, const StepShape& shape, ChunkPlace place,
                       std::int64_t layers) {
  ChunkShape chunk;
  chunk.extra = extra_times(stage, shape.layer, layers);
  chunk.extra_host = {stage.host_forward.end - stage.host_forward.begin - shape.layer_host.forward * layers,
                      stage.host_backward.end - stage.host_backward.begin - shape.layer_host.backward * layers};
  chunk.extra_work = {stage.extra_work.forward + stage.layers_work.forward - shape.layer_work.forward * layers,
                      stage.extra_work.backward + stage.layers_work.backward - shape.layer_work.backward * layers};
  const PipelineWork::Pass pass = pass_of(shape, chunk, place, layers);
  const Picos forward = chunk.extra.forward + shape.layer.forward * layers;
  const Picos backward = chunk.extra.backward + shape.layer.backward * layers;
  // The last stage's backward follows its forward, and waits for nothing.
  const Picos launched = place == ChunkPlace::last ? pass.forward.host() - forward : Picos(0);
  chunk.rest = {forward - pass.forward.end(Picos(0), Picos(0)), backward - pass.backward.end(Picos(0), launched)};
  chunk.kept = memory.kept - shape.layer_kept * layers;
  chunk.transient = memory.transient;
  chunk.update_transient = memory.update_transient;
  chunk.weights = role_bytes(memory, TensorRole::weight) - shape.layer_weights * layers;
  chunk.gradients = role_bytes(memory, TensorRole::gradient) - shape.layer_gradients * layers;
  chunk.states = role_bytes(memory, TensorRole::optimizer_state) - shape.layer_states * layers;
  chunk.buffers = role_bytes(memory, TensorRole::buffer);
  return chunk;
}

// Seconds a byte.
double per_byte(Picos time, Bytes bytes) {
  return bytes > Bytes(0) ? to_seconds(time) / static_cast<double>(bytes.count()) : 0;
}

// Gathers ahead of their use and buckets of gradients take several layers to come to a steady pace. Under ZeRO stage 2
// what is left in the last bucket of a chunk goes at its end: where chunks have fewer layers, so has the probe.
std::int64_t probe_layers(const StepMachine& machine, const TrainingSetup& shape, bool has_plain) {
  constexpr std::int64_t steady = 7, least = 3;
  if (shape.zero_stage < 2) return least;
  if (shape.zero_stage == 3) return steady;
  const std::int64_t chunks = shape.pipeline_parallel * shape.pipeline_chunks;
  const std::int64_t of_chunk = (machine.model->layers + chunks - 1) / chunks;
  return std::clamp<std::int64_t>(of_chunk, has_plain ? 1 : least, steady);
}

TrainingSetup probe_setup(const ModelSpec& model, const TrainingSetup& shape) {
  TrainingSetup setup = shape;
  even_out(model, setup);
  setup.pipeline_parallel = shape.pipeline_parallel > 1 ? stages : 1;
  setup.pipeline_chunks = 1;
  setup.stage_layers.clear();
  setup.gradient_accumulation = micro_batches;
  setup.global_batch = 0;
  return setup;
}

bool is_single(const TrainingSetup& probe) { return probe.pipeline_parallel == 1; }

// The step of a probe. Its stages have equally many layers, whatever a framework weighs them by.
Trace probe_trace(const StepMachine& machine, TrainingSetup setup, std::int64_t layers) {
  ModelSpec model = *machine.model;
  model.layers = layers;
  const std::string of_stage = std::to_string(layers / setup.pipeline_parallel);
  for (std::int64_t stage = 0; stage < setup.pipeline_parallel && !is_single(setup); ++stage)
    setup.stage_layers += (stage > 0 ? " " : "") + of_stage;
  return generate_trace(model, setup, *machine.cost, machine.cluster);
}

// What the allocator reserves over what it hands out at the peaks, on the device where it reserves most.
Bytes cached_bytes(const Trace& trace, const MemoryReplayOptions& options) {
  Bytes allocated{}, reserved{};
  for (const auto& [device, events] : index_memory_events(trace)) {
    const AllocationStreamResult run =
        replay_allocation_stream(trace, events, stream_options(options, device, Bytes(0)));
    if (Bytes(run.statistics.all().reserved_bytes.peak) <= reserved) continue;
    reserved = Bytes(run.statistics.all().reserved_bytes.peak);
    allocated = Bytes(run.statistics.all().allocated_bytes.peak);
  }
  return reserved - allocated;
}

// What one layer's parameters hold, of what one stage more layers hold more of.
StageMemory layer_roles(const StageMemory& few, std::int64_t layers, const StageMemory& many, std::int64_t more) {
  StageMemory layer;
  for (std::size_t role = 0; role < layer.by_role.size(); ++role)
    layer.by_role[role] = (many.by_role[role] - few.by_role[role]) / (more - layers);
  return layer;
}

// Of a step on one stage the depth is known, and with it what the allocator does.
std::int64_t deep_layers(const StepMachine& machine, std::int64_t layers) {
  return std::max(layers + 1, std::min(machine.model->layers, most_cached_layers));
}

}  // namespace

StepMachine::StepMachine(const ModelSpec& spec, const HardwareProfile& profile, const CostModel& cost_model)
    : model(&spec), hardware(profile), cost(&cost_model), cluster(cluster_of(profile)) {
  for (const Parameter& parameter : parameters(spec)) {
    if (parameter.layer == 0) layer_parameters.push_back(parameter.elements());
    if (spec.embeds_at_head() && parameter.name == "embedding.weight") shared_parameters += parameter.elements();
  }
}

PipelineWork::Pass pass_of(const StepShape& shape, const ChunkShape& chunk, ChunkPlace place, std::int64_t layers) {
  const auto turn = [&](Picos ShapeTimes::*way, bool layers_first) {
    const PipelineWork::Part of_layers{shape.layer_work.*way * layers, shape.layer_host.*way * layers};
    const PipelineWork::Part beside{chunk.extra_work.*way, chunk.extra_host.*way};
    return layers_first ? PipelineWork::Turn{of_layers, beside} : PipelineWork::Turn{beside, of_layers};
  };
  return {turn(&ShapeTimes::forward, place == ChunkPlace::last),
          turn(&ShapeTimes::backward, place != ChunkPlace::last)};
}

bool has_alike_layers(const ModelSpec& model, const TrainingSetup& setup) {
  if (setup.recompute_layers != 0 || setup.recompute_every != 1 || setup.images > 0) return false;
  if (model.blocks.size() > 1) return false;
  return !model.has_encoder() && model.global_every == 0 && !model.reads_images() &&
         (!model.has_experts() || (model.experts.every == 1 && model.experts.first_dense_layers == 0));
}

TrainingSetup step_setup(const ModelSpec& model, const TrainingSetup& resolved) {
  const TrainingSetup usual;
  TrainingSetup setup = resolved;
  setup.loss = loss_in_effect(model, resolved);
  if (setup.zero_stage < 3) setup.prefetch = usual.prefetch;
  const bool is_plain = !model.has_experts() && setup.optimizer_device == StateDevice::gpu;
  if (is_plain && setup.zero_stage >= 2 && setup.data_parallel > 1) setup.overlap_gradients = usual.overlap_gradients;
  if (is_plain && setup.zero_stage == 0 && !setup.overlap_gradients && setup.traits().megatron)
    setup.bucket_bytes = usual.bucket_bytes;
  return setup;
}

void even_out(const ModelSpec& model, TrainingSetup& setup) {
  setup.evaluate_every = 0;
  setup.evaluation_keeps = EvaluationKeeps::loss;
  if (!setup.has_expert_loads()) return;
  setup.expert_imbalance = fullest_over_mean(model, setup);
  setup.expert_load = ExpertSpread::even;
  setup.expert_capacity = 0;
}

TrainingSetup shape_setup(const TrainingSetup& resolved) {
  TrainingSetup setup = resolved;
  if (setup.zero_stage != 2) {
    setup.pipeline_parallel = std::min<std::int64_t>(resolved.pipeline_parallel, 2);
    setup.pipeline_chunks = 1;
  }
  setup.pipeline_schedule = default_schedule;
  setup.stage_layers.clear();
  setup.recomputed_chunks = 0;
  setup.split_backward = false;
  setup.gradient_accumulation = 1;
  setup.global_batch = 0;
  setup.value_model.clear();  // add_phases() of step_estimate.cc has them
  setup.reward_model.clear();
  setup.value_micro_batch = 0;
  setup.overlap_gradients = true;
  setup.bucket_bytes = TrainingSetup().bucket_bytes;
  if (setup.zero_stage < 3) setup.prefetch = TrainingSetup().prefetch;
  if (setup.zero_stage < 2) {
    setup.zero_stage = 0;
    setup.shard_groups = 1;
    if (setup.expert_parallel == 1) setup.data_parallel = 1;
  }
  return setup;
}

TrainingSetup plain_setup(const TrainingSetup& shape) {
  TrainingSetup setup = shape;
  setup.zero_stage = 0;
  setup.fp32_reduction = setup.late_reduction = false;
  return shape_setup(setup);
}

std::string shape_key(const TrainingSetup& shape) {
  TrainingSetup copy = shape;  // visitors may change what they visit; this one does not
  FieldTexts texts;
  describe(copy, texts);
  return texts.take();
}

std::string probe_key(const StepMachine& machine, const TrainingSetup& shape, bool has_plain) {
  TrainingSetup probed = shape;
  probed.pipeline_parallel = std::min<std::int64_t>(shape.pipeline_parallel, 2);
  probed.pipeline_chunks = 1;
  return shape_key(probed) + std::to_string(probe_layers(machine, shape, has_plain));
}

StepShape measure_shape(const StepMachine& machine, const TrainingSetup& wanted, const StepShape* plain) {
  const TrainingSetup setup = probe_setup(*machine.model, wanted);
  const bool single = is_single(setup);
  const std::int64_t layers = probe_layers(machine, wanted, plain != nullptr);
  Trace trace = probe_trace(machine, setup, layers * setup.pipeline_parallel);
  const std::size_t middle = single ? 0 : 1;
  StageMemory memory = ProbeMemory(trace, static_cast<std::int16_t>(middle)).memory();
  std::array<StageMemory, 2> ends;  // first and last stage
  StageMemory layer;
  StepShape shape;
  shape.updated_layers = layers;
  shape.layers_with_collectives = setup.zero_stage >= 2 ? layers : 0;
  if (single) {
    const std::int64_t deep = deep_layers(machine, layers);
    const StageMemory held = ProbeMemory(probe_trace(machine, setup, deep), 0).memory();
    layer = layer_roles(memory, layers, held, deep);
    memory.update_transient = held.update_transient;
    shape.updated_layers = deep;
  } else {
    ends = {ProbeMemory(trace, 0).memory(), ProbeMemory(trace, 2).memory()};
    layer = layer_roles({}, 0, memory, layers);  // nothing but layers
  }
  trace.memory_events.clear();  // nothing that follows asks for memory
  const Result result = replay(trace, machine.hardware, machine.options);
  const ProbeTimes times(trace, result, static_cast<std::size_t>(layers), machine.hardware.gpu.kernel_gap.value,
                         setup.traits().megatron);
  const Stage& stage = times.stage(middle);

  if (layers < 3) {  // too few for differences of layers
    shape.layer = plain->layer;
    shape.layer_host = plain->layer_host;
    shape.layer_kept = plain->layer_kept;
  } else {
    shape.layer = layer_times(stage.device, static_cast<std::size_t>(layers), setup.zero_stage);
    shape.layer_host = layer_times(stage.host, static_cast<std::size_t>(layers), setup.zero_stage);
    shape.layer_kept = memory.layer_kept;
  }
  shape.layer_weights = role_bytes(layer, TensorRole::weight);
  shape.layer_gradients = role_bytes(layer, TensorRole::gradient);
  shape.layer_states = role_bytes(layer, TensorRole::optimizer_state);
  const Bytes weights = role_bytes(memory, TensorRole::weight);
  shape.update_per_byte = per_byte(stage.update, weights);
  shape.tail_per_byte = per_byte(stage.tail, weights);
  shape.message = stage.message;
  shape.update_scales = setup.traits().megatron;
  shape.layer_work = {stage.layers_work.forward / layers, stage.layers_work.backward / layers};
  shape.in_turn = {stage.layers_in_turn.forward / layers, stage.layers_in_turn.backward / layers};
  shape.middle = chunk_shape(stage, memory, shape, ChunkPlace::middle, layers);
  shape.first = shape.last = shape.only = shape.middle;
  if (!single) {
    shape.first = chunk_shape(times.stage(0), ends[0], shape, ChunkPlace::first, layers);
    shape.last = chunk_shape(times.stage(2), ends[1], shape, ChunkPlace::last, layers);
  }
  return shape;
}

Bytes measure_cached(const StepMachine& machine, const TrainingSetup& wanted, bool has_plain) {
  const TrainingSetup setup = probe_setup(*machine.model, wanted);
  const std::int64_t layers = probe_layers(machine, wanted, has_plain);
  const std::int64_t all = is_single(setup) ? deep_layers(machine, layers) : layers * setup.pipeline_parallel;
  return cached_bytes(probe_trace(machine, setup, all), machine.options.memory);
}

}  // namespace spillway::studies
