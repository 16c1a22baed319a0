#include "gui/panels/variant_model.h"

#include <QBrush>
#include <QFont>
#include <QSize>
#include <algorithm>
#include <cmath>

#include "base/number_text.h"
#include "sim/replay/verdict_words.h"

namespace spillway::gui {

VariantModel::VariantModel(Session& session, QObject* parent)
    : QAbstractItemModel(parent), session_(session), theme_(&light_theme()) {
  update();
}

std::vector<int> VariantModel::children(int id) const {
  std::vector<int> found;
  for (const Node& node : shown_)
    if (node.parent == id) found.push_back(node.id);
  return found;
}

void VariantModel::update() {
  const auto still_there = [this](const Node& node) {
    const Variant* const variant = session_.variant(node.id);
    return variant != nullptr && variant->parent == node.parent;
  };
  // Those that went, the deepest first.
  for (std::size_t i = shown_.size(); i-- > 0;) {
    const Node gone = shown_[i];
    if (still_there(gone)) continue;
    const std::vector<int> siblings = children(gone.parent);
    const int row = static_cast<int>(std::find(siblings.begin(), siblings.end(), gone.id) - siblings.begin());
    beginRemoveRows(gone.parent < 0 ? QModelIndex() : index_of(gone.parent), row, row);
    shown_.erase(shown_.begin() + static_cast<std::ptrdiff_t>(i));
    endRemoveRows();
  }
  for (const auto& variant : session_.variants()) {
    const bool is_shown =
        std::any_of(shown_.begin(), shown_.end(), [&](const Node& node) { return node.id == variant->id; });
    if (is_shown) continue;
    const int row = static_cast<int>(children(variant->parent).size());
    beginInsertRows(variant->parent < 0 ? QModelIndex() : index_of(variant->parent), row, row);
    shown_.push_back({variant->id, variant->parent});
    endInsertRows();
  }
  for (const Node& node : shown_) {
    const QModelIndex at = index_of(node.id);
    Q_EMIT dataChanged(at, at.siblingAtColumn(columnCount() - 1));
  }
}

QModelIndex VariantModel::index_of(int id) const {
  const auto found = std::find_if(shown_.begin(), shown_.end(), [id](const Node& node) { return node.id == id; });
  if (found == shown_.end()) return {};
  const std::vector<int> siblings = children(found->parent);
  const auto row = std::find(siblings.begin(), siblings.end(), id) - siblings.begin();
  return createIndex(static_cast<int>(row), 0, static_cast<quintptr>(id));
}

int VariantModel::id_of(const QModelIndex& index) const {
  return index.isValid() ? static_cast<int>(index.internalId()) : -1;
}

QModelIndex VariantModel::index(int row, int column, const QModelIndex& parent) const {
  const std::vector<int> rows = children(id_of(parent));
  if (row < 0 || row >= std::ssize(rows) || column < 0 || column >= columnCount()) return {};
  return createIndex(row, column, static_cast<quintptr>(rows[static_cast<std::size_t>(row)]));
}

QModelIndex VariantModel::parent(const QModelIndex& index) const {
  const int id = id_of(index);
  const auto found = std::find_if(shown_.begin(), shown_.end(), [id](const Node& node) { return node.id == id; });
  return found == shown_.end() || found->parent < 0 ? QModelIndex() : index_of(found->parent);
}

int VariantModel::rowCount(const QModelIndex& parent) const {
  return parent.column() > 0 ? 0 : static_cast<int>(children(id_of(parent)).size());
}

int VariantModel::columnCount(const QModelIndex& /*parent*/) const { return 2; }

QVariant VariantModel::data(const QModelIndex& index, int role) const {
  const Variant* const variant = session_.variant(id_of(index));
  if (variant == nullptr) return {};
  const VariantFigures* const figures = variant->figures.get();
  const bool is_stale = figures == nullptr || figures->text != variant->document.text();
  const bool is_name = index.column() == 0;
  switch (role) {
    case Qt::DisplayRole:
      if (is_name) {
        const QString mark = is_stale ? "" : QString::fromStdString(figures->shape + " ");
        return mark + QString::fromStdString(variant->name) + (variant->document.is_changed() ? " *" : "");
      }
      if (figures == nullptr || figures->result.tokens_per_second <= 0) return QString("–");
      return QString::fromStdString(grouped_text(std::llround(figures->result.tokens_per_second)));
    case Qt::EditRole:
      return QString::fromStdString(variant->name);
    case Qt::ToolTipRole: {
      QString tip = QString::fromStdString(variant->name);
      if (figures != nullptr) tip += "\n" + QString::fromStdString(figures->verdict);
      if (variant->document.is_changed()) tip += "\n" + tr("has changes that are in no file");
      return tip;
    }
    case Qt::FontRole: {
      QFont font;
      font.setPixelSize(12);
      font.setBold(variant->id == session_.current());
      return font;
    }
    case Qt::ForegroundRole:
      return QBrush(is_stale && !is_name ? theme_->muted : theme_->text);
    case Qt::SizeHintRole:
      return QSize(10, 23);
    case Qt::TextAlignmentRole:
      return static_cast<int>((is_name ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter);
    default:
      return {};
  }
}

bool VariantModel::setData(const QModelIndex& index, const QVariant& value, int role) {
  const QString name = value.toString().trimmed();
  if (role != Qt::EditRole || index.column() != 0 || name.isEmpty()) return false;
  session_.rename(id_of(index), name.toStdString());
  return true;
}

Qt::ItemFlags VariantModel::flags(const QModelIndex& index) const {
  return QAbstractItemModel::flags(index) | (index.column() == 0 ? Qt::ItemIsEditable : Qt::NoItemFlags);
}

QVariant VariantModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal || role != Qt::DisplayRole) return {};
  return section == 0 ? tr("variant") : tr("tokens/s");
}

}  // namespace spillway::gui
