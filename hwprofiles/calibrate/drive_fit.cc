#include "hwprofiles/calibrate/drive_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "base/input_error.h"
#include "hwprofiles/host_profile.h"

namespace spillway::hwprofiles {
namespace {

constexpr std::size_t most_levels = 3;
constexpr double smallest_fall = 0.2;

// Sums of x and x^2, for the squared error of any stretch about its mean.
class Stretches {
 public:
  explicit Stretches(const std::vector<double>& x) : sum_(x.size() + 1), square_(x.size() + 1) {
    for (std::size_t i = 0; i < x.size(); ++i) {
      sum_[i + 1] = sum_[i] + x[i];
      square_[i + 1] = square_[i] + x[i] * x[i];
    }
  }
  [[nodiscard]] double mean(std::size_t from, std::size_t to) const {
    return (sum_[to] - sum_[from]) / static_cast<double>(to - from);
  }
  [[nodiscard]] double error(std::size_t from, std::size_t to) const {
    const double sum = sum_[to] - sum_[from];
    return std::max(0.0, square_[to] - square_[from] - sum * sum / static_cast<double>(to - from));
  }

 private:
  std::vector<double> sum_, square_;
};

struct Cuts {
  double error = std::numeric_limits<double>::infinity();
  std::vector<std::size_t> ends;  // one past each stretch
};

// The best `count` stretches whose means fall; error stays infinite where there are none.
Cuts best_cuts(const Stretches& stretches, const Stretches& seconds, std::size_t size, std::size_t count) {
  const double fall = std::log(1 - smallest_fall);
  Cuts best;
  const auto consider = [&](std::vector<std::size_t> ends) {
    double error = 0, above = std::numeric_limits<double>::infinity(), took = 0;
    std::size_t from = 0;
    for (const std::size_t end : ends) {
      if (end == from || stretches.mean(from, end) > above + fall) return;
      // Stalls weigh little in logarithms: what the level takes in all must rise as well.
      if (seconds.mean(from, end) * (1 - smallest_fall) < took) return;
      above = stretches.mean(from, end);
      took = seconds.mean(from, end);
      error += stretches.error(from, end);
      from = end;
    }
    if (error < best.error) best = {error, std::move(ends)};
  };
  if (count == 1) consider({size});
  for (std::size_t a = 1; count == 2 && a < size; ++a) consider({a, size});
  for (std::size_t a = 1; count == 3 && a + 1 < size; ++a)
    for (std::size_t b = a + 1; b < size; ++b) consider({a, b, size});
  return best;
}

std::string slug(const std::string& text) {
  std::string name;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0)
      name += static_cast<char>(std::tolower(byte));
    else if (!name.empty() && name.back() != '-')
      name += '-';
  }
  while (!name.empty() && name.back() == '-') name.pop_back();
  return name;
}

class Fit {
 public:
  Fit(const DriveMeasurement& measured, const DriveIdentity& identity, const std::string& date)
      : measured_(measured), identity_(identity), origin_(measured_origin(date)) {}

  DriveFit run(const std::string& name) {
    const bool known = !identity_.model.empty();
    const std::string model = known ? identity_.model : "drive " + (identity_.device.empty() ? "?" : identity_.device);
    profile().name = name.empty() ? slug(model) + "-measured" : name;
    profile().title = model + ", as measured";
    profile().vendor = known ? model.substr(0, model.find(' ')) : "unknown";
    if (identity_.capacity > Bytes(0)) profile().capacity = sourced(identity_.capacity, 0);
    fit_rates();
    fit_writes();
    fit_link();
    fit_latency_and_depth();
    fit_interference();
    fit_recovery();
    for (const std::string& note : fit_.notes) profile().note += (profile().note.empty() ? "" : "; ") + note;
    return std::move(fit_);
  }

 private:
  NvmeProfile& profile() { return fit_.profile; }

  template <class T>
  Sourced<T> sourced(T value, double spread) const {
    Origin origin = origin_;
    origin.spread = spread;
    return {value, origin};
  }

  const DrivePoint& fastest(bool is_write) const {
    const DrivePoint* best = nullptr;
    for (const DrivePoint& point : measured_.sequential)
      if (point.is_write == is_write &&
          (best == nullptr || point.bytes_per_second.median > best->bytes_per_second.median))
        best = &point;
    if (best == nullptr)
      throw InputError("", "", is_write ? "no write was measured" : "no read was measured", "measure both");
    return *best;
  }

