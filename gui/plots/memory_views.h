// The memory curve and the map of addresses as widgets.
#pragma once

#include <memory>
#include <optional>

#include "gui/canvas/memory_painter.h"
#include "gui/plots/time_view.h"
#include "gui/workspace/outcome.h"

namespace spillway::gui {

class MemoryView : public TimeView {
 public:
  enum class Kind { curve, map };
  MemoryView(SharedTime& time, Kind kind);

  void show(std::shared_ptr<const Outcome> outcome, std::shared_ptr<const Outcome> baseline);
  // Index in MemoryPicture::blocks of the block that is chosen.
  [[nodiscard]] std::optional<std::size_t> chosen() const;
  void choose(std::size_t block);
  std::function<void()> on_choose;

 protected:
  [[nodiscard]] QImage paint(const PlotFrame& frame) const override;
  [[nodiscard]] QString words_at(QPoint at) const override;
  void click(QPoint at) override;
  [[nodiscard]] std::optional<TimeRange> chosen_range() const override;
  void contextMenuEvent(QContextMenuEvent* event) override;

 private:
  [[nodiscard]] const MemoryScene* scene() const { return outcome_ == nullptr ? nullptr : outcome_->memory.get(); }
  [[nodiscard]] const MemoryScene* ghost() const { return baseline_ == nullptr ? nullptr : baseline_->memory.get(); }
  [[nodiscard]] std::int64_t block_at(QPoint at) const;

  Kind kind_;
  std::shared_ptr<const Outcome> outcome_, baseline_;
  std::optional<std::size_t> chosen_;  // in AddressMap::blocks
};

// A block of MemoryPicture::blocks in words: tensor, role, size, life.
std::string block_name(const Outcome& outcome, const MemoryPicture::Block& block);

}  // namespace spillway::gui
