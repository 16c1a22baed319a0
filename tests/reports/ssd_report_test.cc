#include "reports/ssd_report.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "base/input_error.h"
#include "hwprofiles/profile_library.h"
#include "reports/pcie_report.h"

namespace spillway::reports {
namespace {

using testing::HasSubstr;

constexpr double giga = 1e9;

// Layers of GPT-2 XL's size, so that sbh = 1024 x 16 x 1600 elements = 26 Mi, on a GPU slow enough for drives to keep
// up.
LoadedScenario loaded_step(const std::string& hardware = "ssdtrain-testbed", const std::string& more = "") {
  const std::string text = R"({"schema": "spillway-scenario", "version": 1, "title": "a step",
      "model": {"name": "gpt2-xl", "sequence": 1024, "micro_batch": 16, "precision": "bf16", "optimizer": "sgd")" +
                           more + R"(}, "what_if": {"gpu": 0.3}, "hardware": {"profile": ")" + hardware +
                           R"("}, "offload": {"technique": "ssdtrain"}})";
  return load(parse_scenario(text, "test", ""));
}

struct Asked {
  LoadedScenario loaded;
  ScenarioRun ran;
};
const Asked& step() {
  static const Asked asked = [] {
    LoadedScenario loaded = loaded_step();
    ScenarioRun ran = run_traced(loaded);
    return Asked{std::move(loaded), std::move(ran)};
  }();
  return asked;
}

NvmeProfile bundled(const char* name) { return ProfileLibrary::standard().load_nvme(name); }
SsdAnswer ask(const SsdQuestion& question) { return answer_ssd(step().loaded, step().ran, question); }

// Everything a layer keeps of 8 Mi elements and more, once: per layer and sequence parallel degree 1 the 34 sbh bytes
// of Korthikanti et al. 2022 hold 2 (QKV input) + 2 x 3 (q, k, v) + 2 (attention's output) + 2 + 8 + 8 + 2 sbh in
// tensors of sbh elements and more. Dropouts and norms are the model's own, so only bounds are given here.
TEST(OffloadTraffic, CountsWhatLayersKeep) {
  const OffloadTraffic traffic = offload_traffic(step().ran.trace(step().loaded), step().ran.result);
  const double sbh = 1024.0 * 16 * 1600;
  const double per_layer = static_cast<double>(traffic.load.written().count()) / 48 / sbh;
  EXPECT_GT(per_layer, 26);
  EXPECT_LT(per_layer, 40);
  EXPECT_EQ(traffic.load.written() - traffic.load.read(), step().ran.result.offload->forwarded);
  Bytes sum{};
  for (const TrafficCause& cause : traffic.causes) sum += cause.written;
  EXPECT_EQ(sum, traffic.load.written());
  for (const LoadSpan& span : traffic.load.spans) {
    EXPECT_GE(span.begin, Picos(0));
    EXPECT_LE(span.end, traffic.load.step);
  }
}

// Logits of 16 x 1024 x 50257 half or single precision elements would dwarf a layer's tensors: they are not there.
TEST(OffloadTraffic, LeavesTheLogitsAlone) {
  const OffloadTraffic traffic = offload_traffic(step().ran.trace(step().loaded), step().ran.result);
  for (const LoadSpan& span : traffic.load.spans) EXPECT_LT(span.bytes.count(), 16LL * 1024 * 50257);
}

