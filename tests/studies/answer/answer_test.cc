// The document of a run and of a snapshot; and text of files on its way to a page.
#include "studies/answer/answer.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <numeric>

#include "scenario/scenario_memory.h"
#include "sim/replay/verdict_words.h"
#include "studies/answer/answer_json.h"
#include "studies/answer/snapshot_answer.h"
#include "traces/formats/read.h"

namespace spillway::studies {
namespace {

TEST(Answer, OfARunSaysWhatTheReplaySays) {
  const LoadedScenario loaded = load(parse_scenario(R"({"schema": "spillway-scenario", "version": 1, "title": "tiny",
    "model": {"name": "gpt2-small", "layers": 2, "sequence": 512, "micro_batch": 4},
    "hardware": {"profile": "h100-80gb-1gpu"}, "memory": {"capacity_bytes": 300000000}})",
                                                    "tiny", ""));
  ScenarioRun run = run_traced(loaded);
  const Result result = run.result;
  Answer answer = run_answer(loaded, result, "spillway run tiny.json");
  take_replayed_order(loaded, run);
  add_pictures(loaded, run, answer);
  EXPECT_EQ(answer.answer, Verdict::does_not_fit);
  EXPECT_EQ(answer.heading, verdict_shape(Verdict::does_not_fit) + " " + verdict_heading(result));
  EXPECT_EQ(answer.why.kind, "states");
  ASSERT_TRUE(answer.now.has_value());
  EXPECT_EQ(answer.now->peak_reserved, result.memory.peak_reserved);
  EXPECT_EQ(answer.fingerprint, result.fingerprint);
  ASSERT_EQ(answer.stages.size(), 1U);
  EXPECT_EQ(std::accumulate(answer.stages[0].at_peak.begin(), answer.stages[0].at_peak.end(), std::int64_t{0}),
            result.memory.peak_allocated.count());
  EXPECT_FALSE(answer.lanes.lanes.empty());
  double shares = 0;
  for (const AnswerShare& share : answer.shares) shares += share.fraction;
  EXPECT_NEAR(shares, 1, 0.05);
}

TEST(Answer, OneTensorThatDecidesIsNamed) {
  const LoadedScenario loaded = load(parse_scenario(R"({"schema": "spillway-scenario", "version": 1, "title": "tiny",
    "model": {"name": "gpt2-small", "layers": 1, "sequence": 512, "micro_batch": 32},
    "hardware": {"profile": "h100-80gb-1gpu"}, "memory": {"capacity_bytes": 8000000000}})",
                                                    "tiny", ""));
  const Result result = run_traced(loaded).result;
  ASSERT_EQ(result.answer(), Verdict::does_not_fit);
  EXPECT_GE(result.memory.largest.bytes, Bytes(std::int64_t{32} * 512 * 50257 * 4));
  const AnswerWhy why = why_of(result);
  EXPECT_EQ(why.kind, "request");
  EXPECT_TRUE(why.sentence.starts_with("One tensor, loss.")) << why.sentence;
  EXPECT_TRUE(why.sentence.ends_with("a loss that is fused or computed in chunks keeps it from memory."))
      << why.sentence;
  Result fused = result;
  fused.memory.largest.name = "loss.logits.grad";
  EXPECT_TRUE(why_of(fused).sentence.ends_with("more than half of what is missing.")) << why_of(fused).sentence;
}

TEST(Answer, PiecesTooSmallAreTheReasonWhereWhatIsHeldWouldFit) {
  Result result;
  result.memory.known = result.memory.out_of_memory = true;
  result.memory.limit = result.memory.capacity = Bytes(1000);
  result.memory.peak_allocated = Bytes(990);
  result.memory.short_of = Bytes(100);
  result.memory.owners = {{"activation", Bytes(990), true}};
  EXPECT_EQ(why_of(result).kind, "fragments");
  result.memory.peak_allocated = Bytes(1090);
  EXPECT_EQ(why_of(result).kind, "activations");
}

TEST(Answer, GainsThatSayNothingAreOneLine) {
  Answer answer;
  add_helps({{"a", Picos(1), 0.001}, {"b", Picos(1), 0.1}, {"c", Picos(1), 0.3}}, {}, answer);
  ASSERT_EQ(answer.helps.size(), 2U);
  EXPECT_EQ(answer.helps[0].name, "c");
  EXPECT_EQ(answer.no_help, std::vector<std::string>{"a"});
}

TEST(Answer, OfASnapshotNamesTheLineThatRanOut) {
  const std::string path = std::string(std::getenv("SPILLWAY_SOURCE_ROOT")) + "/traces/data/ran-out/snapshot.pickle";
  const Trace trace = read_trace(path, {.keep_stacks = true});
  const MemoryDiagnosis diagnosis = diagnose_memory(trace, 0);
  const Answer answer = snapshot_answer(trace, 0, diagnosis, {}, "snapshot.pickle", "spillway explain snapshot.pickle");
  EXPECT_NE(answer.heading.find("loss.py:9 cross_entropy asked for 1.00 GiB"), std::string::npos) << answer.heading;
  EXPECT_TRUE(answer.why.sentence.starts_with("train.py:64 build")) << answer.why.sentence;
  ASSERT_EQ(answer.stages.size(), 1U);
  EXPECT_EQ(std::accumulate(answer.stages[0].at_peak.begin(), answer.stages[0].at_peak.end(), std::int64_t{0}),
            answer.stages[0].peak_allocated.count());
  Bytes alive{};
  for (const HeldTensor& holder : answer.stages[0].tensors) alive += holder.bytes;
  EXPECT_EQ(alive, diagnosis.alive);
  ASSERT_EQ(answer.ways.size(), diagnosis.ran_out->others.size());
  EXPECT_EQ(answer.ways.front().figures.answer, Verdict::fits);
  EXPECT_EQ(answer.ways.back().figures.answer, Verdict::does_not_fit);
}

TEST(VisibleText, ShowsWhatWouldHide) {
  EXPECT_EQ(visible_text("plain ä 漢"), "plain ä 漢");
  EXPECT_EQ(visible_text("a\x01\x7f"), "a\\u{0001}\\u{007F}");
  EXPECT_EQ(visible_text("a\xE2\x80\xAEz"), "a\\u{202E}z");
  EXPECT_EQ(visible_text("\xE2\x80\xA8\xE2\x81\xA6"), "\\u{2028}\\u{2066}");
  EXPECT_EQ(visible_text("a\nb"), "a b");
  EXPECT_EQ(visible_text("\xff\xC0\xAF\xED\xA0\x80").find('\xff'), std::string::npos);
  const std::string name = visible_name(std::string(150, 'a') + std::string(150, 'z'));
  EXPECT_TRUE(name.starts_with("aaaa") && name.ends_with("zzzz"));
  EXPECT_NE(name.find("…"), std::string::npos);
  EXPECT_LT(name.size(), 210U);
  EXPECT_EQ(visible_name(std::string(200, 'b')), std::string(200, 'b'));
}

}  // namespace
}  // namespace spillway::studies
