#include "studies/ways/way_row.h"

#include <cmath>
#include <map>
#include <utility>

#include "base/number_text.h"
#include "planners/offload/drive_life.h"
#include "scenario/machine_power.h"

namespace spillway::studies {
namespace {

void add(WayTraffic& traffic, OpKind kind, Bytes bytes) {
  if (kind == OpKind::copy_device_to_host) traffic.to_host += bytes;
  if (kind == OpKind::copy_host_to_device) traffic.from_host += bytes;
  if (kind == OpKind::storage_write) traffic.to_drives += bytes;
  if (kind == OpKind::storage_read) traffic.from_drives += bytes;
}

WayTraffic traffic_of(const Trace& trace, const Result& result) {
  if (result.steps.empty()) return {};
  const StepResult& step = result.steps.back();
  std::map<std::uint16_t, WayTraffic> ranks;
  for (std::size_t op = 0; op < trace.ops.size(); ++op) {
    const Picos start = result.op_start[op];
    if (start == unknown_time || start < step.begin || start >= step.end) continue;
    add(ranks[trace.lanes[index_of(trace.ops.lane[op])].rank], trace.ops.kind[op], trace.ops.bytes[op]);
  }
  WayTraffic most;
  for (const auto& [rank, traffic] : ranks)
    if (traffic.all() > most.all()) most = traffic;
  return most;
}

}  // namespace

double WayRow::allocator_efficiency() const {
  const MemoryResult& memory = result.memory;
  if (memory.peak_reserved <= Bytes(0)) return 0;
  return static_cast<double>(memory.peak_allocated.count()) / static_cast<double>(memory.peak_reserved.count());
}

std::optional<double> WayRow::cost_per_million_tokens() const {
  if (!usd_per_hour || tokens_per_step <= 0) return std::nullopt;
  return *usd_per_hour * to_seconds(result.step_time) / 3600 / static_cast<double>(tokens_per_step) * 1e6;
}

std::string WayRow::shortage() const {
  if (!ran()) return "";
  if (result.may_fit()) return result.drives_refuse;
  const HostMemoryResult& host = result.host_memory;
  if (host.verdict() == Verdict::does_not_fit) return gib_text(host.peak - host.capacity) + " of host memory";
  if (result.memory.short_of > Bytes(0)) return gib_text(result.memory.short_of);
  for (const RankResult& rank : result.ranks)
    if (rank.verdict == Verdict::does_not_fit) return "memory of " + rank.name;
  return "memory";
}

WayRow row_of(Way way, const LoadedScenario& loaded, ScenarioRun run) {
  WayRow row;
  row.way = std::move(way);
  row.is_done = true;
  row.traffic = traffic_of(run.trace(loaded), run.result);
  row.result = std::move(run.result);
  row.result.path = {};
  row.result.op_start = {};
  row.result.op_end = {};
  row.tokens_per_step = loaded.options.tokens_per_step;
  if (!loaded.scenario.model.empty()) row.gpus = loaded.setup.gpus();
  const double years = shortest_life_years(row.result);
  if (std::isfinite(years)) row.life_years = years;
  static const PriceList prices = PriceList::bundled();
  const double usd = gpu_usd_per_hour(loaded.hardware, prices) * static_cast<double>(row.gpus);
  if (usd > 0) row.usd_per_hour = usd;
  return row;
}

}  // namespace spillway::studies
