// Rows for the window's tables: texts as shown, and what they are sorted by. Read-only.
#pragma once

#include <QAbstractTableModel>
#include <QString>
#include <QVariant>
#include <vector>

class QSortFilterProxyModel;

namespace spillway::gui {

struct TableCell {
  QString text;
  QVariant key;  // sorted by; invalid: by the text
};

struct TableRows {
  std::vector<QString> headings;
  std::vector<std::vector<TableCell>> rows;  // as many cells as headings
  std::vector<qint64> ids;                   // of rows, the caller's own; empty: none
  qsizetype left_out = 0;                    // rows there would be beyond the most that are shown
};

TableCell number_cell(const QString& text, double key);

class TableModel : public QAbstractTableModel {
 public:
  using QAbstractTableModel::QAbstractTableModel;
  static constexpr std::size_t most_rows = 100'000;

  // Under the same headings rows are changed, added and taken away; else the model is reset.
  void show(TableRows rows);
  [[nodiscard]] const TableRows& shown() const { return rows_; }
  [[nodiscard]] qint64 id_of(int row) const;  // -1: none

  [[nodiscard]] int rowCount(const QModelIndex& parent = {}) const override;
  [[nodiscard]] int columnCount(const QModelIndex& parent = {}) const override;
  [[nodiscard]] QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  [[nodiscard]] QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

  static constexpr int sort_role = Qt::UserRole;

 private:
  TableRows rows_;
};

// A view's rows in its order: RFC 4180 with CRLF, or with tabs for the clipboard.
QString table_text(const QAbstractItemModel& model, bool csv);

}  // namespace spillway::gui
