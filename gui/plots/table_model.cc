#include "gui/plots/table_model.h"

#include <algorithm>
#include <iterator>

#include "base/csv_cell.h"

namespace spillway::gui {

TableCell number_cell(const QString& text, double key) { return {text, QVariant(key)}; }

void TableModel::show(TableRows rows) {
  if (rows.rows.size() > most_rows) {
    rows.left_out += static_cast<qsizetype>(rows.rows.size() - most_rows);
    rows.rows.resize(most_rows);
  }
  const int before = rowCount(), after = static_cast<int>(rows.rows.size()), kept = std::min(before, after);
  if (kept == 0 || rows.headings != rows_.headings) {
    beginResetModel();
    rows_ = std::move(rows);
    endResetModel();
    return;
  }
  // Rows stay where they are and get other contents: a table that is reset at every move of a mouse loses its place.
  if (after < before) {
    beginRemoveRows({}, after, before - 1);
    rows_.rows.resize(rows.rows.size());
    endRemoveRows();
  }
  const auto added = rows.rows.begin() + kept;
  std::move(rows.rows.begin(), added, rows_.rows.begin());
  rows_.ids = std::move(rows.ids);
  rows_.left_out = rows.left_out;
  Q_EMIT dataChanged(index(0, 0), index(kept - 1, columnCount() - 1));
  if (after > before) {
    beginInsertRows({}, before, after - 1);
    std::move(added, rows.rows.end(), std::back_inserter(rows_.rows));
    endInsertRows();
  }
}

qint64 TableModel::id_of(int row) const {
  const auto at = static_cast<std::size_t>(row);
  return row >= 0 && at < rows_.ids.size() ? rows_.ids[at] : -1;
}

int TableModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(rows_.rows.size());
}

int TableModel::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(rows_.headings.size());
}

QVariant TableModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const TableCell& cell = rows_.rows[static_cast<std::size_t>(index.row())][static_cast<std::size_t>(index.column())];
  if (role == Qt::DisplayRole || role == Qt::ToolTipRole) return cell.text;
  if (role == sort_role) return cell.key.isValid() ? cell.key : QVariant(cell.text);
  if (role == Qt::TextAlignmentRole)
    return QVariant::fromValue(int(Qt::AlignVCenter | (cell.key.isValid() ? Qt::AlignRight : Qt::AlignLeft)));
  return {};
}

QVariant TableModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (role != Qt::DisplayRole) return {};
  if (orientation == Qt::Vertical) return section + 1;
  return section < static_cast<int>(rows_.headings.size()) ? QVariant(rows_.headings[static_cast<std::size_t>(section)])
                                                           : QVariant();
}

QString table_text(const QAbstractItemModel& model, bool csv) {
  const auto cell = [csv](QString text) {
    if (!csv) return text.replace('\t', ' ').replace('\n', ' ');
    return QString::fromStdString(csv_cell(text.toStdString()));
  };
  const QString between = csv ? "," : "\t", end = csv ? "\r\n" : "\n";
  QString text;
  for (int column = 0; column < model.columnCount(); ++column)
    text += (column > 0 ? between : QString()) + cell(model.headerData(column, Qt::Horizontal).toString());
  text += end;
  for (int row = 0; row < model.rowCount(); ++row) {
    for (int column = 0; column < model.columnCount(); ++column)
      text += (column > 0 ? between : QString()) + cell(model.index(row, column).data().toString());
    text += end;
  }
  return text;
}

}  // namespace spillway::gui
