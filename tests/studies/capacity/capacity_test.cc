// Capacity: the edge search against looking at every candidate; answers against replays one by one.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>

#include "base/input_error.h"
#include "models/spec/model_spec.h"
#include "scenario/scenario_run.h"
#include "studies/capacity/capacity.h"
#include "studies/capacity/edge_search.h"
#include "studies/screen/state_bound.h"
#include "studies/sweep/layout_sweep.h"

namespace spillway::studies {
namespace {

// Every edge of 40 candidates from every beginning, with an exact, a crooked and no measure: found, each candidate
// tried at most once, and at most 2 log2(n) + 4 of them without a measure.
TEST(EdgeSearch, FindsEveryEdge) {
  constexpr std::int64_t count = 40;
  for (std::int64_t edge = 0; edge <= count; ++edge) {
    for (std::int64_t first = 0; first < count; first += 3) {
      for (int kind = 0; kind < 3; ++kind) {
        std::set<std::int64_t> seen;
        const VerdictEdge found = find_edge(first, count, [&](std::int64_t at) {
          EXPECT_TRUE(seen.insert(at).second);
          const double line = static_cast<double>(at) - static_cast<double>(edge) + 0.5;
          EdgeTrial trial{at < edge, std::nullopt};
          if (kind == 0) trial.measure = line;
          if (kind == 1) trial.measure = line * (1 + 0.2 * static_cast<double>(at));
          return trial;
        });
        EXPECT_EQ(found.lower.value_or(-1), edge - 1) << first << " " << kind;
        EXPECT_EQ(found.upper.value_or(count), edge) << first << " " << kind;
        EXPECT_TRUE(found.is_monotone);
        EXPECT_EQ(found.trials, static_cast<std::int64_t>(seen.size()));
        EXPECT_LE(found.trials, 15);
      }
    }
  }
}

// A straight measure needs far fewer trials than halving: about five for a million candidates.
TEST(EdgeSearch, FollowsALine) {
  const VerdictEdge found = find_edge(80, 1'000'000, [](std::int64_t at) {
    return EdgeTrial{at < 3217, 4096.0 * static_cast<double>(at) - 4096.0 * 3216.5};
  });
  EXPECT_EQ(found.lower, 3216);
  EXPECT_LE(found.trials, 9);
}

// A verdict that comes back right behind the edge is noticed, and the edge behind it is found.
TEST(EdgeSearch, NoticesReturns) {
  const VerdictEdge found = find_edge(2, 100, [](std::int64_t at) {
    return EdgeTrial{at < 50 && at != 20, std::nullopt};
  });
  EXPECT_GE(found.lower.value_or(0), 19);
  const VerdictEdge other = find_edge(16, 22, [](std::int64_t at) { return EdgeTrial{at != 17, std::nullopt}; });
  EXPECT_TRUE(other.lower == 21 ? true : !other.is_monotone);
  EXPECT_EQ(find_edge(0, 3, [](std::int64_t at) { return EdgeTrial{at != 1, std::nullopt}; }).is_monotone, false);
}

class CapacityFile : public testing::Test {
 protected:
  CapacityFile()
      : folder_(std::filesystem::temp_directory_path() / ("spillway_capacity_test_" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~CapacityFile() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& rest, const std::string& model = R"("sequence": 512, "micro_batch": 4)") {
    const std::string path = (folder_ / "s.json").string();
    std::ofstream(path) << R"({"schema": "spillway-scenario", "version": 1, "model": {"name": "gpt2-small", )" << model
                        << R"(}, "hardware": {"profile": "h100-80gb-1gpu"}, )"
                        << R"("memory": {"capacity_bytes": 6000000000})" << rest << "}";
    return path;
  }
  static std::string complaint(const std::string& path, const CapacityFlags& flags = {}) {
    try {
      find_capacity(read_capacity_request(path, {}, flags));
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  }

  std::filesystem::path folder_;
};

bool fits(const std::string& path, std::vector<std::string> settings) {
  return run(load(load_scenario(path, settings))).fits();
}

// The answer fits and one step more doesn't, by replays of their own; full recomputation trains more layers than
// keeping everything, at fewer tokens a second for the same model.
TEST_F(CapacityFile, LayersAreTheLargestThatFit) {
  const std::string path = write(R"(, "capacity": {"techniques": ["keep", "full"]})");
  const CapacityOutcome outcome = find_capacity(read_capacity_request(path, {}));
  ASSERT_EQ(outcome.answers.size(), 2U);
  for (const CapacityAnswer& answer : outcome.answers) {
    ASSERT_TRUE(answer.best && answer.beyond) << answer.technique.name;
    EXPECT_EQ(answer.beyond->value, answer.best->value + 1);
    std::vector<std::string> settings = answer.technique.edits;
    settings.push_back("model.layers=" + std::to_string(answer.best->value));
    EXPECT_TRUE(fits(path, settings));
    settings.back() = "model.layers=" + std::to_string(answer.beyond->value);
    EXPECT_FALSE(fits(path, settings));
    EXPECT_LE(answer.best->needed(), answer.best->capacity());
    EXPECT_FALSE(answer.binding().empty());
    EXPECT_LE(answer.replays, 9);
    ModelSpec model = find_model("gpt2-small");
    model.layers = answer.best->value;
    EXPECT_EQ(answer.best->parameters, parameter_count(model));
  }
  EXPECT_GT(outcome.answers[1].best->value, outcome.answers[0].best->value);
}

TEST_F(CapacityFile, OtherAxes) {
  for (const char* axis : {"sequence", "micro_batch"}) {
    CapacityFlags flags;
    flags.said.axis = axis;
    flags.said.step = std::string(axis) == "sequence" ? 64 : 1;
    flags.techniques = {"keep"};
    const std::string path = write("");
    const CapacityOutcome outcome = find_capacity(read_capacity_request(path, {}, flags));
    const CapacityAnswer& answer = outcome.answers.front();
    ASSERT_TRUE(answer.best && answer.beyond) << axis;
    const std::string key = "model." + std::string(axis) + "=";
    EXPECT_TRUE(fits(path, {key + std::to_string(answer.best->value)})) << axis;
    if (answer.beyond->replayed) {
      EXPECT_FALSE(fits(path, {key + std::to_string(answer.beyond->value)})) << axis;
    }
  }
}

// The least memory: the first value that holds.
TEST_F(CapacityFile, LeastMemory) {
  CapacityFlags flags;
  flags.said.axis = "memory";
  flags.said.step = 100'000'000;
  flags.techniques = {"keep"};
  const std::string path = write("");
  const CapacityOutcome outcome = find_capacity(read_capacity_request(path, {}, flags));
  const CapacityAnswer& answer = outcome.answers.front();
  ASSERT_TRUE(answer.best && answer.beyond);
  EXPECT_EQ(answer.beyond->value + flags.said.step, answer.best->value);
  EXPECT_TRUE(fits(path, {"memory.capacity_bytes=" + std::to_string(answer.best->value)}));
  EXPECT_FALSE(fits(path, {"memory.capacity_bytes=" + std::to_string(answer.beyond->value)}));
}

// What fits without the reserve's margin alone is a yes with its tightness, as `run` has it; a value that keeps the
// whole reserve goes before it.
TEST_F(CapacityFile, TightIsAYesAsInRun) {
  const std::string path = write(R"(, "capacity": {"techniques": ["keep"]})", R"("sequence": 1024, "micro_batch": 4)");
  const std::vector<std::string> limits = {"memory.capacity_bytes=6442450944", "memory.reserve=1GiB"};
  const auto run_of = [&](std::int64_t batch) {
    std::vector<std::string> settings = limits;
    settings.push_back("model.micro_batch=" + std::to_string(batch));
    return run(load(load_scenario(path, settings)));
  };
  const Result tight = run_of(4);
  ASSERT_EQ(tight.verdict(), Verdict::tight);
  CapacityFlags flags;
  flags.said.axis = "micro_batch";
  flags.said.from = flags.said.to = 4;
  const CapacityOutcome alone = find_capacity(read_capacity_request(path, limits, flags));
  ASSERT_TRUE(alone.best && alone.answers.front().best);
  const CapacityTrial& best = *alone.answers.front().best;
  EXPECT_TRUE(best.only_tight);
  EXPECT_EQ(best.row.result.verdict(), Verdict::tight);
  EXPECT_EQ(best.row.result.step_time, tight.step_time);
  EXPECT_EQ(best.needed(), tight.memory.peak_reserved);
  EXPECT_EQ(best.row.result.fingerprint, tight.fingerprint);
  // Among others: the largest that keeps the reserve.
  flags.said.from = 1;
  const CapacityOutcome among = find_capacity(read_capacity_request(path, limits, flags));
  ASSERT_TRUE(among.answers.front().best);
  const CapacityTrial& whole = *among.answers.front().best;
  EXPECT_FALSE(whole.only_tight);
  EXPECT_LT(whole.value, 4);
  EXPECT_EQ(run_of(whole.value).verdict(), Verdict::fits);
  EXPECT_NE(run_of(whole.value + 1).verdict(), Verdict::fits);
}

// A constraint on time ends the axis before memory does, and is named.
TEST_F(CapacityFile, ConstraintsBind) {
  const std::string path = write(R"(, "capacity": {"techniques": ["full"]})");
  const CapacityAnswer free = find_capacity(read_capacity_request(path, {})).answers.front();
  CapacityFlags flags;
  flags.said.constraints.most_step_seconds = to_seconds(free.best->row.result.step_time) / 2;
  const CapacityAnswer bound = find_capacity(read_capacity_request(path, {}, flags)).answers.front();
  ASSERT_TRUE(bound.best);
  EXPECT_LT(bound.best->value, free.best->value);
  EXPECT_LE(to_seconds(bound.best->row.result.step_time), flags.said.constraints.most_step_seconds);
  EXPECT_NE(bound.binding().find("is longer than"), std::string::npos);
}

// The best answer's margins, and single changes that would let it go one step further: full recomputation, which trains
// more layers than keeping everything, is among them, and each verdict is a replay's.
TEST_F(CapacityFile, SaysWhatWouldGoFurther) {
  const std::string path = write(R"(, "capacity": {"techniques": ["keep"], "constraints": {"step_time_seconds": 9}})");
  const CapacityOutcome outcome = find_capacity(read_capacity_request(path, {}));
  ASSERT_TRUE(outcome.best);
  const CapacityAnswer& answer = outcome.answers[*outcome.best];
  ASSERT_TRUE(answer.beyond);
  const std::string beyond = "model.layers=" + std::to_string(answer.beyond->value);
  bool seen = false;
  for (const FurtherChange& change : answer.changes) {
    EXPECT_FALSE(change.note.empty()) << change.name;
    if (change.name == "full recomputation") {
      seen = true;
      EXPECT_EQ(change.holds, fits(path, {"model.recompute=full", beyond}));
    }
    if (change.name == "GPUs with twice the memory") {
      EXPECT_TRUE(change.holds);
    }
    if (change.name == "kernels a fifth faster") {
      EXPECT_FALSE(change.holds);
    }
  }
  EXPECT_TRUE(seen);
  const std::vector<std::string> margins = answer.best->margins({.most_step_seconds = 9});
  ASSERT_EQ(margins.size(), 2U);
  EXPECT_NE(margins[0].find("of memory free"), std::string::npos);
  EXPECT_NE(margins[1].find("below the 9 allowed"), std::string::npos);
}

class CapacityLayoutsFile : public CapacityFile {
 protected:
  std::string fleet(const std::string& capacity) {
    const std::string path = (folder_ / "fleet.json").string();
    std::ofstream(path) << R"({"schema": "spillway-scenario", "version": 1, "model": {"name": "gpt2-large",
      "sequence": 512, "global_batch": 8, "recompute": "full"}, "hardware": {"profile": "dgx-h100"},
      "memory": {"capacity_bytes": 8000000000}, "capacity": )"
                        << capacity << "}";
    return path;
  }
};

// The fewest GPUs: the answer's own settings fit by a replay of their own, and no layout on the next fewer does.
TEST_F(CapacityLayoutsFile, FewestGpusOverLayouts) {
  const std::string path = fleet(R"({"axis": "gpus", "from": 1, "to": 8, "step": 1, "techniques": ["full"],
    "layouts": {"tensor_parallel": [1, 2, 4], "pipeline_parallel": [1, 2, 4], "micro_batch": [1]}})");
  const CapacityOutcome outcome = find_capacity(read_capacity_request(path, {}));
  const CapacityAnswer& answer = outcome.answers.front();
  ASSERT_TRUE(answer.best && answer.beyond);
  EXPECT_LT(answer.beyond->value, answer.best->value);
  EXPECT_EQ(answer.best->row.gpus, answer.best->value);
  EXPECT_FALSE(answer.best->layout.empty());
  EXPECT_TRUE(fits(path, answer.best->row.candidate.edits));
  for (const int t : {1, 2, 4})
    for (const int p : {1, 2, 4}) {
      if (answer.beyond->value % (t * p) != 0 || 8 % (answer.beyond->value / (t * p)) != 0) continue;
      EXPECT_FALSE(
          fits(path, {"model.tensor_parallel=" + std::to_string(t), "model.pipeline_parallel=" + std::to_string(p),
                      "model.data_parallel=" + std::to_string(answer.beyond->value / (t * p)), "model.micro_batch=1"}))
          << t << " " << p;
    }
}

// Few replays go where a schedule without a closed form is likely to be fast and to fit, and to the scenario's own
// layout.
TEST_F(CapacityLayoutsFile, IsNoWorseThanTheScenarioItself) {
  const std::string path =
      std::string(std::getenv("SPILLWAY_SOURCE_ROOT")) + "/cli/scenarios/llama2-70b-chronos-64xa100.json";
  CapacityFlags flags;
  flags.said.axis = "gpus";
  flags.said.from = flags.said.to = 64;
  flags.techniques = {"keep"};
  CapacityRequest request = read_capacity_request(path, {}, flags);
  const Result own = run(load(load_scenario(path)));
  for (const std::int64_t replays : {8, 1}) {
    request.layouts.replays = replays;
    const CapacityAnswer answer = find_capacity(request).answers.front();
    ASSERT_TRUE(answer.best) << replays;
    EXPECT_LE(answer.best->row.result.step_time, own.step_time) << replays << ": " << answer.best->layout;
  }
}

// What was not tried is not said to fail.
TEST_F(CapacityLayoutsFile, NamesHowManyLayoutsWereTried) {
  SweepOutcome outcome;
  outcome.screened = 10;
  outcome.unable = 2;
  outcome.rows.resize(3);
  for (std::size_t i = 0; i < outcome.rows.size(); ++i) {
    outcome.rows[i].options = {std::to_string(i)};
    outcome.rows[i].is_done = true;
    outcome.rows[i].result.memory.out_of_memory = true;
  }
  EXPECT_EQ(why_no_layout(std::span(&outcome, 1)),
            "out of memory in 5 of 10 parallel configurations (2 by estimate, 3 simulated: the likeliest to be "
            "fast); 5 not tried");
  std::vector<SweepOutcome> both = {outcome, outcome};
  both[1].rows[0].options = {"0"};  // tried twice
  both[1].rows[1].options = {"5"};
  both[1].rows[2].options = {"6"};
  EXPECT_EQ(why_no_layout(both, true),
            "out of memory in 7 of 10 parallel configurations (2 by estimate, 5 simulated: the "
            "likeliest to be fast, and those that hold least); 3 not tried");
  outcome.screened = 5;
  EXPECT_EQ(why_no_layout(std::span(&outcome, 1)),
            "out of memory in all of 5 parallel configurations (2 by estimate, 3 simulated)");
}

// Of machines, the cheapest that holds is the best; what is bought is whole machines; a budget rules out the rest.
TEST_F(CapacityLayoutsFile, CheapestMachines) {
  const std::string path = fleet(R"({"axis": "gpus", "from": 8, "to": 16, "step": 8, "techniques": ["full"],
    "machines": ["dgx-h100", "dgx-a100"],
    "layouts": {"tensor_parallel": [4], "pipeline_parallel": [1], "micro_batch": [1]}})");
  const CapacityRequest request = read_capacity_request(path, {});
  ASSERT_EQ(request.techniques.size(), 2U);
  const CapacityOutcome outcome = find_capacity(request);
  ASSERT_TRUE(outcome.best && outcome.answers[0].best && outcome.answers[1].best);
  const double h100 = request.prices.machines.at("dgx-h100").price_usd->value,
               a100 = request.prices.machines.at("dgx-a100").price_usd->value;
  EXPECT_EQ(outcome.answers[0].best->usd, h100);
  EXPECT_EQ(outcome.answers[1].best->usd, a100);
  EXPECT_EQ(*outcome.best, a100 < h100 ? 1U : 0U);
  EXPECT_GT(outcome.answers[0].best->kilowatts, 3);
  CapacityFlags flags;
  flags.said.constraints.most_usd = std::min(a100, h100) * 0.9;
  EXPECT_FALSE(find_capacity(read_capacity_request(path, {}, flags)).any());
  flags.said.constraints.most_usd = 0;
  flags.said.constraints.most_kilowatts = 1;
  EXPECT_FALSE(find_capacity(read_capacity_request(path, {}, flags)).any());
}

