#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/resource.h>

#include <atomic>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "base/input_error.h"
#include "reports/sweep_report.h"
#include "studies/sweep/sweep_front.h"
#include "studies/sweep/sweep_run.h"
#include "studies/sweep/sweep_space.h"
#include "studies/sweep/sweep_store.h"

namespace spillway::reports {
namespace {

using testing::HasSubstr;

constexpr const char* small_sweep = R"json({
  "schema": "spillway-sweep", "version": 1, "title": "small",
  "base": {"model": {"name": "gpt2-small", "sequence": 512, "global_batch": 64, "framework": "megatron_2022"},
           "hardware": {"profile": "dgx-a100"}},
  "constants": {"gpus": 8, "batch": 64},
  "axes": [
    {"name": "t", "key": "model.tensor_parallel", "from": 1, "to": 8, "times": 2},
    {"name": "p", "key": "model.pipeline_parallel", "values": [1, 2, 3, 4]},
    {"name": "b", "key": "model.micro_batch", "from": 2, "to": 8, "times": 2},
    {"name": "recompute", "options": {"keep": {}, "full": {"model.recompute": "full"}}}
  ],
  "derived": [{"name": "d", "key": "model.data_parallel", "value": "gpus / (t * p)"
}],
  "where": [{"is": "divides(d * b, batch)", "reason": "uneven batch"}, "t < 8"],
  "objectives": ["step_time", "peak_memory"]
})json";

SweepFile parsed(const std::string& text) { return parse_sweep(text, "sweep.json", ""); }

std::string changed(const std::string& key, const nlohmann::ordered_json& value) {
  auto json = nlohmann::ordered_json::parse(small_sweep);
  json[nlohmann::ordered_json::json_pointer(key)] = value;
  return json.dump();
}

void expect_refused(const std::string& text, const std::string& place, const std::string& cause) {
  try {
    const SweepFile file = parsed(text);
    SweepSpace space(file);
    FAIL() << "accepted: " << text;
  } catch (const InputError& error) {
    EXPECT_THAT(error.place(), HasSubstr(place));
    EXPECT_THAT(error.cause(), HasSubstr(cause));
  }
}

std::string answer(const SweepFile& file, SweepStore& store) {
  return sweep_json(file, run_sweep(file, {}, store)).dump(1);
}

class SweepStoreTest : public testing::Test {
 protected:
  void SetUp() override {
    path_ = testing::TempDir() + "spillway_sweep_" + testing::UnitTest::GetInstance()->current_test_info()->name() +
            ".store";
    std::remove(path_.c_str());
  }
  void TearDown() override { std::remove(path_.c_str()); }

  [[nodiscard]] std::string content() const {
    std::ostringstream text;
    text << std::ifstream(path_, std::ios::binary).rdbuf();
    return std::move(text).str();
  }
  void put(const std::string& text) const { std::ofstream(path_, std::ios::binary) << text; }

  std::string path_;
};

// What is so at every point, or at none, leaves nothing out.
TEST(SweepFile, ConditionsThatSayNothingAreRefused) {
  for (const char* condition : {"t == t", "(t) >= ((t))", "t*p <= t * p", "t > 1 && p != p", "min(t, p) == min(t,p)",
                                "t == 1 || (p > 1 && b<b)", "t > (b == b)", "t == 1 ? p == p : b > 1"})
    expect_refused(changed("/where/1", condition), "/where/1", "compares a thing with itself");
  for (const char* condition : {"8 > 1", "gpus == batch"})
    expect_refused(changed("/where/1", condition), "/where/1", "is the same at every point");
  for (const char* condition : {"t == p", "t * p <= p * b", "(t) * p <= t * (p)", "t <= (t) + b", "t != 1 || t != 2",
                                "min(t, p) == min(p, t)"}) {
    const SweepFile file = parsed(changed("/where/1", condition));
    EXPECT_NO_THROW(SweepSpace{file}) << condition;
  }
}

