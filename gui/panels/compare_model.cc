#include "gui/panels/compare_model.h"

#include <QBrush>
#include <QFont>
#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <utility>

#include "base/number_text.h"

namespace spillway::gui {
namespace {

constexpr std::size_t most_kernels = 16;
constexpr double alike = 5e-4;  // relative: nothing changed

QString to_words(const std::string& text) { return QString::fromStdString(text); }

// Of a figure that is not 0 in the first column.
QString change_words(double before, double now) {
  const double part = now / before - 1;
  if (std::abs(part) < alike) return "=";
  return QString("%1 %2 %").arg(part > 0 ? "▲" : "▼").arg(std::abs(part) * 100, 0, 'f', std::abs(part) < 1 ? 1 : 0);
}

}  // namespace

void CompareModel::add_keys(std::vector<Row>& rows) const {
  std::vector<std::string> texts;
  for (const ComparedVariant& variant : variants_) texts.push_back(variant.text);
  const std::vector<ChangedKey> changed = changed_keys(texts);
  rows.push_back({Kind::section, tr("Changed keys"), tr("%1 differ").arg(changed.size()), {}, {}});
  for (const ChangedKey& key : changed) {
    Row row{Kind::key, to_words(key.key), {}, {}, {}};
    for (const auto& value : key.values)
      row.cells.push_back({value ? to_words(*value) : tr("not set"), {}, value == key.values.front() ? 0 : 2, 0, true});
    rows.push_back(std::move(row));
  }
}

void CompareModel::add_figures(std::vector<Row>& rows) const {
  struct Figure {
    const char* name;
    bool more_is_better;
    std::function<std::optional<double>(const VariantFigures&)> value;
  };
  const auto some = [](double value) { return value > 0 ? std::optional(value) : std::nullopt; };
  const auto of_memory = [](const VariantFigures& f, Bytes bytes) {
    return f.result.memory.known ? std::optional(in_gib(bytes)) : std::nullopt;
  };
  const std::vector<Figure> figures = {
      {QT_TR_NOOP("throughput, tokens/s"), true,
       [&](const VariantFigures& f) { return some(f.result.tokens_per_second); }},
      {QT_TR_NOOP("reserved, GiB"), false,
       [&](const VariantFigures& f) { return of_memory(f, f.result.memory.peak_reserved); }},
      {QT_TR_NOOP("allocated, GiB"), false,
       [&](const VariantFigures& f) { return of_memory(f, f.result.memory.peak_allocated); }},
      {QT_TR_NOOP("MFU, %"), true, [&](const VariantFigures& f) { return some(f.result.mfu * 100); }},
      {QT_TR_NOOP("written to drives, KiB a token"), false,
       [](const VariantFigures& f) {
         return f.written_bytes_per_token ? std::optional(*f.written_bytes_per_token / 1024) : std::nullopt;
       }},
      {QT_TR_NOOP("SSD life, years"), true, [](const VariantFigures& f) { return f.life_years(); }},
      {QT_TR_NOOP("tokens a step"), true,
       [&](const VariantFigures& f) { return some(static_cast<double>(f.tokens_per_step)); }},
      {QT_TR_NOOP("step time, ms"), false, [&](const VariantFigures& f) { return some(step_ms(f)); }},
  };
  rows.push_back({Kind::section,
                  tr("Figures"),
                  tr("green is better; a step of another size is not compared by its time"),
                  {},
                  {}});
  Row verdicts{Kind::key, tr("verdict"), {}, {}, {}}, bound{Kind::key, tr("limited by"), {}, {}, {}};
  for (const ComparedVariant& variant : variants_) {
    const VariantFigures* const now = variant.figures.get();
    const Verdict is = now == nullptr ? Verdict::unknown : now->result.answer();
    const int good = is == Verdict::does_not_fit ? -1 : is == Verdict::fits ? 1 : 0;
    verdicts.cells.push_back(
        {now == nullptr ? tr("not replayed yet") : to_words(now->verdict), {}, good, 0, now != nullptr});
    const bool has_times = now != nullptr && step_ms(*now) > 0;
    bound.cells.push_back(
        {has_times ? to_words(std::string(describe(now->result.binding))) : tr("not known"), {}, 0, 0, now != nullptr});
  }
  rows.push_back(std::move(verdicts));
  rows.push_back(std::move(bound));
  const VariantFigures* const first = variants_.front().figures.get();
  for (const Figure& figure : figures) {
    Row row{Kind::figure, tr(figure.name), {}, {}, {}};
    const double before = first == nullptr ? 0 : figure.value(*first).value_or(0);
    bool any = false;
    for (const ComparedVariant& variant : variants_) {
      Cell cell;
      cell.text = tr("not known");
      if (variant.figures != nullptr)
        if (const auto known = figure.value(*variant.figures)) {
          cell.is_known = true;
          cell.value = *known;
          cell.text = to_words(number_text(cell.value));
        }
      any |= cell.is_known && cell.value != 0;
      const bool same_size =
          QString(figure.name) != "step time, ms" || (first != nullptr && variant.figures != nullptr &&
                                                      first->tokens_per_step == variant.figures->tokens_per_step);
      const bool compares = cell.is_known && before != 0 && same_size && &variant != &variants_.front();
      if (compares) {
        cell.change = change_words(before, cell.value);
        const double part = cell.value / before - 1;
        const bool says = QString(figure.name) != "tokens a step";
        if (says && std::abs(part) >= alike) cell.better = (part > 0) == figure.more_is_better ? 1 : -1;
      }
      row.cells.push_back(std::move(cell));
    }
    if (any) rows.push_back(std::move(row));
  }
}

void CompareModel::add_kernels(std::vector<Row>& rows) const {
  struct Named {
    std::string name;
    Token token = Token::unknown;
    double least = 0, most = 0;
  };
  std::map<std::string, Named> all;
  for (const ComparedVariant& variant : variants_) {
    if (variant.figures == nullptr) continue;
    for (const auto& [name, token] : variant.figures->kernel_tokens) all[name] = {name, token, 0, 0};
  }
  std::vector<Named> order;
  std::size_t same = 0;
  for (auto& [name, named] : all) {
    bool is_first = true;
    for (const ComparedVariant& variant : variants_) {
      if (variant.figures == nullptr) continue;
      const auto found = variant.figures->kernels.find(name);
      const double value = found == variant.figures->kernels.end() ? 0 : found->second;
      named.least = is_first ? value : std::min(named.least, value);
      named.most = is_first ? value : std::max(named.most, value);
      is_first = false;
    }
    if (named.most - named.least <= named.most * alike && variants_.size() > 1)
      ++same;
    else
      order.push_back(named);
  }
  const bool is_alone = variants_.size() == 1;
  std::stable_sort(order.begin(), order.end(), [is_alone](const Named& a, const Named& b) {
    return is_alone ? a.most > b.most : a.most - a.least > b.most - b.least;
  });
  const std::size_t more = order.size() - std::min(order.size(), most_kernels);
  order.resize(std::min(order.size(), most_kernels));
  if (order.empty() && same == 0) return;
  const bool per_token = std::all_of(variants_.begin(), variants_.end(), [](const ComparedVariant& variant) {
    return variant.figures == nullptr || variant.figures->tokens_per_step > 0;
  });
  rows.push_back({Kind::section,
                  per_token ? tr("Kernels, µs a token") : tr("Kernels, µs a step"),
                  is_alone ? tr("longest first; %1 shorter ones not shown").arg(more)
                           : tr("largest change first; %1 alike, %2 smaller ones not shown").arg(same).arg(more),
                  {},
                  {}});
  for (const Named& named : order) {
    Row row{Kind::bar, to_words(named.name), {}, named.token, {}};
    double before = 0;
    for (const ComparedVariant& variant : variants_) {
      Cell cell;
      cell.is_known = variant.figures != nullptr;
      if (cell.is_known) {
        const auto found = variant.figures->kernels.find(named.name);
        cell.value = found == variant.figures->kernels.end() ? 0 : found->second;
        cell.text = to_words(number_text(cell.value));
        if (&variant == &variants_.front())
          before = cell.value;
        else if (std::abs(cell.value - before) > alike * std::max(before, cell.value)) {
          cell.change = QString(cell.value > before ? "+%1" : "\u2212%1")
                            .arg(to_words(number_text(std::abs(cell.value - before))));
          cell.better = cell.value < before ? 1 : -1;
        }
      }
      row.cells.push_back(std::move(cell));
    }
    rows.push_back(std::move(row));
  }
}

void CompareModel::add_owners(std::vector<Row>& rows) const {
  std::vector<std::pair<std::string, Token>> owners;
  for (const ComparedVariant& variant : variants_) {
    if (variant.figures == nullptr) continue;
    for (std::size_t i = 0; i < variant.figures->owners.size(); ++i) {
      const std::string& name = variant.figures->owners[i].first;
      if (std::none_of(owners.begin(), owners.end(), [&](const auto& one) { return one.first == name; }))
        owners.emplace_back(name, variant.figures->owner_tokens[i]);
    }
  }
  if (owners.empty()) return;
  rows.push_back({Kind::section, tr("Memory at the peak, GiB by owner"), {}, {}, {}});
  for (const auto& [name, token] : owners) {
    Row row{Kind::bar, to_words(name), {}, token, {}};
    double before = 0;
    for (const ComparedVariant& variant : variants_) {
      Cell cell;
      cell.is_known = variant.figures != nullptr && !variant.figures->owners.empty();
      if (cell.is_known) {
        for (const auto& [owner, gib] : variant.figures->owners)
          if (owner == name) cell.value = gib;
        cell.text = QString::number(cell.value, 'f', 2);
        if (&variant == &variants_.front())
          before = cell.value;
        else if (std::abs(cell.value - before) >= 0.005) {
          cell.change =
              QString("%1%2").arg(cell.value > before ? "+" : "\u2212").arg(std::abs(cell.value - before), 0, 'f', 2);
          cell.better = cell.value < before ? 1 : -1;
        }
      }
      row.cells.push_back(std::move(cell));
    }
    rows.push_back(std::move(row));
  }
}

void CompareModel::show(std::vector<ComparedVariant> variants) {
  std::vector<Row> rows;
  const bool same_columns = variants.size() == variants_.size();
  if (!same_columns) beginResetModel();
  variants_ = std::move(variants);
  if (!variants_.empty()) {
    add_keys(rows);
    add_figures(rows);
    add_kernels(rows);
    add_owners(rows);
  }
  if (!same_columns) {
    rows_ = std::move(rows);
    return endResetModel();
  }
  const int before = static_cast<int>(rows_.size()), now = static_cast<int>(rows.size()), kept = std::min(before, now);
  if (before > now) beginRemoveRows({}, now, before - 1);
  if (before > now) rows_.resize(rows.size());
  if (before > now) endRemoveRows();
  for (int i = 0; i < kept; ++i) {
    Row& row = rows_[static_cast<std::size_t>(i)];
    if (row == rows[static_cast<std::size_t>(i)]) continue;
    row = std::move(rows[static_cast<std::size_t>(i)]);
    Q_EMIT dataChanged(index(i, 0), index(i, columnCount() - 1));
  }
  if (now > before) {
    beginInsertRows({}, before, now - 1);
    for (int i = before; i < now; ++i) rows_.push_back(std::move(rows[static_cast<std::size_t>(i)]));
    endInsertRows();
  }
  if (columnCount() > 0) Q_EMIT headerDataChanged(Qt::Horizontal, 0, columnCount() - 1);
}

void CompareModel::set_theme(const Theme& theme) {
  theme_ = &theme;
  if (!rows_.empty()) Q_EMIT dataChanged(index(0, 0), index(rowCount() - 1, columnCount() - 1));
}

bool CompareModel::is_section(int row) const {
  return row >= 0 && row < rowCount() && rows_[static_cast<std::size_t>(row)].kind == Kind::section;
}

int CompareModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(rows_.size());
}

