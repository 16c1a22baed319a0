#include "validation/published/metric.h"

#include <algorithm>
#include <array>
#include <map>
#include <span>

#include "base/input_error.h"
#include "base/nearest_name.h"
#include "models/spec/model_spec.h"
#include "validation/published/layer_memory.h"

namespace spillway::validation {
namespace {

struct Unit {
  std::string_view name;
  double scale = 1;
};
constexpr std::array<Unit, 3> time_units = {{{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}}};
constexpr std::array<Unit, 4> rate_units = {
    {{"samples/s", 1}, {"samples/s/GPU", 1}, {"tokens/s", 1}, {"tokens/s/GPU", 1}}};
constexpr std::array<Unit, 2> share_units = {{{"fraction", 1}, {"%", 0.01}}};
constexpr std::array<Unit, 4> memory_units = {{{"B", 1}, {"MiB", 1048576}, {"GB", 1e9}, {"GiB", 1073741824}}};

constexpr std::array<Unit, 2> speed_units = {{{"GB/s", 1e9}, {"GiB/s", 1073741824}}};
constexpr std::array<Unit, 2> volume_units = {{{"TB", 1e12}, {"PB", 1e15}}};
constexpr std::array<Unit, 1> day_units = {{{"day", 86400}}};
constexpr std::array<Unit, 1> year_units = {{{"year", 1}}};
constexpr std::array<Unit, 2> traffic_units = {{{"GB", 1e9}, {"M", 1}}};
constexpr std::array<Unit, 1> factor_units = {{{"x", 1}}};
constexpr std::array<Unit, 1> layer_units = {{{"layers", 1}}};

constexpr std::array<std::string_view, metric_count> names = {
    "iteration_time",     "throughput",          "mfu",
    "peak_allocated",     "peak_reserved",       "memory_efficiency",
    "state_memory",       "activation_memory",   "layer_state_memory",
    "layer_kept_memory",  "layer_forward_time",  "layer_backward_time",
    "layer_time",         "drive_traffic",       "activation_saving",
    "relative_step_time", "trainable_layers",    "trainable_ratio",
    "throughput_ratio",   "activation_volume",   "write_bandwidth",
    "forward_time",       "bytes_written",       "training_time",
    "drive_life",         "write_amplification", "drive_fill_rate",
    "link_rate"};

std::span<const Unit> units(Metric metric) {
  switch (metric) {
    case Metric::throughput:
      return rate_units;
    case Metric::mfu:
    case Metric::activation_saving:
    case Metric::memory_efficiency:
      return share_units;
    case Metric::relative_step_time:
    case Metric::trainable_ratio:
    case Metric::throughput_ratio:
      return factor_units;
    case Metric::trainable_layers:
      return layer_units;
    case Metric::peak_allocated:
    case Metric::peak_reserved:
    case Metric::state_memory:
    case Metric::activation_memory:
    case Metric::layer_state_memory:
    case Metric::layer_kept_memory:
    case Metric::activation_volume:
      return memory_units;
    case Metric::write_bandwidth:
    case Metric::drive_fill_rate:
    case Metric::link_rate:
      return speed_units;
    case Metric::drive_traffic:
      return traffic_units;
    case Metric::bytes_written:
      return volume_units;
    case Metric::training_time:
      return day_units;
    case Metric::drive_life:
      return year_units;
    case Metric::write_amplification:
      return factor_units;
    case Metric::iteration_time:
    case Metric::forward_time:
    case Metric::layer_forward_time:
    case Metric::layer_backward_time:
    case Metric::layer_time:
      break;
  }
  return time_units;
}

[[noreturn]] void cannot_tell(Metric metric, const std::string& cause) {
  throw InputError("", "", "no " + std::string(to_string(metric)) + ": " + cause, "");
}

double throughput(std::string_view unit, const LoadedScenario& loaded, const Result& result) {
  if (loaded.scenario.model.empty()) cannot_tell(Metric::throughput, "a captured trace does not say what it trains on");
  const TrainingSetup& setup = loaded.setup;
  double per_step = static_cast<double>(setup.step_tokens());
  if (unit.starts_with("samples")) per_step /= static_cast<double>(setup.sequence);
  if (unit.ends_with("/GPU")) per_step /= static_cast<double>(setup.gpus());
  return per_step / to_seconds(result.step_time);
}

double state_bytes(const LoadedScenario& loaded, const Result& result) {
  if (!result.memory.known) cannot_tell(Metric::state_memory, "the trace has no memory events");
  const Trace& trace = loaded.trace;
  std::map<std::int16_t, double> held;  // by device
  for (const MemoryEvent& event : trace.memory_events) {
    const bool is_named = event.device >= 0 && event.action == MemoryAction::allocate && event.tensor != TensorId::none;
    if (!is_named || event.anchor != OpId::none) continue;
    const TensorRole role = trace.tensors.role[index_of(event.tensor)];
    if (role == TensorRole::weight || role == TensorRole::gradient || role == TensorRole::optimizer_state)
      held[event.device] += static_cast<double>(event.bytes.count());
  }
  double most = 0;
  for (const auto& [device, bytes] : held) most = std::max(most, bytes);
  return most;
}

double drive_traffic(std::string_view unit, const LoadedScenario& loaded, const Result& result) {
  double bytes = 0;
  for (const DriveTraffic& drives : result.drives) bytes += static_cast<double>((drives.written + drives.read).count());
  if (bytes == 0) cannot_tell(Metric::drive_traffic, "the step moves nothing to or from drives");
  if (unit != "M") return bytes;
  if (loaded.scenario.model.empty()) cannot_tell(Metric::drive_traffic, "a captured trace does not name its model");
  return bytes / (2 * static_cast<double>(parameter_counts(find_model(loaded.scenario.model)).total()));
}

double layer_bytes(Metric metric, const Trace& trace) {
  for (const Capability needed : {Capability::memory, Capability::uses, Capability::phases})
    if (!trace.has(needed)) cannot_tell(metric, "the trace does not say which operators use which tensors, and when");
  const double bytes = metric == Metric::layer_state_memory ? state_of_layers(trace) : most_kept_by_layers(trace);
  if (bytes == 0) cannot_tell(metric, "the trace names no layers");
  return bytes;
}

// Mean distance between the first kernels of neighbouring layers in one pass of the first micro-batch.
double layer_seconds(Metric metric, const LoadedScenario& loaded, const Result& result) {
  const bool is_forward = metric == Metric::layer_forward_time;
  const Trace& trace = loaded.trace;
  std::map<std::uint16_t, Picos> begins;  // by layer
  for (std::size_t i = 0; i < trace.ops.size(); ++i) {
    const Phase phase = trace.ops.phase[i];
    const bool is_pass = is_forward ? phase == Phase::forward : phase == Phase::backward || phase == Phase::recompute;
    const Lane& lane = trace.lanes[index_of(trace.ops.lane[i])];
    if (!is_pass || lane.rank != 0 || trace.ops.kind[i] != OpKind::kernel || trace.ops.layer[i] == no_index16) continue;
    if (trace.ops.micro_batch[i] != 0 && trace.ops.micro_batch[i] != no_index16) continue;
    const Picos start = result.op_start[i];
    if (start == unknown_time) continue;
    const auto [at, is_new] = begins.emplace(trace.ops.layer[i], start);
    if (!is_new) at->second = std::min(at->second, start);
  }
  if (begins.size() < 2) cannot_tell(metric, "fewer than two layers");
  const Picos span = begins.rbegin()->second - begins.begin()->second;
  return to_seconds(is_forward ? span : -span) / static_cast<double>(begins.size() - 1);
}

}  // namespace

std::string_view to_string(Metric metric) { return names[static_cast<std::size_t>(metric)]; }

Metric metric_of(std::string_view name) {
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] == name) return static_cast<Metric>(i);
  throw InputError("", std::string(name), "no metric of this name", suggest(name, names));
}

