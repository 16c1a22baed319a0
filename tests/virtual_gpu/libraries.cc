// The functions themselves: CUDA runtime, driver, cuBLASLt and NVML, the host's clock and the kernels.
#include <cublasLt.h>
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

#include "hwprofiles/calibrate/gpu_kernels.h"
#include "hwprofiles/calibrate/host_clock.h"
#include "tests/virtual_gpu/call.h"
#include "tests/virtual_gpu/device.h"
#include "tests/virtual_gpu/elements.h"

namespace spillway::virtual_gpu {
namespace {

cudaError_t last_error = cudaSuccess;
cudaError_t told(cudaError_t error) {
  if (error != cudaSuccess && error != cudaErrorNotReady) last_error = error;
  return error;
}

// Handles are numbers, none of them 0.
template <class Handle>
Handle handle_of(std::uint64_t number) {
  return reinterpret_cast<Handle>(static_cast<std::uintptr_t>(number) * 16);
}
template <class Handle>
std::uint64_t number_of(Handle handle) {
  return static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(handle)) / 16;
}
std::uint32_t stream_of(cudaStream_t stream) { return static_cast<std::uint32_t>(number_of(stream)); }

struct Reserved {
  std::size_t bytes = 0;
  bool is_device = false;
};
std::map<void*, Reserved>& reserved() {
  static std::map<void*, Reserved> all;
  return all;
}
std::size_t device_bytes_taken() {
  std::size_t sum = 0;
  for (const auto& [address, one] : reserved())
    if (one.is_device) sum += one.bytes;
  return sum;
}

// Addresses without memory behind those of the device, unless it computes.
void* reserve(std::size_t bytes, bool is_device) {
  const int protection = is_device && !constants().computes ? PROT_NONE : PROT_READ | PROT_WRITE;
  void* memory =
      mmap(nullptr, std::max<std::size_t>(bytes, 1), protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  reserved()[memory] = {bytes, is_device};
  return memory;
}
bool give_back(void* memory) {
  const auto found = reserved().find(memory);
  if (found == reserved().end()) return memory == nullptr;
  munmap(memory, std::max<std::size_t>(found->second.bytes, 1));
  reserved().erase(found);
  return true;
}
bool is_reserved(const void* address, bool is_device) {
  auto after = reserved().upper_bound(const_cast<void*>(address));
  if (after == reserved().begin()) return false;
  const auto& [begin, one] = *std::prev(after);
  return one.is_device == is_device && static_cast<const char*>(address) < static_cast<const char*>(begin) + one.bytes;
}

std::map<std::uint64_t, std::uint64_t>& event_tickets() {
  static std::map<std::uint64_t, std::uint64_t> tickets;
  return tickets;
}
std::uint64_t next_event = 1;

void launch(Work work, cudaStream_t stream) {
  const double traced = device().kernels_traced ? constants().tracing_per_launch : 0;
  const Call call("launch", constants().launch_call + traced);
  if (!call)
    told(cudaErrorLaunchFailure);
  else
    device().submit(stream_of(stream), std::move(work));
}

}  // namespace

// For the trainer's kernels: computed where they are launched, which is an order that streams and events allow.
void launch_other(const char* name, double bytes, cudaStream_t stream) {
  launch({.name = name, .fixed_seconds = constants().memory_fixed, .memory_bytes = bytes}, stream);
}
bool computes() { return constants().computes; }
void launch_for(const char* name, double seconds, double bytes, std::uint64_t stream) {
  launch({.name = name, .fixed_seconds = seconds, .memory_bytes = bytes}, handle_of<cudaStream_t>(stream));
}
void forget_memory() {
  last_error = cudaSuccess;
  while (!reserved().empty()) give_back(reserved().begin()->first);
}
std::size_t device_bytes_at(const void* address) {
  if (!is_reserved(address, true)) return 0;
  const auto& [begin, one] = *std::prev(reserved().upper_bound(const_cast<void*>(address)));
  return one.bytes - static_cast<std::size_t>(static_cast<const char*>(address) - static_cast<const char*>(begin));
}

}  // namespace spillway::virtual_gpu

using namespace spillway::virtual_gpu;

