// The keys of a scenario in the window, their warnings, and what the strip makes of them.
#include <gtest/gtest.h>

#include <QApplication>
#include <QComboBox>
#include <QDoubleSpinBox>
#include <QLabel>
#include <QToolButton>
#include <algorithm>
#include <fstream>
#include <set>

#include "gui/panels/answer_view.h"
#include "gui/panels/scenario_panel.h"
#include "scenario/scenario.h"
#include "tests/gui/app/window_fixture.h"

namespace spillway::gui {
namespace {

// The panel shows what matters; what is changed, on demand; and everything that is looked for.
TEST_F(Window, ThePanelShowsWhatMatters) {
  open("fits-after-one-toggle");
  ScenarioPanel& panel = window_.panel();
  const auto in_sight = [&](const char* key) { return !panel.row(key)->isHidden(); };
  EXPECT_TRUE(in_sight("model.micro_batch"));
  EXPECT_FALSE(in_sight("offload.drives"));  // nothing is offloaded
  EXPECT_FALSE(in_sight("model.pipeline_chunks"));
  EXPECT_FALSE(in_sight("model.zero_stage"));
  window_.session().edit("offload.technique", "ssdtrain", false);
  EXPECT_TRUE(in_sight("offload.drives"));
  window_.session().edit("model.pipeline_parallel", "2", false);
  EXPECT_TRUE(in_sight("model.pipeline_chunks"));
  EXPECT_TRUE(in_sight("what_if.network"));
  window_.session().undo();
  window_.session().undo();
  EXPECT_FALSE(in_sight("offload.drives"));
  panel.show_keys(KeysShown::changed);
  EXPECT_FALSE(in_sight("model.micro_batch"));
  window_.session().edit("model.micro_batch", "2", false);
  EXPECT_TRUE(in_sight("model.micro_batch"));
  EXPECT_FALSE(in_sight("model.sequence"));
  panel.filter("pipeline");
  EXPECT_TRUE(in_sight("model.pipeline_chunks"));
  EXPECT_FALSE(in_sight("model.micro_batch"));
  panel.filter("");
  panel.reveal("offload.drives");
  EXPECT_TRUE(in_sight("offload.drives"));
  // One control for each key.
  std::set<std::string> keys;
  for (const Control& control : scenario_controls()) EXPECT_TRUE(keys.insert(control.key).second) << control.key;
}

// Fewer tokens in a shorter step are no gain when fewer come out of a second.
TEST_F(Window, ALossOfTokensIsNoGain) {
  open("fits-after-one-toggle");
  window_.session().edit("model.micro_batch", "4", false);
  settle();
  window_.session().pin();
  const Result before = window_.session().baseline()->result();
  for (const char* const batch : {"1", "2", "3", "5", "8"}) {
    window_.session().edit("model.micro_batch", batch, false);
    settle();
    const Result& now = window_.session().outcome()->result();
    const ShownFigure& step = window_.strip().shown().at(2);
    EXPECT_EQ(step.direction, now.tokens_per_second > before.tokens_per_second ? Change::better : Change::worse)
        << batch << ": " << step.change;
    EXPECT_NE(step.change.find("tokens/s"), std::string::npos) << step.change;
  }
  window_.session().edit("model.micro_batch", "1", false);
  settle();
  const Result& least = window_.session().outcome()->result();
  EXPECT_LT(least.step_time, before.step_time);
  EXPECT_LT(least.tokens_per_second, before.tokens_per_second);
  EXPECT_EQ(window_.strip().shown().at(2).direction, Change::worse);
}

// What a reader found wrong is on screen, and no green verdict stands beside it.
TEST_F(Window, WarningsAreSeen) {
  const QString file = folder_.filePath("unpaired.json");
  // Of three blocks one is freed that was never there, and one event has no address.
  std::ofstream(file.toStdString())
      << R"({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA A100-SXM4-40GB",
    "totalGlobalMem": 42000000000}], "traceEvents": [
    {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 10, "dur": 5, "args": {"correlation": 1}},
    {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 20, "dur": 50, "args": {"correlation": 1, "stream": 7, "device": 0}},
    {"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 1, "ts": 11,
     "args": {"Device Type": 1, "Device Id": 0, "Addr": 4096, "Bytes": 1048576, "Total Allocated": 1048576, "Total Reserved": 2097152}},
    {"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 1, "ts": 12,
     "args": {"Device Type": 1, "Device Id": 0, "Addr": 8192, "Bytes": "no number", "Total Allocated": 1048576, "Total Reserved": 2097152}},
    {"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 1, "ts": 13,
     "args": {"Device Type": 1, "Device Id": 0, "Addr": 4096, "Bytes": -1048576, "Total Allocated": 0, "Total Reserved": 2097152}}]})";
  window_.open(file);
  settle();
  const Outcome& outcome = *window_.session().outcome();
  ASSERT_FALSE(outcome.trace().findings.empty());
  ASSERT_FALSE(outcome.result().warnings.empty());
  const auto labels = window_.answer().findChildren<QLabel*>();
  for (const std::string& warning : outcome.result().warnings) {
    const QString words = "▲ " + QString::fromStdString(studies::warning_words(warning));
    EXPECT_TRUE(std::any_of(labels.begin(), labels.end(), [&](const QLabel* one) { return one->text() == words; }))
        << warning;
  }
  const ShownFigure& verdict = window_.strip().shown().front();
  EXPECT_TRUE(verdict.is_caution || verdict.is_alarm) << verdict.value;
  EXPECT_EQ(verdict.short_value.rfind("Unknown", 0), 0U) << verdict.short_value;
  // As the result says, which every other face prints.
  EXPECT_EQ(outcome.result().verdict(), Verdict::unknown);
  EXPECT_EQ(verdict.title, "▲ unknown");
  EXPECT_EQ(verdict.detail, outcome.result().why_unknown());
  EXPECT_EQ(outcome.figures->result.answer(), Verdict::unknown);
}

