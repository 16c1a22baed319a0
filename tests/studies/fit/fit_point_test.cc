// Points of the search: edits that make them again, layouts and moves from them.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/input_error.h"
#include "studies/fit/fit_knobs.h"
#include "studies/fit/fit_layouts.h"
#include "studies/fit/fit_moves.h"
#include "studies/fit/fit_screen.h"

namespace spillway::studies {
namespace {

FitSubject subject(const std::string& model, const std::string& machine, std::int64_t batch, bool same_maths = false) {
  return fit_subject(
      {.what = model, .machine = machine, .same_maths = same_maths, .sequence = 512, .global_batch = batch});
}

TEST(FitPoint, EditsMakeItAgain) {
  const FitSubject on = subject("gpt2-small", "8xh100", 32);
  const FitPoints points(on);
  const FitQuestion question;
  const FitMoves moves(question, on, points);
  EXPECT_TRUE(points.settings(points.as_given()).empty());
  EXPECT_EQ(points.name(points.as_given()), "As given");
  std::size_t tried = 0;
  for (const FitPoint& layout : fit_layouts(on, points, 8)) {
    if (++tried % 8 != 1) continue;
    for (const FitMove& move : moves.from(layout, false, Carrier::frameworks)) {
      const std::vector<std::string> settings = points.settings(move.point);
      EXPECT_EQ(points.settings(points.with(points.as_given(), settings)), settings) << move.name;
      EXPECT_TRUE(points.holds(move.point, settings)) << move.name;
      // What the scenario is read as is what the point says.
      const Scenario read = scenario_of(on.scenario, settings);
      for (const std::string& key : training_setup_keys())
        EXPECT_EQ(field_text(read.training, key), field_text(move.point.setup, key)) << move.name << ": " << key;
    }
  }
  EXPECT_GT(tried, 20U);
}

// What is taken away or set beside the layout is told, so that no two ways go by one name.
TEST(FitPoint, NamesTellWaysApart) {
  const FitSubject on = subject("gpt2-small", "8xh100", 32);
  FitPoints points(on);
  const FitPoint given = points.as_given();
  EXPECT_NE(points.name(points.with(given, {"model.overlap_gradients=false"})),
            points.name(points.with(given, {"model.overlap_gradients=true", "model.bucket_bytes=1000000"})));
  std::set<std::string> names;
  std::set<std::vector<std::string>> ways;
  for (const FitMove& move : FitMoves({}, on, points).from(given, false, Carrier::frameworks))
    if (ways.insert(points.settings(move.point)).second) {
      EXPECT_TRUE(names.insert(points.name(move.point)).second) << points.name(move.point) << ": " << move.name;
    }
  EXPECT_GT(names.size(), 15U);
}

// What Megatron-core overlaps with nothing is tried without the overlap, which the edits say.
TEST(FitPoint, AnOverlapIsGivenUpWhereItCannotBe) {
  FitQuestion question{.what = "mixtral-8x7b", .machine = "8xh100", .sequence = 512, .global_batch = 32};
  question.settings = {"model.framework=megatron", "model.expert_parallel=8", "model.overlap_experts=true"};
  const FitSubject on = fit_subject(question);
  const FitPoints points(on);
  const auto edits = [&points](const std::vector<std::string>& settings) {
    return points.settings(points.with(points.as_given(), settings));
  };
  EXPECT_EQ(edits({"model.recompute=selective"}), std::vector<std::string>{"model.recompute=selective"});
  EXPECT_EQ(edits({"model.recompute=full"}),
            (std::vector<std::string>{"model.recompute=full", "model.overlap_experts=false"}));
}

// An evaluation sees as many sequences on other replicas, rounded up.
TEST(FitPoint, AnEvaluationKeepsItsSequences) {
  FitQuestion question{.what = "gpt2-small", .machine = "8xh100", .sequence = 512, .global_batch = 32};
  question.settings = {"model.evaluate_every=100", "model.evaluation_batches=15"};
  const FitSubject on = fit_subject(question);
  const FitPoints points(on);
  const auto edits = [&points](const std::vector<std::string>& settings) {
    return points.candidate(points.with(points.as_given(), settings)).edits;
  };
  const auto wanted = [](const std::vector<std::string>& edits) {
    return std::count(edits.begin(), edits.end(), "model.evaluation_batches=60") == 1;
  };
  ASSERT_EQ(on.parsed.training.data_parallel, 8);
  EXPECT_TRUE(wanted(edits({"model.data_parallel=2", "model.tensor_parallel=4"})));
  EXPECT_FALSE(wanted(edits({"model.recompute=full"})));
  EXPECT_TRUE(keeps_sequences("model.evaluation_batches=60"));
  EXPECT_FALSE(keeps_sequences("model.data_parallel=2"));
}

// One rank shares nothing out: no way over one is named after a stage or edits one, whatever the scenario says; weights
// may live elsewhere all the same.
TEST(FitPoint, OneRankIsCalledNoStage) {
  for (const std::vector<std::string>& given : {std::vector<std::string>(), {"model.zero_stage=3"}}) {
    FitQuestion question{.what = "gpt2-small", .machine = "1xh100", .sequence = 512, .global_batch = 8};
    question.settings = given;
    const FitSubject on = fit_subject(question);
    const FitPoints points(on);
    const FitMoves moves(question, on, points);
    std::size_t fetched = 0;
    const auto check = [&](const FitMove& move) {
      EXPECT_EQ(points.name(move.point).find("ZeRO"), std::string::npos) << points.name(move.point);
      EXPECT_EQ(move.name.find("ZeRO"), std::string::npos) << move.name;
      for (const std::string& setting : points.settings(move.point))
        EXPECT_FALSE(setting.starts_with("model.zero_stage=") || setting.starts_with("model.shard_groups=")) << setting;
      if (move.point.setup.weight_device == StateDevice::gpu) return;
      EXPECT_NO_THROW(static_cast<void>(resolve(move.point.setup, *on.model))) << move.name;
      ++fetched;
    };
    for (const FitMove& move : moves.from(points.as_given(), false, Carrier::frameworks)) {
      check(move);
      for (const FitMove& next : moves.from(move.point, false, Carrier::frameworks)) check(next);
    }
    EXPECT_GT(fetched, 0U);
  }
  const FitSubject on = subject("gpt2-small", "8xh100", 32);
  const FitPoints points(on);
  const FitPoint two = points.with(points.as_given(), {"model.data_parallel=8", "model.zero_stage=3"});
  EXPECT_NE(points.name(two).find("ZeRO-3"), std::string::npos) << points.name(two);
  EXPECT_EQ(points.name(points.with(two, {"model.data_parallel=1", "model.tensor_parallel=4"})).find("ZeRO"),
            std::string::npos);
}

// 8 GPUs: t c p d = 8; every ordered factorisation that the model allows, each once.
TEST(FitLayouts, AreAllThatUseTheGpus) {
  const FitSubject on = subject("gpt2-small", "8xh100", 32);
  const FitPoints points(on);
  std::set<std::vector<std::string>> seen;
  std::set<std::vector<std::int64_t>> splits;
  for (const FitPoint& point : fit_layouts(on, points, 8)) {
    EXPECT_EQ(point.setup.gpus(), 8);
    EXPECT_TRUE(seen.insert(points.settings(point)).second) << points.name(point);
    splits.insert({point.setup.tensor_parallel, point.setup.pipeline_parallel, point.setup.data_parallel});
  }
  // 12 heads: t is 1, 2 or 4; p up to 8; d the rest; 512 tokens are not split: 4 + 3 + 2.
  EXPECT_EQ(splits.size(), 9U);
  for (const FitMove& move : FitMoves({}, on, points).from(points.as_given(), false, Carrier::frameworks)) {
    if (move.is_layout) {
      EXPECT_EQ(move.point.setup.gpus(), 8) << move.name;
    }
  }
}

TEST(FitMoves, StayWithTheSameMathsWhereAsked) {
  const FitSubject on = subject("gpt2-small", "1xh100", 4);
  const FitPoints points(on);
  const auto changed = [&](bool same_maths) {
    const FitQuestion question{.same_maths = same_maths};
    std::size_t count = 0;
    for (const FitMove& move : FitMoves(question, on, points).other_maths(points.as_given()))
      count += points.changes_maths(move.point) ? 1 : 0;
    return count;
  };
  EXPECT_EQ(changed(true), 0U);
  EXPECT_EQ(changed(false), 4U);  // two optimizers, two precisions
  for (const FitMove& move : FitMoves({}, on, points).from(points.as_given(), false, Carrier::frameworks))
    EXPECT_FALSE(points.changes_maths(move.point)) << move.name;
}

// A key that nobody said a role of would be no move of the search, in silence.
TEST(FitKnobs, EveryKeyHasARole) {
  for (const std::string& key : training_setup_keys()) EXPECT_NO_THROW(static_cast<void>(role_of(key))) << key;
  EXPECT_EQ(role_of("loss"), KeyRole::knob);
  EXPECT_EQ(role_of("precision"), KeyRole::numerics);
  EXPECT_EQ(role_of("sequence"), KeyRole::question);
  TrainingSetup setup;
  setup.recompute = Recompute::full;
  const std::vector<std::string> settings = knob_settings(setup, 32);
  const auto has = [&](const std::string& one) {
    return std::find(settings.begin(), settings.end(), one) != settings.end();
  };
  EXPECT_TRUE(has("model.recompute_layers=16"));
  EXPECT_TRUE(has("model.loss=chunked"));
  EXPECT_FALSE(has("model.overlap_tensor=true"));  // no tensor group
  for (const std::string& one : settings) {
    const std::size_t equals = one.find('=');
    EXPECT_EQ(role_of(one.substr(6, equals - 6)), KeyRole::knob) << one;
  }
}

TEST(FitCarrier, WhoRunsAWay) {
  const FitSubject on = subject("gpt2-small", "8xh100", 32);
  const FitPoints points(on);
  const auto carrier = [&](const std::vector<std::string>& settings) {
    return carrier_of(points, points.with(points.as_given(), settings));
  };
  EXPECT_EQ(carrier({}), Carrier::frameworks);
  EXPECT_EQ(carrier({"model.recompute=full", "model.optimizer_device=cpu"}), Carrier::frameworks);
  EXPECT_EQ(carrier({"memory.allocator=torch-expandable"}), Carrier::frameworks);
  EXPECT_EQ(carrier({"offload.technique=ssdtrain"}), Carrier::planner);
  EXPECT_EQ(carrier({"offload.technique=stream"}), Carrier::nobody);
  EXPECT_EQ(carrier({"memory.allocator=gmlake"}), Carrier::nobody);
  EXPECT_EQ(carrier({"offload.technique=ssdtrain", "memory.allocator=gmlake"}), Carrier::nobody);
  EXPECT_EQ(carrier({"order.technique=roam"}), Carrier::nobody);
  EXPECT_EQ(carrier({"model.pipeline_parallel=4", "model.data_parallel=2", "model.pipeline_schedule=chronos"}),
            Carrier::nobody);
  for (const FitMove& move : FitMoves({}, on, points).from(points.as_given(), false, Carrier::frameworks))
    EXPECT_EQ(carrier_of(points, move.point), Carrier::frameworks) << move.name;
}

TEST(FitMoves, RemovalsUndoOneThing) {
  const FitSubject on = subject("gpt2-small", "1xh100", 4);
  const FitPoints points(on);
  const FitPoint point = points.with(points.as_given(), {"model.recompute=full", "offload.technique=ssdtrain",
                                                         "offload.tier=host", "memory.allocator=torch-expandable"});
  EXPECT_EQ(points.settings(point).size(), 4U);
  std::set<std::string> names;
  for (const FitMove& move : FitMoves({}, on, points).removals(point)) {
    names.insert(move.name);
    EXPECT_LT(points.settings(move.point).size(), 4U) << move.name;
  }
  EXPECT_EQ(names, (std::set<std::string>{"without recomputation", "without ssdtrain-host",
                                          "without the allocator torch-expandable"}));
}

TEST(FitQuestion, FillsInWhatIsLeftOpen) {
  const FitSubject open = fit_subject({.what = "llama-3-8b", .machine = "16xh100"});
  EXPECT_EQ(open.gpus, 16);
  EXPECT_EQ(open.hardware.total_gpus(), 16);
  EXPECT_EQ(open.parsed.training.sequence, 8192);
  EXPECT_EQ(open.parsed.training.global_batch, 64);  // half a million tokens
  EXPECT_EQ(open.parsed.training.gpus(), 16);
  EXPECT_GE(open.assumptions.size(), 4U);
  EXPECT_EQ(default_batch(8, 131072), 8);
  EXPECT_EQ(default_batch(1, 1024), 16);
  EXPECT_EQ(default_batch(256, 4096), 256);
  const FitSubject said = subject("llama-3-8b", "8xh100", 24);
  EXPECT_EQ(said.parsed.training.global_batch, 24);
  EXPECT_EQ(said.parsed.training.sequence, 512);
  EXPECT_EQ(said.parsed.training.data_parallel, 8);
}

TEST(FitQuestion, RefusesWithTheNearestName) {
  const auto error_of = [](const FitQuestion& question) {
    try {
      static_cast<void>(fit_subject(question));
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_NE(error_of({.what = "lama-3-8b", .machine = "8xh100"}).find("llama-3-8b"), std::string::npos);
  EXPECT_NE(error_of({.what = "llama-3-8b"}).find("--on"), std::string::npos);
  EXPECT_NE(error_of({.what = "llama-3-8b", .machine = "8xh10"}).find("h100"), std::string::npos);
}

// The screen against replays, of layouts of a model that has a closed form: peaks within 15 %, times within 25 %.
TEST(FitScreen, EstimatesWhatReplaysSay) {
  const FitSubject on = subject("gpt2-medium", "8xa100", 32);
  const FitPoints points(on);
  FitScreen screen(on, points);
  const std::vector<FitPoint> layouts = fit_layouts(on, points, 8);
  const std::vector<FitEstimate> estimates = screen.estimate(layouts);
  std::vector<Candidate> ways;
  std::vector<const FitEstimate*> of;
  for (std::size_t i = 0; i < layouts.size(); i += 4) {
    if (!estimates[i].invalid.empty() || estimates[i].is_bound) continue;
    ways.push_back(points.candidate(layouts[i]));
    of.push_back(&estimates[i]);
  }
  ASSERT_GT(ways.size(), 5U);
  const std::vector<Row> rows = evaluate(on.scenario, ways);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    ASSERT_TRUE(rows[i].ran()) << rows[i].error;
    EXPECT_NEAR(of[i]->seconds / to_seconds(rows[i].result.step_time), 1, 0.25) << ways[i].name;
    const auto peak = static_cast<double>(rows[i].result.memory.peak_allocated.count());
    EXPECT_NEAR(static_cast<double>(of[i]->peak.count()) / peak, 1, 0.15) << ways[i].name;
  }
}

// Where activations leave, no replay holds less than the bound by more than its closed form is off; and it is no idle
// one.
TEST(FitScreen, BoundsWhatMovesActivations) {
  const FitSubject on = subject("gpt2-medium", "8xa100", 32);
  const FitPoints points(on);
  FitScreen screen(on, points);
  double nearest = 0;
  std::vector<FitPoint> moving;
  std::size_t index = 0;
  for (const FitPoint& layout : fit_layouts(on, points, 8)) {
    const TrainingSetup& setup = layout.setup;
    if (++index % 3 == 0 || setup.pipeline_chunks > 1) continue;
    for (const char* technique : {"checkpoints", "ssdtrain"})
      moving.push_back(points.with(layout, {"model.micro_batch=2", std::string("offload.technique=") + technique,
                                            "offload.tier=host", "offload.least_elements=1000"}));
  }
  const std::vector<FitEstimate> estimates = screen.estimate(moving);
  std::vector<Candidate> ways;
  for (const FitPoint& point : moving) ways.push_back(points.candidate(point));
  const std::vector<Row> rows = evaluate(on.scenario, ways);
  std::size_t compared = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!rows[i].ran() || !estimates[i].invalid.empty()) continue;
    ++compared;
    EXPECT_TRUE(estimates[i].is_bound);
    const double share = static_cast<double>(estimates[i].peak.count()) /
                         static_cast<double>(rows[i].result.memory.peak_allocated.count());
    EXPECT_LE(share, 1.1) << ways[i].name;
    nearest = std::max(nearest, share);
    EXPECT_LE(estimates[i].seconds, 1.25 * to_seconds(rows[i].result.step_time)) << ways[i].name;
  }
  EXPECT_GT(compared, 10U);
  EXPECT_GT(nearest, 0.8);
}

}  // namespace
}  // namespace spillway::studies
