#include "sim/devices/drive_load.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "base/input_error.h"
#include "sim/engine/fluid_network.h"
#include "sim/engine/reservoir.h"

namespace spillway::sim {
namespace {

constexpr std::int64_t steps_after_full = 400;  // enough for the cache's cycles to average out
constexpr std::int64_t most_steps = 20'000;     // simulated
constexpr std::size_t most_kept = 300;
constexpr double most_seconds = 4e6;  // on one reservoir's clock
constexpr double nothing = 0.5;       // bytes

// One direction: bytes due that have not been moved, and the rate at which more come due.
struct Queue {
  double waiting = 0, due = 0, left = 0;  // bytes, bytes a second, bytes of the step still to move
  double time = 0;                        // seconds the bytes took at the rates there were
};

struct Change {
  Picos at{};
  double bytes = 0, rate = 0;  // due at once, and from now on
  bool is_write = true;
};

std::vector<Change> changes_of(const DriveLoad& load) {
  std::vector<Change> changes;
  for (const LoadSpan& span : load.spans) {
    if (span.begin < Picos(0) || span.end < span.begin || span.end > load.step || span.bytes < Bytes(0))
      throw InputError("", "drive load", "a span lies outside its step", "correct it");
    if (span.bytes == Bytes(0)) continue;
    const double bytes = static_cast<double>(span.bytes.count());
    if (span.begin == span.end) {
      changes.push_back({span.begin, bytes, 0, span.is_write});
      continue;
    }
    const double rate = bytes / to_seconds(span.end - span.begin);
    changes.push_back({span.begin, 0, rate, span.is_write});
    changes.push_back({span.end, 0, -rate, span.is_write});
  }
  std::stable_sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) { return a.at < b.at; });
  return changes;
}

class DriveRun {
 public:
  DriveRun(const LoadedDrives& drives, const DriveLoad& load) : load_(load), changes_(changes_of(load)) {
    const NvmeModel& drive = drives.drive;
    read_ = std::min(std::min(drive.read, drive.read_window) * drives.count, drives.read_link);
    write_ = std::min(std::min(drive.write, drive.write_window) * drives.count, drives.write_link);
    full_read_ = to_bytes_per_second(drive.read * drives.count);
    full_write_ = to_bytes_per_second(drive.write * drives.count);
    budget_ = 2 - drive.interference;
    if (read_ <= Rate(0) || write_ <= Rate(0))
      throw InputError("", "drive load", "drives that don't move anything", "give them a rate above 0");
    if (!drive.cache || drive.cache->drain * drives.count >= write_) return;
    spec_.size = (drive.cache->size * drives.count).count();
    spec_.resume_level = (drive.cache->resume_level * drives.count).count();
    spec_.drain = spec_.slow = drive.cache->drain * drives.count;
    spec_.fast = write_;
    spec_.fold_level = (drive.cache->fold_level * drives.count).count();
    spec_.fold = std::min(drive.cache->fold * drives.count, write_);
    cache_.emplace(spec_);
  }

  CarriedStep run_step() {
    rebase();
    writes_ = {0, 0, static_cast<double>(load_.written().count()), 0};
    reads_ = {0, 0, static_cast<double>(load_.read().count()), 0};
    const Picos begin = now_, end = begin + load_.step;
    for (const Change& change : changes_) {
      advance_to(begin + change.at);
      Queue& queue = change.is_write ? writes_ : reads_;
      queue.waiting += change.bytes;
      queue.due = std::max(0.0, queue.due + change.rate);
    }
    writes_.due = reads_.due = 0;
    // What rounding left between the spans' sum and the bytes.
    writes_.waiting = writes_.left;
    reads_.waiting = reads_.left;
    advance_to(end);
    while (writes_.waiting > nothing || reads_.waiting > nothing) advance_once(Picos::max());
    CarriedStep step;
    step.number = number_++;
    step.length = now_ - begin;
    step.write_time = from_seconds(writes_.time);
    step.read_time = from_seconds(reads_.time);
    step.cache_level = level();
    return step;
  }

