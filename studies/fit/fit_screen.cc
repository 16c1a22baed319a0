#include "studies/fit/fit_screen.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "base/input_error.h"
#include "base/parallel.h"
#include "base/stop.h"
#include "models/step/generatable.h"
#include "planners/offload/checkpoints.h"
#include "planners/offload/lifetimes.h"
#include "planners/offload/offload_settings.h"
#include "planners/technique/technique_table.h"
#include "studies/screen/state_bound.h"

namespace spillway::studies {
namespace {

// The commonest of each part of a layer, in one kind of layer; as many of these as layers have the part that most have.
// Layers that hold a mixer or a feed-forward block alone so count by twos.
void join_blocks(ModelSpec& model) {
  std::array<std::int64_t, 6> mixers{};
  std::array<std::int64_t, 4> feed_forwards{};
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    const Block block = model.block(layer);
    ++mixers[static_cast<std::size_t>(block.mixer)];
    ++feed_forwards[static_cast<std::size_t>(block.feed_forward)];
  }
  const auto commonest = [&model](const auto& counts, auto none) {
    std::size_t best = static_cast<std::size_t>(none);
    std::int64_t most = 0;
    for (std::size_t i = 0; i < counts.size(); ++i)
      if (i != static_cast<std::size_t>(none) && counts[i] > most) most = counts[best = i];
    return static_cast<decltype(none)>(best);
  };
  Block kind;
  kind.mixer = commonest(mixers, Mixer::none);
  kind.feed_forward = commonest(feed_forwards, FeedForward::none);
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    Block block = model.block(layer);
    if (block.mixer != kind.mixer) continue;
    block.count = 1;
    block.feed_forward = kind.feed_forward;
    kind = block;
    break;
  }
  const auto without = [&model](const auto& counts, auto none) {
    return model.layers - counts[static_cast<std::size_t>(none)];
  };
  model.layers = std::max(without(mixers, Mixer::none), without(feed_forwards, FeedForward::none));
  model.blocks = {kind};
}

// Layers of the kind that most of them are.
ModelSpec alike(ModelSpec model) {
  if (model.blocks.size() > 1) join_blocks(model);
  model.experts.first_dense_layers = 0;
  model.experts.every = 1;
  if (model.global_every > 0) model.attention_window = model.global_every = 0;
  return model;
}

// Which layers are of the kind that alike() makes of all.
std::vector<char> alike_layers(const ModelSpec& model, const ModelSpec& all) {
  const auto kind = [](const Block& b) {
    return std::tuple(b.mixer, b.feed_forward, b.window, b.heads, b.kv_heads, b.head_dim, b.value_dim, b.width);
  };
  std::vector<char> are;
  for (std::int64_t layer = 0; layer < model.layers; ++layer)
    are.push_back(kind(model.block(layer)) == kind(all.block(0)) ? 1 : 0);
  return are;
}

// The step that stands for one whose optimizer runs elsewhere: no state, no master weights.
TrainingSetup without_state(TrainingSetup setup) {
  setup.optimizer_device = setup.weight_device = StateDevice::gpu;
  setup.delayed_update = false;
  setup.offloaded_states = 0;
  setup.optimizer = OptimizerKind::sgd;
  setup.fp32_gradients = setup.fp32_reduction = false;
  if (is_mixed(setup.precision)) setup.precision = TrainingPrecision::bf16;
  return setup;
}

}  // namespace

// Set-ups whose closed form stands for a point's.
struct FitScreen::Stand {
  TrainingSetup setup;  // resolved
  std::string key;      // of its shape
};

struct FitScreen::Prepared {
  std::string invalid;
  TrainingSetup setup;  // resolved
  Stand time, peak;
  Stand likely;       // of its time, where that has no closed form
  Bytes state{};      // at least
  Bytes not_there{};  // of the peak's: state that is elsewhere
  // Tensors, by a technique; of these, what the backward needs.
  bool moves = false, moves_activations = false;
};