TEST_F(CapacityLayoutsFile, Mistakes) {
  EXPECT_NE(complaint(fleet(R"({"axis": "replicas", "layouts": true})")).find("vary gpus"), std::string::npos);
  EXPECT_NE(complaint(fleet(R"({"layouts": {"tensor": [1]}})")).find("tensor_parallel"), std::string::npos);
  EXPECT_NE(complaint(fleet(R"({"machines": ["dgx-h101"]})")).find("dgx-h100"), std::string::npos);
  EXPECT_NE(complaint(fleet(R"({"layouts": {"micro_batch": [0]}})")).find("from 1 to 1048576"), std::string::npos);
}

TEST_F(CapacityFile, TechniquesAreSettings) {
  const std::string path = write(
      R"(, "capacity": {"axis": "micro_batch", "techniques": ["full", )"
      R"({"name": "mine", "set": {"model": {"recompute": "full"}, "memory": {"allocator": "ideal"}}}, "mine+torch"]})");
  const CapacityRequest request = read_capacity_request(path, {});
  ASSERT_EQ(request.techniques.size(), 3U);
  EXPECT_EQ(request.techniques[1].edits,
            (std::vector<std::string>{"model.recompute=\"full\"", "memory.allocator=\"ideal\""}));
  const CapacityOutcome outcome = find_capacity(request);
  ASSERT_TRUE(outcome.answers[0].best && outcome.answers[1].best && outcome.answers[2].best);
  EXPECT_GE(outcome.answers[1].best->value, outcome.answers[0].best->value);  // no fragmentation
  EXPECT_EQ(outcome.answers[2].best->value, outcome.answers[0].best->value);  // the same settings in the end
}

