#include "gui/plots/memory_views.h"

#include <QContextMenuEvent>
#include <QMenu>

#include "base/number_text.h"

namespace spillway::gui {

std::string block_name(const Outcome& outcome, const MemoryPicture::Block& block) {
  if (block.event < 0) return "held before the step";
  const Trace& trace = outcome.trace();
  const MemoryEvent& event = trace.memory_events[static_cast<std::size_t>(block.event)];
  if (event.tensor != TensorId::none) {
    const std::string_view name = trace.strings.text(trace.tensors.name[index_of(event.tensor)]);
    if (!name.empty()) return std::string(name);
  }
  if (event.anchor != OpId::none)
    return "for " + std::string(trace.strings.text(trace.ops.name[index_of(event.anchor)]));
  return "allocation " + std::to_string(block.event);
}

MemoryView::MemoryView(SharedTime& time, Kind kind)
    : TimeView(time, kind == Kind::curve ? tr("Memory over time") : tr("Memory map"),
               kind == Kind::curve ? tr("Allocated and reserved memory over time, with the capacity")
                                   : tr("Every allocation at its address over time")),
      kind_(kind) {}

void MemoryView::show(std::shared_ptr<const Outcome> outcome, std::shared_ptr<const Outcome> baseline) {
  if (outcome != outcome_) chosen_.reset();
  outcome_ = std::move(outcome);
  baseline_ = std::move(baseline);
  refresh();
}

QImage MemoryView::paint(const PlotFrame& frame) const {
  if (scene() == nullptr) {
    QImage image = blank(frame, theme());
    QPainter painter(&image);
    painter.setPen(theme().muted);
    painter.drawText(QRect(0, 0, frame.size.width(), frame.size.height()), Qt::AlignCenter | Qt::TextWordWrap,
                     outcome_ == nullptr ? QString()
                                         : tr("The trace has no memory events.\nRecord it with "
                                              "profile_memory=True, or a memory snapshot."));
    return image;
  }
  MemoryLook look;
  look.frame = frame;
  look.view = time().view();
  look.chosen = chosen_;
  return kind_ == Kind::curve ? paint_memory_curve(*scene(), ghost(), look, theme())
                              : paint_address_map(*scene(), ghost(), look, theme());
}

std::int64_t MemoryView::block_at(QPoint at) const {
  const PlotFrame shape = frame();
  const QRect plot = shape.plot();
  if (scene() == nullptr || !plot.contains(at)) return -1;
  TimeRange bytes = map_bytes(*scene());
  if (ghost() != nullptr) bytes.end = std::max(bytes.end, map_bytes(*ghost()).end);
  const auto address = static_cast<std::int64_t>(static_cast<double>(plot.bottom() - at.y()) / plot.height() *
                                                 static_cast<double>(bytes.length()));
  return scene()->map.at(shape.axis_of(time().view()).time(at.x() - plot.left()), address);
}

QString MemoryView::words_at(QPoint at) const {
  const PlotFrame shape = frame();
  if (scene() == nullptr || !shape.plot().contains(at)) return {};
  const MemoryScene& memory = *scene();
  const bool timed = memory.picture.timed;
  const std::int64_t when = shape.axis_of(time().view()).time(at.x() - shape.gutter);
  QString words = tr("at %1: %2 allocated, %3 reserved")
                      .arg(QString::fromStdString(time_text(when, timed)),
                           QString::fromStdString(bytes_text(Bytes(memory.allocated.value_at(when)))),
                           QString::fromStdString(bytes_text(Bytes(memory.reserved.value_at(when)))));
  if (kind_ == Kind::curve) return words;
  const std::int64_t found = block_at(at);
  if (found < 0) return words;
  const MemoryPicture::Block& block =
      memory.picture.blocks[memory.map.blocks()[static_cast<std::size_t>(found)].source];
  return tr("%1: %2, %3, lives %4 to %5")
      .arg(QString::fromStdString(block_name(*outcome_, block)),
           QString::fromStdString(memory.picture.kinds[block.kind]), QString::fromStdString(bytes_text(block.size)),
           QString::fromStdString(time_text(block.begin, timed)), QString::fromStdString(time_text(block.end, timed)));
}

void MemoryView::click(QPoint at) {
  chosen_.reset();
  const std::int64_t found = kind_ == Kind::map ? block_at(at) : -1;
  if (found >= 0) chosen_ = static_cast<std::size_t>(found);
  refresh();
  if (on_choose) on_choose();
}

std::optional<std::size_t> MemoryView::chosen() const {
  if (!chosen_ || scene() == nullptr) return std::nullopt;
  return scene()->map.blocks()[*chosen_].source;
}

void MemoryView::choose(std::size_t block) {
  if (scene() == nullptr) return;
  const auto& blocks = scene()->map.blocks();
  for (std::size_t i = 0; i < blocks.size(); ++i)
    if (blocks[i].source == block) chosen_ = i;
  refresh();
}

std::optional<TimeRange> MemoryView::chosen_range() const {
  if (!chosen_ || scene() == nullptr) return std::nullopt;
  const AddressMap::Block& block = scene()->map.blocks()[*chosen_];
  return TimeRange{block.begin, std::max(block.end, block.begin + 1)};
}

void MemoryView::contextMenuEvent(QContextMenuEvent* event) {
  QMenu menu(this);
  menu.addActions(actions());
  if (!menu.isEmpty()) menu.exec(event->globalPos());
}

}  // namespace spillway::gui
