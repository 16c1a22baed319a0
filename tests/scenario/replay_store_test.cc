#include "scenario/replay_store.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/input_error.h"
#include "base/read_file.h"
#include "scenario/result_bytes.h"

namespace spillway::scenario {
namespace {

Scenario small(const std::string& more = "") {
  return parse_scenario(
      R"({"schema": "spillway-scenario", "version": 1, "model": {"name": "gpt2-small", "sequence": 256)" + more +
          R"(}, "hardware": {"profile": "dgx-a100"}})",
      "small.json", "");
}

std::string path_of(const std::string& name) {
  const std::string path = testing::TempDir() + "spillway-" + name;
  for (const char* end : {"", "-wal", "-shm"}) std::filesystem::remove(path + end);
  return path;
}

KeptReplay ask(const Scenario& scenario, int& loads, ReplayStore* store = nullptr) {
  return kept_brief_replay(store, scenario, Detail::times, [&] {
    ++loads;
    LoadedScenario loaded = load(scenario);
    loaded.options.memory.detail = Detail::times;
    ScenarioRun run = run_traced(loaded);
    return BriefRun{std::move(loaded), std::move(run)};
  });
}

// What is read back is written as the same bytes again, so nothing is lost or made.
TEST(ReplayStore, ResultsComeBackAsTheyWere) {
  Scenario scenario = small(R"(, "recompute": "full", "micro_batch": 2)");
  const Result result = run(load(scenario));
  const std::string bytes = bytes_of(result);
  const std::optional<Result> back = result_of(bytes);
  ASSERT_TRUE(back);
  EXPECT_EQ(bytes_of(*back), bytes);
  EXPECT_EQ(back->fingerprint, result.fingerprint);
  EXPECT_EQ(back->memory.timeline.size(), result.memory.timeline.size());
  EXPECT_FALSE(result_of(bytes.substr(0, bytes.size() - 1)));
  EXPECT_FALSE(result_of(bytes + "x"));
}

// A folded step is kept as the whole one, with what all of its micro-batches move.
TEST(ReplayStore, FoldedStepsAreKeptWhole) {
  const Scenario scenario = small(R"(, "micro_batch": 16, "pipeline_parallel": 4, "gradient_accumulation": 96)");
  bool is_folded = false;
  const KeptReplay brief = kept_brief_replay(nullptr, scenario, Detail::times, [&] {
    BriefRun run = run_briefly(scenario, Detail::times);
    is_folded = run.loaded.options.memory.fold != nullptr;
    return run;
  });
  int loads = 0;
  const KeptReplay whole = ask(scenario, loads);
  EXPECT_TRUE(is_folded);
  EXPECT_EQ(brief.result.step_time, whole.result.step_time);
  EXPECT_EQ(brief.result.fingerprint, whole.result.fingerprint);
  EXPECT_EQ(brief.moved.all(), whole.moved.all());
  EXPECT_GT(whole.moved.all(), Bytes(0));
}

TEST(ReplayStore, ReplaysOnceAndTellsScenariosApart) {
  const std::string path = path_of("store");
  int loads = 0;
  const KeptReplay plain = ask(small(), loads);  // without a store
  {
    ReplayStore store(path);
    EXPECT_EQ(bytes_of(ask(small(), loads, &store).result), bytes_of(plain.result));
    static_cast<void>(ask(small(R"(, "micro_batch": 2)"), loads, &store));
    EXPECT_EQ(loads, 3);
  }
  ReplayStore store(path), other(path);  // two at once
  Scenario named = small();
  named.title = "another title";
  const KeptReplay again = ask(named, loads, &store);
  EXPECT_EQ(loads, 3);
  EXPECT_EQ(again.result.title, "another title");
  EXPECT_EQ(again.result.fingerprint, plain.result.fingerprint);
  EXPECT_EQ(again.gpus, plain.gpus);
  EXPECT_EQ(again.tokens_per_step, plain.tokens_per_step);
  EXPECT_EQ(store.asked(), 1);
  EXPECT_EQ(store.found(), 1);
  EXPECT_TRUE(other.find(*replay_key(small(), Detail::times)));
  EXPECT_FALSE(other.find(*replay_key(small(), Detail::figures)));
}

// Nothing of the program's decides which store is asked.
TEST(ReplayStore, TwoSideBySideKeepTheirOwn) {
  ReplayStore a(path_of("a")), b(path_of("b"));
  const Scenario one = small(), two = small(R"(, "micro_batch": 2)");
  int loads = 0;
  static_cast<void>(ask(one, loads, &a));
  static_cast<void>(ask(two, loads, &b));
  EXPECT_TRUE(is_kept(&a, one, Detail::times));
  EXPECT_FALSE(is_kept(&a, two, Detail::times));
  EXPECT_FALSE(is_kept(&b, one, Detail::times));
  EXPECT_TRUE(is_kept(&b, two, Detail::times));
  EXPECT_FALSE(is_kept(nullptr, one, Detail::times));
}

TEST(ReplayStore, LeavesForeignFilesAsTheyAre) {
  const std::string path = path_of("foreign");
  const std::string text = "no store, but the only copy of something else, longer than any header of a database is";
  std::ofstream(path) << text;
  EXPECT_THROW(ReplayStore store(path), InputError);
  EXPECT_EQ(read_file_as_it_is(path), text);
  EXPECT_THROW(ReplayStore store(testing::TempDir()), InputError);
  EXPECT_THROW(ReplayStore store(testing::TempDir() + "no/such/folder/store"), InputError);
}

}  // namespace
}  // namespace spillway::scenario
