// Finds tensors in the text of Python lists, as Chakra files carry them:
//   "[[60, 61, 0, 512, 4, 'cuda:0'], True, [[6, 7, 0, 64, 4, 'cuda:0']]]"
#pragma once

#include <string_view>
#include <vector>

#include "base/string_pool.h"
#include "traces/tensor_lives.h"

namespace spillway::traces {

// Every list of five integers and a text, at any depth, in order. Anything else is passed over. O(text).
std::vector<TensorValue> tensors_in_python_text(std::string_view text, StringPool& strings);

}  // namespace spillway::traces
