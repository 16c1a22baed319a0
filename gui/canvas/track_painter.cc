#include "gui/canvas/track_painter.h"

#include <QPainterPath>
#include <algorithm>
#include <array>
#include <cmath>

#include "base/axis.h"
#include "base/short_text.h"
#include "gui/canvas/block_names.h"
#include "gui/canvas/pixel_run.h"

namespace spillway::gui {
namespace {

constexpr int label_size = 11;      // pixels: labels and heads
constexpr double span_size = 10.5;  // on spans
constexpr int least_label_size = 9;
constexpr int indent = 18;  // of a track's label under its heading

QString words(const std::string& text) { return QString::fromStdString(text); }

QFont sized(const QPainter& painter, double pixels, bool bold = false) {
  QFont font = painter.font();
  font.setPixelSize(static_cast<int>(pixels + 0.5));
  font.setBold(bold);
  return font;
}

// The painter's font, or as much smaller as still can be read, for a text that would not fit.
QFont narrowed(const QPainter& painter, const QString& text, double width) {
  QFont font = painter.font();
  const auto too_wide = [&] { return QFontMetrics(font, painter.device()).horizontalAdvance(text) > width; };
  for (int size = font.pixelSize(); size > least_label_size && too_wide();) font.setPixelSize(--size);
  return font;
}

class Picture {
 public:
  Picture(const TrackScene& scene, const TrackLook& look, const Theme& theme)
      : scene_(scene), look_(look), theme_(theme), places_(scene, look), image_(blank(look.frame, theme)) {
    for (std::size_t color = 0; color < theme.work.size(); ++color) {
      ghost_[color] = theme.ghost(theme.work[color]).rgb();
      for (std::size_t level = 0; level < fold_levels; ++level)
        colors_[level][color] = theme.run_color(static_cast<std::uint8_t>(color), static_cast<std::uint8_t>(level));
      colors_[fold_levels][color] = theme.work[color].rgb();
    }
  }

  QImage paint() {
    grid();
    for (std::size_t i = 0; i < look_.tracks->size(); ++i) {
      const Track& track = (*look_.tracks)[i];
      const int top = places_.top(i);
      if (top + track.height() <= look_.frame.axis || top >= look_.frame.size.height()) continue;
      if (track.kind == TrackKind::memory) memory(top, track);
      if (track.kind == TrackKind::map) address_map(top, track);
      if (track.kind == TrackKind::pass) pass(top, track);
      if (track.kind == TrackKind::spans) spans(top, track);
      if (track.kind == TrackKind::counter)
        paint_counter(image_, look_.frame, (*scene_.counters)[track.lanes.front()], look_.view, top, track.row_height,
                      theme_);
    }
    texts();
    small_picture();
    return std::move(image_);
  }

 private:
  struct Label {
    QRectF rect;
    std::uint32_t id;
    std::uint8_t color;
    bool is_pass;
  };

  [[nodiscard]] TimeAxis axis() const { return look_.frame.axis_of(look_.view); }
  [[nodiscard]] double x_of(std::int64_t time) const { return look_.frame.gutter + axis().x(time); }
  [[nodiscard]] QRect plot() const { return look_.frame.plot(); }

  void grid() {
    QPainter painter(&image_);
    painter.setFont(sized(painter, label_size));
    painter.fillRect(QRect(0, 0, look_.frame.size.width(), look_.frame.axis), theme_.panel);
    const int room = painter.fontMetrics().horizontalAdvance("000.000 ms") + 24;
    for (const Tick& tick : axis().ticks(std::max(1, plot().width() / room), look_.timed)) {
      const double x = std::floor(x_of(tick.at)) + 0.5;
      painter.setPen(theme_.grid);
      painter.drawLine(QPointF(x, look_.frame.axis - 5), QPointF(x, look_.frame.size.height()));
      painter.setPen(theme_.muted);
      const QString label = words(tick.label);
      const double width = painter.fontMetrics().horizontalAdvance(label);
      painter.drawText(
          QRectF(std::min(x + 3, look_.frame.size.width() - width - 2), minimap_height, width + 2, ruler_height),
          Qt::AlignVCenter | Qt::AlignLeft, label);
    }
    painter.setPen(theme_.muted);
    painter.drawText(QRectF(10, minimap_height, look_.frame.gutter - 12, ruler_height), Qt::AlignVCenter,
                     words(look_.axis_name));
  }

