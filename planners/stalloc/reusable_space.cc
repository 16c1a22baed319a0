#include "planners/stalloc/reusable_space.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

namespace spillway::planners {
namespace {

class SpaceFinder {
 public:
  SpaceFinder(const MemoryProfile& profile, std::span<const LaidBuffer> statics, Bytes pool)
      : profile_(profile), statics_(statics.begin(), statics.end()), pool_(pool.count()) {
    std::sort(statics_.begin(), statics_.end(),
              [](const LaidBuffer& a, const LaidBuffer& b) { return a.offset < b.offset; });
    name_passes();
  }

  ReusableSpaces run() {
    ReusableSpaces result;
    result.of_request.assign(profile_.requests.size(), RequestSpace::planned);
    std::map<std::pair<std::string, std::string>, std::size_t> groups;
    std::vector<std::pair<std::int64_t, std::int64_t>> times;
    for (std::size_t i = 0; i < profile_.requests.size(); ++i) {
      const ProfiledRequest& request = profile_.requests[i];
      if (!request.dynamic()) continue;
      const std::pair key{pass(request.layer_allocated), pass(request.layer_freed)};
      const bool is_planned = request.lower < profile_.period_end();
      auto found = groups.find(key);
      if (found == groups.end() && is_planned) {
        found = groups.emplace(key, times.size()).first;
        times.emplace_back(request.lower, request.upper);
      }
      result.of_request[i] =
          found == groups.end() ? RequestSpace::cached : static_cast<RequestSpace>(static_cast<int>(found->second));
      if (is_planned) include(times[found->second], request);
    }
    result.spaces.resize(times.size());
    for (const auto& [key, group] : groups) {
      result.spaces[group].name = key.first + "/" + key.second;
      result.spaces[group].ranges = idle(times[group].first, times[group].second);
    }
    return result;
  }

 private:
  void name_passes() {
    std::map<std::pair<std::size_t, std::string>, int> counts;
    for (const ProfiledLayer& layer : profile_.layers) {
      const auto& marks = profile_.iterations;
      const auto iteration =
          static_cast<std::size_t>(std::upper_bound(marks.begin(), marks.end(), layer.begin) - marks.begin());
      const int nth = counts[{iteration, layer.name}]++;
      const bool is_first = !marks.empty() && layer.begin < profile_.period_begin();
      std::string name = (is_first ? "first." : "") + layer.name + "." + std::to_string(nth);
      std::replace(name.begin(), name.end(), ' ', '.');
      passes_.push_back(std::move(name));
    }
  }
  [[nodiscard]] std::string pass(std::int32_t layer) const {
    return layer < 0 ? "outside" : passes_[static_cast<std::size_t>(layer)];
  }
  // T(a, b), and at least the lives of the group's own requests.
  void include(std::pair<std::int64_t, std::int64_t>& time, const ProfiledRequest& request) const {
    const auto layer = [&](std::int32_t id) { return profile_.layers[static_cast<std::size_t>(id)]; };
    time.first = std::min({time.first, request.lower, layer(request.layer_allocated).begin});
    time.second = std::max(time.second, request.upper);
    if (request.layer_freed >= 0) time.second = std::max(time.second, layer(request.layer_freed).end);
    // Lives on into the next period: what that begins with is in the way too.
    if (time.second > profile_.period_end()) time.first = std::min(time.first, profile_.period_begin());
  }
  [[nodiscard]] std::vector<PlanRange> idle(std::int64_t begin, std::int64_t end) const {
    std::vector<PlanRange> ranges;
    std::int64_t reached = 0;
    for (const LaidBuffer& one : statics_) {
      if (one.lower >= end || one.upper <= begin) continue;
      if (one.offset > reached) ranges.push_back({Bytes(reached), Bytes(one.offset)});
      reached = std::max(reached, one.offset + one.size);
    }
    if (pool_ > reached) ranges.push_back({Bytes(reached), Bytes(pool_)});
    return ranges;
  }

  const MemoryProfile& profile_;
  std::vector<LaidBuffer> statics_;  // by offset
  std::int64_t pool_;
  std::vector<std::string> passes_;  // by layer
};

}  // namespace

ReusableSpaces reusable_spaces(const MemoryProfile& profile, std::span<const LaidBuffer> statics, Bytes pool) {
  return SpaceFinder(profile, statics, pool).run();
}

}  // namespace spillway::planners
