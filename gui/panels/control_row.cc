#include "gui/panels/control_row.h"

#include <QCheckBox>
#include <QComboBox>
#include <QCompleter>
#include <QDoubleSpinBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QMouseEvent>
#include <QPainter>
#include <QSlider>
#include <QStyle>
#include <QStyleOptionSlider>
#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>

namespace spillway::gui {
namespace {

constexpr int positions = 1'000;
constexpr double bytes_in_gib = 1'073'741'824.0;

double number_of(const std::string& text) { return QString::fromStdString(text).toDouble(); }

}  // namespace

// A slider with a mark where the baseline stands. Nothing is changed by the wheel, which scrolls the panel.
class TickedSlider : public QSlider {
 public:
  explicit TickedSlider(QWidget* parent) : QSlider(Qt::Horizontal, parent) {
    setRange(0, positions);
    setFocusPolicy(Qt::StrongFocus);
  }
  std::optional<double> tick;
  std::function<void()> on_reset;

 protected:
  void paintEvent(QPaintEvent* event) override {
    QSlider::paintEvent(event);
    if (!tick) return;
    QStyleOptionSlider option;
    initStyleOption(&option);
    const int handle = style()->pixelMetric(QStyle::PM_SliderLength, &option, this);
    const double x = handle / 2.0 + *tick / positions * (width() - handle);
    QPainter painter(this);
    painter.setPen(Qt::NoPen);
    painter.setBrush(palette().color(QPalette::Highlight));
    painter.drawPolygon(QPolygonF({QPointF(x - 4, 0), QPointF(x + 4, 0), QPointF(x, 6)}));
  }
  void wheelEvent(QWheelEvent* event) override { event->ignore(); }
  void mouseDoubleClickEvent(QMouseEvent* /*event*/) override {
    if (on_reset) on_reset();
  }
};

ControlRow::ControlRow(Control control, QWidget* parent) : QWidget(parent), control_(std::move(control)) {
  setObjectName(QString::fromStdString(control_.key));
  setToolTip(QString::fromStdString(control_.about) + "\n" + QString::fromStdString(control_.key));
  switch (control_.kind) {
    case ControlKind::choice:
    case ControlKind::entry:
      make_choice();
      break;
    case ControlKind::number:
    case ControlKind::size:
    case ControlKind::factor:
      make_number();
      break;
    case ControlKind::toggle:
      make_toggle();
      break;
  }
  editor()->setAccessibleName(QString::fromStdString(control_.label));
  editor()->setAccessibleDescription(QString::fromStdString(control_.about));
  back_ = new QToolButton(this);
  back_->setObjectName("back");
  back_->setText("↶");
  back_->setAccessibleName(tr("Take %1 back").arg(QString::fromStdString(control_.label)));
  back_->setVisible(false);
  QObject::connect(back_, &QToolButton::clicked, this, [this] { edit(origin_.value_or("null"), false); });
  line_->addWidget(back_);
}

QWidget* ControlRow::editor() const {
  if (spin_ != nullptr) return spin_;
  if (list_ != nullptr) return list_;
  return box_;
}

void ControlRow::make_number() {
  auto* const rows = new QVBoxLayout(this);
  rows->setContentsMargins(0, 1, 0, 1);
  rows->setSpacing(0);
  auto* const line = line_ = new QHBoxLayout;
  label_ = new QLabel(QString::fromStdString(control_.label), this);
  spin_ = new QDoubleSpinBox(this);
  spin_->setObjectName("spin");
  spin_->setKeyboardTracking(false);
  spin_->setFixedWidth(78);
  spin_->setFocusPolicy(Qt::StrongFocus);
  const bool is_factor = control_.kind == ControlKind::factor;
  spin_->setDecimals(is_factor ? 2 : control_.kind == ControlKind::size ? 1 : 0);
  spin_->setRange(is_factor ? 0.01 : control_.least, is_factor ? 1'000 : std::max(control_.most * 1'000, 1e6));
  spin_->setSingleStep(is_factor ? 0.1 : control_.step);
  if (control_.kind == ControlKind::size) {
    spin_->setSpecialValueText(tr("profile"));  // 0
    spin_->setAccelerated(true);
  }
  // "drives per machine": of what, the label says.
  auto* const unit = new QLabel(QString::fromStdString(control_.unit).section(" per ", 0, 0), this);
  unit->setMinimumWidth(52);
  unit->setContentsMargins(4, 0, 0, 0);
  line->addWidget(label_, 1);
  line->addWidget(spin_);
  line->addWidget(unit);
  slider_ = new TickedSlider(this);
  slider_->setAccessibleName(QString::fromStdString(control_.label));
  rows->addLayout(line);
  rows->addWidget(slider_);
  QObject::connect(spin_, &QDoubleSpinBox::valueChanged, this, [this](double value) {
    if (!shows_) edit(kept_of(value), false);
  });
  QObject::connect(slider_, &QSlider::valueChanged, this, [this](int position) {
    if (shows_) return;
    shows_ = true;
    spin_->setValue(value_at(position));
    shows_ = false;
    edit(kept_of(spin_->value()), true);
  });
  QObject::connect(slider_, &QSlider::sliderReleased, this, [this] { edit(kept_of(spin_->value()), false); });
  slider_->on_reset = [this] { edit(baseline_.value_or("null"), false); };
}

