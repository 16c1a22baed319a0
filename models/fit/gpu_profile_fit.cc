#include "models/fit/gpu_profile_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "base/input_error.h"
#include "base/quantile.h"
#include "models/fit/gemm_fit.h"
#include "models/fit/simplex_search.h"

namespace spillway::models::fit {
namespace {

constexpr double above_peak = 1.02;                     // of a datasheet's rounded figure
constexpr double cache_fills = 4;                       // kernels that move so many L2 caches are bound by memory alone
constexpr double huber = 0.05;                          // residuals beyond it count linearly
constexpr double rate_prior = 0.15, fixed_prior = 0.4;  // standard deviations of log(factor)
constexpr double prior_points = 4;                      // that the prior weighs as much as
constexpr double most_factor = 3;
constexpr int evaluations = 300, restarts = 2;
constexpr std::size_t least_points = 6;
constexpr std::int64_t small_copy = 64 << 10;

double flops_of(const GpuPoint& point) {
  return 2.0 * static_cast<double>(point.m) * static_cast<double>(point.n) * static_cast<double>(point.k);
}

double huber_loss(double residual) {
  const double size = std::abs(residual);
  return size <= huber ? residual * residual / 2 : huber * (size - huber / 2);
}

class Fit {
 public:
  Fit(const GpuMeasurement& measured, const GpuProfile& base, const std::string& date)
      : measured_(measured), base_(base), origin_(calibration_origin(date)) {
    fit_.profile = base;
  }

  GpuFit run() {
    if (measured_.points.empty()) throw InputError("", "", "nothing of the GPU was measured", "measure it");
    check_peaks();
    GpuProfile& gpu = fit_.profile;
    if (gpu.operator_times_of.empty()) gpu.operator_times_of = base_.name;
    gpu.name += "-measured";
    gpu.title = (measured_.device.name.empty() ? gpu.title : measured_.device.name) + ", as measured";
    fit_device();
    fit_launches();
    fit_copies();
    fit_sharing();
    fit_power();
    fit_scales();
    gpu.note.clear();
    fit_.notes.insert(fit_.notes.end(), measured_.notes.begin(), measured_.notes.end());
    for (const std::string& note : fit_.notes) gpu.note += (gpu.note.empty() ? "" : "; ") + note;
    return std::move(fit_);
  }

 private:
  template <class T>
  Sourced<T> sourced(T value, double spread = 0) const {
    Origin origin = origin_;
    origin.spread = spread;
    return {value, origin};
  }
  [[nodiscard]] double value_of(PointKind kind) const {
    const GpuPoint* point = find_point(measured_, kind);
    return point == nullptr ? 0 : point->value.median;
  }
  [[nodiscard]] double memory_bandwidth() const { return to_bytes_per_second(base_.memory_bandwidth.value); }

  [[noreturn]] void refuse(const std::string& what, double share) const {
    throw InputError(
        "--base", "",
        fmt::format("{} reached {:.2f} of the peak that {} states: it is of another GPU", what, share, base_.name),
        "name the profile of this very GPU, or correct its peaks");
  }
  void check_peaks() {
    const double cache = static_cast<double>(measured_.device.l2_cache.count());
    for (const GpuPoint& point : measured_.points) {
      if (point.kind == PointKind::product) {
        const Maybe<double>& peak = base_.peak_flops_per_second[static_cast<std::size_t>(point.precision)];
        if (!peak) continue;
        const double share = flops_of(point) / point.value.median / peak->value;
        if (share > above_peak)
          refuse(fmt::format("a {} product of {} x {} x {}", hwprofiles::precision_name(point.precision), point.m,
                             point.n, point.k),
                 share);
        Maybe<double>& achieved = best_[static_cast<std::size_t>(point.precision)];
        if (!achieved || achieved->value < share * peak->value)
          achieved = sourced(share * peak->value, point.value.relative);
      }
      const auto bytes = static_cast<double>(point.bytes.count());
      if (point.kind == PointKind::memory_kernel && bytes >= cache_fills * cache) {
        const double share = bytes / point.value.median / memory_bandwidth();
        if (share > above_peak) refuse("a kernel that only moves memory", share);
      }
    }
  }

  void fit_device() {
    GpuProfile& gpu = fit_.profile;
    const GpuIdentity& device = measured_.device;
    if (device.memory > Bytes(0)) gpu.memory = sourced(device.memory);
    if (device.context > Bytes(0)) gpu.context_memory = sourced(device.context);
    if (device.sm_count > 0) gpu.sm_count = sourced(device.sm_count);
    if (device.l2_cache > Bytes(0)) gpu.l2_cache = sourced(device.l2_cache);
    gpu.copy_engines_per_direction = sourced(device.copy_engines_per_direction);
  }

