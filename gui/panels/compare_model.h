// Variants side by side: rows of keys that differ, figures per token, kernels and memory at the peak, each against the
// first column. Rows are kept where they stay what they are.
#pragma once

#include <QAbstractTableModel>
#include <memory>
#include <vector>

#include "gui/canvas/theme.h"
#include "gui/workspace/variant_figures.h"

namespace spillway::gui {

// One column.
struct ComparedVariant {
  QString name;
  std::string text;                               // of its scenario now
  std::shared_ptr<const VariantFigures> figures;  // null: not replayed yet
};

class CompareModel : public QAbstractTableModel {
  Q_OBJECT

 public:
  explicit CompareModel(QObject* parent = nullptr) : QAbstractTableModel(parent), theme_(&light_theme()) {}
  // The first is what the others are compared with. A figure of another state of a variant is stale, and greyed.
  void show(std::vector<ComparedVariant> variants);
  void set_theme(const Theme& theme);
  [[nodiscard]] const std::vector<ComparedVariant>& variants() const { return variants_; }
  // Heads a group of rows.
  [[nodiscard]] bool is_section(int row) const;

  enum Role : std::uint16_t {
    bar_role = Qt::UserRole + 1,  // QVariantList: value, the first column's, the most of the row, colour
    change_role,                  // QString: against the first column, with an arrow
    better_role,                  // int: 1 better, -1 worse, 0 neither
  };
  [[nodiscard]] int rowCount(const QModelIndex& parent = {}) const override;
  [[nodiscard]] int columnCount(const QModelIndex& parent = {}) const override;
  [[nodiscard]] QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  [[nodiscard]] QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  enum class Kind : std::uint8_t { section, key, figure, bar };
  struct Cell {
    QString text, change;
    int better = 0;
    double value = 0;
    bool is_known = false;
    friend bool operator==(const Cell&, const Cell&) = default;
  };
  struct Row {
    Kind kind = Kind::section;
    QString name, note;
    Token token = Token::unknown;
    std::vector<Cell> cells;
    friend bool operator==(const Row&, const Row&) = default;
  };
  void add_figures(std::vector<Row>& rows) const;
  void add_kernels(std::vector<Row>& rows) const;
  void add_owners(std::vector<Row>& rows) const;
  void add_keys(std::vector<Row>& rows) const;

  const Theme* theme_;
  std::vector<ComparedVariant> variants_;
  std::vector<Row> rows_;
};

}  // namespace spillway::gui
