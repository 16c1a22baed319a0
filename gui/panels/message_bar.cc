#include "gui/panels/message_bar.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QToolButton>
#include <QVBoxLayout>

namespace spillway::gui {

MessageBar::MessageBar() : theme_(&light_theme()) {
  setObjectName("message");
  auto* const line = new QHBoxLayout(this);
  line->setContentsMargins(10, 5, 6, 5);
  auto* const words = new QVBoxLayout;
  what_ = new QLabel;
  remedy_ = new QLabel;
  for (QLabel* const label : {what_, remedy_}) {
    label->setWordWrap(true);
    label->setTextInteractionFlags(Qt::TextSelectableByMouse);
    words->addWidget(label);
  }
  auto* const close = new QToolButton;
  close->setText("×");
  close->setAccessibleName(tr("Dismiss the message"));
  close->setAutoRaise(true);
  QObject::connect(close, &QToolButton::clicked, this, [this] { hide(); });
  line->addLayout(words, 1);
  line->addWidget(close, 0, Qt::AlignTop);
  setVisible(false);
}

void MessageBar::show_error(const SimulationError& error) {
  is_error_ = true;
  what_->setText(QString::fromStdString(error.title));
  remedy_->setText(QString::fromStdString(error.remedy));
  remedy_->setVisible(!error.remedy.empty());
  setAccessibleName(text());
  dress();
  setVisible(true);
}

void MessageBar::show_note(const QString& text) {
  is_error_ = false;
  what_->setText(text);
  remedy_->clear();
  remedy_->setVisible(false);
  setAccessibleName(text);
  dress();
  setVisible(true);
}

void MessageBar::set_theme(const Theme& theme) {
  theme_ = &theme;
  dress();
}

void MessageBar::dress() {
  const QColor edge = is_error_ ? theme_->bad : theme_->accent;
  setStyleSheet(
      QString("#message { background: %1; border: 1px solid %2; border-left: 5px solid %2; } QLabel { color: %3; }")
          .arg(theme_->panel.name(), edge.name(), theme_->text.name()));
}

QString MessageBar::text() const { return what_->text() + (remedy_->text().isEmpty() ? "" : "\n" + remedy_->text()); }

}  // namespace spillway::gui
