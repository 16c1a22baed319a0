// The machine behind the virtual libraries: streams, events, copy engines and clocks. Internal to this folder.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "tests/virtual_gpu/virtual_gpu.h"

namespace spillway::virtual_gpu {

enum class WorkKind : std::uint8_t { kernel, copy, record, wait };

struct Work {
  WorkKind kind = WorkKind::kernel;
  const char* name = "";
  double submitted = 0;
  double fixed_seconds = 0;    // before its bytes move
  double memory_bytes = 0;     // of a kernel
  double clocked_seconds = 0;  // of a product, at the highest clock
  bool is_half = false;        // fills half of the multiprocessors
  double copied_bytes = 0;
  bool to_device = false;
  double link_rate = 0;
  std::uint64_t ticket = 0;  // of record and wait
  std::uint32_t correlation = 0, stream = 0;
  bool is_traced = false;
  std::function<void()> effect;  // when it ends
};

struct Ran {
  Work work;
  double start = 0, end = 0;
};

class Device {
 public:
  static Device& instance();

  void power_on(const Constants& constants);
  const Constants& constants() const { return constants_; }

  // Host time. spend(): the host is busy for so long.
  double now() const { return now_; }
  void spend(double seconds);

  // True where the call is to fail.
  bool enter(const char* name, double seconds);
  void fail_call(const std::string& name, std::uint64_t number, bool lost);
  const std::map<std::string, std::uint64_t>& calls() const { return calls_; }

  std::uint32_t make_stream();
  void end_stream(std::uint32_t stream);
  // Waits for room in the queue.
  void submit(std::uint32_t stream, Work work);
  bool is_idle(std::uint32_t stream) const;
  void wait_idle(std::uint32_t stream);
  void wait_all();

  std::uint64_t new_ticket();
  // Negative: not passed yet.
  double passed_at(std::uint64_t ticket) const;
  void wait_ticket(std::uint64_t ticket);

  // Of a product's share of the highest clock, and the board's power.
  double clock_share() const;
  double watts() const;

  // What CUPTI is asked for.
  bool kernels_traced = false, copies_traced = false, calls_traced = false, syncs_traced = false;
  bool events_traced = false, memory_traced = false;
  std::function<void(const Ran&)> ended;  // of what is traced
  std::uint32_t next_correlation = 0;
  std::uint32_t open_call = 0;  // the correlation of the call under way, which is that of what it submits; 0: none

 private:
  Device();

  struct StreamState {
    std::deque<Work> queue;
    double free_at = 0;     // end of what ran last
    double not_before = 0;  // of what follows a wait
    bool follows_kernel = false;
    bool is_active = false;
    double start = 0, fixed_left = 0, clocked_left = 0, bytes_left = 0;
  };

  void advance(double until);
  bool start_ready(double time, double& next);
  double earliest_start(const StreamState& stream) const;
  double seconds_left(const StreamState& stream) const;
  double rate_of(const StreamState& stream) const;
  void progress(double seconds);
  void finish(StreamState& stream);
  bool engine_is_busy(bool to_device) const;
  void run_until(const std::function<bool()>& done, const char* what);

  Constants constants_;
  double now_ = 0, simulated_ = 0, heat_ = 0;
  std::map<std::uint32_t, StreamState> streams_;
  std::uint32_t next_stream_ = 1;
  std::map<std::uint64_t, double> passed_;
  std::uint64_t next_ticket_ = 1;
  std::map<std::string, std::uint64_t> calls_;
  std::string failing_;
  std::uint64_t failing_number_ = 0;
  bool is_lost_ = false, gets_lost_ = false;
};

}  // namespace spillway::virtual_gpu
