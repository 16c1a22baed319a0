#include "gui/canvas/span_lane.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace spillway::gui {
namespace {

constexpr double smallest_block = 2;     // pixels
constexpr double edge_tolerance = 0.25;  // pixels

}  // namespace

void SpanLane::reserve(std::size_t spans) {
  begins_.reserve(spans);
  ends_.reserve(spans);
  colors_.reserve(spans);
  ids_.reserve(spans);
}

void SpanLane::add(std::int64_t begin, std::int64_t end, std::uint8_t color, std::uint32_t id) {
  if (begins_.size() % stride == 0) {
    sums_.push_back(running_);
    block_begins_.push_back(begin);
  }
  begins_.push_back(begin);
  ends_.push_back(end);
  colors_.push_back(color);
  ids_.push_back(id);
  running_[color] += std::max<std::int64_t>(end - begin, 1);  // what takes no time still shows
}

void SpanLane::add_to(Sums& total, std::size_t first, std::size_t last) const {
  for (std::size_t i = first; i < last; ++i) total[colors_[i]] += std::max<std::int64_t>(ends_[i] - begins_[i], 1);
}

SpanLane::Sums SpanLane::sums_before(std::size_t last) const {
  if (last >= begins_.size()) return running_;
  Sums total = sums_[last / stride];
  add_to(total, last / stride * stride, last);
  return total;
}

std::int64_t SpanLane::busy(std::size_t first, std::size_t last) const {
  const Sums before = sums_before(first), until = sums_before(last);
  std::int64_t total = 0;
  for (std::size_t color = 0; color < until.size(); ++color) total += until[color] - before[color];
  return total;
}

bool SpanLane::is_short(std::size_t block, std::int64_t tolerance) const {
  return block + 1 < block_begins_.size() && block_begins_[block + 1] - block_begins_[block] <= tolerance;
}

// Among the blocks' begins first, around the guess, as columns hold about as many spans as their neighbours: steps
// that double, then a binary search; then inside the one block.
std::size_t SpanLane::first_not_before(std::size_t from, std::int64_t time, std::size_t guess,
                                       std::int64_t tolerance) const {
  const auto begins = block_begins_.begin();
  const std::size_t count = block_begins_.size(), first = from / stride + 1;
  std::size_t low = first, high = count, step = 1;  // the first block at or after `time` is in [low, high]
  const std::size_t near = std::min(first + guess / stride, count);
  if (near < count && block_begins_[near] < time) {
    low = near + 1;
    while (low + step < count && block_begins_[low + step] < time) {
      low += step + 1;
      step *= 2;
    }
    high = std::min(low + step, count);
  } else {
    high = near;
    while (high > first + step && block_begins_[high - step] >= time) {
      high -= step;
      step *= 2;
    }
    low = high > first + step ? high - step : first;
  }
  const auto at = [](std::size_t i) { return static_cast<std::ptrdiff_t>(i); };
  const auto block =
      high < low ? low : static_cast<std::size_t>(std::lower_bound(begins + at(low), begins + at(high), time) - begins);
  if (is_short(block - 1, tolerance)) return block * stride;
  const std::size_t begin = std::max(from, (block - 1) * stride), end = std::min(block * stride, begins_.size());
  return static_cast<std::size_t>(std::lower_bound(begins_.begin() + at(begin), begins_.begin() + at(end), time) -
                                  begins_.begin());
}

void SpanLane::fold(const TimeAxis& axis, std::vector<FoldedPiece>& into) const {
  const TimeRange view = axis.view();
  std::size_t i = static_cast<std::size_t>(std::upper_bound(ends_.begin(), ends_.end(), view.begin) - ends_.begin());
  const std::size_t first_piece = into.size();
  double reached = 0;
  std::size_t guess = 1;  // spans in the column before
  Sums before{};          // of spans [0, summed)
  std::size_t summed = 0;
  const auto tolerance = static_cast<std::int64_t>(edge_tolerance / axis.scale());
  while (i < begins_.size()) {
    // Of a short block's spans nothing need be known but where it begins.
    const bool is_in_short = i % stride == 0 && is_short(i / stride, tolerance);
    const std::int64_t from = is_in_short ? block_begins_[i / stride] : begins_[i];
    if (from >= view.end) break;
    const double left = std::max(axis.x(from), reached);
    const double right = is_in_short ? left : std::min(axis.x(ends_[i]), axis.width());
    if (right - left >= smallest_block) {
      into.push_back({left, right - left, colors_[i], fold_levels - 1, static_cast<std::int64_t>(i)});
      reached = right;
      ++i;
      continue;
    }
    const double column = std::max(std::floor(axis.x(from)), std::floor(reached));
    if (column >= axis.width()) break;
    std::size_t last = first_not_before(i, axis.time(column + 1), guess, tolerance);
    // Only the last that begins in the column can reach far beyond it.
    const bool ends_short = last % stride == 0 && is_short(last / stride - 1, tolerance);
    if (!ends_short && last > i + 1 && axis.x(ends_[last - 1]) - axis.x(begins_[last - 1]) >= smallest_block) --last;
    last = std::max(last, i + 1);
    guess = last - i;
    Sums parts{};
    if (last - i <= stride) {
      add_to(parts, i, last);
    } else {
      if (summed != i) before = sums_before(i);
      const Sums until = sums_before(last);
      for (std::size_t color = 0; color < parts.size(); ++color) parts[color] = until[color] - before[color];
      before = until;
      summed = last;
    }
    const auto busy = static_cast<double>(std::accumulate(parts.begin(), parts.end(), std::int64_t{0}));
    const auto color = static_cast<std::uint8_t>(std::max_element(parts.begin(), parts.end()) - parts.begin());
    const auto level =
        static_cast<std::uint8_t>(std::clamp(static_cast<int>(busy * axis.scale() * fold_levels), 0, fold_levels - 1));
    const double begin = std::max(column, reached), end = std::min(column + 1, axis.width());
    if (end > begin) {
      FoldedPiece* const last_piece = into.size() > first_piece ? &into.back() : nullptr;
      const bool goes_on = last_piece != nullptr && last_piece->span < 0 && last_piece->color == color &&
                           last_piece->level == level && last_piece->x + last_piece->width == begin;
      if (goes_on)
        last_piece->width += end - begin;
      else
        into.push_back({begin, end - begin, color, level, -1});
      reached = end;
    }
    i = last;
  }
}

std::int64_t SpanLane::at(std::int64_t time, std::int64_t reach) const {
  const auto i = static_cast<std::size_t>(std::upper_bound(ends_.begin(), ends_.end(), time - reach) - ends_.begin());
  std::int64_t best = -1, distance = reach + 1;
  for (std::size_t k = i; k < begins_.size() && begins_[k] <= time + reach; ++k) {
    const std::int64_t away = time < begins_[k] ? begins_[k] - time : (time >= ends_[k] ? time - ends_[k] : 0);
    if (away < distance) {
      distance = away;
      best = static_cast<std::int64_t>(k);
    }
    if (distance == 0) break;
  }
  return best;
}

std::array<std::size_t, 2> SpanLane::within(TimeRange range) const {
  const auto first = std::upper_bound(ends_.begin(), ends_.end(), range.begin) - ends_.begin();
  const auto last = std::lower_bound(begins_.begin(), begins_.end(), range.end) - begins_.begin();
  return {static_cast<std::size_t>(first), static_cast<std::size_t>(std::max(first, last))};
}

}  // namespace spillway::gui
