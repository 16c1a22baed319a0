// The window's workspace: variants, their comparison, the palette, what becomes of unsaved work.
#include <QDialog>
#include <QDockWidget>
#include <QFileDialog>
#include <QFileInfo>
#include <QMessageBox>
#include <QSettings>
#include <QStackedWidget>
#include <QTabWidget>
#include <algorithm>

#include "base/input_error.h"
#include "base/output_file.h"
#include "base/read_file.h"
#include "gui/app/main_window.h"
#include "gui/panels/compare_view.h"
#include "gui/panels/fuzzy_match.h"
#include "gui/panels/message_bar.h"
#include "gui/panels/scenario_panel.h"
#include "gui/panels/variant_panel.h"
#include "gui/plots/canvas_view.h"
#include "hwprofiles/profile_library.h"
#include "models/spec/model_spec.h"
#include "scenario/scenario.h"
#include "scenario/scenario_fields.h"

namespace spillway::gui {
namespace {

constexpr std::uint64_t largest_workspace = 256U << 20U;
constexpr std::size_t most_compared = 8;

}  // namespace

void MainWindow::show_variants() {
  variants_->update_variants();
  show_comparison();
  update_title();
}

// The baseline first, or what the one at hand is a what-if of; then the others as they were made.
void MainWindow::show_comparison() {
  if (!compare_->isVisible()) return;
  std::vector<ComparedVariant> columns;
  const auto baseline = session_.baseline();
  if (baseline != nullptr && session_.baseline_document() != nullptr)
    columns.push_back({tr("baseline"), session_.baseline_document()->text(), baseline->figures});
  const Variant* root = session_.variant(session_.current());
  while (root != nullptr && root->parent >= 0) root = session_.variant(root->parent);
  const auto add = [&](const Variant& one) {
    if (columns.size() >= most_compared) return;
    columns.push_back({QString::fromStdString(one.name), one.document.text(), one.figures});
  };
  if (root != nullptr) add(*root);
  for (const auto& one : session_.variants())
    if (one.get() != root) add(*one);
  compare_->show_variants(std::move(columns));
  session_.replay_others();
}

void MainWindow::next_variant() {
  const auto& variants = session_.variants();
  for (std::size_t i = 0; i < variants.size(); ++i)
    if (variants[i]->id == session_.current()) return session_.switch_to(variants[(i + 1) % variants.size()]->id);
}

// ---- what is in no file ----

// Ends with the program: asks first. Opening something takes nobody's place, and asks nothing.
void MainWindow::leave_then(std::function<void()> go_on) {
  const std::vector<int> changed = session_.changed();
  if (changed.empty()) return go_on();
  const QString name = QString::fromStdString(session_.variant(changed.front())->name);
  auto* const box = new QMessageBox(
      QMessageBox::Question, tr("Unsaved changes"),
      changed.size() == 1 ? tr("%1 has changes that are in no file. Save them?").arg(name)
                          : tr("%1 variants have changes that are in no file. Save the workspace?").arg(changed.size()),
      QMessageBox::Save | QMessageBox::Discard | QMessageBox::Cancel, this);
  box->setAttribute(Qt::WA_DeleteOnClose);
  box->setDefaultButton(QMessageBox::Save);
  QObject::connect(box, &QDialog::finished, this, [this, changed, go_on = std::move(go_on)](int answer) {
    if (answer == QMessageBox::Discard) return go_on();
    if (answer != QMessageBox::Save) return;
    if (changed.size() > 1) return ask_save_workspace() ? go_on() : void();
    session_.switch_to(changed.front());
    if (ask_save(false)) go_on();
  });
  box->open();
}

bool MainWindow::ask_save_workspace() {
  if (session_.variants().empty()) return false;
  const QString file =
      QFileDialog::getSaveFileName(this, tr("Save the workspace"), workspace_file_, tr("Workspaces (*.spillway)"));
  return !file.isEmpty() && save_workspace(file);
}

bool MainWindow::save_workspace(const QString& file) {
  try {
    OutputFile out(file.toStdString());
    out.write(workspace_text(session_.stored()));
    out.commit();
    workspace_file_ = file;
    session_.mark_saved();
    remember(file);
    return true;
  } catch (const std::exception& error) {
    show_error(describe_error(error));
    return false;
  }
}

void MainWindow::open_workspace(const std::string& path) {
  const StoredWorkspace workspace = parse_workspace(read_file(path, largest_workspace), path);
  workspace_file_ = QString::fromStdString(path);
  opened_ = workspace_file_;
  session_.restore(workspace);
}

// Every state of the workspace, so that nothing is lost however the program ends.
void MainWindow::store_session() {
  const ScenarioDocument* const document = session_.document();
  if (document == nullptr) return;
  try {
    settings_.setValue("session/workspace", QString::fromStdString(workspace_text(session_.stored())));
  } catch (const std::exception&) {  // a path that is no text: the last state that was one stays
    return;
  }
  settings_.setValue("session/title", QString::fromStdString(document->value("title").value_or(document->name())));
}

void MainWindow::continue_session() {
  if (session_.document() != nullptr) return show_work();
  try {
    const QString stored = settings_.value("session/workspace").toString();
    if (stored.isEmpty()) return;
    opened_.clear();
    session_.restore(parse_workspace(stored.toStdString(), "the last session"));
  } catch (const std::exception& error) {
    show_error(describe_error(error));
  }
}

// ---- the palette ----

std::vector<PaletteItem> MainWindow::palette_items() {
  std::vector<PaletteItem> items;
  for (QAction* const one : actions()) {
    if (one->text().isEmpty()) continue;
    items.push_back({QString(one->text()).remove('&'), one->shortcut().toString(QKeySequence::NativeText),
                     tr("command"), one->isEnabled(), [one] { one->trigger(); }});
  }
  for (const auto& one : session_.variants())
    items.push_back(
        {QString::fromStdString(one->name), {}, tr("variant"), true, [this, id = one->id] { session_.switch_to(id); }});
  if (session_.document() == nullptr) return items;
  for (const Control& control : scenario_controls())
    items.push_back({QString::fromStdString(control.label),
                     QString::fromStdString(control.key + " is " +
                                            session_.document()->value(control.key).value_or(control.otherwise)),
                     tr("key"), true, [this, key = control.key] {
                       scenario_dock_->setVisible(true);
                       panel_->reveal(key);
                     }});
  const auto choose = [&](const std::string& name, const char* key, const QString& group) {
    items.push_back({QString::fromStdString(name), {}, group, true, [this, key = std::string(key), name] {
                       session_.edit(key, name, false);
                     }});
  };
  if (!session_.document()->is_trace())
    for (const std::string& name : bundled_models()) choose(name, "model.name", tr("model"));
  for (const ProfileEntry& entry : ProfileLibrary::shared().list()) {
    if (entry.kind == ProfileKind::system || entry.kind == ProfileKind::gpu)
      choose(entry.name, "hardware.profile", tr("machine"));
    if (entry.kind == ProfileKind::nvme) choose(entry.name, "offload.drives", tr("drive"));
  }
  return items;
}

// "mb 16", "model.micro_batch=16": the keys that the letters name, set to that.
std::vector<PaletteItem> MainWindow::key_items(const QString& words) {
  std::vector<PaletteItem> items;
  const ScenarioDocument* const document = session_.document();
  const QString typed = words.trimmed();
  const qsizetype cut = typed.contains('=') ? typed.indexOf('=') : typed.lastIndexOf(' ');
  if (document == nullptr || cut <= 0) return items;
  const QString letters = typed.left(cut).trimmed();
  const std::string value = typed.mid(cut + 1).trimmed().toStdString();
  if (value.empty()) return items;
  std::vector<std::pair<int, const FieldRow*>> found;
  static const std::vector<FieldRow> rows = scenario_rows();
  for (const FieldRow& row : rows) {
    const QString path = QString::fromStdString(row.path);
    const QString label = QString::fromStdString(std::string(row.info.label));
    int best = path == letters ? 10'000 : -1;
    for (const QString& name : {path.section('.', -1), label, path})
      if (const auto score = name.isEmpty() ? std::nullopt : fuzzy_match(letters, name)) best = std::max(best, *score);
    if (best >= 0) found.emplace_back(best, &row);
  }
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  constexpr std::size_t most_keys = 5;
  found.resize(std::min(found.size(), most_keys));
  for (const auto& [score, row] : found) {
    PaletteItem item;
    item.group = tr("key");
    item.text = QString::fromStdString(row->path + " " + value);
    item.detail = tr("is %1").arg(QString::fromStdString(document->value(row->path).value_or(row->otherwise)));
    try {  // What the loader says of it is said before it is done.
      if (const Control control = control_of(row->path); is_derived(control, *document))
        throw InputError(row->path, "", "derived: " + control.follows + " decides", "set " + control.follows);
      const std::string text = with_setting(document->text(), row->path + "=" + value);
      static_cast<void>(parse_scenario(text, document->name(), document->folder()));
      item.run = [this, key = row->path, value] { session_.edit(key, value, false); };
    } catch (const std::exception& error) {
      item.can_run = false;
      item.detail = QString::fromStdString(describe_error(error).title);
    }
    items.push_back(std::move(item));
  }
  return items;
}

}  // namespace spillway::gui
