// Ways side by side: each row against the scenario replayed by itself with the same settings.
#include <gtest/gtest.h>
#include <oneapi/tbb/global_control.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/stop.h"
#include "models/spec/model_spec.h"
#include "studies/candidates/evaluate.h"

namespace spillway::studies {
namespace {

const BaseScenario base = {
    R"({"schema": "spillway-scenario", "version": 1,
        "model": {"name": "gpt2-small", "sequence": 512, "micro_batch": 4, "layers": 4},
        "hardware": {"profile": "h100-80gb-1gpu"}, "memory": {"capacity_bytes": 3000000000}})",
    "ways.json", ""};

// Techniques of every part, alone and together; jitter, which changes the step that others share; one that can't be.
const std::vector<Candidate> ways = {
    {"as given", {}},
    {"jitter", {"hardware.jitter.sigma=0.1", "hardware.jitter.seed=3"}},
    {"again", {}},
    {"full", {"model.recompute=full"}},
    {"to drives",
     {"model.micro_batch=16", "offload.technique=ssdtrain", "offload.least_elements=1", "offload.adaptive=false"}},
    {"to host",
     {"model.micro_batch=16", "offload.technique=ssdtrain", "offload.tier=host", "offload.least_elements=1"}},
    {"streamed", {"offload.technique=stream", "offload.tier=host"}},
    {"stalloc", {"memory.allocator=stalloc"}},
    {"on the CPU", {"model.optimizer_device=cpu"}},
    {"another machine", {"hardware.profile=a100-80gb-1gpu"}},
    {"two GPUs", {"hardware.profile=dgx-h100", "model.data_parallel=2", "model.zero_stage=1"}},
    {"too much", {"model.micro_batch=64"}},
    {"impossible", {"model.tensor_parallel=7"}},
    {"no key", {"model.speed=7"}},
};

void expect_same(const Result& row, const Result& alone, const std::string& name) {
  EXPECT_EQ(row.fingerprint, alone.fingerprint) << name;
  EXPECT_EQ(row.step_time, alone.step_time) << name;
  EXPECT_EQ(row.breakdown, alone.breakdown) << name;
  EXPECT_EQ(row.binding, alone.binding) << name;
  EXPECT_EQ(row.bubble, alone.bubble) << name;
  EXPECT_EQ(row.tokens_per_second, alone.tokens_per_second) << name;
  EXPECT_EQ(row.mfu, alone.mfu) << name;
  EXPECT_EQ(row.memory.peak_allocated, alone.memory.peak_allocated) << name;
  EXPECT_EQ(row.memory.peak_reserved, alone.memory.peak_reserved) << name;
  EXPECT_EQ(row.memory.short_of, alone.memory.short_of) << name;
  EXPECT_EQ(row.verdict(), alone.verdict()) << name;
  EXPECT_EQ(row.drives_refuse, alone.drives_refuse) << name;
  EXPECT_TRUE(alone.title.starts_with(row.title)) << name;  // and says what was set
  EXPECT_EQ(row.warnings, alone.warnings) << name;
  ASSERT_EQ(row.drives.size(), alone.drives.size()) << name;
  for (std::size_t i = 0; i < row.drives.size(); ++i) {
    EXPECT_EQ(row.drives[i].written, alone.drives[i].written) << name;
    ASSERT_EQ(row.drives[i].life.has_value(), alone.drives[i].life.has_value()) << name;
    if (row.drives[i].life) {
      EXPECT_EQ(row.drives[i].life->years, alone.drives[i].life->years) << name;
    }
  }
}

TEST(EvaluateWays, RowsAreWhatRunGives) {
  const std::vector<Row> rows = evaluate(base, ways, {.detail = Detail::figures});
  ASSERT_EQ(rows.size(), ways.size());
  for (std::size_t i = 0; i + 2 < ways.size(); ++i) {
    ASSERT_TRUE(rows[i].ran()) << ways[i].name << ": " << rows[i].error;
    EXPECT_EQ(rows[i].candidate.name, ways[i].name);
    expect_same(rows[i].result, run(load(scenario_of(base, ways[i].edits))), ways[i].name);
    EXPECT_GT(rows[i].planning_seconds, 0);
  }
  EXPECT_EQ(rows[0].result.fingerprint, rows[2].result.fingerprint);
  EXPECT_NE(rows[0].result.fingerprint, rows[1].result.fingerprint);
  EXPECT_FALSE(rows[11].works());
  EXPECT_NE(rows[11].shortage(), "");
  const Row &impossible = rows[ways.size() - 2], &no_key = rows[ways.size() - 1];
  EXPECT_TRUE(impossible.is_done && no_key.is_done);
  EXPECT_NE(impossible.error.find("tensor_parallel: 7 does not divide"), std::string::npos) << impossible.error;
  EXPECT_NE(no_key.error.find("speed"), std::string::npos) << no_key.error;
  EXPECT_FALSE(impossible.works());
}