  // Skips steps that differ from the last two in the cache's level alone. Returns how many.
  std::int64_t skip(std::int64_t growth, std::int64_t highest) {
    if (!cache_ || cache_->stage() != Reservoir::Stage::fast || growth <= 0) return 0;
    const std::int64_t brim = spec_.fold_level > 0 ? spec_.fold_level : spec_.size;
    const std::int64_t steps = (brim - highest) / growth - 2;
    if (steps <= 0) return 0;
    restart(cache_->level() + steps * growth);
    number_ += steps;
    return steps;
  }

  [[nodiscard]] bool has_cache() const { return cache_.has_value(); }
  [[nodiscard]] bool was_full() const { return was_full_; }
  [[nodiscard]] bool is_fast() const { return !cache_ || cache_->stage() == Reservoir::Stage::fast; }
  [[nodiscard]] std::int64_t level_bytes() const { return cache_ ? cache_->level() : 0; }
  [[nodiscard]] std::int64_t highest() const { return highest_; }
  [[nodiscard]] double full_write() const { return full_write_; }
  [[nodiscard]] double full_read() const { return full_read_; }

 private:
  [[nodiscard]] double level() const {
    return cache_ ? static_cast<double>(cache_->level()) / static_cast<double>(spec_.size) : 0;
  }

  void restart(std::int64_t level) {
    spec_.initial_level = std::clamp<std::int64_t>(level, 0, spec_.size);
    cache_.emplace(spec_);
    now_ = Picos(0);
  }

  // The clock ends after 106 days; a cache at its fast rate may start anew at any time.
  void rebase() {
    highest_ = level_bytes();
    if (!cache_)
      now_ = Picos(0);
    else if (to_seconds(now_) > most_seconds && is_fast())
      restart(cache_->level());
    if (to_seconds(now_) > 2 * most_seconds)
      throw InputError("", "drive load", "steps of days", "give the step's length in its own unit");
  }

  void advance_to(Picos target) {
    while (now_ < target) advance_once(target);
  }

  // To the next instant at which a rate changes, `target` at the latest.
  void advance_once(Picos target) {
    const double write_cap = to_bytes_per_second(cache_ ? cache_->capacity() : write_);
    const double read_cap = to_bytes_per_second(read_);
    double write = writes_.waiting > nothing ? write_cap : std::min(writes_.due, write_cap);
    double read = reads_.waiting > nothing ? read_cap : std::min(reads_.due, read_cap);
    const double use = read / full_read_ + write / full_write_;
    const double share = use > budget_ ? budget_ / use : 1;
    write *= share;
    read *= share;
    if (cache_) cache_->set_inflow(now_, rate_from_bytes_per_second(write).count() << 16);
    Picos next = std::min(target, cache_ ? cache_->next_event() : Picos::max());
    next = std::min(next, empty_at(writes_, write));
    next = std::min(next, empty_at(reads_, read));
    SPILLWAY_ASSERT(next > now_ && next < Picos::max());
    const double seconds = to_seconds(next - now_);
    move(writes_, write, share * write_cap, seconds);
    move(reads_, read, share * read_cap, seconds);
    now_ = next;
    if (!cache_) return;
    cache_->advance(now_);
    highest_ = std::max(highest_, cache_->level());
    was_full_ = was_full_ || cache_->full();
  }

  // When the queue runs dry at this rate.
  [[nodiscard]] Picos empty_at(const Queue& queue, double rate) const {
    if (queue.waiting <= nothing || rate <= queue.due) return Picos::max();
    const double seconds = queue.waiting / (rate - queue.due);
    return seconds > most_seconds ? now_ + from_seconds(most_seconds)
                                  : now_ + std::max(Picos(1), from_seconds(seconds));
  }

  static void move(Queue& queue, double rate, double could, double seconds) {
    const double bytes = std::min(rate * seconds, queue.waiting + queue.due * seconds);
    queue.waiting = std::max(0.0, queue.waiting + queue.due * seconds - bytes);
    queue.left = std::max(0.0, queue.left - bytes);
    if (could > 0) queue.time += bytes / could;
  }

