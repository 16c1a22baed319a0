#include "gui/panels/compare_view.h"

#include <QHeaderView>
#include <QLabel>
#include <QPainter>
#include <QPainterPath>
#include <QStyledItemDelegate>
#include <QTableView>
#include <QVBoxLayout>
#include <algorithm>

#include "base/number_text.h"

namespace spillway::gui {
namespace {

constexpr int name_width = 240, least_column = 150, curves_height = 112;

// A bar of the figure's size, a mark where the first column's ends.
class BarCell : public QStyledItemDelegate {
 public:
  BarCell(const Theme* const& theme, QObject* parent) : QStyledItemDelegate(parent), theme_(theme) {}
  void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override {
    const QVariantList parts = index.data(CompareModel::bar_role).toList();
    if (parts.isEmpty()) return QStyledItemDelegate::paint(painter, option, index);
    const QVariant shade = index.data(Qt::BackgroundRole);
    const bool is_chosen = (option.state & QStyle::State_Selected) != 0;
    painter->fillRect(option.rect, is_chosen         ? QBrush((*theme_)[Token::accent_surface])
                                   : shade.isValid() ? shade.value<QBrush>()
                                                     : QBrush(theme_->background));
    const double value = parts[0].toDouble(), first = parts[1].toDouble(), most = parts[2].toDouble();
    const double number_room = option.fontMetrics.horizontalAdvance("0.00000000") + 8, change_room = number_room + 8;
    const QRectF box = QRectF(option.rect).adjusted(6, 0, -6, 0);
    const QString text = index.data().toString(), change = index.data(CompareModel::change_role).toString();
    painter->setPen(theme_->text);
    painter->drawText(QRectF(box.left(), box.top(), number_room - 6, box.height()), Qt::AlignRight | Qt::AlignVCenter,
                      text.section("   ", 0, 0));
    const double room = std::max(0.0, box.width() - number_room - change_room);
    const double left = box.left() + number_room, top = box.center().y() - 5;
    if (most > 0) {
      painter->fillRect(QRectF(left, top, room * value / most, 10), parts[3].value<QColor>());
      painter->fillRect(QRectF(left + room * first / most - 1, top - 2, 2, 14), theme_->text);
    }
    const int better = index.data(CompareModel::better_role).toInt();
    painter->setPen(better > 0 ? theme_->good : better < 0 ? theme_->bad : theme_->muted);
    painter->drawText(QRectF(box.right() - change_room, box.top(), change_room, box.height()),
                      Qt::AlignRight | Qt::AlignVCenter, change);
  }

 private:
  const Theme* const& theme_;
};

}  // namespace

// Memory by owner over each step; time and bytes have one scale in all, so that what is shorter looks so. The first
// one's outline is dashed in the others.
class CompareView::Curves : public QWidget {
 public:
  Curves(const CompareModel& model, QTableView* const& table) : theme(&light_theme()), model_(model), table_(table) {
    setFixedHeight(curves_height);
    setAccessibleName(CompareView::tr("Memory over the step of each variant"));
  }
  const Theme* theme;

 protected:
  void paintEvent(QPaintEvent* /*event*/) override {
    QPainter painter(this);
    painter.fillRect(rect(), theme->background);
    painter.setRenderHint(QPainter::Antialiasing);
    double longest = 0, highest = 0;
    for (const ComparedVariant& one : model_.variants())
      if (one.figures != nullptr) {
        longest = std::max(longest, step_ms(*one.figures));
        const MemoryResult& memory = one.figures->result.memory;
        highest = std::max({highest, in_gib(memory.peak_allocated) * 1.05, in_gib(memory.capacity) * 1.03});
      }
    painter.setPen(theme->muted);
    painter.drawText(QRectF(8, 8, table_->columnWidth(0) - 16, curves_height - 16), Qt::AlignLeft | Qt::TextWordWrap,
                     CompareView::tr("Memory by owner over the step, all on one scale; dashed: the first"));
    if (highest <= 0) return;
    const auto& variants = model_.variants();
    for (std::size_t i = 0; i < variants.size(); ++i) {
      const int column = static_cast<int>(i) + 1;
      const QRectF box(table_->columnViewportPosition(column) + 6, 6, table_->columnWidth(column) - 12,
                       curves_height - 12);
      if (variants[i].figures == nullptr || variants[i].figures->curve.empty()) {
        painter.setPen(theme->muted);
        painter.drawText(box, Qt::AlignCenter | Qt::TextWordWrap,
                         variants[i].figures == nullptr ? CompareView::tr("not replayed yet")
                                                        : QString::fromStdString(variants[i].figures->verdict));
        continue;
      }
      const VariantFigures& figures = *variants[i].figures;
      paint_stack(painter, figures, box, longest, highest);
      if (i > 0 && variants.front().figures != nullptr)
        paint_outline(painter, *variants.front().figures, box, longest, highest);
      double words_top = box.top();  // below a line that is in their way
      if (const Bytes capacity = figures.result.memory.capacity; capacity > Bytes(0)) {
        const double y = box.bottom() - box.height() * in_gib(capacity) / highest;
        if (y < box.top() + painter.fontMetrics().height()) words_top = y + 3;
        painter.setPen(QPen(theme->bad, 1.5));
        painter.drawLine(QPointF(box.left(), y), QPointF(box.right(), y));
      }
      if (step_ms(figures) > 0) {
        painter.setPen(theme->text);
        painter.drawText(QRectF(QPointF(box.left(), words_top), box.bottomRight()), Qt::AlignRight | Qt::AlignTop,
                         QString("%1 ms").arg(QString::fromStdString(number_text(step_ms(figures)))));
      }
    }
  }

