#include "planners/layout/result_check.h"

#include "base/input_error.h"
#include "planners/layout/layout_check.h"

namespace spillway::planners {

void check_result(std::span<const LayoutBuffer> buffers, const LayoutResult& result) {
  std::vector<LaidBuffer> laid;
  laid.reserve(buffers.size());
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const LayoutBuffer& buffer = buffers[i];
    const bool fixed = buffer.fixed_offset != layout_free;
    SPILLWAY_ASSERT(!fixed || result.offsets[i] == buffer.fixed_offset);
    laid.push_back({buffer.lower, buffer.upper, buffer.size, result.offsets[i], fixed ? 1 : buffer.alignment});
  }
  const LayoutVerdict verdict = check_layout(laid);
  SPILLWAY_ASSERT(verdict.legal() && verdict.height == result.height);
}

}  // namespace spillway::planners
