// The window: scenario at the left, the answer in the middle, provenance in the status bar. The other views are behind
// the answer, the canvas with all tracks first; figures are on top, the selection's table below. Everything in it can
// be done by keyboard.
#pragma once

#include <QMainWindow>
#include <QTimer>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gui/canvas/theme.h"
#include "gui/panels/command_palette.h"
#include "gui/plots/key_list.h"
#include "gui/plots/time_view.h"
#include "gui/workspace/scenario_document.h"
#include "gui/workspace/session.h"
#include "gui/workspace/worker.h"

class QComboBox;
class QLabel;
class QLineEdit;
class QPlainTextEdit;
class QProgressBar;
class QPushButton;
class QSettings;
class QSortFilterProxyModel;
class QStackedWidget;
class QTabWidget;
class QToolButton;
class QTableView;
class QUndoView;

namespace spillway::gui {

class AnswerView;
class CanvasView;
class CompareView;
class DiagnosisPanel;
struct DiagnosedPlace;
class HoldersPanel;
class Legend;
class MessageBar;
class RooflineChart;
class ScenarioPanel;
class SensitivityChart;
class StartPage;
class SweepView;
class TableModel;
class VariantPanel;
class VerdictStrip;
struct TableRows;

class MainWindow : public QMainWindow {
 public:
  // settings: recent files, layout, the last session; outlives it.
  explicit MainWindow(QSettings& settings);
  ~MainWindow() override;

  // Any file that can be opened or dropped, by its content. Errors are shown in the window.
  void open(const QString& file);
  // The names of --view: "start", "answer", "canvas", "diagnosis", "sensitivity", "pareto", "roofline", "compare",
  // "treemap", "flame"; "timeline", "memory", "map" and "pipeline" are places of the canvas. False for another.
  bool show_view(const QString& name);
  void set_theme(const Theme& theme);

  // For tests and pictures.
  [[nodiscard]] Session& session() { return session_; }
  [[nodiscard]] SharedTime& time() { return time_; }
  [[nodiscard]] ScenarioPanel& panel() { return *panel_; }
  [[nodiscard]] VerdictStrip& strip() { return *strip_; }
  [[nodiscard]] CanvasView& canvas() { return *canvas_; }
  [[nodiscard]] AnswerView& answer() { return *answer_; }
  [[nodiscard]] SweepView& sweep() { return *sweep_; }
  [[nodiscard]] SensitivityChart& sensitivity() { return *sensitivity_; }
  [[nodiscard]] RooflineChart& roofline() { return *roofline_; }
  [[nodiscard]] StartPage& start_page() { return *start_; }
  [[nodiscard]] CompareView& compare() { return *compare_; }
  [[nodiscard]] DiagnosisPanel& diagnosis() { return *diagnosis_; }
  [[nodiscard]] HoldersPanel& holders() { return *holders_; }
  [[nodiscard]] VariantPanel& variants() { return *variants_; }
  [[nodiscard]] CommandPalette& palette() { return *palette_; }
  [[nodiscard]] QComboBox& rank_choice() { return *rank_choice_; }
  [[nodiscard]] TableModel& selection() { return *selection_; }
  [[nodiscard]] MessageBar& message() { return *message_; }
  // All there are, as the dialog of keys has them.
  [[nodiscard]] std::vector<KeyRow> keys() const;
  // Everything on screen is of the newest state.
  [[nodiscard]] bool is_settled() const;
  // So is what the view that is shown has to wait for besides.
  [[nodiscard]] bool is_complete() const;
  // Writes what the step came to: as .html its answer's page, and beside a baseline, or as .pdf, .xlsx or .csv, a
  // document. False when it failed, which the window says.
  bool export_report(const QString& file);
  bool export_selection(const QString& file);
  // Exports the timeline: for Perfetto (.json) or as .svg, beside the window; as .png at once, the canvas as it is.
  bool export_timeline(const QString& file);
  // As `spillway report procurement` of the scenario's file does, beside the window: when it is there the message says
  // so. False: it has no file that is as it is.
  bool export_procurement(const QString& file);
  [[nodiscard]] bool is_exporting() const { return export_.is_running(); }
  bool save(const QString& file);
  bool save_workspace(const QString& file);

