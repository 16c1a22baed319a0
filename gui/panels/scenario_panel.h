// The left dock: presets, then every control of the scenario by group.
#pragma once

#include <QScrollArea>
#include <functional>
#include <vector>

#include "gui/panels/control_row.h"
#include "gui/workspace/scenario_document.h"

class QComboBox;
class QGroupBox;
class QLabel;

namespace spillway::gui {

class ScenarioPanel : public QScrollArea {
 public:
  ScenarioPanel();

  // baseline: values the ticks mark; null: none is pinned.
  void show(const ScenarioDocument& document, const ScenarioDocument* baseline);
  // The control that holds a key, of the kind that is a switch if asked for; null: there is none.
  [[nodiscard]] ControlRow* row(const std::string& key, bool toggle = false) const;

  // Scrolls to a control, its switch where it has one, and gives it the keyboard.
  void reveal(const std::string& key);

  std::function<void(const Control& control, const std::string& value, bool goes_on)> on_edit;
  std::function<void(const QString& file)> on_preset;

 private:
  QComboBox* presets_;
  QLabel* title_;
  std::vector<ControlRow*> rows_;
  std::vector<QGroupBox*> groups_;
};

// Scenarios that come with the program, as files: the start page's first.
std::vector<std::string> bundled_scenarios();

}  // namespace spillway::gui
