#include "tests/virtual_gpu/device.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <stdexcept>

namespace spillway::virtual_gpu {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();
constexpr double nothing = 1e-15;  // what is left of seconds or bytes, over their rate, when a work has ended

}  // namespace

// In a program that can't be told otherwise: VIRTUAL_GPU_NAME, VIRTUAL_GPU_COMPUTES, and VIRTUAL_GPU_FAILS=call:number.
Device::Device() {
  Constants constants;
  if (const char* name = std::getenv("VIRTUAL_GPU_NAME")) constants.name = name;
  constants.computes = std::getenv("VIRTUAL_GPU_COMPUTES") != nullptr;
  power_on(constants);
  const char* failing = std::getenv("VIRTUAL_GPU_FAILS");
  if (failing == nullptr) return;
  const std::string words = failing;
  const std::size_t colon = words.find(':');
  fail_call(words.substr(0, colon), std::stoull(words.substr(colon + 1)), false);
}

Device& Device::instance() {
  static Device device;
  return device;
}

void Device::power_on(const Constants& constants) {
  constants_ = constants;
  now_ = simulated_ = heat_ = 0;
  streams_.clear();
  streams_[0];
  next_stream_ = 1;
  passed_.clear();
  next_ticket_ = 1;
  calls_.clear();
  failing_.clear();
  is_lost_ = gets_lost_ = false;
  kernels_traced = copies_traced = false;
  next_correlation = open_call = 0;
}

void Device::spend(double seconds) {
  now_ += seconds;
  advance(now_);
}

bool Device::enter(const char* name, double seconds) {
  spend(seconds);
  const std::uint64_t number = ++calls_[name];
  if (failing_ == name && number == failing_number_) {
    is_lost_ = gets_lost_;
    return true;
  }
  return is_lost_;
}

void Device::fail_call(const std::string& name, std::uint64_t number, bool lost) {
  failing_ = name;
  failing_number_ = number;
  gets_lost_ = lost;
}

std::uint32_t Device::make_stream() {
  streams_[next_stream_];
  return next_stream_++;
}

void Device::end_stream(std::uint32_t stream) {
  wait_idle(stream);
  streams_.erase(stream);
}

void Device::submit(std::uint32_t stream, Work work) {
  StreamState& state = streams_.at(stream);
  if (work.kind == WorkKind::kernel) {
    const auto is_full = [&] {
      return std::count_if(state.queue.begin(), state.queue.end(),
                           [](const Work& one) { return one.kind == WorkKind::kernel; }) >= constants_.launch_queue;
    };
    // Counting a queue costs time that no test has: it is short before it is full.
    if (state.queue.size() >= static_cast<std::size_t>(constants_.launch_queue))
      run_until([&] { return !is_full(); }, "room in the queue");
  }
  work.submitted = now_;
  work.stream = stream;
  work.correlation = open_call != 0 ? open_call : ++next_correlation;
  work.is_traced = work.kind == WorkKind::kernel ? kernels_traced : work.kind == WorkKind::copy && copies_traced;
  state.queue.push_back(std::move(work));
}

bool Device::is_idle(std::uint32_t stream) const { return streams_.at(stream).queue.empty(); }

void Device::run_until(const std::function<bool()>& done, const char* what) {
  while (!done()) {
    double next = never;
    start_ready(simulated_, next);
    for (const auto& [id, stream] : streams_)
      if (stream.is_active) next = std::min(next, simulated_ + seconds_left(stream));
    if (next == never) throw std::logic_error(std::string("the virtual GPU waits for ever: ") + what);
    advance(std::max(next, std::nextafter(simulated_, never)));
    now_ = std::max(now_, simulated_);
  }
}

void Device::wait_idle(std::uint32_t stream) {
  run_until([&] { return is_idle(stream); }, "a stream");
}

void Device::wait_all() {
  for (const auto& [id, stream] : streams_) wait_idle(id);
}

std::uint64_t Device::new_ticket() { return next_ticket_++; }

double Device::passed_at(std::uint64_t ticket) const {
  if (ticket == 0) return 0;
  const auto found = passed_.find(ticket);
  return found == passed_.end() ? -1 : found->second;
}

void Device::wait_ticket(std::uint64_t ticket) {
  run_until([&] { return passed_at(ticket) >= 0; }, "an event");
}

double Device::clock_share() const { return 1 - heat_ * (1 - constants_.settled_clock); }
double Device::watts() const {
  return constants_.idle_watts + heat_ * (constants_.limit_watts - constants_.idle_watts);
}

bool Device::engine_is_busy(bool to_device) const {
  return std::any_of(streams_.begin(), streams_.end(), [&](const auto& one) {
    const StreamState& stream = one.second;
    return stream.is_active && stream.queue.front().kind == WorkKind::copy &&
           stream.queue.front().to_device == to_device;
  });
}

double Device::earliest_start(const StreamState& stream) const {
  const Work& work = stream.queue.front();
  const double free = std::max({stream.free_at, stream.not_before, simulated_});
  if (work.kind == WorkKind::record) return std::max(free, work.submitted);
  if (work.kind == WorkKind::wait)
    return passed_at(work.ticket) < 0 ? never : std::max({free, work.submitted, passed_at(work.ticket)});
  if (work.kind == WorkKind::copy && engine_is_busy(work.to_device)) return never;
  const double gap = stream.follows_kernel && work.kind == WorkKind::kernel ? constants_.kernel_gap : 0;
  return std::max({work.submitted + constants_.launch_to_start, stream.free_at + gap, stream.not_before, simulated_});
}

