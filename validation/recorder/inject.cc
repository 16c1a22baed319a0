// The library that `spillway record` has the CUDA driver load into a program (CUDA_INJECTION64_PATH): CUPTI's activity
// records of everything the program has the GPU do, written as they come to SPILLWAY_RECORD_FILE.<process>.
//
// Bounded: 16 buffers of 4 MiB; when all are in use CUPTI drops records, and says how many. Written every quarter of a
// second, so that a program that dies loses no more than that. What goes wrong is said once on standard error; the
// program runs on without being recorded.
#include <cuda.h>
#include <cupti.h>
#include <cxxabi.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "validation/recorder/activity_lines.h"

namespace spillway::validation {
namespace {

constexpr std::size_t buffer_bytes = std::size_t{4} << 20;
constexpr int most_buffers = 16;
constexpr std::uint32_t flush_milliseconds = 250;
constexpr std::size_t write_at = std::size_t{1} << 20;

class Recorder {
 public:
  // Never destroyed: CUPTI's thread may come back while the program ends.
  static Recorder& instance() {
    static Recorder* recorder = new Recorder;
    return *recorder;
  }

  int start() {
    const char* path = std::getenv("SPILLWAY_RECORD_FILE");
    if (path == nullptr || *path == '\0') return complain("SPILLWAY_RECORD_FILE is not set", CUPTI_SUCCESS);
    const std::string file = std::string(path) + "." + std::to_string(getpid());
    descriptor_ = ::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (descriptor_ < 0) return complain(("can't write " + file).c_str(), CUPTI_SUCCESS);
    append_head(text_, static_cast<std::uint32_t>(getpid()));
    const CUptiResult result = subscribe();
    if (result != CUPTI_SUCCESS) {
      ::close(descriptor_);
      descriptor_ = -1;
      ::unlink(file.c_str());
      return complain("CUPTI refuses", result);
    }
    std::atexit([] { instance().finish(); });
    return 1;
  }

  void give(std::uint8_t** buffer, std::size_t* size) {
    *size = 0;
    *buffer = nullptr;
    if (buffers_.fetch_add(1) >= most_buffers) {
      --buffers_;
      return;  // CUPTI drops and counts
    }
    *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(8, buffer_bytes));
    if (*buffer == nullptr)
      --buffers_;
    else
      *size = buffer_bytes;
  }

  void take(CUcontext context, std::uint32_t stream, std::uint8_t* buffer, std::size_t valid) {
    {
      const std::lock_guard lock(mutex_);
      CUpti_Activity* record = nullptr;
      while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
        note(*record);
        if (text_.size() > write_at) write();
      }
      std::size_t dropped = 0;
      if (cuptiActivityGetNumDroppedRecords(context, stream, &dropped) == CUPTI_SUCCESS) tail_.dropped += dropped;
      write();
    }
    std::free(buffer);
    --buffers_;
  }

 private:
  struct Range {
    std::string name;
    std::uint64_t start_ns = 0;
  };
  struct EventRecord {
    std::uint32_t correlation = 0, stream = 0;
  };

  static CUptiResult subscribe();

  int complain(const char* what, CUptiResult result) {
    const char* word = "";
    if (result != CUPTI_SUCCESS) cuptiGetResultString(result, &word);
    const bool closed = result == CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
    std::fprintf(stderr, "spillway record: %s %s%s; the program runs unrecorded\n", what, word,
                 closed ? " (allow profiling to all users: NVreg_RestrictProfilingToAdminUsers=0)"
                 : result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED ? " (another profiler is at work)"
                                                                            : "");
    return 0;
  }

  void finish() {
    cuptiActivityFlushAll(1);
    const std::lock_guard lock(mutex_);
    append_tail(text_, tail_);
    write();
    ::close(descriptor_);
    descriptor_ = -1;
  }

