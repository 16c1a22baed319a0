#include "sim/replay/planned_lives.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace spillway::sim {
namespace {

constexpr std::uint64_t address_step = 512;

}  // namespace

PlannedLives::PlannedLives(const Trace& trace, std::span<const OpId> new_id) : trace_(trace), new_id_(new_id) {
  const auto last = std::max_element(trace.tensors.storage.begin(), trace.tensors.storage.end());
  allocation_.resize(last == trace.tensors.storage.end() ? 0 : *last + std::size_t{1}, nullptr);
  life_index_.resize(allocation_.size(), unchanged);
  for (const MemoryEvent& event : trace.memory_events) {
    has_completions_ |= event.action == MemoryAction::free_completed;
    next_address_ = std::max(next_address_, event.address.count() + static_cast<std::uint64_t>(event.bytes.count()));
    if (event.tensor == TensorId::none || event.action != MemoryAction::allocate) continue;
    const MemoryEvent*& allocation = allocation_[trace.tensors.storage[index_of(event.tensor)]];
    if (allocation == nullptr) allocation = &event;
  }
  next_address_ = (next_address_ / address_step + 1) * address_step;
}

const MemoryEvent* PlannedLives::allocation(std::uint32_t storage) const { return allocation_[storage]; }

PlannedLives::Life& PlannedLives::life_of(std::uint32_t storage) {
  std::uint32_t& index = life_index_[storage];
  if (index == unchanged) {
    index = static_cast<std::uint32_t>(lives_.size());
    lives_.emplace_back();
  }
  return lives_[index];
}

PlannedLives::Life* PlannedLives::known_life(std::uint32_t storage) {
  return life_index_[storage] == unchanged ? nullptr : &lives_[life_index_[storage]];
}

void PlannedLives::place(std::uint32_t storage, std::size_t column, int rank, Change change, MemoryAction action,
                         OpId anchor, OpId gate) {
  MemoryEvent event = *allocation_[storage];
  event.action = action;
  event.anchor = anchor;
  event.time = unknown_time;
  event.total_allocated = event.total_reserved = Bytes(-1);
  placed_.push_back({column, rank, change, storage, gate, event});
}

void PlannedLives::give_back(std::uint32_t storage, std::size_t column, OpId anchor, OpId gate) {
  life_of(storage);
  // The program drops its handle before it allocates for the next op; what lies beside the column goes no sooner.
  const OpId allocated = allocation_[storage]->anchor;
  const bool is_older = allocated == OpId::none || index_of(allocated) < column;
  place(storage, column, is_older ? 1 : 3, Change::give_back, MemoryAction::free_requested, anchor, gate);
}

void PlannedLives::take(std::uint32_t storage, std::size_t column, OpId anchor) {
  life_of(storage);
  place(storage, column, 0, Change::take, MemoryAction::allocate, anchor, OpId::none);
}

void PlannedLives::hold(std::uint32_t storage, std::size_t column, OpId until) {
  life_of(storage);
  place(storage, column, 2, Change::hold, MemoryAction::free_requested, OpId::none, until);
}

void PlannedLives::temporary(std::uint32_t storage, std::size_t column, OpId taken_at, OpId given_back_at) {
  place(storage, column, 0, Change::whole, MemoryAction::allocate, taken_at, OpId::none);
  const Addr address = fresh_address(placed_.back().event.bytes);
  placed_.back().event.address = address;
  place(storage, column, 0, Change::whole, MemoryAction::free_requested, given_back_at, OpId::none);
  placed_.back().event.address = address;
  if (!has_completions_) return;
  placed_.push_back(placed_.back());
  placed_.back().event.action = MemoryAction::free_completed;
}

Addr PlannedLives::fresh_address(Bytes bytes) {
  const Addr address(next_address_);
  next_address_ += (static_cast<std::uint64_t>(bytes.count()) / address_step + 1) * address_step;
  return address;
}

void PlannedLives::push(const MemoryEvent& event, OpId gate, RewrittenMemory& out) {
  out.events.push_back(event);
  out.gate.push_back(gate);
}

void PlannedLives::write_recorded(MemoryEvent event, Life& life, RewrittenMemory& out) {
  if (event.action == MemoryAction::allocate) {
    if (life.away) return;
    life.address = event.address;
    life.resident = true;
  } else if (event.action == MemoryAction::free_requested) {
    if (!life.resident) return;
    event.address = life.address;
    life.resident = false;
    life.pending = has_completions_;
  } else if (event.action == MemoryAction::free_completed) {
    if (!life.pending && !life.resident) return;
    event.address = life.address;
    life.resident = life.pending = false;
  }
  push(event, event.action == MemoryAction::allocate ? OpId::none : life.held_until, out);
}

void PlannedLives::write_give_back(const Placed& placed, RewrittenMemory& out) {
  Life& life = life_of(placed.storage);
  if (!life.resident) return;
  MemoryEvent event = placed.event;
  event.address = life.address;
  life.resident = false;
  const OpId gate = placed.gate == OpId::none ? life.held_until : placed.gate;
  push(event, gate, out);
  if (!has_completions_) return;
  event.action = MemoryAction::free_completed;
  push(event, gate, out);
}

void PlannedLives::write_placed(const Placed& placed, RewrittenMemory& out) {
  if (placed.change == Change::whole) {
    push(placed.event, placed.gate, out);
  } else if (placed.change == Change::hold) {
    life_of(placed.storage).held_until = placed.gate;
  } else if (placed.change == Change::give_back) {
    write_give_back(placed, out);
  } else {
    Life& life = life_of(placed.storage);
    MemoryEvent event = placed.event;
    life.address = event.address = fresh_address(event.bytes);
    life.resident = true;
    life.away = false;
    push(event, placed.gate, out);
  }
}

// Recorded events, by far the most, come by columns already: what is placed is merged in, first where ranks are equal.
RewrittenMemory PlannedLives::write() {
  std::stable_sort(placed_.begin(), placed_.end(), [](const Placed& a, const Placed& b) {
    return std::tie(a.column, a.rank) < std::tie(b.column, b.rank);
  });
  RewrittenMemory out;
  out.events.reserve(2 * placed_.size() + trace_.memory_events.size());
  out.gate.reserve(out.events.capacity());
  auto next = placed_.cbegin();
  std::size_t column = 0;
  for (const MemoryEvent& recorded : trace_.memory_events) {
    if (recorded.anchor != OpId::none) column = std::max(column, index_of(recorded.anchor));
    for (; next != placed_.cend() && std::pair(next->column, next->rank) <= std::pair(column, recorded_rank); ++next)
      write_placed(*next, out);
    MemoryEvent event = recorded;
    if (event.anchor != OpId::none) event.anchor = new_id_[index_of(event.anchor)];
    Life* const life =
        event.tensor == TensorId::none ? nullptr : known_life(trace_.tensors.storage[index_of(event.tensor)]);
    if (life == nullptr)
      push(event, OpId::none, out);
    else
      write_recorded(event, *life, out);
  }
  for (; next != placed_.cend(); ++next) write_placed(*next, out);
  return out;
}

}  // namespace spillway::sim
