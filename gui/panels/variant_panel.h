// The workspace at the left: its variants as a tree, and the steps of the one at hand.
#pragma once

#include <QWidget>

#include "gui/panels/variant_model.h"

class QTreeView;
class QUndoView;

namespace spillway::gui {

class VariantPanel : public QWidget {
  Q_OBJECT

 public:
  // `session` must outlive it.
  explicit VariantPanel(Session& session);
  // After variants of the session came, went or changed.
  void update_variants();
  void set_theme(const Theme& theme);
  [[nodiscard]] QTreeView& tree() { return *tree_; }
  [[nodiscard]] VariantModel& model() { return model_; }
  void rename_current();

 private:
  Session& session_;
  VariantModel model_;
  QTreeView* tree_;
};

// The steps of the variant at hand, each a click away.
QUndoView* history_view(Session& session);

}  // namespace spillway::gui