FitScreen::FitScreen(const FitSubject& subject, const FitPoints& points)
    : subject_(subject),
      points_(points),
      model_(alike(*subject.model)),
      cost_(subject.hardware),
      machine_(model_, subject.hardware, cost_) {
  machine_.options.speed = subject.parsed.what_if;
  has_other_speed_ = subject.parsed.what_if != RelativeSpeed{};
  alike_ = alike_layers(*subject.model, model_);
  all_alike_ = model_.layers == subject.model->layers && std::find(alike_.begin(), alike_.end(), 0) == alike_.end();
  const HardwareProfile& hardware = subject.hardware;
  whole_capacity_ = subject.parsed.capacity_bytes ? Bytes(*subject.parsed.capacity_bytes)
                                                  : hardware.gpu.memory.value - hardware.gpu.context_memory.value;
  capacity_ = whole_capacity_ / 100 * 97;  // the reserve, about (scenario/reserve.h)
}

FitScreen::Stand FitScreen::stand_of(const TrainingSetup& setup) const {
  Stand stand{has_alike_layers(model_, setup) ? resolve(setup, model_) : setup, {}};
  stand.key = shape_key(shape_setup(stand.setup));
  return stand;
}

// A bound knows nothing of the bubble: of a schedule without a closed form the nearest that has one says more.
FitScreen::Stand FitScreen::likely_stand(const Stand& stand) const {
  if (has_closed_form(stand.setup)) return stand;
  try {
    return stand_of(nearest_closed_form(stand.setup));
  } catch (const InputError&) {
    return stand;
  }
}

FitScreen::Prepared FitScreen::prepare(const FitPoint& point) const {
  Prepared prepared;
  try {
    prepared.setup = resolve(point.setup, *subject_.model);
    require_generatable(*subject_.model);
    require_generatable(*subject_.model, prepared.setup);
    require_precision(prepared.setup, subject_.hardware.gpu);
    prepared.state = least_state_bytes(*subject_.model, prepared.setup);
    const std::string technique = points_.value(point, std::string(offload_key));
    prepared.moves = !technique.empty() && technique != no_offload;
    const bool moves_state = prepared.moves && technique_named(technique).moves_state;
    const bool is_elsewhere = prepared.setup.optimizer_device != StateDevice::gpu;
    TrainingSetup work = is_elsewhere ? without_state(prepared.setup) : prepared.setup;
    if (technique == checkpoints_word) work.recompute = Recompute::full;
    prepared.time = stand_of(work);
    prepared.likely = likely_stand(prepared.time);
    TrainingSetup least = is_elsewhere || moves_state ? without_state(prepared.setup) : prepared.setup;
    prepared.moves_activations = prepared.moves && technique != streaming_word;
    if (prepared.moves_activations) least.recompute = Recompute::full;
    prepared.peak = stand_of(least);
    if (moves_state) prepared.state = Bytes(0);
    if (moves_state || prepared.setup.weight_device != StateDevice::gpu)
      prepared.not_there = least_state_bytes(model_, prepared.peak.setup);
  } catch (const InputError& error) {
    prepared.invalid = (error.place().empty() ? "" : error.place() + ": ") + error.cause();
  }
  return prepared;
}

void FitScreen::measure(std::span<const Prepared> points) {
  std::vector<std::pair<const Stand*, Shape*>> wanted;
  for (const Prepared& point : points) {
    if (!point.invalid.empty() || point.state > capacity_ || !has_alike_layers(model_, point.setup)) continue;
    for (const Stand* const stand : {&point.time, &point.likely, &point.peak}) {
      const auto [at, is_new] = shapes_.try_emplace(stand->key);
      if (is_new) wanted.emplace_back(stand, &at->second);
    }
  }
  in_parallel(wanted.size(), [&](std::size_t i) {
    const auto& [stand, shape] = wanted[i];
    try {
      shape->shape = measure_shape(machine_, shape_setup(stand->setup));
    } catch (const InputError& error) {
      shape->failure = error.cause();
    }
  });
}

// Of the CPUs of one machine, for the parameters that its GPUs hand them; after ZeRO-Offload nothing hides it.
double FitScreen::update_seconds(const TrainingSetup& setup) const {
  const HostProfile& host = subject_.hardware.host;
  constexpr double bytes_of_update = 28;  // read and written by Adam for each parameter: weight, two moments, gradient
  const double rate = host.cpu_adam_parameters_per_second
                          ? host.cpu_adam_parameters_per_second->value
                          : to_bytes_per_second(host.dram_bandwidth.value) / bytes_of_update;
  const auto parameters = static_cast<double>(parameter_count(*subject_.model));
  const double shares = setup.zero_stage > 0 ? 1 : static_cast<double>(setup.data_parallel * setup.context_parallel);
  const auto each = static_cast<double>(std::min(setup.gpus(), subject_.hardware.gpu_count));
  return parameters * shares / static_cast<double>(setup.gpus()) * each / rate;
}