TEST(SweepFile, RefusesWhatItCantMean) {
  expect_refused("[]", "/schema", "not a sweep");
  expect_refused(changed("/axes", nlohmann::ordered_json::array()), "/axes", "an empty list");
  expect_refused(changed("/axes/0/key", "model.tensor_paralel"), "/axes/0/key", "no scenario has a key");
  expect_refused(changed("/axes/1/values", nlohmann::ordered_json::array()), "/axes/1/values", "an empty list");
  expect_refused(changed("/axes/1/name", "t"), "/axes/1/name", "two things are named 't'");
  expect_refused(changed("/axes/0/times", 1), "/axes/0/times", "expected a number");
  expect_refused(changed("/derived/0/value", "gpus / (t * q)"), "/derived/0", "names 'q'");
  expect_refused(changed("/where/1", "t < "), "/where/1", "t < ");
  expect_refused(changed("/objectives", {"speed"}), "/objectives", "no objective");
  expect_refused(changed("/margin", -1), "/margin", "expected a number");
  expect_refused(changed("/marign", 1), "/marign", "unknown key");
}

// A value that its key never takes is named with its axis; what only doesn't go together with others is a point's own.
TEST(SweepFile, NamesAValueThatItsKeyNeverTakes) {
  expect_refused(changed("/axes/1/values", {1, 0}), "/axes/1/values/1", "the axis 'p' can't set");
  expect_refused(changed("/axes/0/from", 0.5), "/axes/0", "the axis 't' can't set model.tensor_parallel to 0.5");
  expect_refused(
      changed("/axes/3/options", {{"keep", nlohmann::ordered_json::object()}, {"f", {{"model.recompute", "ful"}}}}),
      "/axes/3/options/f/model.recompute", "the axis 'recompute' can't set model.recompute to ful");
  try {
    parsed(changed("/axes/3", {{"name", "r"}, {"key", "model.recompute"}, {"values", {"none", "ful"}}}));
    FAIL();
  } catch (const InputError& error) {
    EXPECT_EQ(error.place(), "/axes/3/values/1");
    EXPECT_THAT(error.remedy(), HasSubstr("full"));
  }
  expect_refused(changed("/axes/3", {{"name", "k"}, {"key", "memory.reserve"}, {"values", {"2 GiB", "lots"}}}),
                 "/axes/3/values/1", "lots");
  EXPECT_NO_THROW(parsed(changed("/axes/1/values", {1, 5}))) << "5 stages: of 12 layers, which other settings change";
  const SweepFile file =
      parsed(changed("/axes/1", {{"name", "s"}, {"key", "model.document_tokens"}, {"values", {"1k"}}}));
  EXPECT_EQ(file.axes[1].options[0].label, "1k");
}

// Bounds on figures of a row: of what an estimate knows they leave out, and of replays all count.
TEST(Sweep, RequiresFiguresOfARow) {
  const auto run = [](const nlohmann::ordered_json& require) {
    auto json = nlohmann::ordered_json::parse(small_sweep);
    json["axes"][0] = {{"name", "t"}, {"key", "model.tensor_parallel"}, {"values", {1, 2}}};
    json["axes"][1]["values"] = {1};
    json["require"] = require;
    const SweepFile file = parsed(json.dump());
    SweepStore store;
    return std::pair(file, run_sweep(file, {}, store));
  };
  const auto [any, free] = run({{"fits", true}});
  double least = 1e30, most = 0;
  for (const SweepRow& row : free.rows)
    if (row.does) least = std::min(least, row.replayed.peak_bytes), most = std::max(most, row.replayed.peak_bytes);
  ASSERT_LT(least, most);
  EXPECT_FALSE(nearest_to_meet(any, free)) << "some meet what is asked";
  const auto [half, bound] = run({{"peak_reserved_bytes", (least + most) / 2}});
  std::size_t kept = 0;
  for (const SweepRow& row : bound.rows) {
    if (!row.does) continue;
    EXPECT_LE(row.replayed.peak_bytes, (least + most) / 2);
    ++kept;
  }
  EXPECT_GT(kept, 0U);
  for (const auto& [key, value] : std::map<std::string, nlohmann::ordered_json>{{"peak_reserved_bytes", "1 MiB"},
                                                                                {"free_bytes", "79.9 GiB"},
                                                                                {"tokens_per_second", 1e12},
                                                                                {"mfu", 0.999},
                                                                                {"gpu_hours_per_million_tokens", 1e-9},
                                                                                {"kwh_per_million_tokens", 1e-9},
                                                                                {"step_time_seconds", 1e-6}}) {
    const auto [file, none] = run({{key, value}});
    const auto nearest = nearest_to_meet(file, none);
    ASSERT_TRUE(nearest) << key;
    ASSERT_EQ(nearest->misses.size(), 1U) << key;
    EXPECT_GT(nearest->misses[0].share, 0) << key;
    EXPECT_THAT(sweep_json(file, none)["nearest"]["misses"][0]["what"].get<std::string>(),
                testing::Eq(nearest->misses[0].words));
  }
}

