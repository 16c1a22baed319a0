#include "gui/workspace/scenario_document.h"

#include <gtest/gtest.h>

#include <QTemporaryDir>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/input_error.h"
#include "base/shell_word.h"
#include "gui/workspace/file_kind.h"
#include "scenario/scenario.h"

namespace spillway::gui {
namespace {

std::string bundled(const std::string& name) {
  return std::string(std::getenv("SPILLWAY_SOURCE_ROOT")) + "/gui/scenarios/" + name + ".json";
}

std::string content(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// Undo gives the file's very bytes back, however it was laid out; redo those after.
TEST(ScenarioDocument, UndoAndRedoAreTheSameBytes) {
  const std::string path = bundled("fits-after-one-toggle"), original = content(path);
  ScenarioDocument document = ScenarioDocument::open(path);
  ASSERT_EQ(document.text(), original);
  std::vector<std::string> states = {original};
  for (const auto& [key, value] :
       std::vector<std::pair<std::string, std::string>>{{"model.recompute", "full"},
                                                        {"model.micro_batch", "4"},
                                                        {"hardware.set.gpu.memory", "30 GiB"},
                                                        {"what_if.pcie", "0.5"},
                                                        {"model.recompute", "null"}}) {
    EXPECT_TRUE(document.set(key, value));
    states.push_back(document.text());
  }
  for (std::size_t i = states.size() - 1; i-- > 0;) {
    ASSERT_TRUE(document.undo());
    EXPECT_EQ(document.text(), states[i]);
  }
  EXPECT_FALSE(document.undo());
  EXPECT_FALSE(document.is_changed());
  for (std::size_t i = 1; i < states.size(); ++i) {
    ASSERT_TRUE(document.redo());
    EXPECT_EQ(document.text(), states[i]);
  }
  EXPECT_FALSE(document.redo());
}

// A drag of a slider is one step back.
TEST(ScenarioDocument, ADragIsOneStep) {
  ScenarioDocument document = ScenarioDocument::open(bundled("bound-by-pcie"));
  const std::string original = document.text();
  for (int i = 2; i < 9; ++i) document.set("what_if.pcie", std::to_string(i), true);
  document.set("what_if.host", "2", true);
  EXPECT_TRUE(document.undo());
  EXPECT_EQ(document.value("what_if.pcie"), "8");
  EXPECT_TRUE(document.undo());
  EXPECT_EQ(document.text(), original);
}

// What is as it is already is no step, and keeps the layout of the file.
TEST(ScenarioDocument, SettingTheSameValueChangesNothing) {
  ScenarioDocument document = ScenarioDocument::open(bundled("bound-by-pcie"));
  EXPECT_FALSE(document.set("model.micro_batch", "4"));
  EXPECT_FALSE(document.set("model.recompute", "null"));
  EXPECT_FALSE(document.can_undo());
}

// The command holds what is not in the file: run by the command line it is the same scenario.
TEST(ScenarioDocument, CommandSaysWhatTheFileDoesNot) {
  ScenarioDocument document = ScenarioDocument::open(bundled("fits-after-one-toggle"));
  document.set("model.recompute", "full");
  document.set("hardware.set.gpu.memory", "30 GiB");
  document.set("model.micro_batch", "null");
  const auto command = document.command();
  ASSERT_TRUE(command);
  EXPECT_EQ(*command, "spillway run " + bundled("fits-after-one-toggle") +
                          " --set 'hardware.set.gpu.memory=30 GiB' --set model.recompute=full"
                          " --set model.micro_batch=null");
  const std::vector<std::string> settings = {"hardware.set.gpu.memory=30 GiB", "model.recompute=full",
                                             "model.micro_batch=null"};
  const Scenario by_command = load_scenario(document.file(), settings);
  const Scenario by_text = parse_scenario(document.text(), "text", document.folder());
  EXPECT_EQ(by_command.training.micro_batch, by_text.training.micro_batch);
  EXPECT_EQ(by_command.training.recompute, by_text.training.recompute);
  EXPECT_EQ(by_command.hardware_overrides, by_text.hardware_overrides);
}

TEST(ScenarioDocument, WordsForAShell) {
  EXPECT_EQ(shell_word("a/b-c.json"), "a/b-c.json");
  EXPECT_EQ(shell_word("two words"), "'two words'");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_word(""), "''");
}

// A relative path is that of the same file after saving elsewhere.
TEST(ScenarioDocument, PathsHoldInAnotherFolder) {
  const QTemporaryDir folder;
  const std::string root = folder.path().toStdString();
  std::filesystem::create_directories(root + "/a/b");
  ScenarioDocument document(R"({"schema": "spillway-scenario", "version": 1, "trace": "steps.json"})", "", root + "/a");
  document.save(root + "/a/b/saved.json");
  EXPECT_EQ(document.value("trace"), "../steps.json");
  EXPECT_EQ(load_scenario(root + "/a/b/saved.json").trace, root + "/a/steps.json");
  EXPECT_FALSE(document.is_changed());
}

// Nothing is lost when a file can't be written.
TEST(ScenarioDocument, AFailedSaveChangesNothing) {
  ScenarioDocument document = ScenarioDocument::open(bundled("bound-by-pcie"));
  document.set("model.micro_batch", "2");
  const std::string before = document.text(), file = document.file();
  EXPECT_THROW(document.save("/nowhere/at/all.json"), InputError);
  EXPECT_EQ(document.text(), before);
  EXPECT_EQ(document.file(), file);
  EXPECT_TRUE(document.is_changed());
}

TEST(FileKind, IsFoundByContent) {
  const std::string root = std::getenv("SPILLWAY_SOURCE_ROOT");
  EXPECT_EQ(kind_of_file(bundled("bound-by-pcie")), FileKind::scenario);
  EXPECT_EQ(kind_of_file(root + "/cli/sweeps/llama2-7b-16xa100.json"), FileKind::sweep);
  EXPECT_EQ(kind_of_file(root + "/hwprofiles/data/gpus/l4.json"), FileKind::hardware);
  EXPECT_EQ(kind_of_file(root + "/models/data/gpt2-xl.json"), FileKind::model);
  EXPECT_EQ(kind_of_file(root + "/LICENSE"), FileKind::trace);
}

}  // namespace
}  // namespace spillway::gui
