// The rank whose memory a step is judged by.
#pragma once

#include <cstdint>

#include "sim/replay/result.h"
#include "traces/trace.h"

namespace spillway::gui {

// Of the GPU that needs most memory; 0: none is known to.
std::uint16_t fullest_rank(const Trace& trace, const Result& result);

}  // namespace spillway::gui
