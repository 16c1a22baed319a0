#include "traces/formats/kineto/kineto_calls.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace spillway::traces {
namespace {

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

// Without the vendor's prefix; empty if it has none.
std::string_view without_prefix(std::string_view name) {
  for (const std::string_view prefix : {"cuda", "hip", "cu"})
    if (name.starts_with(prefix)) return name.substr(prefix.size());
  return {};
}

bool is_query(std::string_view call) {
  constexpr std::array<std::string_view, 14> beginnings = {
      "Get",       "PeekAt",      "Occupancy",    "Func",         "Pointer",      "DriverGet",     "RuntimeGet",
      "SetDevice", "EventCreate", "EventDestroy", "EventElapsed", "StreamCreate", "StreamDestroy", "CtxGet"};
  if (std::any_of(beginnings.begin(), beginnings.end(), [&](auto b) { return call.starts_with(b); })) return true;
  constexpr std::array<std::string_view, 9> parts = {"Query",          "IsCapturing", "GetAttribute",
                                                     "GetCaptureInfo", "GetPriority", "GetLimit",
                                                     "GetDevice",      "CaptureMode", "CtxSetCurrent"};
  if (std::any_of(parts.begin(), parts.end(), [&](auto p) { return contains(call, p); })) return true;
  return call.starts_with("Device") && contains(call, "Get")
             ? true
             : call.starts_with("CtxPush") || call.starts_with("CtxPop") || call.starts_with("DevicePrimaryCtx");
}

bool starts_work(std::string_view call) {
  return call.starts_with("Launch") || contains(call, "LaunchKernel") || call.starts_with("GraphLaunch") ||
         call.starts_with("Memcpy") || call.starts_with("Memset") || call.starts_with("LaunchHostFunc");
}

}  // namespace

HostCall classify_host_call(std::string_view name) {
  const std::string_view call = without_prefix(name);
  if (call.empty()) return {.informational = name == "INVALID"};  // Kineto's word for calls it has no name for
  if (starts_work(call)) {
    const bool copies = call.starts_with("Memcpy");
    return {.kind = OpKind::launch, .blocking = copies && !contains(call, "Async")};
  }
  if (call.starts_with("DeviceSynchronize") || call.starts_with("CtxSynchronize")) return {.kind = OpKind::device_sync};
  if (call.starts_with("StreamSynchronize")) return {.kind = OpKind::stream_sync};
  if (call.starts_with("EventSynchronize")) return {.kind = OpKind::event_sync};
  if (call.starts_with("EventRecord")) return {.kind = OpKind::event_record};
  if (call.starts_with("StreamWaitEvent")) return {.kind = OpKind::stream_wait};
  if (call.starts_with("MallocHost") || call.starts_with("FreeHost") || call.starts_with("FreeAsync") ||
      call.starts_with("MemAllocHost") || call.starts_with("MemFreeHost") || call.starts_with("MemFreeAsync"))
    return {};
  if (call.starts_with("Malloc") || call.starts_with("MemAlloc") || call.starts_with("MemCreate") ||
      call.starts_with("ExtMalloc"))
    return {.kind = OpKind::device_malloc};
  if (call.starts_with("Free") || call.starts_with("MemFree")) return {.kind = OpKind::device_free};
  return {.informational = is_query(call)};
}

CopyName classify_copy(std::string_view name, std::string_view kind) {
  const auto says = [&](std::string_view word) { return contains(name, word) || kind == word; };
  const bool pageable = contains(name, "Pageable");
  if (says("HtoD") || contains(name, "HostToDevice")) return {OpKind::copy_host_to_device, pageable};
  if (says("DtoH") || contains(name, "DeviceToHost")) return {OpKind::copy_device_to_host, pageable};
  if (says("PtoP") || contains(name, "Peer")) return {OpKind::copy_peer, false};
  return {OpKind::copy_device_to_device, false};
}

bool is_collective_kernel(std::string_view name) {
  return name.starts_with("nccl") || name.starts_with("rccl") || name.starts_with("void nccl") ||
         name.starts_with("void rccl");
}

CollectiveKind classify_collective(std::string_view name) {
  std::string plain;
  for (const char c : name)
    if (c != '_' && c != '-' && c != ' ') plain += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  using Named = std::pair<std::string_view, CollectiveKind>;
  // Longer words first: "reduce" is a part of three of them.
  constexpr std::array<Named, 10> names = {{{"allreduce", CollectiveKind::all_reduce},
                                            {"reducescatter", CollectiveKind::reduce_scatter},
                                            {"allgather", CollectiveKind::all_gather},
                                            {"alltoall", CollectiveKind::all_to_all},
                                            {"broadcast", CollectiveKind::broadcast},
                                            {"barrier", CollectiveKind::barrier},
                                            {"sendrecv", CollectiveKind::unknown},
                                            {"send", CollectiveKind::send},
                                            {"recv", CollectiveKind::receive},
                                            {"reduce", CollectiveKind::reduce}}};
  for (const auto& [word, kind] : names)
    if (contains(plain, word)) return kind;
  return CollectiveKind::unknown;
}

}  // namespace spillway::traces
