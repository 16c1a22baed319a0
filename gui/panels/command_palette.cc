#include "gui/panels/command_palette.h"

#include <QKeyEvent>
#include <QLineEdit>
#include <QListWidget>
#include <QVBoxLayout>
#include <algorithm>
#include <utility>

#include "gui/panels/fuzzy_match.h"

namespace spillway::gui {
namespace {

constexpr std::size_t most_shown = 40;

}  // namespace

CommandPalette::CommandPalette(QWidget* parent) : QDialog(parent, Qt::Popup) {
  setObjectName("palette");
  setAccessibleName(tr("Commands, keys, models, machines"));
  auto* const column = new QVBoxLayout(this);
  line_ = new QLineEdit;
  line_->setPlaceholderText(tr("A command, a key and its value (micro-batch 16), a model, a machine"));
  line_->installEventFilter(this);
  list_ = new QListWidget;
  list_->setAccessibleName(tr("What the letters name"));
  list_->setUniformItemSizes(true);
  column->addWidget(line_);
  column->addWidget(list_);
  resize(560, 360);
  connect(line_, &QLineEdit::textChanged, this, [this](const QString& words) { fill(words); });
  connect(line_, &QLineEdit::returnPressed, this, [this] { run(); });
  connect(list_, &QListWidget::itemClicked, this, [this] { run(); });
}

void CommandPalette::offer(std::vector<PaletteItem> items,
                           std::function<std::vector<PaletteItem>(const QString& words)> made_of) {
  items_ = std::move(items);
  made_of_ = std::move(made_of);
  line_->clear();
  fill({});
  if (parentWidget() != nullptr) move(parentWidget()->mapToGlobal(QPoint((parentWidget()->width() - width()) / 2, 60)));
  show();
  line_->setFocus();
}

void CommandPalette::fill(const QString& words) {
  shown_.clear();
  std::vector<PaletteItem> refused;  // says why, behind what can be done
  if (made_of_ && !words.trimmed().isEmpty())
    for (PaletteItem& item : made_of_(words)) (item.can_run ? shown_ : refused).push_back(std::move(item));
  std::vector<std::pair<int, const PaletteItem*>> found;
  for (const PaletteItem& item : items_)
    if (const auto score = fuzzy_match(words, item.text)) found.emplace_back(*score, &item);
  if (!words.trimmed().isEmpty())
    std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  for (const auto& [score, item] : found)
    if (shown_.size() < most_shown) shown_.push_back(*item);
  shown_.insert(shown_.end(), refused.begin(), refused.end());
  list_->clear();
  for (const PaletteItem& item : shown_) {
    QString text = item.text;
    if (!item.detail.isEmpty()) text += "    " + item.detail;
    auto* const row = new QListWidgetItem(text + "    · " + item.group, list_);
    if (!item.can_run) row->setFlags(row->flags() & ~Qt::ItemIsEnabled);
  }
  list_->setCurrentRow(0);
}

void CommandPalette::run() {
  const int row = list_->currentRow();
  if (row < 0 || row >= std::ssize(shown_) || !shown_[static_cast<std::size_t>(row)].can_run) return;
  const std::function<void()> chosen = shown_[static_cast<std::size_t>(row)].run;
  hide();
  if (chosen) chosen();
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
