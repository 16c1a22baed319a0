#include "gui/app/main_window.h"

#include <QApplication>
#include <QCloseEvent>
#include <QComboBox>
#include <QDockWidget>
#include <QDragEnterEvent>
#include <QFileInfo>
#include <QLabel>
#include <QMimeData>
#include <QProgressBar>
#include <QPushButton>
#include <QSettings>
#include <QSortFilterProxyModel>
#include <QStackedWidget>
#include <QStatusBar>
#include <QToolButton>
#include <algorithm>
#include <utility>

#include "base/input_error.h"
#include "base/output_file.h"
#include "base/version.h"
#include "gui/panels/answer_view.h"
#include "gui/panels/compare_view.h"
#include "gui/panels/diagnosis_panel.h"
#include "gui/panels/holders_panel.h"
#include "gui/panels/input_guard.h"
#include "gui/panels/message_bar.h"
#include "gui/panels/scenario_panel.h"
#include "gui/panels/start_page.h"
#include "gui/panels/sweep_view.h"
#include "gui/panels/trace_range_dialog.h"
#include "gui/panels/variant_panel.h"
#include "gui/panels/verdict_strip.h"
#include "gui/plots/canvas_view.h"
#include "gui/plots/charts.h"
#include "gui/plots/table_model.h"
#include "gui/workspace/file_kind.h"
#include "reports/answer_html.h"
#include "reports/step_report.h"
#include "scenario/relaxation_setting.h"
#include "scenario/scenario.h"
#include "scenario/scenario_memory.h"
#include "studies/answer/answer.h"

