// The window's tables: what lies in the selected range, of the view that is shown.
#include <QComboBox>
#include <QHeaderView>
#include <QLabel>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QScrollBar>
#include <QSortFilterProxyModel>
#include <QTabWidget>
#include <QTableView>
#include <algorithm>
#include <tuple>

#include "base/short_text.h"
#include "gui/app/main_window.h"
#include "gui/panels/answer_view.h"
#include "gui/panels/compare_view.h"
#include "gui/panels/diagnosis_panel.h"
#include "gui/panels/holders_panel.h"
#include "gui/panels/message_bar.h"
#include "gui/panels/sweep_view.h"
#include "gui/plots/canvas_view.h"
#include "gui/plots/charts.h"
#include "gui/plots/table_model.h"
#include "studies/answer/answer.h"
#include "studies/diagnosis/memory_diagnosis.h"

namespace spillway::gui {
namespace {

constexpr std::size_t most_allocations = 5'000;

QString words(const std::string& text) { return QString::fromStdString(text); }
TableCell time_cell(std::int64_t picos, bool timed = true) {
  return number_cell(words(time_text(picos, timed)), static_cast<double>(picos));
}
TableCell share_cell(std::optional<double> share) {
  return share ? number_cell(QString("%1 %").arg(*share * 100, 0, 'f', 1), *share) : TableCell{"?", {}};
}
TableCell bytes_cell(std::int64_t bytes) {
  return number_cell(words(short_size(Bytes(bytes))), static_cast<double>(bytes));
}

// Of the step, also where a part of it is drawn.
std::int64_t whole_length(const Outcome& outcome) {
  return std::max(outcome.timeline.whole.length(), outcome.result().replayed.count());
}

// What is on the canvas: of several parts the last.
QString whole_words(const Outcome& outcome) {
  const std::vector<PhaseResult>& phases = outcome.result().phases;
  return phases.empty() ? MainWindow::tr("the whole step") : MainWindow::tr("the %1").arg(words(phases.back().name));
}

}  // namespace

// Work by name; everything when nothing is selected.
TableRows MainWindow::work_table() const {
  TableRows rows;
  rows.headings = {tr("work"),  tr("lane"),  tr("phase"),   tr("count"),
                   tr("total"), tr("share"), tr("longest"), tr("bytes")};
  const TimeRange range = time_.selection().value_or(time_.whole());
  const bool is_part = time_.selection().has_value();
  const bool by_order = canvas_->axis() == MemoryClock::program;
  const TimelineScene& lanes = by_order ? drawn_->issued : drawn_->timeline;
  const std::vector<std::size_t> area = canvas_->lanes_in_area();
  const bool by_area = is_part && canvas_->has_area();
  const std::vector<studies::WorkRow> found =
      is_part ? work_in(lanes, drawn_->trace(), range, by_area ? &area : nullptr).rows() : drawn_->work;
  for (const studies::WorkRow& row : found) {
    const std::int64_t length = is_part ? range.length() : whole_length(*drawn_);
    const double share = 100.0 * static_cast<double>(row.total) / static_cast<double>(length);
    rows.rows.push_back({{words(row.name), {}},
                         {words(row.lane), {}},
                         {words(row.phase), {}},
                         number_cell(QString::number(row.count), static_cast<double>(row.count)),
                         time_cell(row.total, !(by_order && is_part)),
                         number_cell(QString("%1 %").arg(share, 0, 'f', 1), share),
                         time_cell(row.longest, !(by_order && is_part)),
                         bytes_cell(row.bytes)});
    rows.ids.push_back(row.example);
  }
  return rows;
}

// Work by kind, and what was allocated and freed meanwhile.
TableRows MainWindow::kinds_table() const {
  TableRows rows;
  rows.headings = {tr("kind"), tr("count"), tr("total"), tr("share"), tr("longest"), tr("bytes")};
  const bool is_part = time_.selection().has_value();
  const bool by_order = canvas_->axis() == MemoryClock::program;
  const TimelineScene& lanes = by_order ? drawn_->issued : drawn_->timeline;
  const TimeRange range = is_part ? *time_.selection() : lanes.whole;
  const std::vector<std::size_t> area = canvas_->lanes_in_area();
  const bool is_whole = !is_part && !by_order && !canvas_->has_area();
  const studies::WorkSum sum = is_whole ? all_work(lanes, drawn_->trace(), drawn_->result())
                                        : work_in(lanes, drawn_->trace(), range, canvas_->has_area() ? &area : nullptr);
  const std::int64_t length = is_whole ? whole_length(*drawn_) : range.length();
  const auto count_cell = [](std::uint64_t count) {
    return number_cell(QString::number(count), static_cast<double>(count));
  };
  for (const studies::KindRow& row : sum.kinds()) {
    const double share = 100.0 * static_cast<double>(row.total) / static_cast<double>(length);
    rows.rows.push_back({{words(row.name), {}},
                         count_cell(row.count),
                         time_cell(row.total, !by_order),
                         number_cell(QString("%1 %").arg(share, 0, 'f', 1), share),
                         time_cell(row.longest, !by_order),
                         bytes_cell(row.bytes)});
    rows.ids.push_back(row.example);
  }
  const auto memory = canvas_->memory();
  if (memory == nullptr || !canvas_->area_has_memory()) return rows;
  std::uint64_t made = 0, freed = 0;
  std::int64_t made_bytes = 0, freed_bytes = 0;
  for (const MemoryPicture::Block& block : memory->picture.blocks) {
    if (block.event >= 0 && block.begin >= range.begin && block.begin < range.end) {
      ++made;
      made_bytes += block.size.count();
    }
    if (block.freed >= 0 && block.end >= range.begin && block.end < range.end) {
      ++freed;
      freed_bytes += block.size.count();
    }
  }
  for (const auto& [name, count, bytes] :
       {std::tuple(tr("allocated"), made, made_bytes), std::tuple(tr("freed"), freed, freed_bytes)}) {
    rows.rows.push_back({{name, {}}, count_cell(count), {}, {}, {}, bytes_cell(bytes)});
    rows.ids.push_back(-1);
  }
  return rows;
}

// What lives in the selected range; when nothing is selected, at the peak: its owners.
TableRows MainWindow::allocation_table() const {
  TableRows rows;
  rows.headings = {tr("allocation"), tr("held by"), tr("bytes"), tr("from"), tr("until"), tr("layer"), tr("address")};
  const auto memory = canvas_->memory();
  if (memory == nullptr) return rows;
  const MemoryPicture& picture = memory->picture;
  const std::int64_t peak = memory->owners.time_of_peak();
  const TimeRange range = time_.selection().value_or(TimeRange{peak, peak + 1});
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < picture.blocks.size(); ++i)
    if (picture.blocks[i].begin < range.end && picture.blocks[i].end > range.begin) found.push_back(i);
  std::stable_sort(found.begin(), found.end(),
                   [&](std::size_t a, std::size_t b) { return picture.blocks[a].size > picture.blocks[b].size; });
  if (found.size() > most_allocations) {
    rows.left_out = static_cast<qsizetype>(found.size() - most_allocations);
    found.resize(most_allocations);
  }
  const Trace& trace = drawn_->trace();
  for (const std::size_t i : found) {
    const MemoryPicture::Block& block = picture.blocks[i];
    const OpId anchor =
        block.event < 0 ? OpId::none : trace.memory_events[static_cast<std::size_t>(block.event)].anchor;
    const bool has_layer = anchor != OpId::none && trace.ops.layer[index_of(anchor)] != no_index16;
    rows.rows.push_back(
        {{words(block_name(*drawn_, block)), {}},
         {words(studies::owner_words(picture.kinds[block.kind])), {}},
         bytes_cell(block.size.count()),
         time_cell(block.begin, picture.timed),
         time_cell(block.end, picture.timed),
         has_layer ? number_cell(QString::number(trace.ops.layer[index_of(anchor)]), trace.ops.layer[index_of(anchor)])
                   : TableCell{},
         number_cell("0x" + QString::number(block.address, 16), static_cast<double>(block.address))});
    rows.ids.push_back(static_cast<qint64>(i));
  }
  return rows;
}

