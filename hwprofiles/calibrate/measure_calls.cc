// In the GPU module; see gpu_meter.h.
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "hwprofiles/calibrate/gpu_kernels.h"
#include "hwprofiles/calibrate/gpu_meter.h"

namespace spillway::hwprofiles {
namespace {

class Calls {
 public:
  explicit Calls(GpuMeter& meter) : meter_(meter) {}

  void measure_launches() {
    const Stream stream;
    const int times = meter_.options().quick ? 20 : 100;
    meter_.add(PointKind::launch_call, repeat(times, [&] {
                 constexpr int launches = 200;  // far fewer than the queue holds
                 const double start = host_seconds();
                 for (int i = 0; i < launches; ++i) launch_empty(stream.get());
                 const double seconds = seconds_since(start) / launches;
                 stream.wait();
                 return seconds;
               }));
    require(cudaGetLastError(), "launching");
    if (meter_.activity().works()) {
      measure_start(stream, times);
      measure_gap(stream, times);
    } else {
      measure_flag(stream, times);
    }
    measure_event_calls(times);
    if (meter_.activity().works()) measure_event_gap(times);
    measure_queue(stream);
  }

  // From the end of the call, by CUPTI's clock.
  void measure_start(const Stream& stream, int times) {
    ActivityClock::Tracing tracing(meter_.activity());
    meter_.add(PointKind::launch_to_start, repeat(times, [&] {
                 launch_empty(stream.get());
                 std::uint64_t called = 0;
                 cuptiGetTimestamp(&called);
                 const std::vector<Activity> ran = tracing.take();
                 return ran.size() == 1 && ran[0].start > called ? static_cast<double>(ran[0].start - called) * 1e-9
                                                                 : 0;
               }));
  }
  // Without CUPTI: until the host sees what an otherwise idle GPU wrote into its memory, one write over the link more.
  void measure_flag(const Stream& stream, int times) {
    const HostBuffer flag(64, true);
    auto* word = reinterpret_cast<volatile int*>(flag.data());
    meter_.add(PointKind::launch_to_start, repeat(times, [&] {
                 *word = 0;
                 launch_flag(word, stream.get());
                 const double called = host_seconds();
                 while (*word == 0)
                   if (seconds_since(called) > 5)
                     throw InputError("GPU", "launch", "a kernel did not start", "see dmesg");
                 const double seconds = seconds_since(called);
                 stream.wait();
                 return seconds;
               }));
  }

  // Of a long chain that waits behind a kernel: from each end to the next start.
  void measure_gap(const Stream& stream, int times) {
    constexpr std::size_t kernels = 200;
    std::vector<double> gaps;
    ActivityClock::Tracing tracing(meter_.activity());
    for (int i = 0; i < times; ++i) {
      launch_spin(3'000'000, stream.get());
      for (std::size_t k = 0; k < kernels; ++k) launch_empty(stream.get());
      const std::vector<Activity> ran = tracing.take();
      std::vector<double> chain;
      for (std::size_t k = 2; k < ran.size(); ++k)
        chain.push_back(static_cast<double>(ran[k].start - std::min(ran[k].start, ran[k - 1].end)) * 1e-9);
      if (i > 0 && !chain.empty()) gaps.push_back(spread_of(std::move(chain)).median);
    }
    meter_.add(PointKind::kernel_gap, std::move(gaps));
  }

  void measure_event_calls(int times) {
    const Stream first, second;
    const Event mark;
    constexpr int calls = 200;
    meter_.add(PointKind::event_record_call, repeat(times, [&] {
                 const double start = host_seconds();
                 for (int i = 0; i < calls; ++i) record(mark, first);
                 const double seconds = seconds_since(start) / calls;
                 first.wait();
                 return seconds;
               }));
    meter_.add(PointKind::event_wait_call, repeat(times, [&] {
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
    ActivityClock::Tracing tracing(meter_.activity());
    meter_.add(PointKind::event_gap, repeat(times, [&] {
                 launch_spin(500'000, first.get());
                 record(mark, first);
                 wait_for(second, mark);
                 launch_empty(second.get());
                 const std::vector<Activity> ran = tracing.take();
                 return ran.size() == 2 && ran[1].start > ran[0].end
                            ? static_cast<double>(ran[1].start - ran[0].end) * 1e-9
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
        meter_.add({.kind = PointKind::launch_queue, .value = {static_cast<double>(i + 1), 0}});
        break;
      }
      if (cudaStreamQuery(stream.get()) == cudaSuccess) break;
    }
    stream.wait();
  }

  void measure_driver_calls() {
    const int times = meter_.options().quick ? 10 : 40;
    constexpr std::size_t segment = std::size_t{20} << 20;  // what PyTorch asks for most
    std::vector<double> frees;
    meter_.add(PointKind::malloc_call, repeat(times, [&] {
                 void* memory = nullptr;
                 const double start = host_seconds();
                 require(cudaMalloc(&memory, segment), "taking memory");
                 const double seconds = seconds_since(start), freeing = host_seconds();
                 require(cudaFree(memory), "giving memory back");
                 frees.push_back(seconds_since(freeing));
                 return seconds;
               }));
    meter_.add(PointKind::free_call, std::move(frees));
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
    meter_.add(PointKind::chunk_create, std::move(creating));
    meter_.add(PointKind::chunk_map, std::move(mapping));
    meter_.add(PointKind::chunk_unmap, std::move(unmapping));
  }

 private:
  GpuMeter& meter_;
};

}  // namespace

void measure_launches(GpuMeter& meter) { Calls(meter).measure_launches(); }
void measure_driver_calls(GpuMeter& meter) { Calls(meter).measure_driver_calls(); }

}  // namespace spillway::hwprofiles