  void write() {
    std::size_t done = 0;
    while (descriptor_ >= 0 && done < text_.size()) {
      const ssize_t wrote = ::write(descriptor_, text_.data() + done, text_.size() - done);
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote <= 0) {
        std::fprintf(stderr, "spillway record: the recording can't be written on (%s); it ends here\n",
                     wrote < 0 ? std::strerror(errno) : "no room");
        ::close(descriptor_);
        descriptor_ = -1;
        break;
      }
      done += static_cast<std::size_t>(wrote);
    }
    text_.clear();
  }

  void note(const CUpti_Activity& record) {
    switch (static_cast<int>(record.kind)) {  // most kinds are never asked for
      case CUPTI_ACTIVITY_KIND_RUNTIME:
      case CUPTI_ACTIVITY_KIND_DRIVER:
        return call(reinterpret_cast<const CUpti_ActivityAPI&>(record));
      case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
        return kernel(reinterpret_cast<const CUpti_ActivityKernel10&>(record));
      case CUPTI_ACTIVITY_KIND_MEMCPY:
        return copy(reinterpret_cast<const CUpti_ActivityMemcpy6&>(record));
      case CUPTI_ACTIVITY_KIND_MEMCPY2:
        return peer_copy(reinterpret_cast<const CUpti_ActivityMemcpyPtoP4&>(record));
      case CUPTI_ACTIVITY_KIND_MEMSET:
        return set(reinterpret_cast<const CUpti_ActivityMemset4&>(record));
      case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
        return sync(reinterpret_cast<const CUpti_ActivitySynchronization2&>(record));
      case CUPTI_ACTIVITY_KIND_CUDA_EVENT: {
        const auto& event = reinterpret_cast<const CUpti_ActivityCudaEvent2&>(record);
        events_[event.eventId] = {event.correlationId, event.streamId};
        return;
      }
      case CUPTI_ACTIVITY_KIND_MEMORY2:
        return memory(reinterpret_cast<const CUpti_ActivityMemory4&>(record));
      case CUPTI_ACTIVITY_KIND_MARKER:
        return marker(reinterpret_cast<const CUpti_ActivityMarker2&>(record));
      case CUPTI_ACTIVITY_KIND_OVERHEAD: {
        const auto& overhead = reinterpret_cast<const CUpti_ActivityOverhead3&>(record);
        tail_.overhead_ns += overhead.end - overhead.start;
        return;
      }
      default:
        return;
    }
  }

  void call(const CUpti_ActivityAPI& record) {
    const bool driver = record.kind == CUPTI_ACTIVITY_KIND_DRIVER;
    const char* name = nullptr;
    cuptiGetCallbackName(driver ? CUPTI_CB_DOMAIN_DRIVER_API : CUPTI_CB_DOMAIN_RUNTIME_API, record.cbid, &name);
    // Of the driver's own interface only what launches: the runtime calls the rest on its own behalf.
    const std::string_view called = name != nullptr ? name : "call";
    if (driver && !called.starts_with("cuLaunch") && !called.starts_with("cuGraphLaunch")) return;
    append(text_, RecordedCall{called, driver, record.start, record.end, record.processId, record.threadId,
                               record.correlationId});
  }

  void kernel(const CUpti_ActivityKernel10& record) {
    append(text_, RecordedKernel{demangled(record.name), record.start, record.end, record.deviceId, record.streamId,
                                 record.correlationId, record.graphId});
  }

  std::string_view demangled(const char* name) {
    if (name == nullptr) return "kernel";
    const auto [found, is_new] = names_.try_emplace(name);
    if (is_new) {
      int status = 0;
      char* readable = abi::__cxa_demangle(name, nullptr, nullptr, &status);
      found->second = readable != nullptr ? readable : name;
      std::free(readable);
    }
    return found->second;
  }

  static MemorySide side(std::uint8_t kind) {
    switch (kind) {
      case CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE:
        return MemorySide::pageable;
      case CUPTI_ACTIVITY_MEMORY_KIND_PINNED:
        return MemorySide::pinned;
      case CUPTI_ACTIVITY_MEMORY_KIND_DEVICE:
      case CUPTI_ACTIVITY_MEMORY_KIND_DEVICE_STATIC:
        return MemorySide::device;
      case CUPTI_ACTIVITY_MEMORY_KIND_ARRAY:
        return MemorySide::array;
      case CUPTI_ACTIVITY_MEMORY_KIND_MANAGED:
      case CUPTI_ACTIVITY_MEMORY_KIND_MANAGED_STATIC:
        return MemorySide::managed;
      default:
        return MemorySide::unknown;
    }
  }

  void copy(const CUpti_ActivityMemcpy6& record) {
    append(text_, RecordedCopy{side(record.srcKind), side(record.dstKind), false, record.start, record.end,
                               record.bytes, record.deviceId, record.streamId, record.correlationId});
  }
  void peer_copy(const CUpti_ActivityMemcpyPtoP4& record) {
    append(text_, RecordedCopy{MemorySide::device, MemorySide::device, true, record.start, record.end, record.bytes,
                               record.deviceId, record.streamId, record.correlationId});
  }
  void set(const CUpti_ActivityMemset4& record) {
    append(text_,
           RecordedSet{record.start, record.end, record.bytes, record.deviceId, record.streamId, record.correlationId});
  }

  void sync(const CUpti_ActivitySynchronization2& record) {
    RecordedSync sync{RecordedSyncKind::context, record.start, record.end, record.streamId, record.correlationId, 0, 0};
    if (record.type == CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE) sync.kind = RecordedSyncKind::event;
    if (record.type == CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT) sync.kind = RecordedSyncKind::stream_wait;
    if (record.type == CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE) sync.kind = RecordedSyncKind::stream;
    const auto event = events_.find(record.cudaEventId);
    const bool waits_for_event = sync.kind == RecordedSyncKind::event || sync.kind == RecordedSyncKind::stream_wait;
    if (waits_for_event && event != events_.end()) {
      sync.recorded_by = event->second.correlation;
      sync.recorded_on = event->second.stream;
    }
    append(text_, sync);
  }

  void memory(const CUpti_ActivityMemory4& record) {
    if (record.memoryKind != CUPTI_ACTIVITY_MEMORY_KIND_DEVICE) return;
    const bool release = record.memoryOperationType == CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE;
    std::uint64_t& held = held_[record.deviceId];
    held = release ? held - std::min(held, record.bytes) : held + record.bytes;
    append(text_, ActivityMemory{release, record.timestamp, record.address, record.bytes, held, record.processId,
                                 record.deviceId, ++memory_number_});
  }

  // A range is two records of one id.
  void marker(const CUpti_ActivityMarker2& record) {
    if ((record.flags & CUPTI_ACTIVITY_FLAG_MARKER_START) != 0) {
      ranges_[record.id] = {record.name != nullptr ? record.name : "range", record.timestamp};
      return;
    }
    const auto begun = ranges_.find(record.id);
    if ((record.flags & CUPTI_ACTIVITY_FLAG_MARKER_END) == 0 || begun == ranges_.end()) return;
    const bool of_thread = record.objectKind == CUPTI_ACTIVITY_OBJECT_THREAD;
    append(text_, RecordedRange{begun->second.name, begun->second.start_ns, record.timestamp,
                                of_thread ? record.objectId.pt.processId : static_cast<std::uint32_t>(getpid()),
                                of_thread ? record.objectId.pt.threadId : 0});
    ranges_.erase(begun);
  }

  std::mutex mutex_;
  std::atomic<int> buffers_{0};
  int descriptor_ = -1;
  std::string text_;
  RecordedTail tail_;
  std::unordered_map<std::string, std::string> names_;
  std::unordered_map<std::uint32_t, EventRecord> events_;
  std::unordered_map<std::uint32_t, Range> ranges_;
  std::map<std::uint32_t, std::uint64_t> held_;
  std::uint32_t memory_number_ = 0;
};