namespace spillway::hwprofiles {

double host_seconds() {
  const std::lock_guard lock(one_at_a_time());
  device().spend(20e-9);
  return device().now();
}

void launch_empty(cudaStream_t stream) {
  virtual_gpu::launch({.name = "empty_kernel", .fixed_seconds = constants().empty_kernel}, stream);
}
void launch_flag(volatile int* flag, cudaStream_t stream) {
  virtual_gpu::launch(
      {.name = "flag_kernel", .fixed_seconds = constants().write_over_link, .effect = [flag] { *flag = 1; }}, stream);
}
void launch_spin(std::uint64_t nanoseconds, cudaStream_t stream) {
  virtual_gpu::launch({.name = "spin_kernel", .fixed_seconds = static_cast<double>(nanoseconds) * 1e-9}, stream);
}
void launch_memory(MemoryWork work, const void*, void*, std::size_t bytes, unsigned, cudaStream_t stream) {
  virtual_gpu::launch({.name = "memory_kernel",
                       .fixed_seconds = constants().memory_fixed,
                       .memory_bytes = static_cast<double>(bytes) * (work == MemoryWork::copy ? 2 : 1)},
                      stream);
}
void launch_multiply(float*, unsigned, cudaStream_t stream) {
  virtual_gpu::launch({.name = "multiply_kernel", .fixed_seconds = 500e-6, .is_half = true}, stream);
}
void launch_fill(void*, std::size_t bytes, Precision, unsigned) {
  virtual_gpu::launch(
      {.name = "fill_kernel", .fixed_seconds = constants().memory_fixed, .memory_bytes = static_cast<double>(bytes)},
      nullptr);
}

}  // namespace spillway::hwprofiles