// Starts what may start at `time`; `next`: when the next one may.
bool Device::start_ready(double time, double& next) {
  bool any = false;
  for (bool again = true; again;) {
    again = false;
    next = never;
    for (auto& [id, stream] : streams_) {
      if (stream.is_active || stream.queue.empty()) continue;
      const double start = earliest_start(stream);
      if (start > time) {
        next = std::min(next, start);
        continue;
      }
      Work& work = stream.queue.front();
      any = again = true;
      if (work.kind == WorkKind::record) {
        passed_[work.ticket] = std::max(stream.free_at, work.submitted);
        stream.queue.pop_front();
      } else if (work.kind == WorkKind::wait) {
        const double passed = passed_at(work.ticket);
        stream.not_before = std::max(stream.not_before, passed + constants_.event_gap);
        stream.free_at = std::max(stream.free_at, passed);
        stream.follows_kernel = false;
        stream.queue.pop_front();
      } else {
        stream.is_active = true;
        stream.start = start;
        stream.fixed_left = work.fixed_seconds;
        stream.clocked_left = work.clocked_seconds;
        stream.bytes_left = work.kind == WorkKind::copy ? work.copied_bytes : work.memory_bytes;
      }
    }
  }
  return any;
}

// Of the part that it is in: seconds a second, or bytes a second.
double Device::rate_of(const StreamState& stream) const {
  const Work& work = stream.queue.front();
  bool memory_kernel = false, other_way = false;
  int halves = 0;
  double copying = 0;
  for (const auto& [id, other] : streams_) {
    if (!other.is_active) continue;
    const Work& one = other.queue.front();
    halves += one.is_half ? 1 : 0;
    if (one.kind == WorkKind::kernel && one.memory_bytes > 0 && other.fixed_left <= 0) memory_kernel = true;
    if (one.kind == WorkKind::copy && one.to_device != work.to_device) other_way = true;
  }
  if (work.kind == WorkKind::copy) {
    if (stream.fixed_left > 0) return 1;
    const double both = constants_.to_device_rate + constants_.to_host_rate;
    return work.link_rate * (other_way ? std::min(1.0, constants_.duplex_rate / both) : 1) *
           (memory_kernel ? constants_.copies_beside_kernels : 1);
  }
  if (work.is_half && halves > 1) return constants_.two_stream_speedup / 2;
  if (stream.fixed_left > 0) return 1;
  if (stream.clocked_left > 0) return clock_share();
  for (const auto& [id, other] : streams_)
    if (other.is_active && other.queue.front().kind == WorkKind::copy && other.fixed_left <= 0)
      copying += rate_of(other);
  return std::max(0.05 * constants_.memory_rate, constants_.memory_rate - constants_.hbm_contention * copying);
}

double Device::seconds_left(const StreamState& stream) const {
  const double left = stream.fixed_left > 0     ? stream.fixed_left
                      : stream.clocked_left > 0 ? stream.clocked_left
                                                : stream.bytes_left;
  return left / rate_of(stream);
}

void Device::progress(double seconds) {
  bool multiplies = false;
  std::vector<std::pair<StreamState*, double>> steps;
  for (auto& [id, stream] : streams_) {
    if (!stream.is_active) continue;
    multiplies = multiplies || stream.clocked_left > 0;
    steps.emplace_back(&stream, rate_of(stream) * seconds);
  }
  for (const auto& [stream, step] : steps) {
    double& left = stream->fixed_left > 0     ? stream->fixed_left
                   : stream->clocked_left > 0 ? stream->clocked_left
                                              : stream->bytes_left;
    left -= step;
    if (left < nothing * std::max(1.0, step / std::max(seconds, nothing))) left = 0;
  }
  const double aim = multiplies ? 1 : 0;
  heat_ = aim + (heat_ - aim) * std::exp(-seconds / constants_.settling_seconds);
  simulated_ += seconds;
}

void Device::finish(StreamState& stream) {
  const Ran ran{stream.queue.front(), stream.start, simulated_};
  stream.is_active = false;
  stream.free_at = simulated_;
  stream.follows_kernel = ran.work.kind == WorkKind::kernel;
  stream.queue.pop_front();
  if (ran.work.effect) ran.work.effect();
  if (ran.work.is_traced && ended) ended(ran);
}

void Device::advance(double until) {
  while (true) {
    double next = never;
    start_ready(simulated_, next);
    // Not by the difference of two times: what is left may be less than the clock resolves.
    double step = std::max(0.0, next - simulated_);
    for (const auto& [id, stream] : streams_)
      if (stream.is_active) step = std::min(step, seconds_left(stream));
    if (simulated_ + step > until) break;
    progress(step);
    for (auto& [id, stream] : streams_)
      if (stream.is_active && stream.fixed_left <= 0 && stream.clocked_left <= 0 && stream.bytes_left <= 0)
        finish(stream);
  }
  if (until > simulated_) progress(until - simulated_);
}

void forget_memory();  // libraries.cc: what nobody gave back before the device was lost, and the last error

void power_on(const Constants& constants) {
  forget_memory();
  Device::instance().power_on(constants);
}
double now() { return Device::instance().now(); }
std::map<std::string, std::uint64_t> calls() { return Device::instance().calls(); }
void fail_call(const std::string& name, std::uint64_t number, bool lost) {
  Device::instance().fail_call(name, number, lost);
}

}  // namespace spillway::virtual_gpu