// Stages of a pipeline on one machine share its drives: run and report charge the set with the sum over all GPUs of
// what the replay's own transfers move, and life follows.
TEST(SsdAnswer, ASetIsChargedWithTheSumOfItsStages) {
  for (const char* const layout :
       {R"(, "pipeline_parallel": 4, "gradient_accumulation": 4)",
        R"(, "pipeline_parallel": 4, "pipeline_chunks": 2, "gradient_accumulation": 4)",
        R"(, "pipeline_parallel": 2, "tensor_parallel": 2, "data_parallel": 2, "gradient_accumulation": 2)",
        R"(, "pipeline_parallel": 4, "data_parallel": 4, "gradient_accumulation": 4)"}) {
    const std::string text = R"({"schema": "spillway-scenario", "version": 1, "title": "stages",
        "model": {"name": "llama-2-7b", "layers": 16, "sequence": 4096, "micro_batch": 1)" +
                             std::string(layout) + R"(}, "hardware": {"profile": "dgx-a100"},
        "offload": {"technique": "ssdtrain", "drives": "micron-9550-max-12.8tb", "drives_per_machine": 4}})";
    const LoadedScenario loaded = load(parse_scenario(text, "test", ""));
    const ScenarioRun ran = run_traced(loaded);
    const Trace& trace = ran.trace(loaded);
    std::map<std::int64_t, std::int64_t> by_stage;
    for (std::size_t op = 0; op < trace.ops.size(); ++op)
      if (trace.ops.kind[op] == OpKind::storage_write)
        by_stage[trace.lanes[index_of(trace.ops.lane[op])].rank] += trace.ops.bytes[op].count();
    const std::int64_t gpus = loaded.setup.gpus(), each = gpus / loaded.setup.pipeline_parallel;
    std::map<std::int64_t, std::int64_t> by_machine;
    for (std::int64_t gpu = 0; gpu < gpus; ++gpu) by_machine[gpu / 8] += by_stage[gpu / each];
    std::int64_t most = 0;
    for (const auto& [machine, bytes] : by_machine) most = std::max(most, bytes);
    ASSERT_GT(most, 0) << layout;
    ASSERT_FALSE(ran.result.drives.empty());
    Bytes charged{};
    for (const DriveTraffic& drive : ran.result.drives) charged = std::max(charged, drive.written);
    EXPECT_EQ(charged.count(), most) << layout;
    const SsdAnswer answer = answer_ssd(loaded, ran, {.life_years = 1, .replays = true});
    ASSERT_EQ(answer.drives.size(), 1U);
    const DriveAnswer& found = answer.drives.front();
    EXPECT_EQ(found.written.count(), most) << layout;
    EXPECT_EQ(found.sharers, std::min<std::int64_t>(gpus, 8));
    const double shortest = shortest_life_years(ran.result);
    EXPECT_NEAR(found.years, shortest, 1e-9 * shortest) << layout;
    EXPECT_NEAR(
        shortest,
        found.endurance.bytes * 4 / static_cast<double>(most) * to_seconds(ran.result.step_time) / (365.0 * 86400),
        1e-6 * shortest)
        << layout;
    const SsdAnswer apart = answer_ssd(loaded, ran, {.drives = {found.drive}, .drives_per_gpu = 1});
    EXPECT_EQ(apart.drives.front().written, apart.traffic.load.written()) << "a set for each GPU";
    EXPECT_EQ(apart.drives.front().sharers, 1);
    const PcieAnswer links = answer_pcie(loaded, ran, {});
    for (const LinkAnswer& link : links.links)
      if (link.name.ends_with(" write")) {
        EXPECT_NEAR(link.written, static_cast<double>(most), 1e-6 * static_cast<double>(most)) << link.name;
      }
  }
}

// As many drives as make the life that the verdict goes by: one fewer would not do.
TEST(SsdAnswer, DrivesForALifeGoByTheVerdictsBound) {
  for (const LifeBound bound : {LifeBound::rated, LifeBound::expected}) {
    SsdQuestion question{.drives = {bundled("micron-9550-max-12.8tb")}, .drives_per_gpu = 8, .bound = bound};
    const DriveAnswer found = ask(question).drives.front();
    ASSERT_TRUE(found.holds_steady);
    const double of_one = (bound == LifeBound::rated ? found.low_years : found.years) / 8;
    EXPECT_GE(static_cast<double>(found.count_for_life) * of_one, question.life_years * (1 - 1e-9));
    EXPECT_LT(static_cast<double>(found.count_for_life - 1) * of_one, question.life_years);
  }
}

