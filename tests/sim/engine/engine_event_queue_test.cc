#include "sim/engine/event_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "tests/sim/engine/engine_random.h"
#include "tests/test_size.h"

namespace spillway::sim {
namespace {

using test::Random;

// Popped order == order of (time, phase, sequence), whatever the interleaving of push and pop.
TEST(EventQueue, OrdersByTimePhaseSequence) {
  for (std::uint64_t seed = 0; seed < spillway::test::seeds(50, 200); ++seed) {
    Random random(seed);
    EventQueue queue;
    std::set<std::tuple<std::int64_t, int, std::uint32_t>> model;
    std::int64_t now = 0;
    for (std::uint32_t i = 0; i < 400; ++i) {
      if (random.one_in(2) || model.empty()) {
        const std::int64_t time = now + random.between(0, 3);
        // At the present instant only dispatch and later may be scheduled here: an earlier phase would have run.
        const EventPhase phase = static_cast<EventPhase>(random.between(time == now ? 3 : 0, 5));
        if (time == now && phase == EventPhase::dispatch) {
          queue.dispatch_now(Picos(time), 1, i);
        } else {
          queue.schedule(Picos(time), phase, 1, i);
        }
        model.emplace(time, static_cast<int>(phase), i);
      } else {
        ASSERT_FALSE(queue.empty());
        const EventQueue::Event top = queue.top(), event = queue.pop();
        ASSERT_EQ(top.key, event.key);
        const auto expected = *model.begin();
        model.erase(model.begin());
        ASSERT_EQ(std::make_tuple(event.time.count(), static_cast<int>(event.phase()), event.target), expected);
        now = event.time.count();
      }
    }
  }
}

TEST(EventQueue, RearmedTimerFiresOnce) {
  EventQueue queue;
  queue.set_timer_count(2);
  queue.arm(0, Picos(10), EventPhase::completion, 7);
  queue.arm(1, Picos(20), EventPhase::completion, 7);
  queue.arm(0, Picos(30), EventPhase::completion, 7);  // cancels the first
  EXPECT_EQ(queue.armed_at(0), Picos(30));
  std::vector<std::uint32_t> fired;
  while (!queue.empty()) {
    const EventQueue::Event event = queue.pop();
    EXPECT_EQ(event.kind, 7 | EventQueue::timer_bit);
    fired.push_back(event.target);
  }
  EXPECT_EQ(fired, (std::vector<std::uint32_t>{1, 0}));
  EXPECT_EQ(queue.armed_at(0), Picos::max());
}

TEST(EventQueue, DisarmedTimerDoesNotFire) {
  EventQueue queue;
  queue.set_timer_count(1);
  queue.arm(0, Picos(10), EventPhase::completion, 1);
  queue.disarm(0);
  EXPECT_TRUE(queue.empty());
}

// 100,000 re-armings of far-away timers leave a heap of bounded size, and the last ones still fire in order.
TEST(EventQueue, SupersededEventsDoNotPileUp) {
  EventQueue queue;
  queue.set_timer_count(8);
  for (std::uint32_t i = 0; i < 100'000; ++i) queue.arm(i % 8, Picos(1'000'000 + i), EventPhase::completion, 1);
  EXPECT_LT(queue.size_with_stale(), 4096u);
  for (std::uint32_t i = 0; i < 8; ++i) {
    ASSERT_FALSE(queue.empty());
    EXPECT_EQ(queue.pop().time, Picos(1'000'000 + 99'992 + i));
  }
  EXPECT_TRUE(queue.empty());
}

TEST(EventQueue, TieOrders) {
  const auto order = [](TieOrder tie) {
    EventQueue queue(tie);
    for (std::uint32_t i = 0; i < 64; ++i) queue.dispatch_now(Picos(5), 1, i);
    std::vector<std::uint32_t> targets;
    while (!queue.empty()) targets.push_back(queue.pop().target);
    return targets;
  };
  const auto fifo = order({});
  EXPECT_TRUE(std::is_sorted(fifo.begin(), fifo.end()));
  const auto reverse = order({TieOrder::Kind::reverse});
  EXPECT_TRUE(std::is_sorted(reverse.rbegin(), reverse.rend()));
  const auto shuffle = order({TieOrder::Kind::shuffle, 1}), other = order({TieOrder::Kind::shuffle, 2});
  EXPECT_TRUE(std::is_permutation(shuffle.begin(), shuffle.end(), fifo.begin()));
  EXPECT_NE(shuffle, fifo);
  EXPECT_NE(shuffle, other);
  EXPECT_EQ(shuffle, order({TieOrder::Kind::shuffle, 1}));
}

TEST(EventQueue, ParsesTieOrder) {
  EXPECT_EQ(TieOrder::parse("fifo").kind, TieOrder::Kind::fifo);
  EXPECT_EQ(TieOrder::parse("reverse").kind, TieOrder::Kind::reverse);
  EXPECT_EQ(TieOrder::parse("shuffle:18446744073709551615").seed, ~std::uint64_t{0});
  for (const char* bad :
       {"", "lifo", "shuffle", "shuffle:", "shuffle:-1", "shuffle:1x", "shuffle:18446744073709551616"})
    EXPECT_THROW(TieOrder::parse(bad), InputError) << bad;
}

// A bijection: no two of the first 100,000 sequence numbers share a key, and keys leave the phase bits alone.
TEST(EventQueue, TieKeysAreDistinct) {
  for (const TieOrder tie : {TieOrder{TieOrder::Kind::reverse}, TieOrder{TieOrder::Kind::shuffle, 42}}) {
    std::set<std::uint64_t> keys;
    for (std::uint64_t sequence = 0; sequence < 100'000; ++sequence) keys.insert(tie.key(sequence));
    EXPECT_EQ(keys.size(), 100'000u);
    EXPECT_LT(*keys.rbegin(), std::uint64_t{1} << 60);
  }
}

}  // namespace
}  // namespace spillway::sim
