// Ways to make a step fit as rows, each in its place as it comes: those that fit, those that fit tightly, those that
// don't; of each the best by the order that is chosen.
#pragma once

#include <QAbstractTableModel>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "gui/workspace/ways_search.h"

namespace spillway::gui {

// What is best among ways that fit, or tightly, or not: of what is not known of a way it comes last, of equals the
// faster first.
enum class WaysOrder : std::uint8_t { fastest, cheapest, fewest_keys, least_memory, longest_life };

class WaysModel : public QAbstractTableModel {
 public:
  enum Column : int { name, keys, memory, rate, change, allocated, reserved, life, cost, range, maths, column_count };
  // Of a row: how much of the capacity, as {allocated, reserved, capacity} in GiB; 0 capacity: not known.
  static constexpr int bar_role = Qt::UserRole + 1;

  using QAbstractTableModel::QAbstractTableModel;

  void clear(const Outcome& now);
  // What makes the same scenario as a row that is there, or gives the same figures, is left out.
  void add(const ShownWay& way);
  void set_same_maths(bool wanted);
  void set_order(WaysOrder order);
  [[nodiscard]] const ShownWay* way(int row) const;  // null: the present state
  [[nodiscard]] std::size_t fitting() const;
  [[nodiscard]] std::size_t tried() const { return ways_.size(); }

  [[nodiscard]] int rowCount(const QModelIndex& parent = {}) const override;
  [[nodiscard]] int columnCount(const QModelIndex& parent = {}) const override;
  [[nodiscard]] QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  [[nodiscard]] QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  [[nodiscard]] QString text(const studies::Row& row, bool changes_maths, int column) const;
  [[nodiscard]] const studies::Row& row_at(int row) const;
  void insert(const ShownWay& way);

  std::vector<ShownWay> ways_, left_out_;  // in their order; those that change the maths, while they are not wanted
  studies::Row now_;
  std::string now_text_;
  std::set<std::string> seen_;
  bool same_maths_ = false;
  WaysOrder order_ = WaysOrder::fastest;
};

}  // namespace spillway::gui
