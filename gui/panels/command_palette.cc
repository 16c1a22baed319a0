#include "gui/panels/command_palette.h"

#include <QAction>
#include <QKeyEvent>
#include <QLineEdit>
#include <QListWidget>
#include <QVBoxLayout>

namespace spillway::gui {

CommandPalette::CommandPalette(QWidget* parent) : QDialog(parent, Qt::Popup) {
  setObjectName("palette");
  setAccessibleName(tr("Commands"));
  auto* const column = new QVBoxLayout(this);
  line_ = new QLineEdit;
  line_->setPlaceholderText(tr("A few letters of a command"));
  line_->installEventFilter(this);
  list_ = new QListWidget;
  list_->setAccessibleName(tr("Matching commands"));
  column->addWidget(line_);
  column->addWidget(list_);
  resize(460, 320);
  connect(line_, &QLineEdit::textChanged, this, [this](const QString& words) { fill(words); });
  connect(line_, &QLineEdit::returnPressed, this, [this] { run(); });
  connect(list_, &QListWidget::itemClicked, this, [this] { run(); });
}

void CommandPalette::offer(const QList<QAction*>& actions) {
  actions_ = actions;
  line_->clear();
  fill({});
  if (parentWidget() != nullptr) move(parentWidget()->mapToGlobal(QPoint((parentWidget()->width() - width()) / 2, 60)));
  show();
  line_->setFocus();
}

void CommandPalette::fill(const QString& words) {
  list_->clear();
  const QStringList parts = words.split(' ', Qt::SkipEmptyParts);
  for (qsizetype i = 0; i < actions_.size(); ++i) {
    QString name = actions_[i]->text();
    name.remove('&');
    const bool matches = std::all_of(parts.begin(), parts.end(),
                                     [&](const QString& part) { return name.contains(part, Qt::CaseInsensitive); });
    if (!matches || !actions_[i]->isEnabled()) continue;
    const QString keys = actions_[i]->shortcut().toString(QKeySequence::NativeText);
    auto* const item = new QListWidgetItem(keys.isEmpty() ? name : name + "    " + keys, list_);
    item->setData(Qt::UserRole, static_cast<int>(i));
  }
  list_->setCurrentRow(0);
}

void CommandPalette::run() {
  const QListWidgetItem* const item = list_->currentItem();
  if (item == nullptr) return;
  QAction* const chosen = actions_[item->data(Qt::UserRole).toInt()];
  hide();
  chosen->trigger();
}

bool CommandPalette::eventFilter(QObject* watched, QEvent* event) {
  if (watched == line_ && event->type() == QEvent::KeyPress) {
    const int key = static_cast<QKeyEvent*>(event)->key();
    if (key == Qt::Key_Down || key == Qt::Key_Up) {
      const int row = list_->currentRow() + (key == Qt::Key_Down ? 1 : -1);
      list_->setCurrentRow(std::clamp(row, 0, std::max(0, list_->count() - 1)));
      return true;
    }
  }
  return QDialog::eventFilter(watched, event);
}

}  // namespace spillway::gui
