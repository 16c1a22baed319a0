#include "sim/devices/memory/memory_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "base/input_error.h"

namespace spillway::sim {
namespace {

constexpr std::int64_t pool_mib = 1 << 20;

// A plan for a program that does not follow it: every way to fall back is taken.
std::shared_ptr<const MemoryPlan> some_plan(PlanKind kind) {
  MemoryPlan plan;
  plan.kind = kind;
  plan.pool = Bytes(64 * pool_mib);
  plan.small_peak = Bytes(10 * 512);
  plan.period_begin = 100;
  std::mt19937 random(5);
  for (int i = 0; i < 700; ++i) {
    const Bytes size(512 * static_cast<std::int64_t>(1 + random() % (kind == PlanKind::layout ? 4096 : 4)));
    const Bytes offset(512 * static_cast<std::int64_t>(random() % 120000));
    plan.places.push_back({i % 50 == 0 ? Bytes(-1) : offset, size});
  }
  plan.cached = {3, 5, 700};
  plan.spaces = {{"a", {{Bytes(0), Bytes(8 * pool_mib)}, {Bytes(16 * pool_mib), Bytes(20 * pool_mib)}}},
                 {"b", {{Bytes(30 * pool_mib), Bytes(64 * pool_mib)}}}};
  return std::make_shared<const MemoryPlan>(plan);
}

MemoryPool make(const std::string& policy, const char* settings = "", std::int64_t memory = Bytes::max().count(),
                double fraction = 1) {
  MemoryPoolOptions options;
  options.policy = policy;
  if (policy == "planned") options.plan = some_plan(PlanKind::stalloc);
  if (policy == "arena") options.plan = some_plan(PlanKind::layout);
  options.settings = settings;
  options.device_memory = Bytes(memory);
  options.memory_fraction = fraction;
  return make_memory_pool(options);
}

// A random program: sizes over seven decades, four streams, cross-stream uses, events that complete late,
// occasional empty_cache(). The same seed is the same program for every policy.
class RandomProgram {
 public:
  explicit RandomProgram(std::uint32_t seed) : random_(seed) {}

  template <class Check>
  void run(MemoryPool& pool, int steps, Check check) {
    for (int step = 0; step < steps; ++step) {
      one(pool, Picos(step));
      check(step);
    }
    while (!live_.empty()) give(pool, live_.size() - 1, Picos(steps));
    for (std::int64_t stream = 0; stream < 4; ++stream) complete(pool, stream);
    pool.process_events(Picos(steps));
    check(steps);
  }

 private:
  std::uint64_t draw(std::uint64_t bound) { return random_() % bound; }

  void one(MemoryPool& pool, Picos time) {
    const std::uint64_t choice = draw(100);
    const bool grow = live_.size() < 200;
    if (choice < (grow ? 55U : 35U)) {
      AllocationRequest request;
      request.bytes = Bytes(static_cast<std::int64_t>(draw(std::uint64_t{1} << (4 + draw(23)))));
      request.stream = static_cast<std::int64_t>(draw(4));
      request.private_pool = draw(20) == 0 ? 1 : 0;
      request.space = static_cast<RequestSpace>(static_cast<std::int32_t>(draw(12)) % 7 - 3);
      if (draw(2) == 0) request.space = RequestSpace::planned;
      request.time = time;
      const Allocation made = pool.allocate(request);
      live_.push_back(made.block);
    } else if (choice < 90 && !live_.empty()) {
      give(pool, draw(live_.size()), time);
    } else if (choice < 94 && !live_.empty()) {
      const BlockId block = live_[draw(live_.size())];
      const auto stream = static_cast<std::int64_t>(draw(4));
      if (block != BlockId::none) pool.record_stream(block, stream);
    } else if (choice < 99) {
      complete(pool, static_cast<std::int64_t>(draw(4)));
    } else {
      pool.empty_cache(time);
    }
  }

  void give(MemoryPool& pool, std::size_t i, Picos time) {
    if (live_[i] != BlockId::none) pool.free(live_[i], time);
    live_[i] = live_.back();
    live_.pop_back();
  }

  static void complete(MemoryPool& pool, std::int64_t stream) {
    const std::vector<PendingEvent> events(pool.pending_events().begin(), pool.pending_events().end());
    for (const PendingEvent& event : events) {
      if (event.stream == stream) pool.complete_event(event.block, stream);
    }
  }