void ControlRow::make_choice() {
  auto* const line = line_ = new QHBoxLayout(this);
  line->setContentsMargins(0, 1, 0, 1);
  label_ = new QLabel(QString::fromStdString(control_.label), this);
  list_ = new QComboBox(this);
  list_->setFocusPolicy(Qt::StrongFocus);
  list_->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  list_->setMinimumContentsLength(8);
  for (const std::string& choice : control_.choices) list_->addItem(QString::fromStdString(choice));
  line->addWidget(label_);
  line->addWidget(list_, 1);
  if (control_.kind == ControlKind::entry) {
    list_->setEditable(true);
    list_->setInsertPolicy(QComboBox::NoInsert);
    list_->completer()->setCompletionMode(QCompleter::PopupCompletion);
    list_->completer()->setFilterMode(Qt::MatchContains);
    list_->lineEdit()->setPlaceholderText(tr("unchanged"));
    QObject::connect(list_->lineEdit(), &QLineEdit::editingFinished, this, [this] {
      // Being walked through is no edit: what is shown may be what counts without the key.
      if (!shows_ && list_->lineEdit()->isModified()) edit(list_->currentText().toStdString(), false);
    });
  }
  QObject::connect(list_, &QComboBox::textActivated, this, [this](const QString& text) {
    if (!shows_) edit(text.toStdString(), false);
  });
}

void ControlRow::make_toggle() {
  auto* const line = line_ = new QHBoxLayout(this);
  line->setContentsMargins(0, 1, 0, 1);
  box_ = new QCheckBox(QString::fromStdString(control_.label), this);
  line->addWidget(box_);
  QObject::connect(box_, &QCheckBox::toggled, this, [this](bool on) {
    if (!shows_) edit(on ? control_.on : control_.off, false);
  });
}

void ControlRow::edit(const std::string& value, bool goes_on) {
  if (on_edit && !is_derived_) on_edit(control_, value.empty() ? "null" : value, goes_on);
}

double ControlRow::position_of(double value) const {
  const double least = control_.least, most = control_.most;
  if (control_.kind == ControlKind::factor)
    return positions * std::log(std::clamp(value, least, most) / least) / std::log(most / least);
  return positions * (std::clamp(value, least, most) - least) / (most - least);
}

double ControlRow::value_at(double position) const {
  const double part = position / positions;
  if (control_.kind == ControlKind::factor)
    return std::round(control_.least * std::pow(control_.most / control_.least, part) * 20) / 20;
  const double value = control_.least + part * (control_.most - control_.least);
  return control_.least + std::round((value - control_.least) / control_.step) * control_.step;
}

