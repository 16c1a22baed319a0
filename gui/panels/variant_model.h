// The tree of variants: name, whether it fits, tokens a second. Rows come and go one at a time.
#pragma once

#include <QAbstractItemModel>
#include <vector>

#include "gui/canvas/theme.h"
#include "gui/workspace/session.h"

namespace spillway::gui {

class VariantModel : public QAbstractItemModel {
  Q_OBJECT

 public:
  // `session` must outlive it.
  explicit VariantModel(Session& session, QObject* parent = nullptr);
  // After variants of the session came, went or changed.
  void update();
  void set_theme(const Theme& theme) { theme_ = &theme; }
  [[nodiscard]] QModelIndex index_of(int id) const;
  [[nodiscard]] int id_of(const QModelIndex& index) const;  // -1: none

  [[nodiscard]] QModelIndex index(int row, int column, const QModelIndex& parent = {}) const override;
  [[nodiscard]] QModelIndex parent(const QModelIndex& index) const override;
  [[nodiscard]] int rowCount(const QModelIndex& parent = {}) const override;
  [[nodiscard]] int columnCount(const QModelIndex& parent = {}) const override;
  [[nodiscard]] QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  bool setData(const QModelIndex& index, const QVariant& value, int role = Qt::EditRole) override;
  [[nodiscard]] Qt::ItemFlags flags(const QModelIndex& index) const override;
  [[nodiscard]] QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  struct Node {
    int id = 0, parent = -1;
  };
  [[nodiscard]] std::vector<int> children(int id) const;
  Session& session_;
  const Theme* theme_;
  std::vector<Node> shown_;  // parents before their children
};

}  // namespace spillway::gui
