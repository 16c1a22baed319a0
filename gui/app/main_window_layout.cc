// What the window is made of: views, canvas with its tools, docks, status bar.
#include <QComboBox>
#include <QDockWidget>
#include <QHeaderView>
#include <QLabel>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QProgressBar>
#include <QPushButton>
#include <QScrollArea>
#include <QSignalBlocker>
#include <QSortFilterProxyModel>
#include <QSplitter>
#include <QStackedWidget>
#include <QStatusBar>
#include <QTabWidget>
#include <QTableView>
#include <QToolButton>
#include <QUndoView>
#include <QVBoxLayout>
#include <utility>

#include "base/short_text.h"
#include "gui/app/main_window.h"
#include "gui/panels/answer_view.h"
#include "gui/panels/compare_view.h"
#include "gui/panels/diagnosis_panel.h"
#include "gui/panels/holders_panel.h"
#include "gui/panels/message_bar.h"
#include "gui/panels/scenario_panel.h"
#include "gui/panels/start_page.h"
#include "gui/panels/sweep_view.h"
#include "gui/panels/variant_panel.h"
#include "gui/panels/verdict_strip.h"
#include "gui/plots/canvas_view.h"
#include "gui/plots/charts.h"
#include "gui/plots/legend.h"
#include "gui/plots/table_model.h"
#include "scenario/drawn_run.h"

