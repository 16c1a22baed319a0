#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/number_text.h"
#include "models/spec/model_spec.h"
#include "planners/offload/offload_run.h"
#include "scenario/scenario_run.h"
#include "studies/offload/rok.h"
#include "tests/test_size.h"

namespace spillway::scenario {
namespace {

LoadedScenario gpt2(const std::string& more = "") {
  const std::string text = R"({"schema": "spillway-scenario", "version": 1,
    "model": {"name": "gpt2-small", "sequence": 1024, "micro_batch": 8},
    "hardware": {"profile": "h100-80gb-1gpu"})" +
                           more + "}";
  return load(parse_scenario(text, "test", ""));
}

OffloadSettings everything() {
  OffloadSettings settings;
  settings.technique = ssdtrain_word;
  settings.in_flight = Bytes(64 << 20);
  settings.ssdtrain.least_elements = 1 << 20;
  settings.ssdtrain.adaptive = false;
  return settings;
}

// What must hold of any planned replay: transfers after what they wait for, uses within lives, bytes conserved.
void check(const Trace& original, const OffloadPlan& plan, const PlannedTrace& planned, const Result& result) {
  planned.trace.check_invariants();
  Bytes stored{}, loaded{}, forwarded{};
  for (std::size_t k = 0; k < plan.absences.size(); ++k) {
    const Absence& absence = plan.absences[k];
    const OpId store = planned.transfer[k], load = planned.fetch[k];
    ASSERT_EQ(store != OpId::none, absence.stores());
    ASSERT_EQ(load != OpId::none, absence.loads());
    const Picos begun = store == OpId::none ? Picos(0) : result.op_start[index_of(store)];
    if (store != OpId::none) stored += planned.trace.ops.bytes[index_of(store)];
    if (load == OpId::none) {
      if (absence.forwarded) forwarded += planned.trace.ops.bytes[index_of(store)];
      continue;
    }
    loaded += planned.trace.ops.bytes[index_of(load)];
    if (store != OpId::none) {
      EXPECT_LE(result.op_end[index_of(store)], result.op_start[index_of(load)]) << "read before it was written";
    }
    for (std::size_t i = 0; i < planned.source.size(); ++i) {
      if (planned.source[i] == absence.store_after && planned.trace.ops.phase[i] != Phase::recompute) {
        EXPECT_GE(begun, result.op_end[i]) << "stored before it was made";
      }
      if (planned.source[i] == absence.back_before) {
        EXPECT_GE(result.op_start[i], result.op_end[index_of(load)]) << "used before it was there";
      }
    }
  }
  EXPECT_EQ(stored, loaded + forwarded);
  Bytes written{}, read{};
  for (const DriveTraffic& drive : result.drives) {
    written += drive.written;
    read += drive.read;
  }
  if (!result.drives.empty()) {
    EXPECT_EQ(written, stored);
    EXPECT_EQ(read, loaded);
  }
  // Every original op runs once, in its lane's order.
  std::map<OpId, int> runs;
  for (const OpId source : planned.source)
    if (source != OpId::none) ++runs[source];
  EXPECT_EQ(runs.size(), original.ops.size());
}

// A block's events alternate: taken, given back, taken anew; nothing is given back that isn't there.
void check_lives(const Trace& trace) {
  std::map<std::uint64_t, int> live;
  for (const MemoryEvent& event : trace.memory_events) {
    if (event.action == MemoryAction::allocate) {
      EXPECT_EQ(live[event.address.count()]++, 0);
    } else if (event.action == MemoryAction::free_requested) {
      EXPECT_EQ(live[event.address.count()]--, 1);
    }
  }
}

// Whether it runs out of memory or not: of what does, peaks are lower bounds above the capacity.
TEST(ClockOnly, HasTheTimesOfOtherReplays) {
  const LoadedScenario loaded = gpt2();
  const PlainReplayer replayer(loaded.hardware, loaded.options);
  const Bytes peak = replayer.replay(loaded.trace).memory.peak_allocated;
  for (const Bytes capacity : {peak * 2, peak + Bytes(1 << 30), peak - Bytes(1 << 20), Bytes(std::int64_t{1} << 30)}) {
    const Result times = replayer.replay(loaded.trace, {.capacity = capacity, .detail = Detail::times});
    const Result clock = replayer.replay(loaded.trace, {.capacity = capacity, .detail = Detail::clock});
    EXPECT_EQ(clock.op_start, times.op_start);
    EXPECT_EQ(clock.op_end, times.op_end);
    EXPECT_EQ(clock.step_time, times.step_time);
    EXPECT_EQ(clock.verdict(), times.verdict());
    EXPECT_LE(clock.memory.peak_allocated, times.memory.peak_allocated);
    EXPECT_EQ(clock.memory.peak_allocated > capacity, times.memory.peak_allocated > capacity);
  }
}

TEST(SavedTensors, AreTheActivationsOfAGeneratedStep) {
  const LoadedScenario loaded = gpt2();
  const std::vector<SavedTensor> saved = saved_tensors(loaded.trace);
  Bytes layer_zero{};
  for (const SavedTensor& tensor : saved) {
    EXPECT_LT(tensor.written_by, tensor.first_backward);
    EXPECT_LE(tensor.last_forward, tensor.first_backward);
    EXPECT_LE(tensor.first_backward, tensor.last_backward);
    EXPECT_EQ(loaded.trace.tensors.role[index_of(tensor.tensor)], TensorRole::activation);
    if (tensor.layer == 1) layer_zero += tensor.bytes;
  }
  // Korthikanti et al. 2022, table 2, with flash attention instead of scores, one mask byte an element: 34 sbh less
  // the value and key of the scores' path; plus norm statistics and log-sum-exps of 4 bytes a row.
  const double sbh = 1024.0 * 8 * 768;
  EXPECT_NEAR(static_cast<double>(layer_zero.count()) / sbh, 34, 2.0);
}

TEST(Ssdtrain, MovesCandidatesAndLowersThePeak) {
  const LoadedScenario loaded = gpt2();
  const Result keep = run(loaded);
  const OffloadOutcome offload =
      run_ssdtrain(loaded.trace, PlainReplayer(loaded.hardware, loaded.options), everything());
  check(loaded.trace, offload.plan, offload.planned, offload.result);
  check_lives(offload.planned.trace);
  EXPECT_TRUE(offload.moved.settled);
  EXPECT_GT(offload.moved.stored, Bytes(0));
  EXPECT_EQ(offload.moved.stored + offload.moved.kept, offload.moved.candidates);
  EXPECT_LT(offload.result.memory.peak_allocated, keep.memory.peak_allocated);
  EXPECT_GE(offload.result.step_time, keep.step_time);
}

// A link so slow that the stores of a forward end long after the backward has asked for most of it: the answer is found
// all the same, and each tensor is forwarded exactly where it is asked for before its store has ended.
TEST(Ssdtrain, WhatIsAskedForBeforeItsStoreEndsIsForwarded) {
  LoadedScenario loaded = gpt2();
  loaded.hardware.gpu.pcie_generation.value = 4;
  OffloadSettings settings = everything();
  settings.tier = Tier::host;
  settings.in_flight = Bytes(0);  // the host waits for none
  const OffloadOutcome offload = run_ssdtrain(loaded.trace, PlainReplayer(loaded.hardware, loaded.options), settings);
  check(loaded.trace, offload.plan, offload.planned, offload.result);
  EXPECT_TRUE(offload.moved.settled);
  EXPECT_GT(offload.moved.forwarded, offload.moved.stored / 2);
  EXPECT_LT(offload.moved.forwarded, offload.moved.stored);
  for (std::size_t k = 0; k < offload.plan.absences.size(); ++k) {
    const OpId asked = offload.planned.asked[k], store = offload.planned.transfer[k];
    ASSERT_NE(asked, OpId::none);
    EXPECT_EQ(offload.plan.absences[k].forwarded,
              offload.result.op_end[index_of(asked)] < offload.result.op_end[index_of(store)]);
  }
}

TEST(Ssdtrain, SmallTensorsWeightsAndTheHeadStay) {
  const LoadedScenario loaded = gpt2();
  SsdtrainSettings settings;
  settings.least_elements = 1 << 20;
  for (const SavedTensor& candidate : offload_candidates(loaded.trace, settings)) {
    EXPECT_GE(candidate.elements, 1 << 20);
    EXPECT_NE(candidate.layer, no_index16);
    EXPECT_NE(loaded.trace.tensors.role[index_of(candidate.tensor)], TensorRole::weight);
  }
  settings.least_elements = std::int64_t{1} << 40;
  EXPECT_TRUE(offload_candidates(loaded.trace, settings).empty());
}

// The published rule on a hand-made walk: T_f = 4 s, v = 10, 10, 10, 10 bytes; need = 20/12, 30/10, 40/8, 50/6.
TEST(Ssdtrain, AdaptiveRuleKeepsASuffix) {
  std::vector<OffloadScope> scopes(4);
  for (OffloadScope& scope : scopes) {
    scope.bytes = Bytes(10);
    scope.time = from_seconds(1);
  }
  keep_adaptively(scopes, std::vector<double>{4.9});
  EXPECT_DOUBLE_EQ(scopes[0].need_bytes_per_second, 20.0 / 12);
  EXPECT_DOUBLE_EQ(scopes[1].need_bytes_per_second, 30.0 / 10);
  EXPECT_DOUBLE_EQ(scopes[2].need_bytes_per_second, 40.0 / 8);
  EXPECT_DOUBLE_EQ(scopes[3].need_bytes_per_second, 50.0 / 6);
  EXPECT_FALSE(scopes[0].kept);
  EXPECT_FALSE(scopes[1].kept);
  EXPECT_TRUE(scopes[2].kept);
  EXPECT_TRUE(scopes[3].kept);
}

// Two ranks with the same walk: the one with less of the drives keeps more.
TEST(Ssdtrain, AdaptiveRuleTakesEachRanksOwnRate) {
  std::vector<OffloadScope> scopes(8);
  for (std::size_t i = 0; i < scopes.size(); ++i) {
    scopes[i].rank = i < 4 ? 0 : 1;
    scopes[i].bytes = Bytes(10);
    scopes[i].time = from_seconds(1);
  }
  keep_adaptively(scopes, std::vector<double>{4.9, 2.9});
  for (std::size_t i = 0; i < scopes.size(); ++i) EXPECT_EQ(scopes[i].kept, i < 4 ? i >= 2 : i >= 5) << i;
}

// A slower drive moves the border of the kept suffix towards the front, never the other way.
TEST(Ssdtrain, SlowerDrivesKeepMore) {
  Bytes kept{};
  for (const double rate : {1e12, 2e10, 5e9, 1e9, 1e8}) {
    OffloadSettings settings = everything();
    settings.ssdtrain.adaptive = true;
    settings.adaptive_bytes_per_second = rate;
    const LoadedScenario loaded = gpt2();
    const OffloadOutcome outcome = run_ssdtrain(loaded.trace, PlainReplayer(loaded.hardware, loaded.options), settings);
    EXPECT_GE(outcome.moved.kept, kept) << rate;
    kept = outcome.moved.kept;
  }
  EXPECT_GT(kept, Bytes(0));
}

TEST(Ssdtrain, WithoutPrefetchTheHostWaitsForEachLoad) {
  const LoadedScenario loaded = gpt2();
  OffloadSettings settings = everything();
  const OffloadOutcome chunked = run_ssdtrain(loaded.trace, PlainReplayer(loaded.hardware, loaded.options), settings);
  settings.ssdtrain.prefetch = Prefetch::off;
  const OffloadOutcome off = run_ssdtrain(loaded.trace, PlainReplayer(loaded.hardware, loaded.options), settings);
  EXPECT_GT(off.result.step_time, chunked.result.step_time);
}

TEST(Ssdtrain, HostTierGoesOverTheCopyEngines) {
  const LoadedScenario loaded = gpt2();
  OffloadSettings settings = everything();
  settings.tier = Tier::host;
  const OffloadOutcome outcome = run_ssdtrain(loaded.trace, PlainReplayer(loaded.hardware, loaded.options), settings);
  check(loaded.trace, outcome.plan, outcome.planned, outcome.result);
  EXPECT_TRUE(outcome.result.drives.empty());
  Bytes out{};
  for (const LinkResult& link : outcome.result.links)
    if (link.name == "gpu0 copy out") out = link.bytes;
  EXPECT_EQ(out, outcome.moved.stored);
}

// SSDTrain's testbed with sequence parallelism, all of the technique at its defaults. Width, layers.
LoadedScenario testbed(int width, int layers, const std::string& more = "") {
  ModelSpec model = find_model("gpt3-175b");
  model.hidden = width;
  model.heads = model.kv_heads = width / 128;
  model.feed_forward = 4 * width;
  model.layers = layers;
  model.published_parameters = 0;
  const std::string text = R"({"schema": "spillway-scenario", "version": 1,
    "model": {"name": "gpt3-175b", "sequence": 1024, "micro_batch": 16, "precision": "bf16", "optimizer": "sgd",
      "framework": "megatron_2022", "tensor_parallel": 2, "sequence_parallel": true},
    "hardware": {"profile": "ssdtrain-testbed", "set": {"gpu.peak_flops.bf16": "x0.5426"}})" +
                           more + "}";
  return load(parse_scenario(text, "test", ""), model);
}