// What is wrong with work says nothing of memory.
TEST_F(Window, AWarningOfWorkLeavesTheVerdict) {
  const QString file = folder_.filePath("work.json");
  std::ofstream(file.toStdString())
      << R"({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA A100-SXM4-40GB",
    "totalGlobalMem": 42000000000}], "traceEvents": [
    {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 20, "dur": 50, "args": {"correlation": 1, "stream": 7, "device": 0}},
    {"ph": "X", "cat": "kernel", "name": "l", "pid": 0, "tid": 7, "ts": "never", "dur": 50, "args": {"correlation": 2, "stream": 7, "device": 0}},
    {"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 1, "ts": 11,
     "args": {"Device Type": 1, "Device Id": 0, "Addr": 4096, "Bytes": 1048576, "Total Allocated": 1048576, "Total Reserved": 2097152}}]})";
  window_.open(file);
  settle();
  ASSERT_NE(window_.session().outcome()->trace().finding("bad_time"), nullptr);
  EXPECT_TRUE(window_.session().outcome()->result().fits());
  EXPECT_EQ(window_.strip().shown().front().title, "✔ fits");
}

// Where the global batch is said, accumulation follows from it: shown as what runs, and not to be edited.
TEST_F(Window, AccumulationFollowsFromTheGlobalBatch) {
  open("fits-after-one-toggle");
  window_.session().edit("model.micro_batch", "2", false);
  ScenarioPanel& panel = window_.panel();
  ControlRow& accumulation = *panel.row("model.gradient_accumulation");
  ControlRow& batch = *panel.row("model.global_batch");
  auto* const spin = qobject_cast<QDoubleSpinBox*>(accumulation.editor());
  EXPECT_TRUE(batch.isHidden());
  EXPECT_TRUE(spin->isEnabled());
  window_.session().edit("model.global_batch", "8", false);
  settle();
  EXPECT_FALSE(batch.isHidden());
  EXPECT_FALSE(spin->isEnabled());
  EXPECT_EQ(spin->text(), "× 4");
  EXPECT_EQ(window_.session().outcome()->loaded.setup.gradient_accumulation, 4);
  // Its own control takes whole steps: twice the micro-batches.
  auto* const batches = qobject_cast<QDoubleSpinBox*>(batch.editor());
  EXPECT_EQ(batches->value(), 8);
  batches->stepUp();
  settle();
  EXPECT_EQ(window_.session().document()->value("model.global_batch"), "10");
  EXPECT_EQ(spin->text(), "× 5");
  EXPECT_EQ(window_.session().outcome()->loaded.setup.gradient_accumulation, 5);
  window_.session().edit("model.global_batch", "null", false);
  settle();
  EXPECT_TRUE(spin->isEnabled());
  EXPECT_EQ(spin->text(), "1");
}

