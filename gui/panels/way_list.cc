#include "gui/panels/way_list.h"

#include <QCheckBox>
#include <QGridLayout>
#include <QKeyEvent>
#include <QLabel>
#include <QMouseEvent>
#include <QPainter>
#include <QPushButton>
#include <QVBoxLayout>
#include <algorithm>

namespace spillway::gui {
namespace {

using studies::AnswerLaunch;
using studies::AnswerWay;

QString way_words(const std::string& text) { return QString::fromStdString(text); }

QLabel* label_of(const QString& text, const QColor& color, bool wraps = true) {
  auto* const label = new QLabel(text);
  label->setTextFormat(Qt::PlainText);
  label->setWordWrap(wraps);
  QPalette palette = label->palette();
  palette.setColor(QPalette::WindowText, color);
  label->setPalette(palette);
  return label;
}

QLabel* bold_of(QLabel* label) {
  QFont font = label->font();
  font.setBold(true);
  label->setFont(font);
  return label;
}

QLabel* fixed_of(QLabel* label) {
  label->setFont(QFont("monospace"));
  label->setTextInteractionFlags(Qt::TextSelectableByMouse);
  return label;
}

// How much of the limit is reserved.
class RoomBar : public QWidget {
 public:
  RoomBar(double used, const QColor& fill, const QColor& edge) : used_(used), fill_(fill), edge_(edge) {
    setFixedSize(72, 9);
  }

 protected:
  void paintEvent(QPaintEvent* /*event*/) override {
    QPainter painter(this);
    painter.fillRect(QRectF(0, 0, width() * std::min(1.0, used_), height()), fill_);
    painter.setPen(edge_);
    painter.drawRect(rect().adjusted(0, 0, -1, -1));
  }

 private:
  double used_;
  QColor fill_, edge_;
};

}  // namespace

class WayRow : public QFrame {
 public:
  WayRow(WayList& list, const AnswerWay& way, int place) : list_(list), way_(way), place_(place) {
    setObjectName("way");
    setFocusPolicy(Qt::StrongFocus);
    setAccessibleName(way_words(way.name));
    setAccessibleDescription(QString("%1, %2, %3, %4")
                                 .arg(way_words(way.group), way_words(way.figures.step), way_words(way.figures.tokens),
                                      way_words(studies::room_words(way.figures))));
    auto* const column = new QVBoxLayout(this);
    column->setContentsMargins(8, 5, 8, 5);
    column->setSpacing(3);
    column->addLayout(head());
    column->addLayout(second());
    show_state();
  }
  void set_open(bool open) {
    if (open == (details_ != nullptr)) return;
    if (open) {
      details_ = details();
      layout()->addWidget(details_);
    } else {
      details_->deleteLater();
      details_->hide();
      layout()->removeWidget(details_);
      details_ = nullptr;
      apply_ = nullptr;
    }
    show_state();
  }
  [[nodiscard]] QPushButton* apply_button() const { return apply_; }
  [[nodiscard]] bool is_ticked() const { return tick_ != nullptr && tick_->isChecked(); }

 protected:
  void mousePressEvent(QMouseEvent* /*event*/) override { list_.choose(place_); }
  void enterEvent(QEnterEvent* /*event*/) override {
    if (list_.on_point) list_.on_point(place_);
  }
  void leaveEvent(QEvent* /*event*/) override {
    if (list_.on_point) list_.on_point(list_.current_);
  }
  void focusInEvent(QFocusEvent* event) override {
    QFrame::focusInEvent(event);
    if (event->reason() == Qt::TabFocusReason || event->reason() == Qt::BacktabFocusReason) list_.choose(place_);
  }

 private:
  [[nodiscard]] const QColor& color(Token token) const { return (*list_.theme_)[token]; }

  QLayout* head() {
    auto* const line = new QHBoxLayout;
    line->setSpacing(8);
    auto* const number = label_of(way_.number > 0 ? QString::number(way_.number) : "", color(Token::muted), false);
    number->setFixedWidth(16);
    auto* const name = bold_of(label_of(way_words(way_.name), color(Token::text)));
    const std::string& change = way_.figures.tokens;
    const Token tone = change.starts_with('-') && change.size() > 1 ? Token::bad
                       : change.starts_with('+')                    ? Token::good
                                                                    : Token::muted;
    if (!way_.edits.empty()) {
      tick_ = new QCheckBox;
      tick_->setAccessibleName(QObject::tr("Tick to combine: %1").arg(way_words(way_.name)));
      tick_->setToolTip(QObject::tr("Tick several to make them together"));
      QObject::connect(tick_, &QCheckBox::toggled, this, [this] {
        if (list_.on_tick) list_.on_tick();
      });
    }
    line->addWidget(number, 0, Qt::AlignTop);
    line->addWidget(name, 1);
    if (way_.figures.step != "-")
      line->addWidget(bold_of(label_of(way_words(way_.figures.step), color(Token::text), false)), 0, Qt::AlignTop);
    if (change != "-")
      line->addWidget(label_of(way_words(change).replace('-', QChar(0x2212)), color(tone), false), 0, Qt::AlignTop);
    return line;
  }

