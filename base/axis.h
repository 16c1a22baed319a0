// Axes of pictures: round steps, ticks, values to pixels.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/units.h"

namespace spillway {

// The least of 1, 2 and 5 times a power of ten that is at least `least` (to a thousandth). Precondition: least > 0.
double round_step(double least);
// Multiples of round_step((high - low) / target) from low to high, so at most `target` + 1; none where high <= low.
std::vector<double> round_ticks(double low, double high, int target);
// 1, 2 and 5 times the powers of ten from low to high; the powers alone where these are more than `most_decades` apart.
// Precondition: low > 0.
std::vector<double> decade_ticks(double low, double high, double most_decades);

// The values from low to high, or their logarithms, evenly along the pixels from `from` to `to`, which may run
// backwards.
class Axis {
 public:
  enum class Kind : std::uint8_t { linear, logarithmic };

  Axis(double low, double high, double from, double to, Kind kind = Kind::linear);
  // From 0 to a round number above `most`, with room for about `target` ticks.
  static Axis from_zero(double most, double from, double to, int target);
  // With some room around the values; logarithmic where they are far apart.
  static Axis around(double low, double high, double from, double to);

  [[nodiscard]] double at(double value) const;  // pixel
  [[nodiscard]] double from() const { return from_; }
  [[nodiscard]] double to() const { return to_; }
  [[nodiscard]] double low() const { return low_; }
  [[nodiscard]] double high() const { return high_; }
  // About `target` of them; on a logarithmic axis as decade_ticks has them.
  [[nodiscard]] std::vector<double> ticks(int target) const;

 private:
  [[nodiscard]] double place(double value) const;

  double low_, high_, from_, to_, step_ = 0;  // 0: not settled
  Kind kind_;
};

struct Tick {
  std::int64_t at = 0;  // ps or bytes
  std::string label;
};
// round_ticks of the unit that suits the span, from 0 to at most `span`. Nothing for span <= 0. The last label carries
// the unit, as do all of byte_ticks.
std::vector<Tick> time_ticks(Picos span, int target);
std::vector<Tick> byte_ticks(Bytes span, int target);

}  // namespace spillway
