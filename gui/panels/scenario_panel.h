// The left dock: presets, then the controls of the scenario by group: those that are changed, those that matter, or
// all.
#pragma once

#include <QWidget>
#include <functional>
#include <optional>
#include <vector>

#include "gui/panels/control_row.h"
#include "gui/workspace/scenario_document.h"
#include "gui/workspace/variant_figures.h"

class QButtonGroup;
class QComboBox;
class QGroupBox;
class QLabel;
class QLineEdit;
class QScrollArea;
class QScrollBar;

namespace spillway::gui {

// The keys in sight.
enum class KeysShown : std::uint8_t {
  changed,   // other than in what the variant came from
  relevant,  // that the scenario as it is reads
  all,
};

class ScenarioPanel : public QWidget {
  Q_OBJECT

 public:
  ScenarioPanel();
  // baseline: may be null. origin: text of what the variant came from: its parent, or the file.
  void show(const ScenarioDocument& document, const ScenarioDocument* baseline, const std::string& origin);
  void show_keys(KeysShown which);
  [[nodiscard]] KeysShown shown() const { return which_; }
  // By label, key or description; empty: no more. All keys are looked through.
  void filter(const QString& words);
  [[nodiscard]] QScrollBar* verticalScrollBar() const;
  // value: as --set takes it, null to take the key out. goes_on: a slider is being dragged.
  std::function<void(const Control& control, const std::string& value, bool goes_on)> on_edit;
  std::function<void(const QString& file)> on_preset;
  [[nodiscard]] ControlRow* row(const std::string& key) const;  // null: no control has it, nor is it changed
  // Scrolls to the key's control, shows it where it was not, and gives it the focus.
  void reveal(const std::string& key);

 private:
  void show_rows();
  // Rows for changed keys without a control, each while it is changed.
  void show_others();
  ControlRow* make_row(const Control& control);
  QComboBox* presets_;
  QLabel *title_, *none_;
  QLineEdit* filter_;
  QButtonGroup* choice_;
  QScrollArea* area_;
  std::vector<ControlRow*> rows_;
  std::vector<ControlRow*> others_;  // the last of rows_
  std::vector<QGroupBox*> groups_;
  KeysShown which_ = KeysShown::relevant;
  std::optional<ScenarioDocument> document_;
  std::string origin_;
  std::vector<ChangedKey> changed_;  // against origin_
};

// Scenarios that come with the program, as files: the start page's first.
std::vector<std::string> bundled_scenarios();

}  // namespace spillway::gui
