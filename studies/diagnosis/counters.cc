#include "studies/diagnosis/counters.h"

#include <algorithm>
#include <array>

#include "base/stop.h"
#include "sim/replay/gpu_busy.h"

namespace spillway::studies {
namespace {

enum Place : std::size_t { busy, to_gpu, from_gpu, queue, place_count };

struct Change {
  std::int64_t at;
  double by;
};

// The narrowest that anything moved through in that direction; 0: nothing did.
double slot_rate(const Result& result, std::string_view ending) {
  double rate = 0;
  for (const LinkResult& link : result.links) {
    if (!link.name.ends_with(ending) || link.bytes <= Bytes(0)) continue;
    const double one = to_bytes_per_second(link.capacity);
    rate = rate > 0 ? std::min(rate, one) : one;
  }
  return rate;
}

}  // namespace

double Counter::mean(std::int64_t begin, std::int64_t end) const {
  double sum = 0;
  for (std::size_t i = 0; i < at.size(); ++i) {
    const std::int64_t from = std::max(at[i], begin), until = std::min(i + 1 < at.size() ? at[i + 1] : end, end);
    if (until > from) sum += value[i] * static_cast<double>(until - from);
  }
  return sum / static_cast<double>(end - begin);
}

std::vector<Counter> counters_of(const Trace& trace, const Result& result, std::uint16_t rank) {
  std::array<std::vector<Change>, place_count> changes;
  const std::size_t count = std::min({trace.ops.size(), result.op_start.size(), result.op_end.size()});
  for (std::size_t i = 0; i < count; ++i) {
    check_stop();
    const Picos start = result.op_start[i], end = result.op_end[i];
    const OpKind kind = trace.ops.kind[i];
    if (start == unknown_time || end == unknown_time || end <= start || is_host_call(kind)) continue;
    const Lane& lane = trace.lanes[index_of(trace.ops.lane[i])];
    if (lane.rank != rank) continue;
    const auto add = [&](Place place, double by) {
      changes[place].push_back({start.count(), by});
      changes[place].push_back({end.count(), -by});
    };
    if (sim::keeps_gpu_busy(kind)) add(busy, 1);
    if (is_storage(kind)) add(queue, 1);
    const double rate = static_cast<double>(trace.ops.bytes[i].count()) / to_seconds(end - start);
    if (kind == OpKind::copy_host_to_device || kind == OpKind::storage_read) add(to_gpu, rate);
    if (kind == OpKind::copy_device_to_host || kind == OpKind::storage_write) add(from_gpu, rate);
  }
  std::vector<Counter> found;
  const std::array<Counter, place_count> kinds = {
      {{"GPU busy", CounterUnit::share, 1, {}, {}},
       {"PCIe to GPU", CounterUnit::bytes_per_second, slot_rate(result, " down"), {}, {}},
       {"PCIe from GPU", CounterUnit::bytes_per_second, slot_rate(result, " up"), {}, {}},
       {"Drive queue", CounterUnit::transfers, 0, {}, {}}}};
  for (std::size_t place = 0; place < place_count; ++place) {
    if (changes[place].empty()) continue;
    Counter& counter = found.emplace_back(kinds[place]);
    std::stable_sort(changes[place].begin(), changes[place].end(),
                     [](const Change& a, const Change& b) { return a.at < b.at; });
    double sum = 0;
    int under_way = 0;
    for (const Change& change : changes[place]) {
      under_way += change.by > 0 ? 1 : -1;
      sum = under_way == 0 ? 0 : sum + change.by;  // what rounding left goes when nothing is under way
      const double shown = counter.unit == CounterUnit::share ? std::min(1.0, sum) : std::max(0.0, sum);
      if (!counter.at.empty() && counter.at.back() == change.at)
        counter.value.back() = shown;
      else if (counter.value.empty() || counter.value.back() != shown) {
        counter.at.push_back(change.at);
        counter.value.push_back(shown);
      }
    }
  }
  return found;
}

}  // namespace spillway::studies
