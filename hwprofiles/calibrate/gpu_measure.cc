// In the GPU module; see gpu_calibration.h.
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/byte_source.h"
#include "hwprofiles/calibrate/activity_clock.h"
#include "hwprofiles/calibrate/cuda_product.h"
#include "hwprofiles/calibrate/device_buffers.h"
#include "hwprofiles/calibrate/gpu_calibration.h"
#include "hwprofiles/calibrate/host_clock.h"

namespace spillway::hwprofiles {
namespace {

double seconds_since(double start) { return host_seconds() - start; }

double elapsed(const Event& from, const Event& to) {
  require(cudaEventSynchronize(to.get()), "timing");
  float milliseconds = 0;
  require(cudaEventElapsedTime(&milliseconds, from.get(), to.get()), "timing");
  return static_cast<double>(milliseconds) * 1e-3;
}
void record(const Event& event, const Stream& stream) {
  require(cudaEventRecord(event.get(), stream.get()), "recording an event");
}
void wait_for(const Stream& stream, const Event& event) {
  require(cudaStreamWaitEvent(stream.get(), event.get(), 0), "waiting for an event");
}

Bytes bytes_of(std::size_t count) { return Bytes(static_cast<std::int64_t>(count)); }

class GpuCampaign {
 public:
  GpuCampaign(const GpuCalibrationOptions& options, const GpuCalibrationHooks& hooks, GpuMeasurement& measured)
      : options_(options), hooks_(hooks), measured_(measured) {}

  void run() {
    begin_part("device", budget_.device_and_slack);
    ask_device();
    if (!activity_.works())
      note("timed by events, which add a few microseconds: " + activity_.why_not() +
           " (to allow activity records: run as root, or load the driver with NVreg_RestrictProfilingToAdminUsers=0)");
    const bool lasted = part("launches", budget_.launches, [&] { measure_launches(); }) &&
                        part("driver calls", budget_.driver_calls, [&] { measure_driver_calls(); }) &&
                        part("memory", budget_.memory, [&] { measure_memory(); }) &&
                        part("products", budget_.products, [&] { measure_products(); }) &&
                        part("copies", budget_.copies, [&] { measure_copies(); }) &&
                        part("sharing", budget_.sharing, [&] { measure_sharing(); }) &&
                        part("sustained load", budget_.sustained, [&] { measure_sustained(); });
    if (lasted) begin_part("", 0);
    measured_.is_whole = lasted;
  }

 private:
  static constexpr std::size_t parts = 9;

  void begin_part(const char* name, double seconds) {
    if (hooks_.progress && !hooks_.progress(part_++, parts)) throw Cancelled{};
    part_name_ = name;
    part_begin_ = host_seconds();
    part_seconds_ = seconds * (options_.quick ? 1 : GpuTimeBudget::full);
    part_is_cut_ = false;
  }
  // Whether the device is still there after it.
  template <class Work>
  bool part(const char* name, double seconds, Work work) {
    begin_part(name, seconds);
    try {
      work();
      return true;
    } catch (const InputError& error) {
      measured_.failed.push_back({name, error.cause() + (error.remedy().empty() ? "" : "; " + error.remedy())});
      tell();
    }
    cudaGetLastError();  // it has been told
    return cudaDeviceSynchronize() == cudaSuccess;
  }
  // Whether the part may go on; the first time that it may not is told.
  bool in_time() {
    if (seconds_since(part_begin_) < part_seconds_) return true;
    if (!part_is_cut_) note(std::string("cut short by the time it may take: ") + part_name_);
    part_is_cut_ = true;
    return false;
  }

  void tell() const {
    if (hooks_.added) hooks_.added(measured_);
  }
  void note(std::string text) {
    measured_.notes.push_back(std::move(text));
    tell();
  }
  void add(GpuPoint point) {
    if (!(point.value.median > 0)) return;  // shorter than the clock can tell
    measured_.points.push_back(std::move(point));
    tell();
  }
  void add(PointKind kind, std::vector<double> samples) {
    if (samples.empty()) return;
    const auto count = static_cast<std::int64_t>(samples.size());
    add({.kind = kind, .value = spread_of(std::move(samples)), .samples = count});
  }

