#include "gui/panels/ways_model.h"

#include <fmt/format.h>

#include <QFont>
#include <algorithm>
#include <cmath>
#include <utility>

#include "base/number_text.h"
#include "planners/offload/drive_life.h"

namespace spillway::gui {
namespace {

constexpr double gib = 1 << 30;
constexpr const char* minus = "\u2212";

int state_of(const studies::WayRow& row) { return row.works() ? 0 : row.is_yes() ? 1 : 2; }

bool before(const ShownWay& a, const ShownWay& b) {
  const int x = state_of(a.row), y = state_of(b.row);
  if (x != y) return x < y;
  return a.row.result.tokens_per_second > b.row.result.tokens_per_second;
}

QString gib_words(Bytes bytes) { return QString::number(static_cast<double>(bytes.count()) / gib, 'f', 2); }

// Shape and word, never colour alone.
QString state_words(const studies::WayRow& row) {
  if (!row.ran()) return QString::fromStdString("✖ " + row.error);
  if (row.works()) return "✔ fits";
  if (row.is_yes()) return "▲ tight";
  if (!row.result.drives_refuse.empty()) return "✖ drives";
  const std::string missing = row.shortage();
  return missing.empty() ? QString("✖ not known") : QString("✖ short of %1").arg(QString::fromStdString(missing));
}

}  // namespace

void WaysModel::clear(const Outcome& now) {
  beginResetModel();
  ways_.clear();
  left_out_.clear();
  now_ = {};
  now_.is_done = true;
  now_.result = now.result();
  now_.result.path.clear();
  now_.result.op_start.clear();
  now_.result.op_end.clear();
  if (const double years = shortest_life_years(now_.result); std::isfinite(years)) now_.life_years = years;
  now_text_ = now.scenario.text;
  seen_.clear();
  endResetModel();
}

void WaysModel::add(const ShownWay& way) {
  if (way.text == now_text_) {  // with its price
    now_.tokens_per_step = way.row.tokens_per_step;
    now_.usd_per_hour = way.row.usd_per_hour;
    if (rowCount() > 0) Q_EMIT dataChanged(index(0, 0), index(0, column_count - 1));
    return;
  }
  const Result& result = way.row.result;
  const std::string figures =
      way.row.ran() ? fmt::format("{} {} {}", result.step_time.count(), result.memory.peak_allocated.count(),
                                  result.memory.peak_reserved.count())
                    : way.row.way.name;
  if (!seen_.insert(way.text).second || !seen_.insert(figures).second) return;
  if (same_maths_ && way.changes_maths) {
    left_out_.push_back(way);
    return;
  }
  const auto at = std::upper_bound(ways_.begin(), ways_.end(), way, before);
  const int row = static_cast<int>(at - ways_.begin()) + 1;
  beginInsertRows({}, row, row);
  ways_.insert(at, way);
  endInsertRows();
}

void WaysModel::set_same_maths(bool wanted) {
  if (wanted == same_maths_) return;
  same_maths_ = wanted;
  if (!wanted) {
    for (const ShownWay& way : std::exchange(left_out_, {})) {
      const auto at = std::upper_bound(ways_.begin(), ways_.end(), way, before);
      const int row = static_cast<int>(at - ways_.begin()) + 1;
      beginInsertRows({}, row, row);
      ways_.insert(at, way);
      endInsertRows();
    }
    return;
  }
  for (int i = static_cast<int>(ways_.size()) - 1; i >= 0; --i) {
    const auto at = ways_.begin() + i;
    if (!at->changes_maths) continue;
    beginRemoveRows({}, i + 1, i + 1);
    left_out_.push_back(std::move(*at));
    ways_.erase(at);
    endRemoveRows();
  }
}

const ShownWay* WaysModel::way(int row) const {
  return row > 0 && row <= static_cast<int>(ways_.size()) ? &ways_[static_cast<std::size_t>(row - 1)] : nullptr;
}

std::size_t WaysModel::fitting() const {
  return static_cast<std::size_t>(
      std::count_if(ways_.begin(), ways_.end(), [](const ShownWay& way) { return way.row.works(); }));
}

int WaysModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() || now_text_.empty() ? 0 : static_cast<int>(ways_.size()) + 1;
}

