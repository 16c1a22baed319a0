#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "planners/recompute/exact.h"
#include "planners/recompute/layer_chain.h"
#include "planners/recompute/recompute_run.h"
#include "scenario/scenario_run.h"

namespace spillway::scenario {
namespace {

LoadedScenario gpt2(const std::string& model = "") {
  const std::string text = R"({"schema": "spillway-scenario", "version": 1,
    "model": {"name": "gpt2-small", "sequence": 1024, "micro_batch": 8)" +
                           model + R"(}, "hardware": {"profile": "h100-80gb-1gpu"}})";
  return load(parse_scenario(text, "test", ""));
}

RecomputeCase by_method(const LoadedScenario& loaded, const std::string& method, Bytes budget = Bytes(0)) {
  RecomputeSettings settings;
  settings.choice = parse_recompute_choice(method);
  settings.budget = budget;
  return plan_recompute(loaded.trace, PlainReplayer(loaded.hardware, loaded.options), settings).best;
}

double ratio(Picos a, Picos b) { return to_seconds(a) / to_seconds(b); }
double ratio(Bytes a, Bytes b) { return static_cast<double>(a.count()) / static_cast<double>(b.count()); }

// The generator writes a step with torch's checkpoint around each layer; the plan repeats ops of a step without. The
// plan doesn't repeat what nobody reads (a layer's last product).
TEST(RecomputePlans, FullIsWhatTheGeneratorMakes) {
  const LoadedScenario keep = gpt2(), generated = gpt2(R"(, "recompute": "full")");
  const RecomputeCase planned = by_method(keep, "full");
  const Result checkpointed = run(generated);
  EXPECT_EQ(planned.refused, 0U);
  EXPECT_NEAR(ratio(planned.result.memory.peak_allocated, checkpointed.memory.peak_allocated), 1, 0.03);
  EXPECT_NEAR(ratio(planned.result.step_time, checkpointed.step_time), 1, 0.04);
  EXPECT_LT(planned.result.step_time, checkpointed.step_time);
}

// A host asks its allocator in the order of its calls, however fast it makes them: what is given back is gone before
// later calls ask for more. LoRA's casts are the shortest of calls.
TEST(RecomputePlans, PeaksAreAsHighForAFasterHost) {
  const auto lora =
      [](const std::string& host) {
        return load(parse_scenario(R"({"schema": "spillway-scenario", "version": 1, "model": {"name": "llama-3-8b",
      "layers": 4, "sequence": 4096, "micro_batch": 1, "trainable": "lora"},
      "what_if": {"host": )" + host + R"(}, "hardware": {"profile": "h100-80gb-1gpu"}})",
                                   "test", ""));
      };
  const RecomputeCase once = by_method(lora("1"), "full");
  EXPECT_GT(once.away, Bytes(0));
  for (const char* const host : {"0.5", "2", "4", "16", "1000"}) {
    const LoadedScenario loaded = lora(host);
    EXPECT_EQ(by_method(loaded, "full").result.memory.peak_allocated, once.result.memory.peak_allocated) << host;
  }
}

TEST(RecomputePlans, SelectiveIsWhatTheGeneratorMakes) {
  const std::string eager = R"(, "flash_attention": false)";
  const LoadedScenario keep = gpt2(eager), generated = gpt2(eager + R"(, "recompute": "selective")");
  const RecomputeCase planned = by_method(keep, "selective");
  const Result checkpointed = run(generated);
  EXPECT_GT(planned.away, Bytes(0));
  EXPECT_NEAR(ratio(planned.result.memory.peak_allocated, checkpointed.memory.peak_allocated), 1, 0.03);
  EXPECT_NEAR(ratio(planned.result.step_time, checkpointed.step_time), 1, 0.04);
  // Flash attention keeps no scores.
  EXPECT_EQ(by_method(gpt2(), "selective").away, Bytes(0));
}

TEST(RecomputePlans, EveryAndSegments) {
  const LoadedScenario loaded = gpt2();
  const RecomputeCase full = by_method(loaded, "full"), half = by_method(loaded, "every:2"),
                      none = by_method(loaded, "none");
  EXPECT_EQ(by_method(loaded, "every:1").result.fingerprint, full.result.fingerprint);
  EXPECT_EQ(by_method(loaded, "segments:1").result.fingerprint, full.result.fingerprint);
  EXPECT_EQ(half.away + half.away, full.away);
  EXPECT_LT(full.result.memory.peak_allocated, half.result.memory.peak_allocated);
  EXPECT_LT(half.result.memory.peak_allocated, none.result.memory.peak_allocated);
  EXPECT_LT(none.result.step_time, half.result.step_time);
  EXPECT_LT(half.result.step_time, full.result.step_time);
  // Longer segments: fewer inputs stay, and no op runs more than twice.
  const RecomputeCase segments = by_method(loaded, "segments:3");
  EXPECT_GT(segments.away, full.away);
  EXPECT_LT(ratio(segments.again, full.again), 1.1);
}

