#include "traces/host_order.h"

#include <algorithm>

namespace spillway::traces {

std::vector<OpId> host_order(const Trace& trace) {
  const Ops& ops = trace.ops;
  std::vector<std::uint32_t> first_work(ops.size() + 1, 0), issued;
  bool timed = true;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (ops.launched_by[i] != OpId::none) {
      ++first_work[index_of(ops.launched_by[i]) + 1];
      continue;
    }
    issued.push_back(static_cast<std::uint32_t>(i));
    timed = timed && ops.start[i] != unknown_time;
  }
  for (std::size_t i = 0; i < ops.size(); ++i) first_work[i + 1] += first_work[i];
  std::vector<std::uint32_t> works(first_work.back()), next(first_work.begin(), first_work.end() - 1);
  for (std::size_t i = 0; i < ops.size(); ++i)
    if (ops.launched_by[i] != OpId::none) works[next[index_of(ops.launched_by[i])]++] = static_cast<std::uint32_t>(i);
  if (timed)
    std::stable_sort(issued.begin(), issued.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return ops.start[a] < ops.start[b]; });
  std::vector<OpId> order;
  order.reserve(ops.size());
  for (const std::uint32_t i : issued) {
    order.push_back(OpId(i));
    for (std::uint32_t w = first_work[i]; w < first_work[i + 1]; ++w) order.push_back(OpId(works[w]));
  }
  return order;
}

}  // namespace spillway::traces