std::vector<std::string_view> units_of(Metric metric) {
  std::vector<std::string_view> found;
  for (const Unit& unit : units(metric)) found.push_back(unit.name);
  return found;
}

double unit_scale(Metric metric, std::string_view unit) {
  for (const Unit& known : units(metric))
    if (known.name == unit) return known.scale;
  SPILLWAY_ASSERT(false && "a unit of the metric");
  return 1;
}

double predict(Metric metric, std::string_view unit, const LoadedScenario& loaded, const Result& result,
               std::optional<std::int64_t> stage) {
  const auto in_unit = [&](double base) { return base / unit_scale(metric, unit); };
  const auto bytes = [&](Bytes count) {
    if (!result.memory.known) cannot_tell(metric, "the trace has no memory events");
    return in_unit(static_cast<double>(count.count()));
  };
  const auto peak = [&](Bytes whole, Bytes RankResult::*part) {
    if (!stage || result.ranks.empty()) return bytes(whole);
    if (static_cast<std::size_t>(*stage) >= result.ranks.size()) cannot_tell(metric, "there is no such stage");
    return bytes(result.ranks[static_cast<std::size_t>(*stage)].*part);
  };
  switch (metric) {
    case Metric::iteration_time:
      return in_unit(to_seconds(result.step_time));
    case Metric::throughput:
      return in_unit(throughput(unit, loaded, result));
    case Metric::mfu:
      if (result.mfu <= 0) cannot_tell(metric, "the step's model flops or the GPU's peak are unknown");
      return in_unit(result.mfu);
    case Metric::peak_allocated:
      return peak(result.memory.peak_allocated, &RankResult::peak_allocated);
    case Metric::peak_reserved:
      return peak(result.memory.peak_reserved, &RankResult::peak_reserved);
    case Metric::memory_efficiency:
      return in_unit(predict(Metric::peak_allocated, "B", loaded, result, stage) /
                     predict(Metric::peak_reserved, "B", loaded, result, stage));
    case Metric::state_memory:
      return in_unit(state_bytes(loaded, result));
    case Metric::activation_memory:
      return bytes(result.memory.peak_allocated) - in_unit(state_bytes(loaded, result));
    case Metric::layer_state_memory:
    case Metric::layer_kept_memory:
      return in_unit(layer_bytes(metric, loaded.trace));
    case Metric::layer_forward_time:
    case Metric::layer_backward_time:
      return in_unit(layer_seconds(metric, loaded, result));
    case Metric::layer_time:
      return in_unit(layer_seconds(Metric::layer_forward_time, loaded, result) +
                     layer_seconds(Metric::layer_backward_time, loaded, result));
    case Metric::drive_traffic:
      return in_unit(drive_traffic(unit, loaded, result));
    case Metric::activation_saving:
    case Metric::relative_step_time:
    case Metric::trainable_layers:
    case Metric::trainable_ratio:
    case Metric::throughput_ratio:
      cannot_tell(metric, "it takes a second step to compare with");
    case Metric::activation_volume:
    case Metric::write_bandwidth:
    case Metric::forward_time:
    case Metric::bytes_written:
    case Metric::training_time:
    case Metric::drive_life:
    case Metric::write_amplification:
    case Metric::drive_fill_rate:
    case Metric::link_rate:
      break;
  }
  cannot_tell(metric, "it is a closed form's; give projection.* instead of a scenario");
}

bool is_of_several(Metric metric) { return metric == Metric::trainable_layers || has_against(metric); }

bool has_against(Metric metric) { return metric == Metric::trainable_ratio || metric == Metric::throughput_ratio; }

bool is_comparison(Metric metric) {
  return metric == Metric::activation_saving || metric == Metric::relative_step_time;
}

double compare(Metric metric, std::string_view unit, const LoadedScenario& loaded, const Result& result,
               const Result& keeping) {
  SPILLWAY_ASSERT(is_comparison(metric));
  const double scale = unit_scale(metric, unit);
  if (metric == Metric::relative_step_time) return to_seconds(result.step_time) / to_seconds(keeping.step_time) / scale;
  const double all = predict(Metric::activation_memory, "B", loaded, keeping);
  return (1 - predict(Metric::activation_memory, "B", loaded, result) / all) / scale;
}

}  // namespace spillway::validation
