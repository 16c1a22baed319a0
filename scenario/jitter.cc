#include "scenario/jitter.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/input_error.h"
#include "base/splitmix64.h"

namespace spillway::scenario {
namespace {

double near_normal(std::uint64_t seed, std::uint64_t place) {
  std::uint64_t state = splitmix64(seed ^ splitmix64(place));
  std::uint64_t sum = 0;  // of twelve numbers of 32 bits
  for (int i = 0; i < 6; ++i) {
    state = splitmix64(state);
    sum += (state & 0xffffffffU) + (state >> 32U);
  }
  return static_cast<double>(sum) / 4294967296.0 - 6;
}

}  // namespace

void apply_jitter(Trace& trace, const Jitter& jitter) {
  std::vector<double> factors(trace.rank_count == 0 ? 1 : trace.rank_count, 1.0);
  for (const auto& slow : jitter.slow_stages) {
    if (slow.first < 0 || slow.first >= static_cast<std::int64_t>(factors.size()))
      throw InputError("", "slow_stages",
                       fmt::format("there is no stage {}, the trace has {}", slow.first, factors.size()),
                       "count stages from 0");
    factors[static_cast<std::size_t>(slow.first)] *= slow.second;
  }
  for (std::size_t i = 0; i < trace.ops.size(); ++i) {
    if (trace.ops.kind[i] != OpKind::kernel || trace.ops.duration[i] == unknown_time) continue;
    const Lane& lane = trace.lanes[index_of(trace.ops.lane[i])];
    if (lane.kind != LaneKind::stream) continue;
    double factor = lane.rank < factors.size() ? factors[lane.rank] : 1.0;
    if (jitter.sigma > 0) factor *= std::max(0.05, 1 + jitter.sigma * near_normal(jitter.seed, i));
    const double time = std::round(static_cast<double>(trace.ops.duration[i].count()) * factor);
    trace.ops.duration[i] = Picos(static_cast<std::int64_t>(time));
  }
}

std::string describe(const Jitter& jitter) {
  std::string text;
  if (jitter.sigma > 0) text = fmt::format("kernels vary by {:g} % (seed {})", jitter.sigma * 100, jitter.seed);
  for (const auto& slow : jitter.slow_stages)
    text += fmt::format("{}stage {} x{:g}", text.empty() ? "" : "; ", slow.first, slow.second);
  return text;
}

}  // namespace spillway::scenario