  // ---- spans ----

  void spans(int top, const Track& track) {
    for (std::size_t row = 0; row < track.lanes.size(); ++row) {
      const SceneLane& lane = scene_.lanes->lanes[track.lanes[row]];
      const int upper = top + static_cast<int>(row) * track.row_height;
      draw(lane.spans, upper, track.row_height - (track.lanes.size() > 1 ? 1 : 0), false, false);
    }
  }

  void pass(int top, const Track& track) {
    const SpanLane& row = scene_.passes->lanes[track.lanes.front()].spans;
    bubbles(row, top, track.row_height);
    const int ghost = look_.ghost == nullptr ? 0 : 5;
    draw(row, top, track.row_height - ghost, false, true);
    if (ghost == 0 || look_.ghost->passes == nullptr) return;
    const auto& lanes = look_.ghost->passes->lanes;
    const std::string& name = scene_.passes->lanes[track.lanes.front()].name;
    const auto same =
        std::find_if(lanes.begin(), lanes.end(), [&](const SceneLane& lane) { return lane.name == name; });
    if (same != lanes.end()) draw(same->spans, top + track.row_height - ghost + 1, ghost - 1, true, true);
  }

  // Where nothing runs between the first and the last.
  void bubbles(const SpanLane& row, int top, int height) {
    if (row.size() == 0) return;
    QPainter painter(&image_);
    painter.setClipRect(plot());
    const double left = x_of(row.begin(0)), right = x_of(row.end(row.size() - 1));
    painter.fillRect(QRectF(left, top, right - left, height), QBrush(theme_[Token::cached], Qt::BDiagPattern));
  }

  // All pixel rows of a lane are the same: one is drawn, over what lies below it, and copied.
  void draw(const SpanLane& lane, int top, int height, bool is_ghost, bool is_pass) {
    const int first = std::max(look_.frame.device(std::max(top, look_.frame.axis)), 0);
    const int last = std::min(look_.frame.device(top + height), image_.height());
    if (first >= last) return;
    pieces_.clear();
    lane.fold(look_.frame.device_axis(look_.view), pieces_);
    const int left = look_.frame.device(look_.frame.gutter), width = image_.width();
    const auto pitch = static_cast<std::ptrdiff_t>(image_.bytesPerLine() / 4);
    auto* const row = reinterpret_cast<std::uint32_t*>(image_.bits()) + first * pitch;
    for (const FoldedPiece& piece : pieces_) {
      const int x0 = std::min(left + static_cast<int>(piece.x + 0.5), width);
      const int x1 = std::min(std::max(x0 + 1, left + static_cast<int>(piece.x + piece.width + 0.5)), width);
      const bool is_block = piece.span >= 0;
      const bool spaced = is_block && x1 - x0 > 3;  // neighbours of one colour stay apart
      const std::uint32_t color =
          is_ghost ? ghost_[piece.color] : colors_[is_block ? fold_levels : piece.level][piece.color];
      for (int y = first; y < last; ++y)
        fill_run(row + (y - first) * pitch + x0, row + (y - first) * pitch + (spaced ? x1 - 1 : x1), color);
      if (is_ghost) continue;
      used_[piece.color] = true;
      if (is_block) label(lane, piece, x0, top, height, is_pass);
    }
  }

  void label(const SpanLane& lane, const FoldedPiece& piece, int x0, int top, int height, bool is_pass) {
    const double width = piece.width / look_.frame.ratio;
    const std::uint32_t id = lane.id(static_cast<std::size_t>(piece.span));
    const QRectF rect(x0 / look_.frame.ratio, top, width, height);
    const int least = is_pass ? 15 : look_.least_label;
    if (static_cast<WorkColor>(piece.color) == WorkColor::recompute && width >= 6) hatched_.push_back(rect);
    if (width >= least && height >= 12 && labels_.size() < look_.most_labels)
      labels_.push_back({rect, id, piece.color, is_pass});
    if (!is_pass && look_.chosen == id) outline_ = rect;
  }

  // ---- memory ----

  [[nodiscard]] int row_of(std::int64_t bytes, std::int64_t most, int top, int height) const {
    const double part = static_cast<double>(bytes) / static_cast<double>(most);
    return look_.frame.device(top + height) - static_cast<int>(part * look_.frame.device(height) + 0.5);
  }

