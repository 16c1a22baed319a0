// Keys that stand for m tokens each (DeepSeek-V4).
//
// Two products of a token are c d wide. A softmax of the second weighs the first over a key's tokens. A learned number
// for each place of a token is added before. The sum, [t / m, d], is normed. Width c is 1. Keys that an indexer chooses
// among have c = 2 and read the tokens of the key before too.
//
// Kept with 2-byte activations besides x: 4 c d t (products), 2 d t / m (sums) and 4 t / m (statistics of the norm).
#pragma once

#include <string>

#include "models/network/block_context.h"
#include "models/spec/model_spec.h"

namespace spillway::models {

// `name`: of the parameters, "_kv", "_gate", "_positions" and "_norm" behind it. Gives [t / m, width].
Tensor compressed_keys(const BlockContext& context, const std::string& name, const Tensor& x, const Block& block,
                       std::int64_t width);

}  // namespace spillway::models
