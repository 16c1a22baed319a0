#include "gui/panels/verdict_strip.h"

#include <QEvent>
#include <QHBoxLayout>
#include <QLabel>
#include <QRegularExpression>
#include <QVBoxLayout>
#include <algorithm>

namespace spillway::gui {
namespace {

constexpr std::size_t cell_count = 6;
constexpr int strip_height = 66;
constexpr int widest_answer = 250, least_cell = 150;  // logical pixels

// A label that says as many of its parts ("; " or ", " between them) as it has room for, in smaller letters if that
// helps, and of a single one what an ellipsis leaves; the whole is its tool tip.
class CutLabel : public QLabel {
 public:
  explicit CutLabel(QWidget* parent) : QLabel(parent) { setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred); }
  void set_words(const QString& text) {
    if (text == words_) return;
    words_ = text;
    setToolTip(text);
    cut();
  }
  // Letters may shrink from the font's pixels down to `least_pixels`.
  void set_shrinking_font(const QFont& font, int least_pixels) {
    most_pixels_ = font.pixelSize();
    least_pixels_ = least_pixels;
    setFont(font);
    cut();
  }

 protected:
  void resizeEvent(QResizeEvent* event) override {
    QLabel::resizeEvent(event);
    cut();
  }

 private:
  void cut() {
    static const QRegularExpression last_part("(; |, | \\()(?!.*(; |, | \\())");
    fit_letters();
    QString part = words_;
    while (fontMetrics().horizontalAdvance(part) > width()) {
      const auto end = part.indexOf(last_part);
      if (end <= 0) return setText(fontMetrics().elidedText(part, Qt::ElideRight, width()));
      part.truncate(end);
    }
    setText(part);
  }
  void fit_letters() {
    if (least_pixels_ == 0) return;
    QFont letters = font();
    for (int pixels = most_pixels_; pixels >= least_pixels_; --pixels) {
      letters.setPixelSize(pixels);
      if (QFontMetrics(letters).horizontalAdvance(words_) <= width()) break;
    }
    if (letters.pixelSize() != font().pixelSize()) setFont(letters);
  }
  QString words_;
  int most_pixels_ = 0, least_pixels_ = 0;
};

void set_words(QLabel* label, const std::string& text) {
  static_cast<CutLabel*>(label)->set_words(QString::fromStdString(text));
}

// No style sheet: each edit colours all labels twice, which took a quarter of what it costs the window's thread.
void set_color(QLabel* label, const QColor& color) {
  QPalette palette = label->palette();
  palette.setColor(QPalette::WindowText, color);
  label->setPalette(palette);
}

}  // namespace

VerdictStrip::VerdictStrip() : theme_(&light_theme()) {
  setObjectName("verdict strip");
  setFixedHeight(strip_height);
  auto* const row = new QHBoxLayout(this);
  row->setContentsMargins(0, 0, 0, 0);
  row->setSpacing(0);
  for (std::size_t i = 0; i < cell_count; ++i) {
    Cell cell;
    cell.frame = new QFrame(this);
    cell.frame->setObjectName("answer");
    cell.frame->setFocusPolicy(Qt::TabFocus);
    cell.frame->installEventFilter(this);
    auto* const column = new QVBoxLayout(cell.frame);
    column->setContentsMargins(12, 5, 8, 5);
    column->setSpacing(1);
    cell.title = new CutLabel(cell.frame);
    cell.value = new CutLabel(cell.frame);
    cell.detail = new CutLabel(cell.frame);
    cell.change = new QLabel(cell.frame);
    QFont small = cell.title->font();
    small.setPixelSize(11);
    for (QLabel* const label : {cell.title, cell.detail, cell.change}) label->setFont(small);
    auto* const line = new QHBoxLayout;
    line->setSpacing(6);
    line->addWidget(cell.title, 1);
    line->addWidget(cell.change);
    column->addLayout(line);
    column->addWidget(cell.value);
    column->addWidget(cell.detail);
    row->addWidget(cell.frame, i == 0 ? 7 : 4);
    cells_.push_back(cell);
  }
}

void VerdictStrip::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  paint_cells();
  QFont bold = font();
  bold.setPixelSize(width() >= 1300 ? 16 : 14);
  bold.setBold(true);
  constexpr int least_pixels = 11;  // as the other words of the strip
  for (const Cell& cell : cells_) static_cast<CutLabel*>(cell.value)->set_shrinking_font(bold, least_pixels);
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

