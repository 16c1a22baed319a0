// Kinds of memory-bound kernels, apart from the cost model so that measured tables can name them.
#pragma once

#include <cstdint>

namespace spillway::models {

// Work of a memory-bound kernel, which decides its share of the bandwidth.
enum class MemoryKind : std::uint8_t { elementwise, norm_forward, norm_backward, softmax, gather, optimizer };
inline constexpr int memory_kind_count = 6;

// How PyTorch's kernel goes through memory. `streamed`: neighbouring threads load 16 bytes each. `strided`: element by
// element, where an operand is spread over a dimension, isn't contiguous or becomes wider (TensorIterator's kernels
// without vectors). `column_sum`: a reduction over rows, in two stages. `rows`: rows that an index picks, a second
// result across them, or a number for each (permutation, quantisation both ways and activation of experts' rows).
enum class MemoryAccess : std::uint8_t { streamed, strided, column_sum, rows };

}  // namespace spillway::models