extern "C" {

// --- CUDA runtime
cudaError_t cudaGetLastError() {
  const std::lock_guard lock(one_at_a_time());
  return std::exchange(last_error, cudaSuccess);
}
const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaSuccess                 ? "no error"
         : error == cudaErrorMemoryAllocation ? "out of memory"
         : error == cudaErrorInvalidValue     ? "invalid argument"
                                              : "unspecified launch failure";
}
cudaError_t cudaSetDevice(int number) {
  const Call call("cudaSetDevice");
  return told(!call ? cudaErrorUnknown : number == 0 ? cudaSuccess : cudaErrorInvalidValue);
}
// The real header may give this name another one.
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  if (const Call call("cudaGetDeviceProperties"); !call) return told(cudaErrorUnknown);
  std::memset(properties, 0, sizeof *properties);
  std::strncpy(properties->name, constants().name.c_str(), sizeof properties->name - 1);
  properties->major = constants().major;
  properties->minor = constants().minor;
  properties->multiProcessorCount = constants().multiprocessors;
  properties->l2CacheSize = static_cast<int>(constants().l2_bytes);
  properties->asyncEngineCount = 3;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = 13000;
  const Call call("cudaDriverGetVersion");
  return told(call ? cudaSuccess : cudaErrorUnknown);
}
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  const Call call("cudaMemGetInfo");
  if (!call) return told(cudaErrorUnknown);
  *total = static_cast<std::size_t>(constants().memory_bytes);
  *free = *total - static_cast<std::size_t>(constants().context_bytes) - device_bytes_taken();
  return cudaSuccess;
}
cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  const Call call("cudaMalloc", constants().malloc_call);
  if (!call) return told(cudaErrorUnknown);
  const auto room = static_cast<std::size_t>(constants().memory_bytes - constants().context_bytes);
  *memory = device_bytes_taken() + bytes > room ? nullptr : reserve(bytes, true);
  if (*memory != nullptr) trace_memory(false, *memory, bytes);
  return told(*memory == nullptr ? cudaErrorMemoryAllocation : cudaSuccess);
}
cudaError_t cudaFree(void* memory) {
  const Call call("cudaFree", constants().free_call);
  if (!call) return told(cudaErrorUnknown);
  device().wait_all();
  if (const auto found = reserved().find(memory); found != reserved().end())
    trace_memory(true, memory, found->second.bytes);
  return told(give_back(memory) ? cudaSuccess : cudaErrorInvalidValue);
}
cudaError_t cudaHostAlloc(void** memory, std::size_t bytes, unsigned) {
  const Call call("cudaHostAlloc");
  if (!call) return told(cudaErrorUnknown);
  *memory = reserve(bytes, false);
  return told(*memory == nullptr ? cudaErrorMemoryAllocation : cudaSuccess);
}
cudaError_t cudaFreeHost(void* memory) {
  const Call call("cudaFreeHost");
  if (!call) return told(cudaErrorUnknown);
  device().wait_all();
  return told(give_back(memory) ? cudaSuccess : cudaErrorInvalidValue);
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  const Call call("cudaMemcpyAsync");
  if (!call) return told(cudaErrorUnknown);
  const bool to_device = kind == cudaMemcpyHostToDevice;
  const bool pinned = is_reserved(to_device ? from : to, false);
  if (!is_reserved(to_device ? to : from, true)) return told(cudaErrorInvalidValue);
  if (constants().computes) std::memcpy(to, from, bytes);
  Work work{.kind = WorkKind::copy,
            .name = to_device ? "to device" : "to host",
            .fixed_seconds = constants().copy_latency,
            .copied_bytes = static_cast<double>(bytes),
            .to_device = to_device};
  work.link_rate = (to_device ? constants().to_device_rate : constants().to_host_rate) *
                   (pinned ? 1 : constants().pageable_fraction);
  device().submit(stream_of(stream), std::move(work));
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  const Call call("cudaStreamCreateWithFlags");
  if (!call) return told(cudaErrorUnknown);
  *stream = handle_of<cudaStream_t>(device().make_stream());
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const Call call("cudaStreamDestroy");
  if (!call) return told(cudaErrorUnknown);
  if (stream != nullptr) device().end_stream(stream_of(stream));
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  const Call call("cudaStreamSynchronize");
  if (!call) return told(cudaErrorUnknown);
  const double begin = device().now();
  device().wait_idle(stream_of(stream));
  trace_sync({TracedSync::Kind::stream, begin, stream_of(stream), 0});
  return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  const Call call("cudaStreamQuery");
  if (!call) return told(cudaErrorUnknown);
  return device().is_idle(stream_of(stream)) ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  const Call call("cudaStreamWaitEvent", constants().event_wait_call);
  if (!call) return told(cudaErrorUnknown);
  const auto ticket = event_tickets().find(number_of(event));
  if (ticket == event_tickets().end()) return told(cudaErrorInvalidValue);
  if (ticket->second != 0) device().submit(stream_of(stream), {.kind = WorkKind::wait, .ticket = ticket->second});
  trace_sync({TracedSync::Kind::stream_wait, device().now(), stream_of(stream), number_of(event)});
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
  const Call call("cudaDeviceSynchronize");
  if (!call) return told(cudaErrorUnknown);
  const double begin = device().now();
  device().wait_all();
  trace_sync({TracedSync::Kind::context, begin, 0, 0});
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  const Call call("cudaEventCreate");
  if (!call) return told(cudaErrorUnknown);
  event_tickets()[next_event] = 0;
  *event = handle_of<cudaEvent_t>(next_event++);
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, 0); }
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  const Call call("cudaEventDestroy");
  if (!call) return told(cudaErrorUnknown);
  event_tickets().erase(number_of(event));
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const Call call("cudaEventRecord", constants().event_record_call);
  if (!call) return told(cudaErrorUnknown);
  const std::uint64_t ticket = device().new_ticket();
  event_tickets().at(number_of(event)) = ticket;
  device().submit(stream_of(stream), {.kind = WorkKind::record, .ticket = ticket});
  trace_event(stream_of(stream), number_of(event));
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  const Call call("cudaEventQuery");
  if (!call) return told(cudaErrorUnknown);
  return device().passed_at(event_tickets().at(number_of(event))) < 0 ? cudaErrorNotReady : cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  const Call call("cudaEventSynchronize");
  if (!call) return told(cudaErrorUnknown);
  const double begin = device().now();
  device().wait_ticket(event_tickets().at(number_of(event)));
  trace_sync({TracedSync::Kind::event, begin, 0, number_of(event)});
  return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t from, cudaEvent_t to) {
  const Call call("cudaEventElapsedTime");
  if (!call) return told(cudaErrorUnknown);
  const double begin = device().passed_at(event_tickets().at(number_of(from)));
  const double end = device().passed_at(event_tickets().at(number_of(to)));
  if (begin < 0 || end < 0) return cudaErrorNotReady;
  *milliseconds = static_cast<float>((end - begin) * 1e3);
  return cudaSuccess;
}

