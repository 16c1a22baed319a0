#include "hwprofiles/calibrate/gpu_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "base/input_error.h"
#include "hwprofiles/calibrate/drive_fit.h"

namespace spillway::hwprofiles {
namespace {

constexpr std::array<std::int64_t, 5> side_classes = {1, 8, 64, 512, 2048};

std::size_t class_of(const GemmPoint& product) {
  const std::int64_t side = std::min({product.m, product.n, product.k});
  std::size_t found = 0;
  while (found + 1 < side_classes.size() && side >= side_classes[found + 1]) ++found;
  return found;
}

double flops_of(const GemmPoint& product) {
  return 2.0 * static_cast<double>(product.m) * static_cast<double>(product.n) * static_cast<double>(product.k);
}

class Fit {
 public:
  Fit(const GpuMeasurement& measured, const GpuProfile& base, const std::string& date)
      : measured_(measured), origin_(measured_origin(date)) {
    fit_.profile = base;
  }

  GpuFit run() {
    if (measured_.products.empty() && measured_.memory_bound.empty() && measured_.copies.empty())
      throw InputError("", "", "nothing of the GPU was measured", "measure it");
    GpuProfile& gpu = fit_.profile;
    gpu.name += "-measured";
    gpu.title = (measured_.name.empty() ? gpu.title : measured_.name) + ", as measured";
    if (measured_.memory > Bytes(0)) gpu.memory = sourced(measured_.memory, 0);
    if (measured_.context > Bytes(0)) gpu.context_memory = sourced(measured_.context, 0);
    if (measured_.sm_count > 0) gpu.sm_count = sourced(measured_.sm_count, 0);
    if (measured_.l2_cache > Bytes(0)) gpu.l2_cache = sourced(measured_.l2_cache, 0);
    fit_launches();
    fit_products();
    fit_memory();
    fit_copies();
    fit_contention();
    fit_kernels();
    if (measured_.sm_clock_mhz > 0) gpu.loaded_clock_mhz = sourced(static_cast<double>(measured_.sm_clock_mhz), 0);
    if (measured_.milliwatts > 0) gpu.loaded_watts = sourced(measured_.milliwatts * 1e-3, 0);
    if (!measured_.no_activity_records.empty())
      fit_.notes.push_back("timed by events, which add a few microseconds: " + measured_.no_activity_records +
                           " (to allow activity records: run as root, or load the driver with "
                           "NVreg_RestrictProfilingToAdminUsers=0)");
    for (const std::string& part : measured_.left_out)
      fit_.notes.push_back("cut short by the time it may take: " + part);
    gpu.note.clear();
    for (const std::string& note : fit_.notes) gpu.note += (gpu.note.empty() ? "" : "; ") + note;
    return std::move(fit_);
  }

 private:
  template <class T>
  Sourced<T> sourced(T value, double spread) const {
    Origin origin = origin_;
    origin.spread = spread;
    return {value, origin};
  }
  Sourced<Picos> time(const Spread& seconds) const {
    return sourced(from_seconds(std::max(0.0, seconds.median)), seconds.relative);
  }

  void fit_launches() {
    GpuProfile& gpu = fit_.profile;
    const std::pair<const Spread*, Sourced<Picos>*> needed[] = {{&measured_.launch_call, &gpu.launch_call},
                                                                {&measured_.launch_to_start, &gpu.launch_to_start},
                                                                {&measured_.kernel_gap, &gpu.kernel_gap},
                                                                {&measured_.malloc_cost, &gpu.malloc_cost},
                                                                {&measured_.free_cost, &gpu.free_cost}};
    for (const auto& [from, to] : needed)
      if (from->median > 0) *to = time(*from);
    const std::pair<const Spread*, Maybe<Picos>*> optional[] = {
        {&measured_.chunk_create, &gpu.chunk_create_cost},  {&measured_.chunk_map, &gpu.chunk_map_cost},
        {&measured_.chunk_unmap, &gpu.chunk_unmap_cost},    {&measured_.event_record_call, &gpu.event_record_call},
        {&measured_.event_wait_call, &gpu.event_wait_call}, {&measured_.event_gap, &gpu.event_gap}};
    for (const auto& [from, to] : optional)
      if (from->median > 0) *to = time(*from);
    if (measured_.launch_queue_depth > 0) gpu.launch_queue_depth = sourced(measured_.launch_queue_depth, 0);
  }

