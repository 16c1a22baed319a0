#include "gui/panels/ways_panel.h"

#include <QComboBox>
#include <QEvent>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QKeyEvent>
#include <QLabel>
#include <QMouseEvent>
#include <QPainter>
#include <QPushButton>
#include <QStyledItemDelegate>
#include <QTableView>
#include <QVBoxLayout>
#include <algorithm>

namespace spillway::gui {
namespace {

constexpr int hover_ms = 80;
constexpr int least_widths[] = {0, 0, 130, 80, 84, 76, 76, 84, 76, 128, 62};  // of columns, in pixels
constexpr int wide = 1300, way_height = 24;  // logical pixels: from there on, what ways change has a column

// What is allocated solid, what is reserved pale, and how much there is.
class MemoryBar : public QStyledItemDelegate {
 public:
  MemoryBar(const Theme* const& theme, QObject* parent) : QStyledItemDelegate(parent), theme_(theme) {}
  void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override {
    QStyledItemDelegate::paint(painter, option, index);
    const QVariantList parts = index.data(WaysModel::bar_role).toList();
    if (parts.size() < 4) return;
    const double allocated = parts[0].toDouble(), reserved = parts[1].toDouble(), capacity = parts[2].toDouble();
    const double most = std::max({reserved, capacity, 1e-9}) * 1.06;
    const QColor& color = (*theme_)[parts[3].toInt() == 0   ? Token::good
                                    : parts[3].toInt() == 1 ? Token::warn
                                                            : Token::bad];
    const QRectF box = QRectF(option.rect).adjusted(6, 6, -8, -6);
    const auto width = [&](double gib) { return box.width() * gib / most; };
    painter->fillRect(QRectF(box.left(), box.top(), width(capacity), box.height()), (*theme_)[Token::sunken]);
    QColor pale = color;
    pale.setAlpha(110);
    painter->fillRect(QRectF(box.left(), box.top(), width(reserved), box.height()), pale);
    painter->fillRect(QRectF(box.left(), box.top() + 2, width(allocated), box.height() - 4), color);
    if (capacity > 0)
      painter->fillRect(QRectF(box.left() + width(capacity), box.top() - 3, 2, box.height() + 6),
                        (*theme_)[Token::bad]);
  }