// --- CUDA driver
CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, std::size_t, const CUmemAllocationProp*,
                     unsigned long long) {
  const Call call("cuMemCreate", constants().chunk_create);
  *handle = 1;
  return call ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN;
}
CUresult cuMemRelease(CUmemGenericAllocationHandle) {
  const Call call("cuMemRelease");
  return call ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN;
}
CUresult cuMemAddressReserve(CUdeviceptr* address, std::size_t, std::size_t, CUdeviceptr, unsigned long long) {
  const Call call("cuMemAddressReserve");
  *address = 4096;
  return call ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN;
}
CUresult cuMemAddressFree(CUdeviceptr, std::size_t) {
  const Call call("cuMemAddressFree");
  return call ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN;
}
CUresult cuMemMap(CUdeviceptr, std::size_t, std::size_t, CUmemGenericAllocationHandle, unsigned long long) {
  const Call call("cuMemMap", constants().chunk_map);
  return call ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN;
}
CUresult cuMemUnmap(CUdeviceptr, std::size_t) {
  const Call call("cuMemUnmap", constants().chunk_unmap);
  return call ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN;
}
CUresult cuMemSetAccess(CUdeviceptr, std::size_t, const CUmemAccessDesc*, std::size_t) {
  const Call call("cuMemSetAccess");
  return call ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN;
}
cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult* result) {
  const Call call("cudaGetDriverEntryPointByVersion");
  if (!call) return told(cudaErrorUnknown);
  const std::pair<std::string_view, void*> known[] = {
      {"cuMemCreate", reinterpret_cast<void*>(cuMemCreate)},
      {"cuMemRelease", reinterpret_cast<void*>(cuMemRelease)},
      {"cuMemAddressReserve", reinterpret_cast<void*>(cuMemAddressReserve)},
      {"cuMemAddressFree", reinterpret_cast<void*>(cuMemAddressFree)},
      {"cuMemMap", reinterpret_cast<void*>(cuMemMap)},
      {"cuMemUnmap", reinterpret_cast<void*>(cuMemUnmap)},
      {"cuMemSetAccess", reinterpret_cast<void*>(cuMemSetAccess)}};
  *function = nullptr;
  for (const auto& [known_name, known_function] : known)
    if (known_name == name) *function = known_function;
  *result = *function == nullptr ? cudaDriverEntryPointSymbolNotFound : cudaDriverEntryPointSuccess;
  return cudaSuccess;
}
}

// --- cuBLASLt
namespace {

struct Description {
  std::int32_t transpose_a = 0, transpose_b = 0;
  bool has_bias = false;
  const void* bias = nullptr;
};
struct Layout {
  cudaDataType_t type;
  std::int64_t rows, columns;
};
template <class Mine, class Theirs>
Mine& mine(Theirs* theirs) {
  return *reinterpret_cast<Mine*>(theirs);
}

struct ProductSides {
  std::int64_t m, n, k;  // of the column-major product
  cudaDataType_t type;
};
ProductSides sides_of(const Description& operation, const Layout& a, const Layout& c) {
  return {c.rows, c.columns, operation.transpose_a == CUBLAS_OP_T ? a.rows : a.columns, a.type};
}

Work product_work(const ProductSides& sides, bool second_half) {
  const double m = static_cast<double>(sides.m), n = static_cast<double>(sides.n), k = static_cast<double>(sides.k);
  const double rate = sides.type == CUDA_R_8F_E4M3 ? constants().fp8_rate
                      : sides.type == CUDA_R_16BF  ? constants().bf16_rate
                                                   : constants().fp32_rate;
  const double element = sides.type == CUDA_R_8F_E4M3 ? 1 : sides.type == CUDA_R_16BF ? 2 : 4;
  const bool splits = k >= static_cast<double>(constants().split_from) * std::max(m, n);
  const double share = splits ? 0.5 : 1;
  Work work{.name = second_half ? "reduce_kernel" : "product_kernel"};
  work.clocked_seconds = share * (constants().product_fixed + 2 * m * n * k / rate);
  work.memory_bytes = share * element * (m * k + k * n);
  return work;
}
bool is_split(const ProductSides& sides) { return sides.k >= constants().split_from * std::max(sides.m, sides.n); }

}  // namespace

