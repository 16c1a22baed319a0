// Who holds memory, as a treemap or as flames. Holders are owner, layer and tensor, at the peak or in the selected
// range; of a snapshot the lines, modules and calls that asked for it.
#pragma once

#include <QWidget>
#include <functional>
#include <memory>
#include <optional>

#include "gui/plots/held_view.h"
#include "gui/workspace/diagnosis.h"

class QComboBox;
class QLabel;
class QPushButton;

namespace spillway::gui {

class HoldersPanel : public QWidget {
 public:
  HoldersPanel();
  void set_theme(const Theme& theme);
  // On the axis of `memory`; at: when, none: at its peak. Shown at once where it is in sight.
  void show(std::shared_ptr<const Outcome> outcome, std::shared_ptr<const MemoryScene> memory,
            std::optional<std::int64_t> at);
  // The diagnosis of the same outcome; null: none is known.
  void show_diagnosis(std::shared_ptr<const Diagnosed> diagnosed);
  void set_shape(HeldShape shape);
  [[nodiscard]] HeldView& view() { return *view_; }
  [[nodiscard]] QComboBox& by() { return *by_; }

  std::function<void(std::int64_t block)> on_block;

 protected:
  void focusInEvent(QFocusEvent* event) override;
  void showEvent(QShowEvent* event) override;

 private:
  void arrange();

  std::shared_ptr<const Outcome> outcome_;
  std::shared_ptr<const MemoryScene> memory_;
  std::optional<std::int64_t> at_;
  std::shared_ptr<const Diagnosed> diagnosed_;
  bool is_arranged_ = false;
  HeldView* view_;
  QComboBox* by_;
  QPushButton *treemap_, *flames_;
  QLabel* hover_;
};

}  // namespace spillway::gui
