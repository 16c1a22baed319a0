#include "gui/panels/scenario_panel.h"

#include <QButtonGroup>
#include <QComboBox>
#include <QGroupBox>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QScrollArea>
#include <QScrollBar>
#include <QStyle>
#include <QVBoxLayout>
#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/data_folder.h"
#include "scenario/scenario.h"

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

// Whether the scenario as it is reads the key.
static bool is_read(const Control& control, const ScenarioDocument& document) {
  if (control.needs.empty() || document.value(control.key)) return true;
  return std::any_of(control.needs.begin(), control.needs.end(), [&](const Control::Need& need) {
    return document.value(need.key).value_or(need.otherwise) != need.otherwise;
  });
}

ScenarioPanel::ScenarioPanel()
    : presets_(new QComboBox),
      title_(new QLabel),
      none_(new QLabel),
      filter_(new QLineEdit),
      choice_(new QButtonGroup(this)),
      area_(new QScrollArea) {
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
  title_->setWordWrap(true);
  title_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
  none_->setWordWrap(true);
  none_->setVisible(false);
  filter_->setPlaceholderText(tr("Find a key"));
  filter_->setAccessibleName(tr("Find a key"));
  filter_->setClearButtonEnabled(true);
  QObject::connect(filter_, &QLineEdit::textChanged, this, [this] { show_rows(); });
  auto* const which = new QHBoxLayout;
  which->setSpacing(4);
  const std::pair<QString, QString> choices[] = {
      {tr("Changed"), tr("Only what differs from what this variant came from")},
      {tr("Relevant"), tr("What the scenario as it is reads")},
      {tr("All"), tr("Every control")}};
  for (int i = 0; i < 3; ++i) {
    auto* const button = new QPushButton(choices[i].first);
    button->setCheckable(true);
    button->setToolTip(choices[i].second);
    choice_->addButton(button, i);
    which->addWidget(button, 1);
  }
  choice_->button(static_cast<int>(which_))->setChecked(true);
  QObject::connect(choice_, &QButtonGroup::idClicked, this, [this](int id) { show_keys(static_cast<KeysShown>(id)); });
  auto* const content = new QWidget;
  auto* const column = new QVBoxLayout(content);
  column->setContentsMargins(8, 2, 8, 8);
  column->setSpacing(6);
  column->addWidget(none_);
  const std::vector<Control> controls = scenario_controls();
  for (const std::string& name : control_groups()) {
    auto* const group = new QGroupBox(QString::fromStdString(name));
    auto* const lines = new QVBoxLayout(group);
    lines->setContentsMargins(8, 4, 8, 6);
    lines->setSpacing(2);
    for (const Control& control : controls) {
      if (control.group != name) continue;
      ControlRow* const row = make_row(control);
      lines->addWidget(row);
      rows_.push_back(row);
    }
    column->addWidget(group);
    groups_.push_back(group);
  }
  column->addStretch(1);
  area_->setWidget(content);
  area_->setWidgetResizable(true);
  area_->setFrameShape(QFrame::NoFrame);
  area_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  // Nothing is cut at the right.
  area_->setMinimumWidth(content->minimumSizeHint().width() + style()->pixelMetric(QStyle::PM_ScrollBarExtent) + 4);
  auto* const head = new QVBoxLayout;
  head->setContentsMargins(8, 4, 8, 4);
  head->setSpacing(4);
  head->addWidget(presets_);
  head->addWidget(title_);
  head->addLayout(which);
  head->addWidget(filter_);
  auto* const whole = new QVBoxLayout(this);
  whole->setContentsMargins(0, 0, 0, 0);
  whole->setSpacing(0);
  whole->addLayout(head);
  whole->addWidget(area_, 1);
}

ControlRow* ScenarioPanel::make_row(const Control& control) {
  auto* const row = new ControlRow(control);
  row->on_edit = [this](const Control& edited, const std::string& value, bool goes_on) {
    if (on_edit) on_edit(edited, value, goes_on);
  };
  return row;
}

QScrollBar* ScenarioPanel::verticalScrollBar() const { return area_->verticalScrollBar(); }

