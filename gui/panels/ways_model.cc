#include "gui/panels/ways_model.h"

#include <fmt/format.h>

#include <QFont>
#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

#include "base/number_text.h"
#include "planners/offload/drive_life.h"
#include "studies/offload/result_figures.h"

namespace spillway::gui {
namespace {

constexpr double one_gib = 1 << 30;
constexpr const char* minus = "\u2212";

int state_of(const studies::Row& row) { return row.works() ? 0 : row.is_yes() ? 1 : 2; }

// Less is better.
double rank_of(const studies::Row& row, WaysOrder order) {
  constexpr double unknown = std::numeric_limits<double>::infinity();
  if (!row.ran()) return unknown;
  switch (order) {
    case WaysOrder::cheapest:
      return row.cost_per_million_tokens().value_or(unknown);
    case WaysOrder::fewest_keys:
      return static_cast<double>(row.candidate.edits.size());
    case WaysOrder::least_memory:
      return row.result.memory.known ? static_cast<double>(row.result.memory.peak_reserved.count()) : unknown;
    case WaysOrder::longest_life:
      if (unrated_writes(row.result) != nullptr) return unknown;
      return row.life_years() ? -*row.life_years() : -std::numeric_limits<double>::max();  // nothing wears
    case WaysOrder::fastest:
      break;
  }
  return -row.result.tokens_per_second;
}

// The order of rows: other numerics behind the same training, in every order.
struct Before {
  WaysOrder order;
  bool operator()(const ShownWay& a, const ShownWay& b) const {
    const auto key = [this](const ShownWay& way) {
      return std::tuple(state_of(way.row), way.changes_maths, rank_of(way.row, order),
                        -way.row.result.tokens_per_second);
    };
    return key(a) < key(b);
  }
};

// "−9 to +12 %": measured over predicted, of 80 % of steps like it.
QString range_words(const FigureRange& range) {
  if (!range.known) return WaysModel::tr("not known");
  const auto part = [](double factor) {
    const double percent = std::abs(factor - 1) * 100;
    return QString("%1%2").arg(factor < 1 ? QString(minus) : QString("+")).arg(percent, 0, 'f', percent < 9.95 ? 1 : 0);
  };
  return WaysModel::tr("%1 to %2 %").arg(part(range.low), part(range.high));
}

QString joined(const std::vector<std::string>& settings, const QString& between) {
  QStringList words;
  for (const std::string& setting : settings) words += QString::fromStdString(setting);
  return words.join(between);
}

QString gib_words(Bytes bytes) { return QString::number(static_cast<double>(bytes.count()) / one_gib, 'f', 2); }

// Shape and word, never colour alone.
QString state_words(const studies::Row& row) {
  if (!row.ran()) return QString::fromStdString("✖ " + row.error);
  const bool is_short = !row.result.may_fit();
  return QString::fromStdString(is_short ? "✖ short of " + row.shortage() : verdict_mark(row.result));
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
  now_text_ = now.scenario.text;
  seen_.clear();
  endResetModel();
}

void WaysModel::add(const ShownWay& way) {
  if (way.text == now_text_) {  // with its price
    now_.tokens_per_step = way.row.tokens_per_step;
    now_.rates = way.row.rates;
    if (rowCount() > 0) Q_EMIT dataChanged(index(0, 0), index(0, column_count - 1));
    return;
  }
  const Result& result = way.row.result;
  const std::string figures =
      way.row.ran() ? fmt::format("{} {} {}", result.step_time.count(), result.memory.peak_allocated.count(),
                                  result.memory.peak_reserved.count())
                    : way.row.candidate.name;
  if (!seen_.insert(way.text).second || !seen_.insert(figures).second) return;
  if (same_maths_ && way.changes_maths) {
    left_out_.push_back(way);
    return;
  }
  insert(way);
}

void WaysModel::insert(const ShownWay& way) {
  const auto at = std::upper_bound(ways_.begin(), ways_.end(), way, Before{order_});
  const int row = static_cast<int>(at - ways_.begin()) + 1;
  beginInsertRows({}, row, row);
  ways_.insert(at, way);
  endInsertRows();
}

void WaysModel::set_order(WaysOrder order) {
  if (order == order_) return;
  Q_EMIT layoutAboutToBeChanged();
  order_ = order;
  std::vector<std::string> old;
  for (const ShownWay& one : ways_) old.push_back(one.text);
  std::stable_sort(ways_.begin(), ways_.end(), Before{order_});
  const QModelIndexList places = persistentIndexList();
  for (const QModelIndex& place : places) {
    if (place.row() == 0) continue;
    const std::string& text = old[static_cast<std::size_t>(place.row() - 1)];
    const auto now = std::find_if(ways_.begin(), ways_.end(), [&](const ShownWay& one) { return one.text == text; });
    changePersistentIndex(place, index(static_cast<int>(now - ways_.begin()) + 1, place.column()));
  }
  Q_EMIT layoutChanged();
}

void WaysModel::set_same_maths(bool wanted) {
  if (wanted == same_maths_) return;
  same_maths_ = wanted;
  if (!wanted) {
    for (const ShownWay& way : std::exchange(left_out_, {})) insert(way);
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

const studies::Row& WaysModel::row_at(int row) const {
  const ShownWay* const found = way(row);
  return found == nullptr ? now_ : found->row;
}

QString WaysModel::text(const studies::Row& row, bool changes_maths, int column) const {
  const Result& result = row.result;
  const bool known = row.ran() && result.memory.known;
  switch (column) {
    case name: {
      const QString words = QString::fromStdString(row.candidate.name);
      return state_words(row) + "   " + (&row == &now_ ? QString("Now") : words);
    }
    case keys:
      return joined(row.candidate.edits, ", ");
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
      return row.life_years() ? QString::fromStdString(life_cell(result)) + " y" : QString("no wear");
    case cost: {
      const auto usd = row.ran() ? row.cost_per_million_tokens() : std::nullopt;
      return usd ? QString::number(*usd, 'g', 3) : QString("not known");
    }
    case range:
      return row.ran() ? range_words(result.step_time_range) : QString();
    case maths:
      return changes_maths ? QString("differs") : QString("same");
    default:
      return {};
  }
}

QVariant WaysModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const studies::Row& row = row_at(index.row());
  const ShownWay* const shown = way(index.row());
  if (role == Qt::DisplayRole) return text(row, shown != nullptr && shown->changes_maths, index.column());
  if (role == Qt::ToolTipRole) {
    if (index.column() == range && row.ran())
      return tr("step time of 80 % of steps like it: %1").arg(QString::fromStdString(step_range_words(row.result)));
    const QString words = text(row, false, name), settings = joined(row.candidate.edits, "\n");
    return settings.isEmpty() ? words : words + "\n" + settings;
  }
  if (role == Qt::TextAlignmentRole) {
    const bool is_figure = index.column() >= rate && index.column() <= range;
    return QVariant::fromValue(int(Qt::AlignVCenter | (is_figure ? Qt::AlignRight : Qt::AlignLeft)));
  }
  if (role == Qt::FontRole && (index.column() == rate || index.row() == 0)) {
    QFont font;
    font.setBold(true);
    return font;
  }
  if (role == bar_role && row.ran() && row.result.memory.known)
    return QVariantList{static_cast<double>(row.result.memory.peak_allocated.count()) / one_gib,
                        static_cast<double>(row.result.memory.peak_reserved.count()) / one_gib,
                        static_cast<double>(row.result.memory.capacity.count()) / one_gib, state_of(row)};
  return {};
}

QVariant WaysModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal || role != Qt::DisplayRole) return {};
  static const QStringList words = {tr("way"),      tr("what it changes"), tr("GiB"),      tr("tokens/s"),
                                    tr("change"),   tr("allocated"),       tr("reserved"), tr("SSD life"),
                                    tr("$/Mtoken"), tr("80 % of steps"),   tr("maths")};
  const Bytes capacity = now_.result.memory.capacity;
  if (section == memory && capacity > Bytes(0)) return tr("of %1 GiB").arg(gib_words(capacity));
  return section < words.size() ? QVariant(words[section]) : QVariant();
}

}  // namespace spillway::gui
