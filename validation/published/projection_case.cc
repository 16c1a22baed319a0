#include "validation/published/projection_case.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

#include "base/input_error.h"
#include "base/nearest_name.h"
#include "hwprofiles/profile_library.h"
#include "sim/devices/endurance.h"
#include "sim/devices/nvme_drive.h"
#include "validation/published/link_rate.h"

namespace spillway::validation {
namespace {

struct CountField {
  std::string_view name;
  std::int64_t ActivationProjection::*member;
};
struct RateField {
  std::string_view name;
  double ActivationProjection::*member;
  double scale;
};
struct FigureField {
  std::string_view name;
  double ProjectionCase::*member;
  double scale;
};
constexpr std::array<CountField, 11> counts = {{{"layers", &ActivationProjection::layers},
                                                {"hidden", &ActivationProjection::hidden},
                                                {"heads", &ActivationProjection::heads},
                                                {"vocabulary", &ActivationProjection::vocabulary},
                                                {"sequence", &ActivationProjection::sequence},
                                                {"micro_batch", &ActivationProjection::micro_batch},
                                                {"tensor_parallel", &ActivationProjection::tensor_parallel},
                                                {"pipeline_parallel", &ActivationProjection::pipeline_parallel},
                                                {"data_parallel", &ActivationProjection::data_parallel},
                                                {"gradient_accumulation", &ActivationProjection::gradient_accumulation},
                                                {"zero_stage", &ActivationProjection::zero_stage}}};
constexpr std::array<RateField, 3> rates = {{{"tflops", &ActivationProjection::flops_per_second, 1e12},
                                             {"memory_gbs", &ActivationProjection::memory_bandwidth, 1e9},
                                             {"link_gbs", &ActivationProjection::link_bandwidth, 1e9}}};
struct TextField {
  std::string_view name;
  std::string ProjectionCase::*member;
};
constexpr std::array<TextField, 3> texts = {
    {{"drive", &ProjectionCase::drive}, {"system", &ProjectionCase::system}, {"path", &ProjectionCase::path}}};
constexpr std::array<FigureField, 4> figures = {{{"tokens", &ProjectionCase::tokens, 1},
                                                 {"drives", &ProjectionCase::drives, 1},
                                                 {"endurance_pb", &ProjectionCase::endurance, 1e15},
                                                 {"spare", &ProjectionCase::spare, 1}}};

double positive(std::string_view key, const std::string& text, double least) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !std::isfinite(value) || value < least || value > 1e18)
    throw InputError("", std::string(key), "'" + text + "' is not a number it can have", "give a positive number");
  return value;
}

double needed(double value, Metric metric, const char* key) {
  if (value <= 0)
    throw InputError("", "", "no " + std::string(to_string(metric)) + ": the case gives no projection." + key, "");
  return value;
}

// Mean rate of writing the whole drive once, in order, without pause.
double fill_rate(const std::string& name) {
  const NvmeProfile drive = ProfileLibrary::standard().load_nvme(name);
  if (!drive.capacity) throw InputError("", "", "drive '" + name + "' states no capacity", "choose another drive");
  const NvmeModel model = nvme_model(drive);
  const double whole = static_cast<double>(drive.capacity->value.count());
  const double fast = model.cache ? std::min(whole, static_cast<double>(drive.write_cache->value.count())) : whole;
  const double seconds =
      fast / to_bytes_per_second(model.write) + (whole - fast) / to_bytes_per_second(model.steady_write);
  return whole / seconds;
}

}  // namespace

std::vector<std::string> projection_keys() {
  std::vector<std::string> keys;
  const auto add = [&keys](std::string_view name) {
    keys.push_back(std::string(projection_prefix) + std::string(name));
  };
  for (const CountField& field : counts) add(field.name);
  for (const RateField& field : rates) add(field.name);
  for (const FigureField& field : figures) add(field.name);
  for (const TextField& field : texts) add(field.name);
  return keys;
}

void set_projection(ProjectionCase& projection, std::string_view key, const std::string& value) {
  const std::string_view name = key.substr(std::min(key.size(), projection_prefix.size()));
  for (const CountField& field : counts)
    if (field.name == name) {
      const bool may_be_zero = name == "zero_stage";
      const double number = positive(key, value, may_be_zero ? 0 : 1);
      if (number != std::floor(number))
        throw InputError("", std::string(key), "'" + value + "' is not a whole number", "give one");
      projection.setup.*field.member = static_cast<std::int64_t>(number);
      return;
    }
  for (const RateField& field : rates)
    if (field.name == name) {
      projection.setup.*field.member = positive(key, value, 1e-9) * field.scale;
      return;
    }
  for (const FigureField& field : figures)
    if (field.name == name) {
      projection.*field.member = positive(key, value, 1e-9) * field.scale;
      return;
    }
  for (const TextField& field : texts)
    if (field.name == name) {
      projection.*field.member = value;
      return;
    }
  throw InputError("", std::string(key), "unknown key '" + std::string(key) + "'", suggest(key, projection_keys()));
}

double predict(Metric metric, std::string_view unit, const ProjectionCase& projection) {
  const ActivationProjection& setup = projection.setup;
  const double scale = unit_scale(metric, unit);
  if (metric == Metric::activation_volume) return activation_volume(setup) / scale;
  if (metric == Metric::write_bandwidth) return required_write_bandwidth(setup) / scale;
  if (metric == Metric::forward_time) return forward_seconds(setup) / scale;
  if (metric == Metric::iteration_time) return step_seconds(setup) / scale;
  if (metric == Metric::bytes_written) return bytes_written(setup, needed(projection.tokens, metric, "tokens")) / scale;
  if (metric == Metric::training_time)
    return training_seconds(setup, needed(projection.tokens, metric, "tokens")) / scale;
  if (metric == Metric::drive_life)
    return projected_life_years(setup, needed(projection.endurance, metric, "endurance_pb")) / scale;
  if (metric == Metric::write_amplification)
    return random_write_amplification(needed(projection.spare, metric, "spare")) / scale;
  if (metric == Metric::drive_fill_rate) return fill_rate(projection.drive) / scale;
  if (metric == Metric::link_rate)
    return link_rate(
               {projection.system, projection.path, projection.drive, static_cast<std::int64_t>(projection.drives)}) /
           scale;
  throw InputError("", "", "no " + std::string(to_string(metric)) + ": not a figure of a projection",
                   "give a scenario's keys instead of projection.*");
}

}  // namespace spillway::validation
