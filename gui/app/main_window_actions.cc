// The window's commands: menus, keys, and what they ask first.
#include <QApplication>
#include <QClipboard>
#include <QDesktopServices>
#include <QDialog>
#include <QDialogButtonBox>
#include <QDockWidget>
#include <QFileDialog>
#include <QFileInfo>
#include <QHeaderView>
#include <QInputDialog>
#include <QLabel>
#include <QLineEdit>
#include <QMenuBar>
#include <QMessageBox>
#include <QScreen>
#include <QScrollArea>
#include <QSettings>
#include <QSortFilterProxyModel>
#include <QStackedWidget>
#include <QTabWidget>
#include <QTableView>
#include <QToolButton>
#include <QUrl>
#include <QVBoxLayout>
#include <algorithm>

#include "base/data_folder.h"
#include "base/version.h"
#include "gui/app/main_window.h"
#include "gui/panels/answer_view.h"
#include "gui/panels/message_bar.h"
#include "gui/panels/sweep_view.h"
#include "gui/panels/trace_range_dialog.h"
#include "gui/panels/training_run_dialog.h"
#include "gui/panels/variant_panel.h"
#include "gui/panels/way_list.h"
#include "gui/plots/canvas_view.h"
#include "gui/plots/charts.h"
#include "gui/plots/table_model.h"
#include "reports/pictures/timeline_file.h"
#include "reports/procurement_report.h"
#include "scenario/scenario.h"
#include "studies/procurement/procurement.h"
#include "studies/procurement/procurement_request.h"