constexpr std::string_view offloaded = R"(, "offload": {"technique": "ssdtrain"})";

// Figures 6 and 7: activations at the peak 28 to 40 % lower (48 % at most), in a step that is no longer. An eager host
// that waits for nothing has allocated the forward before the first store ends, and saves nothing.
TEST(Ssdtrain, SavesOnItsTestbedAtItsDefaults) {
  for (const auto& [width, layers] : {std::pair(8192, 4), std::pair(12288, 3), std::pair(16384, 2)}) {
    const LoadedScenario kept = testbed(width, layers), moved = testbed(width, layers, std::string(offloaded));
    const Result keep = run(kept), offload = run(moved);
    const auto activations = [](const LoadedScenario& loaded) {
      return in_gib(studies::most_activations(loaded, run_traced(loaded)));
    };
    const double saving = 1 - activations(moved) / activations(kept);
    EXPECT_GE(saving, 0.28) << width;
    EXPECT_LE(saving, 0.48) << width;
    EXPECT_LE(to_seconds(offload.step_time), 1.02 * to_seconds(keep.step_time)) << width;
    EXPECT_TRUE(offload.warnings.empty() || offload.warnings == keep.warnings) << offload.warnings.back();
    const LoadedScenario ahead =
        testbed(width, layers, R"(, "offload": {"technique": "ssdtrain", "in_flight_bytes": 0})");
    EXPECT_LT(1 - activations(ahead) / activations(kept), 0.05) << width;
  }
}