// Steps of unlike work are compared by the token.
TEST(SweepFile, RanksUnlikeBatchesByTheToken) {
  auto json = nlohmann::ordered_json::parse(small_sweep);
  json["axes"].push_back({{"name", "batch_size"}, {"key", "model.global_batch"}, {"values", {64, 128}}});
  expect_refused(json.dump(), "/objectives", "'batch_size' sets model.global_batch");
  json.erase("objectives");
  EXPECT_EQ(parsed(json.dump()).objectives, std::vector{Objective::gpu_time_per_token});
  json["axes"].erase(4);
  EXPECT_EQ(parsed(json.dump()).objectives, std::vector{Objective::step_time});
}

TEST(SweepFile, RefusesMorePointsThanCanBeNumbered) {
  auto json = nlohmann::ordered_json::parse(small_sweep);
  json["axes"] = nlohmann::ordered_json::array();
  for (const std::string name : {"sequence", "layers", "micro_batch", "global_batch", "bucket_bytes"})
    json["axes"].push_back({{"name", name}, {"key", "model." + name}, {"from", 1}, {"to", 60000}, {"step", 1}});
  expect_refused(json.dump(), "/axes", "more than 2^62 points");
}

// Every point is either given once, in order, or counted under one reason: found again by trying all.
TEST(SweepSpace, LeavesOutExactlyWhatTheRulesSay) {
  const SweepFile file = parsed(small_sweep);
  SweepSpace space(file);
  ASSERT_EQ(space.size(), 4 * 4 * 3 * 2);
  std::vector<std::int64_t> given;
  std::int64_t at = 0;
  while (const SweepPoint* const point = space.next(at, space.size())) {
    given.push_back(point->number);
    at = point->number + 1;
  }
  std::vector<std::int64_t> expected;
  for (std::int64_t n = 0; n < space.size(); ++n) {
    const std::int64_t t = 1 << (n / 24), p = n / 6 % 4 + 1, b = 2 << (n / 2 % 3);
    const bool whole = 8 % (t * p) == 0;
    if (whole && t < 8 && 64 % (8 / (t * p) * b) == 0) expected.push_back(n);
  }
  EXPECT_EQ(given, expected);
  std::int64_t skipped = 0;
  for (const auto& [reason, count] : space.take_skipped()) skipped += count.points;
  EXPECT_EQ(skipped + static_cast<std::int64_t>(given.size()), space.size());
}

// What next() keeps from one call to the next changes nothing, wherever it is called.
TEST(SweepSpace, FindsTheSameFromAnywhere) {
  const SweepFile file = parsed(small_sweep);
  SweepSpace one(file);
  for (std::int64_t i = 0; i < 4 * one.size(); ++i) {
    const std::int64_t from = i * 37 % one.size();
    SweepSpace fresh(file);
    const SweepPoint* const found = one.next(from, one.size());
    const SweepPoint* const expected = fresh.next(from, fresh.size());
    ASSERT_EQ(found == nullptr, expected == nullptr) << from;
    if (found == nullptr) continue;
    EXPECT_EQ(found->number, expected->number);
    EXPECT_EQ(one.settings(*found), fresh.settings(fresh.at(expected->number)));
  }
}

