// In the GPU module; see gpu_calibration.h.
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "base/byte_source.h"
#include "hwprofiles/calibrate/activity_clock.cuh"
#include "hwprofiles/calibrate/cuda_product.cuh"
#include "hwprofiles/calibrate/device_buffers.cuh"
#include "hwprofiles/calibrate/gpu_calibration.h"
#include "hwprofiles/calibrate/spread.h"

namespace spillway::hwprofiles {
namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

constexpr unsigned threads = 256;

__device__ unsigned long long global_nanoseconds() {
  unsigned long long now = 0;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  return now;
}

__global__ void empty_kernel() {}
__global__ void flag_kernel(volatile int* flag) { *flag = 1; }
__global__ void stamp_kernel(unsigned long long* begin_end) {
  begin_end[0] = global_nanoseconds();
  begin_end[1] = global_nanoseconds();
}
__global__ void spin_kernel(unsigned long long nanoseconds) {
  const unsigned long long start = global_nanoseconds();
  while (global_nanoseconds() - start < nanoseconds) {
  }
}
__global__ void copy_kernel(const float4* from, float4* to, std::size_t count) {
  for (std::size_t i = blockIdx.x * static_cast<std::size_t>(blockDim.x) + threadIdx.x; i < count;
       i += static_cast<std::size_t>(gridDim.x) * blockDim.x)
    to[i] = from[i];
}
__global__ void read_kernel(const float4* from, float4* to, std::size_t count) {
  float4 sum = make_float4(0, 0, 0, 0);
  for (std::size_t i = blockIdx.x * static_cast<std::size_t>(blockDim.x) + threadIdx.x; i < count;
       i += static_cast<std::size_t>(gridDim.x) * blockDim.x) {
    const float4 value = from[i];
    sum.x += value.x;
    sum.y += value.y;
    sum.z += value.z;
    sum.w += value.w;
  }
  // Never true of these numbers, but the compiler can't know: the reads stay.
  if (sum.x + sum.y + sum.z + sum.w < 0) to[threadIdx.x] = sum;
}
__global__ void write_kernel(const float4*, float4* to, std::size_t count) {
  for (std::size_t i = blockIdx.x * static_cast<std::size_t>(blockDim.x) + threadIdx.x; i < count;
       i += static_cast<std::size_t>(gridDim.x) * blockDim.x)
    to[i] = make_float4(1, 1, 1, 1);
}

// Bound by arithmetic; a block takes half of a multiprocessor or more.
__global__ void multiply_kernel(float* out, int rounds) {
  float a = 1.0F + static_cast<float>(threadIdx.x), b = 0.5F;
  for (int i = 0; i < rounds; ++i) {
    a = fmaf(a, 0.999F, b);
    b = fmaf(b, 0.998F, 1e-6F);
  }
  if (a + b < 0) out[threadIdx.x] = a;  // never, but the compiler can't know
}

class GpuCampaign {
 public:
  GpuCampaign(const GpuCalibrationOptions& options, const std::function<bool(std::size_t, std::size_t)>& progress,
              GpuMeasurement& measured)
      : options_(options), progress_(progress), measured_(measured) {}

  void run() {
    const Clock::time_point start = Clock::now();
    measured_.no_activity_records = activity_.why_not();
    begin_part("device", budget_.device_and_slack);
    ask_device();
    begin_part("launches", budget_.launches);
    measure_launches();
    measure_events();
    begin_part("driver calls", budget_.driver_calls);
    measure_driver_calls();
    begin_part("memory", budget_.memory);
    measure_memory();
    begin_part("products", budget_.products);
    measure_products();
    begin_part("copies", budget_.copies);
    measure_copies();
    begin_part("sharing", budget_.sharing);
    measure_contention();
    measure_two_streams();
    begin_part("", 0);
    measured_.seconds = seconds_since(start);
  }

 private:
  static constexpr std::size_t parts = 8;

