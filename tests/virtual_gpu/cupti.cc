// CUPTI over the virtual machine: activity records of what ran and of the calls that had it run, handed over when asked
// to flush.
#include <cuda.h>
#include <cupti.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "tests/virtual_gpu/call.h"

namespace spillway::virtual_gpu {
namespace {

constexpr std::int64_t cupti_epoch = 1'700'000'000'000'000'000;  // nanoseconds

std::uint64_t cupti_time(double seconds) {
  return static_cast<std::uint64_t>(cupti_epoch + std::llround(seconds * 1e9));
}
std::uint64_t time_now() { return cupti_time(device().now()); }

CUpti_BuffersCallbackRequestFunc request_buffer = nullptr;
CUpti_BuffersCallbackCompleteFunc complete_buffer = nullptr;

using Record = std::vector<std::uint8_t>;
// Never destroyed, as the names: a recorder flushes when the program ends.
std::vector<Record>& records() {
  static auto* all = new std::vector<Record>;
  return *all;
}
template <class Activity>
void keep(const Activity& activity) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(&activity);
  records().emplace_back(bytes, bytes + sizeof activity);
}
template <class Activity>
Activity empty_record(CUpti_ActivityKind kind) {
  Activity activity;
  std::memset(&activity, 0, sizeof activity);
  activity.kind = kind;
  return activity;
}
std::size_t aligned(std::size_t bytes) { return (bytes + 7) / 8 * 8; }
std::size_t size_of(const CUpti_Activity& record) {
  switch (static_cast<int>(record.kind)) {
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      return sizeof(CUpti_ActivityMemcpy6);
    case CUPTI_ACTIVITY_KIND_RUNTIME:
      return sizeof(CUpti_ActivityAPI);
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
      return sizeof(CUpti_ActivitySynchronization2);
    case CUPTI_ACTIVITY_KIND_CUDA_EVENT:
      return sizeof(CUpti_ActivityCudaEvent2);
    case CUPTI_ACTIVITY_KIND_MEMORY2:
      return sizeof(CUpti_ActivityMemory4);
    default:
      return sizeof(CUpti_ActivityKernel10);
  }
}

void keep_work(const Ran& ran) {
  const std::uint64_t start = cupti_time(ran.start), end = cupti_time(ran.end);
  if (ran.work.kind == WorkKind::kernel) {
    auto kernel = empty_record<CUpti_ActivityKernel10>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    kernel.start = start;
    kernel.end = end;
    kernel.name = ran.work.name;
    kernel.streamId = ran.work.stream;
    kernel.correlationId = ran.work.correlation;
    return keep(kernel);
  }
  auto copy = empty_record<CUpti_ActivityMemcpy6>(CUPTI_ACTIVITY_KIND_MEMCPY);
  copy.start = start;
  copy.end = end;
  copy.bytes = static_cast<std::uint64_t>(ran.work.copied_bytes);
  copy.srcKind = ran.work.to_device ? CUPTI_ACTIVITY_MEMORY_KIND_PINNED : CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
  copy.dstKind = ran.work.to_device ? CUPTI_ACTIVITY_MEMORY_KIND_DEVICE : CUPTI_ACTIVITY_MEMORY_KIND_PINNED;
  copy.streamId = ran.work.stream;
  copy.correlationId = ran.work.correlation;
  keep(copy);
}

// By the number that a record gives.
std::vector<std::string>& call_names() {
  static auto* names = new std::vector<std::string>;
  return *names;
}
std::uint32_t number_of_name(std::string_view name) {
  std::vector<std::string>& names = call_names();
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] == name) return static_cast<std::uint32_t>(i);
  names.emplace_back(name);
  return static_cast<std::uint32_t>(names.size() - 1);
}

bool& traced_flag(CUpti_ActivityKind kind, bool& none) {
  switch (static_cast<int>(kind)) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      return device().kernels_traced;
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      return device().copies_traced;
    case CUPTI_ACTIVITY_KIND_RUNTIME:
      return device().calls_traced;
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
      return device().syncs_traced;
    case CUPTI_ACTIVITY_KIND_CUDA_EVENT:
      return device().events_traced;
    case CUPTI_ACTIVITY_KIND_MEMORY2:
      return device().memory_traced;
    default:
      return none;
  }
}

}  // namespace

void trace_call(const char* name, double begin, std::uint32_t correlation) {
  const std::string_view called = std::strcmp(name, "launch") == 0 ? "cudaLaunchKernel" : name;
  if (!device().calls_traced || !called.starts_with("cuda")) return;
  auto call = empty_record<CUpti_ActivityAPI>(CUPTI_ACTIVITY_KIND_RUNTIME);
  call.cbid = number_of_name(called);
  call.start = cupti_time(begin);
  call.end = time_now();
  call.processId = static_cast<std::uint32_t>(getpid());
  call.threadId = static_cast<std::uint32_t>(gettid());
  call.correlationId = correlation;
  keep(call);
}

