// What our own code takes of CUPTI's activity interface; see cuda_runtime_api.h.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>

#define CUPTIAPI

enum CUptiResult {
  CUPTI_SUCCESS = 0,
  CUPTI_ERROR_MAX_LIMIT_REACHED = 12,
  CUPTI_ERROR_NOT_INITIALIZED = 15,
  CUPTI_ERROR_INSUFFICIENT_PRIVILEGES = 35,
  CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED = 39
};
enum CUpti_ActivityKind {
  CUPTI_ACTIVITY_KIND_MEMCPY = 1,
  CUPTI_ACTIVITY_KIND_MEMSET = 2,
  CUPTI_ACTIVITY_KIND_DRIVER = 4,
  CUPTI_ACTIVITY_KIND_RUNTIME = 5,
  CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL = 10,
  CUPTI_ACTIVITY_KIND_MARKER = 12,
  CUPTI_ACTIVITY_KIND_OVERHEAD = 17,
  CUPTI_ACTIVITY_KIND_MEMCPY2 = 22,
  CUPTI_ACTIVITY_KIND_CUDA_EVENT = 36,
  CUPTI_ACTIVITY_KIND_SYNCHRONIZATION = 38,
  CUPTI_ACTIVITY_KIND_MEMORY2 = 49
};
enum CUpti_ActivityThreadIdType { CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM = 1 };
enum CUpti_CallbackDomain { CUPTI_CB_DOMAIN_DRIVER_API = 1, CUPTI_CB_DOMAIN_RUNTIME_API = 2 };
enum CUpti_ActivityMemoryKind {
  CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE = 1,
  CUPTI_ACTIVITY_MEMORY_KIND_PINNED = 2,
  CUPTI_ACTIVITY_MEMORY_KIND_DEVICE = 3,
  CUPTI_ACTIVITY_MEMORY_KIND_ARRAY = 4,
  CUPTI_ACTIVITY_MEMORY_KIND_MANAGED = 5,
  CUPTI_ACTIVITY_MEMORY_KIND_DEVICE_STATIC = 6,
  CUPTI_ACTIVITY_MEMORY_KIND_MANAGED_STATIC = 7
};
enum CUpti_ActivityMemoryOperationType {
  CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION = 1,
  CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE = 2
};
enum CUpti_ActivitySynchronizationType {
  CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE = 1,
  CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT = 2,
  CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE = 3,
  CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE = 4
};
constexpr unsigned CUPTI_ACTIVITY_FLAG_MARKER_START = 2, CUPTI_ACTIVITY_FLAG_MARKER_END = 4;
enum CUpti_ActivityObjectKind { CUPTI_ACTIVITY_OBJECT_THREAD = 2 };

struct CUpti_Activity {
  CUpti_ActivityKind kind;
};
struct CUpti_ActivityAPI {
  CUpti_ActivityKind kind;
  std::uint32_t cbid;
  std::uint64_t start, end;
  std::uint32_t processId, threadId, correlationId, returnValue;
};
struct CUpti_ActivityKernel10 {
  CUpti_ActivityKind kind;
  std::uint64_t start, end;
  std::uint32_t deviceId, contextId, streamId, correlationId;
  const char* name;
  std::uint32_t graphId;
};
struct CUpti_ActivityMemcpy6 {
  CUpti_ActivityKind kind;
  std::uint8_t copyKind, srcKind, dstKind, flags;
  std::uint64_t bytes, start, end;
  std::uint32_t deviceId, contextId, streamId, correlationId;
};
struct CUpti_ActivityMemcpyPtoP4 {
  CUpti_ActivityKind kind;
  std::uint64_t bytes, start, end;
  std::uint32_t deviceId, contextId, streamId, correlationId;
};
struct CUpti_ActivityMemset4 {
  CUpti_ActivityKind kind;
  std::uint64_t bytes, start, end;
  std::uint32_t deviceId, contextId, streamId, correlationId;
};
struct CUpti_ActivitySynchronization2 {
  CUpti_ActivityKind kind;
  CUpti_ActivitySynchronizationType type;
  std::uint64_t start, end;
  std::uint32_t correlationId, contextId, streamId, cudaEventId;
};
struct CUpti_ActivityCudaEvent2 {
  CUpti_ActivityKind kind;
  std::uint32_t correlationId, contextId, streamId, eventId;
};
struct CUpti_ActivityMemory4 {
  CUpti_ActivityKind kind;
  CUpti_ActivityMemoryOperationType memoryOperationType;
  CUpti_ActivityMemoryKind memoryKind;
  std::uint32_t correlationId;
  std::uint64_t address, bytes, timestamp;
  std::uint32_t processId, deviceId;
};
struct CUpti_ActivityMarker2 {
  CUpti_ActivityKind kind;
  unsigned flags;
  std::uint64_t timestamp;
  std::uint32_t id;
  CUpti_ActivityObjectKind objectKind;
  union {
    struct {
      std::uint32_t processId, threadId;
    } pt;
  } objectId;
  const char* name;
};
struct CUpti_ActivityOverhead3 {
  CUpti_ActivityKind kind;
  std::uint64_t start, end;
};

using CUpti_BuffersCallbackRequestFunc = void (*)(std::uint8_t** buffer, std::size_t* size, std::size_t* most_records);
using CUpti_BuffersCallbackCompleteFunc = void (*)(CUcontext context, std::uint32_t stream, std::uint8_t* buffer,
                                                   std::size_t size, std::size_t valid);

extern "C" {
CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
                                           CUpti_BuffersCallbackCompleteFunc complete);
CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind);
CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind);
CUptiResult cuptiActivityFlushAll(std::uint32_t flag);
CUptiResult cuptiActivityFlushPeriod(std::uint32_t milliseconds);
CUptiResult cuptiActivityGetNextRecord(std::uint8_t* buffer, std::size_t valid, CUpti_Activity** record);
CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext context, std::uint32_t stream, std::size_t* dropped);
CUptiResult cuptiGetResultString(CUptiResult result, const char** text);
CUptiResult cuptiGetTimestamp(std::uint64_t* nanoseconds);
CUptiResult cuptiSetThreadIdType(CUpti_ActivityThreadIdType type);
CUptiResult cuptiGetCallbackName(CUpti_CallbackDomain domain, std::uint32_t id, const char** name);
}