  void fit_launches() {
    GpuProfile& gpu = fit_.profile;
    const std::pair<PointKind, Sourced<Picos>*> needed[] = {{PointKind::launch_call, &gpu.launch_call},
                                                            {PointKind::launch_to_start, &gpu.launch_to_start},
                                                            {PointKind::kernel_gap, &gpu.kernel_gap},
                                                            {PointKind::malloc_call, &gpu.malloc_cost},
                                                            {PointKind::free_call, &gpu.free_cost}};
    for (const auto& [kind, to] : needed)
      if (const GpuPoint* point = find_point(measured_, kind))
        *to = sourced(from_seconds(point->value.median), point->value.relative);
    const std::pair<PointKind, Maybe<Picos>*> optional[] = {
        {PointKind::chunk_create, &gpu.chunk_create_cost},  {PointKind::chunk_map, &gpu.chunk_map_cost},
        {PointKind::chunk_unmap, &gpu.chunk_unmap_cost},    {PointKind::event_record_call, &gpu.event_record_call},
        {PointKind::event_wait_call, &gpu.event_wait_call}, {PointKind::event_gap, &gpu.event_gap}};
    for (const auto& [kind, to] : optional)
      if (const GpuPoint* point = find_point(measured_, kind))
        *to = sourced(from_seconds(point->value.median), point->value.relative);
    if (const double depth = value_of(PointKind::launch_queue); depth > 0)
      gpu.launch_queue_depth = sourced(static_cast<std::int64_t>(std::llround(depth)));
  }

  void fit_copies() {
    GpuProfile& gpu = fit_.profile;
    std::vector<double> latencies, pageable;
    for (const auto& [kind, to] : {std::pair{PointKind::copy_to_device, &gpu.host_to_device_bandwidth},
                                   {PointKind::copy_to_host, &gpu.device_to_host_bandwidth}}) {
      const GpuPoint* largest = nullptr;
      for (const GpuPoint& copy : measured_.points)
        if (copy.kind == kind && copy.pinned && (largest == nullptr || largest->bytes < copy.bytes)) largest = &copy;
      if (largest == nullptr) continue;
      const auto rate_of = [](const GpuPoint& copy) {
        return static_cast<double>(copy.bytes.count()) / copy.value.median;
      };
      const double rate = rate_of(*largest);
      *to = sourced(rate_from_bytes_per_second(rate), largest->value.relative);
      const GpuPoint* largest_pageable = nullptr;
      for (const GpuPoint& copy : measured_.points) {
        if (copy.kind != kind) continue;
        if (copy.pinned && copy.bytes.count() <= small_copy)
          latencies.push_back(copy.value.median - static_cast<double>(copy.bytes.count()) / rate);
        if (!copy.pinned && (largest_pageable == nullptr || largest_pageable->bytes < copy.bytes))
          largest_pageable = &copy;
      }
      if (largest_pageable != nullptr) pageable.push_back(std::min(1.0, rate_of(*largest_pageable) / rate));
    }
    if (!latencies.empty()) {
      const hwprofiles::Spread spread = hwprofiles::spread_of(std::move(latencies));
      gpu.copy_latency = sourced(from_seconds(std::max(0.0, spread.median)), spread.relative);
    }
    if (!pageable.empty()) gpu.pageable_copy_fraction = sourced(hwprofiles::spread_of(std::move(pageable)).median);
    if (const GpuPoint* duplex = find_point(measured_, PointKind::duplex_rate))
      gpu.duplex_bandwidth = sourced(rate_from_bytes_per_second(duplex->value.median), duplex->value.relative);
  }

  void fit_sharing() {
    GpuProfile& gpu = fit_.profile;
    if (const double speedup = value_of(PointKind::two_stream_speedup); speedup > 0)
      gpu.two_stream_speedup = sourced(speedup);
    const GpuPoint* beside = find_point(measured_, PointKind::kernel_rate_beside_copies);
    const double alone = value_of(PointKind::kernel_rate_alone);
    const double copies = value_of(PointKind::copy_rate_beside_kernels);
    if (beside == nullptr || alone <= 0 || copies <= 0) return;
    const double share = (beside->value.median + copies) / memory_bandwidth();
    if (share > above_peak) refuse("a kernel and copies beside it", share);
    gpu.shared_hbm_fraction = sourced(std::min(share, 1.0), beside->value.relative);
    if (const double copies_alone = value_of(PointKind::copy_rate_alone); copies_alone > 0)
      gpu.copy_fraction_beside_kernels = sourced(std::min(1.0, copies / copies_alone));
    const double charged = (alone - beside->value.median) / copies;
    gpu.hbm_contention_factor = sourced(std::clamp(charged, 1.0, 100.0), beside->value.relative);
    if (charged < 1)
      fit_.notes.push_back(fmt::format(
          "copies cost kernels {:.2f} bytes of memory traffic per byte; the model has no less than 1", charged));
  }

