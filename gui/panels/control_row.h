// One control of the scenario panel: label, slider with spin box and unit, list, or switch. A tick marks the baseline's
// value; a double click on the label restores it.
#pragma once

#include <QString>
#include <QWidget>
#include <functional>
#include <optional>

#include "gui/panels/scenario_controls.h"

class QCheckBox;
class QComboBox;
class QDoubleSpinBox;
class QHBoxLayout;
class QLabel;
class QToolButton;

namespace spillway::gui {

class TickedSlider;

class ControlRow : public QWidget {
 public:
  explicit ControlRow(Control control, QWidget* parent = nullptr);

  [[nodiscard]] const Control& control() const { return control_; }
  // As the scenario has it; none: the key isn't there.
  void show(const std::optional<std::string>& value, const std::optional<std::string>& baseline);
  // derived: the value if another key decides it, which can't be edited here; empty: unknown. None: as it is set.
  void show_derived(const std::optional<std::string>& derived, const std::string& follows);
  // From now on in so large steps.
  void set_steps(double steps);
  // Whether a button puts back what `origin` has; none: it hasn't the key.
  void offer_back(bool offers, const std::optional<std::string>& origin = {});
  // value: as --set takes it, null to take the key out. goes_on: a slider is being dragged.
  std::function<void(const Control& control, const std::string& value, bool goes_on)> on_edit;

  // For tests and keyboards: the widget that takes the value.
  [[nodiscard]] QWidget* editor() const;

 protected:
  void mouseDoubleClickEvent(QMouseEvent* event) override;

 private:
  void make_number();
  void make_choice();
  void make_toggle();
  void edit(const std::string& value, bool goes_on);
  void show_number(const std::optional<std::string>& value);
  [[nodiscard]] double position_of(double value) const;  // of the slider, 0 .. 1'000
  [[nodiscard]] double value_at(double position) const;
  [[nodiscard]] double shown_of(const std::string& value) const;
  [[nodiscard]] std::string kept_of(double shown) const;

  Control control_;
  std::optional<std::string> baseline_, origin_;
  bool shows_ = false;  // being filled in, not edited
  bool is_derived_ = false;
  QHBoxLayout* line_ = nullptr;  // what the button back is put in
  QLabel* label_ = nullptr;
  TickedSlider* slider_ = nullptr;
  QDoubleSpinBox* spin_ = nullptr;
  QComboBox* list_ = nullptr;
  QCheckBox* box_ = nullptr;
  QToolButton* back_ = nullptr;
};

}  // namespace spillway::gui
