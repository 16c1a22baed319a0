#include "gui/plots/table_model.h"

#include <gtest/gtest.h>

#include <QAbstractItemModelTester>
#include <QSortFilterProxyModel>

namespace spillway::gui {
namespace {

TableRows three_rows() {
  TableRows rows;
  rows.headings = {"name", "time"};
  rows.rows = {{{"b", {}}, number_cell("10 ms", 10)},
               {{"a, \"x\"", {}}, number_cell("9 ms", 9)},
               {{"c", {}}, number_cell("100 us", 0.1)}};
  rows.ids = {7, 8, 9};
  return rows;
}

// Qt's own tester looks at every call while rows come, change and go, also through sorting and filtering.
TEST(TableModel, ObeysTheRulesOfModels) {
  TableModel model;
  const QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::Fatal);
  QSortFilterProxyModel sorted;
  sorted.setSourceModel(&model);
  sorted.setSortRole(TableModel::sort_role);
  const QAbstractItemModelTester sorted_tester(&sorted, QAbstractItemModelTester::FailureReportingMode::Fatal);
  EXPECT_EQ(model.rowCount(), 0);
  model.show(three_rows());
  EXPECT_EQ(model.rowCount(), 3);
  EXPECT_EQ(model.columnCount(), 2);
  sorted.sort(1);
  EXPECT_EQ(sorted.index(0, 0).data().toString(), "c");
  EXPECT_EQ(sorted.index(2, 0).data().toString(), "b");
  sorted.setFilterKeyColumn(-1);
  sorted.setFilterFixedString("ms");
  EXPECT_EQ(sorted.rowCount(), 2);
  model.show({});
  EXPECT_EQ(sorted.rowCount(), 0);
  EXPECT_EQ(model.id_of(0), -1);
}

// Dragging a selection changes rows and never resets: the place in the table stays.
TEST(TableModel, RowsChangeInPlace) {
  TableModel model;
  const QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::Fatal);
  model.show(three_rows());
  int resets = 0;
  QObject::connect(&model, &QAbstractItemModel::modelReset, &model, [&resets] { ++resets; });
  const QPersistentModelIndex second = model.index(1, 0);
  TableRows fewer = three_rows();
  fewer.rows.pop_back();
  fewer.ids = {4, 5};
  fewer.rows[1][0].text = "other";
  model.show(fewer);
  EXPECT_EQ(model.rowCount(), 2);
  EXPECT_EQ(second.data().toString(), "other");
  EXPECT_EQ(model.id_of(1), 5);
  model.show(three_rows());
  EXPECT_EQ(model.rowCount(), 3);
  EXPECT_EQ(model.index(2, 0).data().toString(), "c");
  EXPECT_EQ(model.id_of(2), 9);
  EXPECT_EQ(resets, 0);
  TableRows others = three_rows();
  others.headings = {"name", "bytes"};
  model.show(others);
  EXPECT_EQ(resets, 1);
}

TEST(TableModel, CsvIsQuotedWhereItMust) {
  TableModel model;
  model.show(three_rows());
  EXPECT_EQ(table_text(model, true), "name,time\r\nb,10 ms\r\n\"a, \"\"x\"\"\",9 ms\r\nc,100 us\r\n");
  EXPECT_EQ(table_text(model, false), "name\ttime\nb\t10 ms\na, \"x\"\t9 ms\nc\t100 us\n");
}

// More than anyone scrolls through: cut, and said.
TEST(TableModel, ListsAreCapped) {
  TableRows rows;
  rows.headings = {"n"};
  for (std::size_t i = 0; i < TableModel::most_rows + 5; ++i) rows.rows.push_back({{"x", {}}});
  TableModel model;
  model.show(std::move(rows));
  EXPECT_EQ(model.rowCount(), static_cast<int>(TableModel::most_rows));
  EXPECT_EQ(model.shown().left_out, 5);
}

}  // namespace
}  // namespace spillway::gui