// The chosen limits delay nothing; half of them would.
TEST(Ssdtrain, LimitsOfStoresAreTheLeastThatDelayNothing) {
  const LoadedScenario loaded = testbed(12288, 3, std::string(offloaded));
  const PlainReplayer replayer(loaded.hardware, loaded.options);
  OffloadSettings settings = loaded.scenario.offload;
  const OffloadOutcome chosen = run_ssdtrain(loaded.trace, replayer, settings);
  ASSERT_EQ(chosen.plan.rank_in_flight.size(), loaded.trace.rank_count);
  EXPECT_GT(chosen.moved.in_flight, Bytes(0));
  settings.in_flight = Bytes(0);
  const OffloadOutcome ahead = run_ssdtrain(loaded.trace, replayer, settings);
  EXPECT_LE(to_seconds(chosen.result.step_time), 1.005 * to_seconds(ahead.result.step_time));
  EXPECT_LT(chosen.result.memory.peak_allocated, ahead.result.memory.peak_allocated);
  settings.in_flight = chosen.moved.in_flight / 2;
  const OffloadOutcome half = run_ssdtrain(loaded.trace, replayer, settings);
  EXPECT_GT(to_seconds(half.result.step_time), 1.005 * to_seconds(ahead.result.step_time));
}

// Figure 7: three families. At equal batch offloading has keeping's throughput and recomputing is slower; twice the
// batch goes into about the memory that keeping takes.
TEST(Ssdtrain, RokPlaneHasThreeFamilies) {
  const auto with = [](std::span<const std::string> edits) {
    return parse_scenario(R"({"schema": "spillway-scenario", "version": 1,
    "model": {"name": "gpt3-175b", "layers": 3, "sequence": 1024, "precision": "bf16", "optimizer": "sgd",
      "framework": "megatron_2022", "tensor_parallel": 2, "sequence_parallel": true},
    "hardware": {"profile": "ssdtrain-testbed", "set": {"gpu.peak_flops.bf16": "x0.5426"}}})",
                          "test", "", edits);
  };
  std::map<std::pair<std::string, std::int64_t>, studies::RokPoint> points;
  for (const studies::RokPoint& point : studies::rok_curve(with, std::vector<std::int64_t>{8, 16}, false))
    points[{point.candidate.name, point.micro_batch}] = point;
  for (const std::int64_t batch : {8, 16}) {
    const auto& keep = points.at({"keep", batch});
    const auto& offload = points.at({"offload", batch});
    const auto& recompute = points.at({"recompute", batch});
    EXPECT_NEAR(offload.model_flops_per_second / keep.model_flops_per_second, 1, 0.005) << batch;
    EXPECT_LT(recompute.model_flops_per_second, 0.85 * keep.model_flops_per_second) << batch;
    EXPECT_LT(in_gib(offload.activations), 0.7 * in_gib(keep.activations)) << batch;
    EXPECT_LT(recompute.activations, offload.activations) << batch;
  }
  EXPECT_LT(in_gib(points.at({"offload", 16}).activations), 1.25 * in_gib(points.at({"keep", 8}).activations));
}