extern "C" {
const char* cublasLtGetStatusString(cublasStatus_t status) {
  return status == CUBLAS_STATUS_SUCCESS ? "CUBLAS_STATUS_SUCCESS" : "CUBLAS_STATUS_EXECUTION_FAILED";
}
cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  const Call call("cublasLtCreate");
  if (!call) return CUBLAS_STATUS_ALLOC_FAILED;
  *handle = handle_of<cublasLtHandle_t>(1);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t) {
  const Call call("cublasLtDestroy");
  return call ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* made, cublasComputeType_t, cudaDataType_t) {
  const Call call("cublasLtMatmulDescCreate");
  if (!call) return CUBLAS_STATUS_ALLOC_FAILED;
  *made = reinterpret_cast<cublasLtMatmulDesc_t>(new Description);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t made) {
  delete reinterpret_cast<Description*>(made);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t made, cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, std::size_t bytes) {
  const Call call("cublasLtMatmulDescSetAttribute");
  if (!call) return CUBLAS_STATUS_EXECUTION_FAILED;
  Description& description = mine<Description>(made);
  if (attribute == CUBLASLT_MATMUL_DESC_TRANSA) std::memcpy(&description.transpose_a, value, bytes);
  if (attribute == CUBLASLT_MATMUL_DESC_TRANSB) std::memcpy(&description.transpose_b, value, bytes);
  if (attribute == CUBLASLT_MATMUL_DESC_EPILOGUE) description.has_bias = true;
  if (attribute == CUBLASLT_MATMUL_DESC_BIAS_POINTER) std::memcpy(&description.bias, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* made, cudaDataType_t type, std::uint64_t rows,
                                          std::uint64_t columns, std::int64_t) {
  const Call call("cublasLtMatrixLayoutCreate");
  if (!call) return CUBLAS_STATUS_ALLOC_FAILED;
  *made = reinterpret_cast<cublasLtMatrixLayout_t>(
      new Layout{type, static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns)});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t made) {
  delete reinterpret_cast<Layout*>(made);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* made) {
  const Call call("cublasLtMatmulPreferenceCreate");
  if (!call) return CUBLAS_STATUS_ALLOC_FAILED;
  *made = handle_of<cublasLtMatmulPreference_t>(1);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t, cublasLtMatmulPreferenceAttributes_t,
                                                    const void*, std::size_t) {
  const Call call("cublasLtMatmulPreferenceSetAttribute");
  return call ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t operation,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t,
                                              cublasLtMatmulPreference_t, int, cublasLtMatmulHeuristicResult_t*,
                                              int* count) {
  const Call call("cublasLtMatmulAlgoGetHeuristic", 20e-6);
  if (!call) return CUBLAS_STATUS_EXECUTION_FAILED;
  const ProductSides sides = sides_of(mine<Description>(operation), mine<Layout>(a), mine<Layout>(c));
  *count = sides.n == 1 && sides.k >= 16384 ? 0 : 1;  // some that it does not take
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t operation, const void*, const void* a,
                              cublasLtMatrixLayout_t a_layout, const void* b, cublasLtMatrixLayout_t b_layout,
                              const void*, const void*, cublasLtMatrixLayout_t, void* d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t*, void*, std::size_t,
                              cudaStream_t stream) {
  {
    const Call call("cublasLtMatmul");
    if (!call) return CUBLAS_STATUS_EXECUTION_FAILED;
  }
  const Description& description = mine<Description>(operation);
  const ProductSides sides = sides_of(description, mine<Layout>(a_layout), mine<Layout>(d_layout));
  if (constants().computes)
    multiply({.m = sides.m,
              .n = sides.n,
              .k = sides.k,
              .transpose_a = description.transpose_a == CUBLAS_OP_T,
              .transpose_b = description.transpose_b == CUBLAS_OP_T,
              .is_bf16 = sides.type == CUDA_R_16BF},
             a, b, description.has_bias ? description.bias : nullptr, d);
  static_cast<void>(b_layout);
  launch(product_work(sides, false), stream);
  if (is_split(sides)) launch(product_work(sides, true), stream);
  return CUBLAS_STATUS_SUCCESS;
}
}

extern "C" {
// --- NVML, as hwprofiles/calibrate/nvml.cc looks its functions up.
int nvmlInit_v2() { return 0; }
int nvmlShutdown() { return 0; }
int nvmlSystemGetDriverVersion(char* text, unsigned length) {
  std::strncpy(text, "580.00", length);
  return 0;
}
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 1;
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned, void** handle) {
  *handle = &Device::instance();
  return 0;
}
int nvmlDeviceGetName(void*, char* text, unsigned length) {
  std::strncpy(text, constants().name.c_str(), length);
  return 0;
}
int nvmlDeviceGetMaxPcieLinkGeneration(void*, unsigned* generation) {
  *generation = 5;
  return 0;
}
int nvmlDeviceGetCurrPcieLinkWidth(void*, unsigned* lanes) {
  *lanes = 16;
  return 0;
}
int nvmlDeviceGetClockInfo(void*, int domain, unsigned* megahertz) {
  const std::lock_guard lock(one_at_a_time());
  *megahertz = domain == 1 ? static_cast<unsigned>(constants().highest_clock_mhz * device().clock_share()) : 2619U;
  return 0;
}
int nvmlDeviceGetPowerUsage(void*, unsigned* milliwatts) {
  const std::lock_guard lock(one_at_a_time());
  *milliwatts = static_cast<unsigned>(device().watts() * 1e3);
  return 0;
}
int nvmlDeviceGetEnforcedPowerLimit(void*, unsigned* milliwatts) {
  *milliwatts = static_cast<unsigned>(constants().limit_watts * 1e3);
  return 0;
}
int nvmlDeviceGetTemperature(void*, int, unsigned* celsius) {
  *celsius = 60;
  return 0;
}
}
