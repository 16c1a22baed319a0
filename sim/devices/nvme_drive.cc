#include "sim/devices/nvme_drive.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/input_error.h"

namespace spillway::sim {
namespace {

constexpr double seconds_per_year = 365.0 * 86400.0;

Rate scaled_rate(Rate rate, double factor) { return rate_from_bytes_per_second(to_bytes_per_second(rate) * factor); }

double efficiency(const Maybe<CurveFamily>& table, std::int64_t depth, Bytes extent) {
  if (!table) return 1;
  return table->value.at(static_cast<double>(depth), static_cast<double>(extent.count())).value;
}

Rate window(std::int64_t depth, Bytes extent, Picos latency) {
  if (latency <= Picos::zero()) return Rate::max();
  const double in_flight = static_cast<double>(depth) * static_cast<double>(extent.count());
  const double allowed = in_flight / to_seconds(latency);
  return allowed > 1e15 ? Rate::max() : rate_from_bytes_per_second(allowed);
}

Bytes fraction_of(Bytes bytes, double fraction) {
  return Bytes(std::llround(static_cast<double>(bytes.count()) * fraction));
}

// A stage of `bytes` at `fold` behind the cache of the fast rate; none when it is no faster than the steady one.
void add_folding(NvmeModel::Cache& cache, Rate fold, Bytes bytes) {
  if (fold <= cache.drain || bytes <= Bytes::zero()) return;
  const double filling = 1 - to_bytes_per_second(cache.drain) / to_bytes_per_second(fold);
  cache.fold_level = cache.size;
  cache.fold = fold;
  cache.size += std::max(Bytes(1), fraction_of(bytes, filling));
}

}  // namespace

NvmeModel nvme_model(const NvmeProfile& drive, Bytes extent, std::int64_t queue_depth) {
  SPILLWAY_ASSERT(extent > Bytes::zero() && queue_depth >= 0);
  if (!drive.read_bandwidth || !drive.write_bandwidth) {
    throw InputError("", "", "drive '" + drive.name + "' states no sequential read and write rates",
                     "choose another drive, or set drives.0.drive.read_bandwidth and write_bandwidth");
  }
  const std::int64_t depth = queue_depth > 0 ? queue_depth : drive.queue_depth ? drive.queue_depth->value : 32;
  NvmeModel model;
  model.read = scaled_rate(drive.read_bandwidth->value, efficiency(drive.read_efficiency, depth, extent));
  const double write_share = efficiency(drive.write_efficiency, depth, extent);
  model.write = scaled_rate(drive.write_bandwidth->value, write_share);
  model.steady_write = model.write;
  model.read_latency = drive.read_latency ? drive.read_latency->value : Picos::zero();
  model.write_latency = drive.write_latency ? drive.write_latency->value : Picos::zero();
  model.read_window = window(depth, extent, model.read_latency);
  model.write_window = window(depth, extent, model.write_latency);
  if (drive.read_write_interference) model.interference = drive.read_write_interference->value;
  if (drive.steady_write_bandwidth) {
    model.steady_write = std::min(model.write, scaled_rate(drive.steady_write_bandwidth->value, write_share));
  }
  if (drive.write_cache && model.steady_write < model.write) {
    const double filling = 1 - to_bytes_per_second(model.steady_write) / to_bytes_per_second(model.write);
    const Bytes size = std::max(Bytes(2), fraction_of(drive.write_cache->value, filling));
    model.cache = NvmeModel::Cache{size, size / 2, model.steady_write, Bytes(0), Rate()};
    if (drive.folding_write_bandwidth && drive.folding_bytes)
      add_folding(*model.cache, std::min(model.write, scaled_rate(drive.folding_write_bandwidth->value, write_share)),
                  drive.folding_bytes->value);
  } else if (!drive.write_cache) {
    model.write = model.steady_write;
  }
  return model;
}

double life_years(Bytes endurance, Bytes bytes_per_step, Picos step) {
  SPILLWAY_ASSERT(endurance >= Bytes::zero() && step > Picos::zero());
  if (bytes_per_step <= Bytes::zero()) return std::numeric_limits<double>::infinity();
  const double steps = static_cast<double>(endurance.count()) / static_cast<double>(bytes_per_step.count());
  return steps * to_seconds(step) / seconds_per_year;
}

}  // namespace spillway::sim