  void fit_products() {
    GpuProfile& gpu = fit_.profile;
    std::map<Precision, std::map<std::size_t, std::map<long, std::vector<CurvePoint>>>> cells;
    std::vector<double> large;
    for (const GemmPoint& product : measured_.products) {
      const Maybe<double>& peak = gpu.peak_flops_per_second[static_cast<std::size_t>(product.precision)];
      if (!peak || product.seconds.median <= 0) continue;
      const double flops = flops_of(product), rate = flops / product.seconds.median;
      Maybe<double>& achieved = best_[static_cast<std::size_t>(product.precision)];
      if (!achieved || achieved->value < rate) achieved = sourced(rate, product.seconds.relative);
      const double efficiency = std::min(1.0, rate / peak->value);
      cells[product.precision][class_of(product)][std::lround(2 * std::log10(flops))].push_back({flops, efficiency});
      if (std::min({product.m, product.n, product.k}) >= 1024) large.push_back(efficiency);
    }
    for (std::size_t p = 0; p < precision_count; ++p)
      if (best_[p]) gpu.achieved_flops_per_second[p] = best_[p];
    for (const auto& [precision, classes] : cells) {
      std::erase_if(gpu.gemm_efficiency, [p = precision](const GemmEfficiency& old) { return old.precision == p; });
      for (const auto& [side, decades] : classes)
        gpu.gemm_efficiency.push_back({precision, side_classes[side], curve_of(decades), origin_});
    }
    std::stable_sort(gpu.gemm_efficiency.begin(), gpu.gemm_efficiency.end(),
                     [](const GemmEfficiency& a, const GemmEfficiency& b) {
                       return std::pair(a.precision, a.smallest_side) < std::pair(b.precision, b.smallest_side);
                     });
    if (!large.empty()) {
      const Spread spread = spread_of(std::move(large));
      gpu.roofline.compute_efficiency = sourced(spread.median, spread.relative);
    } else {
      fit_.notes.emplace_back("no product with sides of 1024 was measured");
    }
  }

  // Medians of x and of y, one point per half decade.
  static Curve curve_of(const std::map<long, std::vector<CurvePoint>>& decades) {
    std::vector<CurvePoint> points;
    for (const auto& [decade, cell] : decades) {
      std::vector<double> x, y;
      for (const CurvePoint& point : cell) {
        x.push_back(point.x);
        y.push_back(point.y);
      }
      points.push_back({spread_of(std::move(x)).median, spread_of(std::move(y)).median});
    }
    return Curve(std::move(points), Curve::Scale::log);
  }

  void fit_memory() {
    GpuProfile& gpu = fit_.profile;
    const double peak = to_bytes_per_second(gpu.memory_bandwidth.value);
    std::map<Bytes, double> best;
    double shortest = 0;
    for (const SizedTime& one : measured_.memory_bound) {
      if (one.seconds.median <= 0) continue;
      double& rate = best[one.bytes];
      rate = std::max(rate, static_cast<double>(one.bytes.count()) / one.seconds.median);
      shortest = shortest == 0 ? one.seconds.median : std::min(shortest, one.seconds.median);
    }
    if (best.empty()) return;
    std::vector<CurvePoint> points;
    double highest = 0;
    for (const auto& [bytes, rate] : best) {
      points.push_back({static_cast<double>(bytes.count()), std::min(1.0, rate / peak)});
      highest = std::max(highest, rate / peak);
    }
    if (highest > 1)
      fit_.notes.push_back(
          fmt::format("small kernels run from the L2 cache at up to {:.1f} times the memory's rate; "
                      "the table holds 1",
                      highest));
    gpu.memory_bound_efficiency = sourced(Curve(std::move(points), Curve::Scale::log), 0);
    gpu.roofline.memory_efficiency = sourced(std::min(1.0, largest_size_rate(best) / peak), 0);
    gpu.roofline.latency = sourced(from_seconds(shortest), 0);
  }
  static double largest_size_rate(const std::map<Bytes, double>& best) { return best.rbegin()->second; }