  void fit_rates() {
    const DrivePoint& read = fastest(false);
    profile().read_bandwidth =
        sourced(rate_from_bytes_per_second(read.bytes_per_second.median), read.bytes_per_second.relative);
    const DrivePoint& write = fastest(true);
    profile().write_bandwidth =
        sourced(rate_from_bytes_per_second(write.bytes_per_second.median), write.bytes_per_second.relative);
    profile().read_efficiency = efficiency(false, read.bytes_per_second.median);
    profile().write_efficiency = efficiency(true, write.bytes_per_second.median);
    if (measured_.random_read_iops.median > 0)
      profile().random_read_iops = sourced(measured_.random_read_iops.median, measured_.random_read_iops.relative);
    if (measured_.random_write_iops.median > 0)
      profile().random_write_iops = sourced(measured_.random_write_iops.median, measured_.random_write_iops.relative);
  }

  Sourced<CurveFamily> efficiency(bool is_write, double peak) const {
    std::map<unsigned, std::vector<CurvePoint>> by_depth;
    for (const DrivePoint& point : measured_.sequential)
      if (point.is_write == is_write)
        by_depth[point.depth].push_back(
            {static_cast<double>(point.block.count()), std::min(1.0, point.bytes_per_second.median / peak)});
    std::vector<CurveFamily::Member> members;
    for (auto& [depth, points] : by_depth)
      members.push_back({static_cast<double>(depth), Curve(std::move(points), Curve::Scale::log)});
    return sourced(CurveFamily(std::move(members)), 0);
  }

  void fit_writes() {
    if (measured_.sustained_seconds.empty()) return;
    fit_.levels = write_levels(measured_.sustained_seconds, measured_.sustained_slice);
    const Bytes all = measured_.sustained_slice * static_cast<std::int64_t>(measured_.sustained_seconds.size());
    if (fit_.levels.size() == 1) {
      const WriteLevel& level = fit_.levels.front();
      if (level.bytes_per_second > to_bytes_per_second(profile().write_bandwidth->value))
        profile().write_bandwidth = sourced(rate_from_bytes_per_second(level.bytes_per_second), level.spread);
      fit_.notes.push_back(fmt::format("writing {:.1f} GB without pause did not slow it down: no cache is claimed",
                                       static_cast<double>(all.count()) * 1e-9));
      return;
    }
    const WriteLevel &fast = fit_.levels.front(), &steady = fit_.levels.back();
    profile().write_bandwidth = sourced(rate_from_bytes_per_second(fast.bytes_per_second), fast.spread);
    profile().write_cache = sourced(fast.bytes, 0);
    profile().steady_write_bandwidth = sourced(rate_from_bytes_per_second(steady.bytes_per_second), steady.spread);
    if (fit_.levels.size() == most_levels) {
      const WriteLevel& folding = fit_.levels[1];
      profile().folding_write_bandwidth = sourced(rate_from_bytes_per_second(folding.bytes_per_second), folding.spread);
      profile().folding_bytes = sourced(folding.bytes, 0);
    }
  }

  // The system may not know the link (virtual drives); the profile must state one.
  void fit_link() {
    if (identity_.pcie_generation > 0 && identity_.pcie_lanes > 0) {
      profile().pcie_generation = sourced(identity_.pcie_generation, 0);
      profile().pcie_lanes = sourced(identity_.pcie_lanes, 0);
      return;
    }
    const double needed = std::max(to_bytes_per_second(profile().read_bandwidth->value),
                                   to_bytes_per_second(profile().write_bandwidth->value));
    std::int64_t generation = 3;
    while (generation < 7 && to_bytes_per_second(pcie_raw_rate(generation, 4)) < needed) ++generation;
    const Origin guess{OriginKind::assumed, "the system shows no link; four lanes that carry the measured rate",
                       origin_.date, 0};
    profile().pcie_generation = {generation, guess};
    profile().pcie_lanes = {4, guess};
  }

  void fit_latency_and_depth() {
    for (const bool is_write : {false, true}) {
      const DrivePoint* smallest = nullptr;
      for (const DrivePoint& point : measured_.sequential)
        if (point.is_write == is_write && point.depth == 1 && (smallest == nullptr || point.block < smallest->block))
          smallest = &point;
      if (smallest == nullptr) continue;
      (is_write ? profile().write_latency : profile().read_latency) =
          sourced(from_seconds(smallest->latency_seconds.median), smallest->latency_seconds.relative);
    }
    Bytes largest;
    for (const DrivePoint& point : measured_.sequential) largest = std::max(largest, point.block);
    unsigned depth = 1;
    for (const bool is_write : {false, true}) depth = std::max(depth, useful_depth(is_write, largest));
    profile().queue_depth = sourced(static_cast<std::int64_t>(depth), 0);
  }

