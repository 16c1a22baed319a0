#include "gui/plots/answer_picture.h"

#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "base/axis.h"
#include "base/short_text.h"
#include "gui/canvas/plot_frame.h"

namespace spillway::gui {
namespace {

using studies::Pass;
using studies::StageMemory;

constexpr double least_left = 64, most_left = 130, right_margin = 12, top_margin = 10, axis_height = 20, row_gap = 4;
constexpr double phase_height = 16, lane_height = 15, stages_height = 112;
constexpr std::size_t most_lanes = 3, most_lanes_of_stage = 2;
constexpr double least_named = 44, least_numbered = 15;  // logical pixels of a pass or a span with its name

QString said(const std::string& text) { return QString::fromStdString(text); }

std::int64_t sum_of(const std::vector<std::int64_t>& bin) {
  return std::accumulate(bin.begin(), bin.end(), std::int64_t{0});
}

Token token_of(Phase phase) {
  constexpr std::array tokens = {Token::unknown,   Token::forward,       Token::backward,
                                 Token::optimizer, Token::communication, Token::recompute};
  return tokens[static_cast<std::size_t>(phase)];
}

// Owners have their colour everywhere, as on the page; lines of a program take one after the other.
Token token_of(const std::string& owner, std::size_t place) {
  constexpr std::pair<std::string_view, Token> named[] = {{"weights", Token::weight},
                                                          {"optimizer states", Token::optimizer},
                                                          {"gradients", Token::backward},
                                                          {"activations", Token::forward},
                                                          {"temporary", Token::temporary},
                                                          {"other", Token::unknown},
                                                          {"allocated in forward", Token::forward},
                                                          {"allocated in backward", Token::backward},
                                                          {"allocated in optimizer", Token::optimizer},
                                                          {"allocated in recompute", Token::recompute},
                                                          {"held before", Token::cached},
                                                          {"allocated", Token::unknown}};
  for (const auto& [word, token] : named)
    if (word == owner) return token;
  return line_token(place);
}

// "train.py:64 build" of "/root/src/train.py:64 build".
QString bare_line(const std::string& name) {
  const std::size_t end = name.find(' '), slash = name.rfind('/', end);
  return said(slash == std::string::npos || name.find(':') == std::string::npos ? name : name.substr(slash + 1));
}

// Boxes of text that leave each other free, as far as there is room.
class Labels {
 public:
  Labels(QPainter& painter, const QRectF& area, const Theme& theme) : painter_(painter), area_(area), theme_(theme) {}
  void keep_free(const QRectF& rect) { taken_.push_back(rect); }
  // At the first of `places`, left tops of its box, that is free; else further down.
  void put(const QString& text, const QColor& color, const std::vector<QPointF>& places) {
    const QSizeF size = size_of(text);
    QRectF box = inside(QRectF(places.front(), size));
    std::vector<QPointF> tried = places;
    for (double y = area_.top(); y < area_.bottom(); y += size.height() + 4) tried.emplace_back(places.front().x(), y);
    for (const QPointF& place : tried) {
      const QRectF there = inside(QRectF(place, size));
      if (std::any_of(taken_.begin(), taken_.end(), [&](const QRectF& one) { return one.intersects(there); })) continue;
      box = there;
      break;
    }
    taken_.push_back(box);
    painter_.setPen(QPen(color, 1.5));
    painter_.setBrush(theme_[Token::canvas]);
    painter_.drawRoundedRect(box, 4, 4);
    paint_elided(painter_, box.adjusted(7, 0, -5, 0), Qt::AlignVCenter | Qt::AlignLeft, text);
  }
  [[nodiscard]] QSizeF size_of(const QString& text) const {
    const double width = painter_.fontMetrics().horizontalAdvance(text) + 14;
    return {std::min(width, area_.width() - 8), 20};
  }

