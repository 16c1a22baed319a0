#include "sim/replay/transfer_lane.h"

#include <algorithm>
#include <string>

#include "base/input_error.h"

namespace spillway::sim {
namespace {

bool is_marked(const Trace& trace, std::size_t op) {
  return (trace.ops.flags[op] & static_cast<std::uint8_t>(OpFlag::by_bytes)) != 0;
}

[[noreturn]] void refuse(const Trace& trace, std::size_t op, const std::string& cause) {
  throw InputError(trace.provenance.empty() ? "" : trace.provenance.front().file, "op " + std::to_string(op),
                   "'" + std::string(trace.strings.text(trace.ops.name[op])) + "' " + cause,
                   "give every direction of transfers timed by their bytes its own lane");
}

TransferLane lane_of(const Trace& trace, std::size_t op) {
  const OpKind kind = trace.ops.kind[op];
  const bool inbound = kind == OpKind::copy_host_to_device || kind == OpKind::storage_read;
  if (!inbound && kind != OpKind::copy_device_to_host && kind != OpKind::storage_write)
    refuse(trace, op, "is timed by its bytes, but moves none between memories");
  const Lane& lane = trace.lanes[index_of(trace.ops.lane[op])];
  TransferLane found{.lane = trace.ops.lane[op], .rank = lane.rank, .device = lane.device};
  found.tier = is_storage(kind) ? Tier::drive : Tier::host;
  found.inbound = inbound;
  found.at_device = lane.device >= 0;
  found.route = DriveRoute::bounce;
  return found;
}

}  // namespace

std::vector<TransferLane> transfer_lanes(const Trace& trace) {
  std::vector<std::size_t> first(trace.lanes.size(), trace.ops.size());
  for (std::size_t i = 0; i < trace.ops.size(); ++i)
    if (is_marked(trace, i)) first[index_of(trace.ops.lane[i])] = std::min(first[index_of(trace.ops.lane[i])], i);
  std::vector<TransferLane> lanes;
  for (const std::size_t op : first)
    if (op < trace.ops.size()) lanes.push_back(lane_of(trace, op));
  if (lanes.empty()) return lanes;
  for (std::size_t i = 0; i < trace.ops.size(); ++i) {
    const std::size_t of_lane = first[index_of(trace.ops.lane[i])];
    if (of_lane < trace.ops.size() && (trace.ops.kind[i] != trace.ops.kind[of_lane] || !is_marked(trace, i)))
      refuse(trace, i, "runs on a lane of transfers timed by their bytes, and is none like them");
  }
  return lanes;
}

}  // namespace spillway::sim