namespace spillway::gui {
namespace {

constexpr int most_recent = 8;
constexpr int roomy_width = 1500;               // logical pixels: the answer has its room beside the keys
constexpr int start_index = 0, work_index = 1;  // of the stack
const QStringList view_names = {"answer", "canvas", "sensitivity", "pareto", "roofline", "compare", "holders"};

}  // namespace

MainWindow::MainWindow(QSettings& settings) : settings_(settings), theme_(&light_theme()) {
  setObjectName("spillway");
  setAcceptDrops(true);
  setDockNestingEnabled(true);
  make_views();
  make_docks();
  make_status();
  make_actions();
  session_.want_sensitivity(true, true);  // the answer is in sight
  new InputGuard(*this);                  // the window's
  session_.on_opened = [this] { begin_document(); };
  session_.on_document = [this] {
    show_scenario();
    if (shows_sweep()) tabs_->setCurrentIndex(0);  // another is at hand now, or another is made of it
  };
  session_.on_outcome = [this] { show_outcome(); };
  session_.on_notes = [this] {
    canvas_->show_notes(session_.notes());
    store_session();
  };
  session_.on_variants = [this] { show_variants(); };
  session_.on_state = [this] { show_state(); };
  session_.on_error = [this](const SimulationError& error) { show_error(error); };
  session_.on_sensitivity = [this] {
    sensitivity_->show(session_.sensitivity(), session_.baseline_sensitivity());
    if (session_.sensitivity() != nullptr && session_.outcome() != nullptr)
      answer_->show_helps(*session_.sensitivity(), session_.outcome()->result());
    show_selection();
  };
  session_.on_progress = [this](const std::string& part, double fraction) {
    state_->setText(QString::fromStdString(part) + "…");
    progress_->setVisible(fraction >= 0);
    progress_->setValue(static_cast<int>(fraction * 100));
    cancel_->setVisible(true);
  };
  QObject::connect(&session_.history(), &QUndoGroup::canUndoChanged, undo_, &QAction::setEnabled);
  QObject::connect(&session_.history(), &QUndoGroup::canRedoChanged, redo_, &QAction::setEnabled);
  time_.on_select([this] {
    show_selection();
    show_holders();
  });
  resize(1280, 720);
  restoreGeometry(settings_.value("window/geometry").toByteArray());
  show_start();
}

MainWindow::~MainWindow() = default;

// One step to undo; what it was is said, and how to take it back.
void MainWindow::apply_way(const std::string& text, const std::string& name) {
  session_.become(text, "apply: " + name);
  message_->show_note(tr("Applied: %1. Ctrl+Z takes it back.").arg(QString::fromStdString(name)));
}

// What would help is tried: an edit as any other.
void MainWindow::apply_relaxation(qint64 id) {
  const Relaxation* const chosen = sensitivity_->relaxation(id);
  const std::string setting = chosen == nullptr ? "" : setting_of_relaxation(chosen->resource);
  if (setting.empty() || session_.document() == nullptr) return;
  const double now = QString::fromStdString(session_.document()->value(setting).value_or("1")).toDouble();
  const QString name = QString::fromStdString(chosen->resource);
  session_.edit(setting, QString::number(now * relaxation_factor).toStdString(), false);
  message_->show_note(tr("Applied: %1. Ctrl+Z takes it back.").arg(name));
}

void MainWindow::show_start() {
  has_document_ = false;
  stack_->setCurrentIndex(start_index);
  scenario_dock_->setVisible(false);
  table_dock_->setVisible(false);
  state_->clear();
  fingerprint_->clear();
  start_->show_recent(settings_.value("recent").toStringList(), settings_.value("session/title").toString());
  update_title();
}

void MainWindow::open(const QString& file) {
  try {
    open_unguarded(file);
  } catch (const std::exception& error) {
    show_error(describe_error(error));
  }
}

// What a file is decides what opening it means; a model or a machine changes the scenario at hand.
void MainWindow::open_unguarded(const QString& file) {
  const std::string path = QFileInfo(file).absoluteFilePath().toStdString();
  switch (kind_of_file(path)) {
    case FileKind::scenario:
      take(ScenarioDocument::open(path), file);
      return;
    case FileKind::workspace:
      open_workspace(path);
      return;
    case FileKind::trace:
      open_trace(path, file);
      return;
    case FileKind::sweep:
      sweep_->open(file);
      stack_->setCurrentIndex(work_index);
      show_view("pareto");
      show_parts();
      sweep_->start();
      remember(file);
      return;
    case FileKind::model:
    case FileKind::hardware:
      break;
  }
  const bool is_model = kind_of_file(path) == FileKind::model;
  if (session_.document() == nullptr) {
    const std::string text = is_model ? new_scenario(path, "h100-80gb-1gpu") : new_scenario("llama-3-8b", path);
    take(ScenarioDocument(text, "", QFileInfo(file).absolutePath().toStdString()), {});
  } else {
    session_.edit(is_model ? "model.name" : "hardware.profile", path, false);
  }
}

// A long Kineto trace: which part of it, before it is read.
void MainWindow::open_trace(const std::string& path, const QString& file) {
  ReadRange range;
  const bool is_long =
      QFileInfo(file).isFile() && static_cast<std::uint64_t>(QFileInfo(file).size()) > large_trace_bytes;
  if (is_long && detect_format(path) == TraceFormat::kineto) {
    TraceRangeDialog dialog(this, path, {});
    if (dialog.exec() != QDialog::Accepted) return;
    range = dialog.range();
  }
  take(ScenarioDocument::open(path), file, range);
}

void MainWindow::take(ScenarioDocument document, const QString& recent, const ReadRange& range) {
  message_->hide();
  opened_ = recent;
  session_.open(std::move(document), range);
}

void MainWindow::show_work() {
  stack_->setCurrentIndex(work_index);
  show_parts();
}

bool MainWindow::shows_sweep() const {
  return stack_->currentIndex() == work_index && tabs_->currentWidget() == sweep_ && sweep_->is_alone();
}

void MainWindow::show_parts() {
  if (stack_->currentIndex() != work_index) return;
  const bool is_alone = shows_sweep(), has_document = session_.document() != nullptr;
  has_document_ = has_document;
  const bool shows_answer = tabs_->currentWidget() == answer_;  // it has its own figures
  strip_->setVisible(drawn_ != nullptr && !is_alone && !shows_answer);
  table_dock_->setVisible(!shows_answer);
  const bool shows_keys = wants_keys_.value_or(!shows_answer || width() >= roomy_width);
  scenario_dock_->setVisible(has_document && !is_alone && shows_keys);
  keys_button_->setEnabled(has_document && !is_alone);
  keys_button_->setChecked(shows_keys);
  for (int i = 1; i < bottom_->count(); ++i) bottom_->setTabVisible(i, !is_alone);  // the first is the sweep's table
  for (QLabel* const label : {state_, provenance_, fingerprint_}) label->setVisible(!is_alone);
  update_title();
}

// What was shown of the document before is not carried over to another.
void MainWindow::begin_document() {
  sweep_->show_scenario(session_.current(), session_.document(), nullptr, nullptr);
  if (shows_sweep()) tabs_->setCurrentIndex(0);
  show_work();
  time_.select(std::nullopt);
  time_.set_view(time_.whole());
  if (!opened_.isEmpty()) remember(opened_);
  const std::string control = std::exchange(next_reveal_, {});
  // Once the panel has its size.
  if (!control.empty()) QTimer::singleShot(0, this, [this, control] { panel_->reveal(control); });
}

void MainWindow::show_scenario() {
  if (session_.document() == nullptr) return;
  const Variant* const parent = session_.variant(session_.variant(session_.current())->parent);
  panel_->show(*session_.document(), session_.baseline_document(),
               parent != nullptr ? parent->document.text() : session_.document()->saved_text());
  sweep_->show_scenario(session_.current(), session_.document(), session_.outcome().get(), session_.baseline().get());
  update_title();
  store_session();
}

void MainWindow::update_title() {
  const ScenarioDocument* const document = has_document_ ? session_.document() : nullptr;
  if (shows_sweep()) {
    setWindowModified(false);
    return setWindowTitle(tr("%1 - spillway").arg(sweep_->name()));
  }
  if (document == nullptr) return setWindowTitle("spillway");
  const Variant* const at_hand = session_.variant(session_.current());
  QString name = QString::fromStdString(at_hand->name);
  for (const Variant* up = session_.variant(at_hand->parent); up != nullptr; up = session_.variant(up->parent))
    name = QString::fromStdString(up->name) + " ▸ " + name;
  setWindowTitle(tr("%1[*] - spillway").arg(name));
  setWindowModified(document->is_changed());
}

void MainWindow::show_outcome() {
  if (session_.outcome() == nullptr) return;
  std::shared_ptr<const Outcome> old = std::exchange(drawn_, session_.outcome());
  std::shared_ptr<const Outcome> old_baseline = std::exchange(drawn_baseline_, session_.baseline());
  message_->hide();
  canvas_->show(drawn_, drawn_baseline_);
  found_.clear();
  show_ranks();
  show_axis();
  roofline_->show(drawn_, drawn_baseline_);
  sensitivity_->show(session_.sensitivity(), session_.baseline_sensitivity());
  sweep_->show_scenario(session_.current(), session_.document(), drawn_.get(), drawn_baseline_.get());
  strip_->show(shown_figures(*drawn_, drawn_baseline_.get()));
  show_parts();
  show_comparison();
  fingerprint_->setText(QString("spillway %1").arg(program_version()));
  fingerprint_->setToolTip(tr("fingerprint %1").arg(drawn_->result().fingerprint, 16, 16, QChar('0')));
  pin_->setChecked(drawn_baseline_ != nullptr && drawn_baseline_ == drawn_);
  show_legend();
  if (old != drawn_) {
    answer_->show(drawn_);
    diagnosis_->show(drawn_);
    look_for_ways_.start();
  }
  show_holders();
  look_for_diagnosis();
  show_selection();
  session_.drop(std::move(old));
  session_.drop(std::move(old_baseline));
}

void MainWindow::show_state() {
  const bool stale = session_.is_stale() || session_.is_busy();
  canvas_->set_stale(stale && drawn_ != nullptr);
  sensitivity_->set_stale(stale && drawn_ != nullptr);
  roofline_->set_stale(stale && drawn_ != nullptr);
  strip_->set_stale(stale);
  answer_->set_stale(stale && drawn_ != nullptr);
  progress_->setVisible(false);
  cancel_->setVisible(session_.is_busy());
  stop_->setEnabled(session_.is_busy());
  hidden_lanes_->setVisible(!canvas_->hidden().empty());
  hidden_lanes_->setText(tr("%1 tracks hidden ×").arg(canvas_->hidden().size()));
  if (session_.is_busy())
    state_->setText(tr("replaying…"));
  else if (session_.is_stale())
    state_->setText(tr("not up to date"));
  else if (drawn_ != nullptr)
    state_->setText(tr("up to date, %1 ms").arg(session_.milliseconds(), 0, 'f', 0));
}

bool MainWindow::is_settled() const {
  return !session_.is_busy() && !session_.is_stale() && session_.outcome() != nullptr;
}

bool MainWindow::is_complete() const {
  if (sweep_->isVisible() && sweep_->is_running()) return false;
  if (compare_->isVisible() && session_.replays_others()) return false;
  if (start_->isVisible() && !start_->is_complete()) return false;
  if (diagnosis_->is_searching() || rank_.is_running()) return false;
  const bool looks = look_for_ways_.isActive() || answer_->is_searching();
  if (waits_for_ways_ && answer_->isVisible() && looks) return false;
  return !sensitivity_->isVisible() || session_.sensitivity() != nullptr;
}

void MainWindow::show_error(const SimulationError& error) {
  message_->show_error(error);
  show_state();
}

bool MainWindow::show_view(const QString& name) {
  if (name == "start") {
    show_start();
    return true;
  }
  waits_for_ways_ = name == "answer";
  if (name == "diagnosis") {
    bottom_->setCurrentWidget(diagnosis_);
    return show_view("canvas");
  }
  if (name == "treemap" || name == "flame") {
    holders_->set_shape(name == "flame" ? HeldShape::flame : HeldShape::treemap);
    return show_view("holders");
  }
  const std::pair<const char*, TrackKind> places[] = {{"timeline", TrackKind::spans},
                                                      {"memory", TrackKind::memory},
                                                      {"map", TrackKind::map},
                                                      {"pipeline", TrackKind::pass}};
  const auto* const place =
      std::find_if(std::begin(places), std::end(places), [&](const auto& one) { return name == one.first; });
  const bool is_place = place != std::end(places);
  const auto index = view_names.indexOf(is_place ? "canvas" : name);
  if (index < 0) return false;
  stack_->setCurrentIndex(work_index);
  tabs_->setCurrentIndex(static_cast<int>(index));
  if (is_place) canvas_->reveal(place->second);
  if (name == "map" || name == "memory") table_choice_->setCurrentIndex(1);
  if (name == "timeline") table_choice_->setCurrentIndex(0);
  if (name == "pipeline") table_choice_->setCurrentIndex(2);
  return true;
}

void MainWindow::set_theme(const Theme& theme) {
  theme_ = &theme;
  apply_theme(*qApp, theme);
  start_->set_theme(theme);
  canvas_->set_theme(theme);
  sensitivity_->set_theme(theme);
  roofline_->set_theme(theme);
  sweep_->set_theme(theme);
  strip_->set_theme(theme);
  answer_->set_theme(theme);
  diagnosis_->set_theme(theme);
  holders_->set_theme(theme);
  compare_->set_theme(theme);
  variants_->set_theme(theme);
  show_legend();
  message_->set_theme(theme);
  settings_.setValue("window/dark", theme.is_dark);
}

// What is shown, whole.
void MainWindow::write_answer_page(const QString& file) {
  const std::string unsaved = "spillway run of the scenario, once it is saved";
  studies::Answer answer = diagnosis_->diagnosed() == nullptr ? diagnose(drawn_).answer : *answer_->document();
  answer.command = session_.document()->command().value_or(unsaved);
  OutputFile out(file.toStdString());
  out.write(answer_html(answer));
  out.commit();
}

bool MainWindow::export_report(const QString& file) {
  if (drawn_ == nullptr) return false;
  try {
    const Result* const baseline =
        drawn_baseline_ == nullptr || drawn_baseline_ == drawn_ ? nullptr : &drawn_baseline_->result();
    if (baseline == nullptr && file.endsWith(".html"))
      write_answer_page(file);
    else
      use_whole(*drawn_, [&](const LoadedScenario& loaded, const ScenarioRun& run) {
        write_report(step_report(result_on_gpu_clock(loaded, run), baseline), file.toStdString());
      });
    message_->show_note(tr("The report is in %1").arg(file));
    return true;
  } catch (const std::exception& error) {
    show_error(describe_error(error));
    return false;
  }
}

bool MainWindow::export_selection(const QString& file) {
  try {
    OutputFile out(file.toStdString());
    out.write(table_text(*filtered_, true).toStdString());
    out.commit();
    return true;
  } catch (const std::exception& error) {
    show_error(describe_error(error));
    return false;
  }
}

bool MainWindow::save(const QString& file) {
  if (session_.document() == nullptr) return false;
  try {
    session_.document()->save(file.toStdString());
    remember(file);
    show_scenario();
    return true;
  } catch (const std::exception& error) {
    show_error(describe_error(error));
    return false;
  }
}

void MainWindow::remember(const QString& file) {
  QStringList recent = settings_.value("recent").toStringList();
  const QString path = QFileInfo(file).absoluteFilePath();
  recent.removeAll(path);
  recent.prepend(path);
  while (recent.size() > most_recent) recent.removeLast();
  settings_.setValue("recent", recent);
}

void MainWindow::dragEnterEvent(QDragEnterEvent* event) {
  if (event->mimeData()->hasUrls()) event->acceptProposedAction();
}

void MainWindow::dropEvent(QDropEvent* event) {
  for (const QUrl& url : event->mimeData()->urls())
    if (url.isLocalFile()) open(url.toLocalFile());
  event->acceptProposedAction();
}

void MainWindow::resizeEvent(QResizeEvent* event) {
  QMainWindow::resizeEvent(event);
  show_parts();
}

void MainWindow::closeEvent(QCloseEvent* event) {
  if (!leaves_ && !session_.changed().empty()) {
    event->ignore();
    return leave_then([this] {
      leaves_ = true;
      close();
    });
  }
  store_session();
  settings_.setValue("window/geometry", saveGeometry());
  settings_.sync();
  sweep_->stop();
  answer_->stop();
  diagnosis_->stop();
  export_.stop();
  session_.cancel();
  event->accept();
}

}  // namespace spillway::gui
