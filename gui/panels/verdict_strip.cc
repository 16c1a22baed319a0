#include "gui/panels/verdict_strip.h"

#include <QEvent>
#include <QHBoxLayout>
#include <QLabel>
#include <QVBoxLayout>

namespace spillway::gui {
namespace {

constexpr std::size_t cell_count = 6;

// A label that cuts its text with an ellipsis instead of being cut; the whole is its tool tip.
class CutLabel : public QLabel {
 public:
  explicit CutLabel(QWidget* parent) : QLabel(parent) { setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred); }
  void set_words(const QString& text) {
    words_ = text;
    setToolTip(text);
    cut();
  }

 protected:
  void resizeEvent(QResizeEvent* event) override {
    QLabel::resizeEvent(event);
    cut();
  }

 private:
  void cut() { setText(fontMetrics().elidedText(words_, Qt::ElideRight, width())); }
  QString words_;
};

void set_words(QLabel* label, const std::string& text) {
  static_cast<CutLabel*>(label)->set_words(QString::fromStdString(text));
}

}  // namespace

VerdictStrip::VerdictStrip() : theme_(&light_theme()) {
  setObjectName("verdict strip");
  auto* const row = new QHBoxLayout(this);
  row->setContentsMargins(6, 4, 6, 4);
  row->setSpacing(6);
  for (std::size_t i = 0; i < cell_count; ++i) {
    Cell cell;
    cell.frame = new QFrame(this);
    cell.frame->setFrameShape(QFrame::StyledPanel);
    cell.frame->setFocusPolicy(Qt::TabFocus);
    cell.frame->installEventFilter(this);
    auto* const column = new QVBoxLayout(cell.frame);
    column->setContentsMargins(8, 4, 8, 4);
    column->setSpacing(1);
    cell.title = new CutLabel(cell.frame);
    cell.value = new QLabel(cell.frame);
    cell.value->setWordWrap(true);
    cell.value->setMinimumHeight(2 * cell.value->fontMetrics().lineSpacing() + 2);
    cell.value->setAlignment(Qt::AlignVCenter | Qt::AlignLeft);
    cell.value->setTextInteractionFlags(Qt::TextSelectableByMouse);
    QFont bold = cell.value->font();
    bold.setBold(true);
    cell.value->setFont(bold);
    cell.detail = new QLabel(cell.frame);
    cell.detail->setWordWrap(true);
    cell.detail->setMinimumHeight(2 * cell.detail->fontMetrics().lineSpacing());
    cell.detail->setAlignment(Qt::AlignTop | Qt::AlignLeft);
    cell.change = new CutLabel(cell.frame);
    column->addWidget(cell.title);
    column->addWidget(cell.value, 1);
    column->addWidget(cell.detail);
    column->addWidget(cell.change);
    row->addWidget(cell.frame, i == 0 ? 6 : 4);
    cells_.push_back(cell);
  }
}

void VerdictStrip::show(const std::vector<ShownFigure>& figures) {
  figures_ = figures;
  paint_cells();
}

void VerdictStrip::set_theme(const Theme& theme) {
  theme_ = &theme;
  paint_cells();
}

void VerdictStrip::set_stale(bool stale) {
  if (stale == stale_) return;
  stale_ = stale;
  paint_cells();
}

void VerdictStrip::paint_cells() {
  for (std::size_t i = 0; i < cells_.size(); ++i) {
    const Cell& cell = cells_[i];
    const ShownFigure figure = i < figures_.size() ? figures_[i] : ShownFigure{};
    set_words(cell.title, figure.title);
    cell.value->setText(QString::fromStdString(figure.value));
    cell.value->setToolTip(QString::fromStdString(figure.value));
    cell.detail->setText(QString::fromStdString(figure.detail));
    cell.detail->setToolTip(QString::fromStdString(figure.detail));
    set_words(cell.change, figure.change);
    const auto color = [this](const QColor& fresh) { return stale_ ? theme_->ghost(fresh).name() : fresh.name(); };
    const bool is_good = figure.id == "verdict" && figure.value.starts_with("fits");
    const QColor value_color = figure.is_alarm     ? theme_->bad
                               : figure.is_caution ? theme_->warning
                               : is_good           ? theme_->good
                                                   : theme_->text;
    const QColor change_color = figure.direction == Change::better  ? theme_->good
                                : figure.direction == Change::worse ? theme_->bad
                                                                    : theme_->muted;
    cell.title->setStyleSheet("color: " + color(theme_->muted));
    cell.value->setStyleSheet("color: " + color(value_color));
    cell.detail->setStyleSheet("color: " + color(theme_->muted));
    cell.change->setStyleSheet("color: " + color(change_color));
    cell.frame->setAccessibleName(QString::fromStdString(figure.title + ": " + figure.value));
    cell.frame->setAccessibleDescription(QString::fromStdString(
        figure.detail + (figure.change.empty() ? "" : ", against the baseline " + figure.change)));
  }
}

bool VerdictStrip::eventFilter(QObject* watched, QEvent* event) {
  const bool enters = event->type() == QEvent::Enter || event->type() == QEvent::FocusIn;
  const bool leaves = event->type() == QEvent::Leave || event->type() == QEvent::FocusOut;
  if (on_hover && (enters || leaves)) {
    for (std::size_t i = 0; i < cells_.size() && i < figures_.size(); ++i)
      if (cells_[i].frame == watched)
        on_hover(enters ? QString::fromStdString(figures_[i].title + ": " + figures_[i].provenance) : QString());
  }
  return QWidget::eventFilter(watched, event);
}

}  // namespace spillway::gui
