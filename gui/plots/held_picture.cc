#include "gui/plots/held_picture.h"

#include <QPainter>
#include <algorithm>

#include "base/short_text.h"
#include "gui/canvas/plot_frame.h"
#include "reports/pictures/treemap_layout.h"

namespace spillway::gui {
namespace {

constexpr double least_area = 12, head = 18, least_flame_row = 20, most_flame_row = 34, least_flame = 2;
constexpr double least_open = 64;  // logical pixels either way of a cell that shows what is in it
constexpr int most_depth = 3;

int depth_of(const studies::HeldNode& node) {
  int deepest = 0;
  for (const studies::HeldNode& child : node.children) deepest = std::max(deepest, depth_of(child));
  return deepest + 1;
}

class Cells {
 public:
  explicit Cells(HeldShape shape) : shape_(shape) {}

  std::vector<HeldCell> of(const studies::HeldNode& root, const QRectF& area) {
    if (root.bytes <= Bytes(0)) return {};
    if (shape_ == HeldShape::flame) {
      flame_row_ = std::clamp(area.height() / depth_of(root), least_flame_row, most_flame_row);
      flame(root, nullptr, area.left(), area.top(), area.width(), area.bottom(), 0);
    } else {
      boxes(root, nullptr, area, 1);
    }
    return std::move(cells_);
  }

 private:
  void boxes(const studies::HeldNode& parent, const studies::HeldNode* group, const QRectF& area, int depth) {
    std::vector<double> values;
    Bytes all{}, shown{};
    for (const studies::HeldNode& child : parent.children) all += std::max(child.bytes, Bytes(0));
    const double scale = area.width() * area.height() / std::max(1.0, static_cast<double>(all.count()));
    for (const studies::HeldNode& child : parent.children) {
      if (static_cast<double>(child.bytes.count()) * scale < least_area) break;  // most first: the rest is smaller
      values.push_back(static_cast<double>(child.bytes.count()));
      shown += child.bytes;
    }
    const std::size_t drawn = values.size();
    if (all > shown) {  // in its place among the others, by size
      const auto rest = static_cast<double>((all - shown).count());
      values.push_back(rest);
    }
    std::vector<std::size_t> order(values.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return values[a] > values[b]; });
    std::vector<double> sorted;
    for (const std::size_t i : order) sorted.push_back(values[i]);
    const auto rects = reports::squarified(sorted, {area.x(), area.y(), area.width(), area.height()});
    for (std::size_t k = 0; k < order.size(); ++k) {
      const QRectF rect(rects[k].x, rects[k].y, rects[k].w, rects[k].h);
      if (order[k] == drawn) {
        cells_.push_back({rect, nullptr, group, depth, all - shown, false});
        continue;
      }
      const studies::HeldNode& child = parent.children[order[k]];
      const studies::HeldNode* const of = group == nullptr ? &child : group;
      const bool opens =
          !child.children.empty() && depth < most_depth && rect.width() > least_open && rect.height() > least_open;
      cells_.push_back({rect, &child, of, depth, child.bytes, opens});
      if (opens) boxes(child, of, rect.adjusted(2, head, -2, -2), depth + 1);
    }
  }

  void flame(const studies::HeldNode& node, const studies::HeldNode* group, double left, double top, double width,
             double bottom, int depth) {
    if (top + flame_row_ > bottom + 0.5) return;
    cells_.push_back({QRectF(left, top, width, flame_row_), &node, group, depth, node.bytes, !node.children.empty()});
    const auto part = [&](Bytes bytes) {
      return width * static_cast<double>(bytes.count()) / static_cast<double>(node.bytes.count());
    };
    double x = left;
    Bytes rest{};  // most first: what is too narrow is the last
    for (const studies::HeldNode& child : node.children) {
      if (part(child.bytes) < least_flame) {
        rest += std::max(child.bytes, Bytes(0));
        continue;
      }
      flame(child, group == nullptr ? &child : group, x, top + flame_row_, part(child.bytes), bottom, depth + 1);
      x += part(child.bytes);
    }
    if (part(rest) >= least_flame && top + 2 * flame_row_ <= bottom + 0.5)
      cells_.push_back({QRectF(x, top + flame_row_, part(rest), flame_row_), nullptr, group, depth + 1, rest, false});
  }

