// Schedules over two chunks in a V whose block of six slots repeats for every micro-batch (Qi et al. 2024b, Pipeline
// Parallelism with Controllable Memory). Both ends of the timetable are then pulled together: a pass moves to the
// first earlier slot that is free, meets its inputs and raises no device's peak (section "reordering" of the paper).
#include <algorithm>
#include <array>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "models/pipeline/plan_lane.h"
#include "models/pipeline/schedule_builders.h"

namespace spillway::models {
namespace {

constexpr std::int64_t period = 6;
constexpr std::size_t kinds = 4;  // F of chunk 0, F of chunk 1, B of chunk 1, B of chunk 0: the order of their inputs
constexpr std::size_t weights = 4;

using Slot = std::int64_t;
using Block = std::array<Slot, kinds>;

// Slots of one device's passes by kind; the fifth kind is W, which takes what is left over, oldest B first.
using DeviceSlots = std::array<std::vector<Slot>, kinds + 1>;

struct NextPass {
  Slot slot = 0;
  std::size_t device = 0, kind = 0, micro_batch = 0;
  friend bool operator<(const NextPass& a, const NextPass& b) {
    return std::tie(a.slot, a.device, a.kind, a.micro_batch) < std::tie(b.slot, b.device, b.kind, b.micro_batch);
  }
};

std::vector<NextPass> in_slot_order(const std::vector<DeviceSlots>& slots) {
  std::vector<NextPass> passes;
  for (std::size_t d = 0; d < slots.size(); ++d)
    for (std::size_t k = 0; k < slots[d].size(); ++k)
      for (std::size_t j = 0; j < slots[d][k].size(); ++j) passes.push_back({slots[d][k][j], d, k, j});
  std::sort(passes.begin(), passes.end());
  return passes;
}

// Each W into the first slot after its B that holds nothing else.
void place_weights(DeviceSlots& device) {
  device[weights].clear();
  std::vector<std::pair<Slot, bool>> busy;  // slot, is it a B
  for (std::size_t k = 0; k < kinds; ++k)
    for (const Slot slot : device[k]) busy.emplace_back(slot, k >= 2);
  std::sort(busy.begin(), busy.end());
  std::int64_t pending = 0;
  Slot next = 0;
  for (const auto& [slot, is_backward] : busy) {
    for (; next < slot && pending > 0; ++next, --pending) device[weights].push_back(next);
    next = slot + 1;
    if (is_backward) ++pending;
  }
  for (; pending > 0; --pending) device[weights].push_back(next++);
}

// Most passes whose W is still to come.
std::int64_t peak_of(const DeviceSlots& device, std::vector<std::int8_t>& changes) {
  changes.clear();
  const auto at = [&](Slot slot) -> std::int8_t& {
    const auto index = static_cast<std::size_t>(slot);
    if (index >= changes.size()) changes.resize(index + 1, 0);
    return changes[index];
  };
  for (std::size_t k = 0; k < kinds; ++k)
    for (const Slot slot : device[k]) at(slot) = k < 2 ? 1 : 2;
  for (const Slot slot : device[weights]) at(slot) = -1;
  // Without W in the table, each idle slot does one.
  const bool fills_gaps = device[weights].empty();
  std::int64_t now = 0, peak = 0, pending = 0;
  for (const std::int8_t change : changes) {
    if (change == 1) now += 1;
    if (change == -1) now -= 1;
    if (change == 2) ++pending;
    if (change == 0 && fills_gaps && pending > 0) --now, --pending;
    peak = std::max(peak, now);
  }
  return peak;
}

class BlockTimetable {
 public:
  BlockTimetable(const std::vector<Block>& blocks, std::int64_t micro_batches) : slots_(blocks.size()) {
    for (std::size_t d = 0; d < blocks.size(); ++d)
      for (std::size_t k = 0; k < kinds; ++k)
        for (std::int64_t j = 0; j < micro_batches; ++j) slots_[d][k].push_back(blocks[d][k] + period * j);
  }