  void begin_part(const char* name, double seconds) {
    if (!progress_(part_++, parts)) throw Cancelled{};
    part_name_ = name;
    part_begin_ = Clock::now();
    part_seconds_ = seconds * (options_.quick ? 1 : GpuTimeBudget::full);
    part_is_cut_ = false;
  }
  // Whether the part may go on; the first time that it may not is told.
  bool in_time() {
    if (seconds_since(part_begin_) < part_seconds_) return true;
    if (!part_is_cut_) measured_.left_out.push_back(part_name_);
    part_is_cut_ = true;
    return false;
  }

  void ask_device() {
    require(cudaSetDevice(0), "choosing it");
    std::size_t free = 0, total = 0;
    require(cudaMemGetInfo(&free, &total), "asking its memory");
    cudaDeviceProp properties{};
    require(cudaGetDeviceProperties(&properties, 0), "asking its properties");
    measured_.name = properties.name;
    measured_.memory = Bytes(static_cast<std::int64_t>(total));
    measured_.context = Bytes(static_cast<std::int64_t>(total - free));
    measured_.sm_count = properties.multiProcessorCount;
    measured_.l2_cache = Bytes(properties.l2CacheSize);
    // One engine each way wherever copies run beside kernels; more than two are for peers.
    measured_.copy_engines_per_direction = std::max(1, properties.asyncEngineCount / 2);
    int driver = 0;
    require(cudaDriverGetVersion(&driver), "asking the driver");
    measured_.driver = std::to_string(driver / 1000) + "." + std::to_string(driver % 1000 / 10);
    blocks_ = static_cast<unsigned>(properties.multiProcessorCount) * 8;
    has_fp8_ = properties.major * 10 + properties.minor >= 89;
  }

  // Medians of samples(), after one run that warms up.
  template <class Sample>
  static Spread repeat(int times, Sample sample) {
    std::vector<double> samples;
    sample();
    for (int i = 0; i < times; ++i) samples.push_back(sample());
    return spread_of(std::move(samples));
  }

  void measure_launches() {
    const Stream stream;
    const int times = options_.quick ? 20 : 100;
    measured_.launch_call = repeat(times, [&] {
      constexpr int launches = 200;  // far fewer than the queue holds
      const Clock::time_point start = Clock::now();
      for (int i = 0; i < launches; ++i) empty_kernel<<<1, 1, 0, stream.get()>>>();
      const double seconds = seconds_since(start) / launches;
      stream.wait();
      return seconds;
    });
    // Until the host sees what an otherwise idle GPU wrote into its memory: the start, and one write over the link.
    const HostBuffer flag(64, true);
    auto* word = reinterpret_cast<volatile int*>(flag.data());
    measured_.launch_to_start = repeat(times, [&] {
      *word = 0;
      flag_kernel<<<1, 1, 0, stream.get()>>>(word);
      const Clock::time_point called = Clock::now();
      while (*word == 0)
        if (seconds_since(called) > 5) throw InputError("GPU", "launch", "a kernel did not start", "see dmesg");
      const double seconds = seconds_since(called);
      stream.wait();
      return seconds;
    });
    measure_gap(stream, times);
    measure_queue(stream);
  }

  // Between kernels that wait behind a long one.
  void measure_gap(const Stream& stream, int times) {
    constexpr std::size_t kernels = 200;
    const DeviceBuffer stamps(kernels * 2 * sizeof(unsigned long long));
    std::vector<unsigned long long> host(kernels * 2);
    measured_.kernel_gap = repeat(times, [&] {
      spin_kernel<<<1, 1, 0, stream.get()>>>(3'000'000);
      for (std::size_t i = 0; i < kernels; ++i)
        stamp_kernel<<<1, 1, 0, stream.get()>>>(reinterpret_cast<unsigned long long*>(stamps.data()) + 2 * i);
      stream.wait();
      require(cudaMemcpy(host.data(), stamps.data(), stamps.size(), cudaMemcpyDeviceToHost), "measuring");
      std::vector<double> gaps;
      for (std::size_t i = 1; i < kernels; ++i)
        gaps.push_back(static_cast<double>(host[2 * i] - host[2 * i - 1]) * 1e-9);
      return spread_of(std::move(gaps)).median;
    });
  }