void CUPTIAPI give_buffer(std::uint8_t** buffer, std::size_t* size, std::size_t* most_records) {
  *most_records = 0;
  Recorder::instance().give(buffer, size);
}
void CUPTIAPI take_buffer(CUcontext context, std::uint32_t stream, std::uint8_t* buffer, std::size_t,
                          std::size_t valid) {
  Recorder::instance().take(context, stream, buffer, valid);
}

CUptiResult Recorder::subscribe() {
  cuptiSetThreadIdType(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
  CUptiResult result = cuptiActivityRegisterCallbacks(give_buffer, take_buffer);
  if (result != CUPTI_SUCCESS) return result;
  for (const CUpti_ActivityKind kind :
       {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_RUNTIME}) {
    result = cuptiActivityEnable(kind);
    if (result != CUPTI_SUCCESS) return result;
  }
  // Older drivers lack some of these; what is there is recorded.
  for (const CUpti_ActivityKind kind :
       {CUPTI_ACTIVITY_KIND_DRIVER, CUPTI_ACTIVITY_KIND_MEMCPY2, CUPTI_ACTIVITY_KIND_MEMSET,
        CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, CUPTI_ACTIVITY_KIND_CUDA_EVENT, CUPTI_ACTIVITY_KIND_MEMORY2,
        CUPTI_ACTIVITY_KIND_MARKER, CUPTI_ACTIVITY_KIND_OVERHEAD})
    cuptiActivityEnable(kind);
  cuptiActivityFlushPeriod(flush_milliseconds);
  return CUPTI_SUCCESS;
}

}  // namespace
}  // namespace spillway::validation

// The driver calls it when the program first uses CUDA.
extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  return spillway::validation::Recorder::instance().start();
}
