// Metric: what a published figure measures, and the same thing read off a replay.
//
//   iteration_time       one optimizer step                                       s, ms, us
//   throughput           sequences or tokens of all replicas per time             samples/s, samples/s/GPU, tokens/s,
//                                                                                 tokens/s/GPU
//   mfu                  model flops / (step time x peak), as `spillway run`      fraction, %
//   peak_allocated       most device memory the framework had allocated           B, MiB, GB, GiB
//   peak_reserved        most device memory its allocator had taken               same
//   memory_efficiency    peak_allocated / peak_reserved                           fraction, %
//   state_memory         weights, gradients, master weights, optimizer state      same
//   activation_memory    peak_allocated - state_memory                            same
//   layer_state_memory   state_memory of the layers alone, mean over the GPUs     same
//   layer_kept_memory    most that layers keep from forward to backward           same
//   layer_forward_time   from one layer's forward to the next one's               s, ms, us
//   layer_backward_time  same of the backward, recomputation included             same
//   layer_time           sum of the two                                           same
//   drive_traffic        bytes drives read and write in a step                    GB, M (bytes of the model in 16 bits)
//
// Against the same step with everything kept in device memory:
//   activation_saving    1 - activation_memory / that of keeping                  fraction, %
//   relative_step_time   iteration_time / that of keeping                         x
//
// Of several steps (validation/published/several_steps.h):
//   trainable_layers     most layers of the model's width that fit                layers
//   trainable_ratio      the same over that of the case's `against`               x
//   throughput_ratio     tokens a second over those of the case's `against`       x
//
// And of closed forms, which no replay gives (validation/published/projection_case.h):
//   activation_volume    a GPU's activations of one pass of a micro-batch         B, MiB, GB, GiB
//   write_bandwidth      a GPU's drives must take                                 GB/s, GiB/s
//   forward_time         one micro-batch (all stages' shares at once)             s, ms, us
//   bytes_written        to a GPU's drives by a whole training run                TB, PB
//   training_time        of that run                                              day
//   drive_life           until a GPU's drives are worn out                        year
//   write_amplification  of random writes                                         x
//   drive_fill_rate      mean rate of writing a drive full once                   GB/s, GiB/s
//   link_rate            one large transfer (validation/published/link_rate.h)              GB/s, GiB/s
//
// Memory is that of the GPU with the highest peak. GB is 1e9 bytes. Definitions of kept and of a layer's state are in
// validation/published/layer_memory.h; papers that print closed forms per layer print these.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "scenario/scenario_run.h"
#include "sim/replay/result.h"

namespace spillway::validation {

enum class Metric : std::uint8_t {
  iteration_time,
  throughput,
  mfu,
  peak_allocated,
  peak_reserved,
  memory_efficiency,
  state_memory,
  activation_memory,
  layer_state_memory,
  layer_kept_memory,
  layer_forward_time,
  layer_backward_time,
  layer_time,
  drive_traffic,
  activation_saving,
  relative_step_time,
  trainable_layers,
  trainable_ratio,
  throughput_ratio,
  activation_volume,
  write_bandwidth,
  forward_time,
  bytes_written,
  training_time,
  drive_life,
  write_amplification,
  drive_fill_rate,
  link_rate
};
constexpr int metric_count = static_cast<int>(Metric::link_rate) + 1;

std::string_view to_string(Metric metric);
// Throws InputError (nearest name offered) for a text that names none.
Metric metric_of(std::string_view name);

std::vector<std::string_view> units_of(Metric metric);
// Seconds, per second, bytes or fraction in one `unit`. Precondition: one of units_of(metric).
double unit_scale(Metric metric, std::string_view unit);

// The replay's figure of the metric, in `unit`, one of units_of(metric). Throws InputError when the trace can't tell
// (memory without memory events, layers without names, samples per second of a captured trace). `stage`: of a peak, see
// Case.
double predict(Metric metric, std::string_view unit, const LoadedScenario& loaded, const Result& result,
               std::optional<std::int64_t> stage = {});

// trainable_layers, trainable_ratio and throughput_ratio: no one replay gives them.
bool is_of_several(Metric metric);
// The last two of them.
bool has_against(Metric metric);

// activation_saving and relative_step_time.
bool is_comparison(Metric metric);
// Precondition: is_comparison(metric). `keeping`: of the same step with everything kept.
double compare(Metric metric, std::string_view unit, const LoadedScenario& loaded, const Result& result,
               const Result& keeping);

}  // namespace spillway::validation
