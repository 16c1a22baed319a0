#include "gui/canvas/timeline_painter.h"

#include <algorithm>
#include <array>

#include "gui/canvas/pixel_run.h"
#include "sim/replay/timeline_lanes.h"

namespace spillway::gui {
namespace {

constexpr int ghost_height = 7;

class Picture {
 public:
  Picture(const TimelineScene& scene, const TimelineExtras& extras, const TimelineLook& look, const Theme& theme)
      : scene_(scene), extras_(extras), look_(look), theme_(theme), image_(blank(look.frame, theme)) {
    for (std::size_t color = 0; color < theme.work.size(); ++color) {
      ghost_[color] = theme.ghost(theme.work[color]).rgb();
      for (std::size_t level = 0; level < fold_levels; ++level)
        colors_[level][color] = theme.run_color(static_cast<std::uint8_t>(color), static_cast<std::uint8_t>(level));
      colors_[fold_levels][color] = theme.work[color].rgb();
    }
  }

  QImage paint() {
    grid();
    int top = look_.frame.axis - look_.scroll;
    const int row = row_height(look_, extras_.baseline != nullptr);
    for (const std::size_t index : look_.lanes) {
      if (index < scene_.lanes.size() && top + row > look_.frame.axis && top < look_.frame.size.height())
        lane(scene_.lanes[index], top);
      top += row;
    }
    texts();
    return std::move(image_);
  }

 private:
  struct Label {
    QRectF rect;
    std::uint32_t id;
    std::uint8_t color;
  };

  void grid() {
    QPainter painter(&image_);
    paint_time_axis(painter, look_.frame, look_.view, theme_, look_.marks.timed);
  }

  void lane(const SceneLane& lane, int top) {
    const int upper = top + look_.gap / 2;
    const int first = look_.frame.device(std::max(upper, look_.frame.axis));
    const int last = look_.frame.device(upper + look_.lane_height);
    draw(lane.spans, first, last, false, top);
    names_.push_back({QRectF(8, top, look_.frame.gutter - 14, look_.lane_height + look_.gap), lane.name});
    if (extras_.baseline == nullptr) return;
    const auto same = std::find_if(extras_.baseline->lanes.begin(), extras_.baseline->lanes.end(),
                                   [&](const SceneLane& other) { return other.name == lane.name; });
    if (same == extras_.baseline->lanes.end()) return;
    const int ghost = top + look_.gap / 2 + look_.lane_height + 1;
    if (ghost < look_.frame.axis) return;
    draw(same->spans, look_.frame.device(ghost), look_.frame.device(ghost + ghost_height), true, ghost);
  }

  // All rows of a lane are the same: one is drawn, over what lies below it, and copied.
  void draw(const SpanLane& spans, int first, int last, bool is_ghost, int top) {
    first = std::max(first, 0);
    last = std::min(last, image_.height());
    if (first >= last) return;
    pieces_.clear();
    spans.fold(look_.frame.device_axis(look_.view), pieces_);
    const int left = look_.frame.device(look_.frame.gutter), width = image_.width();
    const auto pitch = static_cast<std::ptrdiff_t>(image_.bytesPerLine() / 4);
    auto* const row = reinterpret_cast<std::uint32_t*>(image_.bits()) + first * pitch;
    for (const FoldedPiece& piece : pieces_) {
      const int x0 = std::min(left + static_cast<int>(piece.x + 0.5), width);
      const int x1 = std::min(std::max(x0 + 1, left + static_cast<int>(piece.x + piece.width + 0.5)), width);
      const bool is_block = piece.span >= 0;
      used_[piece.color] = true;
      const bool spaced = is_block && x1 - x0 > 3;  // neighbours of one colour stay apart
      fill_run(row + x0, row + (spaced ? x1 - 1 : x1), color_of(piece, is_ghost));
      if (is_block && !is_ghost) label(spans, piece, x0, top);
    }
    for (int y = first + 1; y < last; ++y) std::copy(row + left, row + width, row + (y - first) * pitch + left);
  }

  [[nodiscard]] std::uint32_t color_of(const FoldedPiece& piece, bool is_ghost) const {
    if (is_ghost) return ghost_[piece.color];
    return colors_[piece.span >= 0 ? fold_levels : piece.level][piece.color];
  }

  void label(const SpanLane& spans, const FoldedPiece& piece, int x0, int top) {
    const double width = piece.width / look_.frame.ratio;
    const std::uint32_t id = spans.id(static_cast<std::size_t>(piece.span));
    const QRectF rect(x0 / look_.frame.ratio, top + look_.gap / 2.0, width, look_.lane_height);
    if (width >= look_.least_label && labels_.size() < look_.most_labels) labels_.push_back({rect, id, piece.color});
    if (look_.chosen == id) outline_ = rect;
  }

  // Of a micro-batch's pass its number alone where there is no room for more.
  static void paint_name(QPainter& painter, const QRectF& rect, const QString& name) {
    const QString number = name.section(' ', 0, 0);
    bool is_number = false;
    static_cast<void>(number.toInt(&is_number));
    const bool is_short = is_number && painter.fontMetrics().horizontalAdvance(name) > rect.width();
    paint_elided(painter, rect, Qt::AlignVCenter | (is_short ? Qt::AlignHCenter : Qt::AlignLeft),
                 is_short ? number : name);
  }

