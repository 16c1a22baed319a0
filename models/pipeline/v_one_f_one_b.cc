// 1F1B over two chunks in a V: a block of six slots in which a backward takes two, pulled together where no device's
// peak rises (Qi et al. 2024b, Pipeline Parallelism with Controllable Memory).
#include <algorithm>
#include <array>
#include <vector>

#include "models/pipeline/plan_lane.h"
#include "models/pipeline/schedule_builders.h"

namespace spillway::models {
namespace {

constexpr std::int64_t pass_period = 6;
// In the order of their inputs. A backward is its two slots.
enum PassKind : std::size_t { forward_0, forward_1, backward_1, backward_0, second_1, second_0, kind_count };
constexpr std::int8_t idle = -1;

constexpr bool pass_runs_down(std::size_t kind) { return kind == forward_0 || kind == backward_1; }
constexpr bool is_backward(std::size_t kind) { return kind == backward_1 || kind == backward_0; }
constexpr PassKind second_of(std::size_t backward) { return backward == backward_1 ? second_1 : second_0; }

class VTable {
 public:
  VTable(std::int64_t devices, std::int64_t micro_batches) : p_(devices), m_(micro_batches) {
    cells_.assign(static_cast<std::size_t>(p_), {});
    places_.resize(static_cast<std::size_t>(p_));
    for (auto& device : places_)
      for (auto& places : device) places.assign(static_cast<std::size_t>(m_), -1);
    fill(residues());
  }

  // Slot by slot, each pass to the first earlier slot that will do.
  void pull_together() {
    const std::size_t length = cells_[0].size();
    held_.assign(cells_.size(), std::vector<std::int64_t>(length, 0));
    for (std::size_t d = 0; d < cells_.size(); ++d) {
      std::int64_t now = 0;
      for (std::size_t i = 0; i < length; ++i) {
        if (cells_[d][i] == forward_0 || cells_[d][i] == forward_1) ++now;
        if (cells_[d][i] == second_0 || cells_[d][i] == second_1) --now;
        held_[d][i] = now;
        peak_ = std::max(peak_, now);
      }
    }
    std::vector<std::array<std::size_t, kind_count>> turn(cells_.size());
    for (auto& device : turn) device.fill(0);
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(length); ++i) {
      for (std::size_t d = 0; d < cells_.size(); ++d) {
        const std::int8_t cell = cells_[d][static_cast<std::size_t>(i)];
        if (cell == idle) continue;
        const auto kind = static_cast<std::size_t>(cell);
        const std::size_t j = turn[d][kind]++;
        places_[d][kind][j] = move(d, kind, j, i);
      }
    }
  }

  void write(std::size_t d, PlanLane lane) const {
    std::array<std::int64_t, kind_count> turn{};
    for (const std::int8_t cell : cells_[d]) {
      if (cell == idle || cell == second_0 || cell == second_1) continue;
      const auto kind = static_cast<std::size_t>(cell);
      const PipelinePass pass = pass_of(turn[kind]++, kind == forward_1 || kind == backward_1 ? 1 : 0);
      if (is_backward(kind))
        lane.backward(pass);
      else
        lane.forward(pass);
    }
  }

 private:
  using Residues = std::vector<std::array<std::int64_t, kind_count>>;

  // Slots of the first micro-batch, modulo the period. Backwards go in threes with a gap of three behind them, so that
  // those of both chunks and the forwards keep out of each other's way.
  [[nodiscard]] Residues residues() const {
    Residues slots(static_cast<std::size_t>(p_));
    const auto device = [&](std::int64_t d) -> auto& { return slots[static_cast<std::size_t>(d)]; };
    std::int64_t now = 0;
    for (std::int64_t d = 0; d < p_; ++d) device(d)[forward_0] = ++now;
    for (std::int64_t d = p_ - 1; d >= 0; --d) device(d)[forward_1] = ++now;
    now += p_ % 3 == 0 ? 4 : 1;
    std::int64_t in_row = (3 - (p_ + 2) % 3) % 3;
    const auto backward = [&](std::int64_t d, PassKind kind) {
      device(d)[kind] = now;
      device(d)[second_of(kind)] = now + 1;
      now += 2;
      if (++in_row == 3) in_row = 0, now += 3;
    };
    for (std::int64_t d = 0; d < p_; ++d) backward(d, backward_1);
    for (std::int64_t d = p_ - 1; d >= 0; --d) backward(d, backward_0);
    for (auto& row : slots)
      for (std::int64_t& slot : row) slot %= pass_period;
    return slots;
  }

