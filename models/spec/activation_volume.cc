#include "models/spec/activation_volume.h"

#include <algorithm>
#include <cmath>

namespace spillway::models {
namespace {

constexpr double value_bytes = 2;
constexpr double optimizer_bytes = 18;  // moved per parameter in an optimizer step

// The set-up as doubles, under the header's names.
struct Terms {
  double layers, h, a, v, s, b, tp, pp, dp, sp;
  double sbh;
};

Terms terms(const ActivationProjection& p) {
  const auto real = [](std::int64_t value) { return static_cast<double>(value); };
  Terms t{real(p.layers),
          real(p.hidden),
          real(p.heads),
          real(p.vocabulary),
          real(p.sequence),
          real(p.micro_batch),
          real(p.tensor_parallel),
          real(p.pipeline_parallel),
          real(p.data_parallel),
          p.sequence_parallel ? real(p.tensor_parallel) : 1,
          0};
  t.sbh = t.s * t.b * t.h;
  return t;
}

double all_reduce_seconds(const ActivationProjection& p, const Terms& t) {
  return 2 * value_bytes * t.sbh * (1 - 1 / t.tp) / p.link_bandwidth;
}

double layer_seconds(const ActivationProjection& p, const Terms& t) {
  const auto sub_layer = [&](double flops, double weights) {
    return std::max(flops / t.tp / p.flops_per_second, value_bytes * weights / t.tp / p.memory_bandwidth);
  };
  const double attention = sub_layer(8 * t.sbh * t.h + 4 * t.s * t.sbh, 4 * t.h * t.h);
  const double mlp = sub_layer(16 * t.sbh * t.h, 8 * t.h * t.h);
  const double norm = 2 * value_bytes * t.sbh / t.tp / p.memory_bandwidth;
  const double layer = attention + mlp + 2 * norm + 2 * all_reduce_seconds(p, t);
  if (p.zero_stage < 3 || p.gather_bandwidth <= 0) return layer;
  return std::max(layer, value_bytes * 12 * t.h * t.h / t.tp * (1 - 1 / t.dp) / p.gather_bandwidth);
}

}  // namespace

double activation_volume(const ActivationProjection& p) {
  const Terms t = terms(p);
  const double e = value_bytes;
  const double layer = t.sbh * ((2 * e + 9) / t.sp + 14 * e / t.tp) + 4 * e * t.a * t.s * t.b / t.tp;
  const double rest = e * t.sbh / t.tp + e * t.v * t.s * t.b / t.tp + 4 * t.sbh / t.sp;
  return (t.layers * layer + rest) / t.pp;
}

double forward_seconds(const ActivationProjection& p) {
  const Terms t = terms(p);
  const double logits = 2 * t.sbh * t.v / t.tp / p.flops_per_second;
  const double embedding = value_bytes * t.v * t.h / p.memory_bandwidth + all_reduce_seconds(p, t);
  return (t.layers * layer_seconds(p, t) + logits) / t.pp + embedding;
}

double step_seconds(const ActivationProjection& p) {
  const Terms t = terms(p);
  const double shards = p.zero_stage >= 1 ? t.dp : 1;
  const double parameters = (12 * t.h * t.h * t.layers / t.pp + t.v * t.h) / t.tp / shards;
  return 3 * forward_seconds(p) * static_cast<double>(p.gradient_accumulation) +
         optimizer_bytes * parameters / p.memory_bandwidth;
}

double required_write_bandwidth(const ActivationProjection& p) {
  return activation_volume(p) / (1.5 * forward_seconds(p));
}

double step_count(const ActivationProjection& p, double tokens) {
  const Terms t = terms(p);
  return std::floor(tokens / (t.s * t.b * t.dp * static_cast<double>(p.gradient_accumulation)));
}

double bytes_written(const ActivationProjection& p, double tokens) {
  return activation_volume(p) * static_cast<double>(p.gradient_accumulation) * step_count(p, tokens);
}

double training_seconds(const ActivationProjection& p, double tokens) {
  return step_seconds(p) * step_count(p, tokens);
}

double projected_life_years(const ActivationProjection& p, double endurance) {
  const double written = activation_volume(p) * static_cast<double>(p.gradient_accumulation);
  return endurance * step_seconds(p) / written / (365.0 * 86400.0);
}

}  // namespace spillway::models
