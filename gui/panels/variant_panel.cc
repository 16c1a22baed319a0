#include "gui/panels/variant_panel.h"

#include <QHBoxLayout>
#include <QHeaderView>
#include <QItemSelectionModel>
#include <QLabel>
#include <QPushButton>
#include <QTreeView>
#include <QUndoView>
#include <QVBoxLayout>
#include <algorithm>

namespace spillway::gui {
namespace {

constexpr int least_rows = 2, most_rows = 6, row_height = 24;

}  // namespace

VariantPanel::VariantPanel(Session& session) : session_(session), model_(session), tree_(new QTreeView) {
  tree_->setAccessibleName(tr("Variants"));
  tree_->setModel(&model_);
  tree_->setHeaderHidden(true);
  tree_->setRootIsDecorated(false);
  tree_->setIndentation(14);
  tree_->setUniformRowHeights(true);
  tree_->setEditTriggers(QAbstractItemView::EditKeyPressed);
  tree_->setSelectionBehavior(QAbstractItemView::SelectRows);
  tree_->setVerticalScrollMode(QAbstractItemView::ScrollPerPixel);
  tree_->header()->setStretchLastSection(false);
  tree_->header()->setMinimumSectionSize(40);
  tree_->header()->setSectionResizeMode(0, QHeaderView::Stretch);
  tree_->header()->setSectionResizeMode(1, QHeaderView::ResizeToContents);
  QObject::connect(tree_, &QTreeView::clicked, this,
                   [this](const QModelIndex& index) { session_.switch_to(model_.id_of(index)); });
  QObject::connect(tree_, &QTreeView::activated, this,
                   [this](const QModelIndex& index) { session_.switch_to(model_.id_of(index)); });
  auto* const add = new QPushButton(tr("New"));
  add->setObjectName("new variant");
  add->setToolTip(tr("Another variant of this one (V); F2 gives it a name"));
  QObject::connect(add, &QPushButton::clicked, this, [this] { session_.branch({}); });
  auto* const head = new QHBoxLayout;
  head->setContentsMargins(8, 4, 8, 2);
  auto* const title = new QLabel(tr("Variants"));
  QFont bold = title->font();
  bold.setPixelSize(12);
  bold.setBold(true);
  title->setFont(bold);
  head->addWidget(title);
  head->addStretch(1);
  head->addWidget(add);
  auto* const column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  column->addLayout(head);
  column->addWidget(tree_);
  update_variants();
}

void VariantPanel::update_variants() {
  model_.update();
  tree_->expandAll();
  const QModelIndex now = model_.index_of(session_.current());
  if (now.isValid() && tree_->currentIndex() != now) tree_->setCurrentIndex(now);
  const int rows = std::clamp(static_cast<int>(session_.variants().size()), least_rows, most_rows);
  tree_->setFixedHeight(rows * row_height + 6);
}

void VariantPanel::set_theme(const Theme& theme) {
  model_.set_theme(theme);
  tree_->viewport()->update();
}

void VariantPanel::rename_current() {
  tree_->setFocus();
  const QModelIndex now = model_.index_of(session_.current());
  if (now.isValid()) tree_->edit(now);
}

QUndoView* history_view(Session& session) {
  auto* const view = new QUndoView(&session.history());
  view->setAccessibleName(VariantPanel::tr("History of this variant"));
  view->setEmptyLabel(VariantPanel::tr("as opened"));
  return view;
}

}  // namespace spillway::gui