  // What an event costs the host, and what waiting for one on another stream costs the device.
  void measure_events() {
    const Stream first, second;
    const Event mark;
    const int times = options_.quick ? 20 : 100;
    constexpr int calls = 200;
    measured_.event_record_call = repeat(times, [&] {
      const Clock::time_point start = Clock::now();
      for (int i = 0; i < calls; ++i) require(cudaEventRecord(mark.get(), first.get()), "recording an event");
      const double seconds = seconds_since(start) / calls;
      first.wait();
      return seconds;
    });
    measured_.event_wait_call = repeat(times, [&] {
      const Clock::time_point start = Clock::now();
      for (int i = 0; i < calls; ++i) require(cudaStreamWaitEvent(second.get(), mark.get(), 0), "waiting for an event");
      const double seconds = seconds_since(start) / calls;
      second.wait();
      return seconds;
    });
    const DeviceBuffer stamps(4 * sizeof(unsigned long long));
    auto* stamp = reinterpret_cast<unsigned long long*>(stamps.data());
    measured_.event_gap = repeat(times, [&] {
      unsigned long long host[4] = {};
      spin_kernel<<<1, 1, 0, first.get()>>>(500'000);
      stamp_kernel<<<1, 1, 0, first.get()>>>(stamp);
      require(cudaEventRecord(mark.get(), first.get()), "recording an event");
      require(cudaStreamWaitEvent(second.get(), mark.get(), 0), "waiting for an event");
      stamp_kernel<<<1, 1, 0, second.get()>>>(stamp + 2);
      second.wait();
      require(cudaMemcpy(host, stamp, sizeof host, cudaMemcpyDeviceToHost), "measuring");
      return host[2] > host[1] ? static_cast<double>(host[2] - host[1]) * 1e-9 : 0.0;
    });
  }

  // How many launches fit behind a kernel that runs for long, before one has to wait.
  void measure_queue(const Stream& stream) {
    constexpr std::int64_t most = 1 << 16;
    spin_kernel<<<1, 1, 0, stream.get()>>>(400'000'000);
    for (std::int64_t i = 0; i < most; ++i) {
      const Clock::time_point start = Clock::now();
      empty_kernel<<<1, 1, 0, stream.get()>>>();
      if (seconds_since(start) > 20e-3) {
        measured_.launch_queue_depth = i + 1;
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
    measured_.malloc_cost = repeat(times, [&] {
      void* memory = nullptr;
      const Clock::time_point start = Clock::now();
      require(cudaMalloc(&memory, segment), "taking memory");
      const double seconds = seconds_since(start);
      const Clock::time_point freeing = Clock::now();
      require(cudaFree(memory), "giving memory back");
      frees.push_back(seconds_since(freeing));
      return seconds;
    });
    measured_.free_cost = spread_of(std::move(frees));
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
      const Clock::time_point start = Clock::now();
      if (create(&chunk, bytes, &properties, 0) != CUDA_SUCCESS) break;
      const double created = seconds_since(start);
      const Clock::time_point before_map = Clock::now();
      const bool mapped =
          map(address, bytes, 0, chunk, 0) == CUDA_SUCCESS && set_access(address, bytes, &access, 1) == CUDA_SUCCESS;
      const double took_map = seconds_since(before_map);
      const Clock::time_point before_unmap = Clock::now();
      unmap(address, bytes);
      release(chunk);
      if (!mapped) break;
      if (i == 0) continue;  // the first warms up
      creating.push_back(created);
      mapping.push_back(took_map);
      unmapping.push_back(seconds_since(before_unmap));
    }
    give(address, bytes);
    if (creating.empty()) return;
    measured_.chunk_create = spread_of(std::move(creating));
    measured_.chunk_map = spread_of(std::move(mapping));
    measured_.chunk_unmap = spread_of(std::move(unmapping));
  }

  // Seconds of `works` launches of work(i), one each: by CUPTI, or the mean by events.
  template <class Work>
  std::vector<double> timed(const Stream& stream, int works, Work work) {
    work(0);
    stream.wait();
    if (activity_.works()) {
      activity_.take();
      for (int i = 0; i < works; ++i) work(i);
      return activity_.take();
    }
    std::vector<double> seconds;
    for (int i = 0; i < works; ++i) {
      const Event before, after;
      require(cudaEventRecord(before.get(), stream.get()), "timing");
      work(i);
      require(cudaEventRecord(after.get(), stream.get()), "timing");
      require(cudaEventSynchronize(after.get()), "timing");
      float milliseconds = 0;
      require(cudaEventElapsedTime(&milliseconds, before.get(), after.get()), "timing");
      seconds.push_back(static_cast<double>(milliseconds) * 1e-3);
    }
    return seconds;
  }

  void measure_memory() {
    const Stream stream;
    // Far more than any L2 cache, and half for each side.
    const std::size_t all =
        std::min<std::size_t>(std::size_t{4} << 30, static_cast<std::size_t>(measured_.memory.count()) / 4);
    const DeviceBuffer from(all / 2), to(all / 2);
    for (std::size_t bytes = std::size_t{64} << 10; bytes <= (std::size_t{1} << 30) && bytes <= all / 2;
         bytes *= options_.quick ? 16 : 4) {
      if (!in_time()) return;
      const std::size_t places = all / 2 / bytes;
      const auto works = static_cast<int>(std::clamp<std::size_t>(places, 8, 64));
      struct Kind {
        const char* name;
        void (*kernel)(const float4*, float4*, std::size_t);
        std::size_t directions;
      };
      for (const Kind& kind :
           {Kind{"copy", copy_kernel, 2}, Kind{"read", read_kernel, 1}, Kind{"write", write_kernel, 1}}) {
        std::vector<double> seconds = timed(stream, works, [&](int i) {
          const std::size_t offset = static_cast<std::size_t>(i) % places * bytes;
          kind.kernel<<<blocks_, threads, 0, stream.get()>>>(reinterpret_cast<const float4*>(from.data() + offset),
                                                             reinterpret_cast<float4*>(to.data() + offset),
                                                             bytes / sizeof(float4));
          require(cudaGetLastError(), kind.name);
        });
        if (!seconds.empty())
          measured_.memory_bound.push_back({kind.name, Bytes(static_cast<std::int64_t>(bytes * kind.directions)), true,
                                            spread_of(std::move(seconds))});
      }
    }
  }

  void measure_products() {
    const Stream stream;
    constexpr std::size_t workspace_bytes = std::size_t{32} << 20;
    const DeviceBuffer workspace(workspace_bytes);
    cublasLtHandle_t handle = nullptr;
    require(cublasLtCreate(&handle), "starting cuBLASLt");
    const std::vector<std::int64_t> rows =
        options_.quick ? std::vector<std::int64_t>{16, 512, 2048, 8192}
                       : std::vector<std::int64_t>{1, 8, 16, 64, 128, 512, 1024, 2048, 4096, 8192};
    const std::vector<std::pair<std::int64_t, std::int64_t>> sides =
        options_.quick ? std::vector<std::pair<std::int64_t, std::int64_t>>{{1024, 1024}, {4096, 4096}, {16384, 4096}}
                       : std::vector<std::pair<std::int64_t, std::int64_t>>{
                             {64, 1024},   {512, 512},   {1024, 1024},  {3072, 1024},  {4096, 1024},
                             {4096, 4096}, {2048, 8192}, {16384, 4096}, {4096, 16384}, {50304, 1024}};
    for (const Precision precision : {Precision::bf16, Precision::fp8, Precision::fp32})
      for (const std::int64_t m : rows)
        for (const auto& [n, k] : sides) {
          if (precision == Precision::fp32 && (m > 4096 || n > 16384)) continue;  // slow, and trains nothing here
          for (const bool transpose_b : {false, true}) {
            if (precision == Precision::fp8 ? !can_multiply_fp8(m, transpose_b) : options_.quick && transpose_b)
              continue;
            if (in_time()) measure_product(handle, stream, workspace, {m, n, k, false, transpose_b, false, precision});
          }
        }
    cublasLtDestroy(handle);
  }

  // cuBLASLt multiplies fp8 from compute capability 8.9 on, both operands along k, in multiples of 16.
  bool can_multiply_fp8(std::int64_t m, bool transpose_b) const { return has_fp8_ && transpose_b && m % 16 == 0; }

  void measure_product(cublasLtHandle_t handle, const Stream& stream, const DeviceBuffer& workspace,
                       const ProductShape& shape) {
    const auto bytes = [](std::int64_t rows, std::int64_t columns, std::size_t element) {
      return (static_cast<std::size_t>(rows * columns) * element + 511) / 512 * 512;
    };
    const std::size_t element = operand_bytes(shape.precision);
    const std::size_t a = bytes(shape.m, shape.k, element), b = bytes(shape.k, shape.n, element);
    const std::size_t c = bytes(shape.m, shape.n, result_bytes(shape.precision));
    // As many sets of operands as it takes to fill the L2 cache twice, at most a gigabyte.
    const auto cache = static_cast<std::size_t>(measured_.l2_cache.count());
    const std::size_t sets = std::clamp<std::size_t>(2 * cache / (a + b + c) + 1, 1, 64);
    const DeviceBuffer memory(sets * (a + b + c));
    CudaProduct product(handle, shape, workspace.size());
    const double estimate = 2e-15 * static_cast<double>(shape.m) * static_cast<double>(shape.n) *
                            static_cast<double>(shape.k) * (shape.precision == Precision::fp32 ? 15 : 1);
    const int works = static_cast<int>(std::clamp((options_.quick ? 0.02 : 0.05) / (estimate + 5e-6), 5.0, 100.0));
    std::vector<double> seconds = timed(stream, works, [&](int i) {
      std::byte* set = memory.data() + static_cast<std::size_t>(i) % sets * (a + b + c);
      product.run(handle, set, set + a, nullptr, set + a + b, workspace.data(), workspace.size(), stream.get());
    });
    // A product split over k runs a second kernel: its parts are one product.
    if (activity_.works() && seconds.size() > static_cast<std::size_t>(works) &&
        seconds.size() % static_cast<std::size_t>(works) == 0) {
      const std::size_t kernels = seconds.size() / static_cast<std::size_t>(works);
      std::vector<double> sums(static_cast<std::size_t>(works), 0.0);
      for (std::size_t i = 0; i < seconds.size(); ++i) sums[i / kernels] += seconds[i];
      seconds = std::move(sums);
    }
    if (!seconds.empty())
      measured_.products.push_back({shape.precision, shape.m, shape.n, shape.k, spread_of(std::move(seconds))});
  }

  void measure_copies() {
    const Stream stream;
    const std::size_t largest = options_.quick ? std::size_t{256} << 20 : std::size_t{1} << 30;
    const DeviceBuffer device(largest);
    for (const bool pinned : {true, false}) {
      const HostBuffer host(largest, pinned);
      for (std::size_t bytes = 4096; bytes <= largest; bytes *= options_.quick ? 16 : 4)
        for (const bool to_device : {true, false})
          if (in_time()) measure_copy(stream, device, host, bytes, pinned, to_device);
    }
    measure_duplex(largest);
  }

  // By the host's clock: what a program sees of a copy, its fixed part included.
  void measure_copy(const Stream& stream, const DeviceBuffer& device, const HostBuffer& host, std::size_t bytes,
                    bool pinned, bool to_device) {
    const int times = bytes > (std::size_t{64} << 20) ? 5 : 20;
    const Spread seconds = repeat(times, [&] {
      const Clock::time_point start = Clock::now();
      require(to_device ? cudaMemcpyAsync(device.data(), host.data(), bytes, cudaMemcpyHostToDevice, stream.get())
                        : cudaMemcpyAsync(host.data(), device.data(), bytes, cudaMemcpyDeviceToHost, stream.get()),
              "copying");
      stream.wait();
      return seconds_since(start);
    });
    measured_.copies.push_back(
        {to_device ? "to device" : "to host", Bytes(static_cast<std::int64_t>(bytes)), pinned, seconds});
  }

  void measure_duplex(std::size_t bytes) {
    const Stream in, out;
    const DeviceBuffer device(2 * bytes);
    const HostBuffer host(2 * bytes, true);
    measured_.duplex_bytes_per_second = repeat(5, [&] {
      const Clock::time_point start = Clock::now();
      for (int i = 0; i < 4; ++i) {
        require(cudaMemcpyAsync(device.data(), host.data(), bytes, cudaMemcpyHostToDevice, in.get()), "copying");
        require(cudaMemcpyAsync(host.data() + bytes, device.data() + bytes, bytes, cudaMemcpyDeviceToHost, out.get()),
                "copying");
      }
      in.wait();
      out.wait();
      return 8 * static_cast<double>(bytes) / seconds_since(start);
    });
  }

  // A kernel bound by memory alone, copies both ways alone, and both together.
  void measure_contention() {
    const Stream compute, out, in;
    constexpr std::size_t bytes = std::size_t{512} << 20, copied = std::size_t{64} << 20;
    const DeviceBuffer from(bytes), to(bytes), device(2 * copied);
    const HostBuffer host(2 * copied, true);
    const int kernels = options_.quick ? 100 : 400;
    const auto run_kernels = [&] {
      for (int i = 0; i < kernels; ++i)
        copy_kernel<<<blocks_, threads, 0, compute.get()>>>(
            reinterpret_cast<const float4*>(from.data()), reinterpret_cast<float4*>(to.data()), bytes / sizeof(float4));
      require(cudaGetLastError(), "measuring");
    };
    const auto copy_both_ways = [&] {
      require(cudaMemcpyAsync(host.data(), device.data(), copied, cudaMemcpyDeviceToHost, out.get()), "copying");
      require(cudaMemcpyAsync(device.data() + copied, host.data() + copied, copied, cudaMemcpyHostToDevice, in.get()),
              "copying");
      out.wait();
      in.wait();
    };
    const double moved = 2.0 * static_cast<double>(bytes) * kernels, once = 2.0 * static_cast<double>(copied);
    run_kernels();
    copy_both_ways();
    compute.wait();
    Clock::time_point start = Clock::now();
    run_kernels();
    compute.wait();
    measured_.kernel_rate_alone = moved / seconds_since(start);
    start = Clock::now();
    constexpr int copies = 20;
    for (int i = 0; i < copies; ++i) copy_both_ways();
    measured_.copy_rate_alone = copies * once / seconds_since(start);
    start = Clock::now();
    run_kernels();
    int done = 0;
    while (cudaStreamQuery(compute.get()) == cudaErrorNotReady) {
      copy_both_ways();
      ++done;
    }
    compute.wait();
    const double beside = seconds_since(start);
    measured_.kernel_rate_beside_copies = moved / beside;
    measured_.copy_rate_beside_kernels = done * once / beside;
  }

  // Kernels that fill half of the multiprocessors: as many on each of two streams as on one.
  void measure_two_streams() {
    const Stream first, second;
    const DeviceBuffer out(4096);
    const auto half = static_cast<unsigned>(std::max<std::int64_t>(1, measured_.sm_count / 2));
    const int kernels = options_.quick ? 20 : 100;
    const auto give = [&](const Stream& stream) {
      for (int i = 0; i < kernels; ++i)
        multiply_kernel<<<half, 1024, 0, stream.get()>>>(reinterpret_cast<float*>(out.data()), 1 << 17);
      require(cudaGetLastError(), "measuring");
    };
    const auto seconds_of = [&](bool both) {
      return repeat(5, [&] {
        const Clock::time_point start = Clock::now();
        give(first);
        if (both) give(second);
        first.wait();
        second.wait();
        return seconds_since(start);
      });
    };
    measured_.two_stream_speedup = 2 * seconds_of(false).median / seconds_of(true).median;
  }

  const GpuCalibrationOptions& options_;
  const std::function<bool(std::size_t, std::size_t)>& progress_;
  GpuMeasurement& measured_;
  ActivityClock activity_;
  GpuTimeBudget budget_;
  unsigned blocks_ = 1;
  bool has_fp8_ = false;
  std::size_t part_ = 0;
  const char* part_name_ = "";
  Clock::time_point part_begin_;
  double part_seconds_ = 0;
  bool part_is_cut_ = false;
};

}  // namespace
}  // namespace spillway::hwprofiles

extern "C" void spillway_measure_gpu(const spillway::hwprofiles::GpuCalibrationOptions& options,
                                     const std::function<bool(std::size_t, std::size_t)>& progress,
                                     spillway::hwprofiles::GpuMeasurement& measured) {
  spillway::hwprofiles::GpuCampaign(options, progress, measured).run();
}
