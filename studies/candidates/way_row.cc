#include "studies/candidates/way_row.h"

#include <cmath>
#include <utility>

#include "planners/offload/drive_life.h"
#include "scenario/machine_power.h"

namespace spillway::studies {

double WayRow::allocator_efficiency() const {
  const MemoryResult& memory = result.memory;
  if (memory.peak_reserved <= Bytes(0)) return 0;
  return static_cast<double>(memory.peak_allocated.count()) / static_cast<double>(memory.peak_reserved.count());
}

std::optional<double> WayRow::cost_per_million_tokens() const {
  if (!usd_per_hour || tokens_per_step <= 0) return std::nullopt;
  return *usd_per_hour * to_seconds(result.step_time) / 3600 / static_cast<double>(tokens_per_step) * 1e6;
}

WayRow row_of(Way way, const HardwareProfile& hardware, KeptReplay replay) {
  WayRow row;
  row.way = std::move(way);
  row.is_done = true;
  row.traffic = replay.moved;
  row.result = std::move(replay.result);
  row.tokens_per_step = replay.tokens_per_step;
  row.gpus = replay.gpus;
  const double years = shortest_life_years(row.result);
  if (std::isfinite(years)) row.life_years = years;
  static const PriceList prices = PriceList::bundled();
  const double usd = gpu_usd_per_hour(hardware, prices) * static_cast<double>(row.gpus);
  if (usd > 0) row.usd_per_hour = usd;
  return row;
}

}  // namespace spillway::studies
