// A pool under test: what its tests do by hand, each step followed by the pool's own check of its invariants.
#pragma once

#include <cstdint>

#include <gtest/gtest.h>

#include "sim/devices/memory/memory_types.h"

namespace spillway::sim {

inline constexpr std::int64_t mib = 1 << 20;

template <class PoolType>
class PoolTest : public testing::Test {
 protected:
  Allocation take(std::int64_t bytes, std::int64_t stream = 0, std::uint32_t private_pool = 0) {
    AllocationRequest request;
    request.bytes = Bytes(bytes);
    request.stream = stream;
    request.private_pool = private_pool;
    const Allocation made = pool.allocate(request);
    expect_sound();
    return made;
  }
  void give(const Allocation& made) {
    pool.free(made.block, Picos{});
    expect_sound();
  }
  void expect_sound() const {
    const auto violation = pool.check();
    EXPECT_FALSE(violation.has_value()) << *violation;
  }
  [[nodiscard]] std::int64_t reserved() const { return pool.statistics().all().reserved_bytes.current; }

  PoolType pool;
};

}  // namespace spillway::sim