// Eight stages share the drives of one machine. Where these hold the rate, offloading takes no time and saves; where
// they don't, the rule keeps what would be late, in the end everything. Interleaved chunks pause between a
// micro-batch's stores, which says nothing of the drives.
TEST(Ssdtrain, PipelinesAreNotSlowedWhateverTheDrives) {
  for (const std::string schedule : {"1f1b", "interleaved"}) {
    const auto stages = [&](int drives) {
      std::string text = R"({"schema": "spillway-scenario", "version": 1,
        "model": {"name": "gpt3-175b", "layers": 16, "sequence": 1024, "micro_batch": 2, "gradient_accumulation": 8,
          "framework": "megatron_2022", "pipeline_parallel": 8, "pipeline_schedule": ")" +
                         schedule + R"(", "pipeline_chunks": )" + (schedule == "interleaved" ? "2" : "1") +
                         R"(}, "hardware": {"profile": "dgx-a100"})";
      if (drives > 0)
        text += R"(, "offload": {"technique": "ssdtrain", "drives": "samsung-pm1743-15.36tb", "drives_per_machine": )" +
                std::to_string(drives) + "}";
      return run(load(parse_scenario(text + "}", "test", "")));
    };
    const Result keep = stages(0);
    Bytes stored{};
    for (const int drives : {1, 16, 64}) {
      const Result offload = stages(drives);
      EXPECT_LE(to_seconds(offload.step_time), 1.03 * to_seconds(keep.step_time)) << schedule << " " << drives;
      EXPECT_GE(offload.offload->stored, stored) << schedule << " " << drives;
      stored = offload.offload->stored;
      const double saved = 1 - in_gib(offload.memory.peak_allocated) / in_gib(keep.memory.peak_allocated);
      if (drives == 1) {
        EXPECT_EQ(stored, Bytes(0)) << schedule;
      }
      if (drives == 64) {
        EXPECT_GT(saved, 0.02) << schedule;
      }
    }
  }
}