FitEstimate FitScreen::finish(const Prepared& prepared) const {
  FitEstimate estimate{
      .invalid = prepared.invalid, .peak = prepared.state, .is_bound = true, .least_peak = prepared.state};
  if (!estimate.invalid.empty()) return estimate;
  estimate.holds_too_much = prepared.state > capacity_;
  const auto found = shapes_.find(prepared.time.key);
  if (found == shapes_.end()) return estimate;
  if (!found->second.shape) {
    estimate.invalid = found->second.failure;
    return estimate;
  }
  estimate.is_bound = prepared.moves || !has_closed_form(prepared.time.setup);
  const auto likely = shapes_.find(prepared.likely.key);
  const bool has_likely = has_closed_form(prepared.likely.setup) && likely != shapes_.end() && likely->second.shape;
  estimate.seconds =
      to_seconds(has_likely ? estimate_step(machine_, *likely->second.shape, prepared.likely.setup).step_time
                            : least_step_time(machine_, *found->second.shape, prepared.time.setup));
  if (prepared.setup.optimizer_device != StateDevice::gpu) estimate.seconds += update_seconds(prepared.setup);
  estimate.peak = std::max(prepared.state, peak_of(prepared));
  bound(prepared, estimate);
  return estimate;
}

// Nothing but the state is known under techniques that move tensors, of another speed than the machine's, and of
// adapters, for which another precision (without_state()) is another step. Of layers that are not all alike those that
// are count.
void FitScreen::bound(const Prepared& prepared, FitEstimate& estimate) const {
  const auto found = shapes_.find(prepared.time.key);
  if (prepared.moves || found == shapes_.end() || !found->second.shape || has_other_speed_) return;
  const TrainingSetup& time = prepared.time.setup;
  if (time.trainable != Trainable::full) return;
  // By layer, where the model that stands for it has as many; else by their share.
  const ModelSpec& whole = *subject_.model;
  if (model_.layers == whole.layers && whole.all_layers() == whole.layers) {
    estimate.least_seconds = to_seconds(least_step(machine_, *found->second.shape, time, alike_).step_time);
  } else {
    const auto count = static_cast<double>(std::count(alike_.begin(), alike_.end(), 1));
    estimate.least_seconds = count / static_cast<double>(std::max(model_.layers, whole.layers)) *
                             to_seconds(least_step(machine_, *found->second.shape, time).busy);
  }
  const auto peak = shapes_.find(prepared.peak.key);
  const TrainingSetup& setup = prepared.peak.setup;
  if (peak == shapes_.end() || !peak->second.shape || !has_closed_form(setup) || !all_alike_) return;
  const bool keeps_weights = prepared.setup.weight_device == StateDevice::gpu;
  const Bytes held = least_step(machine_, *peak->second.shape, setup).peak_allocated;
  const bool knows_weights = setup.zero_stage < 3;
  const Bytes state = !knows_weights && keeps_weights ? prepared.state : Bytes(0);
  const Bytes elsewhere = knows_weights && !keeps_weights ? prepared.not_there : Bytes(0);
  estimate.least_peak = std::max(estimate.least_peak, held + state - elsewhere);
}

Bytes FitScreen::peak_of(const Prepared& prepared) const {
  const auto found = shapes_.find(prepared.peak.key);
  if (found == shapes_.end() || !found->second.shape || !has_closed_form(prepared.peak.setup)) return Bytes(0);
  const StepShape& shape = *found->second.shape;
  const TrainingSetup& setup = prepared.peak.setup;
  const Bytes peak = prepared.moves_activations ? least_peak(machine_, shape, setup)
                                                : estimate_step(machine_, shape, setup).peak_allocated;
  return peak - prepared.not_there;
}

std::vector<FitEstimate> FitScreen::estimate(std::span<const FitPoint> points) {
  std::vector<Prepared> prepared;
  prepared.reserve(points.size());
  for (const FitPoint& point : points) prepared.push_back(prepare(point));
  measure(prepared);
  std::vector<FitEstimate> estimates;
  estimates.reserve(points.size());
  for (const Prepared& one : prepared) {
    check_stop();
    estimates.push_back(finish(one));
  }
  return estimates;
}

}  // namespace spillway::studies