TEST(SweepSpace, TurnsPointsIntoSettings) {
  const SweepFile file = parsed(small_sweep);
  SweepSpace space(file);
  const SweepPoint point = space.at(1 * 24 + 1 * 6 + 2 * 2 + 1);
  EXPECT_EQ(space.label(point), "t 2, p 2, b 8, recompute full");
  const SweepSettings expected = {{"model.tensor_parallel", "2"},
                                  {"model.pipeline_parallel", "2"},
                                  {"model.micro_batch", "8"},
                                  {"model.recompute", "full"},
                                  {"model.data_parallel", "2"}};
  EXPECT_EQ(space.settings(point), expected);
}

TEST(SweepSpace, OptionsNamesStandForTheirNumbers) {
  const SweepFile file = parsed(changed("/where/1", "recompute == full || b == 2"));
  SweepSpace space(file);
  std::int64_t at = 0, given = 0;
  while (const SweepPoint* const point = space.next(at, space.size())) {
    at = point->number + 1;
    ++given;
    EXPECT_TRUE(point->options[3] == 1 || point->options[2] == 0) << space.label(*point);
  }
  EXPECT_GT(given, 0);
}

// An axis of techniques has their settings, by the names of `spillway techniques`.
TEST(SweepSpace, TechniquesAreAnAxis) {
  const SweepFile file = parsed(R"({"schema": "spillway-sweep", "version": 1,
    "base": {"model": {"name": "gpt2-small", "pipeline_parallel": 2, "gradient_accumulation": 4},
             "hardware": {"profile": "dgx-a100"}},
    "axes": [{"name": "technique", "techniques": ["plain", "full", "chronos+ssdtrain-host+stalloc"]}]})");
  const SweepAxis& axis = file.axes.front();
  ASSERT_EQ(axis.options.size(), 3U);
  EXPECT_TRUE(axis.options[0].settings.empty());
  const auto& composed = axis.options[2].settings;
  const auto says = [&](const char* key, const char* value) {
    return std::find(composed.begin(), composed.end(), std::pair<std::string, std::string>(key, value)) !=
           composed.end();
  };
  EXPECT_TRUE(says("model.pipeline_schedule", "chronos"));
  EXPECT_TRUE(says("offload.technique", "ssdtrain") && says("offload.tier", "host"));
  EXPECT_TRUE(says("memory.allocator", "stalloc"));
  EXPECT_THROW(parsed(R"({"schema": "spillway-sweep", "version": 1, "base": {"model": {"name": "gpt2-small"},
    "hardware": {"profile": "dgx-a100"}}, "axes": [{"name": "t", "techniques": ["chronoss"]}]})"),
               InputError);
}

TEST(SweepFront, KeepsWhatNothingBeats) {
  SweepFront front(2);
  front.add({2, 2});
  front.add({1, 3});
  front.add({3, 3});
  front.add({2, 1});
  EXPECT_EQ(front.points().size(), 2U);
  EXPECT_TRUE(front.beats({2, 1.5}));
  EXPECT_FALSE(front.beats({2, 1}));
  EXPECT_FALSE(front.beats({0.5, 9}));
}

TEST_F(SweepStoreTest, KeepsRecordsAndCutsOffATornTail) {
  {
    SweepStore store(path_);
    store.append("a", R"({"key":"a","x":1})");
    store.append("b", R"({"key":"b","x":2})");
    store.append("a", R"({"key":"a","x":3})");
  }
  const std::string whole = content();
  for (std::size_t cut = 1; cut < 20; ++cut) {
    put(whole.substr(0, whole.size() - cut));
    SweepStore store(path_);
    EXPECT_EQ(store.find("a"), R"({"key":"a","x":1})");
    EXPECT_FALSE(store.find("b"));
    ASSERT_EQ(store.repairs().size(), 1U);
    store.append("b", R"({"key":"b","x":2})");
    EXPECT_EQ(content(), whole);
  }
}