  QLayout* second() {
    auto* const line = new QHBoxLayout;
    line->setContentsMargins(0, 0, 0, 0);
    line->setSpacing(8);
    if (tick_ != nullptr)
      line->addWidget(tick_);
    else
      line->addSpacing(16);
    const studies::AnswerFigures& figures = way_.figures;
    const Token tone = figures.answer == Verdict::does_not_fit ? Token::bad
                       : figures.answer == Verdict::tight      ? Token::warn
                                                               : Token::good;
    if (figures.peak_reserved >= Bytes(0) && figures.limit > Bytes(0)) {
      const double used =
          static_cast<double>(figures.peak_reserved.count()) / static_cast<double>(figures.limit.count());
      line->addWidget(new RoomBar(used, color(tone), color(Token::control)));
    }
    line->addWidget(
        label_of(way_words(studies::room_words(figures)), color(tone == Token::good ? Token::muted : tone), false));
    line->addStretch(1);
    if (!way_.runs_in.empty() && way_.runs_in != "-") {
      auto* const runs = label_of(way_words(way_.runs_in), color(Token::muted), false);
      runs->setToolTip(QObject::tr("who runs it; *: with a line in the program"));
      line->addWidget(runs);
    }
    return line;
  }

  QWidget* details() {
    auto* const box = new QWidget;
    auto* const column = new QVBoxLayout(box);
    column->setContentsMargins(24, 4, 0, 4);
    column->setSpacing(4);
    auto* const grid = new QGridLayout;
    grid->setHorizontalSpacing(10);
    grid->setVerticalSpacing(2);
    int row = 0;
    for (const studies::AnswerChange& change : way_.changes) {
      auto* const both = label_of({}, color(Token::text));
      both->setTextFormat(Qt::RichText);
      both->setText(QString("<s>%1</s> → <b>%2</b>")
                        .arg(way_words(change.from).toHtmlEscaped(), way_words(change.to).toHtmlEscaped()));
      grid->addWidget(fixed_of(label_of(way_words(change.key), color(Token::text), false)), row, 0, Qt::AlignTop);
      grid->addWidget(both, row++, 1);
      if (!change.worth.empty())
        grid->addWidget(label_of(way_words(change.worth), color(Token::muted)), row++, 0, 1, 2);
    }
    grid->setColumnStretch(1, 1);
    column->addLayout(grid);
    if (way_.changes.empty() && way_.number > 0 && list_.answer_->is_search)
      column->addWidget(label_of(QObject::tr("It is as given: nothing changes."), color(Token::text)));
    auto* const line = new QHBoxLayout;
    apply_ = new QPushButton(QObject::tr("Apply"));
    apply_->setToolTip(QObject::tr("Enter; Ctrl+Z takes it back"));
    auto* const variant = new QPushButton(QObject::tr("As a variant"));
    variant->setToolTip(QObject::tr("Shift+Enter"));
    QObject::connect(apply_, &QPushButton::clicked, this, [this] { list_.apply(place_, false); });
    QObject::connect(variant, &QPushButton::clicked, this, [this] { list_.apply(place_, true); });
    line->addWidget(apply_);
    line->addWidget(variant);
    line->addStretch(1);
    if (!way_.edits.empty()) column->addLayout(line);
    for (const std::string& sentence : way_.sentences)
      column->addWidget(label_of(way_words(sentence), color(Token::text)));
    for (const AnswerLaunch& launch : way_.launches) add_launch(launch, *column);
    if (!way_.folded.empty()) {
      column->addWidget(
          label_of(QObject::tr("%n folded: alike, or no better", "", static_cast<int>(way_.folded.size())),
                   color(Token::muted)));
      for (const studies::AnswerFolded& one : way_.folded)
        column->addWidget(label_of(
            QString("%1: %2, %3")
                .arg(way_words(one.name), way_words(one.figures.step), way_words(studies::room_words(one.figures))),
            color(Token::muted)));
    }
    if (way_.edits.empty()) apply_ = nullptr;
    return box;
  }