 private:
  [[nodiscard]] static double width_of(const VariantFigures& figures, const QRectF& box, double longest) {
    return longest > 0 && step_ms(figures) > 0 ? box.width() * step_ms(figures) / longest : box.width();
  }

  void paint_stack(QPainter& painter, const VariantFigures& figures, const QRectF& box, double longest,
                   double highest) const {
    const double step = width_of(figures, box, longest) / static_cast<double>(figures.curve.size());
    std::vector<double> base(figures.curve.size(), 0);
    for (std::size_t owner = 0; owner < figures.owners.size(); ++owner) {
      QPainterPath area;
      const auto y = [&](double gib) { return box.bottom() - box.height() * gib / highest; };
      area.moveTo(box.left(), y(base.front()));
      for (std::size_t c = 0; c < base.size(); ++c) {
        base[c] += static_cast<double>(figures.curve[c][owner]);
        area.lineTo(box.left() + step * static_cast<double>(c), y(base[c]));
        area.lineTo(box.left() + step * static_cast<double>(c + 1), y(base[c]));
      }
      for (std::size_t c = base.size(); c-- > 0;) {
        const double below = base[c] - static_cast<double>(figures.curve[c][owner]);
        area.lineTo(box.left() + step * static_cast<double>(c + 1), y(below));
        area.lineTo(box.left() + step * static_cast<double>(c), y(below));
      }
      painter.fillPath(area, (*theme)[figures.owner_tokens[owner]]);
    }
  }

  void paint_outline(QPainter& painter, const VariantFigures& figures, const QRectF& box, double longest,
                     double highest) const {
    if (figures.curve.empty()) return;
    const double step = width_of(figures, box, longest) / static_cast<double>(figures.curve.size());
    QPainterPath line;
    for (std::size_t c = 0; c < figures.curve.size(); ++c) {
      double sum = 0;
      for (const float gib : figures.curve[c]) sum += static_cast<double>(gib);
      const QPointF at(box.left() + step * (static_cast<double>(c) + 0.5), box.bottom() - box.height() * sum / highest);
      c == 0 ? line.moveTo(at) : line.lineTo(at);
    }
    painter.setBrush(Qt::NoBrush);
    painter.setPen(QPen(theme->background, 3));
    painter.drawPath(line);
    painter.setPen(QPen(theme->text, 1.4, Qt::DashLine));
    painter.drawPath(line);
  }

  const CompareModel& model_;
  QTableView* const& table_;
};

CompareView::CompareView() : curves_(nullptr), table_(new QTableView), words_(new QLabel) {
  curves_ = new Curves(model_, table_);
  table_->setAccessibleName(tr("Variants side by side"));
  table_->setModel(&model_);
  table_->setTabKeyNavigation(false);
  table_->setSelectionBehavior(QAbstractItemView::SelectRows);
  table_->setShowGrid(false);
  table_->setWordWrap(false);
  table_->verticalHeader()->setVisible(false);
  table_->verticalHeader()->setDefaultSectionSize(24);
  table_->horizontalHeader()->setDefaultAlignment(Qt::AlignLeft | Qt::AlignVCenter);
  table_->setItemDelegate(new BarCell(curves_->theme, this));
  words_->setContentsMargins(8, 4, 8, 4);
  words_->setWordWrap(true);
  auto* const column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  column->addWidget(words_);
  column->addWidget(curves_);
  column->addWidget(table_, 1);
  setFocusProxy(table_);
}

void CompareView::show_variants(std::vector<ComparedVariant> variants) {
  const std::size_t count = variants.size();
  words_->setText(count < 2 ? tr("One variant so far. V makes another of it; B keeps it as the baseline.")
                            : tr("%1 variants, compared with %2. Figures are per token where the step's size differs.")
                                  .arg(count)
                                  .arg(variants.front().name));
  model_.show(std::move(variants));
  fit();
}

void CompareView::fit() {
  if (model_.columnCount() == 0) return;
  const int columns = model_.columnCount() - 1;
  table_->setColumnWidth(0, name_width);
  const int room = table_->viewport()->width() - name_width;
  for (int i = 1; i <= columns; ++i) table_->setColumnWidth(i, std::max(least_column, room / std::max(2, columns)));
  table_->clearSpans();
  for (int row = 0; row < model_.rowCount(); ++row)
    if (model_.is_section(row) && columns > 0) table_->setSpan(row, 0, 1, columns + 1);
  curves_->update();
}

void CompareView::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  fit();
}

void CompareView::set_theme(const Theme& theme) {
  curves_->theme = &theme;
  model_.set_theme(theme);
  words_->setStyleSheet("color: " + theme.muted.name());
  curves_->update();
}

}  // namespace spillway::gui
