#include "gui/span_lane.h"

#include <algorithm>
#include <cmath>

namespace spillway::gui {
namespace {

constexpr double smallest_block = 2;  // pixels

}  // namespace

void SpanLane::reserve(std::size_t count) {
  begins_.reserve(count);
  ends_.reserve(count);
  colors_.reserve(count);
  ids_.reserve(count);
  sums_.reserve(count / stride + 1);
}

void SpanLane::add(std::int64_t begin, std::int64_t end, std::uint8_t color, std::uint32_t id) {
  if (begins_.size() % stride == 0) sums_.push_back(running_);
  begins_.push_back(begin);
  ends_.push_back(end);
  colors_.push_back(color);
  ids_.push_back(id);
  running_[color] += std::max<std::int64_t>(end - begin, 1);  // what takes no time still shows
}

SpanLane::Sums SpanLane::sums(std::size_t first, std::size_t last) const {
  Sums total{};
  const auto add = [&](std::size_t from, std::size_t until) {
    for (std::size_t i = from; i < until; ++i) total[colors_[i]] += std::max<std::int64_t>(ends_[i] - begins_[i], 1);
  };
  const std::size_t low = (first + stride - 1) / stride, high = last / stride;
  if (low >= high) {
    add(first, last);
    return total;
  }
  const std::size_t top = std::min(high, sums_.size() - 1);
  add(first, low * stride);
  for (std::size_t color = 0; color < total.size(); ++color) total[color] += sums_[top][color] - sums_[low][color];
  add(top * stride, last);
  return total;
}

std::int64_t SpanLane::busy(std::size_t first, std::size_t last) const {
  std::int64_t total = 0;
  for (const std::int64_t part : sums(first, last)) total += part;
  return total;
}

// Around the guess, as columns hold about as many spans as their neighbours: steps that double, then a binary search.
std::size_t SpanLane::first_not_before(std::size_t from, std::int64_t time, std::size_t guess) const {
  const std::size_t count = begins_.size();
  std::size_t low = from, high = count, step = 4;
  const std::size_t near = std::min(from + guess, count - 1);
  if (begins_[near] < time) {
    low = near;
    while (low + step < count && begins_[low + step] < time) {
      low += step;
      step *= 2;
    }
    high = std::min(low + step + 1, count);
  } else {
    high = near;
    while (high > from + step && begins_[high - step] >= time) {
      high -= step;
      step *= 2;
    }
    low = high > from + step ? high - step : from;
    high = std::min(high + 1, count);
  }
  const auto first = begins_.begin() + static_cast<std::ptrdiff_t>(low);
  return static_cast<std::size_t>(std::lower_bound(first, begins_.begin() + static_cast<std::ptrdiff_t>(high), time) -
                                  begins_.begin());
}

void SpanLane::fold(const TimeAxis& axis, std::vector<FoldedPiece>& into) const {
  const TimeRange view = axis.view();
  std::size_t i = static_cast<std::size_t>(std::upper_bound(ends_.begin(), ends_.end(), view.begin) - ends_.begin());
  const std::size_t first_piece = into.size();
  double reached = 0;
  std::size_t guess = 1;  // spans in the column before
  while (i < begins_.size() && begins_[i] < view.end) {
    const double left = std::max(axis.x(begins_[i]), reached), right = std::min(axis.x(ends_[i]), axis.width());
    if (right - left >= smallest_block) {
      into.push_back({left, right - left, colors_[i], fold_levels - 1, static_cast<std::int64_t>(i)});
      reached = right;
      ++i;
      continue;
    }
    const double column = std::max(std::floor(axis.x(begins_[i])), std::floor(reached));
    if (column >= axis.width()) break;
    std::size_t last = first_not_before(i, axis.time(column + 1), guess);
    // Only the last that begins in the column can reach far beyond it.
    if (last > i + 1 && axis.x(ends_[last - 1]) - axis.x(begins_[last - 1]) >= smallest_block) --last;
    last = std::max(last, i + 1);
    guess = last - i;
    const Sums parts = sums(i, last);
    double busy = 0;
    for (const std::int64_t part : parts) busy += static_cast<double>(part);
    const auto color = static_cast<std::uint8_t>(std::max_element(parts.begin(), parts.end()) - parts.begin());
    const auto level =
        static_cast<std::uint8_t>(std::clamp(static_cast<int>(busy * axis.scale() * fold_levels), 0, fold_levels - 1));
    const double begin = std::max(column, reached), end = std::min(column + 1, axis.width());
    if (end > begin) {
      FoldedPiece* const before = into.size() > first_piece ? &into.back() : nullptr;
      const bool goes_on = before != nullptr && before->span < 0 && before->color == color && before->level == level &&
                           before->x + before->width == begin;
      if (goes_on)
        before->width += end - begin;
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
