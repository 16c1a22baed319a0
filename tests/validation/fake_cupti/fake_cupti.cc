// A library with the names and the manners of CUPTI, for gpu_absent_test.py: one kernel, told at the first flush or
// when the program ends. FAKE_CUPTI=refuses: as a system does that keeps profiling to its administrator.
#include <cupti.h>

#include <cstdlib>
#include <cstring>
#include <string_view>

namespace {
CUpti_BuffersCallbackRequestFunc request = nullptr;
CUpti_BuffersCallbackCompleteFunc complete = nullptr;
bool is_told = false, is_next = false;

bool refuses() {
  const char* manner = std::getenv("FAKE_CUPTI");
  return manner != nullptr && std::string_view(manner) == "refuses";
}

void tell() {
  if (is_told || request == nullptr) return;
  is_told = true;
  std::uint8_t* buffer = nullptr;
  std::size_t size = 0, most = 0;
  request(&buffer, &size, &most);
  if (buffer == nullptr || size < sizeof(CUpti_ActivityKernel10)) return;
  CUpti_ActivityKernel10 kernel;
  std::memset(&kernel, 0, sizeof kernel);
  kernel.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  kernel.name = "stand_in_kernel";
  kernel.start = 1'767'312'000'000'001'000;
  kernel.end = kernel.start + 5000;
  kernel.streamId = 7;
  kernel.correlationId = 1;
  std::memcpy(buffer, &kernel, sizeof kernel);
  is_next = true;
  complete(nullptr, 0, buffer, size, sizeof kernel);
}
}  // namespace

extern "C" {
CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc asks,
                                           CUpti_BuffersCallbackCompleteFunc gives) {
  if (refuses()) return CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
  request = asks;
  complete = gives;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityEnable(CUpti_ActivityKind) { return CUPTI_SUCCESS; }
CUptiResult cuptiActivityDisable(CUpti_ActivityKind) { return CUPTI_SUCCESS; }
CUptiResult cuptiGetTimestamp(std::uint64_t* nanoseconds) {
  *nanoseconds = 0;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityFlushPeriod(std::uint32_t) {
  tell();
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityFlushAll(std::uint32_t) {
  tell();
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityGetNextRecord(std::uint8_t* buffer, std::size_t, CUpti_Activity** record) {
  if (!is_next) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  is_next = false;
  *record = reinterpret_cast<CUpti_Activity*>(buffer);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext, std::uint32_t, std::size_t* dropped) {
  *dropped = 0;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiGetCallbackName(CUpti_CallbackDomain, std::uint32_t, const char** name) {
  *name = "cudaLaunchKernel_v7000";
  return CUPTI_SUCCESS;
}
CUptiResult cuptiGetResultString(CUptiResult result, const char** word) {
  *word = result == CUPTI_ERROR_INSUFFICIENT_PRIVILEGES ? "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES" : "CUPTI_ERROR_UNKNOWN";
  return CUPTI_SUCCESS;
}
CUptiResult cuptiSetThreadIdType(CUpti_ActivityThreadIdType) { return CUPTI_SUCCESS; }
}