 protected:
  void dragEnterEvent(QDragEnterEvent* event) override;
  void dropEvent(QDropEvent* event) override;
  void closeEvent(QCloseEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;

 private:
  void write_answer_page(const QString& file);
  // Starts what the tab in sight needs besides the step: ways, what would help, the diagnosis.
  void look_for_answer();
  static constexpr int answer_tab = 0, canvas_tab = 1;  // of tabs_

  // main_window_layout.cc
  void make_views();
  QWidget* make_canvas();
  void show_axis();
  void show_drawn_part();
  void show_ranks();
  void look_at_rank();
  void show_legend();
  void make_docks();
  void make_status();

  // main_window.cc
  void apply_way(const std::string& text, const std::string& name);
  void apply_relaxation(qint64 id);
  void open_unguarded(const QString& file);
  void open_trace(const std::string& path, const QString& file);
  void take(ScenarioDocument document, const QString& recent, const ReadRange& range = {});
  void show_start();
  void show_work();
  void begin_document();
  void show_scenario();
  void show_outcome();
  void show_state();
  // The sweep in sight is not of the variant at hand: the window shows nothing of that variant around it.
  [[nodiscard]] bool shows_sweep() const;
  void show_parts();
  void show_error(const SimulationError& error);
  void remember(const QString& file);
  void update_title();

  // main_window_variants.cc
  void show_variants();
  void show_comparison();
  void next_variant();
  // Asks first what becomes of changes that are in no file; goes on unless the answer is to stay, or saving failed.
  void leave_then(std::function<void()> go_on);
  bool ask_save_workspace();
  void open_workspace(const std::string& path);
  void store_session();
  void continue_session();
  [[nodiscard]] std::vector<PaletteItem> palette_items();
  [[nodiscard]] std::vector<PaletteItem> key_items(const QString& words);

  // main_window_tables.cc
  void show_selection();
  void show_frames();
  [[nodiscard]] TableRows work_table() const;
  [[nodiscard]] TableRows allocation_table() const;
  [[nodiscard]] TableRows kinds_table() const;
  [[nodiscard]] TableRows ranks_table() const;
  [[nodiscard]] TableRows provenance_table() const;
  void fit_columns();
  void row_chosen(const QModelIndex& index);
  // Who holds memory, at the peak or where the selection begins.
  void show_holders();
  // While it is in sight.
  void look_for_diagnosis();
  void go_to_place(const DiagnosedPlace& place);

  // main_window_actions.cc
  void make_actions();
  QAction* action(QMenu* menu, const QString& text, const QKeySequence& keys, std::function<void()> run);
  void find_all();
  void find_next(bool backwards);
  void ask_open();
  bool ask_save(bool elsewhere);  // false: nothing was saved
  void ask_report();
  void ask_timeline();
  void ask_procurement();
  void ask_csv();
  // which: an index in the session's notes; none: a new note at `at`.
  void ask_note(std::optional<std::size_t> which, bool removes, std::int64_t at);
  void write_note(std::optional<std::size_t> which, const QString& text, std::int64_t at);
  void ask_trace_range();
  void copy_picture();
  void copy_command();
  void show_shortcuts();
  void show_training_run();
  void show_provenance();

  QSettings& settings_;
  const Theme* theme_;
  SharedTime time_;
  Session session_;
  std::shared_ptr<const Outcome> drawn_, drawn_baseline_;
  bool has_document_ = false;       // as the parts are shown
  std::optional<bool> wants_keys_;  // none: where there is room for them
  QString opened_;                  // the file that is being opened; empty: what has none
  std::string next_reveal_;         // key of the control to show when it is open; empty: none in particular
  bool leaves_ = false;             // the question about unsaved changes has been answered

  QStackedWidget* stack_ = nullptr;
  QTabWidget* tabs_ = nullptr;
  QToolButton* keys_button_ = nullptr;
  StartPage* start_ = nullptr;
  ScenarioPanel* panel_ = nullptr;
  VerdictStrip* strip_ = nullptr;
  AnswerView* answer_ = nullptr;
  QTabWidget* bottom_ = nullptr;
  QTimer look_for_ways_;
  bool waits_for_ways_ = false;  // is_complete() does
  Legend* legend_ = nullptr;
  MessageBar* message_ = nullptr;
  CanvasView* canvas_ = nullptr;
  QPushButton *axis_gpu_ = nullptr, *axis_host_ = nullptr, *axis_order_ = nullptr, *path_button_ = nullptr;
  QComboBox* table_choice_ = nullptr;
  QComboBox* rank_choice_ = nullptr;  // the rank of the canvas's memory and counters
  std::vector<std::uint32_t> found_;  // ops that the search names
  SensitivityChart* sensitivity_ = nullptr;
  RooflineChart* roofline_ = nullptr;
  SweepView* sweep_ = nullptr;
  QTableView* table_ = nullptr;
  QPlainTextEdit* frames_ = nullptr;
  CompareView* compare_ = nullptr;
  DiagnosisPanel* diagnosis_ = nullptr;
  HoldersPanel* holders_ = nullptr;
  VariantPanel* variants_ = nullptr;
  QUndoView* history_ = nullptr;
  QString workspace_file_;  // empty: none yet
  TableModel* selection_ = nullptr;
  QSortFilterProxyModel* filtered_ = nullptr;
  QDockWidget *scenario_dock_ = nullptr, *table_dock_ = nullptr;
  QLineEdit *filter_ = nullptr, *search_ = nullptr;
  QLabel *found_count_ = nullptr, *drawn_part_ = nullptr, *count_ = nullptr, *state_ = nullptr, *provenance_ = nullptr,
         *fingerprint_ = nullptr;
  QPushButton *hidden_lanes_ = nullptr, *selected_range_ = nullptr, *cancel_ = nullptr;
  QProgressBar* progress_ = nullptr;
  QAction *undo_ = nullptr, *redo_ = nullptr, *pin_ = nullptr, *stop_ = nullptr;
  CommandPalette* palette_ = nullptr;
  Worker export_, rank_;  // last: end before what they speak to
};

}  // namespace spillway::gui
