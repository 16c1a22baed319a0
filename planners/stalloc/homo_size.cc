#include "planners/stalloc/homo_size.h"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <utility>

namespace spillway::planners {
namespace {

constexpr int equal_trials = 5;

// Cuts the time of all requests into equal stretches.
struct Stretches {
  static constexpr std::size_t count = 256;
  std::int64_t begin = 0, length = 1;

  explicit Stretches(std::span<const LayoutBuffer> requests) {
    if (requests.empty()) return;
    std::int64_t end = std::numeric_limits<std::int64_t>::min();
    begin = std::numeric_limits<std::int64_t>::max();
    for (const LayoutBuffer& request : requests) {
      begin = std::min(begin, request.lower);
      end = std::max(end, request.upper);
    }
    length = (end - begin) / static_cast<std::int64_t>(count) + 1;
  }
  [[nodiscard]] std::size_t of(std::int64_t time) const { return static_cast<std::size_t>((time - begin) / length); }
  [[nodiscard]] std::int64_t start(std::size_t stretch) const {
    return begin + length * static_cast<std::int64_t>(stretch);
  }
};

// The top of what a layer holds, as a step function of time.
class TopProfile {
 public:
  // The least top of each stretch of a life tells most layers that have no room without a look at the steps.
  [[nodiscard]] bool surely_above(const Stretches& stretches, std::int64_t lower, std::int64_t upper, std::int64_t room,
                                  std::int64_t& looks) const {
    for (std::size_t s = stretches.of(lower); s <= stretches.of(upper - 1); ++s, ++looks)
      if (least_[s] > room) return true;
    return false;
  }
  [[nodiscard]] std::int64_t highest(std::int64_t lower, std::int64_t upper, std::int64_t too_high,
                                     std::int64_t& looks) const {
    std::int64_t highest = 0;
    for (auto at = std::prev(steps_.upper_bound(lower)); at != steps_.end() && at->first < upper; ++at, ++looks) {
      highest = std::max(highest, at->second);
      if (highest > too_high) break;
    }
    return highest;
  }
  // What a raise() replaced, to take it back: the latest first.
  struct Before {
    std::int64_t lower = 0, upper = 0;
    std::vector<std::pair<std::int64_t, std::int64_t>> steps;  // from lower to upper, both included
    std::vector<std::int64_t> least;                           // of the stretches touched
  };
  Before raise(const Stretches& stretches, std::int64_t lower, std::int64_t upper, std::int64_t top) {
    const std::int64_t after = std::prev(steps_.upper_bound(upper))->second;
    const auto begin = steps_.lower_bound(lower), end = steps_.upper_bound(upper);
    const std::size_t first = stretches.of(lower), last = stretches.of(upper - 1);
    Before before{lower, upper, {begin, end}, {least_.begin() + first, least_.begin() + last + 1}};
    auto at = steps_.erase(begin, end);
    at = steps_.insert(at, {upper, after});
    steps_.insert(at, {lower, top});
    std::fill(least_.begin() + first, least_.begin() + last + 1, top);
    least_[first] = least_in(stretches, first);
    if (last > first) least_[last] = least_in(stretches, last);
    return before;
  }
  void restore(const Stretches& stretches, const Before& before) {
    steps_.erase(steps_.lower_bound(before.lower), steps_.upper_bound(before.upper));
    steps_.insert(before.steps.begin(), before.steps.end());
    std::copy(before.least.begin(), before.least.end(), least_.begin() + stretches.of(before.lower));
  }

 private:
  [[nodiscard]] std::int64_t least_in(const Stretches& stretches, std::size_t stretch) const {
    const std::int64_t end = stretches.start(stretch + 1);
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    for (auto at = std::prev(steps_.upper_bound(stretches.start(stretch))); at != steps_.end() && at->first < end; ++at)
      least = std::min(least, at->second);
    return least;
  }

  std::map<std::int64_t, std::int64_t> steps_{{std::numeric_limits<std::int64_t>::min(), 0}};
  std::array<std::int64_t, Stretches::count> least_{};
};

class SizeLayers {
 public:
  SizeLayers(std::span<const LayoutBuffer> requests, std::int64_t most_looks)
      : requests_(requests), stretches_(requests), offsets_(requests.size()), most_looks_(most_looks) {}

