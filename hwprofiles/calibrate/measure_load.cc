// In the GPU module; see gpu_meter.h.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "hwprofiles/calibrate/cuda_product.h"
#include "hwprofiles/calibrate/gpu_kernels.h"
#include "hwprofiles/calibrate/gpu_meter.h"

namespace spillway::hwprofiles {
namespace {

class Load {
 public:
  explicit Load(GpuMeter& meter) : meter_(meter) {}

  void measure_sharing() {
    measure_contention();
    measure_two_streams();
  }

  // A kernel bound by memory alone, copies both ways alone, and both together: each for a second or more, by events,
  // again and again.
  void measure_contention() {
    const Stream compute, out, in;
    const std::size_t side =
        std::min<std::size_t>(std::size_t{2} << 30, static_cast<std::size_t>(meter_.device().memory.count()) / 8);
    constexpr std::size_t copied = std::size_t{256} << 20;
    constexpr double least_seconds = 1;
    const DeviceBuffer from(side), to(side), device(2 * copied);
    const HostBuffer host(2 * copied, true);
    const auto run_kernels = [&](int count) {
      for (int i = 0; i < count; ++i)
        launch_memory(MemoryWork::copy, from.data(), to.data(), side, meter_.multiprocessors(), compute.get());
      require(cudaGetLastError(), "measuring");
    };
    const Event start, kernel_end;
    const auto kernel_seconds = [&](int count) {
      record(start, compute);
      run_kernels(count);
      record(kernel_end, compute);
      return elapsed(start, kernel_end);
    };
    // Copies each way; how long after `start` each has ended.
    const auto copy_both_ways = [&](int count) {
      std::vector<std::vector<Event>> ends(2);
      for (int i = 0; i < count; ++i) {
        copy_async(device.data(), host.data(), copied, false, out);
        record(ends[0].emplace_back(), out);
        copy_async(device.data() + copied, host.data() + copied, copied, true, in);
        record(ends[1].emplace_back(), in);
      }
      return ends;
    };
    const auto begin_together = [&] {
      launch_spin(20'000'000, compute.get());  // while all is being queued
      record(start, compute);
      wait_for(out, start);
      wait_for(in, start);
    };
    kernel_seconds(1);
    const double kernel = kernel_seconds(4) / 4;
    begin_together();
    const double pair = elapsed(start, copy_both_ways(4)[1].back()) / 4;
    const int kernels = static_cast<int>(std::ceil(1.05 * least_seconds / kernel));
    const int copies = static_cast<int>(std::ceil(1.05 * least_seconds / pair));
    const double moved = 2.0 * static_cast<double>(side) * kernels;
    std::vector<double> kernel_alone, copy_alone, kernel_beside, copy_beside;
    for (int i = 0; i < (meter_.options().quick ? 3 : 7); ++i) {
      kernel_alone.push_back(moved / kernel_seconds(kernels));
      begin_together();
      const std::vector<std::vector<Event>> alone = copy_both_ways(copies);
      copy_alone.push_back(moved_within(start, alone, 1e9, static_cast<double>(copied)));
      begin_together();
      // More than last as long as the kernels, whose time the copies lengthen.
      const std::vector<std::vector<Event>> beside = copy_both_ways(copies + copies / 2);
      run_kernels(kernels);
      record(kernel_end, compute);
      const double together = elapsed(start, kernel_end);
      kernel_beside.push_back(moved / together);
      copy_beside.push_back(moved_within(start, beside, together, static_cast<double>(copied)));
    }
    meter_.add(PointKind::kernel_rate_alone, std::move(kernel_alone));
    meter_.add(PointKind::copy_rate_alone, std::move(copy_alone));
    meter_.add(PointKind::kernel_rate_beside_copies, std::move(kernel_beside));
    meter_.add(PointKind::copy_rate_beside_kernels, std::move(copy_beside));
  }
  // Bytes a second of both ways together, up to `seconds` after `start` or the end of each.
  static double moved_within(const Event& start, const std::vector<std::vector<Event>>& ways, double seconds,
                             double bytes) {
    double rate = 0;
    for (const std::vector<Event>& ends : ways) {
      double before = 0, moved = 0;
      for (const Event& end : ends) {
        const double at = elapsed(start, end);
        moved += bytes * std::clamp((seconds - before) / (at - before), 0.0, 1.0);
        before = at;
      }
      rate += moved / std::min(seconds, before);
    }
    return rate;
  }

