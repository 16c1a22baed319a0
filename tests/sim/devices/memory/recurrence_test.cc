#include "sim/devices/memory/recurrence.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

namespace spillway::sim {
namespace {

struct Found {
  std::int64_t round = 0, period = 0;
};

// Rounds until a state that was remembered comes again; none within `most`.
std::optional<Found> run(const std::function<std::pair<std::uint64_t, int>(int)>& seen_and_state, int most) {
  Recurrence recurrence(seen_and_state(0).first);
  std::optional<int> remembered;
  for (int round = 1; round <= most; ++round) {
    const auto [seen, state] = seen_and_state(round);
    const Recurrence::Look look = recurrence.next(seen);
    if (look == Recurrence::Look::remember) remembered = state;
    if (look == Recurrence::Look::compare && remembered == state) return Found{round, recurrence.distance()};
  }
  return std::nullopt;
}

// Behind a beginning of any length, a period is found within two of them.
TEST(Recurrence, IsFoundSoonAfterItBegins) {
  for (const int begins : {0, 1, 30, 97, 400}) {
    for (const int period : {1, 2, 7, 16}) {
      const auto state = [=](int round) {
        const int at = round < begins ? -round - 1 : (round - begins) % period;
        return std::pair(static_cast<std::uint64_t>(at + 1000), at);
      };
      const auto found = run(state, 2000);
      ASSERT_TRUE(found);
      EXPECT_LE(found->round, begins + 2 * period + 1) << begins << " " << period;
      EXPECT_EQ(found->period % period, 0);
    }
  }
}

// What is done may look the same while the state still changes, or take turns of its own.
TEST(Recurrence, IsTheStatesNotTheLooks) {
  const auto drifts = [](int round) { return std::pair(std::uint64_t{1}, round < 300 ? round : 300); };
  const auto found = run(drifts, 2000);
  ASSERT_TRUE(found);
  EXPECT_GE(found->round, 300);
  EXPECT_LE(found->round, 1000);
  const auto longer = [](int round) { return std::pair(static_cast<std::uint64_t>(round % 3), round % 12); };
  ASSERT_TRUE(run(longer, 100));
  EXPECT_EQ(run(longer, 100)->period % 12, 0);
}

TEST(Recurrence, OfWhatNeverRepeatsThereIsNone) {
  EXPECT_FALSE(run([](int round) { return std::pair(static_cast<std::uint64_t>(round), round); }, 500));
  EXPECT_FALSE(run([](int round) { return std::pair(std::uint64_t{5}, round); }, 500));
}

}  // namespace
}  // namespace spillway::sim