  HeldShape shape_;
  double flame_row_ = least_flame_row;
  std::vector<HeldCell> cells_;
};

// An owner's own colour; calls have none of their own.
QColor colour_of(const HeldCell& cell, const Theme& theme) {
  if (cell.group == nullptr) return theme[Token::sunken];
  std::string kind = cell.group->name;
  std::replace(kind.begin(), kind.end(), ' ', '_');
  const Token token = owner_token(kind);
  return token == Token::unknown ? theme[Token::accent_surface] : theme[token];
}

}  // namespace

std::vector<HeldCell> held_cells(const studies::HeldNode& root, HeldShape shape, const QRectF& area) {
  return Cells(shape).of(root, area);
}

std::optional<std::size_t> held_at(const std::vector<HeldCell>& cells, QPointF at) {
  for (std::size_t i = cells.size(); i-- > 0;)
    if (cells[i].rect.contains(at)) return i;
  return std::nullopt;
}

QImage paint_held(const std::vector<HeldCell>& cells, const HeldLook& look, const Theme& theme) {
  QImage image(look.size * look.ratio, QImage::Format_RGB32);
  image.setDevicePixelRatio(look.ratio);
  image.fill(theme.background);
  QPainter painter(&image);
  QFont font = painter.font();
  font.setPixelSize(11);
  painter.setFont(font);
  for (const HeldCell& cell : cells) {
    const QRectF rect = cell.rect.adjusted(0, 0, -1, -1);
    const QColor colour = colour_of(cell, theme);
    painter.fillRect(rect, colour);
    painter.setPen(theme.background);
    painter.setBrush(Qt::NoBrush);
    painter.drawRect(cell.rect.adjusted(0, 0, -1, -1));
    if (cell.node == nullptr) {
      painter.fillRect(rect, QBrush(theme[Token::cached], Qt::BDiagPattern));
      continue;
    }
    if (rect.width() < 30 || rect.height() < 14) continue;
    painter.setPen(Theme::text_on(colour));
    QString name = QString::fromStdString(cell.node->name);
    if (name.startsWith("layers.")) name = name.section('.', 2);  // whose layer it is stands above it
    if (name.startsWith("layer ") && painter.fontMetrics().horizontalAdvance(name) > rect.width() - 7)
      name = name.section(' ', 1);
    const QString size = QString::fromStdString(short_size(cell.bytes));
    const QRectF inner = rect.adjusted(4, 1, -3, -1);
    const bool one_line = cell.is_open || rect.height() < 32;
    if (one_line) {
      const QString both = name + "  " + size;
      const bool holds_both = painter.fontMetrics().horizontalAdvance(both) <= inner.width();
      paint_elided(painter, QRectF(inner.left(), inner.top(), inner.width(), std::min(head, inner.height())),
                   Qt::AlignVCenter | Qt::AlignLeft, holds_both ? both : name);
    } else {
      paint_elided(painter, QRectF(inner.left(), inner.top() + 2, inner.width(), 14), Qt::AlignLeft, name);
      if (painter.fontMetrics().horizontalAdvance(size) <= inner.width())  // a figure is whole or left out
        painter.drawText(QRectF(inner.left(), inner.top() + 16, inner.width(), 14), Qt::AlignLeft, size);
    }
  }
  if (look.pointed && *look.pointed < cells.size()) {
    painter.setPen(QPen(theme.background, 4.5));
    painter.drawRect(cells[*look.pointed].rect.adjusted(1, 1, -2, -2));
    painter.setPen(QPen(theme.accent, 2.2));
    painter.drawRect(cells[*look.pointed].rect.adjusted(1, 1, -2, -2));
  }
  return image;
}

}  // namespace spillway::gui
