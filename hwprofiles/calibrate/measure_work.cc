// In the GPU module; see gpu_meter.h.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hwprofiles/calibrate/cuda_product.h"
#include "hwprofiles/calibrate/gpu_kernels.h"
#include "hwprofiles/calibrate/gpu_meter.h"
#include "hwprofiles/calibrate/product_shapes.h"

namespace spillway::hwprofiles {
namespace {

class Work {
 public:
  explicit Work(GpuMeter& meter) : meter_(meter) {}

  void measure_memory() {
    const Stream stream;
    // Far more than any L2 cache, and half for each side.
    const std::size_t all =
        std::min<std::size_t>(std::size_t{4} << 30, static_cast<std::size_t>(meter_.device().memory.count()) / 4);
    const DeviceBuffer from(all / 2), to(all / 2);
    std::optional<ActivityClock::Tracing> tracing;
    ActivityClock::Tracing* traced = meter_.trace(tracing);
    std::size_t next = 0;  // goes on from kind to kind, so that no kernel finds what the one before left in the cache
    for (std::size_t bytes = std::size_t{64} << 10; bytes <= (std::size_t{1} << 30) && bytes <= all / 2; bytes *= 4) {
      const std::size_t places = all / 2 / bytes;
      const auto works = static_cast<int>(std::clamp<std::size_t>(places, 8, meter_.options().quick ? 16 : 64));
      struct Kind {
        const char* name;
        MemoryWork work;
        std::size_t directions;
      };
      for (const Kind& kind : {Kind{"copy", MemoryWork::copy, 2}, Kind{"read", MemoryWork::read, 1},
                               Kind{"write", MemoryWork::write, 1}}) {
        if (!meter_.in_time()) return;
        std::vector<double> seconds = meter_.timed(
            stream, works,
            [&](int) {
              const std::size_t offset = next++ % places * bytes;
              launch_memory(kind.work, from.data() + offset, to.data() + offset, bytes, meter_.multiprocessors(),
                            stream.get());
              require(cudaGetLastError(), kind.name);
            },
            traced);
        if (!seconds.empty())
          meter_.add({.kind = PointKind::memory_kernel,
                      .what = kind.name,
                      .value = spread_of(std::move(seconds)),
                      .samples = works,
                      .bytes = bytes_of(bytes * kind.directions)});
      }
    }
  }

  void measure_products() {
    const Stream stream;
    const BlasHandle handle;
    const auto device = static_cast<std::size_t>(meter_.device().memory.count());
    const std::size_t operands = std::min<std::size_t>(std::size_t{2} << 30, device / 8);
    ProductMemory memory{DeviceBuffer(operands), DeviceBuffer(std::min<std::size_t>(std::size_t{1} << 30, device / 8)),
                         DeviceBuffer(product_workspace)};
    std::optional<ActivityClock::Tracing> tracing;
    ActivityClock::Tracing* traced = meter_.trace(tracing);
    int unsupported = 0;
    const double all = meter_.part_seconds();
    double share = 0;
    for (const auto& [precision, part] :
         {std::pair{Precision::bf16, 0.7}, {Precision::fp8, 0.2}, {Precision::fp32, 0.1}}) {
      if (precision == Precision::fp8 && !meter_.has_fp8()) continue;
      share += part;
      meter_.limit_part(share * all);
      memory.operands.fill(precision);
      std::vector<ProductShape> shapes = calibration_shapes(precision, meter_.options().quick);
      if (meter_.options().most_products > 0)
        shapes.resize(std::min(shapes.size(), static_cast<std::size_t>(meter_.options().most_products)));
      for (const ProductShape& shape : shapes) {
        if (!meter_.in_time()) break;
        try {
          measure_product(handle, stream, memory, shape, traced);
        } catch (const UnsupportedProduct&) {
          ++unsupported;
        }
      }
    }
    if (unsupported > 0) meter_.note(std::to_string(unsupported) + " products that cuBLASLt has no algorithm for");
  }