  void ask_device() {
    GpuIdentity& device = measured_.device;
    require(cudaSetDevice(0), "choosing it");
    std::size_t free = 0, total = 0;
    require(cudaMemGetInfo(&free, &total), "asking its memory");
    cudaDeviceProp properties{};
    require(cudaGetDeviceProperties(&properties, 0), "asking its properties");
    device.name = properties.name;
    device.memory = bytes_of(total);
    device.context = bytes_of(total - free);
    device.sm_count = properties.multiProcessorCount;
    device.l2_cache = Bytes(properties.l2CacheSize);
    // One engine each way wherever copies run beside kernels; more than two are for peers.
    device.copy_engines_per_direction = std::max(1, properties.asyncEngineCount / 2);
    int driver = 0;
    require(cudaDriverGetVersion(&driver), "asking the driver");
    device.driver = std::to_string(driver / 1000) + "." + std::to_string(driver % 1000 / 10);
    if (hooks_.load) device.power_limit_watts = hooks_.load().limit_milliwatts.value_or(0) * 1e-3;
    multiprocessors_ = static_cast<unsigned>(properties.multiProcessorCount);
    has_fp8_ = properties.major * 10 + properties.minor >= 89;
    tell();
  }

  // sample() so many times, after one that warms up.
  template <class Sample>
  static std::vector<double> repeat(int times, Sample sample) {
    std::vector<double> samples;
    sample();
    for (int i = 0; i < times; ++i) samples.push_back(sample());
    return samples;
  }

  void measure_launches() {
    const Stream stream;
    const int times = options_.quick ? 20 : 100;
    add(PointKind::launch_call, repeat(times, [&] {
          constexpr int launches = 200;  // far fewer than the queue holds
          const double start = host_seconds();
          for (int i = 0; i < launches; ++i) launch_empty(stream.get());
          const double seconds = seconds_since(start) / launches;
          stream.wait();
          return seconds;
        }));
    require(cudaGetLastError(), "launching");
    if (activity_.works()) {
      measure_start(stream, times);
      measure_gap(stream, times);
    } else {
      measure_flag(stream, times);
    }
    measure_event_calls(times);
    if (activity_.works()) measure_event_gap(times);
    measure_queue(stream);
  }

  // From the end of the call, by CUPTI's clock.
  void measure_start(const Stream& stream, int times) {
    ActivityClock::Tracing tracing(activity_);
    add(PointKind::launch_to_start, repeat(times, [&] {
          launch_empty(stream.get());
          std::uint64_t called = 0;
          cuptiGetTimestamp(&called);
          const std::vector<Activity> ran = tracing.take();
          return ran.size() == 1 && ran[0].start > called ? static_cast<double>(ran[0].start - called) * 1e-9 : 0;
        }));
  }
  // Without CUPTI: until the host sees what an otherwise idle GPU wrote into its memory, one write over the link more.
  void measure_flag(const Stream& stream, int times) {
    const HostBuffer flag(64, true);
    auto* word = reinterpret_cast<volatile int*>(flag.data());
    add(PointKind::launch_to_start, repeat(times, [&] {
          *word = 0;
          launch_flag(word, stream.get());
          const double called = host_seconds();
          while (*word == 0)
            if (seconds_since(called) > 5) throw InputError("GPU", "launch", "a kernel did not start", "see dmesg");
          const double seconds = seconds_since(called);
          stream.wait();
          return seconds;
        }));
  }

  // Of a long chain that waits behind a kernel: from each end to the next start.
  void measure_gap(const Stream& stream, int times) {
    constexpr std::size_t kernels = 200;
    std::vector<double> gaps;
    ActivityClock::Tracing tracing(activity_);
    for (int i = 0; i < times; ++i) {
      launch_spin(3'000'000, stream.get());
      for (std::size_t k = 0; k < kernels; ++k) launch_empty(stream.get());
      const std::vector<Activity> ran = tracing.take();
      std::vector<double> chain;
      for (std::size_t k = 2; k < ran.size(); ++k)
        chain.push_back(static_cast<double>(ran[k].start - std::min(ran[k].start, ran[k - 1].end)) * 1e-9);
      if (i > 0 && !chain.empty()) gaps.push_back(spread_of(std::move(chain)).median);
    }
    add(PointKind::kernel_gap, std::move(gaps));
  }

