#include "gui/panels/scenario_panel.h"

#include <QComboBox>
#include <QGroupBox>
#include <QLabel>
#include <QStyle>
#include <QVBoxLayout>
#include <algorithm>
#include <filesystem>

#include "base/data_folder.h"

namespace spillway::gui {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> scenario_folders() {
  std::vector<std::string> folders = data_places("start", "gui/scenarios");
  for (std::string& place : data_places("examples/scenarios", "cli/scenarios")) folders.push_back(std::move(place));
  return folders;
}

}  // namespace

std::vector<std::string> bundled_scenarios() {
  std::vector<std::string> files;
  std::vector<std::string> names;
  for (const std::string& folder : scenario_folders())
    for (const std::string& file : json_files_in(folder)) {
      const std::string name = fs::path(file).filename().string();
      if (std::find(names.begin(), names.end(), name) != names.end()) continue;
      names.push_back(name);
      files.push_back(file);
    }
  return files;
}

ScenarioPanel::ScenarioPanel() {
  setWidgetResizable(true);
  setFrameShape(QFrame::NoFrame);
  setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  auto* const content = new QWidget;
  auto* const column = new QVBoxLayout(content);
  column->setContentsMargins(8, 6, 8, 8);
  column->setSpacing(6);
  presets_ = new QComboBox;
  presets_->setObjectName("presets");
  presets_->setAccessibleName(tr("Bundled scenarios"));
  presets_->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  presets_->setMinimumContentsLength(12);
  presets_->addItem(tr("Presets…"));
  for (const std::string& file : bundled_scenarios())
    presets_->addItem(QString::fromStdString(fs::path(file).stem().string()), QString::fromStdString(file));
  QObject::connect(presets_, &QComboBox::activated, this, [this](int index) {
    const QString file = presets_->itemData(index).toString();
    presets_->setCurrentIndex(0);
    if (!file.isEmpty() && on_preset) on_preset(file);
  });
  column->addWidget(presets_);
  title_ = new QLabel;
  title_->setWordWrap(true);
  title_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
  column->addWidget(title_);
  const std::vector<Control> controls = scenario_controls();
  for (const std::string& name : control_groups()) {
    auto* const group = new QGroupBox(QString::fromStdString(name));
    auto* const lines = new QVBoxLayout(group);
    lines->setContentsMargins(8, 4, 8, 6);
    lines->setSpacing(2);
    for (const Control& control : controls) {
      if (control.group != name) continue;
      auto* const row = new ControlRow(control);
      row->on_edit = [this](const Control& edited, const std::string& value, bool goes_on) {
        if (on_edit) on_edit(edited, value, goes_on);
      };
      lines->addWidget(row);
      rows_.push_back(row);
    }
    column->addWidget(group);
    groups_.push_back(group);
  }
  column->addStretch(1);
  setWidget(content);
  // Nothing is cut at the right.
  setMinimumWidth(content->minimumSizeHint().width() + style()->pixelMetric(QStyle::PM_ScrollBarExtent) + 4);
}

void ScenarioPanel::show(const ScenarioDocument& document, const ScenarioDocument* baseline) {
  QString title = QString::fromStdString(document.value("title").value_or(""));
  if (!title.contains(' '))  // a file's name: it may be broken behind these
    for (const QChar mark : {QChar('_'), QChar('.'), QChar('-')}) title.replace(mark, QString(mark) + QChar(0x200b));
  title_->setText(title);
  const bool is_trace = document.is_trace();
  for (ControlRow* const row : rows_) {
    const Control& control = row->control();
    row->setVisible(!(is_trace && control.for_models));
    std::optional<std::string> before;
    if (baseline != nullptr) before = baseline->value(control.key).value_or(control.otherwise);
    row->show(document.value(control.key), before);
  }
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    const std::string& name = control_groups()[i];
    groups_[i]->setVisible(std::any_of(rows_.begin(), rows_.end(), [&](ControlRow* row) {
      return row->control().group == name && !(is_trace && row->control().for_models);
    }));
  }
}

ControlRow* ScenarioPanel::row(const std::string& key, bool toggle) const {
  for (ControlRow* const row : rows_)
    if (row->control().key == key && (row->control().kind == ControlKind::toggle) == toggle) return row;
  return nullptr;
}

void ScenarioPanel::reveal(const std::string& key) {
  ControlRow* const found = row(key, true) != nullptr ? row(key, true) : row(key);
  if (found == nullptr) return;
  widget()->layout()->activate();
  widget()->adjustSize();
  ensureWidgetVisible(found, 0, height() / 3);
  found->editor()->setFocus();
}

}  // namespace spillway::gui