// Drives too slow for anything: the rule keeps all, the step is the plain one, and the result says what that means.
TEST(OffloadScenario, WhatMovesOrSavesNothingSaysSo) {
  const auto on = [](const char* drives, const char* more) {
    return run(gpt2(std::string(R"(, "offload": {"technique": "ssdtrain", "least_elements": 1000000, "drives": ")") +
                    drives + "\"" + more + "}"));
  };
  const Result slow = on("samsung-980-pro-1tb", "");
  EXPECT_EQ(slow.offload->stored, Bytes(0));
  EXPECT_THAT(slow.warnings, testing::Contains(testing::HasSubstr("moves nothing")));
  const Result ahead = on("samsung-980-pro-1tb", R"(, "adaptive": false, "in_flight_bytes": 0)");
  EXPECT_GT(ahead.offload->stored, Bytes(0));
  EXPECT_THAT(ahead.warnings, testing::Contains(testing::HasSubstr("saves nothing")));
}

// what_if.pcie speeds up what a technique moves as well: a step that waits for its copies gets shorter, and
// explain() of the scenario without it says the same.
TEST(OffloadScenario, WhatIfPcieReachesTheTransfers) {
  const std::string streamed = R"(, "offload": {"technique": "stream", "tier": "host"})";
  const LoadedScenario loaded = gpt2(streamed);
  const Result result = run(loaded);
  ASSERT_EQ(result.binding, Binding::pcie);
  const auto with = [&](const char* factor) {
    return run(gpt2(streamed + R"(, "what_if": {"pcie": )" + factor + "}")).step_time;
  };
  const std::vector<Relaxation> relaxed = explain(loaded, result);
  EXPECT_EQ(relaxed.at(3).resource, "PCIe x2");
  EXPECT_EQ(with("2"), relaxed.at(3).step_time);
  EXPECT_LT(with("2"), result.step_time * 8 / 10);
  EXPECT_GT(with("0.5"), result.step_time * 14 / 10);
  EXPECT_EQ(with("1"), result.step_time);
}