  void fit_copies() {
    GpuProfile& gpu = fit_.profile;
    std::map<Bytes, double> efficiency;
    std::vector<double> latencies, pageable;
    for (const std::string& direction : {std::string("to device"), std::string("to host")}) {
      const SizedTime* largest = nullptr;
      for (const SizedTime& copy : measured_.copies)
        if (copy.what == direction && copy.pinned && (largest == nullptr || largest->bytes < copy.bytes))
          largest = &copy;
      if (largest == nullptr || largest->seconds.median <= 0) continue;
      const double rate = static_cast<double>(largest->bytes.count()) / largest->seconds.median;
      (direction == "to device" ? gpu.host_to_device_bandwidth : gpu.device_to_host_bandwidth) =
          sourced(rate_from_bytes_per_second(rate), largest->seconds.relative);
      for (const SizedTime& copy : measured_.copies) {
        if (copy.what != direction || copy.seconds.median <= 0) continue;
        const double own = static_cast<double>(copy.bytes.count()) / copy.seconds.median;
        if (!copy.pinned) {
          if (copy.bytes == largest->bytes) pageable.push_back(std::min(1.0, own / rate));
          continue;
        }
        double& best = efficiency[copy.bytes];
        best = std::max(best, std::min(1.0, own / rate));
        if (copy.bytes <= Bytes(64 << 10))
          latencies.push_back(copy.seconds.median - static_cast<double>(copy.bytes.count()) / rate);
      }
    }
    if (!efficiency.empty()) {
      std::vector<CurvePoint> points;
      for (const auto& [bytes, share] : efficiency) points.push_back({static_cast<double>(bytes.count()), share});
      gpu.copy_efficiency = sourced(Curve(std::move(points), Curve::Scale::log), 0);
    }
    if (!latencies.empty()) gpu.copy_latency = time(spread_of(std::move(latencies)));
    if (!pageable.empty()) {
      const Spread spread = spread_of(std::move(pageable));
      gpu.pageable_copy_fraction = sourced(spread.median, spread.relative);
    }
    if (measured_.duplex_bytes_per_second.median > 0)
      gpu.duplex_bandwidth = sourced(rate_from_bytes_per_second(measured_.duplex_bytes_per_second.median),
                                     measured_.duplex_bytes_per_second.relative);
    if (measured_.copy_engines_per_direction > 0)
      gpu.copy_engines_per_direction = sourced(measured_.copy_engines_per_direction, 0);
  }

  void fit_kernels() {
    GpuProfile& gpu = fit_.profile;
    const double memory = to_bytes_per_second(gpu.memory_bandwidth.value);
    const Maybe<double>& arithmetic = gpu.peak_flops_per_second[static_cast<std::size_t>(Precision::bf16)];
    std::map<KernelKind, std::map<double, double>> points;
    for (const KernelPoint& kernel : measured_.kernels) {
      const bool is_attention =
          kernel.kind == KernelKind::attention_forward || kernel.kind == KernelKind::attention_backward;
      if (kernel.seconds.median <= 0 || (is_attention && !arithmetic)) continue;
      const double share = kernel.work / kernel.seconds.median / (is_attention ? arithmetic->value : memory);
      double& best = points[kernel.kind][kernel.work];
      best = std::max(best, std::min(1.0, share));
    }
    for (const auto& [kind, shares] : points) {
      std::erase_if(gpu.kernel_efficiency, [k = kind](const KernelEfficiency& old) { return old.kind == k; });
      std::vector<CurvePoint> curve;
      for (const auto& [work, share] : shares) curve.push_back({work, share});
      gpu.kernel_efficiency.push_back({kind, Curve(std::move(curve), Curve::Scale::log), origin_});
    }
    std::stable_sort(gpu.kernel_efficiency.begin(), gpu.kernel_efficiency.end(),
                     [](const KernelEfficiency& a, const KernelEfficiency& b) { return a.kind < b.kind; });
  }

  void fit_sharing() {
    GpuProfile& gpu = fit_.profile;
    const double together = measured_.kernel_rate_beside_copies + measured_.copy_rate_beside_kernels;
    gpu.shared_hbm_fraction = sourced(std::min(1.0, together / to_bytes_per_second(gpu.memory_bandwidth.value)), 0);
    if (measured_.copy_rate_alone > 0)
      gpu.copy_fraction_beside_kernels =
          sourced(std::min(1.0, measured_.copy_rate_beside_kernels / measured_.copy_rate_alone), 0);
  }

  void fit_contention() {
    if (measured_.two_stream_speedup > 0) fit_.profile.two_stream_speedup = sourced(measured_.two_stream_speedup, 0);
    if (measured_.copy_rate_beside_kernels <= 0 || measured_.kernel_rate_alone <= 0) return;
    fit_sharing();
    const double charged =
        (measured_.kernel_rate_alone - measured_.kernel_rate_beside_copies) / measured_.copy_rate_beside_kernels;
    fit_.profile.hbm_contention_factor = sourced(std::clamp(charged, 1.0, 100.0), 0);
    if (charged < 1)
      fit_.notes.push_back(
          fmt::format("copies cost kernels {:.2f} bytes of memory traffic per byte; the model has no "
                      "less than 1",
                      charged));
  }

  const GpuMeasurement& measured_;
  Origin origin_;
  GpuFit fit_;
  std::array<Maybe<double>, precision_count> best_;
};

}  // namespace

GpuFit fit_gpu(const GpuMeasurement& measured, const GpuProfile& base, const std::string& date) {
  return Fit(measured, base, date).run();
}

}  // namespace spillway::hwprofiles