void ScenarioPanel::show(const ScenarioDocument& document, const ScenarioDocument* baseline,
                         const std::string& origin) {
  QString title = QString::fromStdString(document.value("title").value_or(""));
  if (!title.contains(' '))  // a file's name: it may be broken behind these
    for (const QChar mark : {QChar('_'), QChar('.'), QChar('-')}) title.replace(mark, QString(mark) + QChar(0x200b));
  title_->setText(title);
  document_.emplace(document.text(), "", document.folder());
  origin_ = origin;
  changed_ = changed_keys({origin_, document.text()});
  show_others();
  for (ControlRow* const row : rows_) {
    const Control& control = row->control();
    std::optional<std::string> before;
    if (baseline != nullptr) before = baseline->value(control.key).value_or(control.otherwise);
    row->set_steps(steps_of(control, document));
    row->show(document.value(control.key), before);
    row->show_derived(is_derived(control, document) ? std::optional(derived_value(control, document)) : std::nullopt,
                      control.follows);
  }
  show_rows();
}

void ScenarioPanel::show_others() {
  std::vector<std::string> wanted;
  for (const ChangedKey& key : changed_) {
    const ControlRow* const known = row(key.key);
    if (known == nullptr || std::find(others_.begin(), others_.end(), known) != others_.end())
      wanted.push_back(key.key);
  }
  std::vector<std::string> there;
  for (const ControlRow* const one : others_) there.push_back(one->control().key);
  if (there == wanted) return;
  for (ControlRow* const one : std::exchange(others_, {})) {
    rows_.erase(std::find(rows_.begin(), rows_.end(), one));
    one->hide();
    one->deleteLater();  // it may be what was edited
  }
  for (const std::string& key : wanted) {
    ControlRow* const made = make_row(control_of(key));
    groups_.back()->layout()->addWidget(made);
    rows_.push_back(made);
    others_.push_back(made);
  }
}

void ScenarioPanel::show_keys(KeysShown which) {
  which_ = which;
  choice_->button(static_cast<int>(which))->setChecked(true);
  show_rows();
}

void ScenarioPanel::filter(const QString& words) { filter_->setText(words); }

void ScenarioPanel::show_rows() {
  if (!document_) return;
  const QString words = filter_->text().trimmed();
  std::vector<bool> any(groups_.size(), false);
  for (ControlRow* const row : rows_) {
    const Control& control = row->control();
    bool is_shown = true;
    if (!words.isEmpty())
      is_shown = (QString::fromStdString(control.label) + " " + QString::fromStdString(control.key) + " " +
                  QString::fromStdString(control.about))
                     .contains(words, Qt::CaseInsensitive);
    else if (which_ == KeysShown::relevant)
      is_shown = is_read(control, *document_);
    const bool is_changed = std::any_of(changed_.begin(), changed_.end(),
                                        [&](const ChangedKey& changed) { return changed.key == control.key; });
    if (words.isEmpty() && which_ == KeysShown::changed) is_shown = is_changed;
    row->offer_back(which_ == KeysShown::changed && is_changed, setting_of(origin_, control.key));
    is_shown = is_shown && (is_changed || !(document_->is_trace() && control.for_models));
    // What is being typed into stays.
    is_shown = is_shown || row->editor()->hasFocus();
    row->setVisible(is_shown);
    const auto group = std::find(control_groups().begin(), control_groups().end(), control.group);
    if (is_shown) any[static_cast<std::size_t>(group - control_groups().begin())] = true;
  }
  for (std::size_t i = 0; i < groups_.size(); ++i) groups_[i]->setVisible(any[i]);
  const bool nothing = std::none_of(any.begin(), any.end(), [](bool one) { return one; });
  none_->setVisible(nothing);
  none_->setText(!words.isEmpty() ? tr("No key is called “%1”.").arg(words)
                                  : tr("Nothing is changed. Ctrl+P takes a key and its value, \"micro-batch 16\"."));
}

ControlRow* ScenarioPanel::row(const std::string& key) const {
  for (ControlRow* const row : rows_)
    if (row->control().key == key) return row;
  return nullptr;
}

void ScenarioPanel::reveal(const std::string& key) {
  ControlRow* const found = row(key);
  if (found == nullptr) return;
  filter_->clear();
  if (found->isHidden()) show_keys(KeysShown::all);
  area_->widget()->layout()->activate();
  area_->widget()->adjustSize();
  area_->ensureWidgetVisible(found, 0, area_->height() / 3);
  found->editor()->setFocus();
}

}  // namespace spillway::gui