TEST(OffloadScenario, UnknownDrivesAndSettingsAreRefused) {
  EXPECT_THROW(gpt2(R"(, "offload": {"technique": "magic"})"), InputError);
  EXPECT_THROW(gpt2(R"(, "offload": {"technique": "ssdtrain", "drives": "no-such-drive"})"), InputError);
  EXPECT_THROW(gpt2(R"(, "offload": {"workers": 0})"), InputError);
  EXPECT_THROW(run(gpt2(R"(, "offload": {"technique": "ssdtrain", "least_elements": 1000, "drive_set": "none"})")),
               InputError);
}

// Random absences and recomputations on a real step: every plan that is made keeps the rules.
TEST(PlannedTrace, RandomPlansKeepTheRules) {
  const LoadedScenario loaded = gpt2();
  const std::vector<SavedTensor> saved = saved_tensors(loaded.trace);
  std::mt19937_64 random(7);
  for (int round = 0; round < spillway::test::cases(20, 40); ++round) {
    OffloadPlan plan;
    plan.store_workers = 1 + static_cast<std::int64_t>(random() % 4);
    plan.load_workers = 1 + static_cast<std::int64_t>(random() % 4);
    plan.in_flight = Bytes(static_cast<std::int64_t>(random() % 3) * (50 << 20));
    plan.route = random() % 2 == 0 ? DriveRoute::gpudirect : DriveRoute::bounce;
    for (const SavedTensor& tensor : saved) {
      if (random() % 3 == 0 || tensor.last_forward == tensor.first_backward) continue;
      Absence absence{tensor.tensor,     random() % 2 == 0 ? Tier::drive : Tier::host,
                      tensor.written_by, tensor.last_forward,
                      OpId::none,        tensor.first_backward,
                      random() % 8 == 0};
      plan.absences.push_back(absence);
    }
    PlannedTrace planned = planned_trace(loaded.trace, plan);
    const Result result = replay(planned, loaded.hardware, loaded.options);
    Bytes stored{}, loaded_bytes{}, forwarded{};
    planned.trace.check_invariants();
    for (std::size_t k = 0; k < plan.absences.size(); ++k) {
      if (planned.transfer[k] != OpId::none) stored += planned.trace.ops.bytes[index_of(planned.transfer[k])];
      if (planned.fetch[k] != OpId::none) {
        loaded_bytes += planned.trace.ops.bytes[index_of(planned.fetch[k])];
        ASSERT_LE(result.op_end[index_of(planned.transfer[k])], result.op_start[index_of(planned.fetch[k])]);
      }
      if (plan.absences[k].forwarded) forwarded += planned.trace.ops.bytes[index_of(planned.transfer[k])];
    }
    ASSERT_EQ(stored, loaded_bytes + forwarded);
    check_lives(planned.trace);
  }
}

TEST(PlannedTrace, RefusesPlansThatDoNotFit) {
  const LoadedScenario loaded = gpt2();
  const SavedTensor saved = saved_tensors(loaded.trace).front();
  const auto with = [&](const Absence& absence) {
    OffloadPlan plan;
    plan.absences = {absence};
    return plan;
  };
  const Absence good{saved.tensor, Tier::drive, saved.written_by, saved.last_forward, OpId::none, saved.first_backward};
  EXPECT_NO_THROW(planned_trace(loaded.trace, with(good)));
  Absence bad = good;
  bad.back_before = saved.written_by;
  EXPECT_THROW(planned_trace(loaded.trace, with(bad)), InputError);
  bad = good;
  bad.tensor = TensorId(static_cast<std::uint32_t>(loaded.trace.tensors.size()));
  EXPECT_THROW(planned_trace(loaded.trace, with(bad)), InputError);
  bad = good;
  bad.tier = Tier::recompute;
  EXPECT_THROW(planned_trace(loaded.trace, with(bad)), InputError);  // nothing recomputes it
  OffloadPlan twice = with(good);
  twice.absences.push_back(good);
  EXPECT_THROW(planned_trace(loaded.trace, twice), InputError);
}

