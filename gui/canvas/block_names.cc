#include "gui/canvas/block_names.h"

#include <algorithm>

#include "studies/diagnosis/memory_diagnosis.h"

namespace spillway::gui {
namespace {

constexpr std::size_t most_blocks = 300'000, most_names = 300;

}  // namespace

std::string block_name(const Trace& trace, const MemoryPicture::Block& block) {
  if (block.event < 0) return "held before the step";
  const MemoryEvent& event = trace.memory_events[static_cast<std::size_t>(block.event)];
  if (event.tensor != TensorId::none) {
    const std::string_view name = trace.strings.text(trace.tensors.name[index_of(event.tensor)]);
    if (!name.empty()) return std::string(name);
  }
  if (event.anchor != OpId::none)
    return "for " + std::string(trace.strings.text(trace.ops.name[index_of(event.anchor)]));
  if (event.stack != no_stack) return studies::own_place(trace, event.stack);
  return "allocation " + std::to_string(block.event);
}

void paint_block_names(QPainter& painter, const TrackScene& scene, const TrackLook& look, const Theme& theme, int top,
                       int height) {
  const auto& blocks = scene.memory->map.blocks();
  if (scene.trace == nullptr || blocks.size() > most_blocks) return;
  const TimeRange bytes = map_shown(scene, look);
  const TimeAxis axis = look.frame.axis_of(look.view);
  const double pixel = height / static_cast<double>(bytes.length());  // of a byte
  const auto least_bytes = static_cast<std::int64_t>(least_named_height / pixel);
  const auto least_time = static_cast<std::int64_t>(least_named_width / axis.scale());
  const auto& picture = scene.memory->picture;
  std::size_t named = 0;
  for (const AddressMap::Block& block : blocks) {
    const std::int64_t begin = std::max(block.begin, look.view.begin), end = std::min(block.end, look.view.end);
    const std::int64_t low = std::max(block.low, bytes.begin), high = std::min(block.high, bytes.end);
    if (end - begin < least_time || high - low < least_bytes) continue;
    if (++named > most_names) return;
    const QRectF room(
        QPointF(look.frame.gutter + axis.x(begin) + 3, top + height - static_cast<double>(high - bytes.begin) * pixel),
        QPointF(look.frame.gutter + axis.x(end) - 2, top + height - static_cast<double>(low - bytes.begin) * pixel));
    const MemoryPicture::Block& of = picture.blocks[block.source];
    painter.setPen(Theme::text_on(theme[scene.memory->tokens[of.kind]]));
    paint_elided(painter, room, Qt::AlignVCenter | Qt::AlignLeft, QString::fromStdString(block_name(*scene.trace, of)));
  }
}

}  // namespace spillway::gui
