#include "base/stop.h"

#include "base/byte_source.h"

namespace spillway {
namespace {

thread_local const std::atomic<bool>* stop_flag = nullptr;

}  // namespace

StopScope::StopScope(const std::atomic<bool>* flag) : before_(stop_flag) { stop_flag = flag; }

StopScope::~StopScope() { stop_flag = before_; }

const std::atomic<bool>* current_stop() { return stop_flag; }

void check_stop() {
  if (stop_flag != nullptr && stop_flag->load(std::memory_order_relaxed)) throw Cancelled{};
}

}  // namespace spillway