  // Kernels that fill half of the multiprocessors: as many on each of two streams as on one.
  void measure_two_streams() {
    const Stream first, second;
    const DeviceBuffer out(4096);
    const unsigned half = std::max(1U, meter_.multiprocessors() / 2);
    const int kernels = meter_.options().quick ? 20 : 100;
    const auto seconds_of = [&](bool both) {
      return spread_of(repeat(5,
                              [&] {
                                const double start = host_seconds();
                                for (const Stream* stream : {&first, &second})
                                  for (int i = 0; i < kernels && (both || stream == &first); ++i)
                                    launch_multiply(reinterpret_cast<float*>(out.data()), half, stream->get());
                                require(cudaGetLastError(), "measuring");
                                first.wait();
                                second.wait();
                                return seconds_since(start);
                              }))
          .median;
    };
    const double alone = seconds_of(false);
    meter_.add({.kind = PointKind::two_stream_speedup, .value = {2 * alone / seconds_of(true), 0}, .samples = 5});
  }

  // One long bf16 product again and again: the rate, clock and power that it settles at, the first half left out.
  void measure_sustained() {
    constexpr std::int64_t side = 8192;
    constexpr double window = 0.25, flops = 2.0 * side * side * side;
    const ProductShape shape{.m = side, .n = side, .k = side, .transpose_b = true};
    const Stream stream;
    const BlasHandle handle;
    const std::size_t matrix = rounded(side * side, operand_bytes(Precision::bf16));
    const ProductMemory memory{DeviceBuffer(2 * matrix), DeviceBuffer(matrix), DeviceBuffer(product_workspace)};
    CudaProduct product(handle.get(), shape, product_workspace);
    const Event before, after;
    const auto run = [&](int count) {
      record(before, stream);
      for (int i = 0; i < count; ++i)
        product.run(handle.get(), memory.operands.data(), memory.operands.data() + matrix, nullptr,
                    memory.results.data(), memory.workspace.data(), product_workspace, stream.get());
      record(after, stream);
    };
    run(1);
    elapsed(before, after);
    run(4);
    const int count = std::max(1, static_cast<int>(window / (elapsed(before, after) / 4)));
    std::vector<double> rates, clocks, powers;
    const double begin = host_seconds();
    for (double at = 0; at < meter_.options().sustained_seconds; at = seconds_since(begin)) {
      run(count);
      const NvmlState state = meter_.load();
      GpuPoint point{.kind = PointKind::sustained_window,
                     .value = {flops * count / elapsed(before, after), 0},
                     .clock_mhz = static_cast<double>(state.sm_clock_mhz.value_or(0)),
                     .watts = state.milliwatts.value_or(0) * 1e-3,
                     .at_seconds = at};
      if (at >= meter_.options().sustained_seconds / 2) {
        rates.push_back(point.value.median);
        if (point.clock_mhz > 0) clocks.push_back(point.clock_mhz);
        if (point.watts > 0) powers.push_back(point.watts);
      }
      meter_.add(std::move(point));
    }
    if (rates.empty()) return;
    const auto windows = static_cast<std::int64_t>(rates.size());
    meter_.add({.kind = PointKind::sustained_product,
                .value = spread_of(std::move(rates)),
                .samples = windows,
                .m = side,
                .n = side,
                .k = side,
                .clock_mhz = clocks.empty() ? 0 : spread_of(std::move(clocks)).median,
                .watts = powers.empty() ? 0 : spread_of(std::move(powers)).median});
  }

 private:
  GpuMeter& meter_;
};

}  // namespace

void measure_sharing(GpuMeter& meter) { Load(meter).measure_sharing(); }
void measure_sustained(GpuMeter& meter) { Load(meter).measure_sustained(); }

}  // namespace spillway::hwprofiles