  void stack(const OwnerStack& owners, const TimeAxis& columns_of, std::int64_t most, int top, int height, int left) {
    const auto columns = owners.fold(columns_of);
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const int x = left + static_cast<int>(i);
      std::int64_t below = 0;
      for (std::size_t owner = 0; owner < most_owners; ++owner) {
        if (columns[i][owner] <= 0) continue;
        const int bottom = row_of(below, most, top, height);
        below += columns[i][owner];
        fill_rows(image_, x, x + 1, std::max(row_of(below, most, top, height), look_.frame.device(clip_)), bottom,
                  theme_[owners.owners()[owner].token].rgb());
      }
    }
  }

  void memory(int top, const Track& track) {
    const MemoryScene& memory = *scene_.memory;
    const std::int64_t most = memory_top(scene_, look_);
    clip_ = look_.frame.axis;
    const int left = look_.frame.device(look_.frame.gutter);
    stack(memory.owners, look_.frame.device_axis(look_.view), most, top, track.row_height, left);
    reserved_line(memory.reserved, most, top, track.row_height);
    if (look_.ghost != nullptr && look_.ghost->memory != nullptr) ghost_line(*look_.ghost->memory, most, top, track);
  }

  void reserved_line(const StepCurve& reserved, std::int64_t most, int top, int height) {
    const auto columns = reserved.fold(look_.frame.device_axis(look_.view));
    const int left = look_.frame.device(look_.frame.gutter), thick = std::max(1, look_.frame.device(1));
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const int high = row_of(columns[i].high, most, top, height), low = row_of(columns[i].low, most, top, height);
      if (high < look_.frame.device(look_.frame.axis)) continue;
      fill_rows(image_, left + static_cast<int>(i), left + static_cast<int>(i) + 1, high, std::max(low, high) + thick,
                theme_.muted.rgb());
    }
  }

