// Allocation streams for tests: requests given one by one, or drawn.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/replay/memory_replay.h"
#include "tests/sim/engine/engine_random.h"

namespace spillway::sim::test {

constexpr Bytes mebibytes(std::int64_t n) { return Bytes(n << 20); }

struct Request {
  MemoryAction action;
  std::uint64_t address;
  std::int64_t mebibytes;
  std::int16_t device = 0;
};

inline Trace stream(const std::vector<Request>& requests) {
  Trace trace;
  for (const Request& request : requests) {
    MemoryEvent& added = trace.memory_events.emplace_back();
    added.action = request.action;
    added.address = Addr(request.address);
    added.bytes = mebibytes(request.mebibytes);
    added.device = request.device;
  }
  trace.set(Capability::memory);
  return trace;
}

inline MemoryReplayOptions within(Bytes capacity, std::string_view allocator = torch_policy) {
  MemoryReplayOptions options;
  options.allocator = allocator;
  options.capacity = capacity;
  return options;
}

inline constexpr auto take = MemoryAction::allocate;
inline constexpr auto give = MemoryAction::free_requested;

// Blocks of 1 to 40 MiB that come and go; late: some are free only some requests after that was asked for.
inline Trace random_stream(Random& random, bool late) {
  std::vector<Request> live, pending, requests;
  const auto take_any = [&random](std::vector<Request>& from) {
    std::swap(from[static_cast<std::size_t>(random.between(0, static_cast<std::int64_t>(from.size()) - 1))],
              from.back());
    const Request chosen = from.back();
    from.pop_back();
    return chosen;
  };
  const auto completed = [](Request request) {
    request.action = MemoryAction::free_completed;
    return request;
  };
  for (std::uint64_t i = 1; i <= 120; ++i) {
    if (live.size() < 4 || random.between(0, 9) < 6) {
      live.push_back({take, i, random.between(1, 40)});
      requests.push_back(live.back());
      continue;
    }
    Request given = take_any(live);
    given.action = give;
    requests.push_back(given);
    if (late && random.between(0, 2) == 0)
      pending.push_back(given);
    else if (late)
      requests.push_back(completed(given));
    if (pending.size() > 3) requests.push_back(completed(take_any(pending)));
  }
  return stream(requests);
}

}  // namespace spillway::sim::test