// What doesn't fit goes, of drives and PCIe first what says nothing, or no alarm; nothing wraps.
void VerdictStrip::paint_cells() {
  constexpr std::size_t always = 4, pcie = 4, life = 5;
  const auto room = static_cast<std::size_t>(std::max(0, (width() - widest_answer) / least_cell)) + 1;
  const auto of = [this](std::size_t i) { return i < figures_.size() ? figures_[i] : ShownFigure{}; };
  const bool life_first = of(life).is_alarm || (of(pcie).value == "not used" && of(life).value != "nothing is written");
  for (std::size_t i = 0; i < cells_.size(); ++i) {
    const std::size_t place = i < always ? i : (i == life) == life_first ? always : always + 1;
    cells_[i].frame->setVisible(i < always || place < room);
  }
  for (std::size_t i = 0; i < cells_.size(); ++i) {
    const Cell& cell = cells_[i];
    const ShownFigure figure = i < figures_.size() ? figures_[i] : ShownFigure{};
    const std::string mark(ground_mark(figure.ground));
    const std::string ground(ground_words(figure.ground));
    set_words(cell.title, mark.empty() ? figure.title : mark + " " + figure.title);
    cell.title->setToolTip(QString::fromStdString(figure.title + (ground.empty() ? "" : ": " + ground)));
    set_words(cell.value, figure.short_value.empty() ? figure.value : figure.short_value);
    cell.value->setToolTip(QString::fromStdString(figure.value));
    set_words(cell.detail, figure.detail);
    cell.change->setText(QString::fromStdString(figure.change));
    cell.change->setVisible(!figure.change.empty());
    // What is not of the present state is neither good nor bad.
    const auto color = [this](const QColor& fresh) { return stale_ ? theme_->muted : fresh; };
    const bool is_good = figure.id == "verdict" && figure.value.starts_with("fits");
    const QColor value_color = figure.is_alarm     ? theme_->bad
                               : figure.is_caution ? theme_->warning
                               : is_good           ? theme_->good
                                                   : theme_->text;
    const QColor change_color = figure.direction == Change::better  ? theme_->good
                                : figure.direction == Change::worse ? theme_->bad
                                                                    : theme_->muted;
    const Token surface = i != 0 || stale_ || figures_.empty() ? Token::panel
                          : figure.is_alarm                    ? Token::bad_surface
                          : figure.is_caution                  ? Token::warn_surface
                          : is_good                            ? Token::good_surface
                                                               : Token::panel;
    const QString sheet = QString(
                              "#answer { background: %1; border: 0; border-right: 1px solid %2; }"
                              "#answer:focus { border: 2px solid %3; }")
                              .arg((*theme_)[surface].name(), (*theme_)[Token::line].name(), theme_->accent.name());
    if (cell.frame->styleSheet() != sheet) cell.frame->setStyleSheet(sheet);
    set_color(cell.title, color(theme_->muted));
    set_color(cell.value, color(value_color));
    set_color(cell.detail, color(theme_->muted));
    set_color(cell.change, color(change_color));
    cell.frame->setAccessibleName(QString::fromStdString(figure.title + ": " + figure.value));
    cell.frame->setAccessibleDescription(QString::fromStdString(
        figure.detail + (figure.change.empty() ? "" : ", against the baseline " + figure.change) +
        (ground.empty() ? "" : "; " + ground)));
  }
}

bool VerdictStrip::eventFilter(QObject* watched, QEvent* event) {
  const bool enters = event->type() == QEvent::Enter || event->type() == QEvent::FocusIn;
  const bool leaves = event->type() == QEvent::Leave || event->type() == QEvent::FocusOut;
  if (on_hover && (enters || leaves)) {
    for (std::size_t i = 0; i < cells_.size() && i < figures_.size(); ++i)
      if (cells_[i].frame == watched) {
        const ShownFigure& figure = figures_[i];
        const std::string ground(ground_words(figure.ground));
        on_hover(!enters ? QString()
                         : QString::fromStdString(figure.title + (ground.empty() ? "" : " " + ground) + ": " +
                                                  figure.provenance));
      }
  }
  return QWidget::eventFilter(watched, event);
}

}  // namespace spillway::gui
