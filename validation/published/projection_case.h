// ProjectionCase: published figures of closed forms rather than of a replayed step.
//
// Keys of a case ("projection." before each), numbers unless noted:
//   layers hidden heads vocabulary sequence micro_batch tensor_parallel pipeline_parallel data_parallel
//   gradient_accumulation zero_stage          as ActivationProjection
//   tflops  memory_gbs  link_gbs              achieved TFLOP/s, memory and link GB/s
//   tokens                                    of the whole training run
//   endurance_pb                              petabytes the drives of one GPU take
//   spare                                     spare over user flash, for write_amplification
//   drive                                     name of a drive profile, for drive_fill_rate and link_rate
//   system  path  drives                      for link_rate: LinkQuestion's system, path and drive_count
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/spec/activation_volume.h"
#include "validation/published/metric.h"

namespace spillway::validation {

struct ProjectionCase {
  ActivationProjection setup;
  double tokens = 0, endurance = 0, spare = 0;
  std::string drive, system, path;
  double drives = 1;
};

inline constexpr std::string_view projection_prefix = "projection.";
// "projection.layers", ...
std::vector<std::string> projection_keys();
// `key` with its prefix. Throws InputError for an unknown key (nearest offered) or a value that is no positive number.
void set_projection(ProjectionCase& projection, std::string_view key, const std::string& value);

// In `unit`, one of units_of(metric). Throws InputError when the metric is not one of a projection, or the case lacks
// what it takes.
double predict(Metric metric, std::string_view unit, const ProjectionCase& projection);

}  // namespace spillway::validation