TEST_F(SweepStoreTest, LeavesOutABrokenRecordInTheMiddle) {
  {
    SweepStore store(path_);
    for (const char* key : {"a", "b", "c"}) store.append(key, std::string(R"({"key":")") + key + "\"}");
  }
  std::string text = content();
  text[text.find("\"b\"") + 1] = 'B';
  put(text);
  SweepStore store(path_);
  EXPECT_TRUE(store.find("a") && store.find("c"));
  EXPECT_FALSE(store.find("b") || store.find("B"));
  EXPECT_EQ(store.repairs().size(), 1U);
  EXPECT_EQ(content(), text);
}

// A text, one line of a table, a scenario, bytes without lines, the beginning of a checksum; a record whose checksum is
// wrong.
TEST_F(SweepStoreTest, RefusesAndLeavesAloneWhatIsNoStore) {
  const std::string broken = "00000000 {\"key\":\"a\"}\n";
  for (const std::string& text : {std::string("notes of a month\nmore notes"), std::string("a,b\n1,2\n"),
                                  std::string("{\"schema\": \"spillway-scenario\"}"), std::string(3, '\0'),
                                  std::string("deadbeef"), broken, broken + "{\"key\":\"a\"}"}) {
    put(text);
    EXPECT_THROW(SweepStore{path_}, InputError) << text;
    SweepStore other;
    EXPECT_THROW(other.read(path_), InputError) << text;
    EXPECT_EQ(content(), text);
  }
}

// Nothing is changed before something is written; the first record may be the torn one.
TEST_F(SweepStoreTest, MendsWithTheFirstAppend) {
  { SweepStore{path_}.append("a", R"({"key":"a","x":1})"); }
  const std::string whole = content();
  for (std::size_t cut = 1; cut < 8; ++cut) {
    const std::string torn = whole.substr(0, whole.size() - cut);
    put(torn);
    SweepStore store(path_);
    EXPECT_EQ(store.size(), 0U);
    EXPECT_EQ(store.repairs().size(), 1U);
    EXPECT_EQ(content(), torn);
    store.append("a", R"({"key":"a","x":1})");
    EXPECT_EQ(content(), whole);
  }
}

// A power cut leaves the size of what was written, and zeros for its content.
TEST_F(SweepStoreTest, GoesOnBehindWhatAPowerCutLeft) {
  const std::string record = R"({"key":"a","x":1})";
  { SweepStore{path_}.append("a", record); }
  const std::string whole = content();
  for (const std::size_t kept : {std::size_t{20}, whole.size() / 2 + 6, whole.size() - 1}) {
    for (const std::string& before : {std::string(), whole}) {
      put(before + whole.substr(0, kept) + std::string(whole.size() - kept, '\0'));
      SweepStore store(path_);
      EXPECT_EQ(store.size(), before.empty() ? 0U : 1U) << kept;
      EXPECT_EQ(store.repairs().size(), 1U) << kept;
      store.append("b", R"({"key":"b","x":2})");
    }
    SweepStore again(path_);
    EXPECT_EQ(again.size(), 2U) << kept;
    EXPECT_TRUE(again.repairs().empty()) << kept;
  }
}

TEST_F(SweepStoreTest, IsLockedWhileInUse) {
  SweepStore store(path_);
  EXPECT_THROW(SweepStore{path_}, InputError);
}