TEST(RecomputePlans, RefusesUnknownMethods) {
  for (const char* text : {"all", "every", "every:0", "every:x", "full:2", "", "segments:-1", "every:2x"})
    EXPECT_THROW(parse_recompute_choice(text), InputError) << text;
  EXPECT_EQ(parse_recompute_choice("every:12").k, 12);
}

// Under budgets from all to what full recomputation needs: the searches fit, more memory is never slower by more than
// the replay's granularity, and neither is slower than full.
TEST(RecomputePlans, SearchesFitAndBeatFull) {
  const LoadedScenario loaded = gpt2();
  const RecomputeCase none = by_method(loaded, "none"), full = by_method(loaded, "full");
  const Bytes high = none.result.memory.peak_reserved, low = full.result.memory.peak_reserved;
  ASSERT_LT(low, high);
  for (const std::string method : {"greedy", "chain", "best"})
    for (const std::int64_t part : {1, 4, 7}) {
      const Bytes budget = low + Bytes((high - low).count() * part / 8);
      const RecomputeCase found = by_method(loaded, method, budget);
      EXPECT_TRUE(found.fits()) << method << " " << part;
      EXPECT_LE(found.result.memory.peak_reserved, budget);
      EXPECT_LT(found.result.step_time, full.result.step_time) << method << " " << part;
      EXPECT_GT(found.result.step_time, none.result.step_time);
    }
  EXPECT_EQ(by_method(loaded, "best", high).result.step_time, none.result.step_time);
}

// With less than full recomputation needs, layers' inputs go as well, and ops run more than twice.
TEST(RecomputePlans, ChainGoesBelowFull) {
  LoadedScenario loaded = gpt2();
  loaded.options.memory.allocator = "ideal";
  const RecomputeCase full = by_method(loaded, "full");
  const Bytes budget = full.result.memory.peak_allocated - Bytes(48 << 20);
  const RecomputeCase tight = by_method(loaded, "chain", budget);
  EXPECT_TRUE(tight.fits());
  EXPECT_LE(tight.result.memory.peak_allocated, budget);
  EXPECT_GT(tight.away, full.away);
}

struct RandomChain {
  std::vector<ChainStage> stages;
  RematProblem problem;
};

// The same chain for both methods: a pass without saving, a pass that saves, and a repeat for the stage's own backward.
RandomChain random_chain(std::mt19937_64& random, std::size_t n, bool same_inputs) {
  RandomChain chain;
  const auto from = [&random](std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(high - low + 1));
  };
  for (std::size_t s = 0; s < n; ++s) {
    ChainStage stage;
    stage.forward = Picos(from(1, 20));
    stage.backward = Picos(from(1, 30));
    stage.input = Bytes(same_inputs ? 2 : from(1, 4));
    stage.interior = Bytes(from(1, 9));
    stage.options = {{stage.interior, Picos(0)}};
    stage.first_need = stage.first_pass_need = stage.again_need = stage.again_pass_need = Bytes(from(0, 2));
    stage.backward_need = Bytes(from(0, 3));
    chain.stages.push_back(stage);
  }
  RematProblem& problem = chain.problem;
  for (const ChainStage& stage : chain.stages) problem.values.push_back(stage.interior);
  for (std::size_t s = 1; s < n; ++s) problem.values.push_back(chain.stages[s].input);
  const auto input = [n](std::size_t s) { return static_cast<std::uint32_t>(n + s - 1); };
  for (std::size_t s = 0; s < n; ++s) {
    const ChainStage& stage = chain.stages[s];
    const auto interior = static_cast<std::uint32_t>(s);
    std::vector<std::uint32_t> reads;
    if (s > 0) reads = {input(s)};
    problem.nodes.push_back({stage.forward, stage.first_need, reads, {interior}, false, OpId::none});
    if (s + 1 < n) {
      problem.nodes.push_back({stage.forward, stage.first_need, reads, {input(s + 1)}, false, OpId::none});
      problem.nodes.push_back({stage.forward, stage.first_need, reads, {interior, input(s + 1)}, false, OpId::none});
    }
  }
  for (std::size_t s = n; s-- > 0;) {
    std::vector<std::uint32_t> reads = {static_cast<std::uint32_t>(s)};
    if (s > 0) reads.push_back(input(s));
    problem.nodes.push_back({chain.stages[s].backward, chain.stages[s].backward_need, reads, {}, true, OpId::none});
  }
  return chain;
}