  void measure_event_calls(int times) {
    const Stream first, second;
    const Event mark;
    constexpr int calls = 200;
    add(PointKind::event_record_call, repeat(times, [&] {
          const double start = host_seconds();
          for (int i = 0; i < calls; ++i) record(mark, first);
          const double seconds = seconds_since(start) / calls;
          first.wait();
          return seconds;
        }));
    add(PointKind::event_wait_call, repeat(times, [&] {
          const double start = host_seconds();
          for (int i = 0; i < calls; ++i) wait_for(second, mark);
          const double seconds = seconds_since(start) / calls;
          second.wait();
          return seconds;
        }));
  }
  void measure_event_gap(int times) {
    const Stream first, second;
    const Event mark;
    ActivityClock::Tracing tracing(activity_);
    add(PointKind::event_gap, repeat(times, [&] {
          launch_spin(500'000, first.get());
          record(mark, first);
          wait_for(second, mark);
          launch_empty(second.get());
          const std::vector<Activity> ran = tracing.take();
          return ran.size() == 2 && ran[1].start > ran[0].end ? static_cast<double>(ran[1].start - ran[0].end) * 1e-9
                                                              : 0;
        }));
  }

  // How many launches fit behind a kernel that runs for long, before one has to wait.
  void measure_queue(const Stream& stream) {
    constexpr std::int64_t most = 1 << 16;
    launch_spin(400'000'000, stream.get());
    for (std::int64_t i = 0; i < most; ++i) {
      const double start = host_seconds();
      launch_empty(stream.get());
      if (seconds_since(start) > 20e-3) {
        add({.kind = PointKind::launch_queue, .value = {static_cast<double>(i + 1), 0}});
        break;
      }
      if (cudaStreamQuery(stream.get()) == cudaSuccess) break;
    }
    stream.wait();
  }

  void measure_driver_calls() {
    const int times = options_.quick ? 10 : 40;
    constexpr std::size_t segment = std::size_t{20} << 20;  // what PyTorch asks for most
    std::vector<double> frees;
    add(PointKind::malloc_call, repeat(times, [&] {
          void* memory = nullptr;
          const double start = host_seconds();
          require(cudaMalloc(&memory, segment), "taking memory");
          const double seconds = seconds_since(start), freeing = host_seconds();
          require(cudaFree(memory), "giving memory back");
          frees.push_back(seconds_since(freeing));
          return seconds;
        }));
    add(PointKind::free_call, std::move(frees));
    measure_chunks(times, segment);
  }

  template <class Function>
  static Function driver_function(const char* name) {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult result{};
    if (cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &result) != cudaSuccess)
      return nullptr;
    return result == cudaDriverEntryPointSuccess ? reinterpret_cast<Function>(found) : nullptr;
  }