// A file that may not grow stands for a full disk.
TEST_F(SweepStoreTest, TakesBackWhatDoesNotFitOnTheDisk) {
  SweepStore store(path_);
  store.append("a", R"({"key":"a"})");
  const std::string before = content();
  rlimit old{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small = old;
  small.rlim_cur = before.size() + 10;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  EXPECT_THROW(store.append("b", R"({"key":"b","long":"enough to be cut"})"), InputError);
  setrlimit(RLIMIT_FSIZE, &old);
  static_cast<void>(std::signal(SIGXFSZ, handler));
  EXPECT_EQ(content(), before);
  EXPECT_FALSE(store.find("b"));
  EXPECT_THROW(SweepStore{"/dev/null"}, InputError);
}

// The front of a sweep is that of replaying every valid point.
TEST(Sweep, FindsTheFrontOfAllReplays) {
  const SweepFile file = parsed(small_sweep);
  SweepStore store, other;
  const SweepOutcome outcome = run_sweep(file, {}, store);
  SweepFile everything = parsed(changed("/margin", 0.9));
  everything.memory_margin = 0.9;
  const SweepOutcome all = run_sweep(everything, {}, other);
  EXPECT_EQ(static_cast<std::int64_t>(all.rows.size()), all.screened);
  EXPECT_LT(outcome.rows.size(), all.rows.size());
  const auto front = [](const SweepOutcome& of) {
    std::set<std::int64_t> numbers;
    for (const SweepRow& row : of.rows)
      if (row.on_front) numbers.insert(row.number);
    return numbers;
  };
  EXPECT_EQ(front(outcome), front(all));
  EXPECT_GT(front(all).size(), 1U);
  EXPECT_EQ(outcome.screened, outcome.unable + outcome.beaten + outcome.beaten_by_replay +
                                  static_cast<std::int64_t>(outcome.rows.size()));
}

TEST_F(SweepStoreTest, AnswersTheSameFromAnyMixOfShardsAndInterruptions) {
  const SweepFile file = parsed(small_sweep);
  SweepStore fresh;
  const std::string expected = answer(file, fresh);
  // Stopped after each number of replays in turn, gone on with from the store.
  for (int stop = 1; stop < 12; stop += 3) {
    std::remove(path_.c_str());
    {
      SweepStore store(path_);
      SweepOptions options;
      std::atomic<int> calls = 0;
      options.progress = [&](const std::string&, std::int64_t, std::int64_t) { return ++calls <= stop; };
      EXPECT_FALSE(run_sweep(file, options, store).is_whole);
    }
    put(content().substr(0, content().size() * 2 / 3));  // and killed while writing
    SweepStore store(path_);
    EXPECT_EQ(answer(file, store), expected);
    SweepStore joined;
    joined.read(path_);
    const std::size_t records = joined.size();
    EXPECT_EQ(answer(file, joined), expected);
    EXPECT_EQ(joined.size(), records);  // nothing was worked out twice
  }
  SweepStore shards;
  for (std::int64_t shard = 0; shard < 3; ++shard) {
    SweepOptions options;
    options.shard = shard;
    options.shards = 3;
    EXPECT_FALSE(run_sweep(file, options, shards).is_whole);
  }
  EXPECT_EQ(answer(file, shards), expected);
}

// The fastest layout by estimate turns out not to fit, and with it all sizes of buckets: the replays that are left go
// to others.
// What fits without the reserve's margin alone meets "require fits", as `run` says yes to it, where nothing keeps the
// whole reserve; its row says how tight it is.
TEST(Sweep, TightIsAYesAsInRun) {
  const std::string base = R"("model": {"name": "gpt2-small", "sequence": 1024, "micro_batch": 1},
    "hardware": {"profile": "h100-80gb-1gpu"}, "memory": {"capacity_bytes": 6442450944, "reserve": "1GiB"})";
  const auto rows_of = [&](const std::string& batches) {
    SweepStore store;
    return run_sweep(parsed(R"({"schema": "spillway-sweep", "version": 1, "title": "tight", "base": {)" + base +
                            R"(}, "axes": [{"name": "b", "key": "model.micro_batch", "values": [)" + batches +
                            R"(]}], "objectives": ["gpu_time_per_token", "peak_memory"]})"),
                     {}, store)
        .rows;
  };
  const auto run_of = [&](const std::string& batch) {
    return run(load(parse_scenario(R"({"schema": "spillway-scenario", "version": 1, )" + base + "}", "s", "",
                                   std::vector{"model.micro_batch=" + batch})));
  };
  const Result tight = run_of("4");
  ASSERT_EQ(tight.verdict(), Verdict::tight);
  const std::vector<SweepRow> alone = rows_of("4");
  ASSERT_EQ(alone.size(), 1U);
  EXPECT_TRUE(alone.front().does);
  EXPECT_EQ(alone.front().result.verdict(), tight.verdict());
  EXPECT_TRUE(is_yes(alone.front().result.verdict()));
  EXPECT_NEAR(alone.front().replayed.step_seconds, to_seconds(tight.step_time), 1e-9);
  ASSERT_EQ(run_of("1").verdict(), Verdict::fits);
  for (const SweepRow& row : rows_of("1, 4"))
    EXPECT_EQ(row.does, row.result.verdict() == Verdict::fits) << row.candidate.name;
}

