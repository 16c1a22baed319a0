// In the GPU module; see gpu_meter.h. Attention and norms by cuDNN's own kernels, through its graph API.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hwprofiles/calibrate/cudnn_cases.h"
#include "hwprofiles/calibrate/cudnn_graph.h"
#include "hwprofiles/calibrate/gpu_meter.h"

namespace spillway::hwprofiles {
namespace {

// With a stream, given back.
class CudnnHandle {
 public:
  CudnnHandle(const cudnn::Library& library, const Stream& stream) : library_(library) {
    library.require(library.create(&handle_), "starting it");
    const cudnn::Status status = library.set_stream(handle_, stream.get());
    if (status == 0) return;
    library.destroy(handle_);
    library.require(status, "giving it a stream");
  }
  CudnnHandle(const CudnnHandle&) = delete;
  CudnnHandle& operator=(const CudnnHandle&) = delete;
  ~CudnnHandle() { library_.destroy(handle_); }
  [[nodiscard]] cudnn::Handle get() const { return handle_; }

 private:
  const cudnn::Library& library_;
  cudnn::Handle handle_ = nullptr;
};

class Production {
 public:
  explicit Production(GpuMeter& meter) : meter_(meter) {}

  // What cuDNN refuses costs the point alone, and is told once by kind and reason.
  void measure() {
    try {
      measure_cases();
    } catch (const cudnn::Refusal& refusal) {
      meter_.note("no points of cuDNN's kernels: " + reason_of(refusal));
      check_device();
    } catch (...) {
      tell_refused();
      throw;
    }
    tell_refused();
  }

 private:
  // A device that is lost is no refusal.
  static void check_device() { require(cudaDeviceSynchronize(), "cuDNN's kernels"); }

  static std::string reason_of(const cudnn::Refusal& refusal) {
    return (refusal.place().empty() ? "" : refusal.place() + ": ") + refusal.cause();
  }

  void tell_refused() {
    for (const auto& [reason, count] : refused_)
      meter_.note(std::to_string(count) + " points of " + reason.first + " by cuDNN are left out: " + reason.second);
    refused_.clear();
  }

  void measure_cases() {
    const cudnn::Library library = cudnn::Library::load();
    const Stream stream;
    const CudnnHandle handle(library, stream);
    const std::string source =
        std::string(kernel_library_words()[KernelLibrary::cudnn_graph].name) + " " + library.version();
    const auto device = static_cast<std::size_t>(meter_.device().memory.count());
    const DeviceBuffer operands(std::min<std::size_t>(std::size_t{4} << 30, device / 8));
    const DeviceBuffer workspace(std::min<std::size_t>(std::size_t{1} << 30, device / 16));
    std::optional<ActivityClock::Tracing> tracing;
    ActivityClock::Tracing* traced = meter_.trace(tracing);
    std::vector<GpuPoint> cases = cudnn_cases(meter_.options().quick);
    if (meter_.options().most_production > 0)
      cases.resize(std::min(cases.size(), static_cast<std::size_t>(meter_.options().most_production)));
    for (GpuPoint& point : cases) {
      if (!meter_.in_time()) return;
      point.source = source;
      try {
        measure_case(library, handle, stream, {operands, workspace}, point, traced);
      } catch (const cudnn::Refusal& refusal) {
        ++refused_[{point.what, reason_of(refusal)}];
        check_device();
      }
    }
  }

  struct Memory {
    const DeviceBuffer &operands, &workspace;
  };

  void measure_case(const cudnn::Library& library, const CudnnHandle& handle, const Stream& stream,
                    const Memory& memory, GpuPoint& point, ActivityClock::Tracing* traced) {
    cudnn::Graph graph(library);
    cudnn::describe(point, graph);
    std::size_t bytes = 0;
    for (const cudnn::Graph::Operand& operand : graph.operands()) bytes += rounded(1, operand.bytes);
    const cudnn::Plan plan(graph, {.handle = handle.get()});
    if (bytes > memory.operands.size() || plan.workspace_bytes() > memory.workspace.size())
      throw cudnn::Refusal("cuDNN", "", "it needs more memory than a calibration takes", "");
    // As many sets of operands as it takes to fill the L2 cache twice.
    const auto cache = static_cast<std::size_t>(meter_.device().l2_cache.count());
    const std::size_t sets = std::min(2 * cache / bytes + 1, memory.operands.size() / bytes);
    std::vector<std::vector<void*>> addresses(sets);
    std::byte* at = memory.operands.data();
    for (std::vector<void*>& set : addresses)
      for (const cudnn::Graph::Operand& operand : graph.operands()) {
        set.push_back(at);
        at += rounded(1, operand.bytes);
      }
    const int works = meter_.options().quick ? 5 : 9;
    std::vector<double> seconds = meter_.timed(
        stream, works,
        [&](int i) {
          plan.run(handle.get(), graph, addresses[static_cast<std::size_t>(i) % sets], memory.workspace.data());
        },
        traced);
    if (seconds.empty()) return;
    point.value = spread_of(std::move(seconds));
    point.samples = works;
    meter_.add(std::move(point));
  }

  GpuMeter& meter_;
  std::map<std::pair<std::string, std::string>, int> refused_;  // by kind and reason
};

}  // namespace

void measure_production(GpuMeter& meter) { Production(meter).measure(); }

}  // namespace spillway::hwprofiles