  // `with_weights`: W are passes that move too, and the warm-up moves as well as the end.
  void pull_together(bool with_weights) {
    for (DeviceSlots& device : slots_) {
      device[weights].clear();
      if (with_weights) place_weights(device);
    }
    std::int64_t peak = 0;
    for (const DeviceSlots& device : slots_) peak = std::max(peak, peak_of(device, scratch_));
    occupied_.assign(slots_.size(), {});
    enum class Part { warm_up, steady, end } part = Part::warm_up;
    const std::size_t last = slots_[0][0].size() - 1;
    for (const NextPass& pass : in_slot_order(slots_)) {
      if (part == Part::warm_up && pass.kind == 3 && pass.device == 0) part = Part::steady;
      const bool moves = part == Part::end || (part == Part::warm_up && with_weights);
      if (part == Part::steady && pass.kind == 0 && pass.micro_batch == last) part = Part::end;
      if (moves) move(pass, peak);
      occupy(pass.device, slots_[pass.device][pass.kind][pass.micro_batch]);
    }
    if (!with_weights)
      for (DeviceSlots& device : slots_) place_weights(device);
    squeeze();
    if (!with_weights)
      for (DeviceSlots& device : slots_) place_weights(device);
  }

  [[nodiscard]] const std::vector<DeviceSlots>& slots() const { return slots_; }

 private:
  // The slot of the last of the pass's inputs, or -1.
  [[nodiscard]] Slot inputs(const NextPass& pass) const {
    const auto& [slot, d, k, j] = pass;
    Slot latest = -1;
    const bool down = k == 0 || k == 2;
    if (k < kinds && down && d > 0) latest = std::max(latest, slots_[d - 1][k][j]);
    if (k < kinds && !down && d + 1 < slots_.size()) latest = std::max(latest, slots_[d + 1][k][j]);
    if (k > 0 && k < kinds) latest = std::max(latest, slots_[d][k - 1][j]);
    if (k == weights) latest = std::max(latest, backward_slot(d, j));
    if (j > 0) latest = std::max(latest, slots_[d][k][j - 1]);
    return latest;
  }
  // Of the n-th backward of the device, whatever its chunk.
  [[nodiscard]] Slot backward_slot(std::size_t d, std::size_t n) const {
    const auto &a = slots_[d][2], &b = slots_[d][3];
    std::size_t i = 0, j = 0;
    for (;;) {
      const bool from_a = j >= b.size() || (i < a.size() && a[i] <= b[j]);
      const Slot slot = from_a ? a[i++] : b[j++];
      if (i + j == n + 1) return slot;
    }
  }

  void move(const NextPass& pass, std::int64_t peak) {
    DeviceSlots& device = slots_[pass.device];
    Slot& slot = device[pass.kind][pass.micro_batch];
    const Slot before = slot;
    for (Slot earlier = inputs(pass) + 1; earlier < before; ++earlier) {
      if (is_occupied(pass.device, earlier)) continue;
      slot = earlier;
      if (peak_of(device, scratch_) <= peak) return;
    }
    slot = before;
  }

  // Every pass as early as its inputs and its device's order allow, one slot each; W are passes here.
  void squeeze() {
    const std::vector<NextPass> passes = in_slot_order(slots_);
    std::vector<Slot> free_at(slots_.size(), 0);
    for (const NextPass& pass : passes) {
      Slot start = free_at[pass.device];
      if (pass.kind != weights) start = std::max(start, inputs(pass) + 1);
      slots_[pass.device][pass.kind][pass.micro_batch] = start;
      free_at[pass.device] = start + 1;
    }
  }

  void occupy(std::size_t device, Slot slot) {
    auto& taken = occupied_[device];
    if (static_cast<std::size_t>(slot) >= taken.size()) taken.resize(static_cast<std::size_t>(slot) + 1, false);
    taken[static_cast<std::size_t>(slot)] = true;
  }
  [[nodiscard]] bool is_occupied(std::size_t device, Slot slot) const {
    const auto& taken = occupied_[device];
    return static_cast<std::size_t>(slot) < taken.size() && taken[static_cast<std::size_t>(slot)];
  }