  // The calls that expandable segments make, per chunk. Left out where the driver refuses one.
  void measure_chunks(int times, std::size_t bytes) {
    const auto create = driver_function<decltype(&cuMemCreate)>("cuMemCreate");
    const auto release = driver_function<decltype(&cuMemRelease)>("cuMemRelease");
    const auto reserve = driver_function<decltype(&cuMemAddressReserve)>("cuMemAddressReserve");
    const auto give = driver_function<decltype(&cuMemAddressFree)>("cuMemAddressFree");
    const auto map = driver_function<decltype(&cuMemMap)>("cuMemMap");
    const auto unmap = driver_function<decltype(&cuMemUnmap)>("cuMemUnmap");
    const auto set_access = driver_function<decltype(&cuMemSetAccess)>("cuMemSetAccess");
    if (!create || !release || !reserve || !give || !map || !unmap || !set_access) return;
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties.location.id = 0;
    CUmemAccessDesc access{};
    access.location = properties.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    CUdeviceptr address = 0;
    if (reserve(&address, bytes, 0, 0, 0) != CUDA_SUCCESS) return;
    std::vector<double> creating, mapping, unmapping;
    for (int i = 0; i <= times; ++i) {
      CUmemGenericAllocationHandle chunk = 0;
      const double start = host_seconds();
      if (create(&chunk, bytes, &properties, 0) != CUDA_SUCCESS) break;
      const double created = seconds_since(start), before_map = host_seconds();
      const bool mapped =
          map(address, bytes, 0, chunk, 0) == CUDA_SUCCESS && set_access(address, bytes, &access, 1) == CUDA_SUCCESS;
      const double took_map = seconds_since(before_map), before_unmap = host_seconds();
      unmap(address, bytes);
      release(chunk);
      if (!mapped) break;
      if (i == 0) continue;  // the first warms up
      creating.push_back(created);
      mapping.push_back(took_map);
      unmapping.push_back(seconds_since(before_unmap));
    }
    give(address, bytes);
    add(PointKind::chunk_create, std::move(creating));
    add(PointKind::chunk_map, std::move(mapping));
    add(PointKind::chunk_unmap, std::move(unmapping));
  }

  // Seconds of work(0), work(1), ...: of each by CUPTI, whatever kernels it launches, or the time by events.
  template <class Work>
  std::vector<double> timed(const Stream& stream, int works, Work work, ActivityClock::Tracing* tracing) {
    work(0);
    std::vector<double> seconds;
    if (tracing != nullptr) {
      tracing->take();
      for (int i = 0; i < works; ++i) work(i);
      const std::vector<Activity> ran = tracing->take();
      const std::size_t kernels = ran.size() / static_cast<std::size_t>(works);
      if (kernels * static_cast<std::size_t>(works) != ran.size()) return {};  // some records were dropped
      for (int i = 0; i < works; ++i) {
        // A product split over k runs a second kernel: its parts are one product.
        double sum = 0;
        for (std::size_t k = 0; k < kernels; ++k) sum += ran[static_cast<std::size_t>(i) * kernels + k].seconds();
        seconds.push_back(sum);
      }
      return seconds;
    }
    stream.wait();
    for (int i = 0; i < works; ++i) {
      const Event before, after;
      record(before, stream);
      work(i);
      record(after, stream);
      seconds.push_back(elapsed(before, after));
    }
    return seconds;
  }
  ActivityClock::Tracing* trace(std::optional<ActivityClock::Tracing>& tracing) {
    if (!activity_.works()) return nullptr;
    return &tracing.emplace(activity_);
  }

  void measure_memory() {
    const Stream stream;
    // Far more than any L2 cache, and half for each side.
    const std::size_t all =
        std::min<std::size_t>(std::size_t{4} << 30, static_cast<std::size_t>(measured_.device.memory.count()) / 4);
    const DeviceBuffer from(all / 2), to(all / 2);
    std::optional<ActivityClock::Tracing> tracing;
    ActivityClock::Tracing* traced = trace(tracing);
    std::size_t next = 0;  // goes on from kind to kind, so that no kernel finds what the one before left in the cache
    for (std::size_t bytes = std::size_t{64} << 10; bytes <= (std::size_t{1} << 30) && bytes <= all / 2; bytes *= 4) {
      const std::size_t places = all / 2 / bytes;
      const auto works = static_cast<int>(std::clamp<std::size_t>(places, 8, options_.quick ? 16 : 64));
      struct Kind {
        const char* name;
        MemoryWork work;
        std::size_t directions;
      };
      for (const Kind& kind : {Kind{"copy", MemoryWork::copy, 2}, Kind{"read", MemoryWork::read, 1},
                               Kind{"write", MemoryWork::write, 1}}) {
        if (!in_time()) return;
        std::vector<double> seconds = timed(
            stream, works,
            [&](int) {
              const std::size_t offset = next++ % places * bytes;
              launch_memory(kind.work, from.data() + offset, to.data() + offset, bytes, multiprocessors_, stream.get());
              require(cudaGetLastError(), kind.name);
            },
            traced);
        if (!seconds.empty())
          add({.kind = PointKind::memory_kernel,
               .what = kind.name,
               .value = spread_of(std::move(seconds)),
               .samples = works,
               .bytes = bytes_of(bytes * kind.directions)});
      }
    }
  }