  void measure_product(const BlasHandle& handle, const Stream& stream, const ProductMemory& memory,
                       const ProductShape& shape, ActivityClock::Tracing* tracing) {
    const std::size_t element = operand_bytes(shape.precision);
    const std::size_t a = rounded(shape.m * shape.k, element), b = rounded(shape.k * shape.n, element);
    const std::size_t c = rounded(shape.m * shape.n, result_bytes(shape.precision));
    if (a + b > memory.operands.size() || c > memory.results.size()) return;
    // As many sets of operands as it takes to fill the L2 cache twice.
    const auto cache = static_cast<std::size_t>(meter_.device().l2_cache.count());
    const std::size_t sets =
        std::min({2 * cache / (a + b + c) + 1, memory.operands.size() / (a + b), memory.results.size() / c});
    CudaProduct product(handle.get(), shape, memory.workspace.size());
    const double estimate = 3e-15 * static_cast<double>(shape.m) * static_cast<double>(shape.n) *
                            static_cast<double>(shape.k) * (shape.precision == Precision::fp32 ? 15 : 1);
    const int works =
        static_cast<int>(std::clamp((meter_.options().quick ? 2e-3 : 5e-3) / (estimate + 5e-6), 4.0, 20.0));
    std::vector<double> seconds = meter_.timed(
        stream, works,
        [&](int i) {
          const std::size_t set = static_cast<std::size_t>(i) % sets;
          const std::byte* operands = memory.operands.data() + set * (a + b);
          product.run(handle.get(), operands, operands + a, nullptr, memory.results.data() + set * c,
                      memory.workspace.data(), memory.workspace.size(), stream.get());
        },
        tracing);
    if (seconds.empty()) return;
    meter_.add({.kind = PointKind::product,
                .what = std::string(layout_name(shape)),
                .value = spread_of(std::move(seconds)),
                .samples = works,
                .precision = shape.precision,
                .m = shape.m,
                .n = shape.n,
                .k = shape.k});
  }

  void measure_copies() {
    const Stream stream;
    const std::size_t largest = meter_.options().quick ? std::size_t{256} << 20 : std::size_t{1} << 30;
    const DeviceBuffer device(largest);
    {
      const HostBuffer host(largest, true);
      std::optional<ActivityClock::Tracing> tracing;
      ActivityClock::Tracing* traced = meter_.trace(tracing);
      for (std::size_t bytes = 4096; bytes <= largest; bytes *= 4)
        for (const bool to_device : {true, false})
          if (meter_.in_time()) measure_copy(stream, device, host, bytes, to_device, traced);
    }
    const std::size_t pageable = largest / 4;
    const HostBuffer host(pageable, false);
    for (std::size_t bytes = 65536; bytes <= pageable; bytes *= 16)
      for (const bool to_device : {true, false})
        if (meter_.in_time()) measure_pageable(stream, device, host, bytes, to_device);
    measure_duplex(largest);
  }

  void add_copy(std::vector<double> seconds, std::size_t bytes, bool pinned, bool to_device) {
    if (seconds.empty()) return;
    const auto samples = static_cast<std::int64_t>(seconds.size());
    meter_.add({.kind = to_device ? PointKind::copy_to_device : PointKind::copy_to_host,
                .value = spread_of(std::move(seconds)),
                .samples = samples,
                .bytes = bytes_of(bytes),
                .pinned = pinned});
  }
  void measure_copy(const Stream& stream, const DeviceBuffer& device, const HostBuffer& host, std::size_t bytes,
                    bool to_device, ActivityClock::Tracing* tracing) {
    const int times = bytes > (std::size_t{64} << 20) ? 5 : 20;
    add_copy(
        meter_.timed(
            stream, times, [&](int) { copy_async(device.data(), host.data(), bytes, to_device, stream); }, tracing),
        bytes, true, to_device);
  }
  // By the host's clock: the driver copies through pinned memory of its own, piece by piece.
  void measure_pageable(const Stream& stream, const DeviceBuffer& device, const HostBuffer& host, std::size_t bytes,
                        bool to_device) {
    add_copy(repeat(5,
                    [&] {
                      const double start = host_seconds();
                      copy_async(device.data(), host.data(), bytes, to_device, stream);
                      stream.wait();
                      return seconds_since(start);
                    }),
             bytes, false, to_device);
  }

  void measure_duplex(std::size_t bytes) {
    const Stream in, out;
    const DeviceBuffer device(2 * bytes);
    const HostBuffer host(2 * bytes, true);
    const Event start, in_end, out_end;
    meter_.add(PointKind::duplex_rate, repeat(5, [&] {
                 constexpr int copies = 4;
                 record(start, in);
                 wait_for(out, start);
                 for (int i = 0; i < copies; ++i) {
                   copy_async(device.data(), host.data(), bytes, true, in);
                   copy_async(device.data() + bytes, host.data() + bytes, bytes, false, out);
                 }
                 record(in_end, in);
                 record(out_end, out);
                 return 2 * copies * static_cast<double>(bytes) /
                        std::max(elapsed(start, in_end), elapsed(start, out_end));
               }));
  }

 private:
  GpuMeter& meter_;
};

}  // namespace

void measure_memory(GpuMeter& meter) { Work(meter).measure_memory(); }
void measure_products(GpuMeter& meter) { Work(meter).measure_products(); }
void measure_copies(GpuMeter& meter) { Work(meter).measure_copies(); }

}  // namespace spillway::hwprofiles
