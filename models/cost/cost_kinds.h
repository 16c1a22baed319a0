// Kinds of memory-bound kernels, apart from the cost model so that measured tables can name them.
#pragma once

#include <cstdint>

namespace spillway::models {

// What a memory-bound kernel does, for its share of the bandwidth.
enum class MemoryKind : std::uint8_t { elementwise, norm_forward, norm_backward, softmax, gather, optimizer };
inline constexpr int memory_kind_count = 6;

}  // namespace spillway::models