// bytes to a tier = sum over the plan's stores; life is of the set that wears first; a GPU hour of a priced machine.
TEST(EvaluateWays, TellsTrafficLifeAndCost) {
  const std::vector<Row> rows = evaluate(base, ways, {.detail = Detail::figures});
  const Row &plain = rows[0], &drives = rows[4], &host = rows[5], &two = rows[10];
  EXPECT_EQ(plain.moved.to_drives, Bytes(0));
  EXPECT_EQ(drives.moved.to_drives, drives.result.offload->stored);
  EXPECT_EQ(drives.moved.from_drives, drives.result.offload->loaded);
  EXPECT_EQ(plain.moved.to_host, Bytes(0));
  EXPECT_EQ(host.moved.to_host, host.result.offload->stored);
  EXPECT_GT(host.moved.to_host, Bytes(0));
  EXPECT_EQ(host.moved.to_drives, Bytes(0));
  EXPECT_GT(drives.moved.to_drives, Bytes(0));
  EXPECT_FALSE(plain.life_years());
  ASSERT_TRUE(drives.life_years());
  EXPECT_EQ(*drives.life_years(), drives.result.drives.front().life->years);
  EXPECT_EQ(two.gpus, 2);
  EXPECT_EQ(plain.tokens_per_step, 4 * 512);
  EXPECT_EQ(two.tokens_per_step, 2 * 4 * 512);
  // USD an hour of two GPUs, over the tokens of an hour.
  ASSERT_TRUE(two.rates.usd_per_hour > 0 && two.cost_per_million_tokens());
  EXPECT_NEAR(*two.cost_per_million_tokens(), two.rates.usd_per_hour / 3600 / two.result.tokens_per_second * 1e6,
              1e-9 * *two.cost_per_million_tokens());
  EXPECT_LE(plain.allocator_efficiency(), 1);
  EXPECT_GT(plain.allocator_efficiency(), 0.5);
}

TEST(EvaluateWays, DoesNotDependOnThreadsOrNeighbours) {
  const std::vector<Row> all = evaluate(base, ways);
  const oneapi::tbb::global_control one(oneapi::tbb::global_control::max_allowed_parallelism, 1);
  const std::vector<Candidate> reversed(ways.rbegin(), ways.rend());
  const std::vector<Row> again = evaluate(base, reversed);
  for (std::size_t i = 0; i < ways.size(); ++i) {
    const Row& other = again[ways.size() - 1 - i];
    EXPECT_EQ(all[i].error, other.error);
    if (all[i].ran()) expect_same(all[i].result, other.result, ways[i].name);
  }
}

TEST(EvaluateWays, StopsWithWhatIsDone) {
  const oneapi::tbb::global_control one(oneapi::tbb::global_control::max_allowed_parallelism, 1);
  std::size_t asked = 0;
  const std::vector<Row> rows =
      evaluate(base, ways, {.progress = [&](const Row&, std::size_t, std::size_t) { return ++asked < 5; }});
  std::size_t done = 0;
  for (const Row& row : rows) done += row.is_done ? 1 : 0;
  EXPECT_EQ(done, 5U);
  const std::atomic<bool> stop = true;
  const StopScope scope(&stop);
  for (const Row& row : evaluate(base, std::span(ways).first(4))) EXPECT_FALSE(row.is_done);
}

// A capture is read once; its plans are made on copies.
TEST(EvaluateWays, TakesTraces) {
  const char* const root = std::getenv("SPILLWAY_SOURCE_ROOT");
  ASSERT_NE(root, nullptr);
  const std::string path = std::string(root) + "/cli/scenarios/gpt2-tiny-captured-cpu.json";
  const std::vector<Candidate> few = {{"as recorded", {}}, {"host twice", {"what_if.host=2"}}};
  const BaseScenario scenario = base_scenario(path);
  const std::vector<Row> rows = evaluate(scenario, few);
  for (std::size_t i = 0; i < few.size(); ++i) {
    ASSERT_TRUE(rows[i].ran()) << rows[i].error;
    expect_same(rows[i].result, run(load(load_scenario(path, few[i].edits))), few[i].name);
  }
  const std::string trace = load_scenario(path).trace;
  const std::vector<Row> bare = evaluate(base_scenario(trace), std::span(few).first(1));
  ASSERT_TRUE(bare[0].ran()) << bare[0].error;
  expect_same(bare[0].result, run(load(scenario_for_trace(trace))), trace);
}

}  // namespace
}  // namespace spillway::studies
