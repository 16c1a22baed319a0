// A run's fingerprint: the digest of its lanes' digests, in the order of the lanes.
//
// A lane's digest is of its activities in the lane's order, each by
//
//   the time since the start of the one before it on the lane,
//   how long it lasted,
//   what it is (a delay, a flow, an instant; whether it still runs).
//
// Who it is, is said by the lane and the place in it. The lane's first start counts from the run's earliest start, so
// all of it moves in time without a change. Since times are relative, what repeats has the same digest wherever it
// stands, and an algebra holds that needs no notion of a period when the whole is written out:
//
//   LaneDigest step = ...;                    of one period
//   step.repeated(n, period)                  = of the n periods written out, start to start `period` apart
//   before.append(step, at)                   = of one followed by the other, whose times begin at `at`
//
// in log2(n) steps, and they nest (layers in micro-batches in steps). A replay that runs repeated work once and folds
// the rest therefore has the fingerprint of all of it. Lanes of ranks that do the same have equal digests. The
// fingerprint ignores the order in which events of one instant were handled: for that see event_word().
#pragma once

#include <bit>
#include <cstdint>
#include <span>

#include "base/digest.h"
#include "base/units.h"

namespace spillway::sim {

class LaneDigest {
 public:
  constexpr LaneDigest() = default;

  // The next of the lane. `kind`: any number; kinds differ in the digest.
  constexpr void add(Picos start, Picos length, std::uint32_t kind) {
    const std::uint64_t what =
        static_cast<std::uint64_t>(length.count()) * odd_multiplier + kind * other_odd_multiplier;
    if (empty_) {
      *this = LaneDigest(start, what);
      return;
    }
    rest_.add(word(start - last_start_, what));
    last_start_ = start;
  }

  // Then `next`, all its times later by `shift`.
  constexpr void append(const LaneDigest& next, Picos shift = Picos{}) {
    if (next.empty_) return;
    if (empty_) {
      *this = next;
      first_start_ += shift;
    } else {
      rest_.add(word(next.first_start_ + shift - last_start_, next.first_));
      rest_.append(next.rest_);
    }
    last_start_ = next.last_start_ + shift;
  }

  // So many of these, each `period` after the one before it.
  [[nodiscard]] constexpr LaneDigest repeated(std::uint64_t times, Picos period) const {
    if (times == 0 || empty_) return {};
    SequenceDigest another;
    another.add(word(first_start_ + period - last_start_, first_));
    another.append(rest_);
    LaneDigest all = *this;
    all.rest_.append(another.repeated(times - 1));
    all.last_start_ += period * static_cast<std::int64_t>(times - 1);
    return all;
  }

  [[nodiscard]] constexpr bool empty() const { return empty_; }
  [[nodiscard]] constexpr Picos first_start() const { return first_start_; }
  [[nodiscard]] constexpr std::uint64_t value(Picos origin) const {
    if (empty_) return 0;
    Digest digest;
    digest.add(word(first_start_ - origin, first_));
    digest.add(rest_.value());
    return digest.value();
  }

  friend constexpr bool operator==(const LaneDigest&, const LaneDigest&) = default;

 private:
  constexpr LaneDigest(Picos start, std::uint64_t what)
      : empty_(false), first_start_(start), last_start_(start), first_(what) {}
  static constexpr std::uint64_t word(Picos since, std::uint64_t what) {
    return std::rotl(static_cast<std::uint64_t>(since.count()) * golden_gamma, 32) ^ what;
  }

  bool empty_ = true;
  Picos first_start_{}, last_start_{};
  std::uint64_t first_ = 0;  // what the first is
  SequenceDigest rest_;
};

// 0 where nothing has started.
constexpr std::uint64_t fingerprint(std::span<const LaneDigest> lanes) {
  Picos origin = Picos::max();
  for (const LaneDigest& lane : lanes)
    if (!lane.empty() && lane.first_start() < origin) origin = lane.first_start();
  if (origin == Picos::max()) return 0;
  Digest digest;
  for (const LaneDigest& lane : lanes) digest.add(lane.value(origin));
  return digest.value();
}

// An event as it is handled. A Digest of these changes with the tie order: it shows whether two runs went the same way;
// the fingerprint shows whether they had the same outcome.
constexpr std::uint64_t event_word(Picos time, std::uint32_t kind, std::uint32_t target) {
  return static_cast<std::uint64_t>(time.count()) ^ std::rotl((std::uint64_t{kind} << 32) | target, 40);
}

}  // namespace spillway::sim
