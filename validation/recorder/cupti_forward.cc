// CUPTI's functions that the recorder's library calls, each handed on to the CUPTI of the program that is recorded: its
// own where it has one loaded, what the dynamic loader finds, or else the file that SPILLWAY_RECORD_CUPTI names. Not
// linked, so that the library loads where none of CUDA's folders is on the loader's path; without any CUPTI every
// function says so by its result.
#include <cupti.h>
#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace {

void* open_cupti() {
  if (void* found = dlopen(SPILLWAY_CUPTI, RTLD_NOW | RTLD_LOCAL); found != nullptr) return found;
  const char* named = std::getenv("SPILLWAY_RECORD_CUPTI");
  return named == nullptr ? nullptr : dlopen(named, RTLD_NOW | RTLD_LOCAL);
}

void* cupti_function(const char* name) {
  static void* const library = open_cupti();
  return library == nullptr ? nullptr : dlsym(library, name);
}

template <class... Arguments>
CUptiResult forward(void* function, Arguments... arguments) {
  if (function == nullptr) return CUPTI_ERROR_NOT_INITIALIZED;
  return reinterpret_cast<CUptiResult(CUPTIAPI*)(Arguments...)>(function)(arguments...);
}

}  // namespace

CUptiResult CUPTIAPI cuptiGetResultString(CUptiResult result, const char** text) {
  static void* const function = cupti_function("cuptiGetResultString");
  if (function != nullptr) return forward(function, result, text);
  *text = "(" SPILLWAY_CUPTI " is not found: name its folder in SPILLWAY_CUDA_LIBRARIES)";
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiGetCallbackName(CUpti_CallbackDomain domain, std::uint32_t id, const char** name) {
  static void* const function = cupti_function("cuptiGetCallbackName");
  return forward(function, domain, id, name);
}

CUptiResult CUPTIAPI cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc give,
                                                    CUpti_BuffersCallbackCompleteFunc take) {
  static void* const function = cupti_function("cuptiActivityRegisterCallbacks");
  return forward(function, give, take);
}

CUptiResult CUPTIAPI cuptiActivityEnable(CUpti_ActivityKind kind) {
  static void* const function = cupti_function("cuptiActivityEnable");
  return forward(function, kind);
}

CUptiResult CUPTIAPI cuptiActivityGetNextRecord(std::uint8_t* buffer, std::size_t valid, CUpti_Activity** record) {
  static void* const function = cupti_function("cuptiActivityGetNextRecord");
  return forward(function, buffer, valid, record);
}

CUptiResult CUPTIAPI cuptiActivityGetNumDroppedRecords(CUcontext context, std::uint32_t stream, std::size_t* dropped) {
  static void* const function = cupti_function("cuptiActivityGetNumDroppedRecords");
  return forward(function, context, stream, dropped);
}

CUptiResult CUPTIAPI cuptiActivityFlushAll(std::uint32_t flag) {
  static void* const function = cupti_function("cuptiActivityFlushAll");
  return forward(function, flag);
}

CUptiResult CUPTIAPI cuptiActivityFlushPeriod(std::uint32_t milliseconds) {
  static void* const function = cupti_function("cuptiActivityFlushPeriod");
  return forward(function, milliseconds);
}

CUptiResult CUPTIAPI cuptiSetThreadIdType(CUpti_ActivityThreadIdType type) {
  static void* const function = cupti_function("cuptiSetThreadIdType");
  return forward(function, type);
}
