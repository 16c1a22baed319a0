// The future: a binary heap of small values, ordered by (time, phase, tie key).
//
// Everything that falls on one instant is handled phase by phase:
//
//   completion   activities end; what they held is known to be over, before anything new begins
//   free         memory and slots go back, so that an allocation at the same instant can use them
//   allocation   memory is taken
//   dispatch     activities whose conditions hold start
//   resolve      rates of shared links are solved, once, after all starts and ends of the instant
//   sampling     observers look at a settled instant
//
// Within one phase events are handled in the order they were scheduled (fifo); TieOrder changes that
// order on purpose, to reveal results that depend on it without saying so.
//
// Cancelling: a *timer* is armed and disarmed; the sequence number of its latest arming is its generation,
// so a superseded event is recognised when it surfaces and dropped. There is no decrease-key.
//
// Cost: push and pop O(log n), 24 bytes per event; an event for the present instant's dispatch phase goes
// through a ring instead (fifo only). Popping leaves a hole at the root that the next push fills,
// so the common pop-then-push costs one sift instead of two. Value type: a copy is an equal future.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/input_error.h"
#include "base/splitmix64.h"
#include "base/units.h"
#include "sim/engine/wide.h"

namespace spillway::sim {

enum class EventPhase : std::uint8_t { completion, free, allocation, dispatch, resolve, sampling };

struct TieOrder {
  enum class Kind : std::uint8_t { fifo, reverse, shuffle };
  Kind kind = Kind::fifo;
  std::uint64_t seed = 0;  // shuffle only

  // "fifo", "reverse" or "shuffle:SEED" (a decimal number below 2^64); anything else is an InputError.
  static TieOrder parse(std::string_view text);
  // A bijection of the sequence numbers below 2^60 on themselves, so that no two events ever tie.
  [[nodiscard]] constexpr std::uint64_t key(std::uint64_t sequence) const {
    constexpr std::uint64_t mask = (std::uint64_t{1} << 60) - 1;
    if (kind == Kind::fifo) return sequence;
    if (kind == Kind::reverse) return mask - sequence;
    std::uint64_t x = (sequence ^ seed) & mask;
    x = (x * golden_gamma + (seed >> 3)) & mask;  // odd multiplier: invertible modulo 2^60
    x ^= x >> 31;
    x = (x * odd_multiplier) & mask;
    return x ^ (x >> 29);
  }
};

class EventQueue {
 public:
  struct Event {
    Picos time{};
    std::uint64_t key = 0;  // phase in the top 4 bits, tie key below
    std::uint32_t kind = 0;
    std::uint32_t target = 0;
    [[nodiscard]] EventPhase phase() const { return static_cast<EventPhase>(key >> 60); }
  };

  explicit EventQueue(TieOrder tie_order = {}) : tie_order_(tie_order) {}

  // Plain event, can't be cancelled. kind < timer_bit. time must not lie before the last popped event.
  void schedule(Picos time, EventPhase phase, std::uint32_t kind, std::uint32_t target) {
    push(Event{time, make_key(phase), kind, target});
  }
  // The same at the present instant in phase dispatch, without the heap when ties are fifo.
  void dispatch_now(Picos now, std::uint32_t kind, std::uint32_t target) {
    if (tie_order_.kind != TieOrder::Kind::fifo) return schedule(now, EventPhase::dispatch, kind, target);
    ring_.push_back(Event{now, make_key(EventPhase::dispatch), kind, target});
  }

  // Timers are numbered from 0; `kind` of a popped timer event carries timer_bit, `target` is the timer.
  static constexpr std::uint32_t timer_bit = 0x80000000u;
  void set_timer_count(std::uint32_t count) { timers_.resize(count); }
  // (Re)arms: what was armed before is cancelled.
  void arm(std::uint32_t timer, Picos time, EventPhase phase, std::uint32_t kind);
  void disarm(std::uint32_t timer);
  // When the timer will fire; Picos::max() when it isn't armed.
  [[nodiscard]] Picos armed_at(std::uint32_t timer) const { return timers_[timer].time; }

  // No live event is left. May drop superseded events on the way.
  [[nodiscard]] bool empty() {
    drop_stale();
    return ring_front_ == ring_.size() && heap_empty();
  }
  // The next event, by value. Precondition: !empty() was the last call.
  [[nodiscard]] Event top() const { return ring_is_next() ? ring_[ring_front_] : heap_[heap_top()]; }
  // Removes and returns it. Precondition: as top().
  Event pop();