  void texts() {
    QPainter painter(&image_);
    painter.setClipRect(look_.frame.plot());
    if (extras_.trace != nullptr)
      for (const Label& label : labels_) {
        painter.setPen(Theme::text_on(theme_.work[label.color]));
        paint_name(painter, label.rect.adjusted(3, 0, -2, 0),
                   QString::fromStdString(extras_.name(scene_, *extras_.trace, label.id)));
      }
    if (outline_) {
      painter.setPen(QPen(theme_.text, 2));
      painter.drawRect(outline_->adjusted(1, 1, -1, -1));
    }
    steps(painter);
    arrows(painter);
    painter.setClipRect(QRect(0, look_.frame.axis, look_.frame.gutter, look_.frame.size.height()));
    painter.fillRect(QRect(0, look_.frame.axis, look_.frame.gutter - 2, look_.frame.size.height()), theme_.panel);
    painter.setPen(theme_.text);
    for (const auto& [rect, name] : names_)
      paint_elided(painter, rect, Qt::AlignVCenter | Qt::AlignLeft, QString::fromStdString(name));
    painter.setClipping(false);
    legend(painter);
    paint_marks(painter, look_.frame, look_.view, theme_, look_.marks);
  }

  // What the colours stand for, below the lanes where there is room.
  void legend(QPainter& painter) const {
    const int below = look_.frame.axis - look_.scroll +
                      static_cast<int>(look_.lanes.size()) * row_height(look_, extras_.baseline != nullptr);
    const int top = look_.frame.size.height() - 26;
    if (below > top) return;
    std::vector<LegendEntry> entries;
    for (std::size_t i = 0; i < used_.size(); ++i) {
      const std::string_view words = describe(static_cast<WorkColor>(i));
      if (used_[i])
        entries.push_back({theme_.work[i], QString::fromUtf8(words.data(), static_cast<qsizetype>(words.size()))});
    }
    paint_legend(painter, look_.frame, entries, theme_, top);
  }

  void steps(QPainter& painter) const {
    if (scene_.steps.size() < 2) return;
    const TimeAxis axis = look_.frame.axis_of(look_.view);
    painter.setPen(QPen(theme_.accent, 1, Qt::DotLine));
    for (const SceneStep& step : scene_.steps) {
      const double x = look_.frame.gutter + axis.x(step.range.begin);
      painter.drawLine(QPointF(x, look_.frame.axis), QPointF(x, look_.frame.size.height()));
    }
  }

  [[nodiscard]] std::optional<QPointF> point(const TimelineFlow::End& end) const {
    const auto row = std::find(look_.lanes.begin(), look_.lanes.end(), end.lane);
    if (row == look_.lanes.end()) return std::nullopt;
    const int height = row_height(look_, extras_.baseline != nullptr);
    const double y = look_.frame.axis - look_.scroll + static_cast<double>(row - look_.lanes.begin()) * height +
                     look_.gap / 2.0 + look_.lane_height / 2.0;
    return QPointF(look_.frame.gutter + look_.frame.axis_of(look_.view).x(end.time), y);
  }

  void arrows(QPainter& painter) const {
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(QPen(theme_.text, 1.5));
    for (const TimelineFlow& flow : look_.flows) {
      const auto from = point(flow.from), to = point(flow.to);
      if (!from || !to) continue;
      painter.drawLine(*from, *to);
      painter.setBrush(theme_.text);
      painter.drawEllipse(*to, 3, 3);
    }
    painter.setRenderHint(QPainter::Antialiasing, false);
  }

  const TimelineScene& scene_;
  const TimelineExtras& extras_;
  const TimelineLook& look_;
  const Theme& theme_;
  QImage image_;
  std::vector<FoldedPiece> pieces_;
  std::vector<Label> labels_;
  std::vector<std::pair<QRectF, std::string>> names_;
  std::optional<QRectF> outline_;
  std::array<bool, most_span_colors> used_{};
  std::array<std::uint32_t, most_span_colors> ghost_{};
  std::array<std::array<std::uint32_t, most_span_colors>, fold_levels + 1> colors_{};  // runs by level, then blocks
};

}  // namespace

std::string op_name(const TimelineScene& /*scene*/, const Trace& trace, std::uint32_t id) {
  return std::string(trace.strings.text(is_span(id) ? trace.spans.name[span_of(id)] : trace.ops.name[id]));
}

std::string pass_name(const TimelineScene& scene, const Trace& /*trace*/, std::uint32_t id) {
  return scene.passes[id].name;
}

int row_height(const TimelineLook& look, bool with_ghost) {
  return look.lane_height + look.gap + (with_ghost ? ghost_height + 2 : 0);
}

QImage paint_timeline(const TimelineScene& scene, const TimelineExtras& extras, const TimelineLook& look,
                      const Theme& theme) {
  return Picture(scene, extras, look, theme).paint();
}

}  // namespace spillway::gui