// gelu's output made again from its input just before the product that needs it: one kernel more, memory less.
TEST(PlannedTrace, RepeatsOps) {
  const LoadedScenario loaded = gpt2();
  const Result keep = run(loaded);
  OffloadPlan plan;
  for (const SavedTensor& saved : saved_tensors(loaded.trace)) {
    if (loaded.trace.strings.text(loaded.trace.ops.name[index_of(saved.written_by)]) != "gelu") continue;
    plan.absences.push_back(
        {saved.tensor, Tier::recompute, OpId::none, saved.last_forward, OpId::none, saved.first_backward});
    plan.recomputations.push_back({saved.first_backward, {saved.written_by}});
  }
  ASSERT_EQ(plan.recomputations.size(), 12U);
  std::sort(plan.recomputations.begin(), plan.recomputations.end(),
            [](const Recomputation& a, const Recomputation& b) { return a.before < b.before; });
  const PlannedTrace planned = planned_trace(loaded.trace, plan);
  check_lives(planned.trace);
  EXPECT_EQ(planned.trace.ops.size(), loaded.trace.ops.size() + 24);
  const Result again = replay(planned, loaded.hardware, loaded.options);
  EXPECT_GT(again.step_time, keep.step_time);
  // 12 layers keep 8 x 1,024 x 3,072 values of two bytes less, one of them is back at the peak.
  const std::int64_t one = 8 * 1024 * 3072 * 2;
  EXPECT_LE(again.memory.peak_allocated.count(), keep.memory.peak_allocated.count() - 10 * one);
}

// gelu's input is away on a slow drive, asked for when gelu is to be repeated, and itself used again only later: the
// repeated gelu reads it, so it begins when the load has ended.
TEST(PlannedTrace, RepeatedOpsWaitForLoadsOfWhatTheyRead) {
  const LoadedScenario loaded = gpt2();
  const std::vector<SavedTensor> saved = saved_tensors(loaded.trace);
  OffloadPlan plan;
  std::map<TensorId, OpId> repeated_before;  // gelu's input: by what its output is wanted
  for (const SavedTensor& output : saved) {
    if (loaded.trace.strings.text(loaded.trace.ops.name[index_of(output.written_by)]) != "gelu") continue;
    plan.absences.push_back(
        {output.tensor, Tier::recompute, OpId::none, output.last_forward, OpId::none, output.first_backward});
    plan.recomputations.push_back({output.first_backward, {output.written_by}});
    for (const Use& use : loaded.trace.uses)
      if (use.op == output.written_by && use.access == Access::read)
        repeated_before.emplace(use.tensor, output.first_backward);
  }
  std::sort(plan.recomputations.begin(), plan.recomputations.end(),
            [](const Recomputation& a, const Recomputation& b) { return a.before < b.before; });
  std::map<OpId, std::size_t> load_of;  // gelu: the absence of its input
  for (const SavedTensor& input : saved) {
    const auto found = repeated_before.find(input.tensor);
    if (found == repeated_before.end()) continue;
    ASSERT_LT(found->second, input.first_backward);
    load_of.emplace(input.last_forward, plan.absences.size());
    plan.absences.push_back(
        {input.tensor, Tier::drive, input.written_by, input.last_forward, found->second, input.first_backward});
  }
  ASSERT_EQ(load_of.size(), 12U);
  const PlannedTrace planned = planned_trace(loaded.trace, plan);
  check_lives(planned.trace);
  const Result result = replay(planned, loaded.hardware, loaded.options);
  std::size_t repeated = 0;
  for (std::size_t i = 0; i < planned.source.size(); ++i) {
    if (planned.trace.ops.phase[i] != Phase::recompute || !is_device_work(planned.trace.ops.kind[i])) continue;
    const OpId load = planned.fetch[load_of.at(planned.source[i])];
    EXPECT_GE(result.op_start[i], result.op_end[index_of(load)]);
    ++repeated;
  }
  EXPECT_EQ(repeated, 12U);
}

}  // namespace
}  // namespace spillway::scenario
