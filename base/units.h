// Strong types for the quantities every floor speaks: time, bytes, rates, flops, addresses.
//
// A quantity is an integer in its own type. Adding seconds to bytes does not compile;
// mixing units inside one quantity can't happen because each type has exactly one unit.
//
//   Picos  time, picoseconds, int64 (106 days). One byte at 64 GB/s lasts 15.6 ps, so a
//          nanosecond clock would bias link arithmetic.
//   Bytes  int64; negative values only as differences.
//   Flops  int64 floating-point operations (a multiply-add counts as two).
//   Rate   transfer speed, unit 2^-20 byte per nanosecond (about 954 B/s); int64.
//   Addr   device or host address, uint64.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>

#include "base/floors.h"

namespace spillway {

template <class Tag, class Rep>
class Quantity {
 public:
  using rep = Rep;
  constexpr Quantity() = default;
  explicit constexpr Quantity(Rep count) : count_(count) {}
  [[nodiscard]] constexpr Rep count() const { return count_; }

  friend constexpr auto operator<=>(Quantity, Quantity) = default;
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return Quantity(a.count_ + b.count_); }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return Quantity(a.count_ - b.count_); }
  friend constexpr Quantity operator*(Quantity a, Rep k) { return Quantity(a.count_ * k); }
  friend constexpr Quantity operator*(Rep k, Quantity a) { return Quantity(a.count_ * k); }
  friend constexpr Quantity operator/(Quantity a, Rep k) { return Quantity(a.count_ / k); }
  friend constexpr Rep operator/(Quantity a, Quantity b) { return a.count_ / b.count_; }
  constexpr Quantity operator-() const { return Quantity(-count_); }
  constexpr Quantity& operator+=(Quantity b) {
    count_ += b.count_;
    return *this;
  }
  constexpr Quantity& operator-=(Quantity b) {
    count_ -= b.count_;
    return *this;
  }

  static constexpr Quantity max() { return Quantity(std::numeric_limits<Rep>::max()); }
  static constexpr Quantity zero() { return Quantity(0); }

 private:
  Rep count_ = 0;
};

using Picos = Quantity<struct PicosTag, std::int64_t>;
using Bytes = Quantity<struct BytesTag, std::int64_t>;
using Flops = Quantity<struct FlopsTag, std::int64_t>;
using Rate = Quantity<struct RateTag, std::int64_t>;
using Addr = Quantity<struct AddrTag, std::uint64_t>;

inline constexpr Picos picos_per_nanosecond{1'000};
inline constexpr Picos picos_per_microsecond{1'000'000};
inline constexpr Picos picos_per_millisecond{1'000'000'000};
inline constexpr Picos picos_per_second{1'000'000'000'000};

constexpr Picos nanoseconds(std::int64_t n) { return picos_per_nanosecond * n; }
constexpr Picos microseconds(std::int64_t n) { return picos_per_microsecond * n; }
constexpr Picos milliseconds(std::int64_t n) { return picos_per_millisecond * n; }

// For display and cost models; never inside the event loop.
constexpr double to_seconds(Picos t) { return static_cast<double>(t.count()) * 1e-12; }
// Rounds to the nearest picosecond. Precondition: |seconds| < 9.2e6.
constexpr Picos from_seconds(double seconds) {
  return Picos(static_cast<std::int64_t>(seconds * 1e12 + (seconds < 0 ? -0.5 : 0.5)));
}

// Rate from bytes per second, rounded to nearest 2^-20 B/ns; a positive speed never becomes 0.
constexpr Rate rate_from_bytes_per_second(double bytes_per_second) {
  const double units = bytes_per_second * 1e-9 * 1048576.0;
  const auto rounded = static_cast<std::int64_t>(units + 0.5);
  return Rate(bytes_per_second > 0 && rounded == 0 ? 1 : rounded);
}
constexpr double to_bytes_per_second(Rate r) { return static_cast<double>(r.count()) / 1048576.0 * 1e9; }

}  // namespace spillway
