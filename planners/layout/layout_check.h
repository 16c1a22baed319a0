// Is a layout legal? Written apart from the solver, which it does not include: every layout is checked by it before it
// is shown or stored.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace spillway::planners {

// A buffer's place: alive in [lower, upper), at [offset, offset + size).
struct LaidBuffer {
  std::int64_t lower = 0, upper = 0, size = 0, offset = 0;
  std::int64_t alignment = 1;
};

struct LayoutVerdict {
  std::string fault;        // empty for a legal layout; else what is wrong with which buffers, by position
  std::int64_t height = 0;  // largest offset + size, of a legal layout
  std::size_t culprit = 0;  // position of a buffer that is at fault
  [[nodiscard]] bool legal() const { return fault.empty(); }
};

// Every buffer has a lifetime, a size and an aligned offset >= 0, and ends at most at `capacity` (negative: any
// height). No two of positive size that are alive together overlap. A sweep over time with live buffers ordered by
// address: n log n.
LayoutVerdict check_layout(std::span<const LaidBuffer> buffers, std::int64_t capacity = -1);

}  // namespace spillway::planners
