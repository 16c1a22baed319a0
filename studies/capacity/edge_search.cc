#include "studies/capacity/edge_search.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace spillway::studies {
namespace {

constexpr int most_returns = 4;

class Search {
 public:
  Search(std::int64_t count, const std::function<EdgeTrial(std::int64_t)>& attempt)
      : count_(count), attempt_(attempt) {}

  VerdictEdge run(std::int64_t first) {
    expand(first);
    for (int i = 0; i < most_returns; ++i) {
      close_in();
      if (!lower_ || !upper_ || *upper_ + 1 >= count_ || !is_lower(*upper_ + 1)) break;
      monotone_ = false;
      lower_ = *upper_ + 1;
      upper_.reset();
      rise();
    }
    return {lower_, upper_, monotone_, static_cast<std::int64_t>(trials_.size())};
  }

 private:
  bool is_lower(std::int64_t at) {
    auto known = trials_.find(at);
    if (known == trials_.end()) known = trials_.emplace(at, attempt_(at)).first;
    return known->second.is_lower;
  }

  void expand(std::int64_t first) {
    if (is_lower(first)) {
      lower_ = first;
      return rise();
    }
    upper_ = first;
    while (*upper_ > 0 && !lower_) {
      const std::int64_t next = guess_between(-1, *upper_).value_or(*upper_ / 2);
      if (is_lower(next))
        lower_ = next;
      else
        upper_ = next;
    }
  }

  void rise() {
    while (*lower_ + 1 < count_ && !upper_) {
      const std::int64_t doubled = std::min(count_ - 1, 2 * *lower_ + 1);
      const std::int64_t farthest = doubled > (count_ - 1) / 2 ? count_ - 1 : 2 * doubled + 1;
      const std::int64_t next = guess_between(*lower_, farthest + 1).value_or(doubled);
      if (is_lower(next))
        lower_ = next;
      else
        upper_ = next;
    }
  }

  void close_in() {
    bool halves = false;
    while (lower_ && upper_ && *lower_ + 1 < *upper_) {
      const std::int64_t width = *upper_ - *lower_, middle = *lower_ + width / 2;
      const std::int64_t next = halves ? middle : guess_between(*lower_, *upper_).value_or(middle);
      if (is_lower(next))
        lower_ = next;
      else
        upper_ = next;
      halves = *upper_ - *lower_ > width / 2;
    }
  }

  // Within (low, high), where the line through two trials next to the edge crosses 0: the last candidate before it, or
  // the one behind it if that is known already.
  [[nodiscard]] std::optional<std::int64_t> guess_between(std::int64_t low, std::int64_t high) const {
    const auto measured = [](const auto& trial) { return trial.second.measure.has_value(); };
    // The two measured trials nearest to the edge: one on either side, or the two outermost of the only side known.
    std::optional<std::pair<std::int64_t, double>> a, b;
    for (const auto& trial : trials_) {
      if (!measured(trial)) continue;
      const std::pair<std::int64_t, double> point{trial.first, *trial.second.measure};
      if (!a) {
        a = point;
      } else if (!b) {
        b = point;
      } else if (upper_ && trial.first > *upper_) {
        break;
      } else {
        a = b;
        b = point;
      }
    }
    if (!a || !b || b->second <= a->second) return std::nullopt;
    const double slope = (b->second - a->second) / static_cast<double>(b->first - a->first);
    const double crossing = static_cast<double>(a->first) - a->second / slope;
    if (!std::isfinite(crossing) || std::abs(crossing) > 1e15) return std::nullopt;
    std::int64_t at = static_cast<std::int64_t>(std::floor(crossing));
    if (at == low) ++at;
    return std::clamp(at, low + 1, high - 1);
  }

  std::int64_t count_;
  const std::function<EdgeTrial(std::int64_t)>& attempt_;
  std::map<std::int64_t, EdgeTrial> trials_;
  std::optional<std::int64_t> lower_, upper_;
  bool monotone_ = true;
};

}  // namespace

VerdictEdge find_edge(std::int64_t first, std::int64_t count, const std::function<EdgeTrial(std::int64_t)>& attempt) {
  return Search(count, attempt).run(std::clamp<std::int64_t>(first, 0, count - 1));
}

}  // namespace spillway::studies
