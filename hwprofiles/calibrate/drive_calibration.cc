#include "hwprofiles/calibrate/drive_calibration.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <limits>
#include <thread>

#include "base/byte_source.h"
#include "base/input_error.h"
#include "hwprofiles/calibrate/gds_queue.h"
#include "hwprofiles/calibrate/io_pattern.h"
#include "hwprofiles/calibrate/io_ring.h"
#include "hwprofiles/calibrate/scratch_file.h"

namespace spillway::hwprofiles {
namespace {

constexpr Bytes kib{1 << 10}, mib{1 << 20}, gib{1 << 30};
constexpr std::size_t stretches = 9;
constexpr std::size_t sustained_slices = 128;

struct Grid {
  std::vector<Bytes> blocks;
  std::vector<unsigned> depths;
  double seconds = 0;       // of one point
  double idle_seconds = 0;  // before writing again
};

Grid grid_of(bool quick) {
  if (quick) return {{kib * 4, kib * 64, mib}, {1, 8, 32}, 0.1, 1};
  return {{kib * 4, kib * 16, kib * 64, kib * 256, mib, mib * 2}, {1, 2, 4, 8, 16, 32, 64}, 0.3, 5};
}

Bytes whole_mib(Bytes bytes) { return mib * (bytes / mib); }

Spread latency_of(const IoRun& run) {
  std::vector<double> all;
  for (const IoDone& done : run.done) all.push_back(done.latency_seconds);
  return all.empty() ? Spread{} : spread_of(std::move(all));
}

// Over the whole run, with the spread of its stretches: a stretch alone may be one burst of completions.
Spread rate_of(const IoRun& run, const IoPattern& pattern, IoRing::Direction direction) {
  const bool reads = direction == IoRing::Direction::read;
  const Bytes bytes = reads ? run.read : run.written;
  if (bytes == Bytes(0) || run.seconds <= 0) return {};
  const std::size_t depth = reads ? pattern.read_depth : pattern.write_depth;
  std::vector<double> rates = sliced_rates(run, pattern.block, direction, stretches, 2 * depth);
  const double spread = rates.empty() ? 0 : spread_of(std::move(rates)).relative;
  return {static_cast<double>(bytes.count()) / run.seconds, spread};
}

class Campaign {
 public:
  Campaign(const DriveCalibrationOptions& options, const std::function<bool(std::size_t, std::size_t)>& progress)
      : options_(options),
        progress_(progress),
        grid_(grid_of(options.quick)),
        budget_(whole_mib(options.bytes > Bytes(0) ? options.bytes
                          : options.quick          ? gib
                                                   : gib * 16)),
        region_(std::min(mib * 256, whole_mib(budget_ / 8))),
        ring_(256),
        file_(options.file, whole_mib(budget_ / 2), std::min(gib, budget_), ScratchFile::Access::direct),
        buffer_(static_cast<std::size_t>((mib * (2 * grid_.depths.back())).count())) {
    result_.registered_buffers = ring_.register_buffer(buffer_.span());
    parts_ = 2 * grid_.blocks.size() * grid_.depths.size() + 5;
  }

  DriveMeasurement run() {
    const auto start = std::chrono::steady_clock::now();
    prepare();
    for_grid(true);
    sustain();
    recover();
    for_grid(false);
    random(false);
    random(true);
    mix();
    gpudirect();
    result_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return std::move(result_);
  }

 private:
  IoRun load(const IoPattern& pattern) {
    const auto stop = [this] { return !progress_(part_, parts_); };
    IoRun run = run_pattern(ring_, file_, pattern, buffer_.span(), options_.seed + part_, stop);
    ++part_;
    if (stop()) throw Cancelled{};
    result_.written += run.written;
    result_.read += run.read;
    return run;
  }

  // What small writes may still use: the sustained write needs half the budget, the mixed load a sixteenth.
  [[nodiscard]] Bytes writes_left(Bytes kept) const { return std::max(Bytes(0), budget_ - kept - result_.written); }