  const DriveLoad& load_;
  std::vector<Change> changes_;
  Rate read_, write_;
  double full_read_ = 0, full_write_ = 0, budget_ = 2;
  ReservoirSpec spec_;
  std::optional<Reservoir> cache_;
  Queue writes_, reads_;
  Picos now_{};
  std::int64_t number_ = 0, highest_ = 0;
  bool was_full_ = false;
};

Bytes sum(const DriveLoad& load, bool writes) {
  Bytes bytes{};
  for (const LoadSpan& span : load.spans)
    if (span.is_write == writes) bytes += span.bytes;
  return bytes;
}

// Mean of the steps from `from` on.
CarriedStep mean_of(const std::vector<CarriedStep>& steps, std::size_t from) {
  double length = 0, write = 0, read = 0;
  for (std::size_t i = from; i < steps.size(); ++i) {
    length += to_seconds(steps[i].length);
    write += to_seconds(steps[i].write_time);
    read += to_seconds(steps[i].read_time);
  }
  const double n = static_cast<double>(steps.size() - from);
  CarriedStep mean = steps.back();
  mean.length = from_seconds(length / n);
  mean.write_time = from_seconds(write / n);
  mean.read_time = from_seconds(read / n);
  return mean;
}

void throttle(SustainedLoad& found, const LoadedDrives& drives, const DriveLoad& load, const DriveRun& run) {
  const double busy = static_cast<double>(load.written().count()) / run.full_write() +
                      static_cast<double>(load.read().count()) / run.full_read();
  found.use = busy / to_seconds(found.steady.length);
  if (drives.thermal_duty >= 1 || found.use <= drives.thermal_duty) return;
  found.throttled = true;
  found.steady.length = from_seconds(busy / drives.thermal_duty);
  found.use = drives.thermal_duty;
}

void thin(std::vector<CarriedStep>& steps) {
  if (steps.size() <= most_kept) return;
  std::vector<CarriedStep> kept;
  for (std::size_t i = 0; i < most_kept; ++i) kept.push_back(steps[i * (steps.size() - 1) / (most_kept - 1)]);
  steps = std::move(kept);
}

}  // namespace

Bytes DriveLoad::written() const { return sum(*this, true); }
Bytes DriveLoad::read() const { return sum(*this, false); }

bool SustainedLoad::holds(const CarriedStep& step, Picos asked) {
  const Picos slack = asked / 1'000'000;  // of rounding
  return step.length <= asked + slack && step.write_time <= asked / 2 + slack && step.read_time <= asked / 2 + slack;
}

SustainedLoad sustain(const LoadedDrives& drives, const DriveLoad& load) {
  SPILLWAY_ASSERT(load.step > Picos(0) && drives.count > 0 && drives.thermal_duty > 0 && drives.thermal_duty <= 1);
  DriveRun run(drives, load);
  SustainedLoad found;
  std::size_t steady_from = 0;
  std::int64_t last_growth = std::numeric_limits<std::int64_t>::min();
  for (std::int64_t i = 0; i < most_steps; ++i) {
    const std::int64_t before = run.level_bytes();
    const bool was_fast = run.is_fast();
    found.steps.push_back(run.run_step());
    if (found.steps_to_full < 0 && run.was_full()) {
      found.steps_to_full = found.steps.back().number;
      steady_from = found.steps.size() - (found.steps.size() > 1 ? 0 : 1);
    }
    const std::int64_t growth = run.level_bytes() - before;
    const bool repeats = growth == 0 && was_fast && run.is_fast();
    const bool settled = found.steps_to_full >= 0 && i - static_cast<std::int64_t>(steady_from) >= steps_after_full;
    if (!run.has_cache() || settled || (repeats && i > 0)) {
      if (found.steps_to_full < 0) steady_from = found.steps.size() - 1;
      break;
    }
    if (growth == last_growth && was_fast && run.is_fast()) run.skip(growth, run.highest());
    last_growth = growth;
  }
  found.first = found.steps.front();
  found.steady = mean_of(found.steps, std::min(steady_from, found.steps.size() - 1));
  throttle(found, drives, load, run);
  thin(found.steps);
  return found;
}

}  // namespace spillway::sim
