#include "gui/panels/thumbnails.h"

#include <QDir>
#include <QFile>
#include <QFileInfo>
#include <QImageReader>
#include <QSaveFile>
#include <QStandardPaths>
#include <optional>
#include <utility>

#include "base/digest.h"
#include "base/input_error.h"
#include "base/read_file.h"
#include "base/version.h"
#include "gui/canvas/thumbnail.h"
#include "gui/workspace/outcome.h"
#include "gui/workspace/shown_figures.h"

namespace spillway::gui {
namespace {

constexpr std::uint64_t largest_scenario = 1U << 20U;
const char* const verdict_key = "verdict";  // of the picture's texts

struct Stamp {
  QImage picture;
  QString verdict;
};

QString folder() { return QStandardPaths::writableLocation(QStandardPaths::CacheLocation) + "/thumbnails/"; }

// Of everything that a stamp shows; the models and profiles that come with the program go by its commit.
QString name_of(const std::string& text, QSize size, double ratio, bool is_dark) {
  Digest digest;
  for (const std::string_view part : {std::string_view(program_commit()), std::string_view(text)}) digest.add(part);
  for (const int number : {size.width(), size.height(), static_cast<int>(ratio * 100), is_dark ? 1 : 0})
    digest.add(static_cast<std::uint64_t>(number));
  return QString("%1.png").arg(digest.value(), 16, 16, QChar('0'));
}

std::optional<Stamp> kept(const QString& name) {
  QImageReader reader(folder() + name);
  const QString verdict = reader.text(verdict_key);
  QImage picture = reader.read();
  if (picture.isNull()) return std::nullopt;
  return Stamp{std::move(picture), verdict};
}

// Where it can't be kept it is found again the next time.
void keep(const QString& name, Stamp stamp) {
  if (stamp.picture.isNull() || !QDir().mkpath(folder())) return;
  stamp.picture.setText(verdict_key, stamp.verdict);
  QSaveFile file(folder() + name);
  if (file.open(QIODevice::WriteOnly) && stamp.picture.save(&file, "PNG")) file.commit();
}

Stamp stamp_of(const std::string& text, const QString& file, QSize size, double ratio, const Theme& theme) {
  std::shared_ptr<const CapturedTrace> captured;
  const QFileInfo info(file);
  const auto outcome = simulate({text, info.completeBaseName().toStdString(), info.absolutePath().toStdString()}, {},
                                captured, [](const std::string& /*part*/, double /*fraction*/) { return true; });
  const ShownFigure verdict = shown_figures(*outcome, nullptr).front();
  Stamp stamp;
  stamp.verdict = QString::fromStdString(verdict.short_value.empty() ? verdict.value : verdict.short_value);
  if (outcome->fullest.memory != nullptr)
    stamp.picture = memory_thumbnail(*outcome->fullest.memory, size, ratio, theme);
  return stamp;
}

}  // namespace

void Thumbnails::find(std::vector<QString> files, QSize size, double ratio, const Theme& theme) {
  worker_.start([this, files = std::move(files), size, ratio, &theme](const Worker::Task& task) {
    for (const QString& file : files) {
      if (task.is_stopped()) return;
      Stamp stamp;
      try {
        const std::string text = read_file(file.toStdString(), largest_scenario);
        const QString name = name_of(text, size, ratio, theme.is_dark);
        if (std::optional<Stamp> known = kept(name)) {
          stamp = std::move(*known);
        } else {
          stamp = stamp_of(text, file, size, ratio, theme);
          keep(name, stamp);
        }
      } catch (const InputError&) {  // it says why when it is opened
        continue;
      }
      stamp.picture.setDevicePixelRatio(ratio);
      task.post([this, file, stamp] {
        if (on_found) on_found(file, stamp.picture, stamp.verdict);
      });
    }
  });
}

}  // namespace spillway::gui
