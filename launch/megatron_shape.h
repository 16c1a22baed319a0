// A model's shape as Megatron-LM's flags say it (megatron/training/arguments.py, megatron/core/models/gpt).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/floors.h"
#include "launch/launch_ledger.h"
#include "models/spec/model_spec.h"

namespace spillway::launch {

// Rows of the embedding: --vocab-size, rounded up to a multiple of --make-vocab-size-divisible-by x tensor-parallel.
struct MegatronVocabulary {
  std::int64_t given = 0;   // before rounding; 0: not said
  std::int64_t padded = 0;  // 0: not said
  std::int64_t multiple = 128;

  [[nodiscard]] bool is_said() const { return padded > 0; }
  // Whether a model of so many rows is this one: before or after rounding. Without a word on it any is.
  [[nodiscard]] bool is_of(std::int64_t rows) const;
};
MegatronVocabulary megatron_vocabulary(const LaunchLedger& ledger, std::int64_t tensor_parallel);

// With Megatron-LM's defaults for what the facts leave out. Throws InputError where layers, width or heads are missing.
ModelSpec megatron_spec(LaunchLedger& ledger, const MegatronVocabulary& vocabulary);

// --moe-layer-freq: "2", or a Python list such as "([0]*3+[1]*58)": whether each layer has experts. Empty: neither.
std::vector<bool> expert_layers(std::string_view text, std::int64_t layers);

}  // namespace spillway::launch