int CompareModel::columnCount(const QModelIndex& parent) const {
  return parent.isValid() || variants_.empty() ? 0 : static_cast<int>(variants_.size()) + 1;
}

QVariant CompareModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const Row& row = rows_[static_cast<std::size_t>(index.row())];
  const bool is_name = index.column() == 0;
  if (row.kind == Kind::section) {
    if (role == Qt::DisplayRole) return is_name ? row.name + (row.note.isEmpty() ? "" : "   " + row.note) : QString();
    if (role == Qt::BackgroundRole) return QBrush((*theme_)[Token::sunken]);
    QFont bold;
    bold.setPixelSize(12);
    bold.setBold(true);
    if (role == Qt::FontRole) return bold;
    return {};
  }
  if (is_name) {
    if (role == Qt::DisplayRole || role == Qt::ToolTipRole) return row.name;
    if (role == Qt::DecorationRole && row.kind == Kind::bar) return (*theme_)[row.token];
    return {};
  }
  const Cell& cell = row.cells[static_cast<std::size_t>(index.column() - 1)];
  switch (role) {
    case Qt::DisplayRole:
    case Qt::ToolTipRole:
      return cell.change.isEmpty() ? cell.text : cell.text + "   " + cell.change;
    case Qt::AccessibleTextRole:
      return headerData(index.column(), Qt::Horizontal, Qt::DisplayRole).toString() + ", " + row.name + ": " +
             cell.text + (cell.change.isEmpty() ? "" : ", " + cell.change);
    case Qt::ForegroundRole:
      return QBrush(cell.is_known ? theme_->text : theme_->muted);
    case Qt::BackgroundRole:
      if (cell.better == 0) return {};
      return QBrush((*theme_)[cell.better == 2  ? Token::accent_surface
                              : cell.better > 0 ? Token::good_surface
                                                : Token::bad_surface]);
    case change_role:
      return cell.change;
    case better_role:
      return cell.better;
    case bar_role: {
      if (row.kind != Kind::bar || !cell.is_known) return {};
      // Of one variant its rows are compared with each other.
      int first = index.row(), last = first;
      if (variants_.size() == 1) {
        while (!is_section(first - 1)) --first;
        while (last + 1 < rowCount() && !is_section(last + 1)) ++last;
      }
      double most = 0;
      for (int i = first; i <= last; ++i)
        for (const Cell& other : rows_[static_cast<std::size_t>(i)].cells) most = std::max(most, other.value);
      return QVariantList{cell.value, row.cells.front().value, most, (*theme_)[row.token]};
    }
    default:
      return {};
  }
}

QVariant CompareModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal || role != Qt::DisplayRole || section > static_cast<int>(variants_.size()))
    return {};
  if (section == 0) return QString();
  return QString("%1  %2").arg(QChar('A' + section - 1)).arg(variants_[static_cast<std::size_t>(section - 1)].name);
}

}  // namespace spillway::gui