TEST(Sweep, SpendsItsReplaysOnPointsThatDiffer) {
  auto json = nlohmann::ordered_json::parse(small_sweep);
  json["axes"] = {
      {{"name", "recompute"}, {"key", "model.recompute"}, {"values", {"none", "full"}}},
      {{"name", "bucket"}, {"key", "model.bucket_bytes"}, {"from", 25000000}, {"to", 36000000}, {"step", 1000000}}};
  json["base"]["model"]["data_parallel"] = 8;
  json["base"]["model"]["micro_batch"] = 8;
  json["derived"] = nlohmann::ordered_json::array();
  json["where"] = nlohmann::ordered_json::array();
  json["objectives"] = {"step_time"};
  json["replays"] = 1;
  SweepStore first, second;
  const SweepOutcome free = run_sweep(parsed(json.dump()), {}, first);
  ASSERT_EQ(free.rows.size(), 1U);
  EXPECT_TRUE(free.rows[0].does);
  EXPECT_EQ(free.rows[0].options[0], "none");
  json["base"]["memory"] = {{"capacity_bytes", std::llround(free.rows[0].replayed.peak_bytes * 0.92)}};
  json["replays"] = 4;
  const SweepOutcome tight = run_sweep(parsed(json.dump()), {}, second);
  EXPECT_EQ(tight.unable, 0);  // within the margin
  ASSERT_EQ(tight.rows.size(), 4U);
  EXPECT_FALSE(tight.rows[0].does);
  EXPECT_TRUE(tight.rows[3].on_front);
  EXPECT_EQ(tight.rows[3].options[0], "full");
}

// Layers that are gathered ahead are ZeRO stage 3's: under the others it is one step, replayed once and shown once.
TEST(Sweep, ReplaysTwinsOnce) {
  auto json = nlohmann::ordered_json::parse(small_sweep);
  json["axes"] = {{{"name", "zero"}, {"key", "model.zero_stage"}, {"values", {1, 3}}},
                  {{"name", "prefetch"}, {"key", "model.prefetch"}, {"values", {0, 1, 2}}}};
  json["base"]["model"]["data_parallel"] = 8;
  json["base"]["model"]["micro_batch"] = 8;
  json["derived"] = json["where"] = nlohmann::ordered_json::array();
  json["margin"] = json["memory_margin"] = 0.9;
  const SweepFile file = parsed(json.dump());
  SweepStore store;
  const SweepOutcome outcome = run_sweep(file, {}, store);
  ASSERT_EQ(outcome.rows.size(), 6U);
  EXPECT_EQ(outcome.replays, 4);
  EXPECT_TRUE(outcome.is_proven());
  EXPECT_EQ(outcome.rows[1].twin_of, 0);
  EXPECT_EQ(outcome.rows[2].twin_of, 0);
  EXPECT_FALSE(outcome.rows[0].twin_of || outcome.rows[3].twin_of);
  // What shares a replay has the answer of its own.
  SweepWorker worker(file);
  for (const SweepRow& row : outcome.rows) {
    const Row own = worker.replay(row.candidate.edits);
    EXPECT_EQ(own.result.fingerprint, row.result.fingerprint) << row.candidate.name;
    EXPECT_EQ(own.result.step_time, row.result.step_time) << row.candidate.name;
    EXPECT_EQ(own.result.memory.peak_reserved, row.result.memory.peak_reserved) << row.candidate.name;
  }
}