TableRows MainWindow::provenance_table() const {
  TableRows rows;
  rows.headings = {tr("input"), tr("value"), tr("is"), tr("source")};
  for (const InputProvenance& input : drawn_->result().provenance)
    rows.rows.push_back(
        {{words(input.name), {}}, {words(input.value), {}}, {words(input.provenance), {}}, {words(input.source), {}}});
  for (const std::string& warning : drawn_->result().warnings)
    rows.rows.push_back({{tr("warning"), {}}, {}, {}, {words(studies::warning_words(warning)), {}}});
  return rows;
}

TableRows MainWindow::ranks_table() const {
  TableRows rows;
  rows.headings = {tr("stage"), tr("idle"), tr("busy"), tr("peak allocated"), tr("peak reserved"), tr("fits")};
  for (const RankResult& rank : drawn_->result().ranks)
    rows.rows.push_back({{words(rank.name), {}},
                         share_cell(rank.bubble),
                         time_cell(rank.compute_busy.count()),
                         bytes_cell(rank.peak_allocated.count()),
                         bytes_cell(rank.peak_reserved.count()),
                         {words(std::string(yes_or_no(rank.verdict))), {}}});
  if (rows.rows.empty()) {  // all of it on one GPU
    const Result& result = drawn_->result();
    const MemoryResult& memory = result.memory;
    const bool known = memory.known && !memory.on_host;
    Picos busy{};
    for (const StepResult& step : result.steps) busy += step.device_busy;
    rows.rows.push_back({{tr("the whole step"), {}},
                         share_cell(result.bubble),
                         time_cell(busy.count()),
                         known ? bytes_cell(memory.peak_allocated.count()) : TableCell{"?", {}},
                         known ? bytes_cell(memory.peak_reserved.count()) : TableCell{"?", {}},
                         {words(std::string(yes_or_no(memory.verdict()))), {}}});
  }
  return rows;
}

