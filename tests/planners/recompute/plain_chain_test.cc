// Plain chains, x_k made of x_{k-1}: the planner's best against every plan there is, each replayed.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <vector>

#include "hwprofiles/profile_library.h"
#include "planners/recompute/recompute_run.h"
#include "planners/recompute/tensor_search.h"
#include "tests/test_size.h"

namespace spillway::planners {
namespace {

// How a chain's activations fall into layers: each its own, three in one, none named.
enum class Naming : std::uint8_t { each, threes, none };

class ChainStep {
 public:
  ChainStep(std::mt19937_64& random, std::size_t length, Naming naming, bool reads_inputs)
      : random_(random), naming_(naming) {
    trace_.lane({.kind = LaneKind::stream, .device = 0, .number = 7, .name = trace_.strings.intern("stream")});
    for (int c = 0; c < capability_count; ++c) trace_.set(static_cast<Capability>(c));
    trace_.devices.push_back({.name = trace_.strings.intern("GPU")});
    trace_.steps.push_back({.name = trace_.strings.intern("step")});
    OpId last = op(Phase::forward, 0, 1, {}, {});
    std::vector<TensorId> made;
    for (std::size_t k = 0; k < length; ++k) {
      const TensorId id = tensor();
      event(id, MemoryAction::allocate, last);
      op(Phase::forward, k, 5 + random_() % 60, made.empty() ? made : std::vector{made.back()}, {id});
      last = op(Phase::forward, k, 0, {}, {});  // what leaves after an op has gone when the next one's result comes
      made.push_back(id);
    }
    for (std::size_t k = length; k-- > 0;) {
      std::vector<TensorId> reads = {made[k]};
      if (reads_inputs && k > 0) reads.push_back(made[k - 1]);
      last = op(Phase::backward, k, 10 + random_() % 60, reads, {});
      event(made[k], MemoryAction::free_requested, last);
    }
  }
  [[nodiscard]] const Trace& trace() const { return trace_; }

 private:
  TensorId tensor() {
    const TensorId id{static_cast<std::uint32_t>(trace_.tensors.size())};
    trace_.tensors.name.push_back(trace_.strings.intern("t"));
    trace_.tensors.bytes.emplace_back(static_cast<std::int64_t>(1 + random_() % 8) << 20);
    trace_.tensors.storage.push_back(static_cast<std::uint32_t>(id));
    trace_.tensors.role.push_back(TensorRole::activation);
    trace_.tensors.dtype.push_back(trace_.strings.intern("float32"));
    return id;
  }
  void event(TensorId tensor, MemoryAction action, OpId anchor) {
    trace_.memory_events.push_back({.address = Addr(0x1000U + 0x40000000U * static_cast<std::uint64_t>(tensor)),
                                    .bytes = trace_.tensors.bytes[index_of(tensor)],
                                    .anchor = anchor,
                                    .tensor = tensor,
                                    .action = action,
                                    .device = 0,
                                    .stream = LaneId(0)});
  }
  OpId op(Phase phase, std::size_t k, std::uint64_t micros, const std::vector<TensorId>& reads,
          const std::vector<TensorId>& writes) {
    const std::size_t layer = naming_ == Naming::each ? k : naming_ == Naming::threes ? k / 3 : no_index16;
    const OpId id = trace_.append_op({.name = trace_.strings.intern("op"),
                                      .kind = OpKind::kernel,
                                      .phase = phase,
                                      .lane = LaneId(0),
                                      .layer = static_cast<std::uint16_t>(layer),
                                      .micro_batch = 0,
                                      .step = 0,
                                      .start = Picos(0),
                                      .duration = from_seconds(1e-6 * static_cast<double>(micros))});
    for (const TensorId t : reads) trace_.uses.push_back({id, t, Access::read});
    for (const TensorId t : writes) trace_.uses.push_back({id, t, Access::write});
    return id;
  }