 private:
  const Theme* const& theme_;
};

}  // namespace

WaysPanel::WaysPanel()
    : table_(new QTableView),
      title_(new QLabel),
      state_(new QLabel),
      apply_(new QPushButton(tr("Apply"))),
      same_maths_(new QPushButton(tr("Same maths only"))),
      stop_(new QPushButton(tr("Stop"))),
      order_(new QComboBox),
      theme_(&light_theme()) {
  table_->setAccessibleName(tr("Ways to make it fit"));
  table_->setModel(&model_);
  table_->setTabKeyNavigation(false);
  table_->setSelectionBehavior(QAbstractItemView::SelectRows);
  table_->setSelectionMode(QAbstractItemView::SingleSelection);
  table_->setEditTriggers(QAbstractItemView::NoEditTriggers);
  table_->setWordWrap(true);  // names are as long as they are
  table_->setShowGrid(false);
  table_->setMouseTracking(true);
  table_->verticalHeader()->setVisible(false);
  table_->verticalHeader()->setMinimumSectionSize(way_height);
  table_->verticalHeader()->setDefaultSectionSize(way_height);
  table_->verticalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
  table_->horizontalHeader()->setDefaultAlignment(Qt::AlignLeft | Qt::AlignVCenter);
  table_->horizontalHeader()->setSectionResizeMode(WaysModel::name, QHeaderView::Stretch);
  table_->setItemDelegateForColumn(WaysModel::memory, new MemoryBar(theme_, this));
  table_->horizontalHeader()->setSectionResizeMode(WaysModel::keys, QHeaderView::Stretch);
  for (int column = WaysModel::memory; column < WaysModel::column_count; ++column)
    table_->setColumnWidth(column, least_widths[column]);
  table_->installEventFilter(this);
  table_->viewport()->installEventFilter(this);
  QFont bold = title_->font();
  bold.setPixelSize(15);
  bold.setBold(true);
  title_->setFont(bold);
  order_->setAccessibleName(tr("Best is"));
  order_->addItems({tr("Fastest"), tr("Cheapest"), tr("Least change"), tr("Least memory"), tr("Longest SSD life")});
  order_->setToolTip(tr("Which of the ways that fit comes first"));
  QObject::connect(order_, &QComboBox::currentIndexChanged, this,
                   [this](int chosen) { model_.set_order(static_cast<WaysOrder>(chosen)); });
  same_maths_->setCheckable(true);
  same_maths_->setToolTip(tr("Leave out what changes the training's arithmetic: other optimizers, other precision"));
  apply_->setToolTip(tr("Make the chosen way (Enter); Ctrl+Z takes it back. Shift+Enter makes it a variant"));
  auto* const line = new QHBoxLayout;
  line->setContentsMargins(8, 4, 8, 4);
  line->setSpacing(8);
  line->addWidget(title_);
  line->addStretch(1);
  line->addWidget(state_);
  line->addWidget(stop_);
  line->addWidget(order_);
  line->addWidget(same_maths_);
  line->addWidget(apply_);
  auto* const column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  column->addLayout(line);
  column->addWidget(table_, 1);
  QObject::connect(apply_, &QPushButton::clicked, this, [this] { apply(); });
  QObject::connect(stop_, &QPushButton::clicked, this, [this] { search_.stop(); });
  QObject::connect(same_maths_, &QPushButton::toggled, this, [this](bool wanted) {
    model_.set_same_maths(wanted);
    show_state();
  });
  QObject::connect(table_, &QTableView::doubleClicked, this, [this] { apply(); });
  QObject::connect(table_->selectionModel(), &QItemSelectionModel::currentRowChanged, this,
                   [this](const QModelIndex& current) { point_at(current.row()); });
  pointed_.setSingleShot(true);
  pointed_.setInterval(hover_ms);
  QObject::connect(&pointed_, &QTimer::timeout, this, [this] {
    const ShownWay* const way = model_.way(pointed_row_);
    if (on_preview) on_preview(way != nullptr && way->row.ran() ? way->text : "");
  });
  search_.on_way = [this](const ShownWay& way) {
    model_.add(way);
    show_state();
  };
  search_.on_state = [this] { show_state(); };
  show_state();
}

void WaysPanel::set_theme(const Theme& theme) {
  theme_ = &theme;
  state_->setStyleSheet("color: " + theme.muted.name());
  table_->viewport()->update();
}

void WaysPanel::show(std::shared_ptr<const Outcome> outcome) {
  stop();
  scenario_ = outcome->scenario;
  searched_ = false;
  model_.clear(*outcome);
  table_->selectRow(0);
  show_state();
}

void WaysPanel::search() {
  if (searched_ || model_.rowCount() == 0) return;
  searched_ = true;
  search_.start(scenario_);
  show_state();
}

void WaysPanel::stop() {
  point_at(-1);
  search_.stop();
}

void WaysPanel::show_state() {
  const std::size_t fitting = model_.fitting(), tried = model_.tried();
  const bool searching = search_.is_running();
  if (tried == 0)
    title_->setText(searching ? tr("Looking for ways…") : tr("No way tried yet"));
  else
    title_->setText(fitting == 0   ? tr("No way found that fits")
                    : fitting == 1 ? tr("1 way fits")
                                   : tr("%1 ways fit").arg(fitting));
  QString state = searching ? tr("%1 tried, looking for more…").arg(tried) : tr("%1 tried").arg(tried);
  if (!search_.trouble().empty()) state += ": " + QString::fromStdString(search_.trouble());
  state_->setText(tried == 0 && search_.trouble().empty() ? QString() : state);
  state_->setToolTip(state_->text());
  show_columns();
  stop_->setVisible(searching);
  apply_->setEnabled(model_.way(table_->currentIndex().row()) != nullptr);
}

// A column of "not known", or in which nothing wears, says nothing.
void WaysPanel::show_columns() {
  bool priced = false, wears = false, ranged = false;
  for (int row = 0; row < model_.rowCount(); ++row) {
    const QString life = model_.index(row, WaysModel::life).data().toString();
    wears = wears || (!life.isEmpty() && life != tr("no wear"));
    const ShownWay* const way = model_.way(row);
    priced = priced || (way != nullptr && way->row.cost_per_million_tokens().has_value());
    ranged = ranged || (way != nullptr && way->row.ran() && way->row.result.step_time_range.known);
  }
  table_->setColumnHidden(WaysModel::cost, !priced);
  table_->setColumnHidden(WaysModel::life, !wears);
  table_->setColumnHidden(WaysModel::range, !ranged);
  table_->setColumnHidden(WaysModel::keys, width() < wide);
  // Figures are never cut: the longest of those in sight makes room for itself.
  constexpr int margin = 10;
  for (int column = WaysModel::rate; column < WaysModel::column_count; ++column) {
    const int needed = static_cast<QAbstractItemView*>(table_)->sizeHintForColumn(column) + margin;
    if (!table_->isColumnHidden(column)) table_->setColumnWidth(column, std::max(table_->columnWidth(column), needed));
  }
}

void WaysPanel::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  show_columns();
  table_->resizeRowsToContents();
}

void WaysPanel::point_at(int row) {
  apply_->setEnabled(model_.way(table_->currentIndex().row()) != nullptr);
  if (row == pointed_row_) return;
  pointed_row_ = row;
  if (row < 0) {
    pointed_.stop();
    if (on_preview) on_preview("");
    return;
  }
  pointed_.start();
}

void WaysPanel::apply(bool as_variant) {
  const ShownWay* const way = model_.way(table_->currentIndex().row());
  if (way == nullptr || !way->row.ran()) return;
  const ShownWay chosen = *way;  // the search begins anew
  const auto& then = as_variant ? on_variant : on_apply;
  if (then) then(chosen);
}

bool WaysPanel::eventFilter(QObject* watched, QEvent* event) {
  if (watched == table_ && event->type() == QEvent::KeyPress) {
    const int key = static_cast<QKeyEvent*>(event)->key();
    if (key == Qt::Key_Return || key == Qt::Key_Enter) {
      apply((static_cast<QKeyEvent*>(event)->modifiers() & Qt::ShiftModifier) != 0);
      return true;
    }
  }
  if (watched == table_->viewport() && event->type() == QEvent::MouseMove)
    point_at(table_->indexAt(static_cast<QMouseEvent*>(event)->pos()).row());
  if (watched == table_->viewport() && event->type() == QEvent::Leave) point_at(-1);
  return QWidget::eventFilter(watched, event);
}

}  // namespace spillway::gui
