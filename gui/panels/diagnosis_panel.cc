#include "gui/panels/diagnosis_panel.h"

#include <fmt/format.h>

#include <QHeaderView>
#include <QLabel>
#include <QStandardItemModel>
#include <QTreeView>
#include <QVBoxLayout>
#include <algorithm>
#include <utility>

#include "base/number_text.h"
#include "base/short_text.h"

namespace spillway::gui {
namespace {

constexpr int kind_role = Qt::UserRole, name_role = Qt::UserRole + 1, begin_role = Qt::UserRole + 2;
constexpr int column_count = 6;
enum Column : int { what, time, share, idle, times, gain };

QString words(const std::string& text) { return QString::fromStdString(text); }
QString ms(Picos time) { return words(fmt::format("{:.3f}", to_seconds(time) * 1e3)); }
QString part(Picos time, Picos whole) {
  return whole > Picos(0) ? words(percent_text(to_seconds(time) / to_seconds(whole))) : QString();
}

using Cells = QList<QStandardItem*>;

Cells row(QStandardItem* under, const std::string& name, DiagnosedPlace::Kind kind, const std::string& place) {
  Cells cells;
  for (int column = 0; column < column_count; ++column) {
    auto* const cell = new QStandardItem;
    cell->setEditable(false);
    if (column > what) cell->setTextAlignment(Qt::AlignRight | Qt::AlignVCenter);
    cells.append(cell);
  }
  cells[what]->setText(words(name));
  cells[what]->setToolTip(words(name));
  cells[what]->setData(static_cast<int>(kind), kind_role);
  cells[what]->setData(words(place), name_role);
  under->appendRow(cells);
  return cells;
}

// As it is recorded: "DataLoader: enumerate(...)" is told with what it is.
std::string recorded_name(const std::string& name) {
  for (const std::string_view prefix : {"DataLoader: ", "item(): "})
    if (name.starts_with(prefix)) return name.substr(prefix.size());
  return name;
}

// "without the host's time in X": X; "without X": X.
DiagnosedPlace place_of_relief(const std::string& words_of) {
  constexpr std::string_view host = "without the host's time in ", other = "without ";
  if (words_of.starts_with(host)) return {DiagnosedPlace::Kind::host, recorded_name(words_of.substr(host.size())), 0};
  if (words_of.starts_with("without the waits")) return {};
  return {DiagnosedPlace::Kind::work, words_of.substr(other.size()), 0};
}

}  // namespace

DiagnosisPanel::DiagnosisPanel() : title_(new QLabel), rows_(new QTreeView), model_(new QStandardItemModel(this)) {
  title_->setContentsMargins(8, 4, 8, 2);
  title_->setWordWrap(true);
  rows_->setAccessibleName(tr("Diagnosis"));
  model_->setHorizontalHeaderLabels(
      {tr("what"), tr("ms"), tr("share"), tr("GPU idle ms"), tr("times"), tr("would give")});
  rows_->setModel(model_);
  rows_->setEditTriggers(QAbstractItemView::NoEditTriggers);
  rows_->setAlternatingRowColors(true);
  rows_->setUniformRowHeights(true);
  rows_->header()->setStretchLastSection(false);
  rows_->header()->setSectionResizeMode(what, QHeaderView::Stretch);
  for (int column = time; column < column_count; ++column) {
    rows_->header()->resizeSection(column, column == time ? 124 : 92);
    model_->horizontalHeaderItem(column)->setTextAlignment(Qt::AlignRight | Qt::AlignVCenter);
  }
  auto* const column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  column->addWidget(title_);
  column->addWidget(rows_, 1);
  QObject::connect(rows_, &QTreeView::clicked, this, [this](const QModelIndex& at) { choose(at); });
  QObject::connect(rows_, &QTreeView::activated, this, [this](const QModelIndex& at) { choose(at); });
  diagnoser_.on_found = [this](std::shared_ptr<const Diagnosed> found) {
    diagnosed_ = std::move(found);
    fill();
    if (on_found) on_found();
  };
  diagnoser_.on_failed = [this](const SimulationError& error) {
    title_->setText(words(error.title + ". " + error.remedy));
    if (on_found) on_found();
  };
}

void DiagnosisPanel::set_theme(const Theme& theme) { title_->setStyleSheet("color: " + theme.muted.name()); }

bool DiagnosisPanel::is_capture() const { return outcome_ != nullptr && !outcome_->loaded.scenario.trace.empty(); }

void DiagnosisPanel::show(std::shared_ptr<const Outcome> outcome) {
  diagnoser_.stop();
  outcome_ = std::move(outcome);
  diagnosed_ = nullptr;
  searched_ = false;
  model_->removeRows(0, model_->rowCount());
  title_->setText(is_capture() ? tr("Not looked for yet.")
                               : tr("A generated step has no host to diagnose: Sensitivity says what limits it. Open a "
                                    "capture or a memory snapshot."));
}

void DiagnosisPanel::search() {
  if (searched_ || outcome_ == nullptr) return;
  searched_ = true;
  if (is_capture()) title_->setText(tr("Looking for what made it so: one replay for each of the largest…"));
  diagnoser_.start(outcome_);
}

void DiagnosisPanel::stop() {
  if (diagnoser_.is_running()) searched_ = false;
  diagnoser_.stop();
}

QStandardItem* DiagnosisPanel::section(const QString& title, const QString& detail) {
  auto* const item = new QStandardItem(detail.isEmpty() ? title : title + " – " + detail);
  item->setEditable(false);
  QFont bold = rows_->font();
  bold.setBold(true);
  item->setFont(bold);
  model_->appendRow(item);
  rows_->setFirstColumnSpanned(model_->rowCount() - 1, {}, true);
  return item;
}

void DiagnosisPanel::fill() {
  model_->removeRows(0, model_->rowCount());
  if (diagnosed_->step)
    fill_step(*diagnosed_->step);
  else if (diagnosed_->memory)
    fill_memory(*diagnosed_->memory);
  else if (is_capture())
    title_->setText(tr("The what-if is not the step that was recorded: Sensitivity says what limits it."));
  rows_->expandAll();
}

void DiagnosisPanel::fill_step(const studies::StepDiagnosis& found) {
  title_->setText(
      tr("Recorded %1 ms: host calls or GPU work in %2, GPU work in %3 (%4). A click goes to the longest.")
          .arg(ms(found.recorded), ms(found.active), ms(found.gpu_busy), part(found.gpu_busy, found.recorded)));
  constexpr double least_gain = 0.0005;  // less is shown as 0.0 %
  const bool gives = std::any_of(found.reliefs.begin(), found.reliefs.end(),
                                 [](const studies::Relief& relief) { return relief.gain >= least_gain; });
  if (gives) {
    QStandardItem* const under = section(tr("What relaxing each would give"), tr("a replay each, all else as it was"));
    for (const studies::Relief& relief : found.reliefs) {
      if (relief.gain < least_gain) continue;
      const DiagnosedPlace place = place_of_relief(relief.what);
      const Cells cells = row(under, relief.what, place.kind, place.name);
      cells[time]->setText(tr("step %1").arg(ms(relief.step_time)));
      cells[gain]->setText(words(percent_text(relief.gain)));
    }
  }
  const auto add = [&](const QString& title, const std::vector<studies::DiagnosisRow>& rows,
                       DiagnosedPlace::Kind kind) {
    if (rows.empty()) return;
    QStandardItem* const under = section(title, {});
    for (const studies::DiagnosisRow& of : rows) {
      const Cells cells = row(under, of.name, kind, recorded_name(of.name));
      cells[time]->setText(ms(of.time));
      cells[share]->setText(part(of.time, found.recorded));
      if (of.gpu_idle > Picos(0)) cells[idle]->setText(ms(of.gpu_idle));
      cells[times]->setText(QString::number(of.count));
    }
  };
  add(tr("The host, by what it did while the GPU was idle"), found.host, DiagnosedPlace::Kind::host);
  add(tr("Python's own time"), found.frames, DiagnosedPlace::Kind::none);
  add(tr("Kernels"), found.kernels, DiagnosedPlace::Kind::work);
  add(tr("Operators, by the GPU time they launched"), found.operators, DiagnosedPlace::Kind::operators);
  add(tr("Modules, by the GPU time they launched"), found.modules, DiagnosedPlace::Kind::none);
  if (!found.collectives.empty()) {
    QStandardItem* const under = section(tr("Collectives"), tr("“GPU idle” is their estimated waiting"));
    for (const studies::CollectiveRow& of : found.collectives) {
      const Cells cells = row(under, of.name, DiagnosedPlace::Kind::work, of.name);
      cells[time]->setText(ms(of.time));
      cells[share]->setText(part(of.time, found.recorded));
      cells[idle]->setText(ms(of.wait));
      cells[times]->setText(QString::number(of.count));
    }
  }
  if (found.stretches.empty()) return;
  QStandardItem* const under =
      section(tr("Launch-bound"),
              tr("%1 ms of works that begin as soon as the host launches them").arg(ms(found.launch_bound)));
  for (const studies::LaunchBoundStretch& of : found.stretches) {
    const Cells cells = row(under, "from " + of.where, DiagnosedPlace::Kind::stretch, of.where);
    cells[what]->setData(static_cast<qlonglong>(of.begin.count()), begin_role);
    cells[time]->setText(ms(of.length));
    cells[share]->setText(part(of.length, found.recorded));
    cells[idle]->setText(ms(of.length - of.busy));
    cells[times]->setText(QString::number(of.works));
  }
}

void DiagnosisPanel::fill_memory(const studies::MemoryDiagnosis& found) {
  const QString alive = words(short_size(found.alive));
  title_->setText(found.ran_out ? tr("%1 were alive when an allocation failed.").arg(alive)
                                : tr("No allocation failed; %1 were alive when most was.").arg(alive));
  if (found.ran_out) {
    const studies::RanOut& out = *found.ran_out;
    QStandardItem* const under = section(tr("What made it run out"), {});
    const auto fact = [&](const QString& text) { row(under, text.toStdString(), DiagnosedPlace::Kind::none, {}); };
    fact(tr("%1 asked for at %2").arg(words(short_size(out.asked)), words(out.place)));
    fact(tr("%1 allocated of %2 reserved; %3 cached, the largest piece it may use %4")
             .arg(words(short_size(out.allocated)), words(short_size(out.reserved)), words(short_size(out.cached)),
                  words(short_size(out.largest_free))));
    fact(words(out.why));
    QStandardItem* const others = section(tr("What would have fitted"), {});
    for (const studies::OtherAllocator& other : out.others)
      row(others,
          fmt::format("{}: {}, {} reserved", other.serves ? "yes" : "no", other.name, short_size(other.reserved)),
          DiagnosedPlace::Kind::none, {});
  }
  if (!found.has_stacks) {
    section(tr("No call stacks were recorded"), tr("torch.cuda.memory._record_memory_history() records them"));
    return;
  }
  const auto add = [&](const QString& title, const std::vector<studies::MemoryHolder>& holders) {
    QStandardItem* const under = section(title, {});
    constexpr std::size_t most = 12;
    for (std::size_t i = 0; i < std::min(holders.size(), most); ++i) {
      const double of = found.alive > Bytes(0)
                            ? static_cast<double>(holders[i].bytes.count()) / static_cast<double>(found.alive.count())
                            : 0;
      const Cells cells = row(under, fmt::format("{}  {}", short_size(holders[i].bytes), holders[i].name),
                              DiagnosedPlace::Kind::none, {});
      cells[share]->setText(words(percent_text(of)));
      cells[times]->setText(QString::number(holders[i].blocks));
    }
  };
  add(tr("By the program's own line"), found.places);
  add(tr("By forward() of a module"), found.modules);
  add(tr("By phase"), found.phases);
}

void DiagnosisPanel::choose(const QModelIndex& at) {
  const QModelIndex cell = at.siblingAtColumn(what);
  const auto kind = static_cast<DiagnosedPlace::Kind>(cell.data(kind_role).toInt());
  if (kind == DiagnosedPlace::Kind::none || !on_go) return;
  on_go({kind, cell.data(name_role).toString().toStdString(), cell.data(begin_role).toLongLong()});
}

}  // namespace spillway::gui