double ControlRow::shown_of(const std::string& value) const {
  return control_.kind == ControlKind::size ? number_of(value) / bytes_in_gib : number_of(value);
}

std::string ControlRow::kept_of(double shown) const {
  if (control_.kind == ControlKind::factor) return QString::number(shown, 'g', 6).toStdString();
  const bool is_size = control_.kind == ControlKind::size;
  if (is_size && shown <= 0) return control_.key.starts_with("memory.") ? "null" : "0";
  return std::to_string(std::llround(is_size ? shown * bytes_in_gib : shown));
}

void ControlRow::show_number(const std::optional<std::string>& value) {
  const double shown = shown_of(value.value_or(control_.otherwise));
  if (std::abs(spin_->value() - shown) > 1e-9) spin_->setValue(shown);
  if (!slider_->isSliderDown()) slider_->setValue(static_cast<int>(std::lround(position_of(shown))));
  slider_->tick.reset();
  if (baseline_) slider_->tick = position_of(shown_of(*baseline_));
  slider_->update();
}

void ControlRow::show(const std::optional<std::string>& value, const std::optional<std::string>& baseline) {
  shows_ = true;
  baseline_ = baseline;
  const std::string text = value.value_or(control_.otherwise);
  if (spin_ != nullptr) show_number(value);
  if (list_ != nullptr) {
    const QString shown = QString::fromStdString(text);
    const int at = list_->findText(shown);
    if (at >= 0)
      list_->setCurrentIndex(at);
    else if (list_->isEditable())
      list_->setEditText(shown);
    else
      list_->setCurrentIndex(-1);
    if (list_->isEditable()) list_->lineEdit()->setCursorPosition(0);
  }
  if (box_ != nullptr) box_->setChecked(text == control_.on);
  const bool differs = baseline_ && text != *baseline_;
  if (label_ != nullptr) {
    QFont font = label_->font();
    font.setBold(differs);
    label_->setFont(font);
    label_->setToolTip(differs ? tr("baseline: %1; double-click for it").arg(QString::fromStdString(*baseline_))
                               : toolTip());
  }
  shows_ = false;
}

void ControlRow::show_derived(const std::optional<std::string>& derived, const std::string& follows) {
  is_derived_ = derived.has_value();
  const QString words = tr("derived: %1 decides").arg(QString::fromStdString(follows));
  for (QWidget* const part : {static_cast<QWidget*>(spin_), static_cast<QWidget*>(slider_)}) {
    if (part == nullptr) continue;
    part->setEnabled(!is_derived_);
    part->setToolTip(is_derived_ ? words : QString());
  }
  if (spin_ == nullptr) return;
  shows_ = true;
  spin_->setPrefix(is_derived_ ? "× " : "");
  slider_->setVisible(!is_derived_);
  if (is_derived_) spin_->setValue(number_of(*derived));
  // What nobody knows is none of its values.
  spin_->setSpecialValueText(control_.kind == ControlKind::size ? tr("profile")
                             : is_derived_ && derived->empty()  ? "?"
                                                                : QString());
  if (is_derived_) label_->setToolTip(words);
  shows_ = false;
}

void ControlRow::set_steps(double steps) {
  if (spin_ == nullptr || control_.step == steps) return;
  control_.step = control_.least = steps;
  spin_->setSingleStep(steps);
}

void ControlRow::offer_back(bool offers, const std::optional<std::string>& origin) {
  origin_ = origin;
  back_->setVisible(offers && !is_derived_);
  back_->setToolTip(tr("Back to %1").arg(origin ? QString::fromStdString(*origin) : tr("what it is without the key")));
}

void ControlRow::mouseDoubleClickEvent(QMouseEvent* /*event*/) { edit(baseline_.value_or("null"), false); }

}  // namespace spillway::gui