  std::vector<std::int64_t> run() {
    std::map<std::int64_t, std::vector<std::size_t>, std::greater<>> sizes;
    for (std::size_t i = 0; i < requests_.size(); ++i)
      if (requests_[i].size > 0) sizes[requests_[i].size].push_back(i);
    for (const auto& [size, members] : sizes) {
      add(size, members);
      if (gave_up()) return {};
    }
    return std::move(offsets_);
  }

 private:
  struct Layer {
    std::int64_t offset = 0, size = 0;
    TopProfile top;
  };
  struct Change {
    std::size_t layer = 0;
    TopProfile::Before before;
  };

  [[nodiscard]] bool gave_up() const { return looks_ > most_looks_; }

  void add(std::int64_t size, const std::vector<std::size_t>& members) {
    std::vector<std::size_t> order;
    for (const auto& layer : layers_of(requests_, members)) order.insert(order.end(), layer.begin(), layer.end());
    std::vector<std::size_t> best = order;
    std::size_t least = members.size() + 1;
    for (int equal = 0; equal <= equal_trials && !gave_up();) {
      std::vector<Change> changes;
      const std::vector<std::size_t> left = insert(order, changes);
      for (auto at = changes.rbegin(); at != changes.rend(); ++at)
        layers_[at->layer].top.restore(stretches_, at->before);
      const std::size_t extra = layers_of(requests_, left).size();
      if (extra > least) break;
      equal = extra == least ? equal + 1 : 0;
      if (extra < least) best = order;
      least = extra;
      if (left.empty()) break;
      const std::set<std::size_t> waiting(left.begin(), left.end());
      std::stable_partition(order.begin(), order.end(), [&](std::size_t i) { return waiting.count(i) > 0; });
    }
    std::vector<Change> kept;
    for (const auto& layer : layers_of(requests_, insert(best, kept))) open(size, layer);
  }

  // Places what fits; the rest is returned in order.
  std::vector<std::size_t> insert(const std::vector<std::size_t>& order, std::vector<Change>& changes) {
    std::vector<std::size_t> left;
    for (const std::size_t i : order) {
      const LayoutBuffer& request = requests_[i];
      bool placed = false;
      for (std::size_t l = 0; l < layers_.size() && !placed && !gave_up(); ++l, ++looks_) {
        Layer& layer = layers_[l];
        const std::int64_t room = layer.size - request.size;
        if (room < 0 || layer.top.surely_above(stretches_, request.lower, request.upper, room, looks_)) continue;
        const std::int64_t top = layer.top.highest(request.lower, request.upper, room, looks_);
        if (top > room) continue;
        changes.push_back({l, layer.top.raise(stretches_, request.lower, request.upper, top + request.size)});
        offsets_[i] = layer.offset + top;
        placed = true;
      }
      if (!placed) left.push_back(i);
    }
    return left;
  }

  void open(std::int64_t size, const std::vector<std::size_t>& members) {
    Layer layer;
    layer.offset = height_;
    layer.size = size;
    for (const std::size_t i : members) {
      layer.top.raise(stretches_, requests_[i].lower, requests_[i].upper, size);
      offsets_[i] = height_;
    }
    layers_.push_back(std::move(layer));
    height_ += size;
  }

  std::span<const LayoutBuffer> requests_;
  Stretches stretches_;
  std::vector<std::int64_t> offsets_;
  std::vector<Layer> layers_;
  std::int64_t height_ = 0, looks_ = 0, most_looks_;
};

}  // namespace

std::vector<std::vector<std::size_t>> layers_of(std::span<const LayoutBuffer> all, std::vector<std::size_t> requests) {
  std::stable_sort(requests.begin(), requests.end(),
                   [&](std::size_t a, std::size_t b) { return all[a].lower < all[b].lower; });
  std::vector<std::vector<std::size_t>> layers;
  std::set<std::pair<std::int64_t, std::size_t>> ends;  // of layers
  for (const std::size_t i : requests) {
    const auto behind = ends.upper_bound({all[i].lower, std::numeric_limits<std::size_t>::max()});
    std::size_t layer = layers.size();
    if (behind == ends.begin()) {
      layers.emplace_back();
    } else {
      layer = std::prev(behind)->second;
      ends.erase(std::prev(behind));
    }
    layers[layer].push_back(i);
    ends.insert({all[i].upper, layer});
  }
  return layers;
}

std::vector<std::int64_t> layer_by_size(std::span<const LayoutBuffer> requests, std::int64_t most_looks) {
  return SizeLayers(requests, most_looks).run();
}

}  // namespace spillway::planners
