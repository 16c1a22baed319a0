#include "gui/panels/holders_panel.h"

#include <QComboBox>
#include <QFocusEvent>
#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>
#include <QSignalBlocker>
#include <QVBoxLayout>
#include <algorithm>
#include <utility>

#include "base/short_text.h"

namespace spillway::gui {
namespace {

enum By : int { owner, line, module, calls };

}  // namespace

HoldersPanel::HoldersPanel()
    : view_(new HeldView),
      by_(new QComboBox),
      treemap_(new QPushButton(tr("Treemap"))),
      flames_(new QPushButton(tr("Flame graph"))),
      hover_(new QLabel) {
  by_->setAccessibleName(tr("What memory is held by"));
  for (QPushButton* const button : {treemap_, flames_}) button->setCheckable(true);
  treemap_->setChecked(true);
  auto* const tools = new QHBoxLayout;
  tools->setContentsMargins(8, 4, 8, 4);
  tools->setSpacing(4);
  tools->addWidget(by_);
  tools->addSpacing(8);
  tools->addWidget(treemap_);
  tools->addWidget(flames_);
  tools->addStretch(1);
  tools->addWidget(hover_);
  auto* const column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  column->addLayout(tools);
  column->addWidget(view_, 1);
  QObject::connect(by_, &QComboBox::currentIndexChanged, this, [this] { arrange(); });
  QObject::connect(treemap_, &QPushButton::clicked, this, [this] { set_shape(HeldShape::treemap); });
  QObject::connect(flames_, &QPushButton::clicked, this, [this] { set_shape(HeldShape::flame); });
  view_->on_block = [this](std::int64_t block) {
    if (on_block) on_block(block);
  };
}

// No focus proxy: Tab into a page that has one goes past what stands before it.
void HoldersPanel::focusInEvent(QFocusEvent* event) { view_->setFocus(event->reason()); }

void HoldersPanel::set_theme(const Theme& theme) {
  view_->set_theme(theme);
  hover_->setStyleSheet("color: " + theme.muted.name());
}

void HoldersPanel::set_shape(HeldShape shape) {
  treemap_->setChecked(shape == HeldShape::treemap);
  flames_->setChecked(shape == HeldShape::flame);
  view_->set_shape(shape);
  const int stacks = by_->findData(calls);
  if (shape == HeldShape::flame && stacks >= 0) by_->setCurrentIndex(stacks);
}

void HoldersPanel::show(std::shared_ptr<const Outcome> outcome, std::shared_ptr<const MemoryScene> memory,
                        std::optional<std::int64_t> at) {
  if (outcome != outcome_) diagnosed_ = nullptr;
  outcome_ = std::move(outcome);
  memory_ = std::move(memory);
  at_ = at;
  is_arranged_ = false;
  if (isVisible()) arrange();
}

void HoldersPanel::show_diagnosis(std::shared_ptr<const Diagnosed> diagnosed) {
  diagnosed_ = std::move(diagnosed);
  is_arranged_ = false;
  if (isVisible()) arrange();
}

void HoldersPanel::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  if (!is_arranged_) arrange();
}

void HoldersPanel::arrange() {
  is_arranged_ = true;
  const studies::MemoryDiagnosis* const stacks =
      diagnosed_ != nullptr && diagnosed_->memory && diagnosed_->memory->has_stacks ? &*diagnosed_->memory : nullptr;
  {
    const QSignalBlocker quiet(by_);
    const int wanted = by_->currentData().isValid() ? by_->currentData().toInt() : -1;
    const bool had_stacks = by_->count() > 1;
    by_->clear();
    if (stacks != nullptr) {
      by_->addItem(tr("by line of the program"), line);
      by_->addItem(tr("by module"), module);
      by_->addItem(tr("by call stack"), calls);
    }
    by_->addItem(tr("by owner, layer and tensor"), owner);
    const int again = by_->findData(wanted);
    // Flames are of calls, until another is chosen.
    const int first = std::max(0, by_->findData(view_->shape() == HeldShape::flame ? calls : line));
    by_->setCurrentIndex(again >= 0 && had_stacks == (stacks != nullptr) ? again : first);
  }
  if (outcome_ == nullptr || memory_ == nullptr)
    return view_->show_tree(nullptr, tr("The memory of this step is not known."));
  const auto tree = [&](studies::HeldNode node) { return std::make_shared<const studies::HeldNode>(std::move(node)); };
  const auto said = [](Bytes bytes) { return QString::fromStdString(short_size(bytes)); };
  const int by = by_->currentData().toInt();
  if (stacks != nullptr && by != owner) {
    const QString when = stacks->ran_out ? tr("%1 alive when an allocation failed") : tr("%1 alive when most was");
    view_->show_tree(tree(by == line     ? studies::held_by_line(*stacks)
                          : by == module ? studies::held_by_module(*stacks)
                                         : studies::held_by_stack(*stacks)),
                     when.arg(said(stacks->alive)));
    return;
  }
  const std::int64_t at = at_.value_or(memory_->owners.time_of_peak());
  studies::HeldNode node = studies::held_by_owner(outcome_->trace(), memory_->picture, at);
  const QString when =
      QString::fromStdString(memory_->picture.timed ? short_duration(to_seconds(Picos(at))) : time_text(at, false));
  const QString words = at_ ? tr("%1 alive at %2, where the selection begins").arg(said(node.bytes), when)
                            : tr("%1 alive at the peak, %2").arg(said(node.bytes), when);
  view_->show_tree(tree(std::move(node)), words);
}

}  // namespace spillway::gui