  void fill(const Residues& residues) {
    std::int64_t slot = pass_period;
    const auto next = [](std::int64_t from, std::int64_t residue) {
      return from + ((residue - from) % pass_period + pass_period) % pass_period;
    };
    for (const PassKind kind : {forward_0, forward_1, backward_1, backward_0}) {
      for (std::int64_t i = 0; i < p_; ++i) {
        const auto d = static_cast<std::size_t>(pass_runs_down(kind) ? i : p_ - 1 - i);
        slot = next(slot, residues[d][kind]);
        put(d, kind, slot);
        ++slot;
        if (is_backward(kind)) put(d, second_of(kind), next(slot, residues[d][second_of(kind)]));
      }
    }
    std::size_t length = 0;
    for (const auto& cells : cells_) length = std::max(length, cells.size());
    for (auto& cells : cells_) cells.resize(length + 1, idle);
  }

  void put(std::size_t d, PassKind kind, std::int64_t slot) {
    auto& cells = cells_[d];
    const auto end = static_cast<std::size_t>(slot + pass_period * (m_ - 1) + 1);
    if (cells.size() < end) cells.resize(end, idle);
    for (std::int64_t j = 0; j < m_; ++j)
      cells[static_cast<std::size_t>(slot + pass_period * j)] = static_cast<std::int8_t>(kind);
  }

  [[nodiscard]] std::int64_t inputs(std::size_t d, std::size_t kind, std::size_t j) const {
    std::int64_t latest = j > 0 ? places_[d][kind][j - 1] : -1;
    const auto wait = [&](std::size_t device, std::size_t input) {
      latest = std::max(latest, places_[device][input][j]);
    };
    if (kind == second_1 || kind == second_0) {
      wait(d, kind == second_1 ? backward_1 : backward_0);
      return latest;
    }
    const bool down = pass_runs_down(kind), is_first = down ? d == 0 : d + 1 == cells_.size();
    const std::size_t neighbour = down ? d - 1 : d + 1;
    if (!is_first) wait(neighbour, is_backward(kind) ? second_of(kind) : kind);
    if (is_first && kind == forward_1) wait(d, forward_0);
    if (is_first && kind == backward_1) wait(d, forward_1);
    if (is_first && kind == backward_0) wait(d, second_1);
    return latest;
  }

  std::int64_t move(std::size_t d, std::size_t kind, std::size_t j, std::int64_t from) {
    auto& cells = cells_[d];
    const auto taken = [&](std::int64_t slot) { return cells[static_cast<std::size_t>(slot)] != idle; };
    std::int64_t to = inputs(d, kind, j) + 1;
    const bool is_forward = kind == forward_0 || kind == forward_1;
    if (is_forward) {
      std::int64_t roomy = from;  // no slot from here on is at the peak
      while (roomy > to && held_[d][static_cast<std::size_t>(roomy - 1)] < peak_) --roomy;
      to = roomy;
    }
    while (to < from && (taken(to) || (is_backward(kind) && taken(to + 1)))) ++to;
    if (to >= from) return from;
    std::swap(cells[static_cast<std::size_t>(to)], cells[static_cast<std::size_t>(from)]);
    const std::int64_t change = is_forward ? 1 : kind == second_0 || kind == second_1 ? -1 : 0;
    for (std::int64_t i = to; i < from; ++i) held_[d][static_cast<std::size_t>(i)] += change;
    return to;
  }

  std::int64_t p_, m_, peak_ = 0;
  std::vector<std::vector<std::int8_t>> cells_;                            // by device and slot
  std::vector<std::array<std::vector<std::int64_t>, kind_count>> places_;  // once moved
  std::vector<std::vector<std::int64_t>> held_;                            // passes in memory, by slot
};

}  // namespace

PipelinePlan build_v_one_f_one_b(const PipelineRequest& request) {
  PipelinePlan plan = zigzag_plan({}, request.devices, request.micro_batches, 2);
  VTable table(request.devices, request.micro_batches);
  table.pull_together();
  for (std::size_t d = 0; d < plan.compute.size(); ++d) table.write(d, PlanLane(plan.compute[d]));
  return plan;
}

}  // namespace spillway::models
