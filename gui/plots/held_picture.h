// Who holds memory, drawn: a tree of holders (studies/diagnosis/held_tree.h) as areas inside areas, or as flames.
//
//   treemap  +--------+---+     flame   all that is alive          ]
//            | a  a1  | b |             a              ] b         ]
//            |    a2  |   |             a1     ] a2    ]
//            +--------+---+
#pragma once

#include <QImage>
#include <QRectF>
#include <QString>
#include <optional>
#include <vector>

#include "gui/canvas/theme.h"
#include "studies/diagnosis/held_tree.h"

namespace spillway::gui {

enum class HeldShape : std::uint8_t { treemap, flame };

struct HeldCell {
  QRectF rect;
  const studies::HeldNode* node = nullptr;   // null: what is too small to be drawn, summed up
  const studies::HeldNode* group = nullptr;  // of the first level, that it lies in
  int depth = 0;                             // 1: a child of the root; flames have the root itself at 0
  Bytes bytes{};
  bool is_open = false;  // its children lie on it
};

// Parents before children; logical pixels. A treemap nests two levels, and a third where there is room.
std::vector<HeldCell> held_cells(const studies::HeldNode& root, HeldShape shape, const QRectF& area);
// The innermost cell at a place; none: nothing is there.
std::optional<std::size_t> held_at(const std::vector<HeldCell>& cells, QPointF at);

struct HeldLook {
  QSize size;
  double ratio = 1;  // device pixels per logical one
  std::optional<std::size_t> pointed;
};
QImage paint_held(const std::vector<HeldCell>& cells, const HeldLook& look, const Theme& theme);

}  // namespace spillway::gui