void MainWindow::show_selection() {
  const QWidget* const view = tabs_->currentWidget();
  const bool on_canvas = tabs_->currentIndex() == canvas_tab;
  table_choice_->setVisible(on_canvas && drawn_ != nullptr && !drawn_->timeline.empty());
  TableRows rows;
  QString what;
  if (view == sweep_) {
    rows = sweep_->chart().table();
    what = tr("points");
  } else if (drawn_ == nullptr) {
    what = tr("nothing yet");
  } else if (view == holders_ || (on_canvas && (table_choice_->currentIndex() == 1 || drawn_->timeline.empty()))) {
    rows = allocation_table();
    what = time_.selection() ? tr("allocations alive in the selection") : tr("allocations alive at the peak");
  } else if (view == sensitivity_) {
    rows = sensitivity_->table();
    what = tr("what would help");
  } else if (view == roofline_) {
    rows = roofline_->table();
    what = tr("kernels");
  } else if (on_canvas && table_choice_->currentIndex() == 3) {
    rows = kinds_table();
    what =
        time_.selection() ? tr("kinds of work in the selection") : tr("kinds of work of %1").arg(whole_words(*drawn_));
  } else if (on_canvas && table_choice_->currentIndex() == 2) {
    rows = ranks_table();
    what = tr("stages");
  } else if (view == compare_) {
    rows = provenance_table();
    what = tr("inputs the figures rest on");
  } else {
    rows = work_table();
    what = time_.selection() ? tr("work in the selection") : tr("work of %1").arg(whole_words(*drawn_));
  }
  const qsizetype left_out = rows.left_out;
  const bool same_shape = rows.headings == selection_->shown().headings && selection_->rowCount() > 0;
  selection_->show(std::move(rows));
  if (!same_shape) {
    filtered_->sort(-1);
    table_->resizeColumnsToContents();
  }
  fit_columns();
  const int shown = filtered_->rowCount();
  count_->setText(what + (shown == 1 ? tr(": 1 row") : tr(": %1 rows").arg(shown)) +
                  (left_out > 0 ? tr(" (%1 smaller ones left out)").arg(left_out) : QString()));
  const auto range = time_.selection();
  selected_range_->setVisible(range.has_value());
  if (range) {
    const bool timed = canvas_->is_timed();
    const QString length = words(time_text(range->length(), timed));
    selected_range_->setText(canvas_->has_area()
                                 ? tr("%1 of %2 tracks selected ×").arg(length).arg(canvas_->area_tracks())
                                 : tr("%1 selected ×").arg(length));
  }
  show_frames();
  if (!on_canvas || table_choice_->currentIndex() != 1 || !canvas_->chosen_block()) return;
  for (int row = 0; row < selection_->rowCount(); ++row)
    if (selection_->id_of(row) == static_cast<qint64>(*canvas_->chosen_block()))
      table_->selectRow(filtered_->mapFromSource(selection_->index(row, 0)).row());
}