  [[nodiscard]] std::size_t size_with_stale() const { return heap_.size() - hole_ + ring_.size() - ring_front_; }
  [[nodiscard]] std::uint64_t scheduled() const { return sequence_; }

 private:
  struct Timer {
    Picos time = Picos::max();
    std::uint64_t key = ~std::uint64_t{0};  // of no event
  };
  static bool before(const Event& a, const Event& b) {
    const auto wide = [](const Event& e) {
      return (static_cast<UnsignedWide>(static_cast<std::uint64_t>(e.time.count())) << 64) | e.key;
    };
    return wide(a) < wide(b);  // one branch-free comparison; times are >= 0
  }
  std::uint64_t make_key(EventPhase phase) {
    return (static_cast<std::uint64_t>(phase) << 60) | tie_order_.key(sequence_++);
  }
  [[nodiscard]] bool heap_empty() const { return heap_.size() == static_cast<std::size_t>(hole_); }
  // Index of the least event: the root, or the lesser child of the hole.
  [[nodiscard]] std::size_t heap_top() const {
    if (!hole_) return 0;
    return heap_.size() > 2 && before(heap_[2], heap_[1]) ? 2 : 1;
  }
  [[nodiscard]] bool ring_is_next() const {
    return ring_front_ != ring_.size() && (heap_empty() || before(ring_[ring_front_], heap_[heap_top()]));
  }
  void push(const Event& event);
  void pop_heap();
  void fill_hole();
  void sift_down_from_root(const Event& event);
  void drop_stale();
  void compact();

  std::vector<Event> heap_;  // when hole_, heap_[0] is free
  std::vector<Event> ring_;  // live part starts at ring_front_
  std::vector<Timer> timers_;
  std::size_t ring_front_ = 0;
  std::size_t stale_ = 0;  // superseded events still in the heap
  std::uint64_t sequence_ = 0;
  TieOrder tie_order_;
  bool hole_ = false;
};

inline void EventQueue::sift_down_from_root(const Event& event) {
  const std::size_t count = heap_.size();
  std::size_t at = 0;
  for (std::size_t child = 1; child < count; child = 2 * at + 1) {
    child += static_cast<std::size_t>(child + 1 < count && before(heap_[child + 1], heap_[child]));
    if (!before(heap_[child], event)) break;
    heap_[at] = heap_[child];
    at = child;
  }
  heap_[at] = event;
}

inline void EventQueue::fill_hole() {
  hole_ = false;
  const Event last = heap_.back();
  heap_.pop_back();
  if (!heap_.empty()) sift_down_from_root(last);
}

inline void EventQueue::push(const Event& event) {
  if (hole_) {
    hole_ = false;
    return sift_down_from_root(event);
  }
  std::size_t at = heap_.size();
  heap_.push_back(event);
  while (at > 0) {
    const std::size_t parent = (at - 1) / 2;
    if (!before(event, heap_[parent])) break;
    heap_[at] = heap_[parent];
    at = parent;
  }
  heap_[at] = event;
}

inline void EventQueue::pop_heap() {
  if (hole_) fill_hole();
  hole_ = true;
}

inline void EventQueue::drop_stale() {
  while (stale_ != 0 && !heap_empty()) {
    const Event& next = heap_[heap_top()];
    if ((next.kind & timer_bit) == 0 || timers_[next.target].key == next.key) return;
    --stale_;
    pop_heap();
  }
}

inline EventQueue::Event EventQueue::pop() {
  if (ring_is_next()) {
    const Event event = ring_[ring_front_++];
    if (ring_front_ == ring_.size()) {
      ring_.clear();
      ring_front_ = 0;
    }
    return event;
  }
  const Event event = heap_[heap_top()];
  pop_heap();
  if ((event.kind & timer_bit) != 0) timers_[event.target] = Timer{};
  return event;
}

inline void EventQueue::disarm(std::uint32_t timer) {
  if (timers_[timer].time == Picos::max()) return;
  timers_[timer] = Timer{};
  ++stale_;
  if (stale_ > 1024 && stale_ > heap_.size() / 2) compact();
}

inline void EventQueue::arm(std::uint32_t timer, Picos time, EventPhase phase, std::uint32_t kind) {
  disarm(timer);
  const Event event{time, make_key(phase), kind | timer_bit, timer};
  timers_[timer] = Timer{time, event.key};
  push(event);
}

}  // namespace spillway::sim