TEST_F(CapacityFile, ATechniqueSaysWhatItChanges) {
  for (const char* set : {R"({"no_such_key": {}})", R"({"model": {"no_such_key": {}}})", R"({"model": {}})"}) {
    const std::string path = write(R"(, "capacity": {"axis": "micro_batch", "techniques": [{"name": "mine", "set": )" +
                                   std::string(set) + "}]}");
    try {
      read_capacity_request(path, {});
      ADD_FAILURE() << set << " is taken";
    } catch (const InputError& error) {
      EXPECT_EQ(error.place().find("/capacity/techniques/0/set/"), 0U) << error.what();
      EXPECT_EQ(error.cause(), "changes nothing");
    }
  }
}

// STAlloc's plan reserves no more than the step's own peak in the caching allocator.
TEST_F(CapacityFile, StallocPlansEachStep) {
  const std::string path = write("");
  const Result torch = run(load(load_scenario(path)));
  const std::vector<std::string> settings = {"memory.allocator=stalloc"};
  const Result planned = run(load(load_scenario(path, settings)));
  EXPECT_EQ(planned.memory.allocator, "planned");
  EXPECT_GE(planned.memory.peak_reserved, planned.memory.peak_allocated);
  EXPECT_LE(planned.memory.peak_reserved, torch.memory.peak_reserved);
  const std::vector<std::string> staged = {"memory.allocator=stalloc", "hardware.profile=dgx-h100",
                                           "model.pipeline_parallel=2", "model.gradient_accumulation=4"};
  EXPECT_EQ(run(load(load_scenario(path, staged))).ranks.size(), 2U);  // a plan for each stage
}

