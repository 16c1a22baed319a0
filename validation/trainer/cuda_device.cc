// In the GPU module; see cuda_backend.h.
#include <cuda_runtime_api.h>

#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "hwprofiles/calibrate/cuda_product.h"
#include "validation/trainer/backend.h"
#include "validation/trainer/cuda_kernels.cuh"

namespace spillway::validation {
namespace {

class CudaBackend final : public Backend {
 public:
  CudaBackend() {
    require(cudaSetDevice(0), "choosing it");
    require(cudaGetDeviceProperties(&properties_, 0), "asking its properties");
    for (cudaStream_t* stream : {&compute_, &out_, &in_})
      require(cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking), "making a stream");
    require(cublasLtCreate(&blas_), "starting cuBLASLt");
    require(cudaMalloc(&workspace_, workspace_bytes), "taking the workspace");
    require(cudaMalloc(&digest_, sizeof(std::uint64_t)), "taking memory");
  }
  CudaBackend(const CudaBackend&) = delete;
  CudaBackend& operator=(const CudaBackend&) = delete;
  ~CudaBackend() override {
    cudaDeviceSynchronize();
    products_.clear();
    for (const auto& [mark, event] : marks_) cudaEventDestroy(event);
    for (const cudaEvent_t event : spare_events_) cudaEventDestroy(event);
    for (const cudaEvent_t event : timed_) cudaEventDestroy(event);
    for (const cudaEvent_t event : stamps_) cudaEventDestroy(event);
    cudaFree(digest_);
    cudaFree(workspace_);
    if (blas_ != nullptr) cublasLtDestroy(blas_);
    for (const cudaStream_t stream : {compute_, out_, in_})
      if (stream != nullptr) cudaStreamDestroy(stream);
  }

  std::string name() const override { return "cuda"; }
  std::string device() const override { return properties_.name; }
  Bytes memory() const override {
    std::size_t free = 0, total = 0;
    require(cudaMemGetInfo(&free, &total), "asking its memory");
    return Bytes(static_cast<std::int64_t>(free));
  }

  std::byte* take_segment(Bytes bytes) override {
    void* memory = nullptr;
    const cudaError_t error = cudaMalloc(&memory, static_cast<std::size_t>(bytes.count()));
    if (error == cudaErrorMemoryAllocation) {
      cudaGetLastError();  // it is told by the null pointer
      return nullptr;
    }
    require(error, "taking memory");
    return static_cast<std::byte*>(memory);
  }
  void give_segment(std::byte* segment) override { cudaFree(segment); }
  std::byte* take_host(Bytes bytes) override {
    void* memory = nullptr;
    if (cudaHostAlloc(&memory, static_cast<std::size_t>(bytes.count()), cudaHostAllocDefault) != cudaSuccess) {
      cudaGetLastError();
      return nullptr;
    }
    return static_cast<std::byte*>(memory);
  }
  void give_host(std::byte* memory) override { cudaFreeHost(memory); }

  void begin_thread() override { require(cudaSetDevice(0), "choosing it"); }

  void run(const StepGraph& graph, const KernelCall& call, const Operands& operands) override {
    if (graph.model.head_size() > most_head_size)
      throw InputError("GPU", "attention", "heads larger than 256", "choose more heads");
    if (timing_) record_time(timed_);
    if (call.kernel == TrainerKernel::gemm)
      run_product(call, graph.model.type, operands);
    else
      launch_on_cuda(graph, call, operands, compute_);
    require(cudaGetLastError(), call.name.c_str());
    if (timing_) record_time(timed_);
  }

  void fill(std::byte* device, ElementType type, std::int64_t elements, const Filling& filling) override {
    fill_on_cuda(device, type, elements, filling, compute_);
    require(cudaGetLastError(), "filling memory");
  }
  std::uint64_t digest(const std::byte* device, Bytes bytes) override {
    std::uint64_t sum = 0;
    digest_on_cuda(device, bytes, static_cast<std::uint64_t*>(digest_), compute_);
    require(cudaGetLastError(), "digesting memory");
    require(cudaMemcpyAsync(&sum, digest_, sizeof sum, cudaMemcpyDeviceToHost, compute_), "digesting memory");
    require(cudaStreamSynchronize(compute_), "digesting memory");
    return sum;
  }