// The exact method knows no rule but memory. With inputs of one size the chain's plan is as fast as can be; with
// unequal ones a schedule that drops a checkpoint and makes it again can be faster, now and then (Beaumont et al.
// 2019).
TEST(RecomputeChain, IsOptimal) {
  std::mt19937_64 random(5);
  int compared = 0, equal = 0, tight = 0;
  for (int round = 0; round < 120; ++round) {
    const RandomChain chain = random_chain(random, 2 + random() % 4, round % 2 == 0);
    std::int64_t everything = 0;
    for (const ChainStage& stage : chain.stages) everything += stage.interior.count() + stage.input.count();
    const Bytes limit(6 + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(everything)));
    const auto plan = solve_chain(chain.stages, limit, limit.count());
    const RematSolution exact = solve_exact(chain.problem, limit);
    ASSERT_TRUE(exact.is_complete);
    ASSERT_EQ(plan.has_value(), exact.is_possible) << "round " << round;
    if (!plan) continue;
    ASSERT_GE(plan->time, exact.time) << "round " << round;
    EXPECT_LE(ratio(plan->time, exact.time), 1.2) << "round " << round;
    ++compared;
    equal += plan->time == exact.time ? 1 : 0;
    Picos once{};
    for (const ChainStage& stage : chain.stages) once += stage.forward + stage.backward;
    tight += exact.time > once ? 1 : 0;
  }
  EXPECT_GT(compared, 80);
  EXPECT_GT(tight, 30);
  EXPECT_GE(equal, compared * 9 / 10);
}

// Twelve equal stages (f 1, b 2, interior 3, input 1) with room for everything: no repeats; less room, more time.
TEST(RecomputeChain, LessMemoryTakesLonger) {
  ChainStage stage;
  stage.forward = Picos(1);
  stage.backward = Picos(2);
  stage.input = Bytes(1);
  stage.interior = Bytes(3);
  stage.options = {{Bytes(3), Picos(0)}};
  const std::vector<ChainStage> stages(12, stage);
  Picos before{};
  for (std::int64_t limit = 60; limit >= 4; limit -= 4) {
    const auto plan = solve_chain(stages, Bytes(limit), limit);
    if (!plan) break;
    EXPECT_GE(plan->time, before);
    before = plan->time;
    if (limit >= 48) {
      EXPECT_EQ(plan->time, Picos(36));
    }
  }
  EXPECT_GT(before, Picos(36));
  EXPECT_FALSE(solve_chain(stages, Bytes(2), 2));
}

// A rank's layers as stages: sizes add up to what its layers keep.
TEST(RecomputeChain, ReadsTheLayersOfAStep) {
  const LoadedScenario loaded = gpt2();
  const std::vector<SavedTensor> saved = saved_tensors(loaded.trace);
  RecomputeIndex index(loaded.trace, saved);
  const LayerChain chain(index, Bytes(1 << 16));
  ASSERT_EQ(chain.stages(0).size(), 13U);  // and the head
  const ChainStage& stage = chain.stages(0)[5];
  EXPECT_EQ(stage.input, Bytes(2 * 8 * 1024 * 768 * (stage.input.count() / (2 * 8 * 1024 * 768))));
  EXPECT_GT(stage.input, Bytes(0));
  EXPECT_GT(stage.interior, stage.input);
  EXPECT_GT(stage.backward, stage.forward);
  EXPECT_GE(stage.options.size(), 3U);
  for (std::size_t o = 1; o < stage.options.size(); ++o) {
    EXPECT_LT(stage.options[o].saved, stage.options[o - 1].saved);
    EXPECT_GE(stage.options[o].again, stage.options[o - 1].again);
  }
  EXPECT_LE(stage.options.back().again, stage.forward);
}