  std::vector<DeviceSlots> slots_;
  std::vector<std::vector<bool>> occupied_;
  std::vector<std::int8_t> scratch_;
};

PipelinePlan plan_of_blocks(const std::vector<Block>& blocks, std::int64_t micro_batches, const char* name) {
  BlockTimetable table(blocks, micro_batches);
  table.pull_together(true);
  table.pull_together(false);
  PipelinePlan plan = zigzag_plan(name, static_cast<std::int64_t>(blocks.size()), micro_batches, 2);
  for (std::size_t d = 0; d < blocks.size(); ++d) {
    PlanLane lane(plan.compute[d]);
    std::vector<PipelinePass> backwards;
    std::size_t next_weights = 0;
    for (const NextPass& pass : in_slot_order({table.slots()[d]})) {
      const auto j = static_cast<std::int64_t>(pass.micro_batch);
      if (pass.kind < 2) lane.forward(pass_of(j, static_cast<std::int64_t>(pass.kind)));
      if (pass.kind == 2 || pass.kind == 3) {
        backwards.push_back(pass_of(j, pass.kind == 2 ? 1 : 0));
        lane.input_gradient(backwards.back());
      }
      if (pass.kind == weights) lane.weight_gradient(backwards[next_weights++]);
    }
  }
  return plan;
}

// Slots between neighbouring devices for each kind, and what each kind waits beyond its input.
struct BlockShape {
  std::array<Slot, kinds> step{}, wait{};
};

std::vector<Block> blocks_of(const BlockShape& shape, std::int64_t p) {
  std::vector<Block> blocks(static_cast<std::size_t>(p));
  Slot begin = 0;
  for (std::size_t k = 0; k < kinds; ++k) {
    begin += shape.wait[k];
    for (std::int64_t i = 0; i < p; ++i)
      blocks[static_cast<std::size_t>(k % 2 == 0 ? i : p - 1 - i)][k] = begin + shape.step[k] * i;
    begin += shape.step[k] * (p - 1) + 1;
  }
  return blocks;
}

// No two passes of a device in one slot, whatever their micro-batches.
bool collides(const std::vector<Block>& blocks) {
  for (const Block& block : blocks) {
    unsigned used = 0;
    for (const Slot slot : block) {
      const unsigned bit = 1u << (slot % period);
      if ((used & bit) != 0) return true;
      used |= bit;
    }
  }
  return false;
}

// Chunks of activations held in steady state by the device that holds most, a W in each slot that is left over.
std::int64_t steady_peak(const std::vector<Block>& blocks) {
  std::vector<std::int8_t> scratch;
  std::int64_t peak = 0;
  for (const Block& block : blocks) {
    const std::int64_t micro_batches = (block[3] - block[0]) / period + 3;
    DeviceSlots device;
    for (std::size_t k = 0; k < kinds; ++k)
      for (std::int64_t j = 0; j < micro_batches; ++j) device[k].push_back(block[k] + period * j);
    place_weights(device);
    peak = std::max(peak, peak_of(device, scratch));
  }
  return peak;
}

}  // namespace

// Of the shapes with steps 1 to 4 that collide nowhere: those that fill the limit most, for long lives of activations
// are what short waits are bought with; of those the shortest.
std::vector<PipelinePlan> v_blocks_within(const PipelineRequest& request, std::int64_t limit, std::size_t most) {
  struct Found {
    std::int64_t peak = 0;
    Slot length = 0;
    std::vector<Block> blocks;
  };
  std::vector<Found> found;
  for (int steps = 0; steps < 256; ++steps) {
    BlockShape shape;
    for (std::size_t k = 0; k < kinds; ++k) shape.step[k] = 1 + (steps >> (2 * k)) % 4;
    bool is_free = false;
    for (int waits = 0; waits < 216 && !is_free; ++waits) {
      shape.wait = {0, waits % 6, waits / 6 % 6, waits / 36};
      std::vector<Block> blocks = blocks_of(shape, request.devices);
      is_free = !collides(blocks);
      if (!is_free) continue;
      const std::int64_t peak = steady_peak(blocks);
      if (peak <= limit) found.push_back({peak, blocks[0][3], std::move(blocks)});
    }
  }
  std::stable_sort(found.begin(), found.end(), [](const Found& a, const Found& b) {
    return std::pair(-a.peak, a.length) < std::pair(-b.peak, b.length);
  });
  std::vector<PipelinePlan> plans;
  for (std::size_t i = 0; i < found.size() && i < most; ++i)
    plans.push_back(plan_of_blocks(found[i].blocks, request.micro_batches, "block in a V"));
  return plans;
}

PipelinePlan build_v_block(const PipelineRequest& request, VMemory memory) {
  const std::int64_t p = request.devices;
  std::vector<Block> blocks;
  for (std::int64_t d = 0; d < p; ++d) {
    if (memory == VMemory::least) {
      const Slot extra = p % 3 == 0 ? 2 : 0;
      blocks.push_back({d, 2 * p - d - 1, 2 * p + extra + d, 4 * p + extra - d - 1});
    } else {
      const Slot extra = p % 2 == 0 ? 3 : 0;
      blocks.push_back({2 * d, 3 * p - d - 2, 3 * p + extra + 2 * d - 1, 6 * p + extra - d - 2});
    }
  }
  return plan_of_blocks(blocks, request.micro_batches, "block in a V");
}

}  // namespace spillway::models