int WaysModel::columnCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : column_count; }

const studies::WayRow& WaysModel::row_at(int row) const {
  const ShownWay* const found = way(row);
  return found == nullptr ? now_ : found->row;
}

QString WaysModel::text(const studies::WayRow& row, bool changes_maths, int column) const {
  const Result& result = row.result;
  const bool known = row.ran() && result.memory.known;
  switch (column) {
    case name: {
      const QString words = QString::fromStdString(row.way.name);
      return state_words(row) + "   " + (&row == &now_ ? QString("Now") : words);
    }
    case rate:
      return row.ran() && result.tokens_per_second > 0
                 ? QString::fromStdString(
                       grouped_text(static_cast<std::int64_t>(std::llround(result.tokens_per_second))))
                 : QString("not known");
    case change: {
      if (&row == &now_ || now_.result.tokens_per_second <= 0 || result.tokens_per_second <= 0) return {};
      const double part = (result.tokens_per_second / now_.result.tokens_per_second - 1) * 100;
      if (std::abs(part) < 0.05) return "0.0 %";
      return QString("%1 %2%3 %")
          .arg(QString(part > 0 ? "▲" : "▼"), QString(part > 0 ? "" : minus))
          .arg(std::abs(part), 0, 'f', 1);
    }
    case allocated:
      return known ? gib_words(result.memory.peak_allocated) : QString("not known");
    case reserved:
      return known ? gib_words(result.memory.peak_reserved) : QString("not known");
    case life:
      if (!row.ran()) return {};
      if (unrated_writes(result) != nullptr) return QString("not rated");
      return row.life_years ? QString::fromStdString(life_cell(result)) + " y" : QString("no wear");
    case cost: {
      const auto usd = row.ran() ? row.cost_per_million_tokens() : std::nullopt;
      return usd ? QString::number(*usd, 'g', 3) : QString("not known");
    }
    case maths:
      return changes_maths ? QString("differs") : QString("same");
    default:
      return {};
  }
}

QVariant WaysModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const studies::WayRow& row = row_at(index.row());
  const ShownWay* const shown = way(index.row());
  if (role == Qt::DisplayRole) return text(row, shown != nullptr && shown->changes_maths, index.column());
  if (role == Qt::ToolTipRole) {
    QString tip;
    for (const std::string& setting : row.way.settings) tip += QString::fromStdString(setting) + "\n";
    return tip.isEmpty() ? text(row, false, name) : tip.trimmed();
  }
  if (role == Qt::TextAlignmentRole) {
    const bool is_figure = index.column() >= rate && index.column() <= cost;
    return QVariant::fromValue(int(Qt::AlignVCenter | (is_figure ? Qt::AlignRight : Qt::AlignLeft)));
  }
  if (role == Qt::FontRole && (index.column() == rate || index.row() == 0)) {
    QFont font;
    font.setBold(true);
    return font;
  }
  if (role == bar_role && row.ran() && row.result.memory.known)
    return QVariantList{static_cast<double>(row.result.memory.peak_allocated.count()) / gib,
                        static_cast<double>(row.result.memory.peak_reserved.count()) / gib,
                        static_cast<double>(row.result.memory.capacity.count()) / gib, state_of(row)};
  return {};
}

QVariant WaysModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal || role != Qt::DisplayRole) return {};
  static const QStringList words = {tr("way"),      tr("memory"),         tr("tokens/s"),
                                    tr("change"),   tr("allocated, GiB"), tr("reserved, GiB"),
                                    tr("SSD life"), tr("$/Mtoken"),       tr("maths")};
  return section < words.size() ? QVariant(words[section]) : QVariant();
}

}  // namespace spillway::gui
