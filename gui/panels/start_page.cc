#include "gui/panels/start_page.h"

#include <QFileInfo>
#include <QFontInfo>
#include <QGridLayout>
#include <QLabel>
#include <QPainter>
#include <QPushButton>
#include <QVBoxLayout>
#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "base/data_folder.h"
#include "base/field_reader.h"
#include "base/read_file.h"
#include "gui/panels/scenario_panel.h"

namespace spillway::gui {
namespace {

constexpr std::uint64_t largest_example = 1U << 20U;
constexpr QSize stamp_size(240, 52), small_stamp(84, 20);

struct Start {
  const char *file, *title, *words, *control;
};
constexpr Start examples[] = {
    {"fits-after-one-toggle", "Out of memory",
     "GPT-2 large does not fit into one RTX 4090. Set \"recompute\" to full at the left, or press G for set-ups that "
     "fit.",
     "model.recompute"},
    {"bound-by-pcie", "Bound by PCIe",
     "GPT-2 XL with its state in host memory: most of the step waits for copies. Set \"PCIe generation\" to 5 to see.",
     "hardware.set.gpu.pcie_generation"},
    {"wears-out-its-drives", "Drives gone in a year",
     "Activations on two SSDs cost no time, but the SSDs last less than a year. Drag \"SSDs per machine\".",
     "offload.drives_per_machine"}};

QString file_of(const char* stem) {
  for (const std::string& file : bundled_scenarios())
    if (QFileInfo(QString::fromStdString(file)).completeBaseName() == stem) return QString::fromStdString(file);
  return {};
}

// What comes with the program besides: scenarios, then sweeps, by their titles.
std::vector<std::pair<QString, QString>> other_examples() {
  std::vector<std::string> files;
  for (const std::string& file : bundled_scenarios()) {
    const std::string stem = std::filesystem::path(file).stem().string();
    if (std::none_of(std::begin(examples), std::end(examples), [&](const Start& start) { return stem == start.file; }))
      files.push_back(file);
  }
  for (const std::string& folder : data_places("examples/sweeps", "cli/sweeps"))
    for (const std::string& file : json_files_in(folder)) files.push_back(file);
  std::vector<std::pair<QString, QString>> found;
  for (const std::string& file : files) {
    const QString path = QString::fromStdString(file);
    if (std::any_of(found.begin(), found.end(),
                    [&](const auto& one) { return QFileInfo(one.first).fileName() == QFileInfo(path).fileName(); }))
      continue;
    std::string title;
    try {
      title = document_text(read_file(file, largest_example), "title");
    } catch (const std::exception&) {  // it says why when it is opened
    }
    found.emplace_back(path, title.empty() ? QFileInfo(path).completeBaseName() : QString::fromStdString(title));
  }
  return found;
}

QLabel* heading(const QString& text, int more_points) {
  auto* const label = new QLabel(text);
  QFont font = label->font();
  font.setPixelSize(QFontInfo(font).pixelSize() + 2 * more_points);
  font.setBold(true);
  label->setFont(font);
  return label;
}

// Its title, as much as there is room for, and its words below.
class Link : public QPushButton {
 public:
  explicit Link(QString title) : title_(std::move(title)) {
    setFlat(true);
    setAutoDefault(true);  // Enter, not the space bar alone
    setStyleSheet("text-align: left; padding: 1px;");
    setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Fixed);
    setAccessibleName(title_);
    fit();
  }
  void add_words(const QString& words) {
    words_ = words;
    setAccessibleDescription(words);
    fit();
  }

 protected:
  void resizeEvent(QResizeEvent* event) override {
    QPushButton::resizeEvent(event);
    fit();
  }

 private:
  void fit() {
    constexpr int padding = 12, beside_icon = 6;
    const int icon_room = icon().isNull() ? 0 : iconSize().width() + beside_icon;
    setText(fontMetrics().elidedText(title_, Qt::ElideRight, width() - padding - icon_room) + "\n" + words_);
  }
  QString title_, words_;
};

// Of a sweep, which is not run before it is opened: points, and the front under them.
QPixmap sweep_stamp(QSize size, double ratio, const Theme& theme) {
  QPixmap picture(size * ratio);
  picture.setDevicePixelRatio(ratio);
  picture.fill(theme[Token::sunken]);
  QPainter painter(&picture);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setPen(Qt::NoPen);
  constexpr double radius = 2;
  constexpr QPointF front[] = {{0.1, 0.15}, {0.22, 0.45}, {0.42, 0.65}, {0.68, 0.78}, {0.92, 0.85}};
  constexpr QPointF beaten[] = {{0.3, 0.2}, {0.5, 0.3}, {0.65, 0.5}, {0.8, 0.25}, {0.85, 0.6}};
  const auto dot = [&](QPointF at) {
    painter.drawEllipse({at.x() * size.width(), at.y() * size.height()}, radius, radius);
  };
  painter.setBrush(theme.muted);
  for (const QPointF& at : beaten) dot(at);
  painter.setBrush(theme.good);
  for (const QPointF& at : front) dot(at);
  return picture;
}

}  // namespace