 private:
  [[nodiscard]] QRectF inside(QRectF box) const {
    box.moveLeft(std::clamp(box.left(), area_.left() + 2, std::max(area_.left() + 2, area_.right() - box.width() - 2)));
    box.moveTop(std::clamp(box.top(), area_.top() + 1, std::max(area_.top() + 1, area_.bottom() - box.height() - 2)));
    return box;
  }
  QPainter& painter_;
  QRectF area_;
  const Theme& theme_;
  std::vector<QRectF> taken_;
};

}  // namespace

// What lies below the memory.
struct AnswerPicture::Row {
  enum class Kind : std::uint8_t { passes, stages, lane, way } kind = Kind::passes;
  QString name;
  double height = phase_height;
  const studies::StepLane* lane = nullptr;
};

struct AnswerPicture::Place {
  QRectF plot;
  std::int64_t begin = 0, end = 1;
  double most = 1;  // bytes
  std::vector<Row> rows;
  [[nodiscard]] double x(std::int64_t time) const {
    return plot.left() + plot.width() * static_cast<double>(time - begin) / static_cast<double>(end - begin);
  }
  [[nodiscard]] std::int64_t time(double x) const {
    return begin + static_cast<std::int64_t>((x - plot.left()) / plot.width() * static_cast<double>(end - begin));
  }
  [[nodiscard]] double y(double bytes) const { return plot.bottom() - plot.height() * bytes / most; }
};

AnswerPicture::AnswerPicture() : theme_(&light_theme()) {
  setMouseTracking(true);
  setFocusPolicy(Qt::StrongFocus);
  setMinimumSize(320, 260);
  setAccessibleName(tr("Memory over time"));
}

void AnswerPicture::changed() {
  kept_ = {};
  update();
}

void AnswerPicture::set_theme(const Theme& theme) {
  theme_ = &theme;
  changed();
}

void AnswerPicture::set_stale(bool stale) {
  if (stale == stale_) return;
  stale_ = stale;
  update();
}

void AnswerPicture::show(std::shared_ptr<const studies::Answer> answer) {
  const std::string before = shown() == nullptr ? "" : shown()->name;
  answer_ = std::move(answer);
  stage_ = 0;
  const int count = answer_ == nullptr ? 0 : static_cast<int>(answer_->stages.size());
  for (int i = 1; i < count; ++i)
    if (answer_->stages[static_cast<std::size_t>(i)].peak_allocated > shown()->peak_allocated) stage_ = i;
  for (int i = 0; i < count; ++i)
    if (answer_->stages[static_cast<std::size_t>(i)].name == before) stage_ = i;  // what was looked at stays
  point_at(std::nullopt);
  choose_stage(stage_);
}

void AnswerPicture::choose_stage(int stage) {
  if (answer_ != nullptr && stage >= 0 && stage < static_cast<int>(answer_->stages.size())) stage_ = stage;
  if (const StageMemory* const of = shown())
    setAccessibleDescription(tr("%1: %2 allocated at the peak %3")
                                 .arg(said(of->name), said(short_size(of->peak_allocated)), said(of->peak_words)));
  changed();
}

const StageMemory* AnswerPicture::shown() const {
  if (answer_ == nullptr || static_cast<std::size_t>(stage_) >= answer_->stages.size()) return nullptr;
  return &answer_->stages[static_cast<std::size_t>(stage_)];
}

void AnswerPicture::preview(const studies::AnswerWay* way, const std::vector<studies::WayOutline>& outlines) {
  outline_.reset();
  way_words_.clear();
  way_level_ = 0;
  if (way != nullptr) {
    const auto peak = [](const studies::WayOutline& one) {
      return one.allocated.empty() ? 0 : *std::max_element(one.allocated.begin(), one.allocated.end());
    };
    const studies::WayOutline* best = nullptr;
    for (const studies::WayOutline& one : outlines)
      if (best == nullptr || peak(one) > peak(*best)) best = &one;
    for (const studies::WayOutline& one : outlines)
      if (shown() != nullptr && one.stage == shown()->name) best = &one;
    way_level_ = way->figures.peak_allocated.count();
    if (best != nullptr) {
      outline_ = std::make_unique<studies::WayOutline>(*best);
      way_level_ = peak(*best);
    }
    if (way_level_ > 0)
      // Figures first: what there is no room for is the end of the name, which stands in the list.
      way_words_ = tr("%1, %2: %3").arg(said(short_size(Bytes(way_level_))), said(way->figures.step), said(way->name));
  }
  changed();
}

QColor AnswerPicture::color_of(std::size_t owner) const { return (*theme_)[token_of(shown()->owners[owner], owner)]; }

std::vector<std::pair<QColor, QString>> AnswerPicture::legend() const {
  std::vector<std::pair<QColor, QString>> entries;
  constexpr std::int64_t least_part = 400;  // of the peak: what is less is no stripe that one sees
  const StageMemory* const of = shown();
  if (of == nullptr) return entries;
  for (std::size_t owner = 0; owner < of->owners.size(); ++owner)
    if (std::any_of(of->bins.begin(), of->bins.end(),
                    [&](const auto& bin) { return bin[owner] > of->peak_allocated.count() / least_part; }))
      entries.emplace_back(color_of(owner), bare_line(of->owners[owner]));
  return entries;
}

std::vector<AnswerPicture::Row> AnswerPicture::rows() const {
  std::vector<Row> rows;
  const StageMemory* const of = shown();
  const bool many = answer_->stages.size() > 1;
  if (of != nullptr && !of->passes.empty())
    rows.push_back(many ? Row{Row::Kind::stages, tr("stages"), stages_height} : Row{Row::Kind::passes, tr("phase")});
  std::size_t lanes = 0;
  for (const studies::StepLane& lane : answer_->lanes.lanes) {
    if (lane.rank != (many ? stage_ : 0) || lanes++ >= (many ? most_lanes_of_stage : most_lanes)) continue;
    std::string name = lane.name;
    if (name.starts_with("rank ")) name = name.substr(name.find(' ', 5) + 1);
    rows.push_back({Row::Kind::lane, said(name), lane_height, &lane});
  }
  if (outline_ != nullptr && !outline_->passes.empty()) rows.push_back({Row::Kind::way, tr("way"), lane_height});
  return rows;
}

AnswerPicture::Place AnswerPicture::place() const {
  Place place;
  const StageMemory& of = *shown();
  place.rows = rows();
  double below = axis_height, left = least_left;
  QFont small = font();
  small.setPixelSize(11);
  for (const Row& row : place.rows) left = std::max(left, QFontMetricsF(small).horizontalAdvance(row.name) + 12);
  left = std::min(left, most_left);
  for (const Row& row : place.rows) below += row.height + row_gap;
  place.plot = QRectF(left, top_margin, std::max(1.0, width() - left - right_margin),
                      std::max(40.0, height() - top_margin - below - row_gap));
  place.begin = of.begin;
  place.end = std::max(of.end, of.begin + 1);
  if (outline_ != nullptr && of.timed) place.end = std::max(place.end, outline_->end);
  constexpr double head = 1.07;
  place.most = head * static_cast<double>(
                          std::max({of.peak_allocated.count(), of.capacity.count(), way_level_, std::int64_t{1}}));
  return place;
}

void AnswerPicture::paintEvent(QPaintEvent* /*event*/) {
  QPainter painter(this);
  if (shown() == nullptr) {
    painter.fillRect(rect(), (*theme_)[Token::canvas]);
    painter.setPen((*theme_)[Token::muted]);
    painter.drawText(rect(), Qt::AlignCenter,
                     answer_ == nullptr ? tr("Drawing…") : tr("Nothing is known of the memory over time."));
    return;
  }
  if (kept_.isNull() || kept_.size() != size() * devicePixelRatioF()) kept_ = painted();
  if (stale_) painter.setOpacity(0.5);
  painter.drawPixmap(0, 0, kept_);
  painter.setOpacity(1);
  if (cursor_) {
    painter.setPen((*theme_)[Token::text]);
    painter.drawLine(QPointF(*cursor_, top_margin), QPointF(*cursor_, height() - axis_height));
  }
  if (hasFocus()) {
    painter.setPen(QPen((*theme_)[Token::accent], 2));
    painter.drawRect(rect().adjusted(1, 1, -1, -1));
  }
}

QPixmap AnswerPicture::painted() const {
  QPixmap pixmap(size() * devicePixelRatioF());
  pixmap.setDevicePixelRatio(devicePixelRatioF());
  pixmap.fill((*theme_)[Token::canvas]);
  QPainter painter(&pixmap);
  QFont small = font();
  small.setPixelSize(11);
  painter.setFont(small);
  const Place where = place();
  paint_axes(painter, where);
  paint_stack(painter, where);
  paint_limits(painter, where);
  painter.setRenderHint(QPainter::Antialiasing);
  QPointF peak;
  paint_way(painter, where, peak);
  paint_rows(painter, where);
  QFont bold = small;
  bold.setPixelSize(12);
  bold.setBold(true);
  painter.setFont(bold);
  paint_labels(painter, where, peak);
  return pixmap;
}

void AnswerPicture::paint_axes(QPainter& painter, const Place& place) const {
  constexpr int per_row = 60, per_column = 140;  // logical pixels from tick to tick
  const QRectF& plot = place.plot;
  const auto most = Bytes(static_cast<std::int64_t>(place.most));
  for (const Tick& tick : byte_ticks(most, std::max(2, static_cast<int>(plot.height()) / per_row))) {
    const double y = place.y(static_cast<double>(tick.at));
    painter.setPen((*theme_)[Token::grid]);
    painter.drawLine(QPointF(plot.left(), y), QPointF(plot.right(), y));
    painter.setPen((*theme_)[Token::muted]);
    painter.drawText(QRectF(0, y - 8, plot.left() - 6, 16), Qt::AlignRight | Qt::AlignVCenter, said(tick.label));
  }
  const TimeAxis axis({0, place.end - place.begin}, plot.width());
  const double base = height() - axis_height;
  for (const Tick& tick : axis.ticks(std::max(2, static_cast<int>(plot.width()) / per_column), shown()->timed)) {
    const double x = plot.left() + axis.x(tick.at);
    painter.setPen((*theme_)[Token::grid]);
    painter.drawLine(QPointF(x, plot.top()), QPointF(x, base));
    painter.setPen((*theme_)[Token::muted]);
    const QRectF box(x - per_column / 2.0, base, per_column, axis_height);
    if (x + 30 < width()) painter.drawText(box, Qt::AlignHCenter | Qt::AlignVCenter, said(tick.label));
  }
}

// Of each column of pixels the fullest bin: no peak is lost.
void AnswerPicture::paint_stack(QPainter& painter, const Place& place) const {
  const StageMemory& of = *shown();
  if (of.bins.empty()) return;
  const QRectF& plot = place.plot;
  const double right = place.x(of.end), width = right - plot.left();
  const auto bins = static_cast<double>(of.bins.size());
  const auto column = [&](double x) {
    return std::min(of.bins.size() - 1, static_cast<std::size_t>(std::max(0.0, (x - plot.left()) / width * bins)));
  };
  painter.save();
  if (!way_words_.isEmpty()) painter.setOpacity(0.45);
  for (double x = plot.left(); x < right; ++x) {
    const std::size_t from = column(x), to = std::max(from + 1, column(x + 1));
    const auto fullest = std::max_element(of.bins.begin() + static_cast<std::ptrdiff_t>(from),
                                          of.bins.begin() + static_cast<std::ptrdiff_t>(std::min(to, of.bins.size())),
                                          [](const auto& a, const auto& b) { return sum_of(a) < sum_of(b); });
    double below = 0;
    for (std::size_t owner = 0; owner < fullest->size(); ++owner) {
      const auto bytes = static_cast<double>((*fullest)[owner]);
      if (bytes <= 0) continue;
      const double top = place.y(below + bytes);
      painter.fillRect(QRectF(x, top, std::min(1.0, right - x), place.y(below) - top), color_of(owner));
      below += bytes;
    }
  }
  painter.restore();
}

void AnswerPicture::paint_limits(QPainter& painter, const Place& place) const {
  const StageMemory& of = *shown();
  if (of.capacity <= Bytes(0)) return;
  const double y = place.y(static_cast<double>(of.capacity.count()));
  if (of.limit > Bytes(0) && of.limit < of.capacity) {
    const double limit = place.y(static_cast<double>(of.limit.count()));
    painter.fillRect(QRectF(place.plot.left(), y, place.plot.width(), std::max(3.0, limit - y)),
                     QBrush((*theme_)[Token::bad], Qt::BDiagPattern));
  }
  painter.setPen(QPen((*theme_)[Token::bad], 2));
  painter.drawLine(QPointF(place.plot.left(), y), QPointF(place.plot.right(), y));
}

void AnswerPicture::paint_way(QPainter& painter, const Place& place, QPointF& peak) const {
  if (way_words_.isEmpty()) return;
  const QRectF& plot = place.plot;
  QPolygonF line;
  peak = QPointF(plot.center().x(), place.y(static_cast<double>(way_level_)));
  if (outline_ != nullptr && !outline_->allocated.empty()) {
    const auto count = static_cast<double>(outline_->allocated.size());
    const bool timed = shown()->timed;
    const double begin = timed ? place.x(outline_->begin) : plot.left();
    const double end = timed ? place.x(outline_->end) : plot.right();
    double highest = plot.bottom() + 1;
    for (std::size_t bin = 0; bin < outline_->allocated.size(); ++bin) {
      const double y = place.y(static_cast<double>(outline_->allocated[bin]));
      const double from = begin + (end - begin) * static_cast<double>(bin) / count;
      const double to = begin + (end - begin) * static_cast<double>(bin + 1) / count;
      line << QPointF(from, y) << QPointF(to, y);
      if (y < highest) peak = QPointF((from + to) / 2, y);
      highest = std::min(highest, y);
    }
    line << QPointF(end - 1, plot.bottom());
  } else {
    line << QPointF(plot.left(), peak.y()) << QPointF(plot.right(), peak.y());
  }
  painter.setBrush(Qt::NoBrush);
  painter.setPen(QPen((*theme_)[Token::canvas], 5));
  painter.drawPolyline(line);
  painter.setPen(QPen((*theme_)[Token::accent], 2, Qt::DashLine));
  painter.drawPolyline(line);
}

void AnswerPicture::paint_labels(QPainter& painter, const Place& place, QPointF way_peak) const {
  const StageMemory& of = *shown();
  const QRectF& plot = place.plot;
  Labels labels(painter, plot, *theme_);
  const std::int64_t drawn = std::accumulate(of.at_peak.begin(), of.at_peak.end(), std::int64_t{0});
  if (drawn > 0 && of.peak_at >= place.begin && of.peak_at <= place.end) {
    const QPointF at(place.x(of.peak_at), place.y(static_cast<double>(drawn)));
    painter.setPen(QPen((*theme_)[Token::canvas], 1.5));
    painter.setBrush((*theme_)[Token::text]);
    painter.drawEllipse(at, 4.5, 4.5);
    labels.keep_free(QRectF(at.x() - 6, at.y() - 6, 12, 12));
    QString text = tr("peak %1").arg(said(short_size(Bytes(drawn))));
    if (!of.peak_words.empty()) text += ", " + bare_line(of.peak_words);
    const double width = labels.size_of(text).width();
    const bool turns = at.x() + 12 + width > plot.right();
    labels.put(text, (*theme_)[Token::text], {QPointF(turns ? at.x() - width - 12 : at.x() + 12, at.y() - 10)});
  }
  if (of.capacity > Bytes(0)) {
    const bool keeps = of.limit > Bytes(0) && of.limit < of.capacity;
    const QString text =
        said(short_size(of.capacity)) + (keeps ? tr(" the GPU has; hatched: kept free") : tr(" the GPU has"));
    const double y = place.y(static_cast<double>(of.capacity.count())),
                 right = plot.right() - labels.size_of(text).width();
    labels.put(text, (*theme_)[Token::bad],
               {{right, y - 24}, {right, y + 8}, {plot.left(), y - 24}, {plot.left(), y + 8}});
  }
  if (!way_words_.isEmpty()) {
    const double width = labels.size_of(way_words_).width();
    labels.put(way_words_, (*theme_)[Token::accent],
               {{way_peak.x() + 8, way_peak.y() - 26},
                {way_peak.x() - width - 8, way_peak.y() - 26},
                {way_peak.x() - width / 2, way_peak.y() + 8}});
  }
}

void AnswerPicture::paint_rows(QPainter& painter, const Place& place) const {
  const QRectF& plot = place.plot;
  const auto passes = [&](const std::vector<Pass>& all, double top, double height) {
    const bool numbered = std::any_of(all.begin(), all.end(), [](const Pass& pass) {
      return pass.micro_batch != no_index16 && pass.micro_batch > 0;
    });
    for (const Pass& pass : all) {
      const QRectF box(place.x(pass.begin), top, std::max(0.6, place.x(pass.end) - place.x(pass.begin) - 0.5), height);
      const QColor color = (*theme_)[token_of(pass.phase)];
      painter.fillRect(box, color);
      if (pass.phase == Phase::recompute) painter.fillRect(box, QBrush(Theme::text_on(color), Qt::BDiagPattern));
      if (height < 11 || box.width() < least_numbered) continue;
      const bool has_number = numbered && pass.micro_batch != no_index16;
      const QString text = box.width() >= least_named ? said(studies::pass_name(pass, has_number))
                           : has_number               ? QString::number(pass.micro_batch)
                                                      : QString();
      painter.setPen(Theme::text_on(color));
      paint_elided(painter, box.adjusted(3, 0, -1, 0), Qt::AlignVCenter | Qt::AlignLeft, text);
    }
  };
  double top = plot.bottom() + row_gap;
  for (const Row& row : place.rows) {
    const QRectF area(plot.left(), top, plot.width(), row.height);
    painter.save();
    painter.setClipRect(area.adjusted(-1, -1, 1, 1));
    painter.setRenderHint(QPainter::Antialiasing, false);
    if (row.kind == Row::Kind::passes) passes(shown()->passes, top, row.height);
    if (row.kind == Row::Kind::way) passes(outline_->passes, top, row.height);
    if (row.kind == Row::Kind::stages) {
      const double each = row.height / static_cast<double>(answer_->stages.size());
      for (std::size_t i = 0; i < answer_->stages.size(); ++i)
        passes(answer_->stages[i].passes, top + each * static_cast<double>(i), std::max(2.0, each - 1));
      painter.setPen(QPen((*theme_)[Token::accent], 2));
      painter.setBrush(Qt::NoBrush);
      painter.drawRect(QRectF(plot.left(), top + each * stage_, plot.width(), each));
    }
    if (row.lane != nullptr) {
      const StageMemory& of = *shown();
      const double scale = (place.x(of.end) - plot.left()) / static_cast<double>(answer_->lanes.columns);
      const std::vector<std::int64_t>&runs = row.lane->runs, &blocks = row.lane->blocks;
      const auto number = [](std::int64_t value) { return static_cast<double>(value); };
      for (std::size_t i = 0; i + 3 < runs.size(); i += 4)
        painter.fillRect(
            QRectF(plot.left() + number(runs[i]) * scale, top, std::max(0.5, number(runs[i + 1]) * scale), row.height),
            QColor(theme_->run_color(static_cast<std::uint8_t>(runs[i + 2]), static_cast<std::uint8_t>(runs[i + 3]))));
      constexpr double hundredths = 100;
      for (std::size_t i = 0; i + 3 < blocks.size(); i += 4) {
        const QColor color = theme_->work[static_cast<std::size_t>(blocks[i + 2])];
        const QRectF box(plot.left() + number(blocks[i]) / hundredths * scale, top,
                         std::max(0.5, number(blocks[i + 1]) / hundredths * scale - 0.5), row.height);
        painter.fillRect(box, color);
        if (box.width() < least_named) continue;
        painter.setPen(Theme::text_on(color));
        paint_elided(painter, box.adjusted(3, 0, -1, 0), Qt::AlignVCenter | Qt::AlignLeft,
                     said(answer_->lanes.names[static_cast<std::size_t>(blocks[i + 3])]));
      }
    }
    painter.restore();
    if (row.kind == Row::Kind::way) {
      painter.setPen(QPen((*theme_)[Token::accent], 1.5, Qt::DashLine));
      painter.setBrush(Qt::NoBrush);
      painter.drawRect(area.adjusted(0, 0, -1, -1));
    }
    painter.setPen((*theme_)[Token::muted]);
    paint_elided(painter, QRectF(2, top, plot.left() - 8, row.height), Qt::AlignVCenter | Qt::AlignRight, row.name);
    top += row.height + row_gap;
  }
}

QString AnswerPicture::readout(double x) const {
  const StageMemory& of = *shown();
  const std::int64_t at = place().time(x);
  const QString when = of.timed ? said(short_duration(to_seconds(Picos(at - of.begin)))) : said(time_text(at, false));
  if (at < of.begin || at >= of.end || of.bins.empty()) return tr("%1: behind the end of this step").arg(when);
  const auto bin =
      static_cast<std::size_t>(static_cast<double>(at - of.begin) / static_cast<double>(of.end - of.begin) *
                               static_cast<double>(of.bins.size()));
  const std::vector<std::int64_t>& held = of.bins[std::min(bin, of.bins.size() - 1)];
  QStringList parts;
  for (std::size_t owner = held.size(); owner-- > 0;)
    if (held[owner] > 0) parts += bare_line(of.owners[owner]) + " " + said(short_size(Bytes(held[owner])));
  QString text = tr("%1: %2 = %3").arg(when, said(short_size(Bytes(sum_of(held)))), parts.join(", "));
  for (const Pass& pass : of.passes)
    if (pass.begin <= at && at < pass.end)
      text += "; " + said(studies::pass_name(pass, pass.micro_batch != no_index16 && answer_->stages.size() > 1));
  return text;
}

void AnswerPicture::point_at(std::optional<double> x) {
  if (shown() == nullptr) x.reset();
  if (x) {
    const QRectF plot = place().plot;
    x = std::clamp(*x, plot.left(), plot.right() - 1);
  }
  if (x == cursor_) return;
  cursor_ = x;
  if (on_readout) on_readout(x ? readout(*x) : QString());
  update();
}

void AnswerPicture::mouseMoveEvent(QMouseEvent* event) {
  const double x = event->position().x();
  point_at(x < least_left ? std::nullopt : std::optional(x));
}

// On its row of the stages: that one.
void AnswerPicture::mousePressEvent(QMouseEvent* event) {
  if (shown() == nullptr) return;
  const Place where = place();
  if (where.rows.empty() || where.rows.front().kind != Row::Kind::stages) return;
  const double down = event->position().y() - where.plot.bottom() - row_gap;
  if (down < 0 || down >= stages_height) return;
  const int stage = static_cast<int>(down / stages_height * static_cast<double>(answer_->stages.size()));
  if (on_stage) on_stage(stage);
}

void AnswerPicture::leaveEvent(QEvent* /*event*/) { point_at(std::nullopt); }

void AnswerPicture::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  kept_ = {};
}

// Arrows move what is read out; [ and ] go from stage to stage.
void AnswerPicture::keyPressEvent(QKeyEvent* event) {
  constexpr double stride = 8;
  switch (event->key()) {
    case Qt::Key_Left:
    case Qt::Key_Right:
      return point_at(cursor_.value_or(least_left) + (event->key() == Qt::Key_Left ? -stride : stride));
    case Qt::Key_BracketLeft:
    case Qt::Key_BracketRight:
      if (on_stage) on_stage(stage_ + (event->key() == Qt::Key_BracketLeft ? -1 : 1));
      return;
    default:
      QWidget::keyPressEvent(event);
  }
}

}  // namespace spillway::gui
