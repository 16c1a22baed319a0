#include "sim/devices/memory/planned_pool.h"

#include <algorithm>

#include "base/input_error.h"

namespace spillway::sim {
namespace {

constexpr Bytes slot{512};
// Apart from each other and from the caching allocator's synthetic segments, which begin at 2^48.
constexpr Addr pool_address{std::uint64_t{1} << 56};
constexpr Addr slots_address{std::uint64_t{1} << 57};

Bytes in_slots(Bytes bytes) { return (bytes.count() + slot.count() - 1) / slot.count() * slot; }

Addr at_offset(Addr base, Bytes offset) { return base + Addr(static_cast<std::uint64_t>(offset.count())); }

TorchSettings cache_settings(const MemoryPlan& plan, const TorchSettings& limits) {
  TorchSettings settings;
  settings.device_memory = limits.device_memory;
  settings.outside_memory = limits.outside_memory;
  settings.memory_fraction = limits.memory_fraction;
  if (plan.kind == PlanKind::stalloc) settings.large_rounding = slot;
  return settings;
}

}  // namespace

PlannedPool::PlannedPool(std::shared_ptr<const MemoryPlan> plan, const TorchSettings& limits)
    : plan_(std::move(plan)), limit_(reserve_limit(limits)), cache_(cache_settings(*plan_, limits)) {}

Allocation PlannedPool::allocate(const AllocationRequest& request) {
  SPILLWAY_ASSERT(request.bytes.count() >= 0 && request.bytes < Bytes(std::int64_t{1} << 62));
  if (request.bytes == Bytes::zero()) return {};
  const Bytes size = in_slots(request.bytes);
  if (request.before) return from_before(request, size);
  if (plan_->kind == PlanKind::layout) return in_place(request, size);
  const PlannedPlace first = request.space == RequestSpace::planned ? PlannedPlace{} : next_first_choice();
  if (size <= slot) return in_slot(request);
  const std::uint64_t ordinal = requests_++;
  if (std::binary_search(plan_->cached.begin(), plan_->cached.end(), ordinal))
    return cached(request, outcome_.unplanned);
  switch (request.space) {
    case RequestSpace::planned:
      return in_place(request, size);
    case RequestSpace::cached:
      return cached(request, outcome_.dynamic_cached);
    case RequestSpace::anywhere:
      break;
  }
  return in_space(request, size, first);
}

// The cursor advances, whatever becomes of the request. Null behind the end of a plan without a period.
const PlannedPlace* PlannedPool::next_place() {
  if (plan_->places.empty()) return nullptr;
  if (next_ == plan_->places.size()) next_ = plan_->period_begin;
  return &plan_->places[next_++];
}

// Of plan_->dynamic, round after round.
PlannedPlace PlannedPool::next_first_choice() {
  if (plan_->dynamic_places.empty()) return {};
  if (next_dynamic_ == plan_->dynamic_places.size()) next_dynamic_ = 0;
  return plan_->dynamic_places[next_dynamic_++];
}

// Once each has been asked for, a stream that begins anew asks for those it lost: by their sizes.
Allocation PlannedPool::from_before(const AllocationRequest& request, Bytes size) {
  std::uint64_t uncounted = 0;
  const auto is_usable = [&](const PlannedPlace& place) {
    return place.offset >= Bytes::zero() && size <= place.size && !is_taken(place.offset, place.offset + size);
  };
  const std::vector<PlannedPlace>& places = plan_->before;
  auto place = places.begin() + static_cast<std::ptrdiff_t>(std::min(next_before_, places.size()));
  if (next_before_ < places.size()) {
    ++next_before_;
    if (!is_usable(*place)) place = places.end();
  } else {
    place = std::find_if(places.begin(), places.end(),
                         [&](const PlannedPlace& one) { return one.size == size && is_usable(one); });
  }
  if (place == places.end()) return cached(request, uncounted);
  return in_pool(request, place->offset, size, uncounted);
}

Allocation PlannedPool::in_place(const AllocationRequest& request, Bytes size) {
  const PlannedPlace* place = next_place();
  if (place == nullptr || place->offset < Bytes::zero()) return cached(request, outcome_.unplanned);
  const bool layout = plan_->kind == PlanKind::layout;
  const Bytes wanted =
      layout ? std::min(size, std::max(place->size, request.bytes)) : std::max(place->size, request.bytes);
  const bool fits =
      layout ? wanted <= place->size : in_slots(place->size) == size && wanted <= plan_->pool - place->offset;
  if (!fits) return cached(request, outcome_.size_mismatch);
  if (is_taken(place->offset, place->offset + wanted)) return cached(request, outcome_.overlap);
  return in_pool(request, place->offset, wanted, outcome_.placed);
}

// Precondition: nothing live is there.
Allocation PlannedPool::in_pool(const AllocationRequest& request, Bytes offset, Bytes size, std::uint64_t& outcome) {
  DriverCost cost;
  if (!has_pool_ && !(has_pool_ = take_segment(PoolKind::large, plan_->pool, cost)))
    return out_of_memory(request, plan_->pool);
  ++outcome;
  taken_[offset] = offset + size;
  return hand_out(request, at_offset(pool_address, offset), size, Part::pool, cost);
}

Allocation PlannedPool::in_space(const AllocationRequest& request, Bytes size, const PlannedPlace& first) {
  if (first.offset >= Bytes::zero() && size <= first.size && !is_taken(first.offset, first.offset + size))
    return in_pool(request, first.offset, size, outcome_.reused);
  const PlanRange whole{Bytes{}, plan_->pool};
  std::span<const PlanRange> ranges(&whole, 1);
  if (request.space != RequestSpace::anywhere) {
    const auto number = static_cast<std::size_t>(request.space);
    if (number >= plan_->spaces.size()) return cached(request, outcome_.dynamic_cached);
    ranges = plan_->spaces[number].ranges;
  }
  const std::optional<Bytes> offset = best_fit(size, ranges);
  if (!offset) return cached(request, outcome_.dynamic_cached);
  return in_pool(request, *offset, size, outcome_.reused);
}

// The smallest free interval within the ranges that is large enough; the lowest of equals.
std::optional<Bytes> PlannedPool::best_fit(Bytes size, std::span<const PlanRange> ranges) const {
  std::optional<Bytes> best;
  Bytes best_room{};
  const auto consider = [&](Bytes begin, Bytes end) {
    const Bytes room = end - begin;
    if (room < size || (best && room >= best_room)) return;
    best = begin;
    best_room = room;
  };
  for (const PlanRange& range : ranges) {
    Bytes from = range.begin;
    auto at = taken_.upper_bound(range.begin);
    if (at != taken_.begin()) from = std::max(from, std::prev(at)->second);
    for (; at != taken_.end() && at->first < range.end; ++at) {
      consider(from, at->first);
      from = std::max(from, at->second);
    }
    if (from < range.end) consider(from, range.end);
  }
  return best;
}

bool PlannedPool::is_taken(Bytes begin, Bytes end) const {
  const auto next = taken_.lower_bound(begin);
  if (next != taken_.end() && next->first < end) return true;
  return next != taken_.begin() && std::prev(next)->second > begin;
}

// The slots double when none is left.
Allocation PlannedPool::in_slot(const AllocationRequest& request) {
  DriverCost cost;
  if (slots_.empty()) {
    const auto first = static_cast<std::uint32_t>(std::max<std::int64_t>(1, plan_->small_peak / slot * 2));
    const std::uint32_t more = slot_count_ == 0 ? first : slot_count_;
    if (!take_segment(PoolKind::small, static_cast<std::int64_t>(more) * slot, cost))
      return out_of_memory(request, static_cast<std::int64_t>(more) * slot);
    for (std::uint32_t i = slot_count_ + more; i > slot_count_; --i) slots_.push_back(i - 1);
    slot_count_ += more;
  }
  const std::uint32_t number = slots_.back();
  slots_.pop_back();
  ++outcome_.small;
  return hand_out(request, at_offset(slots_address, static_cast<std::int64_t>(number) * slot), slot, Part::slots, cost);
}

// The caching allocator's unused segments give way.
bool PlannedPool::take_segment(PoolKind kind, Bytes size, DriverCost& cost) {
  const auto room = [this] { return limit_ - Bytes(ledger_.statistics.all().reserved_bytes.current); };
  if (size > room()) cost.add(cache_.empty_cache(Picos{}, ledger_.statistics));
  if (size > room()) return false;
  own_reserved_ += size;
  ledger_.change_segments(kind, 1, size);
  ++ledger_.statistics.device_mallocs;
  ++cost.device_mallocs;
  cost.malloc_bytes += size;
  return true;
}

Allocation PlannedPool::cached(const AllocationRequest& request, std::uint64_t& reason) {
  ++reason;
  Allocation made = cache_.allocate(request, own_reserved_, ledger_.statistics);
  if (made.out_of_memory) {
    const OutOfMemory& inner = cache_.torch().last_out_of_memory();
    OutOfMemory& why = ledger_.fail(request, inner.needed, limit_);
    why.cached_small = inner.cached_small;
    why.cached_large = inner.cached_large;
    why.largest_free_block = inner.largest_free_block;
    return made;
  }
  BlockLedger::Block block = BlockLedger::Block::of(request, made.address, made.size);
  block.place = static_cast<std::uint32_t>(Part::cache);
  block.inner = made.block;
  block.kind =
      is_small_request(round_request(cache_.torch().settings(), request.bytes)) ? PoolKind::small : PoolKind::large;
  made.block = ledger_.add(block);
  return made;
}

Allocation PlannedPool::hand_out(const AllocationRequest& request, Addr address, Bytes size, Part part,
                                 const DriverCost& cost) {
  BlockLedger::Block block = BlockLedger::Block::of(request, address, size);
  block.place = static_cast<std::uint32_t>(part);
  block.kind = part == Part::slots ? PoolKind::small : PoolKind::large;
  return {ledger_.add(block), address, size, false, cost};
}

Allocation PlannedPool::out_of_memory(const AllocationRequest& request, Bytes needed) {
  ledger_.fail(request, needed, limit_);
  Allocation failed;
  failed.out_of_memory = true;
  return failed;
}

std::uint32_t PlannedPool::free(BlockId block, Picos time) {
  return ledger_.free(block, time, [&](const BlockLedger::Block& gone) { release(gone, time); });
}

void PlannedPool::release(const BlockLedger::Block& block, Picos time) {
  switch (static_cast<Part>(block.place)) {
    case Part::pool:
      taken_.erase(Bytes(static_cast<std::int64_t>((block.address - pool_address).count())));
      break;
    case Part::slots:
      slots_.push_back(static_cast<std::uint32_t>((block.address - slots_address).count() / 512));
      break;
    case Part::cache:
      cache_.free(block.inner, time, ledger_.statistics);
      break;
  }
}

PoolState PlannedPool::state() const {
  std::vector<MemoryBlock> live;
  ledger_.for_each([&](const BlockLedger::Block& block) {
    if (static_cast<Part>(block.place) != Part::cache)
      live.push_back({block.address, block.size, block.requested, BlockState::allocated});
  });
  std::sort(live.begin(), live.end(), [](const auto& a, const auto& b) { return a.address < b.address; });
  PoolState state = cache_.torch().state();
  const auto add = [&](Addr base, Bytes total, bool large) {
    if (total == Bytes::zero()) return;
    SegmentState segment;
    segment.address = base;
    segment.total = total;
    segment.large = large;
    segment.first_block = static_cast<std::uint32_t>(state.blocks.size());
    Addr reached = base;
    const Addr end = at_offset(base, total);
    const auto gap = [&](Addr until) {
      if (until > reached)
        state.blocks.push_back(
            {reached, Bytes(static_cast<std::int64_t>((until - reached).count())), Bytes{}, BlockState::inactive});
    };
    for (const MemoryBlock& block : live) {
      if (block.address < base || block.address >= end) continue;
      gap(block.address);
      state.blocks.push_back(block);
      reached = at_offset(block.address, block.size);
    }
    gap(end);
    segment.block_count = static_cast<std::uint32_t>(state.blocks.size()) - segment.first_block;
    state.segments.push_back(segment);
  };
  if (has_pool_) add(pool_address, plan_->pool, true);
  add(slots_address, static_cast<std::int64_t>(slot_count_) * slot, false);
  return state;
}

std::optional<std::string> PlannedPool::check() const {
  if (auto text = cache_.torch().check()) return "caching allocator: " + *text;
  Bytes reached{}, in_pool{}, cache{}, slots{}, all{};
  for (const auto& [begin, end] : taken_) {
    if (begin < reached || end <= begin || end > plan_->pool) return "blocks of the pool overlap or leave it";
    in_pool += end - begin;
    reached = end;
  }
  ledger_.for_each([&](const BlockLedger::Block& block) {
    const Part part = static_cast<Part>(block.place);
    (part == Part::pool    ? in_pool
     : part == Part::slots ? slots
                           : cache) += part == Part::pool ? -block.size : block.size;
    all += block.size;
  });
  if (in_pool != Bytes::zero()) return "the ranges taken are not the blocks in the pool";
  if (slots != static_cast<std::int64_t>(slot_count_ - slots_.size()) * slot) return "slots got lost";
  const PoolStatistics& statistics = ledger_.statistics.all();
  const PoolStatistics& inner = cache_.torch().statistics().all();
  if (Bytes(inner.allocated_bytes.current) != cache) return "the caching allocator holds other blocks";
  if (Bytes(statistics.allocated_bytes.current) != all) return "allocated bytes were counted wrongly";
  if (Bytes(statistics.reserved_bytes.current) != own_reserved_ + Bytes(inner.reserved_bytes.current))
    return "reserved bytes do not add up";
  if (Bytes(statistics.reserved_bytes.current) > limit_) return "reserved passes the limit";
  return std::nullopt;
}

}  // namespace spillway::sim
