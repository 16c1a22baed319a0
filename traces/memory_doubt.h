// Findings that leave open how much memory the step of a record held.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "traces/trace.h"

namespace spillway::traces {

// Whether a finding of this kind says that nothing, or not all, is known of some recorded memory. A reader that leaves
// such a row out names a separate kind for it, in this list; what was wrong with work alone says nothing of memory.
bool doubts_memory(std::string_view kind);

// All such findings: "bad_block (2): the block has no usable size and is left out". Empty: none.
std::string memory_doubt(const Trace& trace);
// Adds so many events and segments that are left out for their impossible sizes; 0: nothing.
void add_unusable(std::uint64_t count, std::string& doubt);

}  // namespace spillway::traces