TEST_F(CapacityFile, NothingFitsIsAnAnswer) {
  CapacityFlags flags;
  flags.techniques = {"keep"};
  const CapacityOutcome outcome =
      find_capacity(read_capacity_request(write(""), std::vector<std::string>{"memory.capacity_bytes=1000000"}, flags));
  EXPECT_FALSE(outcome.any());
  ASSERT_TRUE(outcome.answers.front().beyond);
  EXPECT_FALSE(outcome.answers.front().beyond->replayed);  // the state alone rules it out
}

TEST_F(CapacityFile, ErrorsNameTheRemedy) {
  CapacityFlags flags;
  flags.said.axis = "layer";
  EXPECT_NE(complaint(write(""), flags).find("did you mean layers"), std::string::npos);
  flags = {};
  flags.techniques = {"ful"};
  EXPECT_NE(complaint(write(""), flags).find("did you mean full"), std::string::npos);
  EXPECT_NE(complaint(write(R"(, "capacity": {"axes": "layers"})")).find("/capacity/axes"), std::string::npos);
  EXPECT_NE(complaint(write(R"(, "capacity": {"techniques": ["keep", "keep"]})")).find("twice"), std::string::npos);
  EXPECT_NE(complaint(write(R"(, "capacity": {"from": 9, "to": 3})")).find("less than the smallest"),
            std::string::npos);
  EXPECT_EQ(complaint(write(R"(, "capacity": {"axis": "model.foo"})")).find("model.precision"), std::string::npos);
  EXPECT_NE(complaint(write(R"(, "capacity": {"axis": "model.precision"})")).find("no whole number"),
            std::string::npos);
  EXPECT_NE(complaint(write("", R"("sequence": 512, "optimizer": "nix")")).find("optimizer"), std::string::npos);
  flags.techniques = {"x:"};
  EXPECT_NE(complaint(write(""), flags).find("--technique: 'x:' has no key=value"), std::string::npos);
}

