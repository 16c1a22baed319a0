// Element types by the names that recorders and models give them.
#pragma once

#include <cstdint>
#include <string_view>

namespace spillway::traces {

// Bytes an element takes ("bf16", "c10::Half", "torch.float32", "long int"); 0: not known.
std::int64_t element_bytes(std::string_view dtype);

}  // namespace spillway::traces