void trace_sync(const TracedSync& sync) {
  if (!device().syncs_traced) return;
  auto record = empty_record<CUpti_ActivitySynchronization2>(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);
  record.type = sync.kind == TracedSync::Kind::event         ? CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE
                : sync.kind == TracedSync::Kind::stream_wait ? CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT
                : sync.kind == TracedSync::Kind::stream      ? CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE
                                                             : CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE;
  record.start = cupti_time(sync.begin);
  record.end = time_now();
  record.correlationId = device().open_call;
  record.streamId = sync.stream;
  record.cudaEventId = static_cast<std::uint32_t>(sync.event);
  keep(record);
}

void trace_event(std::uint32_t stream, std::uint64_t event) {
  if (!device().events_traced) return;
  auto record = empty_record<CUpti_ActivityCudaEvent2>(CUPTI_ACTIVITY_KIND_CUDA_EVENT);
  record.correlationId = device().open_call;
  record.streamId = stream;
  record.eventId = static_cast<std::uint32_t>(event);
  keep(record);
}

void trace_memory(bool is_release, const void* address, std::size_t bytes) {
  if (!device().memory_traced) return;
  auto record = empty_record<CUpti_ActivityMemory4>(CUPTI_ACTIVITY_KIND_MEMORY2);
  record.memoryOperationType =
      is_release ? CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE : CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION;
  record.memoryKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
  record.correlationId = device().open_call;
  record.address = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(address));
  record.bytes = bytes;
  record.timestamp = time_now();
  record.processId = static_cast<std::uint32_t>(getpid());
  keep(record);
}

}  // namespace spillway::virtual_gpu

using namespace spillway::virtual_gpu;

extern "C" {
CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
                                           CUpti_BuffersCallbackCompleteFunc complete) {
  const Call call("cuptiActivityRegisterCallbacks");
  if (!call || !constants().allows_tracing) return CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
  request_buffer = request;
  complete_buffer = complete;
  records().clear();
  device().ended = keep_work;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) {
  const Call call("cuptiActivityEnable");
  if (!call) return CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
  bool none = false;
  traced_flag(kind, none) = true;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind) {
  const std::lock_guard lock(one_at_a_time());
  bool none = false;
  traced_flag(kind, none) = false;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityFlushPeriod(std::uint32_t) { return CUPTI_SUCCESS; }
CUptiResult cuptiActivityFlushAll(std::uint32_t) {
  const Call call("cuptiActivityFlushAll", 50e-6);
  std::size_t done = 0;
  while (done < records().size() && request_buffer != nullptr) {
    std::uint8_t* buffer = nullptr;
    std::size_t size = 0, most = 0, used = 0;
    request_buffer(&buffer, &size, &most);
    if (buffer == nullptr) break;
    for (; done < records().size() && used + aligned(records()[done].size()) <= size; ++done) {
      std::memcpy(buffer + used, records()[done].data(), records()[done].size());
      used += aligned(records()[done].size());
    }
    complete_buffer(nullptr, 0, buffer, size, used);
  }
  records().clear();
  return call ? CUPTI_SUCCESS : CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
}
CUptiResult cuptiActivityGetNextRecord(std::uint8_t* buffer, std::size_t valid, CUpti_Activity** record) {
  std::uint8_t* at = buffer;
  if (*record != nullptr) at = reinterpret_cast<std::uint8_t*>(*record) + aligned(size_of(**record));
  if (at >= buffer + valid) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = reinterpret_cast<CUpti_Activity*>(at);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext, std::uint32_t, std::size_t* dropped) {
  *dropped = 0;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiGetResultString(CUptiResult, const char** text) {
  *text = "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES";
  return CUPTI_SUCCESS;
}
CUptiResult cuptiGetTimestamp(std::uint64_t* nanoseconds) {
  const std::lock_guard lock(one_at_a_time());
  *nanoseconds = time_now();
  return CUPTI_SUCCESS;
}
CUptiResult cuptiSetThreadIdType(CUpti_ActivityThreadIdType) { return CUPTI_SUCCESS; }
CUptiResult cuptiGetCallbackName(CUpti_CallbackDomain, std::uint32_t number, const char** name) {
  const std::lock_guard lock(one_at_a_time());
  *name = number < call_names().size() ? call_names()[number].c_str() : "call";
  return CUPTI_SUCCESS;
}
}