StartPage::StartPage() : theme_(&light_theme()) {
  thumbnails_.on_found = [this](const QString& file, const QImage& picture, const QString& verdict) {
    stamp(file, picture, verdict);
  };
  auto* const column = new QVBoxLayout(this);
  column->setContentsMargins(36, 12, 36, 8);
  column->setSpacing(8);
  column->addWidget(heading(tr("Does it fit, how fast is a step, what limits it, what would help?"), 5));
  auto* const lead =
      new QLabel(tr("Open a scenario and change it: every figure is replayed as you go. None of these needs a GPU."));
  lead->setWordWrap(true);
  column->addWidget(lead);
  auto* const grid = new QGridLayout;
  grid->setHorizontalSpacing(18);
  int place = 0;
  for (const Start& start : examples) {
    auto* const button = new QPushButton(tr(start.title));
    QFont font = button->font();
    font.setBold(true);
    button->setFont(font);
    button->setMinimumHeight(44);
    button->setAutoDefault(true);  // Enter, not the space bar alone
    button->setAccessibleDescription(tr(start.words));
    const QString file = file_of(start.file);
    button->setEnabled(!file.isEmpty());
    QObject::connect(button, &QPushButton::clicked, this, [this, file, control = start.control] {
      if (on_open) on_open(file, control);
    });
    auto* const words = new QLabel(tr(start.words));
    words->setWordWrap(true);
    words->setAlignment(Qt::AlignTop | Qt::AlignLeft);
    Card card{file, tr(start.title), button, new QLabel, new QLabel, {}};
    card.picture->setFixedHeight(stamp_size.height());
    card.picture->setAlignment(Qt::AlignLeft | Qt::AlignVCenter);
    QFont small = card.verdict->font();
    small.setBold(true);
    card.verdict->setFont(small);
    cards_.push_back(card);
    grid->addWidget(button, 0, place);
    grid->addWidget(card.picture, 1, place);
    grid->addWidget(card.verdict, 2, place);
    grid->addWidget(words, 3, place);
    grid->setColumnStretch(place++, 1);
    starts_.push_back(button);
  }
  column->addLayout(grid);
  column->addSpacing(6);
  column->addWidget(heading(tr("More examples"), 1));
  auto* const more = new QGridLayout;
  more->setHorizontalSpacing(18);
  more->setVerticalSpacing(0);
  constexpr int columns = 2;
  int shown = 0;
  for (const auto& [file, title] : other_examples()) {
    auto* const link = new Link(title);
    link->setToolTip(title + "\n" + file);
    QObject::connect(link, &QPushButton::clicked, this, [this, file = file] {
      if (on_open) on_open(file, {});
    });
    link->setIconSize(small_stamp);
    more->addWidget(link, shown / columns, shown % columns);
    others_.push_back(link);
    cards_.push_back({file, title, link, nullptr, nullptr, {}});
    ++shown;
  }
  column->addLayout(more);
  column->addSpacing(4);
  auto* const browse = new QPushButton(tr("Open a file…"));
  QObject::connect(browse, &QPushButton::clicked, this, [this] {
    if (on_browse) on_browse();
  });
  last_ = new QPushButton;
  QObject::connect(last_, &QPushButton::clicked, this, [this] {
    if (on_continue) on_continue();
  });
  auto* const buttons = new QHBoxLayout;
  buttons->addWidget(browse);
  buttons->addWidget(last_);
  buttons->addStretch(1);
  column->addLayout(buttons);
  auto* const drop =
      new QLabel(tr("Or drop one here: a scenario, a PyTorch profiler trace (.json, .json.gz), a memory snapshot "
                    "(.pickle), a Hugging "
                    "Face config.json, a hardware profile, a sweep or its store."));
  drop->setWordWrap(true);
  column->addWidget(drop);
  column->addSpacing(8);
  recent_ = new QVBoxLayout;
  column->addLayout(recent_);
  column->addStretch(1);
}

void StartPage::stamp(const QString& file, const QImage& picture, const QString& verdict) {
  for (Card& card : cards_) {
    if (card.file != file) continue;
    card.stamp = picture;
    if (card.picture != nullptr) {
      card.picture->setPixmap(QPixmap::fromImage(picture));
      card.verdict->setText(verdict);
      card.button->setAccessibleDescription(verdict);
      continue;
    }
    card.button->setIcon(QIcon(QPixmap::fromImage(picture)));
    static_cast<Link*>(card.button)->add_words(verdict);
  }
}

QImage StartPage::stamp_of(const QString& file) const {
  for (const Card& card : cards_)
    if (card.file == file) return card.stamp;
  return {};
}

void StartPage::find_stamps() {
  std::vector<QString> files;
  const std::vector<std::string> scenarios = bundled_scenarios();
  for (const Card& card : cards_) {
    if (std::find(scenarios.begin(), scenarios.end(), card.file.toStdString()) != scenarios.end()) {
      files.push_back(card.file);
    } else if (card.picture == nullptr) {
      card.button->setIcon(QIcon(sweep_stamp(small_stamp, devicePixelRatioF(), *theme_)));
      static_cast<Link*>(card.button)->add_words(tr("a sweep, run when you say so"));
    }
  }
  thumbnails_.find(std::move(files), stamp_size, devicePixelRatioF(), *theme_);
}

void StartPage::set_theme(const Theme& theme) {
  if (theme_ == &theme) return;
  theme_ = &theme;
  if (isVisible()) find_stamps();
}

void StartPage::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  find_stamps();
}

// What somebody opens has the machine for itself.
void StartPage::hideEvent(QHideEvent* event) {
  QWidget::hideEvent(event);
  thumbnails_.stop();
}

void StartPage::show_recent(const QStringList& files, const QString& last) {
  last_->setVisible(!last.isEmpty());
  last_->setText(tr("Go on with %1").arg(last.size() > 48 ? last.left(46) + "…" : last));
  while (QLayoutItem* const item = recent_->takeAt(0)) {
    delete item->widget();
    delete item;
  }
  if (!files.isEmpty()) recent_->addWidget(heading(tr("Recent files"), 1));
  for (const QString& file : files) {
    auto* const link = new Link(file);
    link->setToolTip(file);
    QObject::connect(link, &QPushButton::clicked, this, [this, file] {
      if (on_open) on_open(file, {});
    });
    recent_->addWidget(link);
  }
}

}  // namespace spillway::gui