  Mark mark() override { return mark_on(compute_); }
  Mark copy(CopyTo to, std::byte* device, std::byte* host, Bytes bytes, Mark after) override {
    const cudaStream_t stream = to == CopyTo::host ? out_ : in_;
    if (const auto waited = marks_.find(after); waited != marks_.end())
      require(cudaStreamWaitEvent(stream, waited->second, 0), "waiting before a copy");
    const auto size = static_cast<std::size_t>(bytes.count());
    require(to == CopyTo::host ? cudaMemcpyAsync(host, device, size, cudaMemcpyDeviceToHost, stream)
                               : cudaMemcpyAsync(device, host, size, cudaMemcpyHostToDevice, stream),
            "copying");
    return mark_on(stream);
  }
  bool passed(Mark mark) override {
    const auto found = marks_.find(mark);
    if (found == marks_.end()) return true;
    const cudaError_t status = cudaEventQuery(found->second);
    if (status == cudaErrorNotReady) return false;
    require(status, "asking for an event");
    retire(found);
    return true;
  }
  void wait(Mark mark) override {
    const auto found = marks_.find(mark);
    if (found == marks_.end()) return;
    require(cudaEventSynchronize(found->second), "waiting for an event");
    retire(found);
  }

  void time_kernels(bool on) override {
    timing_ = on;
    forget(timed_);
    if (on) record_time(timed_);  // what starts are counted from
  }
  std::vector<KernelTime> take_times() override {
    std::vector<KernelTime> times;
    for (std::size_t i = 1; i + 1 < timed_.size(); i += 2)
      times.push_back({between(timed_.front(), timed_[i]), from_seconds(between(timed_[i], timed_[i + 1]))});
    forget(timed_);
    return times;
  }
  void stamp() override { record_time(stamps_); }
  std::vector<double> take_stamps() override {
    std::vector<double> since;
    for (const cudaEvent_t event : stamps_) since.push_back(between(stamps_.front(), event));
    forget(stamps_);
    return since;
  }

 private:
  using Marks = std::map<Mark, cudaEvent_t>;

  void record_time(std::vector<cudaEvent_t>& events) {
    cudaEvent_t event = nullptr;
    require(cudaEventCreate(&event), "timing");
    events.push_back(event);
    require(cudaEventRecord(event, compute_), "timing");
  }
  static double between(cudaEvent_t from, cudaEvent_t to) {
    float milliseconds = 0;
    require(cudaEventSynchronize(to), "timing");
    require(cudaEventElapsedTime(&milliseconds, from, to), "timing");
    return static_cast<double>(milliseconds) * 1e-3;
  }
  static void forget(std::vector<cudaEvent_t>& events) {
    for (const cudaEvent_t event : events) cudaEventDestroy(event);
    events.clear();
  }
  Mark mark_on(cudaStream_t stream) {
    if (marks_.size() >= most_marks) sweep();
    cudaEvent_t event = nullptr;
    if (!spare_events_.empty()) {
      event = spare_events_.back();
      spare_events_.pop_back();
    } else {
      require(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "making an event");
    }
    require(cudaEventRecord(event, stream), "recording an event");
    marks_.emplace(++last_mark_, event);
    return last_mark_;
  }
  void retire(Marks::iterator mark) {
    spare_events_.push_back(mark->second);
    marks_.erase(mark);
  }
  // Marks that nobody asked for again.
  void sweep() {
    for (auto it = marks_.begin(); it != marks_.end();) {
      const auto next = std::next(it);
      const cudaError_t status = cudaEventQuery(it->second);
      if (status != cudaErrorNotReady) {
        require(status, "asking for an event");
        retire(it);
      }
      it = next;
    }
  }
  void run_product(const KernelCall& call, ElementType type, const Operands& operands) {
    const ProductShape shape{call.m,
                             call.n,
                             call.k,
                             call.transpose_a,
                             call.transpose_b,
                             call.has_bias,
                             type == ElementType::bf16 ? Precision::bf16 : Precision::fp32};
    CudaProduct& product = products_.try_emplace(shape, blas_, shape, workspace_bytes).first->second;
    const void* bias = call.has_bias ? operands.reads[2] : nullptr;
    product.run(blas_, operands.reads[0], operands.reads[1], bias, operands.writes[0], workspace_, workspace_bytes,
                compute_);
  }

  static constexpr std::size_t workspace_bytes = std::size_t{32} << 20;
  static constexpr std::size_t most_marks = 1024;

  cudaDeviceProp properties_{};
  cudaStream_t compute_ = nullptr, out_ = nullptr, in_ = nullptr;
  cublasLtHandle_t blas_ = nullptr;
  void *workspace_ = nullptr, *digest_ = nullptr;
  std::map<ProductShape, CudaProduct> products_;
  Marks marks_;
  Mark last_mark_ = 0;
  std::vector<cudaEvent_t> spare_events_, timed_, stamps_;
  bool timing_ = false;
};

}  // namespace
}  // namespace spillway::validation

// The caller owns it. Throws InputError.
extern "C" spillway::validation::Backend* spillway_make_cuda_backend() {
  return new spillway::validation::CudaBackend();
}