  std::mt19937 random_;
  std::vector<BlockId> live_;
};

std::optional<std::string> check(const MemoryPool& pool) {
  if (const auto* torch = pool.as<TorchPool>()) return torch->check();
  if (const auto* gmlake = pool.as<GmlakePool>()) return gmlake->check();
  if (const auto* planned = pool.as<PlannedPool>()) return planned->check();
  return std::nullopt;
}

struct Setting {
  const char* policy;
  const char* text;
  std::int64_t memory;
  double fraction;
};

class RandomPrograms : public testing::TestWithParam<Setting> {};

// After every step: blocks tile their segments, no two free neighbours, free sets exact, every statistic equal to
// its recount; requested <= allocated-or-pending <= reserved. At the end nothing is active and empty_cache() leaves
// nothing of the default pools reserved.
TEST_P(RandomPrograms, KeepEveryInvariant) {
  std::int64_t retries = 0;
  std::int64_t failures = 0;
  for (std::uint32_t seed = 1; seed <= 4; ++seed) {
    MemoryPool pool = make(GetParam().policy, GetParam().text, GetParam().memory, GetParam().fraction);
    RandomProgram(seed).run(pool, 3000, [&](int step) {
      const auto violation = check(pool);
      ASSERT_FALSE(violation.has_value()) << *violation << " at step " << step << " of seed " << seed;
      const PoolStatistics& all = pool.statistics().all();
      ASSERT_LE(all.requested_bytes.current, all.active_bytes.current);
      ASSERT_LE(all.allocated_bytes.current, all.active_bytes.current);
      ASSERT_LE(all.active_bytes.current, all.reserved_bytes.current);
    });
    const PoolStatistics& all = pool.statistics().all();
    EXPECT_EQ(all.active.current, 0);
    EXPECT_EQ(all.inactive_split.current, 0);
    retries += pool.statistics().alloc_retries;
    failures += pool.statistics().ooms;
    EXPECT_GE(all.reserved_bytes.peak, all.allocated_bytes.peak);
    if (auto* torch = pool.as<TorchPool>()) torch->make_freeable(1);
    pool.empty_cache(Picos{});
    const bool keeps = pool.as<PlannedPool>() != nullptr || pool.as<GmlakePool>() != nullptr;
    if (!keeps) {
      EXPECT_EQ(all.reserved_bytes.current, 0);
    }
  }
  const bool limited = Bytes(GetParam().memory) < Bytes::max();
  EXPECT_EQ(retries > 0, limited) << "the programs reach the limit, where there is one";
  EXPECT_EQ(failures > 0, limited);
}

constexpr std::int64_t no_limit = Bytes::max().count();

INSTANTIATE_TEST_SUITE_P(
    Settings, RandomPrograms,
    testing::Values(Setting{"torch", "", no_limit, 1}, Setting{"torch", "", 400 * pool_mib, 1},
                    Setting{"torch", "max_split_size_mb:20", 500 * pool_mib, 1},
                    Setting{"torch", "roundup_power2_divisions:8", 900 * pool_mib, 1},
                    Setting{"torch", "garbage_collection_threshold:0.5", 900 * pool_mib, 0.8},
                    Setting{"torch",
                            "garbage_collection_threshold:0.3,max_split_size_mb:25,"
                            "roundup_power2_divisions:[1:4,8:2,>:1],large_segment_size_mb:32",
                            700 * pool_mib, 0.9},
                    Setting{"torch-expandable", "", no_limit, 1}, Setting{"torch-expandable", "", 400 * pool_mib, 1},
                    Setting{"torch-expandable", "max_split_size_mb:20,large_segment_size_mb:33", 500 * pool_mib, 1},
                    Setting{"torch-expandable", "garbage_collection_threshold:0.5,roundup_power2_divisions:4",
                            900 * pool_mib, 0.8},
                    Setting{"gmlake", "", no_limit, 1}, Setting{"gmlake", "fragLimit:4194304", 300 * pool_mib, 1},
                    Setting{"gmlake", "fragLimit:2097152,defragLevel:1,reuseLimit:2,autoGC:0", 300 * pool_mib, 1},
                    Setting{"gmlake", "fragLimit:2097152,reAlloc:1,roundup_power2_divisions:4", 300 * pool_mib, 0.9},
                    Setting{"planned", "", no_limit, 1}, Setting{"planned", "", 250 * pool_mib, 1},
                    Setting{"arena", "", no_limit, 1}, Setting{"arena", "", 250 * pool_mib, 0.9}));

// Without a limit the ideal peak is the peak of what is asked for: ideal <= torch, in allocated and in reserved.
TEST(MemoryPool, IdealIsALowerBound) {
  for (std::uint32_t seed = 1; seed <= 5; ++seed) {
    MemoryPool ideal = make("ideal"), torch = make("torch");
    RandomProgram(seed).run(ideal, 5000, [](int) {});
    RandomProgram(seed).run(torch, 5000, [](int) {});
    const PoolStatistics& low = ideal.statistics().all();
    const PoolStatistics& high = torch.statistics().all();
    EXPECT_EQ(low.requested_bytes.peak, high.requested_bytes.peak);
    EXPECT_EQ(low.reserved_bytes.peak, low.requested_bytes.peak);
    EXPECT_LE(low.allocated_bytes.peak, high.allocated_bytes.peak);
    EXPECT_LT(low.reserved_bytes.peak, high.reserved_bytes.peak);
    EXPECT_EQ(fragmentation(ideal.statistics()).by_active, 0);
  }
}

// The same program twice gives the same rows: nothing but the requests decides.
TEST(MemoryPool, IsDeterministic) {
  const auto rows = [] {
    MemoryPool pool = make("torch", "", 600 * pool_mib);
    pool.keep_rows(true);
    RandomProgram(7).run(pool, 3000, [](int) {});
    return pool.rows();
  };
  const auto first = rows(), second = rows();
  ASSERT_EQ(first.size(), second.size());
  for (std::size_t i = 0; i < first.size(); ++i) {
    ASSERT_EQ(first[i].address, second[i].address);
    ASSERT_EQ(first[i].freed, second[i].freed);
  }
}

// Two rows that overlap in time never overlap in addresses, whatever the policy.
TEST(MemoryPool, LivesNeverShareAddresses) {
  for (const std::string_view policy : memory_policies()) {
    MemoryPool pool = make(std::string(policy));
    pool.keep_rows(true);
    RandomProgram(3).run(pool, 2000, [](int) {});
    const std::vector<AllocationRow> rows = pool.rows();
    ASSERT_GT(rows.size(), 500U);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      for (std::size_t j = i + 1; j < rows.size(); ++j) {
        const bool together = rows[i].allocated < rows[j].freed && rows[j].allocated < rows[i].freed;
        const bool apart = rows[i].address.count() + rows[i].size.count() <= rows[j].address.count() ||
                           rows[j].address.count() + rows[j].size.count() <= rows[i].address.count();
        ASSERT_TRUE(!together || apart) << policy << " rows " << i << " and " << j;
      }
    }
  }
}

// Ideal: fails only when live + asked > capacity, and says so.
TEST(MemoryPool, IdealChecksItsCapacity) {
  MemoryPool pool = make("ideal", "", 1000);
  AllocationRequest request;
  request.bytes = Bytes(600);
  const Allocation made = pool.allocate(request);
  request.bytes = Bytes(401);
  EXPECT_TRUE(pool.allocate(request).out_of_memory);
  EXPECT_EQ(pool.last_out_of_memory().limit, Bytes(1000));
  EXPECT_EQ(pool.statistics().ooms, 1);
  request.bytes = Bytes(400);
  EXPECT_FALSE(pool.allocate(request).out_of_memory);
  pool.free(made.block, Picos{});
  EXPECT_EQ(pool.statistics().all().allocated_bytes, (Statistic{400, 1000, 1000, 600}));
}

TEST(MemoryPool, RefusesUnknownPolicies) {
  try {
    make("tourch");
    FAIL() << "accepted";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("did you mean torch?"));
  }
  EXPECT_THROW(make("ideal", "max_split_size_mb:20"), InputError);
  EXPECT_THROW(make("torch", "", 100, 1.5), InputError);
  EXPECT_EQ(make("torch").name(), "torch");
  EXPECT_EQ(make("ideal").name(), "ideal");
  EXPECT_EQ(make("torch-expandable").name(), "torch-expandable");
  EXPECT_EQ(make("torch", "expandable_segments:True").name(), "torch-expandable");
  EXPECT_THROW(make("torch-expandable", "expandable_segments:False"), InputError);
}

// Freeing twice, or a block that never was, is a programmer's error.
TEST(MemoryPool, DoubleFreeAsserts) {
  MemoryPool pool = make("torch");
  AllocationRequest request;
  request.bytes = Bytes(600);
  const Allocation made = pool.allocate(request);
  pool.free(made.block, Picos{});
  EXPECT_THROW(pool.free(made.block, Picos{}), std::logic_error);
  EXPECT_THROW(pool.free(BlockId::none, Picos{}), std::logic_error);
}

}  // namespace
}  // namespace spillway::sim