// What grew is not cut; columns of long names, paths say, share what the first and the figures leave; the first takes
// the rest.
void MainWindow::fit_columns() {
  if (selection_->columnCount() == 0) return;
  constexpr int least_first = 180, least_name = 160, slack = 8;
  const QAbstractItemView* const rows_of = table_;
  const int bar = table_->verticalScrollBar()->isVisible() ? 0 : table_->verticalScrollBar()->sizeHint().width();
  int room = table_->viewport()->width() - bar - slack;
  room -= std::clamp(rows_of->sizeHintForColumn(0), least_first, std::max(least_first, room / 3));
  std::vector<int> names;  // columns wider than a part of the page
  for (int column = 1; column < selection_->columnCount(); ++column) {
    table_->setColumnWidth(column, std::max(table_->columnWidth(column), rows_of->sizeHintForColumn(column)));
    if (table_->columnWidth(column) > least_name)
      names.push_back(column);
    else
      room -= table_->columnWidth(column);
  }
  std::sort(names.begin(), names.end(),
            [this](int a, int b) { return table_->columnWidth(a) < table_->columnWidth(b); });
  for (std::size_t i = 0; i < names.size(); ++i) {
    const int share = std::max(least_name, room / static_cast<int>(names.size() - i));
    table_->setColumnWidth(names[i], std::min(share, table_->columnWidth(names[i])));
    room -= table_->columnWidth(names[i]);
  }
  const int others = table_->horizontalHeader()->length() - table_->columnWidth(0);
  table_->setColumnWidth(0, std::max(least_first, table_->viewport()->width() - bar - slack - others));
}

// Of the block that is chosen, beside the table: what it is, and the stack that asked for it, innermost first.
void MainWindow::show_frames() {
  const auto memory = canvas_->memory();
  const std::optional<std::size_t> chosen = canvas_->chosen_block();
  QStringList lines;
  if (tabs_->currentIndex() == canvas_tab && memory != nullptr && chosen) {
    const MemoryPicture::Block& block = memory->picture.blocks[*chosen];
    const Trace& trace = drawn_->trace();
    const std::uint32_t stack =
        block.event < 0 ? no_stack : trace.memory_events[static_cast<std::size_t>(block.event)].stack;
    if (stack != no_stack) {
      lines += tr("%1 at 0x%2").arg(words(short_size(block.size)), QString::number(block.address, 16));
      for (const std::string_view place : studies::stack_places(trace, stack))
        lines += QString::fromUtf8(place.data(), static_cast<qsizetype>(place.size()));
    }
  }
  frames_->setPlainText(lines.join('\n'));
  frames_->setVisible(!lines.isEmpty());
}

void MainWindow::row_chosen(const QModelIndex& index) {
  const qint64 id = selection_->id_of(filtered_->mapToSource(index).row());
  const QWidget* const view = tabs_->currentWidget();
  if (id < 0) return;
  const bool blocks = table_choice_->currentIndex() == 1 || drawn_ == nullptr || drawn_->timeline.empty();
  if (tabs_->currentIndex() == canvas_tab && blocks) canvas_->choose_block(static_cast<std::size_t>(id));
  if (tabs_->currentIndex() == canvas_tab && !blocks) canvas_->go_to(static_cast<OpId>(id));
  if (view == holders_) {
    tabs_->setCurrentIndex(canvas_tab);
    canvas_->choose_block(static_cast<std::size_t>(id));
  }
  show_frames();
  if (view == sweep_) sweep_->load_point(static_cast<std::size_t>(id));
}

void MainWindow::show_holders() {
  const auto range = time_.selection();
  holders_->show(drawn_, canvas_->memory(), range ? std::optional(range->begin) : std::nullopt);
}

void MainWindow::look_for_diagnosis() {
  if (drawn_ == nullptr || session_.is_stale()) return;
  if (answer_->isVisible() || diagnosis_->isVisible() || holders_->isVisible()) diagnosis_->search();
}

void MainWindow::look_for_answer() {
  const QWidget* const shown = tabs_->currentWidget();
  session_.want_sensitivity(shown == sensitivity_ || shown == answer_, shown == answer_);
  if (shown == answer_) look_for_ways_.start();
  look_for_diagnosis();
}

void MainWindow::go_to_place(const DiagnosedPlace& place) {
  if (drawn_ == nullptr) return;
  show_view("canvas");
  const QString name = words(place.name);
  std::vector<std::uint32_t> marked;
  if (place.kind == DiagnosedPlace::Kind::operators) marked = find_ops(drawn_->trace(), place.name);
  if (place.kind != DiagnosedPlace::Kind::operators) marked = ops_named(drawn_->trace(), place.name);
  canvas_->mark(marked);
  bool found = false;
  if (place.kind == DiagnosedPlace::Kind::host) found = canvas_->go_to_span(place.name);
  if (place.kind == DiagnosedPlace::Kind::stretch) found = canvas_->go_to_recorded(Picos(place.begin));
  found = found || canvas_->go_to_longest(marked);
  if (!found) message_->show_note(tr("%1 has no place on the canvas.").arg(name));
}

}  // namespace spillway::gui