  void prepare() {
    IoPattern pattern = sequential(mib, 0, 8, Bytes(0), region_);
    pattern.most_bytes = region_;
    pattern.most_seconds = std::numeric_limits<double>::infinity();
    load(pattern);
  }

  static IoPattern sequential(Bytes block, unsigned reads, unsigned writes, Bytes begin, Bytes end) {
    IoPattern pattern;
    pattern.block = block;
    pattern.read_depth = reads;
    pattern.write_depth = writes;
    pattern.begin = begin;
    pattern.end = end;
    return pattern;
  }

  void for_grid(bool is_write) {
    const auto points = static_cast<std::int64_t>(grid_.blocks.size() * grid_.depths.size());
    const Bytes kept = file_.bytes() + budget_ / 8;
    const Bytes each = is_write ? writes_left(kept) / points : Bytes::max();
    for (const unsigned depth : grid_.depths) {
      for (const Bytes block : grid_.blocks) {
        IoPattern pattern = is_write ? sequential(block, 0, depth, Bytes(0), region_)
                                     : sequential(block, depth, 0, Bytes(0), file_.bytes());
        pattern.most_seconds = grid_.seconds;
        pattern.most_bytes = std::max(each, block * depth);
        const IoRun run = load(pattern);
        const auto direction = is_write ? IoRing::Direction::write : IoRing::Direction::read;
        result_.sequential.push_back({block, depth, is_write, rate_of(run, pattern, direction), latency_of(run)});
      }
    }
  }

  void sustain() {
    IoPattern pattern = sequential(mib, 0, std::min(32U, grid_.depths.back()), Bytes(0), file_.bytes());
    pattern.most_bytes = file_.bytes();
    pattern.most_seconds = std::numeric_limits<double>::infinity();
    const IoRun run = load(pattern);
    const std::size_t slice = std::max<std::size_t>(1, run.done.size() / sustained_slices);
    result_.sustained_slice = mib * static_cast<std::int64_t>(slice);
    double from = 0;
    for (std::size_t last = slice; last <= run.done.size(); last += slice) {
      const double to = run.done[last - 1].at_seconds;
      result_.sustained_seconds.push_back(std::max(to - from, 1e-9));
      from = to;
    }
  }

