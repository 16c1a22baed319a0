// Schedules that repeat one block of slots per micro-batch (or group of them): every pass has a slot of a timetable in
// which nothing collides, and a device runs its passes in the order of their slots.
#include <algorithm>
#include <numeric>
#include <vector>

#include "models/pipeline/plan_lane.h"
#include "models/pipeline/schedule_builders.h"

namespace spillway::models {
namespace {

struct SlottedOp {
  std::int64_t slot = 0;
  PipelineOp op;
};

// A recomputing chunk's forward goes once more right before its backward, in the same gap.
void write_lane(std::vector<SlottedOp>& slots, std::int64_t recomputed_chunks, std::vector<PipelineOp>& lane) {
  std::sort(slots.begin(), slots.end(), [](const SlottedOp& a, const SlottedOp& b) { return a.slot < b.slot; });
  for (const SlottedOp& slotted : slots) {
    const PipelineOpKind kind = slotted.op.kind;
    if ((kind == PipelineOpKind::backward || kind == PipelineOpKind::input_gradient) &&
        slotted.op.pass.chunk < recomputed_chunks)
      PlanLane(lane).add(PipelineOpKind::recompute, slotted.op.pass);
    lane.push_back(slotted.op);
  }
}

// The first v numbers from 0 on, each at least `step` above the one before, no two equal modulo v.
std::vector<std::int64_t> spaced_tiles(std::int64_t v, std::int64_t step) {
  std::vector<std::int64_t> tiles = {0};
  std::vector<bool> used(static_cast<std::size_t>(v), false);
  used[0] = true;
  while (static_cast<std::int64_t>(tiles.size()) < v) {
    std::int64_t next = tiles.back() + step;
    while (used[static_cast<std::size_t>(next % v)]) ++next;
    used[static_cast<std::size_t>(next % v)] = true;
    tiles.push_back(next);
  }
  return tiles;
}

// Devices a group must span so that its last pass comes round before the first one's turn: half of them, more where the
// forwards or the backwards alone take longer.
std::int64_t least_group(const PipelineRequest& request) {
  const std::int64_t p = request.devices, v = request.chunks;
  std::int64_t group = (p + 1) / 2;
  if (request.times.positions.empty()) return group;
  Ticks longest = 0, forwards = 0, backwards = 0;
  for (std::int64_t d = 0; d < p; ++d) {
    Ticks forward = 0, input = 0, weight = 0;
    for (std::int64_t c = 0; c < v; ++c) {
      const PassTimes& times = request.times.at(static_cast<std::size_t>(c * p + d));
      forward += times.forward;
      input += times.input_gradient;
      weight += times.weight_gradient;
    }
    longest = std::max(longest, forward + input + weight);
    forwards += forward;
    backwards += input;
  }
  while (group < p && longest * group < std::max(forwards, backwards)) ++group;
  return group;
}

}  // namespace

// One micro-batch every 3 v slots, a forward one slot, a backward two. On device d forwards fall on residue d modulo 3
// and backwards on the two after it, and tiles keep those of different chunks apart.
PipelinePlan build_chronos(const PipelineRequest& request) {
  const std::int64_t p = request.devices, m = request.micro_batches, v = request.chunks;
  PipelinePlan plan = looped_plan({}, p, m, v);
  const std::vector<std::int64_t> forward_tiles = spaced_tiles(v, (p + 2) / 3);
  const std::vector<std::int64_t> backward_tiles = spaced_tiles(v, (2 * p + 2) / 3);
  for (std::int64_t d = 0; d < p; ++d) {
    std::vector<SlottedOp> slots;
    for (std::int64_t j = 0; j < m; ++j) {
      for (std::int64_t c = 0; c < v; ++c) {
        const std::int64_t start = 3 * v * j;
        const PipelinePass pass = pass_of(j, c);
        const std::int64_t backward = start + 3 * forward_tiles[static_cast<std::size_t>(v - 1)] + p +
                                      3 * backward_tiles[static_cast<std::size_t>(v - 1 - c)] + 2 * (p - 1 - d);
        slots.push_back({start + 3 * forward_tiles[static_cast<std::size_t>(c)] + d, {.pass = pass}});
        if (request.split_backward) {
          slots.push_back({backward, {.pass = pass, .kind = PipelineOpKind::input_gradient}});
          slots.push_back({backward + 1, {.pass = pass, .kind = PipelineOpKind::weight_gradient}});
        } else {
          slots.push_back({backward, {.pass = pass, .kind = PipelineOpKind::backward}});
        }
      }
    }
    write_lane(slots, request.recomputed_chunks, plan.compute[static_cast<std::size_t>(d)]);
  }
  return plan;
}

// Groups of g micro-batches go through one chunk after another; a chunk begins as many groups later as the pipeline
// needs to come round. W follows its B.
PipelinePlan build_grouped(const PipelineRequest& request, std::int64_t group) {
  const std::int64_t p = request.devices, m = request.micro_batches, v = request.chunks;
  const std::int64_t least = least_group(request), g = group == 0 ? (p + 1) / 2 : std::min(group, p);
  PipelinePlan plan = looped_plan({}, p, m, v);
  const std::int64_t groups_apart = (least + g - 1) / g, period = 3 * g * v;
  const std::int64_t shifted_after = v / std::gcd(v, groups_apart);
  const auto tile = [&](std::int64_t turn) { return 3 * g * (groups_apart * turn + turn / shifted_after); };
  for (std::int64_t d = 0; d < p; ++d) {
    const std::int64_t first_backward = tile(v - 1) + d + 3 * (p - 1 - d) + 1;
    std::vector<SlottedOp> slots;
    for (std::int64_t j = 0; j < m; ++j) {
      const std::int64_t start = j / g * period + 3 * (j % g);
      for (std::int64_t c = 0; c < v; ++c) {
        const PipelinePass pass = pass_of(j, c);
        const std::int64_t backward = start + first_backward + tile(v - 1 - c);
        slots.push_back({start + tile(c) + d, {.pass = pass}});
        slots.push_back({backward, {.pass = pass, .kind = PipelineOpKind::input_gradient}});
        slots.push_back({backward + 1, {.pass = pass, .kind = PipelineOpKind::weight_gradient}});
      }
    }
    write_lane(slots, request.recomputed_chunks, plan.compute[static_cast<std::size_t>(d)]);
  }
  return plan;
}

}  // namespace spillway::models
