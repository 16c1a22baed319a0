#include "planners/layout/emulated_layout.h"

#include <algorithm>
#include <tuple>

#include "sim/devices/memory/torch_pool.h"

namespace spillway::planners {
namespace {

using sim::BlockId;
using sim::TorchPool;
using sim::TorchSettings;

struct Emulated {
  std::vector<std::uint64_t> addresses;
  std::int64_t reserved = 0;
};

Emulated emulate(std::span<const LayoutBuffer> buffers, bool expandable) {
  std::vector<std::tuple<std::int64_t, bool, std::size_t>> events;  // frees before allocations
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    if (buffers[i].size == 0) continue;
    events.emplace_back(buffers[i].lower, true, i);
    events.emplace_back(buffers[i].upper, false, i);
  }
  std::sort(events.begin(), events.end());
  TorchSettings settings;
  settings.expandable_segments = expandable;
  TorchPool pool(settings);
  std::vector<BlockId> blocks(buffers.size(), BlockId::none);
  Emulated result;
  result.addresses.resize(buffers.size());
  for (const auto& [time, is_allocation, i] : events) {
    if (!is_allocation) {
      pool.free(blocks[i], Picos{});
      continue;
    }
    sim::AllocationRequest request;
    request.bytes = Bytes(buffers[i].size);
    const sim::Allocation made = pool.allocate(request);
    blocks[i] = made.block;
    result.addresses[i] = made.address.count();
  }
  result.reserved = pool.statistics().all().reserved_bytes.peak;
  return result;
}

// Addresses to offsets: what lies between the places in use goes.
std::vector<std::int64_t> closed_up(std::span<const LayoutBuffer> buffers,
                                    const std::vector<std::uint64_t>& addresses) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < buffers.size(); ++i)
    if (buffers[i].size > 0) order.push_back(i);
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return addresses[a] < addresses[b]; });
  std::vector<std::int64_t> offsets(buffers.size(), 0);
  std::uint64_t reached = 0, unused = 0;
  for (const std::size_t i : order) {
    if (addresses[i] > reached) unused += addresses[i] - reached;
    offsets[i] = static_cast<std::int64_t>(addresses[i] - unused);
    reached = std::max(reached, addresses[i] + static_cast<std::uint64_t>(buffers[i].size));
  }
  return offsets;
}

// What is held to the end lies below, one above the other; the rest is laid out above it.
std::vector<std::int64_t> above_what_is_held(std::span<const LayoutBuffer> buffers, const LayoutOptions& options) {
  std::int64_t end = 0, held = 0;
  for (const LayoutBuffer& buffer : buffers) end = std::max(end, buffer.upper);
  std::vector<std::int64_t> offsets(buffers.size());
  std::vector<LayoutBuffer> rest;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    if (buffers[i].upper < end) {
      rest.push_back(buffers[i]);
      continue;
    }
    offsets[i] = held;
    held += buffers[i].size;
  }
  const std::vector<std::int64_t> above = solve_layout(rest, options).offsets;
  for (std::size_t i = 0, r = 0; i < buffers.size(); ++i)
    if (buffers[i].upper < end) offsets[i] = held + above[r++];
  return offsets;
}

}  // namespace

std::int64_t height_of(std::span<const LayoutBuffer> buffers, std::span<const std::int64_t> offsets) {
  std::int64_t height = 0;
  for (std::size_t i = 0; i < buffers.size(); ++i) height = std::max(height, offsets[i] + buffers[i].size);
  return height;
}

std::vector<std::int64_t> emulated_layout(std::span<const LayoutBuffer> buffers) {
  std::vector<std::int64_t> plain = closed_up(buffers, emulate(buffers, false).addresses);
  std::vector<std::int64_t> expandable = closed_up(buffers, emulate(buffers, true).addresses);
  return height_of(buffers, plain) < height_of(buffers, expandable) ? plain : expandable;
}

EmulatedReserve emulated_reserve(std::span<const LayoutBuffer> buffers) {
  return {emulate(buffers, false).reserved, emulate(buffers, true).reserved};
}

LayoutResult lay_out_step(std::span<const LayoutBuffer> buffers, const LayoutOptions& options) {
  LayoutResult best = solve_layout(buffers, options);
  const auto consider = [&](std::vector<std::int64_t> offsets) {
    const std::int64_t height = height_of(buffers, offsets);
    if (height >= best.height) return;
    best.offsets = std::move(offsets);
    best.height = height;
    best.proven = height == best.lower_bound;
  };
  if (!best.proven && !best.stopped) consider(above_what_is_held(buffers, options));
  if (!best.proven) consider(emulated_layout(buffers));
  return best;
}

}  // namespace spillway::planners