  // Operands and results of products, shared by all shapes: results are never read, so numbers do not grow.
  struct ProductMemory {
    DeviceBuffer operands, results, workspace;
  };
  static std::size_t rounded(std::int64_t elements, std::size_t element) {
    return (static_cast<std::size_t>(elements) * element + 511) / 512 * 512;
  }

  void measure_products() {
    const Stream stream;
    const BlasHandle handle;
    const auto device = static_cast<std::size_t>(measured_.device.memory.count());
    const std::size_t operands = std::min<std::size_t>(std::size_t{2} << 30, device / 8);
    ProductMemory memory{DeviceBuffer(operands), DeviceBuffer(std::min<std::size_t>(std::size_t{1} << 30, device / 8)),
                         DeviceBuffer(workspace_bytes)};
    std::optional<ActivityClock::Tracing> tracing;
    ActivityClock::Tracing* traced = trace(tracing);
    int unsupported = 0;
    const double all = part_seconds_;
    double share = 0;
    for (const auto& [precision, part] :
         {std::pair{Precision::bf16, 0.7}, {Precision::fp8, 0.2}, {Precision::fp32, 0.1}}) {
      if (precision == Precision::fp8 && !has_fp8_) continue;
      share += part;
      part_seconds_ = share * all;
      memory.operands.fill(precision);
      std::vector<ProductShape> shapes = calibration_shapes(precision, options_.quick);
      if (options_.most_products > 0)
        shapes.resize(std::min(shapes.size(), static_cast<std::size_t>(options_.most_products)));
      for (const ProductShape& shape : shapes) {
        if (!in_time()) break;
        try {
          measure_product(handle, stream, memory, shape, traced);
        } catch (const UnsupportedProduct&) {
          ++unsupported;
        }
      }
    }
    if (unsupported > 0) note(std::to_string(unsupported) + " products that cuBLASLt has no algorithm for");
  }

