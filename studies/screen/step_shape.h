// StepShape: what the passes of a model's layers take on one machine, from which step_estimate.h puts whole steps
// together without events.
//
// Shapes are measured, not modelled a second time. A probe of the same model with few layers per stage (three stages,
// or one if the step has no pipeline) and three micro-batches is generated and replayed. The passes of the middle
// micro-batch and their memory are read off, per layer by the difference between neighbouring layers. So every rule of
// the generator and of the replay (host-bound intervals, collectives of the tensor group, recomputation, fused kernels)
// is in it. A probe takes a few milliseconds. It serves all depths, micro-batch counts, schedules, and, below ZeRO
// stage 2, numbers of replicas; under stage 2 it is of one number of layers per chunk. Its buckets have the default
// size. The allocator is run once over the probe's allocations, for what it keeps cached, when that is asked for. With
// one stage it runs over those of a probe with the step's own layers, as reuse of cached blocks depends on their
// number.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "models/spec/model_spec.h"
#include "models/step/parallel_trace.h"
#include "sim/replay/replay.h"
#include "studies/screen/pipeline_ends.h"

namespace spillway::studies {

// Common parts of all steps on one machine.
struct StepMachine {
  const ModelSpec* model = nullptr;  // as is; not null
  HardwareProfile hardware;
  const CostModel* cost = nullptr;
  Cluster cluster;
  ReplayOptions options;
  std::vector<std::int64_t> layer_parameters;  // elements of one layer's, in order
  std::int64_t shared_parameters = 0;          // elements of the embedding, where the head is tied to it
  std::shared_ptr<PipelineRuns> pipelines = std::make_shared<PipelineRuns>();

  StepMachine(const ModelSpec& model, const HardwareProfile& hardware, const CostModel& cost);
};

struct ShapeTimes {
  Picos forward{}, backward{};  // recomputation is part of the backward
};

// One kind of chunk: what it adds to its layers.
struct ChunkShape {
  ShapeTimes extra;          // beyond its layers
  ShapeTimes extra_host;     // the same of the host's calls
  ShapeTimes extra_work;     // the same of the device's work without pauses
  ShapeTimes rest;           // of a pass of a pipeline that waits, beyond the slower of host and device
  Bytes kept{};              // per micro-batch in flight, beyond its layers
  Bytes transient{};         // most held for a while during a pass
  Bytes update_transient{};  // most held for a while during the update
  Bytes weights{};           // beyond its layers; bytes of the weights as trained with
  Bytes gradients{}, states{}, buffers{};
};

struct StepShape {
  ShapeTimes layer;
  // Layers of the probe's stages, with the collectives of ZeRO stages 2 and 3 in their passes; 0: they have none.
  std::int64_t layers_with_collectives = 0;
  ShapeTimes layer_host;  // of the host's calls, which set the pace where they take longer
  ShapeTimes layer_work;  // of the device's work without pauses
  // A layer's kernels on one stream and the collectives that these stand still for, as priced: no copies, nothing that
  // slows them.
  ShapeTimes in_turn;
  Bytes layer_kept{};
  Bytes layer_weights{}, layer_gradients{}, layer_states{};
  // With the embedding, with neither, with the head; without a pipeline `only` has both.
  ChunkShape first, middle, last, only;
  std::int64_t updated_layers = 0;  // per stage, of which update_transient is
  Bytes message{};                  // from stage to stage
  double update_per_byte = 0;       // seconds of the optimizer per byte of weights, one rank holding all states
  double tail_per_byte = 0;         // seconds per byte of weights of what else follows the backward
  Bytes cached{};                   // measure_cached()'s; 0 until then
  bool update_scales = false;       // update_transient grows with all weights (one parameter group)
};

// A pass of a pipeline's stage, without `rest`: the embedding comes before its layers, the head after them.
enum class ChunkPlace : std::uint8_t { first, middle, last };
PipelineWork::Pass pass_of(const StepShape& shape, const ChunkShape& chunk, ChunkPlace place, std::int64_t layers);

// Whether steps of this model can be put together from a layer's: all layers are alike, and none recomputed alone.
bool has_alike_layers(const ModelSpec& model, const TrainingSetup& setup = {});

// Sets fields of a resolved set-up that its step's events do not depend on to one value, so equal results mean equal
// steps. These are layers gathered ahead below ZeRO stage 3, and forms of the loss that the framework does not know.
// Also overlap of gradients that are shared out, and sizes of buckets where Megatron-LM reduces all at once. Some equal
// steps keep different results.
TrainingSetup step_setup(const ModelSpec& model, const TrainingSetup& resolved);

// Fields of the set-up that a shape does not depend on are set to one value, so equal results mean equal shapes.
TrainingSetup shape_setup(const TrainingSetup& resolved);
// Draws differ from layer to layer; what stands for many has a mean one. Evaluations are left to replays.
void even_out(const ModelSpec& model, TrainingSetup& setup);
// Names the fields of shape_setup(): a key.
std::string shape_key(const TrainingSetup& shape);
// A key of the shape's probe alone: equal for shapes that measure_shape() can't distinguish. Under ZeRO stage 2 these
// have chunks of seven layers or more, in however many chunks.
std::string probe_key(const StepMachine& machine, const TrainingSetup& shape, bool has_plain);

// The same without ZeRO: its kernels, its activations. It differs from the asked shape in collectives of gradients and
// weights, and in what these hold.
TrainingSetup plain_setup(const TrainingSetup& shape);

// `shape`: as shape_setup() gave it. Precondition: has_alike_layers(). `plain`: the shape of plain_setup(shape), by
// which chunks of one or two layers are measured under ZeRO stage 2; null: the probe has three layers at least. Throws
// what the generator throws.
StepShape measure_shape(const StepMachine& machine, const TrainingSetup& shape, const StepShape* plain = nullptr);

// Bytes that the allocator reserves of the same probe beyond what it hands out, at the peaks. Apart, as many a shape
// serves only steps that can't be on a front whatever lies cached. As long again as measure_shape(). `has_plain`: it
// was given the plain shape.
Bytes measure_cached(const StepMachine& machine, const TrainingSetup& shape, bool has_plain = false);

}  // namespace spillway::studies
