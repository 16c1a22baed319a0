// The GPU with the allocations that a command is about.
#pragma once

#include <cstdint>
#include <string>

#include "traces/trace.h"

namespace spillway::cli {

// The one asked for, or the first with memory events when `wanted` is negative. Throws InputError, naming `file`, when
// there is none, or not that one.
std::int16_t memory_device(const Trace& trace, const std::string& file, int wanted);

}  // namespace spillway::cli