  void measure_product(const BlasHandle& handle, const Stream& stream, const ProductMemory& memory,
                       const ProductShape& shape, ActivityClock::Tracing* tracing) {
    const std::size_t element = operand_bytes(shape.precision);
    const std::size_t a = rounded(shape.m * shape.k, element), b = rounded(shape.k * shape.n, element);
    const std::size_t c = rounded(shape.m * shape.n, result_bytes(shape.precision));
    if (a + b > memory.operands.size() || c > memory.results.size()) return;
    // As many sets of operands as it takes to fill the L2 cache twice.
    const auto cache = static_cast<std::size_t>(measured_.device.l2_cache.count());
    const std::size_t sets =
        std::min({2 * cache / (a + b + c) + 1, memory.operands.size() / (a + b), memory.results.size() / c});
    CudaProduct product(handle.get(), shape, memory.workspace.size());
    const double estimate = 3e-15 * static_cast<double>(shape.m) * static_cast<double>(shape.n) *
                            static_cast<double>(shape.k) * (shape.precision == Precision::fp32 ? 15 : 1);
    const int works = static_cast<int>(std::clamp((options_.quick ? 2e-3 : 5e-3) / (estimate + 5e-6), 4.0, 20.0));
    std::vector<double> seconds = timed(
        stream, works,
        [&](int i) {
          const std::size_t set = static_cast<std::size_t>(i) % sets;
          const std::byte* operands = memory.operands.data() + set * (a + b);
          product.run(handle.get(), operands, operands + a, nullptr, memory.results.data() + set * c,
                      memory.workspace.data(), memory.workspace.size(), stream.get());
        },
        tracing);
    if (seconds.empty()) return;
    add({.kind = PointKind::product,
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
    const std::size_t largest = options_.quick ? std::size_t{256} << 20 : std::size_t{1} << 30;
    const DeviceBuffer device(largest);
    {
      const HostBuffer host(largest, true);
      std::optional<ActivityClock::Tracing> tracing;
      ActivityClock::Tracing* traced = trace(tracing);
      for (std::size_t bytes = 4096; bytes <= largest; bytes *= 4)
        for (const bool to_device : {true, false})
          if (in_time()) measure_copy(stream, device, host, bytes, to_device, traced);
    }
    const std::size_t pageable = largest / 4;
    const HostBuffer host(pageable, false);
    for (std::size_t bytes = 65536; bytes <= pageable; bytes *= 16)
      for (const bool to_device : {true, false})
        if (in_time()) measure_pageable(stream, device, host, bytes, to_device);
    measure_duplex(largest);
  }

  static void copy(std::byte* device, std::byte* host, std::size_t bytes, bool to_device, const Stream& stream) {
    require(to_device ? cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, stream.get())
                      : cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, stream.get()),
            "copying");
  }
  void add_copy(std::vector<double> seconds, std::size_t bytes, bool pinned, bool to_device) {
    if (seconds.empty()) return;
    const auto samples = static_cast<std::int64_t>(seconds.size());
    add({.kind = to_device ? PointKind::copy_to_device : PointKind::copy_to_host,
         .value = spread_of(std::move(seconds)),
         .samples = samples,
         .bytes = bytes_of(bytes),
         .pinned = pinned});
  }
  void measure_copy(const Stream& stream, const DeviceBuffer& device, const HostBuffer& host, std::size_t bytes,
                    bool to_device, ActivityClock::Tracing* tracing) {
    const int times = bytes > (std::size_t{64} << 20) ? 5 : 20;
    add_copy(timed(
                 stream, times, [&](int) { copy(device.data(), host.data(), bytes, to_device, stream); }, tracing),
             bytes, true, to_device);
  }
  // By the host's clock: the driver copies through pinned memory of its own, piece by piece.
  void measure_pageable(const Stream& stream, const DeviceBuffer& device, const HostBuffer& host, std::size_t bytes,
                        bool to_device) {
    add_copy(repeat(5,
                    [&] {
                      const double start = host_seconds();
                      copy(device.data(), host.data(), bytes, to_device, stream);
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
    add(PointKind::duplex_rate, repeat(5, [&] {
          constexpr int copies = 4;
          record(start, in);
          wait_for(out, start);
          for (int i = 0; i < copies; ++i) {
            copy(device.data(), host.data(), bytes, true, in);
            copy(device.data() + bytes, host.data() + bytes, bytes, false, out);
          }
          record(in_end, in);
          record(out_end, out);
          return 2 * copies * static_cast<double>(bytes) / std::max(elapsed(start, in_end), elapsed(start, out_end));
        }));
  }

  void measure_sharing() {
    measure_contention();
    measure_two_streams();
  }

  // A kernel bound by memory alone, copies both ways alone, and both together: each for a second or more, by events,
  // again and again.
  void measure_contention() {
    const Stream compute, out, in;
    const std::size_t side =
        std::min<std::size_t>(std::size_t{2} << 30, static_cast<std::size_t>(measured_.device.memory.count()) / 8);
    constexpr std::size_t copied = std::size_t{256} << 20;
    constexpr double least_seconds = 1;
    const DeviceBuffer from(side), to(side), device(2 * copied);
    const HostBuffer host(2 * copied, true);
    const auto run_kernels = [&](int count) {
      for (int i = 0; i < count; ++i)
        launch_memory(MemoryWork::copy, from.data(), to.data(), side, multiprocessors_, compute.get());
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
        copy(device.data(), host.data(), copied, false, out);
        record(ends[0].emplace_back(), out);
        copy(device.data() + copied, host.data() + copied, copied, true, in);
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
    for (int i = 0; i < (options_.quick ? 3 : 7); ++i) {
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
    add(PointKind::kernel_rate_alone, std::move(kernel_alone));
    add(PointKind::copy_rate_alone, std::move(copy_alone));
    add(PointKind::kernel_rate_beside_copies, std::move(kernel_beside));
    add(PointKind::copy_rate_beside_kernels, std::move(copy_beside));
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
    const unsigned half = std::max(1U, multiprocessors_ / 2);
    const int kernels = options_.quick ? 20 : 100;
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
    add({.kind = PointKind::two_stream_speedup, .value = {2 * alone / seconds_of(true), 0}, .samples = 5});
  }

  // One long bf16 product again and again: the rate, clock and power that it settles at, the first half left out.
  void measure_sustained() {
    constexpr std::int64_t side = 8192;
    constexpr double window = 0.25, flops = 2.0 * side * side * side;
    const ProductShape shape{.m = side, .n = side, .k = side, .transpose_b = true};
    const Stream stream;
    const BlasHandle handle;
    const std::size_t matrix = rounded(side * side, operand_bytes(Precision::bf16));
    const ProductMemory memory{DeviceBuffer(2 * matrix), DeviceBuffer(matrix), DeviceBuffer(workspace_bytes)};
    CudaProduct product(handle.get(), shape, workspace_bytes);
    const Event before, after;
    const auto run = [&](int count) {
      record(before, stream);
      for (int i = 0; i < count; ++i)
        product.run(handle.get(), memory.operands.data(), memory.operands.data() + matrix, nullptr,
                    memory.results.data(), memory.workspace.data(), workspace_bytes, stream.get());
      record(after, stream);
    };
    run(1);
    elapsed(before, after);
    run(4);
    const int count = std::max(1, static_cast<int>(window / (elapsed(before, after) / 4)));
    std::vector<double> rates, clocks, powers;
    const double begin = host_seconds();
    for (double at = 0; at < options_.sustained_seconds; at = seconds_since(begin)) {
      run(count);
      const NvmlState state = hooks_.load ? hooks_.load() : NvmlState{};
      GpuPoint point{.kind = PointKind::sustained_window,
                     .value = {flops * count / elapsed(before, after), 0},
                     .clock_mhz = static_cast<double>(state.sm_clock_mhz.value_or(0)),
                     .watts = state.milliwatts.value_or(0) * 1e-3,
                     .at_seconds = at};
      if (at >= options_.sustained_seconds / 2) {
        rates.push_back(point.value.median);
        if (point.clock_mhz > 0) clocks.push_back(point.clock_mhz);
        if (point.watts > 0) powers.push_back(point.watts);
      }
      add(std::move(point));
    }
    if (rates.empty()) return;
    const auto windows = static_cast<std::int64_t>(rates.size());
    add({.kind = PointKind::sustained_product,
         .value = spread_of(std::move(rates)),
         .samples = windows,
         .m = side,
         .n = side,
         .k = side,
         .clock_mhz = clocks.empty() ? 0 : spread_of(std::move(clocks)).median,
         .watts = powers.empty() ? 0 : spread_of(std::move(powers)).median});
  }

  static constexpr std::size_t workspace_bytes = std::size_t{32} << 20;

  const GpuCalibrationOptions& options_;
  const GpuCalibrationHooks& hooks_;
  GpuMeasurement& measured_;
  ActivityClock activity_;
  GpuTimeBudget budget_;
  unsigned multiprocessors_ = 1;
  bool has_fp8_ = false;
  std::size_t part_ = 0;
  const char* part_name_ = "";
  double part_begin_ = 0, part_seconds_ = 0;
  bool part_is_cut_ = false;
};

}  // namespace
}  // namespace spillway::hwprofiles

extern "C" void spillway_measure_gpu(const spillway::hwprofiles::GpuCalibrationOptions& options,
                                     const spillway::hwprofiles::GpuCalibrationHooks& hooks,
                                     spillway::hwprofiles::GpuMeasurement& measured) {
  spillway::hwprofiles::GpuCampaign(options, hooks, measured).run();
}