// An optimizer on the CPU is screened by a bound of its time alone, which is no error of the screen's estimates.
TEST(Sweep, TellsBoundsFromEstimates) {
  auto json = nlohmann::ordered_json::parse(small_sweep);
  json["axes"] = {{{"name", "b"}, {"key", "model.micro_batch"}, {"values", {4, 8}}},
                  {{"name", "optimizer"}, {"key", "model.optimizer_device"}, {"values", {"gpu", "cpu"}}}};
  json["base"]["model"]["data_parallel"] = 8;
  json["derived"] = json["where"] = nlohmann::ordered_json::array();
  json["margin"] = json["memory_margin"] = 0.9;
  SweepStore store;
  const SweepOutcome outcome = run_sweep(parsed(json.dump()), {}, store);
  ASSERT_EQ(outcome.rows.size(), 4U);
  EXPECT_EQ(outcome.time_error.compared, 2U);
  EXPECT_EQ(outcome.time_above_bound.compared, 2U);
  EXPECT_EQ(outcome.below_bound, 0);
  EXPECT_GT(outcome.time_above_bound.median, outcome.time_error.worst);
  for (const SweepRow& row : outcome.rows) EXPECT_EQ(row.is_bound, row.options[1] == "cpu") << row.candidate.name;
}

TEST(Sweep, SaysWhatIsUnproven) {
  auto json = nlohmann::ordered_json::parse(small_sweep);
  json["replays"] = 3;
  SweepStore store;
  const SweepOutcome outcome = run_sweep(parsed(json.dump()), {}, store);
  EXPECT_FALSE(outcome.is_proven());
  EXPECT_EQ(outcome.replays, 3);
  EXPECT_GT(outcome.not_replayed, 0);
  EXPECT_GT(outcome.unproven[0], 0);
  EXPECT_GT(outcome.unproven[1], 0);
}

TEST(Sweep, KeepsFailuresAsRows) {
  // Sequences longer than the model's positions can't be trained on; the others are.
  auto json = nlohmann::ordered_json::parse(small_sweep);
  json["axes"] = {{{"name", "s"}, {"key", "model.sequence"}, {"values", {512, 1024, 2048}}}};
  json["objectives"] = {"gpu_time_per_token", "peak_memory"};
  json["derived"] = nlohmann::ordered_json::array();
  json["where"] = nlohmann::ordered_json::array();
  const SweepFile file = parsed(json.dump());
  SweepStore store;
  const SweepOutcome outcome = run_sweep(file, {}, store);
  ASSERT_EQ(outcome.invalid.size(), 1U);
  EXPECT_EQ(outcome.invalid.begin()->second.points, 1);
  EXPECT_EQ(outcome.invalid.begin()->second.example, 2);
  EXPECT_EQ(outcome.screened, 2);
}

TEST(Sweep, ReplaysTechniquesItCantEstimate) {
  auto json = nlohmann::ordered_json::parse(small_sweep);
  json["base"]["hardware"]["profile"] = "h100-80gb-1gpu";
  json["base"]["model"] = {{"name", "gpt2-small"}, {"sequence", 512}};
  json["axes"] = {{{"name", "technique"},
                   {"options",
                    {{"keep", nlohmann::ordered_json::object()},
                     {"ssdtrain", {{"offload.technique", "ssdtrain"}, {"offload.least_elements", 100000}}}}}}};
  json["derived"] = nlohmann::ordered_json::array();
  json["where"] = nlohmann::ordered_json::array();
  const SweepFile file = parsed(json.dump());
  SweepStore store;
  const SweepOutcome outcome = run_sweep(file, {}, store);
  ASSERT_EQ(outcome.rows.size(), 2U);
  EXPECT_LT(outcome.rows[1].replayed.life_years, 1e9);
  EXPECT_EQ(outcome.rows[0].replayed.life_years, std::numeric_limits<double>::infinity());
}

}  // namespace
}  // namespace spillway::reports