  void fit_power() {
    GpuProfile& gpu = fit_.profile;
    if (measured_.device.power_limit_watts > 0) gpu.power_limit_watts = sourced(measured_.device.power_limit_watts);
    const GpuPoint* load = find_point(measured_, PointKind::sustained_product);
    if (load == nullptr) return;
    const Maybe<double>& peak = base_.peak_flops_per_second[static_cast<std::size_t>(Precision::bf16)];
    if (peak && load->value.median > above_peak * peak->value)
      refuse("a long bf16 product", load->value.median / peak->value);
    gpu.sustained_flops_per_second = sourced(load->value.median, load->value.relative);
    if (load->clock_mhz > 0) gpu.loaded_clock_mhz = sourced(load->clock_mhz);
    if (load->watts > 0) gpu.loaded_watts = sourced(load->watts);
  }

  // compute, memory, fixed: those that a kind of operator has.
  struct Group {
    ScaledOperator of;
    Precision precision;
    std::vector<GpuPoint> points;
  };

  void fit_scales() {
    GpuProfile& gpu = fit_.profile;
    for (std::size_t p = 0; p < precision_count; ++p)
      if (best_[p]) gpu.achieved_flops_per_second[p] = best_[p];
    if (measured_operator_times().empty()) return;
    std::map<std::pair<ScaledOperator, Precision>, std::vector<GpuPoint>> groups;
    const PointTimes times(base_);
    std::map<std::string, int> unused;  // operations, by whose they are
    for (const GpuPoint& point : measured_.points) {
      const std::optional<ScaledOperator> of = operator_of(point);
      if (point.kind == PointKind::operation && (!of || !times.seconds(point)))
        ++unused[point.what + (point.source.empty() ? " without a source" : " of " + point.source)];
      if (!of || held_out(point) || !times.seconds(point)) continue;
      groups[{*of, *of == ScaledOperator::product ? point.precision : Precision::bf16}].push_back(point);
    }
    for (const auto& [whose, count] : unused)
      fit_.notes.push_back(
          fmt::format("{} points of {} are not used: the operator times are of other kernels", count, whose));
    gpu.operator_scales.clear();
    gpu.product_lines.clear();
    for (const auto& [key, points] : groups)
      if (points.size() >= least_points) gpu.operator_scales.push_back(scale_of(key.first, key.second, points));
  }

  OperatorScale scale_of(ScaledOperator of, Precision precision, const std::vector<GpuPoint>& points) const {
    const bool computes = of == ScaledOperator::product || of == ScaledOperator::attention_forward ||
                          of == ScaledOperator::attention_backward;
    const bool has_fixed = of == ScaledOperator::product || of == ScaledOperator::memory_bound;
    const bool has_memory = of != ScaledOperator::attention_forward && of != ScaledOperator::attention_backward;
    OperatorScale scale{of, precision, sourced(1.0), sourced(1.0), sourced(1.0)};
    std::vector<std::pair<double*, double>> factors;  // and the deviation of their logarithms
    if (computes) factors.emplace_back(&scale.compute.value, rate_prior);
    if (has_memory) factors.emplace_back(&scale.memory.value, rate_prior);
    if (has_fixed) factors.emplace_back(&scale.fixed.value, fixed_prior);
    PointTimes times(base_);
    const std::vector<Bounded> box(factors.size(), {-std::log(most_factor), std::log(most_factor), 0});
    const auto loss = [&](std::span<const double> logs) {
      double prior = 0;
      for (std::size_t i = 0; i < factors.size(); ++i) {
        *factors[i].first = std::exp(logs[i]);
        prior += logs[i] * logs[i] / (2 * factors[i].second * factors[i].second);
      }
      times.rescale(scale);
      double sum = 0;
      for (const GpuPoint& point : points) sum += huber_loss(std::log(point.value.median / *times.seconds(point)));
      return (sum / (huber * huber) + prior * prior_points) / static_cast<double>(points.size());
    };
    const std::vector<double> best = simplex_search(box, loss, evaluations, restarts);
    for (std::size_t i = 0; i < factors.size(); ++i) *factors[i].first = std::exp(best[i]);
    return scale;
  }

  const GpuMeasurement& measured_;
  const GpuProfile& base_;
  Origin origin_;
  GpuFit fit_;
  std::array<Maybe<double>, precision_count> best_;
};

}  // namespace

Origin calibration_origin(const std::string& date) {
  return {OriginKind::measured, "spillway calibrate gpu on the machine itself", date, 0};
}

GpuFit fit_gpu(const GpuMeasurement& measured, const GpuProfile& base, const std::string& date) {
  return Fit(measured, base, date).run();
}

}  // namespace spillway::models::fit