  void add_launch(const AnswerLaunch& launch, QVBoxLayout& column) {
    const bool needs_code = launch.state == studies::LaunchState::with_code;
    column.addWidget(label_of(
        QObject::tr("in %1: %2")
            .arg(way_words(launch.framework), way_words(needs_code ? launch.with_code_figures : launch.figures)),
        color(launch.state == studies::LaunchState::no ? Token::muted : Token::text)));
    QStringList lines;
    for (const std::string& one : launch.lines) lines += way_words(one);
    if (needs_code)
      for (const std::string& one : launch.code) lines += "# " + way_words(one);
    if (!lines.isEmpty()) column.addWidget(fixed_of(label_of(lines.join('\n'), color(Token::text))));
    if (needs_code)
      column.addWidget(label_of(QObject::tr("its file alone: %1").arg(way_words(launch.figures)), color(Token::muted)));
  }

  void show_state() {
    const bool open = details_ != nullptr;
    setStyleSheet(QString("#way { background: %1; border: 1px solid %2; border-radius: 6px; }"
                          "#way:focus { border: 2px solid %3; }")
                      .arg(color(open ? Token::accent_surface : Token::raised).name(),
                           color(open ? Token::accent : Token::line).name(), color(Token::accent).name()));
  }

  WayList& list_;
  const AnswerWay& way_;
  int place_;
  QWidget* details_ = nullptr;
  QCheckBox* tick_ = nullptr;
  QPushButton* apply_ = nullptr;
};

WayList::WayList() : column_(new QVBoxLayout(this)), theme_(&light_theme()) {
  setAccessibleName(tr("Ways to fit"));
  setFocusPolicy(Qt::TabFocus);
  column_->setContentsMargins(0, 0, 0, 0);
  column_->setSpacing(5);
}

void WayList::set_theme(const Theme& theme) {
  theme_ = &theme;
  const int kept = current_;
  show(answer_);
  if (kept >= 0 && kept < count()) {
    current_ = kept;
    rows_[static_cast<std::size_t>(kept)]->set_open(true);
  }
}

void WayList::show(std::shared_ptr<const studies::Answer> answer) {
  if (focusWidget() != nullptr && focusWidget()->hasFocus()) setFocus();
  rows_.clear();
  current_ = -1;
  while (QLayoutItem* const item = column_->takeAt(0)) {
    if (item->widget() != nullptr) {
      item->widget()->hide();
      item->widget()->deleteLater();
    }
    delete item;
  }
  answer_ = std::move(answer);
  if (answer_ == nullptr) return;
  std::string group;
  for (const AnswerWay& way : answer_->ways) {
    if (way.group != group) {
      column_->addWidget(bold_of(label_of(way_words(way.group), (*theme_)[Token::muted])));
      group = way.group;
    }
    rows_.push_back(new WayRow(*this, way, count()));
    column_->addWidget(rows_.back());
  }
}

std::vector<int> WayList::ticked() const {
  std::vector<int> found;
  for (int way = 0; way < count(); ++way)
    if (rows_[static_cast<std::size_t>(way)]->is_ticked()) found.push_back(way);
  return found;
}

QWidget& WayList::row(int way) { return *rows_[static_cast<std::size_t>(way)]; }
QWidget& WayList::apply_button(int way) { return *rows_[static_cast<std::size_t>(way)]->apply_button(); }

void WayList::choose(int way) {
  if (way < 0 || way >= count()) return;
  if (current_ >= 0 && current_ != way) rows_[static_cast<std::size_t>(current_)]->set_open(false);
  current_ = way;
  WayRow* const row = rows_[static_cast<std::size_t>(way)];
  row->set_open(true);
  row->setFocus();
  if (on_reveal) on_reveal(*row);
  if (on_point) on_point(way);
}

void WayList::apply(int way, bool as_variant) {
  if (way < 0 || way >= count() || answer_->ways[static_cast<std::size_t>(way)].edits.empty()) return;
  const auto kept = answer_;  // the rows are of what it makes, soon
  if (on_apply) on_apply(way, as_variant);
}

void WayList::keyPressEvent(QKeyEvent* event) {
  switch (event->key()) {
    case Qt::Key_Down:
      return choose(std::min(current_ + 1, count() - 1));
    case Qt::Key_Up:
      return choose(std::max(current_ - 1, 0));
    case Qt::Key_Return:
    case Qt::Key_Enter:
      if (auto* const button = qobject_cast<QPushButton*>(focusWidget())) return button->click();
      return apply(current_, (event->modifiers() & Qt::ShiftModifier) != 0);
    default:
      QWidget::keyPressEvent(event);
  }
}

}  // namespace spillway::gui