namespace spillway::gui {

QAction* MainWindow::action(QMenu* menu, const QString& text, const QKeySequence& keys, std::function<void()> run) {
  auto* const made = new QAction(text, this);
  made->setShortcut(keys);
  QObject::connect(made, &QAction::triggered, this, std::move(run));
  menu->addAction(made);
  addAction(made);
  return made;
}

void MainWindow::make_actions() {
  palette_ = new CommandPalette(this);
  QMenu* const file = menuBar()->addMenu(tr("&File"));
  action(file, tr("&Open…"), QKeySequence::Open, [this] { ask_open(); });
  action(file, tr("S&tart page"), {}, [this] { show_start(); });
  file->addSeparator();
  action(file, tr("&Save scenario"), QKeySequence::Save, [this] { ask_save(false); });
  action(file, tr("Save scenario &as…"), QKeySequence("Ctrl+Shift+S"), [this] { ask_save(true); });
  action(file, tr("Save &workspace…"), {}, [this] { ask_save_workspace(); });
  action(file, tr("Export &report…"), QKeySequence("Ctrl+E"), [this] { ask_report(); });
  action(file, tr("Export the t&imeline…"), {}, [this] { ask_timeline(); });
  action(file, tr("Export the &procurement report…"), QKeySequence("Ctrl+Shift+E"), [this] { ask_procurement(); });
  action(file, tr("Export the table as &CSV…"), {}, [this] { ask_csv(); });
  file->addSeparator();
  action(file, tr("&Quit"), QKeySequence::Quit, [this] { close(); });

  QMenu* const edit = menuBar()->addMenu(tr("&Edit"));
  undo_ = action(edit, tr("&Undo"), QKeySequence::Undo, [this] { session_.undo(); });
  redo_ = action(edit, tr("&Redo"), QKeySequence("Ctrl+Shift+Z"), [this] { session_.redo(); });
  edit->addSeparator();
  action(edit, tr("Copy as &command"), QKeySequence("Ctrl+Shift+C"), [this] { copy_command(); });
  action(edit, tr("Copy the &picture"), {}, [this] { copy_picture(); });
  action(edit, tr("Copy the &table"), {},
         [this] { QApplication::clipboard()->setText(table_text(*filtered_, false)); });
  edit->addSeparator();
  action(edit, tr("&Find work by name"), QKeySequence::Find, [this] {
    search_->setFocus();
    search_->selectAll();
  });
  action(edit, tr("Find &next"), QKeySequence::FindNext, [this] { find_next(false); });
  action(edit, tr("Find pre&vious"), QKeySequence::FindPrevious, [this] { find_next(true); });

  QMenu* const what_if = menuBar()->addMenu(tr("&What if"));
  pin_ = action(what_if, tr("Pin as &baseline"), QKeySequence("B"), [this] { session_.pin(); });
  pin_->setCheckable(true);
  action(what_if, tr("Wa&ys to fit"), QKeySequence("G"), [this] {
    stack_->setCurrentIndex(1);
    tabs_->setCurrentIndex(answer_tab);
    show_parts();
    answer_->ways().setFocus();
  });
  action(what_if, tr("&New variant"), QKeySequence("V"), [this] { session_.branch({}); });
  action(what_if, tr("Ne&xt variant"), QKeySequence("Shift+V"), [this] { next_variant(); });
  action(what_if, tr("R&ename the variant"), QKeySequence("F2"), [this] { variants_->rename_current(); });
  action(what_if, tr("Remo&ve the variant"), QKeySequence("Ctrl+Delete"), [this] {
    const Variant* const gone = session_.variant(session_.current());
    if (gone == nullptr || session_.variants().size() < 2) return message_->show_note(tr("It is the only variant."));
    const QString name = QString::fromStdString(gone->name);
    session_.remove(gone->id);
    message_->show_note(tr("%1 is removed; What if > Bring back the removed variant has it.").arg(name));
  });
  action(what_if, tr("Brin&g back the removed variant"), {}, [this] {
    if (!session_.restore_removed()) message_->show_note(tr("No variant was removed."));
  });
  // Esc is the views' own while nothing runs.
  stop_ = action(what_if, tr("&Cancel what is running"), QKeySequence(Qt::Key_Escape), [this] { session_.cancel(); });
  stop_->setEnabled(false);
  action(what_if, tr("Time &range of the trace…"), {}, [this] { ask_trace_range(); });
  action(what_if, tr("A &whole training run…"), {}, [this] { show_training_run(); });
  action(what_if, tr("What the &figures rest on"), {}, [this] { show_provenance(); });
  action(what_if, tr("Run or stop the &sweep"), QKeySequence("F5"),
         [this] { sweep_->is_running() ? sweep_->stop() : sweep_->start(); });

  QMenu* const view = menuBar()->addMenu(tr("&View"));
  for (int i = 0; i < tabs_->count(); ++i)
    action(view, tabs_->tabText(i), QKeySequence(QString("Ctrl+%1").arg(i + 1)), [this, i] {
      stack_->setCurrentIndex(1);
      tabs_->setCurrentIndex(i);
      show_parts();
      i == canvas_tab ? canvas_->setFocus() : tabs_->currentWidget()->setFocus();
    });
  view->addSeparator();
  action(view, tr("&Keys and variants"), QKeySequence("F9"), [this] { keys_button_->click(); });
  action(view, tr("&Dark or light"), {}, [this] { set_theme(theme_->is_dark ? light_theme() : dark_theme()); });
  const auto offer = [this] {
    palette_->offer(palette_items(), [this](const QString& words) { return key_items(words); });
  };
  action(view, tr("Command &palette"), QKeySequence("Ctrl+K"), offer)
      ->setShortcuts({QKeySequence("Ctrl+K"), QKeySequence("Ctrl+P")});

  QMenu* const help = menuBar()->addMenu(tr("&Help"));
  action(help, tr("&Keys"), QKeySequence::HelpContents, [this] {
    show_shortcuts();
  })->setShortcuts({QKeySequence(QKeySequence::HelpContents), QKeySequence("?")});
  action(help, tr("&Documentation"), {}, [this] {
    for (const std::string& place : data_places("../doc/spillway/html/index.html", "build/site/index.html"))
      if (QFileInfo::exists(QString::fromStdString(place))) {
        QDesktopServices::openUrl(QUrl::fromLocalFile(QFileInfo(QString::fromStdString(place)).absoluteFilePath()));
        return;
      }
    message_->show_note(tr("The pages are not installed. In a source tree, ./spill site builds them."));
  });
  action(help, tr("&About spillway"), {}, [this] {
    QMessageBox::about(this, tr("About spillway"),
                       tr("<b>spillway %1</b><br>Apache-2.0. This window uses Qt, under the LGPL-3: it is linked "
                          "dynamically, and may be replaced by another build of it.")
                           .arg(program_version()));
  });
}

// Marks all work of that name, or launched under an operator or an annotation of it.
void MainWindow::find_all() {
  found_.clear();
  const std::string words = search_->text().toStdString();
  if (drawn_ != nullptr && !words.empty()) found_ = find_ops(drawn_->trace(), words);
  canvas_->mark(found_);
  found_count_->setText(words.empty() ? QString() : tr("%1 found").arg(found_.size()));
}

void MainWindow::find_next(bool backwards) {
  if (drawn_ == nullptr || search_->text().isEmpty()) return;
  if (found_.empty()) find_all();
  if (found_.empty()) return message_->show_note(tr("Nothing is named “%1”.").arg(search_->text()));
  const auto chosen = canvas_->chosen();
  const auto at = chosen ? static_cast<std::uint32_t>(index_of(*chosen)) : 0;
  std::size_t next = 0;
  if (backwards) {
    const auto before = std::lower_bound(found_.begin(), found_.end(), chosen ? at : 0);
    next = static_cast<std::size_t>((before == found_.begin() ? found_.end() : before) - found_.begin()) - 1;
  } else if (chosen) {
    const auto after = std::upper_bound(found_.begin(), found_.end(), at);
    next = after == found_.end() ? 0 : static_cast<std::size_t>(after - found_.begin());
  }
  show_view("canvas");
  canvas_->go_to(static_cast<OpId>(found_[next]));
  found_count_->setText(tr("%1 of %2").arg(next + 1).arg(found_.size()));
}

void MainWindow::ask_open() {
  const QString file =
      QFileDialog::getOpenFileName(this, tr("Open a scenario, trace, snapshot, model, profile or sweep"));
  if (!file.isEmpty()) open(file);
}

bool MainWindow::ask_save(bool elsewhere) {
  if (session_.document() == nullptr) return false;
  QString file = QString::fromStdString(session_.document()->file());
  if (file.isEmpty() || elsewhere)
    file = QFileDialog::getSaveFileName(this, tr("Save the scenario"), file, tr("Scenarios (*.json)"));
  return !file.isEmpty() && save(file);
}

void MainWindow::ask_report() {
  if (drawn_ == nullptr) return;
  const QString file = QFileDialog::getSaveFileName(this, tr("Export the report"), "report.html",
                                                    tr("Reports (*.html *.pdf *.xlsx *.csv)"));
  if (!file.isEmpty()) export_report(file);
}

void MainWindow::ask_timeline() {
  if (drawn_ == nullptr) return;
  const QString file = QFileDialog::getSaveFileName(this, tr("Export the timeline"), "timeline.json",
                                                    tr("Perfetto traces (*.json);;Pictures (*.svg *.png)"));
  if (!file.isEmpty()) export_timeline(file);
}

bool MainWindow::export_timeline(const QString& file) {
  const bool is_picture = file.endsWith(".png");
  if (!is_picture && !file.endsWith(".svg") && !file.endsWith(".json")) {
    message_->show_note(tr("Name a Perfetto file (.json) or a picture (.svg, .png)."));
    return false;
  }
  if (is_picture) {
    const bool written = canvas_->picture().save(file);
    message_->show_note(written ? tr("The timeline is in %1").arg(file) : tr("%1 could not be written").arg(file));
    return written;
  }
  export_.on_failed = [this](const SimulationError& error) { show_error(error); };
  export_.on_end = [this] { show_state(); };
  export_.start([this, file, outcome = drawn_](const Worker::Task& task) {
    use_whole(*outcome, [&file](const LoadedScenario& loaded, const ScenarioRun& run) {
      reports::write_timeline(loaded, run, file.toStdString());
    });
    task.post([this, file] { message_->show_note(tr("The timeline is in %1").arg(file)); });
  });
  return true;
}

void MainWindow::ask_procurement() {
  const QString file = QFileDialog::getSaveFileName(this, tr("Export the procurement report"), "procurement.html",
                                                    tr("Reports (*.html *.pdf *.xlsx *.csv)"));
  if (!file.isEmpty()) export_procurement(file);
}

bool MainWindow::export_procurement(const QString& file) {
  const ScenarioDocument* const document = session_.document();
  if (document == nullptr || document->file().empty() || document->is_changed()) {
    message_->show_note(tr("Save the scenario first: the report is of its file."));
    return false;
  }
  export_.on_failed = [this](const SimulationError& error) { show_error(error); };
  export_.on_end = [this] { show_state(); };
  message_->show_note(tr("Looking for what to buy; the report will be in %1").arg(file));
  export_.start([this, file, path = document->file()](const Worker::Task& task) {
    const studies::ProcurementRequest request = studies::read_procurement_request(path, {});
    const auto progress = [&](const std::string& what, std::size_t done, std::size_t all) {
      task.post([this, what, done, all] {
        state_->setText(tr("%1: %2 of %3").arg(QString::fromStdString(what)).arg(done).arg(all));
      });
      return !task.is_stopped();
    };
    const ReportDocument report = procurement_report(request, studies::answer_procurement(request, progress));
    write_report(report, file.toStdString());
    task.post([this, file] { message_->show_note(tr("The report is in %1").arg(file)); });
  });
  return true;
}

void MainWindow::ask_note(std::optional<std::size_t> which, bool removes, std::int64_t at) {
  const std::vector<Note> notes = session_.notes();
  if (which && *which >= notes.size()) return;
  const QString before = which ? QString::fromStdString(notes[*which].text) : QString();
  if (removes) return write_note(which, {}, at);
  auto* const dialog = new QInputDialog(this);
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setWindowTitle(tr("Note"));
  dialog->setLabelText(which ? tr("What is to be seen here; nothing: the note goes.") : tr("What is to be seen here:"));
  dialog->setTextValue(before);
  QObject::connect(dialog, &QInputDialog::textValueSelected, this,
                   [this, which, at](const QString& text) { write_note(which, text.trimmed(), at); });
  dialog->open();
}

// Empty: the note goes.
void MainWindow::write_note(std::optional<std::size_t> which, const QString& text, std::int64_t at) {
  std::vector<Note> notes = session_.notes();
  if (which ? *which >= notes.size() : text.isEmpty()) return;
  std::string name = "note: " + text.toStdString();
  if (!which) {
    notes.push_back({canvas_->axis(), at, text.toStdString()});
  } else if (text.isEmpty()) {
    name = "remove note: " + notes[*which].text;
    notes.erase(notes.begin() + static_cast<std::ptrdiff_t>(*which));
  } else {
    notes[*which].text = text.toStdString();
  }
  session_.set_notes(std::move(notes), name);
}

void MainWindow::ask_csv() {
  const QString file = QFileDialog::getSaveFileName(this, tr("Export the table"), "selection.csv", tr("CSV (*.csv)"));
  if (!file.isEmpty()) export_selection(file);
}

void MainWindow::ask_trace_range() {
  if (session_.document() == nullptr || !session_.document()->is_trace())
    return message_->show_note(tr("The scenario replays no trace."));
  const Scenario scenario =
      parse_scenario(session_.document()->text(), session_.document()->name(), session_.document()->folder());
  TraceRangeDialog dialog(this, scenario.trace, session_.range());
  if (dialog.exec() == QDialog::Accepted) session_.set_range(dialog.range());
}

void MainWindow::copy_picture() {
  if (tabs_->currentIndex() == canvas_tab)
    QApplication::clipboard()->setImage(canvas_->picture());
  else
    QApplication::clipboard()->setPixmap(tabs_->currentWidget()->grab());
}

void MainWindow::copy_command() {
  if (session_.document() == nullptr) return;
  const auto command = session_.document()->command();
  if (!command) return message_->show_note(tr("Save the scenario first: the command names its file."));
  QApplication::clipboard()->setText(QString::fromStdString(*command));
  message_->show_note(tr("Copied: %1").arg(QString::fromStdString(*command)));
}

std::vector<KeyRow> MainWindow::keys() const {
  std::vector<KeyRow> rows = canvas_keys();
  for (const QAction* const one : actions()) {
    QStringList keys;
    for (const QKeySequence& sequence : one->shortcuts()) {
      const auto has_it = [&](const KeyRow& row) { return row.keys.contains(sequence.toString()); };
      if (std::none_of(rows.begin(), rows.end(), has_it)) keys.append(sequence.toString());
    }
    if (!keys.isEmpty()) rows.push_back({keys, {}, QString(one->text()).remove('&').remove(QChar(0x2026))});
  }
  rows.push_back({{"Return"}, tr("double click"), tr("in the ways to fit: apply the set-up; with Shift as a variant")});
  return rows;
}

void MainWindow::show_shortcuts() {
  QString rows;
  for (const KeyRow& row : keys())
    rows += QString("<tr><td><b>%1</b>&nbsp;&nbsp;</td><td>%2</td></tr>")
                .arg(row.text().toHtmlEscaped(), row.words.toHtmlEscaped());
  QDialog dialog(this);
  dialog.setObjectName("keys");
  dialog.setWindowTitle(tr("Keys"));
  auto* const words = new QLabel("<table>" + rows + "</table>");
  words->setMargin(8);
  const int width = words->sizeHint().width();
  words->setWordWrap(true);
  auto* const area = new QScrollArea;
  area->setWidgetResizable(true);
  area->setWidget(words);
  auto* const buttons = new QDialogButtonBox(QDialogButtonBox::Close);
  connect(buttons, &QDialogButtonBox::rejected, &dialog, &QDialog::reject);
  auto* const column = new QVBoxLayout(&dialog);
  column->addWidget(area);
  column->addWidget(buttons);
  // As wide as its rows where there is room, and no higher than the screen, for the button to be in reach.
  constexpr int edges = 60;
  const QSize room = screen()->availableGeometry().size();
  dialog.resize(std::min(width + edges, room.width()), std::min(700, room.height() * 4 / 5));
  dialog.exec();
}

void MainWindow::show_training_run() {
  if (drawn_ == nullptr) return;
  if (!drawn_->result().may_fit() || drawn_->result().step_time <= Picos(0))
    return message_->show_note(tr("There is no training run of a step that does not fit, or of unknown length."));
  const bool is_shown = session_.document() != nullptr && !session_.is_stale();  // what the document says
  const auto command = is_shown ? session_.document()->command() : std::nullopt;
  TrainingRunDialog(this, drawn_, command.value_or("")).exec();
}

void MainWindow::show_provenance() {
  if (drawn_ == nullptr) return;
  QDialog dialog(this);
  dialog.setWindowTitle(tr("What the figures rest on"));
  dialog.resize(900, 420);
  auto* const column = new QVBoxLayout(&dialog);
  TableModel model;
  model.show(provenance_table());
  auto* const table = new QTableView;
  table->setModel(&model);
  table->setTabKeyNavigation(false);
  table->verticalHeader()->setVisible(false);
  table->horizontalHeader()->setStretchLastSection(true);
  table->resizeColumnsToContents();
  column->addWidget(table);
  dialog.exec();
}

}  // namespace spillway::gui