  std::mt19937_64& random_;
  Naming naming_;
  Trace trace_;
};

struct Figures {
  Bytes peak{};
  Picos time{};
};

// Of every plan: each tensor stays, or comes back before one of the backward uses up to its own.
std::vector<Figures> all_plans(const Trace& trace, const Replayer& replayer) {
  const std::vector<SavedTensor> saved = saved_tensors(trace);
  RecomputeIndex index(trace, saved);
  std::vector<Figures> found;
  AwayUntil away = nothing_away(index);
  const std::function<void(std::size_t)> descend = [&](std::size_t t) {
    if (t == saved.size()) {
      const Result result = replay_recompute(index, away, replayer, "").result;
      found.push_back({result.memory.peak_reserved, result.step_time});
      return;
    }
    away[t] = OpId::none;
    descend(t + 1);
    for (const SavedTensor& other : saved) {
      const OpId moment = other.first_backward;
      if (saved[t].last_forward == saved[t].first_backward || moment > saved[t].first_backward ||
          moment <= saved[t].last_forward)
        continue;
      away[t] = moment;
      descend(t + 1);
    }
    away[t] = OpId::none;
  };
  descend(0);
  return found;
}

TEST(PlainChain, BestIsTheOptimum) {
  const HardwareProfile hardware = ProfileLibrary::standard().load_system("h100-80gb-1gpu");
  ReplayOptions options;
  options.memory.allocator = "ideal";
  const PlainReplayer replayer(hardware, options);
  std::mt19937_64 random(17);
  const int rounds = test::cases(24, 200);
  int repeating = 0;
  for (int round = 0; round < rounds; ++round) {
    SCOPED_TRACE(round);
    const std::size_t most = test::is_full_size() && round % 8 == 7 ? 5 : test::is_full_size() ? 4 : 3;
    const std::size_t length = 3 + random() % most;
    const auto naming = static_cast<Naming>(round % 3);
    const ChainStep step(random, length, naming, random() % 2 == 0);
    const std::vector<Figures> plans = all_plans(step.trace(), replayer);
    Bytes low = plans.front().peak, high = plans.front().peak;
    for (const Figures& one : plans) low = std::min(low, one.peak), high = std::max(high, one.peak);
    RecomputeSettings settings;
    settings.budget = low + Bytes((high - low).count() * static_cast<std::int64_t>(random() % 101) / 100);
    Picos optimum = Picos::max();
    for (const Figures& one : plans)
      if (one.peak <= settings.budget) optimum = std::min(optimum, one.time);
    settings.choice = {RecomputeMethod::best, 0};
    const RecomputeOutcome outcome = plan_recompute(step.trace(), replayer, settings);
    ASSERT_TRUE(outcome.best.fits()) << length << " activations, " << settings.budget.count() << " bytes";
    ASSERT_EQ(outcome.best.result.step_time, optimum) << length << " activations, by " << outcome.best.name;
    EXPECT_LE(outcome.best.result.memory.peak_reserved, settings.budget);
    repeating += outcome.best.away > Bytes(0) ? 1 : 0;
  }
  EXPECT_GT(repeating, rounds / 2);
}

// A chain longer than the exact search goes: what comes out fits whenever dropping all that can be dropped does, and
// is no slower.
TEST(PlainChain, LongOnesFitToo) {
  const HardwareProfile hardware = ProfileLibrary::standard().load_system("h100-80gb-1gpu");
  ReplayOptions options;
  options.memory.allocator = "ideal";
  const PlainReplayer replayer(hardware, options);
  std::mt19937_64 random(18);
  for (int round = 0; round < test::cases(6, 60); ++round) {
    SCOPED_TRACE(round);
    const ChainStep step(random, 13 + random() % 28, static_cast<Naming>(round % 3), true);
    const std::vector<SavedTensor> saved = saved_tensors(step.trace());
    RecomputeIndex index(step.trace(), saved);
    AwayUntil away = nothing_away(index);
    for (std::size_t t = 0; t < saved.size(); ++t)
      if (saved[t].last_forward != saved[t].first_backward && t % 4 != 0) away[t] = saved[t].first_backward;
    const RecomputeCase fourths = replay_recompute(index, away, replayer, "");
    RecomputeSettings settings;
    settings.budget = fourths.result.memory.peak_reserved;
    const RecomputeOutcome outcome = plan_recompute(step.trace(), replayer, settings);
    ASSERT_TRUE(outcome.best.fits());
    EXPECT_LE(outcome.best.result.step_time, fourths.result.step_time);
  }
}

}  // namespace
}  // namespace spillway::planners