// Small steps by hand: layers of a few kernels of unequal sizes and times. The searches come close to the exact method.
Trace small_step(std::mt19937_64& random, std::size_t layers) {
  Trace trace;
  trace.lane({.kind = LaneKind::stream, .device = 0, .number = 7, .name = trace.strings.intern("stream")});
  for (int c = 0; c < capability_count; ++c) trace.set(static_cast<Capability>(c));
  trace.devices.push_back({.name = trace.strings.intern("GPU")});
  trace.steps.push_back({.name = trace.strings.intern("step")});
  const auto event = [&trace](TensorId tensor, MemoryAction action, OpId anchor) {
    trace.memory_events.push_back({.address = Addr(0x1000U + 0x40000000U * static_cast<std::uint64_t>(tensor)),
                                   .bytes = trace.tensors.bytes[index_of(tensor)],
                                   .anchor = anchor,
                                   .tensor = tensor,
                                   .action = action,
                                   .device = 0,
                                   .stream = LaneId(0)});
  };
  const auto op = [&trace](Phase phase, std::size_t layer, std::uint64_t micros, const std::vector<TensorId>& reads,
                           const std::vector<TensorId>& writes) {
    const OpId id = trace.append_op({.name = trace.strings.intern("op"),
                                     .kind = OpKind::kernel,
                                     .phase = phase,
                                     .lane = LaneId(0),
                                     .layer = static_cast<std::uint16_t>(layer),
                                     .micro_batch = 0,
                                     .step = 0,
                                     .start = Picos(0),
                                     .duration = from_seconds(1e-6 * static_cast<double>(micros))});
    for (const TensorId t : reads) trace.uses.push_back({id, t, Access::read});
    for (const TensorId t : writes) trace.uses.push_back({id, t, Access::write});
    return id;
  };
  struct Made {
    TensorId tensor;
    std::size_t layer;
  };
  std::vector<Made> made;
  const OpId begin = op(Phase::forward, 0, 1, {}, {});
  OpId last = begin;
  for (std::size_t layer = 0; layer < layers; ++layer)
    for (int k = 0; k < 3; ++k) {
      const TensorId id{static_cast<std::uint32_t>(trace.tensors.size())};
      trace.tensors.name.push_back(trace.strings.intern("t"));
      trace.tensors.bytes.emplace_back(static_cast<std::int64_t>(1 + (k == 2 ? 1 : random() % 6)) << 20);
      trace.tensors.storage.push_back(static_cast<std::uint32_t>(id));
      trace.tensors.role.push_back(TensorRole::activation);
      trace.tensors.dtype.push_back(trace.strings.intern("float32"));
      event(id, MemoryAction::allocate, last);
      std::vector<TensorId> reads;
      if (!made.empty()) reads.push_back(made.back().tensor);
      op(Phase::forward, layer, 5 + random() % 60, reads, {id});
      last = op(Phase::forward, layer, 0, {}, {});  // what leaves after an op has gone when the next one's result comes
      made.push_back({id, layer});
    }
  for (std::size_t m = made.size(); m-- > 0;) {
    std::vector<TensorId> reads = {made[m].tensor};
    // A layer's last tensor is the next one's input, and needed there.
    const std::size_t layer = m % 3 == 2 && m + 1 < made.size() ? made[m].layer + 1 : made[m].layer;
    last = op(Phase::backward, layer, 10 + random() % 60, reads, {});
    event(made[m].tensor, MemoryAction::free_requested, last);
  }
  return trace;
}

TEST(RecomputeExact, SearchesComeClose) {
  const LoadedScenario loaded = gpt2();
  ReplayOptions options = loaded.options;
  options.memory.allocator = "ideal";
  std::mt19937_64 random(3);
  double worst = 1, sum = 0;
  int compared = 0;
  for (int round = 0; round < 12; ++round) {
    const Trace trace = small_step(random, 4);
    const std::vector<SavedTensor> saved = saved_tensors(trace);
    ASSERT_EQ(saved.size(), 12U);
    RecomputeSettings settings;
    settings.least_bytes = Bytes(1);
    settings.choice = {RecomputeMethod::full, 0};
    const RecomputeOutcome full = plan_recompute(trace, PlainReplayer(loaded.hardware, options), settings);
    const Bytes low = full.best.result.memory.peak_allocated, high = full.others[0].result.memory.peak_allocated;
    ASSERT_LT(low, high);
    settings.budget = low + Bytes((high - low).count() * (1 + round % 4) / 5);
    settings.choice = {RecomputeMethod::exact, 0};
    const RecomputeCase exact = plan_recompute(trace, PlainReplayer(loaded.hardware, options), settings).best;
    ASSERT_TRUE(exact.fits()) << "round " << round;
    settings.choice = {RecomputeMethod::best, 0};
    const RecomputeCase best = plan_recompute(trace, PlainReplayer(loaded.hardware, options), settings).best;
    ASSERT_TRUE(best.fits()) << "round " << round;
    const double slower = ratio(best.result.step_time, exact.result.step_time);
    worst = std::max(worst, slower);
    sum += slower;
    ++compared;
  }
  EXPECT_LE(sum / compared, 1.03);
  EXPECT_LE(worst, 1.08);
  RecordProperty("worst", std::to_string(worst));
}

}  // namespace
}  // namespace spillway::scenario
