#include "gui/panels/ways_model.h"

#include <gtest/gtest.h>

#include <QAbstractItemModelTester>

namespace spillway::gui {
namespace {

ShownWay way(const char* name, double rate, Verdict verdict, bool changes_maths = false) {
  ShownWay made;
  made.row.candidate = {name, {std::string("title=") + name}};
  made.row.is_done = true;
  made.row.result.tokens_per_second = rate;
  made.row.result.step_time = Picos(static_cast<std::int64_t>(1e12 / rate));
  MemoryResult& memory = made.row.result.memory;
  memory.known = true;
  memory.capacity = memory.limit = Bytes(std::int64_t{24} << 30);
  memory.peak_allocated = memory.peak_reserved = Bytes(std::int64_t{20} << 30);
  memory.out_of_memory = verdict == Verdict::does_not_fit;
  memory.is_tight = verdict == Verdict::tight;
  made.text = name;
  made.changes_maths = changes_maths;
  return made;
}

struct Listed {
  Listed() : tester(&model, QAbstractItemModelTester::FailureReportingMode::Fatal) {
    Outcome now;
    now.scenario.text = "as it was opened";
    now.run.result = way("now", 100, Verdict::does_not_fit).row.result;
    model.clear(now);
  }
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (int row = 1; row < model.rowCount(); ++row) found.push_back(model.way(row)->row.candidate.name);
    return found;
  }
  [[nodiscard]] QString cell(int row, int column) const { return model.index(row, column).data().toString(); }
  WaysModel model;
  QAbstractItemModelTester tester;
};

// Those that fit first, of each kind the fastest, whatever order they come in.
TEST(WaysModel, EveryWayComesInItsPlace) {
  Listed list;
  list.model.add(way("no", 300, Verdict::does_not_fit));
  list.model.add(way("slow", 80, Verdict::fits));
  list.model.add(way("tight", 200, Verdict::tight));
  list.model.add(way("fast", 120, Verdict::fits));
  EXPECT_EQ(list.names(), (std::vector<std::string>{"fast", "slow", "tight", "no"}));
  EXPECT_EQ(list.model.fitting(), 2U);
  EXPECT_EQ(list.model.way(0), nullptr);
  EXPECT_TRUE(list.cell(0, WaysModel::name).endsWith("Now"));
  EXPECT_TRUE(list.cell(1, WaysModel::name).startsWith("✔ fits"));
  EXPECT_TRUE(list.cell(3, WaysModel::name).startsWith("▲ tight"));
  EXPECT_TRUE(list.cell(4, WaysModel::name).startsWith("✖"));
  EXPECT_EQ(list.cell(1, WaysModel::change), "▲ 20.0 %");
  EXPECT_EQ(list.cell(2, WaysModel::change), QString("▼ \u221220.0 %"));
  EXPECT_EQ(list.cell(1, WaysModel::allocated), "20.00");
}

void set_life(ShownWay& way, double years) {
  DriveTraffic drive;
  drive.life = DriveLife{.years = years};
  way.row.result.drives = {drive};
}

// Those that fit stay first whatever is best among them, and what is chosen stays chosen.
TEST(WaysModel, BestIsWhatIsAskedFor) {
  Listed list;
  ShownWay fast = way("fast", 120, Verdict::fits), cheap = way("cheap", 100, Verdict::fits);
  ShownWay small = way("small", 80, Verdict::fits), no = way("no", 300, Verdict::does_not_fit);
  for (ShownWay* const one : {&fast, &cheap, &small}) {
    one->row.rates.usd_per_hour = 3;
    one->row.tokens_per_step = 1'000;
  }
  cheap.row.rates.usd_per_hour = 1;
  set_life(fast, 2);
  set_life(cheap, 1);
  small.row.result.memory.peak_reserved = Bytes(std::int64_t{10} << 30);
  fast.row.candidate.edits = {"a=1", "b=2"};
  small.row.candidate.edits = {"a=1", "b=2", "c=3"};
  for (const ShownWay* const one : {&small, &no, &fast, &cheap}) list.model.add(*one);
  const QPersistentModelIndex chosen = list.model.index(1, 0);  // the fastest
  EXPECT_EQ(list.names(), (std::vector<std::string>{"fast", "cheap", "small", "no"}));
  list.model.set_order(WaysOrder::cheapest);
  EXPECT_EQ(list.names(), (std::vector<std::string>{"cheap", "fast", "small", "no"}));
  EXPECT_EQ(list.model.way(chosen.row())->row.candidate.name, "fast");
  list.model.set_order(WaysOrder::fewest_keys);
  EXPECT_EQ(list.names(), (std::vector<std::string>{"cheap", "fast", "small", "no"}));
  list.model.set_order(WaysOrder::least_memory);
  EXPECT_EQ(list.names(), (std::vector<std::string>{"small", "fast", "cheap", "no"}));
  list.model.set_order(WaysOrder::longest_life);
  EXPECT_EQ(list.names(), (std::vector<std::string>{"small", "fast", "cheap", "no"}));
  ShownWay later = way("later", 90, Verdict::fits);
  set_life(later, 1.5);
  list.model.add(later);
  EXPECT_EQ(list.names(), (std::vector<std::string>{"small", "fast", "later", "cheap", "no"}));
  EXPECT_EQ(list.model.way(chosen.row())->row.candidate.name, "fast");
}

// How far off such figures are is said, or that nobody knows.
TEST(WaysModel, EveryWaySaysHowWellItIsKnown) {
  Listed list;
  ShownWay known = way("known", 120, Verdict::fits);
  known.row.result.step_time_range = {.known = true, .low = 0.905, .high = 1.12, .basis = "published steps"};
  list.model.add(known);
  list.model.add(way("unknown", 100, Verdict::fits));
  EXPECT_EQ(list.cell(1, WaysModel::range), QString("\u22129.5 to +12 %"));
  EXPECT_EQ(list.cell(2, WaysModel::range), "not known");
}

// Behind the same training, whatever is best of it.
TEST(WaysModel, OtherNumericsAreNeverFirst) {
  Listed list;
  list.model.add(way("8-bit", 300, Verdict::fits, true));
  list.model.add(way("same", 80, Verdict::fits));
  list.model.add(way("no", 400, Verdict::does_not_fit));
  for (const WaysOrder order : {WaysOrder::fastest, WaysOrder::least_memory, WaysOrder::fewest_keys}) {
    list.model.set_order(order);
    EXPECT_EQ(list.names(), (std::vector<std::string>{"same", "8-bit", "no"}));
  }
}

TEST(WaysModel, TheSameScenarioIsOneRow) {
  Listed list;
  list.model.add(way("once", 80, Verdict::fits));
  list.model.add(way("once", 80, Verdict::fits));
  list.model.add(way("as it was opened", 100, Verdict::does_not_fit));
  EXPECT_EQ(list.names(), (std::vector<std::string>{"once"}));
}

TEST(WaysModel, WhatChangesTheMathsIsLeftOutOnRequest) {
  Listed list;
  list.model.add(way("plain", 80, Verdict::fits));
  list.model.add(way("8-bit", 90, Verdict::fits, true));
  list.model.set_same_maths(true);
  list.model.add(way("adafactor", 95, Verdict::fits, true));
  EXPECT_EQ(list.names(), (std::vector<std::string>{"plain"}));
  list.model.set_same_maths(false);
  EXPECT_EQ(list.names(), (std::vector<std::string>{"plain", "adafactor", "8-bit"}));
  EXPECT_EQ(list.cell(1, WaysModel::maths), "same");
  EXPECT_EQ(list.cell(3, WaysModel::maths), "differs");
}

}  // namespace
}  // namespace spillway::gui
