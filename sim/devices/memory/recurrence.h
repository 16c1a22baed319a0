// Finds out when something that goes on by itself does the same again, from what it is seen to do in each round.
//
//   seen       a b c d e f d e f d e f ...
//                          '- as `lag` rounds ago: the state is remembered
//                                '- and compared, every `lag` rounds from there
//
// The observed values may repeat before the state does, or while it drifts. So the remembered state is taken again
// after ever longer intervals (Brent, BIT 20, 1980, section 2).
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace spillway::sim {

class Recurrence {
 public:
  enum class Look : std::uint8_t { none, remember, compare };

  // `seen`: a digest of what was done in the round before the first.
  explicit Recurrence(std::uint64_t seen) : seen_{seen}, last_{{seen, 0}} {}

  // The action on the state behind one more round. O(1).
  [[nodiscard]] Look next(std::uint64_t seen) {
    const std::size_t round = seen_.size();
    const auto [last, is_new] = last_.emplace(seen, round);
    const std::size_t before = last->second;
    last->second = round;
    seen_.push_back(seen);
    if (lag_ > 0 && seen_[round - lag_] == seen) {
      if (round - remembered_ == patience_) return remember(round, 2 * patience_);
      return (round - remembered_) % lag_ == 0 ? Look::compare : Look::none;
    }
    lag_ = is_new ? 0 : round - before;
    return lag_ == 0 ? Look::none : remember(round, 32 * lag_);
  }

  // Rounds between the remembered one and the last: the period, if the compared state was equal.
  [[nodiscard]] std::int64_t distance() const { return static_cast<std::int64_t>(seen_.size() - 1 - remembered_); }

 private:
  Look remember(std::size_t round, std::size_t patience) {
    remembered_ = round;
    patience_ = patience;
    return Look::remember;
  }

  std::vector<std::uint64_t> seen_;
  std::unordered_map<std::uint64_t, std::size_t> last_;  // round, by what was seen
  std::size_t lag_ = 0, remembered_ = 0, patience_ = 0;
};

}  // namespace spillway::sim