  // What it is compared with: its outline, dashed over a line of the background, so that it shows on any colour.
  void ghost_line(const MemoryScene& ghost, std::int64_t most, int top, const Track& track) {
    const auto columns = ghost.allocated.fold(axis());
    QPainterPath path;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const double y = row_of(columns[i].high, most, top, track.row_height) / look_.frame.ratio;
      const QPointF point(look_.frame.gutter + static_cast<double>(i), y);
      i == 0 ? path.moveTo(point) : path.lineTo(point);
    }
    QPainter painter(&image_);
    painter.setClipRect(plot());
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(QPen(theme_.background, 5));
    painter.drawPath(path);
    QPen dashes(theme_.text, 2);
    dashes.setDashPattern({3.5, 1.5});
    painter.setPen(dashes);
    painter.drawPath(path);
  }

  void address_map(int top, const Track& track) {
    const TimeRange bytes = map_shown(scene_, look_);
    const int upper = std::max(look_.frame.device(top), look_.frame.device(look_.frame.axis));
    const int lower = std::min(look_.frame.device(top + track.row_height), image_.height());
    const int left = look_.frame.device(look_.frame.gutter);
    if (lower <= upper) return;
    // The part of the map that isn't scrolled away.
    const double whole = track.row_height * look_.frame.ratio;
    const auto at = [&](int y) {
      const double part = (look_.frame.device(top) + whole - y) / whole;
      return bytes.begin + static_cast<std::int64_t>(part * static_cast<double>(bytes.length()));
    };
    fill_rows(image_, left, image_.width(), upper, lower, theme_[Token::sunken].rgb());
    const int pitch = static_cast<int>(image_.bytesPerLine() / 4);
    const PixelRaster raster{
        reinterpret_cast<std::uint32_t*>(image_.bits()) + static_cast<std::ptrdiff_t>(upper) * pitch + left,
        image_.width() - left, lower - upper, pitch};
    std::vector<std::uint32_t> colors;
    for (const Token token : scene_.memory->tokens) colors.push_back(theme_[token].rgb());
    scene_.memory->map.draw(raster, look_.view, {at(lower), std::max(at(upper), at(lower) + 1)}, colors);
  }

  // ---- over all of it ----

  void texts() {
    QPainter painter(&image_);
    painter.setClipRect(plot());
    for (const QRectF& rect : hatched_) painter.fillRect(rect, QBrush(theme_.background, Qt::BDiagPattern));
    painter.setFont(sized(painter, span_size));
    for (const Label& label : labels_) {
      painter.setPen(Theme::text_on(theme_.work[label.color]));
      paint_name(painter, label);
    }
    for (std::size_t i = 0; i < look_.tracks->size(); ++i) {
      const Track& track = (*look_.tracks)[i];
      if (track.kind == TrackKind::memory) memory_words(painter, places_.top(i), track);
      if (track.kind == TrackKind::map) {
        painter.setFont(sized(painter, span_size));
        paint_block_names(painter, scene_, look_, theme_, places_.top(i), track.row_height);
      }
      if (track.kind == TrackKind::map && look_.map) map_words(painter, places_.top(i), track);
      if (track.kind == TrackKind::map && look_.block) block_outline(painter, places_.top(i), track);
    }
    step_lines(painter);
    if (look_.with_path) path(painter);
    if (outline_) twice(painter, [&](QPainter& p) { p.drawRect(outline_->adjusted(0, 1, -1, -1)); });
    flows(painter);
    if (look_.ghost != nullptr) end_of_ghost(painter);
    painter.setClipping(false);
    labels(painter);
    marks(painter);
    notes(painter);
  }

  // On any colour: under the line a broader one of the background.
  template <class Draw>
  void twice(QPainter& painter, const Draw& draw) const {
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setBrush(Qt::NoBrush);
    painter.setPen(QPen(theme_.background, 4.5));
    draw(painter);
    painter.setPen(QPen(theme_.accent, 2.2));
    draw(painter);
    painter.setRenderHint(QPainter::Antialiasing, false);
  }

  void paint_name(QPainter& painter, const Label& label) {
    QString name;
    if (label.is_pass) {
      name = words(scene_.passes->passes[label.id].name);
      const QString number = name.section(' ', 0, 0);
      bool is_number = false;
      static_cast<void>(number.toInt(&is_number));
      if (painter.fontMetrics().horizontalAdvance(name) > label.rect.width() - 4) name = is_number ? number : QString();
      painter.drawText(label.rect, is_number ? Qt::AlignCenter : Qt::AlignVCenter | Qt::AlignLeft,
                       is_number ? name : " " + name);
      return;
    }
    paint_elided(painter, label.rect.adjusted(3, 0, -2, 0), Qt::AlignVCenter | Qt::AlignLeft,
                 words(span_name(scene_, label.id)));
  }

  void boxed(QPainter& painter, QPointF at, const QString& text, const QColor& color) const {
    painter.setFont(sized(painter, label_size, true));
    const double width = painter.fontMetrics().horizontalAdvance(text) + 12;
    double left = at.x() + 8;
    if (left + width > plot().right() - look_.right) left = at.x() - 8 - width;
    const QRectF box(std::max(left, plot().left() + 2.0), at.y(), width, 18);
    painter.setPen(color);
    painter.setBrush(theme_[Token::raised]);
    painter.drawRoundedRect(box, 4, 4);
    painter.drawText(box, Qt::AlignCenter, text);
  }

  void memory_words(QPainter& painter, int top, const Track& track) {
    const MemoryScene& memory = *scene_.memory;
    const std::int64_t most = memory_top(scene_, look_);
    const auto y_of = [&](std::int64_t bytes) {
      return top + track.row_height * (1 - static_cast<double>(bytes) / static_cast<double>(most));
    };
    painter.setFont(sized(painter, label_size));
    const Bytes capacity = memory.picture.capacity;
    const Bytes limit = scene_.result == nullptr ? capacity : scene_.result->memory.limit;
    if (capacity > Bytes(0) && capacity.count() <= most) {
      const double y = std::floor(y_of(capacity.count())) + 0.5, y_limit = y_of(limit.count());
      const bool keeps = limit > Bytes(0) && limit < capacity;
      if (keeps)
        painter.fillRect(QRectF(plot().left(), y, plot().width(), y_limit - y), QBrush(theme_.bad, Qt::BDiagPattern));
      painter.setPen(QPen(theme_.bad, 1.5));
      painter.drawLine(QPointF(plot().left(), y), QPointF(plot().right(), y));
      QString text = QString("%1 the GPU has").arg(words(short_size(capacity)));
      if (keeps) text += QString(", %1 kept as reserve").arg(words(short_size(capacity - limit)));
      // On a surface of its own: what is held may lie under it.
      const double width = painter.fontMetrics().horizontalAdvance(text) + 8,
                   right = plot().right() - 4.0 - look_.right;
      const QRectF words_at(right - width, y - 17, width, 15);
      if (memory.owners.peak() > capacity.count()) painter.fillRect(words_at, theme_.background);
      painter.drawText(words_at, Qt::AlignCenter, text);
    }
    const std::int64_t at = memory.owners.time_of_peak();
    const bool is_out = scene_.result != nullptr && scene_.result->memory.out_of_memory;
    if (at >= look_.view.begin && at < look_.view.end) {
      const double x = x_of(at), y = y_of(memory.owners.peak());
      painter.setRenderHint(QPainter::Antialiasing);
      painter.setPen(QPen(theme_.text, 2));
      painter.setBrush(theme_.background);
      painter.drawEllipse(QPointF(x, y), 3.5, 3.5);
      const QString when =
          look_.timed ? QString(" at %1").arg(words(short_duration(to_seconds(Picos(at))))) : QString();
      boxed(painter, QPointF(x, y + 5), QString("peak %1%2").arg(words(short_size(Bytes(memory.owners.peak()))), when),
            theme_.text);
      painter.setRenderHint(QPainter::Antialiasing, false);
    }
    if (!is_out) return;
    // Below the words of the peak, where these are there already.
    constexpr double words_height = 20;
    const double y_peak = y_of(memory.owners.peak()), y_limit = y_of(limit.count());
    const double y = std::abs(y_limit - y_peak) < words_height ? y_peak + words_height : y_limit;
    out_of_memory(painter, memory.owners.first_above(limit.count(), at), y + 2);
  }

  void out_of_memory(QPainter& painter, std::int64_t at, double y) {
    if (at < look_.view.begin || at >= look_.view.end) return;
    const double x = x_of(at);
    painter.setPen(QPen(theme_.bad, 1.5));
    painter.drawLine(QPointF(x, plot().top()), QPointF(x, plot().bottom()));
    boxed(painter, QPointF(x, y + 4), "runs out of memory here", theme_.bad);
  }

  // Which addresses a zoomed map shows.
  void map_words(QPainter& painter, int top, const Track& track) const {
    const TimeRange shown = map_shown(scene_, look_);
    boxed(painter, QPointF(plot().left(), top + track.row_height - 22.0),
          QString("bytes %1 to %2 of %3")
              .arg(words(short_size(Bytes(shown.begin))), words(short_size(Bytes(shown.end))),
                   words(short_size(Bytes(map_bytes(*scene_.memory).end)))),
          theme_.text);
  }

  void block_outline(QPainter& painter, int top, const Track& track) const {
    if (*look_.block >= scene_.memory->map.blocks().size()) return;
    const AddressMap::Block& block = scene_.memory->map.blocks()[*look_.block];
    const TimeRange shown = map_shown(scene_, look_);
    const auto y_of = [&](std::int64_t bytes) {
      const double part = static_cast<double>(bytes - shown.begin) / static_cast<double>(shown.length());
      return top + track.row_height * (1 - std::clamp(part, 0.0, 1.0));
    };
    twice(painter, [&](QPainter& p) {
      p.drawRect(QRectF(QPointF(x_of(block.begin), y_of(block.high)), QPointF(x_of(block.end), y_of(block.low))));
    });
  }

  // Ends of steps, where they are not a fence.
  void step_lines(QPainter& painter) const {
    constexpr double least_apart = 40;
    if (scene_.lanes == nullptr || scene_.lanes->steps.size() < 2) return;
    painter.setPen(QPen(theme_.muted, 1, Qt::DotLine));
    double last = -least_apart;
    for (const SceneStep& step : scene_.lanes->steps) {
      const double x = x_of(step.range.begin);
      if (x - last < least_apart) continue;
      painter.drawLine(QPointF(x, look_.frame.axis), QPointF(x, look_.frame.size.height()));
      last = x;
    }
  }

  // Along the spans it runs through, upright where it changes track; waits are dashed.
  void path(QPainter& painter) const {
    if (scene_.result == nullptr || !look_.timed) return;
    QPainterPath runs, waits;
    QPointF last;
    bool has_last = false;
    const auto& steps = scene_.result->path;
    const double unit = 1 / axis().scale();  // of time, a pixel
    for (std::size_t i = 0; i < steps.size();) {
      // What is less than a pixel together is one piece.
      std::size_t until = i + 1;
      while (until < steps.size() && static_cast<double>((steps[until].end - steps[i].begin).count()) < unit) ++until;
      std::size_t longest = i;
      for (std::size_t k = i; k < until; ++k)
        if (steps[k].end - steps[k].begin > steps[longest].end - steps[longest].begin) longest = k;
      const std::int64_t begin = steps[i].begin.count(), end = steps[until - 1].end.count();
      const PathStep& step = steps[longest];
      i = until;
      if (end < look_.view.begin || begin > look_.view.end) {
        has_last = false;
        continue;
      }
      const auto middle = places_.middle(static_cast<std::uint32_t>(index_of(step.op)), step.begin.count());
      if (!middle) continue;
      const QPointF from(x_of(begin), middle->y()), to(x_of(end), middle->y());
      QPainterPath& into = step.waits ? waits : runs;
      if (has_last && std::abs(last.y() - from.y()) > 1) {
        runs.moveTo(last);
        runs.lineTo(QPointF(last.x(), from.y()));
      }
      into.moveTo(from);
      into.lineTo(to);
      last = to;
      has_last = true;
    }
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setBrush(Qt::NoBrush);
    painter.setPen(QPen(theme_.background, 4.5));
    painter.drawPath(runs);
    painter.drawPath(waits);
    painter.setPen(QPen(theme_.text, 2.2));
    painter.drawPath(runs);
    painter.setPen(QPen(theme_.text, 2.2, Qt::DotLine));
    painter.drawPath(waits);
    painter.setRenderHint(QPainter::Antialiasing, false);
  }

  void flows(QPainter& painter) const {
    for (const TrackFlow& flow : look_.flows) {
      const auto from_range = places_.range(flow.from), to_range = places_.range(flow.to);
      if (!from_range || !to_range) continue;
      const bool follows = from_range->end <= to_range->begin;
      const auto from = places_.middle(flow.from, follows ? from_range->end : from_range->begin);
      const auto to = places_.middle(flow.to, to_range->begin);
      if (!from || !to) continue;
      twice(painter, [&](QPainter& p) {
        QPainterPath line(*from);
        const double bend = std::max(12.0, std::abs(to->x() - from->x()) / 2);
        line.cubicTo(*from + QPointF(bend, 0), *to - QPointF(bend, 0), *to);
        p.drawPath(line);
      });
      painter.setBrush(theme_.accent);
      painter.drawEllipse(*to, 3, 3);
      painter.setBrush(Qt::NoBrush);
      const QRectF box(QPointF(x_of(to_range->begin), to->y() - 7), QPointF(x_of(to_range->end), to->y() + 7));
      twice(painter, [&](QPainter& p) { p.drawRect(box); });
    }
  }

  void end_of_ghost(QPainter& painter) const {
    const TimelineScene* const lanes = look_.ghost->lanes;
    if (lanes == nullptr || lanes->empty() || !look_.timed) return;
    const std::int64_t end = lanes->whole.end;
    if (end <= look_.view.begin || end >= look_.view.end) return;
    const double x = x_of(end);
    QPen dashes(theme_.text, 2);
    dashes.setDashPattern({3.5, 1.5});
    painter.setPen(dashes);
    painter.drawLine(QPointF(x, plot().top()), QPointF(x, plot().bottom()));
  }

  void labels(QPainter& painter) {
    const int gutter = look_.frame.gutter, bottom = look_.frame.size.height();
    painter.setClipRect(QRect(0, look_.frame.axis, look_.frame.size.width(), bottom));
    painter.fillRect(QRect(0, look_.frame.axis, gutter, bottom), theme_.panel);
    for (std::size_t i = 0; i < look_.tracks->size(); ++i) {
      const Track& track = (*look_.tracks)[i];
      const int top = places_.top(i);
      if (top + track.height() <= look_.frame.axis || top >= bottom) continue;
      if (track.kind == TrackKind::heading) {
        heading(painter, top, track);
        continue;
      }
      painter.setPen(theme_.text);
      painter.setFont(sized(painter, label_size));
      const int line = painter.fontMetrics().height();
      const int height = track.height() - track.gap;
      const bool beside = !track.detail.empty() && height < 2 * line;
      const bool below = !track.detail.empty() && !beside && height >= 2 * line;
      const QRectF box(indent, top, gutter - indent - 2, below ? height / 2.0 : height);
      const QFont plain = painter.font();
      painter.setFont(narrowed(painter, words(track.label), box.width()));
      paint_elided(painter, box, (below ? Qt::AlignBottom : Qt::AlignVCenter) | Qt::AlignLeft, words(track.label));
      painter.setFont(plain);
      if (track.detail.empty()) continue;
      const int both = painter.fontMetrics().horizontalAdvance(words(track.label + "  " + track.detail));
      if (beside && both > box.width()) continue;  // the label alone
      painter.setPen(theme_.muted);
      const QRectF rest = below ? QRectF(indent, top + height / 2.0, gutter - indent - 6, height / 2.0) : box;
      paint_elided(painter, rest, (below ? Qt::AlignTop | Qt::AlignLeft : Qt::AlignVCenter | Qt::AlignRight),
                   track.kind == TrackKind::memory ? words(track.detail + ", " + memory_unit()) : words(track.detail));
      if (track.kind == TrackKind::memory) byte_scale(painter, top, track);
    }
    painter.setPen(theme_[Token::line]);
    painter.drawLine(gutter - 1, look_.frame.axis, gutter - 1, bottom);
    painter.setClipping(false);
  }

  // "GiB", of the scale's figures.
  [[nodiscard]] std::string memory_unit() const {
    const auto ticks = byte_ticks(Bytes(memory_top(scene_, look_)), 2);
    const std::string label = ticks.empty() ? std::string() : ticks.back().label;
    return label.substr(std::min(label.size(), label.find(' ') + 1));
  }

  void byte_scale(QPainter& painter, int top, const Track& track) const {
    const std::int64_t most = memory_top(scene_, look_);
    painter.setPen(theme_.muted);
    constexpr int least_apart = 26;  // logical pixels
    for (const Tick& tick : byte_ticks(Bytes(most), std::max(2, track.row_height / least_apart))) {
      const double y = top + track.row_height * (1 - static_cast<double>(tick.at) / static_cast<double>(most));
      if (tick.at == 0 || y < look_.frame.axis + 8) continue;
      painter.drawText(QRectF(look_.frame.gutter - 70, y - 8, 64, 16), Qt::AlignRight | Qt::AlignVCenter,
                       words(tick.label).section(' ', 0, 0));
    }
  }

  void heading(QPainter& painter, int top, const Track& track) const {
    const QRectF row(0, top, look_.frame.size.width(), track.row_height);
    painter.fillRect(row, theme_.panel);
    painter.setPen(theme_[Token::line]);
    painter.drawLine(row.topLeft(), row.topRight());
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(QPen(theme_.muted, 1.5));
    const QPointF middle(10, row.center().y());
    if (track.is_closed)
      painter.drawPolyline(QPolygonF({middle + QPointF(-2, -4), middle + QPointF(2, 0), middle + QPointF(-2, 4)}));
    else
      painter.drawPolyline(QPolygonF({middle + QPointF(-4, -2), middle + QPointF(0, 2), middle + QPointF(4, -2)}));
    painter.setRenderHint(QPainter::Antialiasing, false);
    painter.setPen(theme_.text);
    painter.setFont(sized(painter, label_size, true));
    painter.drawText(row.adjusted(indent + 2, 0, 0, 0), Qt::AlignVCenter | Qt::AlignLeft, words(track.label));
    painter.setPen(theme_.muted);
    painter.setFont(sized(painter, label_size));
    painter.drawText(row.adjusted(0, 0, -8 - look_.right, 0), Qt::AlignVCenter | Qt::AlignRight, words(track.detail));
  }

  // Of what was searched for, under the ruler; no more than there are pixels.
  void marks(QPainter& painter) const {
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(Qt::NoPen);
    painter.setBrush(theme_.warning);
    double last = -2;
    for (const std::uint32_t op : look_.marked) {
      const auto range = places_.range(op);
      if (!range || range->begin < look_.view.begin || range->begin >= look_.view.end) continue;
      const double x = x_of(range->begin), y = look_.frame.axis - 1;
      if (std::abs(x - last) < 2) continue;
      painter.drawPolygon(QPolygonF({QPointF(x - 3, y - 6), QPointF(x + 3, y - 6), QPointF(x, y)}));
      last = x;
    }
    painter.setRenderHint(QPainter::Antialiasing, false);
  }

  void notes(QPainter& painter) const {
    painter.setFont(sized(painter, span_size));
    for (const ShownNote& note : look_.notes) {
      const QRectF flag = note_flag(look_, note);
      if (flag.isEmpty()) continue;
      painter.setPen(QPen(theme_.accent, 1, Qt::DashLine));
      painter.drawLine(QPointF(std::floor(flag.left()) + 0.5, look_.frame.axis),
                       QPointF(std::floor(flag.left()) + 0.5, look_.frame.size.height()));
      painter.setPen(theme_.accent);
      painter.setBrush(theme_[Token::accent_surface]);
      painter.drawRect(flag);
      paint_elided(painter, flag.adjusted(4, 0, -3, 0), Qt::AlignVCenter | Qt::AlignLeft, words(note.text));
    }
  }

  // The whole step; what is shown of it as it is, the rest pale.
  void small_picture() {
    const int gutter = look_.frame.gutter, top = 3, height = minimap_height - 5;
    const TimeAxis whole(look_.whole,
                         std::max(1, look_.frame.device(look_.frame.size.width()) - look_.frame.device(gutter)));
    const int left = look_.frame.device(gutter);
    {
      QPainter painter(&image_);
      painter.fillRect(QRect(gutter, top, plot().width(), height), theme_.background);
    }
    clip_ = 0;
    if (scene_.memory != nullptr) {
      stack(scene_.memory->owners, whole, std::max<std::int64_t>(1, scene_.memory->owners.peak()), top, height, left);
    } else if (scene_.lanes != nullptr && !scene_.lanes->empty()) {
      std::vector<FoldedPiece> pieces;
      scene_.lanes->lanes.back().spans.fold(whole, pieces);
      for (const FoldedPiece& piece : pieces)
        fill_rows(image_, left + static_cast<int>(piece.x), left + static_cast<int>(piece.x + piece.width + 1),
                  look_.frame.device(top), look_.frame.device(top + height), theme_.work[piece.color].rgb());
    }
    QPainter painter(&image_);
    const TimeAxis logical(look_.whole, plot().width());
    const double from = gutter + logical.x(look_.view.begin), to = gutter + logical.x(look_.view.end);
    QColor veil = theme_.panel;
    veil.setAlpha(190);
    painter.fillRect(QRectF(gutter, top, from - gutter, height), veil);
    painter.fillRect(QRectF(to, top, look_.frame.size.width() - to, height), veil);
    painter.setPen(QPen(theme_.accent, 2));
    painter.setBrush(Qt::NoBrush);
    painter.drawRect(QRectF(from + 1, top, std::max(2.0, to - from - 2), height));
    for (const double handle : {from, to})
      painter.fillRect(QRectF(handle - 2, top + height / 4.0, 4, height / 2.0), theme_.accent);
    painter.setPen(theme_.muted);
    painter.setFont(sized(painter, label_size));
    painter.drawText(QRectF(10, top, gutter - 14, height), Qt::AlignVCenter,
                     words(time_text(look_.whole.length(), look_.timed)));
  }

  const TrackScene& scene_;
  const TrackLook& look_;
  const Theme& theme_;
  TrackPlaces places_;
  QImage image_;
  int clip_ = 0;  // logical pixels: nothing is drawn above
  std::vector<FoldedPiece> pieces_;
  std::vector<Label> labels_;
  std::vector<QRectF> hatched_;
  std::optional<QRectF> outline_;
  std::array<bool, most_span_colors> used_{};
  std::array<std::uint32_t, most_span_colors> ghost_{};
  std::array<std::array<std::uint32_t, most_span_colors>, fold_levels + 1> colors_{};  // runs by level, then blocks
};

}  // namespace

QImage paint_tracks(const TrackScene& scene, const TrackLook& look, const Theme& theme) {
  return Picture(scene, look, theme).paint();
}

}  // namespace spillway::gui