// Every key that differs, as Compare has it, and a button that puts it back; also where no control has it.
TEST_F(Window, ChangedHasEveryKeyAndTakesItBack) {
  open("fits-after-one-toggle");
  ScenarioPanel& panel = window_.panel();
  panel.show_keys(KeysShown::changed);
  const std::string before = window_.session().document()->text();
  const auto says_nothing = [&] {
    for (const QLabel* const label : panel.findChildren<QLabel*>())
      if (label->isVisible() && label->text().startsWith("Nothing is changed")) return true;
    return false;
  };
  EXPECT_TRUE(says_nothing());
  const std::pair<const char*, const char*> edits[] = {{"model.loss", "fused"},
                                                       {"model.micro_batch", "4"},
                                                       {"model.optimizer_device", "cpu"},
                                                       {"hardware.set.gpu.memory", "30GiB"}};
  for (const auto& [key, value] : edits) window_.session().edit(key, value, false);
  settle();
  EXPECT_FALSE(says_nothing());
  const std::vector<ChangedKey> changed = changed_keys({before, window_.session().document()->text()});
  EXPECT_EQ(changed.size(), 4U);
  for (const ChangedKey& key : changed) {
    SCOPED_TRACE(key.key);
    ControlRow* const row = panel.row(key.key);
    ASSERT_NE(row, nullptr);
    EXPECT_FALSE(row->isHidden());
    auto* const back = row->findChild<QToolButton*>("back");
    ASSERT_NE(back, nullptr);
    EXPECT_FALSE(back->isHidden());
    back->click();
    EXPECT_EQ(window_.session().document()->value(key.key), setting_of(before, key.key));
    QApplication::sendPostedEvents(nullptr, QEvent::DeferredDelete);
  }
  settle();
  EXPECT_TRUE(changed_keys({before, window_.session().document()->text()}).empty());
  EXPECT_TRUE(says_nothing());
  EXPECT_EQ(panel.row("model.loss"), nullptr);
}

// Every choice that the panel offers is one that the loader takes.
TEST_F(Window, EveryChoiceIsReadBack) {
  open("bound-by-pcie");
  for (const Control& control : scenario_controls())
    for (const std::string& choice : control.choices) {
      if (control.kind != ControlKind::choice) continue;
      const std::string text = with_setting(window_.session().document()->text(), control.key + "=" + choice);
      EXPECT_NO_THROW(static_cast<void>(parse_scenario(text, "choice", ""))) << control.key << "=" << choice;
    }
  ControlRow* const allocator = window_.panel().row("memory.allocator");
  const auto* const list = qobject_cast<QComboBox*>(allocator->editor());
  EXPECT_GE(list->findText("stalloc"), 0);
  window_.session().edit("memory.allocator", "stalloc", false);
  window_.session().edit("offload.technique", "none", false);
  settle();
  EXPECT_FALSE(window_.message().isVisible()) << window_.message().text().toStdString();
}

}  // namespace
}  // namespace spillway::gui