  unsigned useful_depth(bool is_write, Bytes block) const {
    double best = 0;
    std::map<unsigned, double> rates;
    for (const DrivePoint& point : measured_.sequential)
      if (point.is_write == is_write && point.block == block) {
        rates[point.depth] = point.bytes_per_second.median;
        best = std::max(best, point.bytes_per_second.median);
      }
    for (const auto& [depth, rate] : rates)
      if (rate >= 0.95 * best) return depth;
    return 1;
  }

  void fit_interference() {
    const double read = measured_.mixed.read_bytes_per_second.median;
    const double write = measured_.mixed.write_bytes_per_second.median;
    if (read <= 0 || write <= 0) return;
    const double shares = read / to_bytes_per_second(profile().read_bandwidth->value) +
                          write / to_bytes_per_second(profile().write_bandwidth->value);
    const double spread =
        std::max(measured_.mixed.read_bytes_per_second.relative, measured_.mixed.write_bytes_per_second.relative);
    profile().read_write_interference = sourced(std::clamp(2 - shares, 0.0, 1.0), spread);
    if (shares < 1)
      fit_.notes.push_back(
          fmt::format("reads and writes together reach {:.0f} % of one shared budget; the model knows no "
                      "worse than 100 %",
                      100 * shares));
  }

  // The model empties the cache at the steady rate when idle; the figure is told beside it.
  void fit_recovery() {
    if (!measured_.recovery || fit_.levels.size() < 2 || measured_.recovery->idle_seconds <= 0) return;
    const double fast = fit_.levels.front().bytes_per_second, steady = fit_.levels.back().bytes_per_second;
    const double regained =
        static_cast<double>(measured_.recovery->bytes_at_fast_rate.count()) * (fast - steady) / fast;
    fit_.notes.push_back(
        fmt::format("after {:.1f} s idle the cache took {}{:.2f} GB a second of pause; the model says "
                    "{:.2f}",
                    measured_.recovery->idle_seconds, measured_.recovery->fell ? "" : "at least ",
                    regained / measured_.recovery->idle_seconds * 1e-9, steady * 1e-9));
  }

  const DriveMeasurement& measured_;
  const DriveIdentity& identity_;
  Origin origin_;
  DriveFit fit_;
};

}  // namespace

std::vector<WriteLevel> write_levels(const std::vector<double>& slice_seconds, Bytes slice) {
  SPILLWAY_ASSERT(slice > Bytes(0) && !slice_seconds.empty());
  std::vector<double> logs;
  for (const double seconds : slice_seconds) {
    SPILLWAY_ASSERT(seconds > 0);
    logs.push_back(std::log(static_cast<double>(slice.count()) / seconds));
  }
  const Stretches stretches(logs), seconds(slice_seconds);
  const auto n = static_cast<double>(logs.size());
  // Below this scatter two slices are equal: no figure of a drive is known more exactly.
  constexpr double least_variance = 1e-4;
  Cuts chosen;
  double best = std::numeric_limits<double>::infinity();
  for (std::size_t count = 1; count <= std::min(most_levels, logs.size()); ++count) {
    Cuts cuts = best_cuts(stretches, seconds, logs.size(), count);
    if (cuts.ends.empty()) continue;
    const double parameters = 2 * static_cast<double>(count);
    const double criterion = n * std::log(cuts.error / n + least_variance) + parameters * std::log(n);
    if (criterion >= best) continue;
    best = criterion;
    chosen = std::move(cuts);
  }
  std::vector<WriteLevel> levels;
  std::size_t from = 0;
  for (const std::size_t end : chosen.ends) {
    double took = 0;
    std::vector<double> rates;
    for (std::size_t i = from; i < end; ++i) {
      took += slice_seconds[i];
      rates.push_back(static_cast<double>(slice.count()) / slice_seconds[i]);
    }
    const Bytes bytes = slice * static_cast<std::int64_t>(end - from);
    levels.push_back({static_cast<double>(bytes.count()) / took, bytes, spread_of(std::move(rates)).relative});
    from = end;
  }
  return levels;
}

Origin measured_origin(const std::string& date) {
  return {OriginKind::measured, "spillway calibrate on the machine itself", date, 0};
}

DriveFit fit_drive(const DriveMeasurement& measured, const DriveIdentity& identity, const std::string& name,
                   const std::string& date) {
  return Fit(measured, identity, date).run(name);
}

}  // namespace spillway::hwprofiles