// Encoder-decoders have layers of two kinds.
TEST_F(CapacityFile, LayersOfAnEncoderDecoderCannotVary) {
  CapacityFlags flags;
  flags.techniques = {"keep"};
  const std::string path = write("");
  const std::vector<std::string> settings = {"model.name=t5-small"};
  try {
    find_capacity(read_capacity_request(path, settings, flags));
    ADD_FAILURE();
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("layers of two kinds"), std::string::npos);
  }
}

// What a replay holds of weights and optimizer state is never below the bound.
TEST_F(CapacityFile, StateBoundIsABound) {
  const std::string path = write("");
  for (std::vector<std::string> settings :
       {std::vector<std::string>{"model.precision=bf16_mixed"}, std::vector<std::string>{"model.precision=fp32"},
        std::vector<std::string>{"model.data_parallel=4", "model.zero_stage=1"},
        std::vector<std::string>{"model.data_parallel=4", "model.zero_stage=3"},
        std::vector<std::string>{"model.pipeline_parallel=3", "model.gradient_accumulation=6"},
        std::vector<std::string>{"model.tensor_parallel=4", "model.optimizer=adamw_8bit"},
        std::vector<std::string>{"model.optimizer_device=cpu"},
        std::vector<std::string>{"model.pipeline_parallel=3", "model.pipeline_chunks=2",
                                 "model.pipeline_schedule=chronos", "model.gradient_accumulation=6",
                                 "model.framework=megatron_2022", "model.offloaded_states=1",
                                 "model.optimizer_device=cpu"},
        std::vector<std::string>{"model.optimizer=adafactor"},
        std::vector<std::string>{"model.optimizer=galore_adamw", "model.optimizer_rank=64"},
        std::vector<std::string>{"model.optimizer=apollo_adamw", "model.optimizer_rank=1"},
        std::vector<std::string>{"model.optimizer=torchao_4bit"},
        std::vector<std::string>{"model.optimizer=lomo", "model.precision=bf16"},
        std::vector<std::string>{"model.optimizer=adalomo", "model.precision=bf16"},
        std::vector<std::string>{"model.trained_layers=1", "model.frozen_layers=3"},
        std::vector<std::string>{"model.loss=preference", "model.reference=model", "model.framework=huggingface"},
        std::vector<std::string>{"model.loss=preference", "model.reference=model", "model.framework=huggingface",
                                 "model.data_parallel=4", "model.zero_stage=3"}}) {
    settings.push_back("hardware.profile=dgx-h100");
    const LoadedScenario loaded = load(load_scenario(path, settings));
    const Bytes least = least_state_bytes(find_model("gpt2-small"), loaded.setup);
    Bytes held{};
    for (const PeakOwner& owner : run(loaded).memory.owners)
      if (owner.name == "weight" || owner.name == "optimizer_state") held += owner.bytes;
    EXPECT_GT(least, Bytes(0)) << settings.front();
    EXPECT_LE(least, held) << settings.front();
  }
}

}  // namespace
}  // namespace spillway::studies