// A set that has the rate by its figures is none that holds where the replayed step is longer for it.
TEST(SsdAnswer, ASetThatTheStepWaitsForIsANo) {
  DriveAnswer answer;
  answer.endurance.bytes = 1;
  answer.holds_first = answer.holds_steady = answer.lasts = true;
  answer.step =
      StepOnDrives{.verdict = Verdict::fits, .step_time = microseconds(1'005), .without_waits = microseconds(1'000)};
  EXPECT_TRUE(answer.is_yes()) << "within a hundredth";
  answer.step->step_time = microseconds(1'020);
  EXPECT_FALSE(answer.is_yes());
  EXPECT_THAT(answer.verdict(5), HasSubstr("the step waits for them, 1.02 ms where 1.00 ms would do"));
}

// What drives cost by the token is their price over what they take: a host that waits for its stores writes no less,
// and lengthens the step and their lives alike.
TEST(SsdAnswer, WearByTheTokenIsNoMatterOfThePace) {
  NvmeProfile drive = bundled("samsung-pm9a3-3.84tb");
  drive.price_usd = Sourced<double>{400, {}};
  std::vector<double> usd_by_byte, steps;
  for (const char* const in_flight : {"", R"(, "in_flight_bytes": "1GiB")"}) {
    const LoadedScenario loaded = load(parse_scenario(
        std::string(R"({"schema": "spillway-scenario", "version": 1, "model": {"name": "gpt2-xl", "sequence": 1024,
            "micro_batch": 16}, "hardware": {"profile": "h100-80gb-1gpu"}, "offload": {"technique": "ssdtrain")") +
            in_flight + "}}",
        "test", ""));
    const ScenarioRun ran = run_traced(loaded);
    const SsdAnswer answer = answer_ssd(loaded, ran, {.drives = {drive}, .life_years = 1000, .replays = true});
    const DriveAnswer& own = answer.drives.front();
    ASSERT_TRUE(own.step) << own.cannot_tell;
    ASSERT_TRUE(own.usd_per_billion_tokens) << own.years << " years";
    EXPECT_LT(own.years, 1000);
    usd_by_byte.push_back(*own.usd_per_billion_tokens / static_cast<double>(own.step->written.count()));
    steps.push_back(to_seconds(own.step->step_time));
  }
  EXPECT_GT(steps[1], 1.2 * steps[0]);
  EXPECT_NEAR(usd_by_byte[1], usd_by_byte[0], 1e-3 * usd_by_byte[0]);
}

// Full recomputation keeps one sbh tensor a layer.
TEST(OffloadTraffic, RecomputationLeavesCheckpointsOnly) {
  const LoadedScenario loaded = loaded_step("ssdtrain-testbed", R"(, "recompute": "full")");
  const ScenarioRun ran = run_traced(loaded);
  const OffloadTraffic traffic = offload_traffic(ran.trace(loaded), ran.result);
  const double per_layer = static_cast<double>(traffic.load.written().count()) / 48 / (1024.0 * 16 * 1600);
  EXPECT_LT(per_layer, 4.5);
  EXPECT_GT(per_layer, 1.9);
}

// Under a technique the replay's own transfers count: what it stored and loaded, to the byte.
TEST(OffloadTraffic, OfATechniqueIsWhatTheReplayMoved) {
  const Result& result = step().ran.result;
  ASSERT_TRUE(result.offload);
  const OffloadTraffic traffic = offload_traffic(step().ran.trace(step().loaded), result);
  EXPECT_EQ(traffic.load.written(), result.offload->stored);
  EXPECT_EQ(traffic.load.read(), result.offload->loaded);
  EXPECT_GT(traffic.load.written(), Bytes(0));
  EXPECT_LE(traffic.load.written(), result.offload->candidates);
}

// Life by hand: endurance x count x step / bytes.
TEST(SsdReport, LifeIsEnduranceOverWhatAStepWrites) {
  const SsdAnswer answer = ask({.drives = {bundled("micron-9550-max-12.8tb")}, .drives_per_gpu = 2});
  ASSERT_EQ(answer.drives.size(), 1U);
  const DriveAnswer& drive = answer.drives[0];
  const double steps = 2 * 143100e12 / static_cast<double>(answer.traffic.load.written().count());
  EXPECT_NEAR(drive.years, steps * to_seconds(drive.load.steady.length) / (365 * 86400), 1e-6 * drive.years);
  EXPECT_LT(drive.low_years, drive.years);
  EXPECT_NEAR(answer.required_rate,
              2 * static_cast<double>(answer.traffic.load.written().count()) / to_seconds(answer.traffic.load.step), 1);
}

// Drives for the asked life: so many last that long, one fewer does not.
TEST(SsdReport, NumbersOfDrivesAreTheLeastThatDo) {
  const SsdQuestion question{.drives = {bundled("solidigm-d7-p5620-12.8tb")}, .drives_per_gpu = 1, .life_years = 5};
  const DriveAnswer one = ask(question).drives[0];
  ASSERT_GT(one.count_for_rate, 1);
  for (const std::int64_t less : {0, 1}) {
    SsdQuestion more = question;
    more.drives_per_gpu = one.count_for_rate - less;
    EXPECT_EQ(ask(more).drives[0].holds_steady, less == 0) << more.drives_per_gpu;
  }
  // The number to buy is told first, and the cost of a run beside it.
  SsdQuestion of_run = question;
  of_run.tokens = 1e9;
  const SsdAnswer answer = ask(of_run);
  const ReportDocument document = ssd_report(step().loaded, answer, of_run);
  const auto part = std::find_if(document.sections.begin(), document.sections.end(),
                                 [](const ReportSection& each) { return each.heading == "To buy"; });
  ASSERT_NE(part, document.sections.end());
  EXPECT_FALSE(part->is_detail);
  const DriveAnswer& drive = answer.drives[0];
  const std::vector<ReportCell>& row = part->tables.at(0).rows.at(0);
  ASSERT_EQ(row.size(), 6U);
  ASSERT_GT(drive.count_for_life, 0);
  EXPECT_EQ(row[3].text, std::to_string(std::max(drive.count_for_life, drive.count_for_rate)));
  EXPECT_EQ(row[5].text == "-", !drive.usd_per_billion_tokens.has_value());
  EXPECT_EQ(one.lanes, 4 * std::max(one.count_for_rate, one.count_for_life));
}

// Drives without a rating left, without a rating, without rates, and none: each its own words.
TEST(SsdReport, NoIsSaidInWords) {
  NvmeProfile drive = bundled("micron-9550-max-12.8tb");
  drive.sequential_endurance.reset();
  drive.rated_endurance = {Bytes(0), {}};
  const SsdAnswer zero = ask({.drives = {drive}});
  EXPECT_THAT(zero.drives[0].verdict(5), HasSubstr("nothing is left"));
  EXPECT_FALSE(zero.is_yes());
  EXPECT_EQ(zero.drives[0].years, 0);
  EXPECT_EQ(zero.drives[0].count_for_life, 0);

  const SsdAnswer worn = ask({.drives = {bundled("micron-9550-max-12.8tb")}, .endurance = {.used_fraction = 1}});
  EXPECT_THAT(worn.drives[0].verdict(5), HasSubstr("nothing is left"));

  drive.rated_endurance.reset();
  drive.drive_writes_per_day.reset();
  EXPECT_THAT(ask({.drives = {drive}}).drives[0].verdict(5), HasSubstr("rates no endurance"));

  const SsdAnswer without_rates = ask({.drives = {bundled("kioxia-fl6-3.2tb")}});
  EXPECT_THAT(without_rates.drives[0].verdict(5), HasSubstr("no sequential read and write rates"));
  EXPECT_GT(without_rates.drives[0].years, 0) << "its life at the step's own pace can be told";

  LoadedScenario bare = step().loaded;
  bare.hardware.drives.clear();
  const SsdAnswer none = answer_ssd(bare, step().ran, {});
  EXPECT_FALSE(none.is_yes());
  EXPECT_THAT(ssd_report(bare, none, {}).verdict, HasSubstr("No: this machine has no drive"));
}

// A drive slower than the link, and a link slower than the drives.
TEST(SsdReport, TellsWhatBinds) {
  const DriveAnswer slow = ask({.drives = {bundled("samsung-980-pro-1tb")}, .drives_per_gpu = 1}).drives[0];
  EXPECT_LT(slow.steady_rate, slow.link_rate);
  EXPECT_THAT(slow.verdict(5), HasSubstr("no"));
  EXPECT_THAT(slow.verdict(5), testing::Not(HasSubstr("links carry")));
  const DriveAnswer many = ask({.drives = {bundled("micron-9550-max-12.8tb")}, .drives_per_gpu = 16}).drives[0];
  EXPECT_NEAR(many.steady_rate / many.link_rate, 1, 1e-3);
}

// The verdict names the test that fails, and every table agrees with it; what no machine holds is not offered.
TEST(SsdReport, TheVerdictNamesTheTestThatFails) {
  const SsdQuestion question{.drives = {bundled("micron-9550-max-12.8tb")}, .drives_per_gpu = 8, .life_years = 1000};
  const SsdAnswer answer = ask(question);
  const DriveAnswer& drive = answer.drives.front();
  ASSERT_TRUE(drive.holds_first);
  ASSERT_TRUE(drive.holds_steady);
  ASSERT_FALSE(drive.lasts);
  const ReportDocument document = ssd_report(step().loaded, answer, question);
  EXPECT_THAT(document.verdict, HasSubstr(" fail by life: worn out after "));
  EXPECT_THAT(document.verdict, HasSubstr("They hold the "));
  EXPECT_THAT(document.verdict, testing::Not(HasSubstr("bandwidth")));
  std::vector<std::string> failing;
  for (const ReportSection& section : document.sections)
    for (const ReportTable& table : section.tables)
      if (table.caption == "Tests of each set")
        for (const auto& row : table.rows)
          if (row.back().text == "no") failing.push_back(row[1].text);
  EXPECT_EQ(failing, std::vector<std::string>{"life"});
  EXPECT_GT(drive.any_count_for_life, 64);
  EXPECT_EQ(drive.count_for_life, 0);
  EXPECT_EQ(drive.lanes, 0);
  EXPECT_THAT(report_csv(document),
              testing::AllOf(HasSubstr("none, "), HasSubstr(" needed"), testing::Not(HasSubstr(",buy,"))));
  // Of several sets each test with how many fail it.
  SsdQuestion both = question;
  both.drives.push_back(bundled("samsung-980-pro-1tb"));
  both.drives_per_gpu = 1;
  EXPECT_THAT(ssd_report(step().loaded, ask(both), both).verdict, HasSubstr("life: 2"));
}

// Whichever test fails alone, the answer is no and its name is in the words.
TEST(SsdAnswer, AnyTestAloneIsANo) {
  DriveAnswer sound;
  sound.endurance.bytes = 1;
  sound.holds_first = sound.holds_steady = sound.lasts = true;
  sound.step = StepOnDrives{.verdict = Verdict::fits,
                            .held = Bytes(5),
                            .room = Bytes(5),
                            .step_time = microseconds(1'000),
                            .without_waits = microseconds(1'000)};
  ASSERT_TRUE(sound.is_yes());
  EXPECT_THAT(sound.verdict(5), HasSubstr("yes"));
  const auto fails = [&](const std::string& name, const auto& spoil) {
    DriveAnswer spoilt = sound;
    spoil(spoilt);
    EXPECT_FALSE(spoilt.is_yes()) << name;
    EXPECT_EQ(failing(spoilt.tests(5)), name);
    EXPECT_THAT(spoilt.verdict(5), testing::StartsWith("no: "));
  };
  fails("memory", [](DriveAnswer& one) { one.step->verdict = Verdict::does_not_fit; });
  fails("memory", [](DriveAnswer& one) { one.step->verdict = Verdict::unknown; });
  fails("saving", [](DriveAnswer& one) { one.step->saves_nothing = "it saves nothing"; });
  fails("capacity", [](DriveAnswer& one) { one.step->held = Bytes(6); });
  fails("bandwidth, caches empty", [](DriveAnswer& one) { one.holds_first = false; });
  fails("bandwidth, caches full", [](DriveAnswer& one) { one.holds_steady = false; });
  fails("step time", [](DriveAnswer& one) { one.step->step_time = microseconds(1'100); });
  fails("life", [](DriveAnswer& one) { one.lasts = false; });
}

// Its cache takes more than a step's bytes: the first steps hold, the steady ones don't.
TEST(SsdReport, NamesDrivesThatFallBehindOnceTheirCacheIsFull) {
  NvmeProfile drive = bundled("samsung-980-pro-1tb");
  drive.write_bandwidth = {rate_from_bytes_per_second(20e9), {}};
  drive.read_bandwidth = {rate_from_bytes_per_second(22e9), {}};
  const SsdQuestion question{.drives = {drive}, .drives_per_gpu = 2};
  const SsdAnswer answer = ask(question);
  ASSERT_TRUE(answer.drives[0].holds_first);
  EXPECT_FALSE(answer.drives[0].holds_steady);
  EXPECT_THAT(answer.drives[0].verdict(5), HasSubstr("not once its cache is full"));
  ASSERT_EQ(answer.drives[0].stages.size(), 2U);
  EXPECT_NEAR(answer.drives[0].stages[1].rate, 3 * giga, 1e5);
  const std::string page = report_html(ssd_report(step().loaded, answer, question));
  EXPECT_THAT(page, HasSubstr("GB/s once full"));
}

// Retention relaxed: only when asked for, and then first among the assumptions.
TEST(SsdReport, PrintsRelaxedRetention) {
  SsdQuestion question{.drives = {bundled("samsung-980-pro-1tb")}};
  const std::string plain = report_csv(ssd_report(step().loaded, ask(question), question));
  EXPECT_THAT(plain, testing::Not(HasSubstr("retention relaxed from")));
  question.endurance.retention = RetentionRelaxation::one_day;
  const std::string relaxed = report_csv(ssd_report(step().loaded, ask(question), question));
  EXPECT_THAT(relaxed, HasSubstr("retention relaxed from 3 years to 1 day: x86"));
}

// Two arrays for two GPUs: each GPU its own, judged apart.
TEST(SsdReport, TheMachinesOwnDrives) {
  const SsdAnswer answer = ask({});
  ASSERT_EQ(answer.drives.size(), 2U);
  EXPECT_EQ(answer.drives[0].count, 4);
  EXPECT_EQ(answer.drives[1].count, 3);
  EXPECT_EQ(answer.drives[0].sharers, 1);
}

// Two GPUs of a machine behind one root: each link carries what the traffic puts on it, and the tightest decides.
TEST(PcieReport, LinksCarryTheTraffic) {
  const PcieAnswer answer = answer_pcie(step().loaded, step().ran, {});
  ASSERT_FALSE(answer.links.empty());
  const double written = static_cast<double>(answer.traffic.load.written().count());
  const auto up = std::find_if(answer.links.begin(), answer.links.end(),
                               [](const LinkAnswer& link) { return link.name == "gpu0 up"; });
  ASSERT_NE(up, answer.links.end());
  EXPECT_NEAR(up->written / written, 1, 1e-6);
  EXPECT_EQ(up->read, 0);
  for (std::size_t i = 1; i < answer.links.size(); ++i)
    EXPECT_LE(answer.links[i - 1].headroom(), answer.links[i].headroom());
  EXPECT_EQ(answer.is_yes(), answer.links.front().headroom() >= 1);
  LoadedScenario bare = step().loaded;
  bare.hardware.drives.clear();
  const PcieAnswer none = answer_pcie(bare, step().ran, {});
  EXPECT_FALSE(none.is_yes());
  EXPECT_THAT(pcie_report(bare, none, {}).verdict, HasSubstr("no drives"));
}

// The rate is that of a step that nothing holds up; one that waits for links is a No, one that waits for drives says
// so.
TEST(PcieReport, WhatHoldsTheStepUp) {
  PcieAnswer answer = answer_pcie(step().loaded, step().ran, {});
  ASSERT_TRUE(answer.is_yes());
  const Picos step_time = answer.traffic.load.step;
  answer.on_endless_drives = step_time;
  EXPECT_THAT(pcie_report(step().loaded, answer, {}).verdict, testing::Not(HasSubstr("hold the step up")));
  answer.traffic.replayed = step_time + step_time / 10;
  EXPECT_TRUE(answer.is_yes());
  EXPECT_THAT(pcie_report(step().loaded, answer, {}).verdict, HasSubstr("Its drives hold the step up"));
  answer.on_endless_drives = answer.traffic.replayed;
  EXPECT_FALSE(answer.is_yes());
  EXPECT_THAT(pcie_report(step().loaded, answer, {}).verdict, HasSubstr("No: the step waits for its links"));
  // Though all have room on average, which is said, and the test that fails is a row.
  ASSERT_GE(answer.links.front().headroom(), 1);
  EXPECT_THAT(pcie_report(step().loaded, answer, {}).verdict, HasSubstr("On average every link has room"));
  std::vector<std::string> failing;
  for (const JudgedTest& test : answer.tests())
    if (!test.holds) failing.push_back(test.name);
  EXPECT_EQ(failing, std::vector<std::string>{"step time, endless drives"});
}

// A slow drive stretches the step it is written to; what it is asked for does not become less by it.
TEST(PcieReport, SlowDrivesAskForNoLess) {
  SsdQuestion question;
  question.replays = true;
  const auto asked = [&](const char* rate) {
    LoadedScenario loaded = loaded_step();
    loaded.scenario.offload.technique = ssdtrain_word;
    loaded.scenario.offload.in_flight = Bytes(1);  // the host waits for every store
    for (DriveGroup& group : loaded.hardware.drives)
      if (*rate != '\0') group.drive.write_bandwidth->value = rate_from_bytes_per_second(std::stod(rate));
    const ScenarioRun ran = run_traced(loaded);
    return answer_pcie(loaded, ran, question);
  };
  const PcieAnswer fast = asked(""), slow = asked("1e9");
  ASSERT_GT(slow.traffic.replayed, fast.traffic.replayed + fast.traffic.replayed / 20);
  EXPECT_TRUE(slow.waits_for_drives());
  EXPECT_EQ(slow.traffic.load.step, fast.traffic.load.step);
  EXPECT_DOUBLE_EQ(slow.required_rate,
                   static_cast<double>(slow.traffic.load.written().count()) / (to_seconds(fast.traffic.load.step) / 2));
  for (const LinkAnswer& link : slow.links) EXPECT_THAT(link.name, testing::Not(HasSubstr("media")));
}

TEST(OffloadTraffic, KeepsItsPlaceAtAnotherPace) {
  OffloadTraffic traffic = offload_traffic(step().ran.trace(step().loaded), step().ran.result);
  const OffloadTraffic before = traffic;
  set_pace(traffic, before.load.step / 2);
  ASSERT_EQ(traffic.load.spans.size(), before.load.spans.size());
  EXPECT_EQ(traffic.load.written(), before.load.written());
  EXPECT_EQ(traffic.replayed, before.load.step);
  for (std::size_t i = 0; i < traffic.load.spans.size(); ++i) {
    EXPECT_LE(traffic.load.spans[i].begin, traffic.load.spans[i].end);
    EXPECT_LE(traffic.load.spans[i].end, traffic.load.step);
    EXPECT_NEAR(to_seconds(traffic.load.spans[i].end) * 2, to_seconds(before.load.spans[i].end), 1e-9);
  }
}

// Host memory lies behind links as well: what they carry, whether the step waits, and why no drives are needed.
TEST(PcieReport, WhatGoesToHostMemoryCrossesLinks) {
  for (const double speed : {4.0, 0.5}) {
    LoadedScenario loaded = load(parse_scenario(
        fmt::format(R"({{"schema": "spillway-scenario", "version": 1, "model": {{"name": "gpt2-xl", "sequence": 1024,
            "micro_batch": 6}}, "what_if": {{"pcie": {}}}, "hardware": {{"profile": "h100-80gb-1gpu"}},
            "offload": {{"technique": "ssdtrain", "tier": "host", "adaptive": false}}}})",
                    speed),
        "test", ""));
    const ScenarioRun ran = run_traced(loaded);
    const PcieAnswer answer = answer_pcie(loaded, ran, {.replays = true});
    ASSERT_TRUE(answer.is_on_host());
    EXPECT_EQ(answer.traffic.to_host, ran.result.offload->stored);
    EXPECT_EQ(answer.traffic.from_host, ran.result.offload->loaded);
    ASSERT_FALSE(answer.links.empty());
    EXPECT_GE(answer.links.front().copied, static_cast<double>(answer.traffic.to_host.count()));
    EXPECT_EQ(answer.waits_for_links(), speed < 1);
    const ReportDocument document = pcie_report(loaded, answer, {});
    EXPECT_THAT(document.verdict, HasSubstr(speed < 1 ? "the step waits for its links" : "go to host memory"));
    const SsdAnswer drives = answer_ssd(loaded, ran, {});
    EXPECT_FALSE(drives.is_yes());
    EXPECT_THAT(ssd_report(loaded, drives, {}).verdict, HasSubstr("stores in host memory what it moves"));
  }
}

// Through host memory each byte crosses DRAM as often as the host says.
TEST(PcieReport, BounceBuffersCrossHostMemory) {
  SsdQuestion question;
  question.route = DriveRoute::bounce;
  const PcieAnswer answer = answer_pcie(step().loaded, step().ran, question);
  const auto dram = std::find_if(answer.links.begin(), answer.links.end(),
                                 [](const LinkAnswer& link) { return link.name == "DRAM"; });
  ASSERT_NE(dram, answer.links.end());
  EXPECT_NEAR(dram->written / static_cast<double>(answer.traffic.load.written().count()),
              step().loaded.hardware.host.bounce_copies.value * static_cast<double>(answer.gpus_per_machine), 0.01);
}

}  // namespace
}  // namespace spillway::reports
