#include "base/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <string>

namespace spillway {
namespace {

std::atomic<bool> verbose = false;

spdlog::logger& logger() {
  static const std::shared_ptr<spdlog::logger> made = [] {
    auto to_stderr = spdlog::stderr_logger_mt("spillway");
    to_stderr->set_pattern("%n: %v");
    to_stderr->flush_on(spdlog::level::info);
    return to_stderr;
  }();
  return *made;
}

bool is_new(const std::string& line) {
  static std::mutex mutex;
  static std::set<std::string> written;
  const std::lock_guard lock(mutex);
  return written.insert(line).second;
}

}  // namespace

void set_verbose(bool wanted) { verbose = wanted; }
bool is_verbose() { return verbose; }

void log_choice(std::string_view topic, std::string_view choice) {
  if (!verbose) return;
  const std::string line = std::string(topic) + ": " + std::string(choice);
  if (is_new(line)) logger().info("{}", line);
}

}  // namespace spillway
