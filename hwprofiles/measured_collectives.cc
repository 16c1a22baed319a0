#include "hwprofiles/measured_collectives.h"

#include <algorithm>

#include "base/input_error.h"

namespace spillway::hwprofiles {
namespace {

// Bytes a second of what a large collective's ranks pass on, or its switches save them.
double large_rate(const NetworkProfile& network, NetworkCollective kind) {
  const bool adds = kind == NetworkCollective::all_reduce && network.switch_reduction;
  return to_bytes_per_second(network.bandwidth.value) * network.efficiency.value *
         (adds ? network.switch_reduction->value : 1);
}

// x over y is a message's time but for a factor of the group's; so of the smallest message's is what a largest rate
// leaves of it.
Curve retimed(const Curve& curve, double fixed_factor, double rate_factor) {
  double best = 0;
  for (const CurvePoint& point : curve.points()) best = std::max(best, point.y);
  std::vector<CurvePoint> points(curve.points().begin(), curve.points().end());
  if (best <= 0) return curve;
  const auto beyond_rate = [best](const CurvePoint& point) { return point.x / point.y - point.x / best; };
  const double fixed = points.front().y > 0 ? beyond_rate(points.front()) : 0;
  for (CurvePoint& point : points) {
    if (point.y <= 0) continue;
    const double fixed_here = std::min(fixed, beyond_rate(point)), time = point.x / point.y;
    point.y = point.x / (fixed_here * fixed_factor + (time - fixed_here) * rate_factor);
  }
  return {std::move(points), curve.scale()};
}

}  // namespace

void retime_collectives(NetworkProfile& network, const NetworkProfile& before, const std::string& why) {
  const double old_latency = to_seconds(before.latency.value), latency = to_seconds(network.latency.value);
  if (!network.collectives.empty() && old_latency <= 0 && latency > 0)
    throw InputError("", "latency", "its measured collectives can't be scaled from a latency of 0",
                     "scale them themselves: collectives.0.bus_bandwidth=x0.5");
  const double fixed_factor = old_latency > 0 ? latency / old_latency : 1;
  for (CollectiveCurve& table : network.collectives) {
    const double rate_factor = large_rate(before, table.kind) / large_rate(network, table.kind);
    if (fixed_factor == 1 && rate_factor == 1) continue;
    std::vector<CurveFamily::Member> members(table.bus_bandwidth.members().begin(),
                                             table.bus_bandwidth.members().end());
    for (CurveFamily::Member& member : members) member.curve = retimed(member.curve, fixed_factor, rate_factor);
    table.bus_bandwidth = CurveFamily(std::move(members));
    table.origin = {OriginKind::assumed, why + ": " + table.origin.source, ""};
  }
}

}  // namespace spillway::hwprofiles