  // Only a drive that slowed down has a cache to give back.
  void recover() {
    const std::size_t count = result_.sustained_seconds.size(), tenth = std::max<std::size_t>(1, count / 10);
    double first = 0, last = 0;
    for (std::size_t i = 0; i < tenth; ++i) {
      first += result_.sustained_seconds[i];
      last += result_.sustained_seconds[count - 1 - i];
    }
    const Bytes most = std::min(file_.bytes(), writes_left(budget_ / 16));
    if (last < 1.3 * first || most < mib * 32) return;
    for (double waited = 0; waited < grid_.idle_seconds; waited += 0.05) {
      if (!progress_(part_, parts_)) throw Cancelled{};
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    IoPattern pattern = sequential(mib, 0, std::min(32U, grid_.depths.back()), Bytes(0), file_.bytes());
    pattern.most_bytes = most;
    pattern.most_seconds = 4 * grid_.idle_seconds;
    const IoRun run = load(pattern);
    // Halfway, in time per stretch of 16 blocks, between the first and the last of the sustained write.
    const double per_block = static_cast<double>(mib / Bytes(1)) / static_cast<double>(result_.sustained_slice.count());
    const double limit = (first + last) / 2 / static_cast<double>(tenth) * per_block * 16;
    IdleRecovery recovery{grid_.idle_seconds, run.written, false};
    for (std::size_t i = 16; i < run.done.size() && !recovery.fell; i += 16) {
      recovery.fell = run.done[i].at_seconds - run.done[i - 16].at_seconds > limit;
      if (recovery.fell) recovery.bytes_at_fast_rate = mib * static_cast<std::int64_t>(i - 16);
    }
    result_.recovery = recovery;
  }

  void random(bool is_write) {
    const unsigned depth = grid_.depths.back();
    IoPattern pattern = sequential(kib * 4, is_write ? 0 : depth, is_write ? depth : 0, Bytes(0), file_.bytes());
    pattern.order = IoPattern::Order::random;
    pattern.most_seconds = grid_.seconds;
    pattern.most_bytes = is_write ? std::max(pattern.block * depth, writes_left(budget_ / 16)) : Bytes::max();
    const auto direction = is_write ? IoRing::Direction::write : IoRing::Direction::read;
    Spread rate = rate_of(load(pattern), pattern, direction);
    rate.median /= static_cast<double>(pattern.block.count());
    (is_write ? result_.random_write_iops : result_.random_read_iops) = rate;
  }

  void mix() {
    const unsigned depth = grid_.depths.back();
    IoPattern pattern = sequential(mib, depth, depth, Bytes(0), file_.bytes());
    pattern.most_seconds = 3 * grid_.seconds;
    pattern.most_bytes = std::max(mib * (4 * depth), writes_left(Bytes(0)));
    const IoRun run = load(pattern);
    result_.mixed = {rate_of(run, pattern, IoRing::Direction::read), rate_of(run, pattern, IoRing::Direction::write)};
  }

  // Between the file and device memory: without a way through host memory, or by cuFile's own.
  void gpudirect() {
    if (options_.device_memory.empty()) return;
    const std::array<unsigned, 3> depths = {1, 4, 16};
    const std::vector<Bytes> blocks = options_.quick ? std::vector<Bytes>{mib * 4} : std::vector<Bytes>{mib, mib * 16};
    try {
      GdsQueue queue(file_.descriptor(), depths.back(), options_.begin_thread);
      for (const bool is_write : {false, true})
        for (const unsigned depth : depths)
          for (const Bytes block : blocks) gpudirect_point(queue, block, depth, is_write);
      result_.gpudirect_way = queue.way();
    } catch (const InputError& error) {
      if (error.file() != "cuFile") throw;
      result_.no_gpudirect = error.cause();
    }
  }

  void gpudirect_point(GdsQueue& queue, Bytes block, unsigned depth, bool is_write) {
    const auto bytes = static_cast<std::size_t>((block * depth).count());
    if (bytes > options_.device_memory.size() || block > file_.bytes()) return;
    IoPattern pattern =
        sequential(block, is_write ? 0 : depth, is_write ? depth : 0, Bytes(0), block * (file_.bytes() / block));
    pattern.is_host_memory = false;
    pattern.most_seconds = grid_.seconds;
    pattern.most_bytes = is_write ? std::max(block * depth, file_.bytes() / 16) : Bytes::max();
    const auto stop = [this] { return !progress_(part_, parts_); };
    const IoRun run = run_pattern(queue, file_, pattern, options_.device_memory, options_.seed, stop);
    result_.written += run.written;
    result_.read += run.read;
    const auto direction = is_write ? IoQueue::Direction::write : IoQueue::Direction::read;
    result_.gpudirect.push_back({block, depth, is_write, rate_of(run, pattern, direction), latency_of(run)});
  }

  const DriveCalibrationOptions& options_;
  const std::function<bool(std::size_t, std::size_t)>& progress_;
  Grid grid_;
  Bytes budget_, region_;
  IoRing ring_;
  ScratchFile file_;
  AlignedBuffer buffer_;
  DriveMeasurement result_;
  std::size_t part_ = 0, parts_ = 1;
};

}  // namespace

DriveMeasurement measure_drive(const DriveCalibrationOptions& options,
                               const std::function<bool(std::size_t, std::size_t)>& progress) {
  if (options.bytes != Bytes(0) && options.bytes < mib * 64)
    throw InputError("--bytes", "", "too few to tell anything of a drive", "give 64 MiB or more");
  return Campaign(options, progress).run();
}

}  // namespace spillway::hwprofiles