namespace spillway::gui {
namespace {

constexpr int ways_after_ms = 400;  // of quiet, ways to make it fit are looked for

// A table of figures: sorted by clicking a heading, one row after the other by keyboard.
QTableView* figure_table(const QString& name, QAbstractItemModel* model) {
  auto* const table = new QTableView;
  table->setAccessibleName(name);
  table->setModel(model);
  table->setSortingEnabled(true);
  table->setTabKeyNavigation(false);  // Tab leaves it; arrows go from cell to cell
  table->setSelectionBehavior(QAbstractItemView::SelectRows);
  table->setEditTriggers(QAbstractItemView::NoEditTriggers);
  table->setAlternatingRowColors(true);
  table->setWordWrap(false);
  table->verticalHeader()->setVisible(false);
  table->verticalHeader()->setDefaultSectionSize(table->fontMetrics().height() + 6);
  table->horizontalHeader()->setDefaultAlignment(Qt::AlignLeft | Qt::AlignVCenter);
  table->sortByColumn(-1, Qt::AscendingOrder);
  return table;
}

}  // namespace

void MainWindow::make_views() {
  stack_ = new QStackedWidget;
  start_ = new StartPage;
  start_->on_open = [this](const QString& file, const std::string& control) {
    next_reveal_ = control;
    open(file);
  };
  start_->on_browse = [this] { ask_open(); };
  start_->on_continue = [this] { continue_session(); };
  QWidget* const canvas = make_canvas();
  sensitivity_ = new SensitivityChart;
  roofline_ = new RooflineChart;
  QObject::connect(sensitivity_, &PlotView::chosen, this, [this](qint64 id) { apply_relaxation(id); });
  QObject::connect(roofline_, &PlotView::chosen, this, [this](qint64 id) {
    search_->setText(roofline_->kernel(id));
    find_next(false);
  });
  sweep_ = new SweepView;
  compare_ = new CompareView;
  holders_ = new HoldersPanel;
  holders_->on_block = [this](std::int64_t block) {
    tabs_->setCurrentIndex(canvas_tab);
    table_choice_->setCurrentIndex(1);
    canvas_->choose_block(static_cast<std::size_t>(block));
    show_selection();
  };
  answer_ = new AnswerView;
  tabs_ = new QTabWidget;
  tabs_->setDocumentMode(true);
  tabs_->setAccessibleName(tr("Views"));
  tabs_->setObjectName("views");
  keys_button_ = new QToolButton;
  keys_button_->setText("☰");
  keys_button_->setCheckable(true);
  keys_button_->setAutoRaise(true);
  keys_button_->setAccessibleName(tr("Keys and variants"));
  keys_button_->setToolTip(tr("Keys and variants, at the left (F9)"));
  QObject::connect(keys_button_, &QToolButton::clicked, this, [this](bool wanted) {
    wants_keys_ = wanted;
    show_parts();
  });
  tabs_->setCornerWidget(keys_button_, Qt::TopLeftCorner);
  tabs_->addTab(answer_, tr("Answer"));
  tabs_->addTab(canvas, tr("Canvas"));
  tabs_->addTab(sensitivity_, tr("Sensitivity"));
  tabs_->addTab(sweep_, tr("Pareto"));
  tabs_->addTab(roofline_, tr("Roofline"));
  tabs_->addTab(compare_, tr("Compare"));
  tabs_->addTab(holders_, tr("Memory"));
  QObject::connect(tabs_, &QTabWidget::currentChanged, this, [this] {
    show_parts();
    look_for_answer();
    show_comparison();
    show_selection();
  });
  sweep_->on_file = [this] {
    // Whether the scenario at hand is marked goes by whose sweep it is.
    sweep_->show_scenario(session_.current(), session_.document(), drawn_.get(), drawn_baseline_.get());
    show_parts();
  };
  sweep_->on_error = [this](const SimulationError& error) { show_error(error); };
  sweep_->on_rows = [this] { show_selection(); };
  sweep_->on_load = [this](const std::string& text, const std::string& folder) {
    message_->hide();
    opened_.clear();
    session_.open(ScenarioDocument(text, "", folder), {}, sweep_->is_of_scenario() ? session_.current() : -1,
                  setting_of(text, "title").value_or("a point of the sweep"));
  };
  answer_->on_apply = [this](const std::string& text, const std::string& name) { apply_way(text, name); };
  answer_->on_gpu = [this](const std::string& profile) { session_.edit("hardware.profile", profile, false); };
  answer_->on_variant = [this](const std::string& text, const std::string& name) { session_.branch(name, text); };
  strip_ = new VerdictStrip;
  strip_->on_hover = [this](const QString& words) { provenance_->setText(words); };
  message_ = new MessageBar;
  auto* const work = new QWidget;
  auto* const column = new QVBoxLayout(work);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  column->addWidget(strip_);
  column->addWidget(tabs_, 1);
  auto* const start_room = new QScrollArea;  // a small window shows a part of it
  start_room->setFrameShape(QFrame::NoFrame);
  start_room->setFocusPolicy(Qt::NoFocus);  // its first button has it
  start_room->setWidgetResizable(true);
  start_room->setWidget(start_);
  stack_->addWidget(start_room);
  stack_->addWidget(work);
  auto* const whole = new QWidget;
  auto* const rows = new QVBoxLayout(whole);
  rows->setContentsMargins(0, 0, 0, 0);
  rows->setSpacing(0);
  rows->addWidget(message_);
  rows->addWidget(stack_, 1);
  setCentralWidget(whole);
}

// The canvas with its tools: axis, critical path, what is selected and hidden, search.
QWidget* MainWindow::make_canvas() {
  canvas_ = new CanvasView(time_);
  canvas_->on_hover = [this](const QString& words) { provenance_->setText(words); };
  canvas_->on_lanes = [this] { show_state(); };
  canvas_->on_choose = [this] {
    if (canvas_->chosen_block()) table_choice_->setCurrentIndex(1);
    show_selection();
  };
  canvas_->on_axis = [this] { show_axis(); };
  canvas_->on_note = [this](CanvasView::NoteWish wish, std::size_t which, std::int64_t at) {
    ask_note(wish == CanvasView::NoteWish::add ? std::nullopt : std::optional(which),
             wish == CanvasView::NoteWish::remove, at);
  };
  canvas_->on_rank = [this](int rank) {
    const int count = rank_choice_->count(), at = rank_choice_->currentIndex();
    if (count == 0) return;
    if (rank == CanvasView::next_rank) rank_choice_->setCurrentIndex((at + 1) % count);
    if (rank == CanvasView::rank_before) rank_choice_->setCurrentIndex((at + count - 1) % count);
    if (rank >= 0) rank_choice_->setCurrentIndex(std::min(rank + 1, count - 1));
  };
  auto* const whole = new QWidget;
  auto* const column = new QVBoxLayout(whole);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  auto* const line = new QHBoxLayout;
  line->setContentsMargins(8, 4, 8, 4);
  line->setSpacing(4);
  const auto button = [&](const QString& text, const QString& tip, std::function<void()> run) {
    auto* const made = new QPushButton(text);
    made->setCheckable(true);
    made->setToolTip(tip);
    QObject::connect(made, &QPushButton::clicked, this, [this, run = std::move(run)] {
      run();
      show_axis();
    });
    line->addWidget(made);
    return made;
  };
  axis_gpu_ = button(tr("GPU time"), tr("Memory beside the work it is for (1)"),
                     [this] { canvas_->set_axis(MemoryClock::gpu); });
  axis_host_ = button(tr("Host time"), tr("Memory when the program asks for it (2)"),
                      [this] { canvas_->set_axis(MemoryClock::host); });
  axis_order_ = button(tr("Program order"), tr("One step to the right for each operation (3)"),
                       [this] { canvas_->set_axis(MemoryClock::program); });
  line->addSpacing(8);
  path_button_ = button(tr("Critical path"), tr("What the length of the step is made of (C)"),
                        [this] { canvas_->show_path(path_button_->isChecked()); });
  rank_choice_ = new QComboBox;
  rank_choice_->setAccessibleName(tr("The stage that memory is shown of"));
  rank_choice_->setToolTip(tr("The stage of memory and counters (M, Shift+M)"));
  rank_choice_->setVisible(false);
  QObject::connect(rank_choice_, &QComboBox::currentIndexChanged, this, [this] { look_at_rank(); });
  line->addWidget(rank_choice_);
  line->addSpacing(8);
  drawn_part_ = new QLabel(this);
  drawn_part_->setObjectName("drawn part");
  drawn_part_->setVisible(false);
  selected_range_ = new QPushButton;
  selected_range_->setToolTip(tr("Click to select nothing"));
  selected_range_->setVisible(false);
  QObject::connect(selected_range_, &QPushButton::clicked, this, [this] { time_.select(std::nullopt); });
  hidden_lanes_ = new QPushButton;
  hidden_lanes_->setToolTip(tr("Click to show all tracks"));
  hidden_lanes_->setVisible(false);
  QObject::connect(hidden_lanes_, &QPushButton::clicked, this, [this] { canvas_->show_all_lanes(); });
  search_ = new QLineEdit;
  search_->setPlaceholderText(tr("Find work"));
  search_->setToolTip(tr("Find work by name (Ctrl+F)"));
  search_->setMinimumWidth(120);
  search_->setMaximumWidth(240);
  search_->setClearButtonEnabled(true);
  QObject::connect(search_, &QLineEdit::textChanged, this, [this] { find_all(); });
  QObject::connect(search_, &QLineEdit::returnPressed, this, [this] { find_next(false); });
  found_count_ = new QLabel;
  found_count_->setObjectName("found count");
  legend_ = new Legend;
  line->addWidget(selected_range_);
  line->addWidget(hidden_lanes_);
  line->addWidget(legend_, 1);
  line->addWidget(search_);
  line->addWidget(found_count_);
  column->addLayout(line);
  column->addWidget(canvas_, 1);
  return whole;
}

// Which axis it is, and which there are.
void MainWindow::show_axis() {
  const auto show = [this](QPushButton* button, MemoryClock axis) {
    button->setEnabled(drawn_ != nullptr && drawn_->has_axis(axis));
    button->setChecked(drawn_ != nullptr && canvas_->axis() == axis &&
                       !(canvas_->is_timed() && axis == MemoryClock::program));
  };
  show(axis_gpu_, MemoryClock::gpu);
  show(axis_host_, MemoryClock::host);
  show(axis_order_, MemoryClock::program);
  const bool has_path = drawn_ != nullptr && !drawn_->result().path.empty();
  show_drawn_part();
  path_button_->setEnabled(has_path && canvas_->axis() != MemoryClock::program);
  path_button_->setChecked(canvas_->shows_path());
  show_selection();
}

// What of the step is on the canvas, where that is not all.
void MainWindow::show_drawn_part() {
  drawn_part_->setVisible(false);
  if (drawn_ == nullptr) return;
  const Result& result = drawn_->result();
  const std::string few = drawn_words(drawn_->loaded);
  QStringList words, tips;
  if (!result.phases.empty()) {
    words += tr("drawn: %1, %2 of %3")
                 .arg(QString::fromStdString(result.phases.back().name),
                      QString::fromStdString(short_duration(to_seconds(result.phases.back().time))),
                      QString::fromStdString(short_duration(to_seconds(result.step_time))));
    tips += tr("The other parts of the step are in the answer.");
  }
  if (!few.empty()) {
    words += words.isEmpty() ? tr("drawn: %1").arg(QString::fromStdString(few)) : QString::fromStdString(few);
    tips +=
        tr("The others repeat what lies between. Figures, tables of the whole step and exported files count all of "
           "them.");
  }
  drawn_part_->setText(words.join(", ") + "  ");
  drawn_part_->setToolTip(tips.join(" "));
  tabs_->setCornerWidget(drawn_part_, Qt::TopRightCorner);  // again: the tabs leave it room for its text
  drawn_part_->setVisible(!words.isEmpty());
}

// The GPUs whose memory there is to see. What was chosen stays chosen where there still is that one.
void MainWindow::show_ranks() {
  const QSignalBlocker quiet(rank_choice_);
  const int before = rank_choice_->currentIndex();
  rank_choice_->clear();
  const std::vector<RankResult>& ranks = drawn_->result().ranks;
  const bool has_choice = drawn_->fullest.memory != nullptr && ranks.size() > 1;
  rank_choice_->setVisible(has_choice);
  if (!has_choice) return;
  const auto words_of = [](const RankResult& rank) {
    return QString("%1, %2").arg(QString::fromStdString(rank.name),
                                 QString::fromStdString(short_size(rank.peak_reserved)));
  };
  rank_choice_->addItem(
      tr("Fullest: %1").arg(words_of(ranks[std::min<std::size_t>(drawn_->fullest.rank, ranks.size() - 1)])));
  for (const RankResult& rank : ranks) rank_choice_->addItem(words_of(rank));
  rank_choice_->setCurrentIndex(before > 0 && before < rank_choice_->count() ? before : 0);
  look_at_rank();
}

// Its allocations are run once more, beside the window.
void MainWindow::look_at_rank() {
  const int chosen = rank_choice_->currentIndex();
  const auto show = [this](std::shared_ptr<const RankView> view) {
    canvas_->show_rank(std::move(view));
    show_legend();
    show_holders();
    show_selection();
  };
  rank_.stop();
  const RankView* const shown = canvas_->shown_rank();
  if (shown != nullptr && shown->rank == chosen - 1) return;
  const bool is_fullest = chosen <= 0 || drawn_ == nullptr || chosen - 1 == static_cast<int>(drawn_->fullest.rank);
  if (is_fullest) {
    if (shown != nullptr) show(nullptr);
    return;
  }
  rank_.start([this, show, outcome = drawn_, rank = static_cast<std::uint16_t>(chosen - 1)](const Worker::Task& task) {
    auto view = std::make_shared<const RankView>(rank_view(*outcome, rank));
    task.post([this, show, outcome, view] {
      if (outcome == drawn_) show(view);
    });
  });
}

// The owners of memory in their colours.
void MainWindow::show_legend() {
  std::vector<std::pair<QColor, QString>> entries;
  constexpr std::int64_t least_part = 200;  // of the peak; what is less is no stripe that one sees
  if (const auto memory = canvas_->memory(); memory != nullptr) {
    const OwnerStack& stack = memory->owners;
    for (std::size_t i = 0; i < most_owners; ++i) {
      const OwnerStack::Owner& owner = stack.owners()[i];
      if (stack.most_held()[i] > stack.peak() / least_part)
        entries.emplace_back((*theme_)[owner.token],
                             QString::fromStdString(owner.words).section(',', 0, 0).remove("allocated in "));
    }
  }
  legend_->show_entries(entries);
}

void MainWindow::make_docks() {
  panel_ = new ScenarioPanel;
  panel_->on_edit = [this](const Control& control, const std::string& value, bool goes_on) {
    session_.edit(control.key, value, goes_on);
  };
  panel_->on_preset = [this](const QString& file) { open(file); };
  scenario_dock_ = new QDockWidget(tr("Scenario"), this);
  scenario_dock_->setObjectName("scenario dock");
  variants_ = new VariantPanel(session_);
  history_ = history_view(session_);
  auto* const left = new QTabWidget;
  left->setDocumentMode(true);
  left->setAccessibleName(tr("Keys and history"));
  left->addTab(panel_, tr("Keys"));
  left->addTab(history_, tr("History"));
  auto* const whole = new QWidget;
  auto* const parts = new QVBoxLayout(whole);
  parts->setContentsMargins(0, 0, 0, 0);
  parts->setSpacing(4);
  parts->addWidget(variants_);
  parts->addWidget(left, 1);
  scenario_dock_->setWidget(whole);
  scenario_dock_->setTitleBarWidget(new QWidget);  // the variants are its head
  addDockWidget(Qt::LeftDockWidgetArea, scenario_dock_);
  selection_ = new TableModel(this);
  filtered_ = new QSortFilterProxyModel(this);
  filtered_->setSourceModel(selection_);
  filtered_->setSortRole(TableModel::sort_role);
  filtered_->setFilterKeyColumn(-1);
  filtered_->setFilterCaseSensitivity(Qt::CaseInsensitive);
  table_ = figure_table(tr("Selection"), filtered_);
  table_->setTextElideMode(Qt::ElideMiddle);  // of a path, its file; of a kernel, its name
  QObject::connect(table_, &QTableView::activated, this, [this](const QModelIndex& index) { row_chosen(index); });
  QObject::connect(table_, &QTableView::clicked, this, [this](const QModelIndex& index) { row_chosen(index); });
  auto* const content = new QWidget;
  auto* const column = new QVBoxLayout(content);
  column->setContentsMargins(4, 2, 4, 2);
  column->setSpacing(2);
  auto* const line = new QHBoxLayout;
  filter_ = new QLineEdit;
  filter_->setPlaceholderText(tr("Filter rows"));
  filter_->setClearButtonEnabled(true);
  filter_->setFixedWidth(150);
  QObject::connect(filter_, &QLineEdit::textChanged, this, [this](const QString& words) {
    filtered_->setFilterFixedString(words);
    count_->setText(tr("%1 of %2 rows").arg(filtered_->rowCount()).arg(selection_->rowCount()));
  });
  count_ = new QLabel;
  table_choice_ = new QComboBox;
  table_choice_->setObjectName("table choice");
  table_choice_->setAccessibleName(tr("What the table shows"));
  table_choice_->addItems({tr("Kernels"), tr("Blocks"), tr("Stages"), tr("Kinds")});
  QObject::connect(table_choice_, &QComboBox::currentIndexChanged, this, [this] { show_selection(); });
  strip_->setVisible(false);  // until there is an answer
  line->addWidget(table_choice_);
  line->addWidget(count_);
  line->addStretch(1);
  line->addWidget(filter_);
  column->addLayout(line);
  frames_ = new QPlainTextEdit;
  frames_->setReadOnly(true);
  frames_->setTabChangesFocus(true);
  frames_->setLineWrapMode(QPlainTextEdit::NoWrap);
  frames_->setAccessibleName(tr("Call stack of the block"));
  frames_->setVisible(false);
  auto* const halves = new QSplitter;
  halves->addWidget(table_);
  halves->addWidget(frames_);
  halves->setSizes({600, 400});
  column->addWidget(halves);
  look_for_ways_.setSingleShot(true);
  look_for_ways_.setInterval(ways_after_ms);
  QObject::connect(&look_for_ways_, &QTimer::timeout, this, [this] {
    const bool is_new = drawn_ != nullptr && drawn_ == session_.outcome() && !session_.is_stale();
    if (is_new && answer_->isVisible()) answer_->search();
  });
  bottom_ = new QTabWidget;
  bottom_->setDocumentMode(true);
  bottom_->setAccessibleName(tr("Tables"));
  bottom_->addTab(content, tr("Selection"));
  diagnosis_ = new DiagnosisPanel;
  diagnosis_->on_found = [this] {
    holders_->show_diagnosis(diagnosis_->diagnosed());
    if (diagnosis_->diagnosed() != nullptr)
      answer_->show_step(diagnosis_->diagnosed()->answer);
    else
      answer_->show_undrawn();
    show_state();
  };
  diagnosis_->on_go = [this](const DiagnosedPlace& place) { go_to_place(place); };
  bottom_->addTab(diagnosis_, tr("Diagnosis"));
  QObject::connect(bottom_, &QTabWidget::currentChanged, this, [this] { look_for_diagnosis(); });
  table_dock_ = new QDockWidget(tr("Tables"), this);
  table_dock_->setObjectName("selection dock");
  table_dock_->setWidget(bottom_);
  table_dock_->setTitleBarWidget(new QWidget);  // the tabs are its head
  addDockWidget(Qt::BottomDockWidgetArea, table_dock_);
  resizeDocks({table_dock_}, {210}, Qt::Vertical);
  setCorner(Qt::BottomLeftCorner, Qt::LeftDockWidgetArea);
}

void MainWindow::make_status() {
  state_ = new QLabel;
  progress_ = new QProgressBar;
  progress_->setMaximumWidth(140);
  progress_->setVisible(false);
  cancel_ = new QPushButton(tr("Cancel"));
  cancel_->setVisible(false);
  QObject::connect(cancel_, &QPushButton::clicked, this, [this] { session_.cancel(); });
  provenance_ = new QLabel;
  provenance_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
  fingerprint_ = new QLabel;
  fingerprint_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  statusBar()->addWidget(state_);
  statusBar()->addWidget(progress_);
  statusBar()->addWidget(cancel_);
  statusBar()->addWidget(provenance_, 1);
  statusBar()->addPermanentWidget(fingerprint_);
}

}  // namespace spillway::gui
