// How much there is to an attention kernel: flops, and elements of its operands on one rank.
#pragma once

#include <cstdint>

#include "models/cost/cost_model.h"

namespace spillway::models {

// Two products of 2*b*a*s*s*d forwards, five backwards (the scores again, then four gradients); a causal mask skips
// half of each. Source: Dao 2022, FlashAttention, section 3 and appendix B. Under a window w < s a causal row sees w
// keys but the first w rows, which see half of that. A slice's rows see the slices before it whole.
inline Flops flash_flops(const AttentionShape& s, std::int64_t products) {
  const std::int64_t pairs = s.window > 0 && s.window < s.sequence ? s.window * (2 * s.sequence - s.window)
                                                                   : s.sequence * (2 * s.key_count() - s.sequence);
  const std::int64_t values = s.value_dim > 0 ? s.value_dim : s.head_dim, of_values = products / 2;
  const std::int64_t width = (products - of_values) * s.head_dim + of_values * values;
  return Flops(2 * s.batch * s.heads * pairs * width / (s.causal ? 2 : 1));
}

// The size of a turn of context-parallel attention; `whole`: that of a rank's own part. A rank has a chunk from the
// sequence's front and the one as far from its end. It sees its own keys causally. All its queries see the front
// chunk's keys of a rank before it. The queries of its end chunk see all keys of a rank behind it.
inline AttentionShape shape_of_turn(const AttentionShape& whole, std::int64_t turn) {
  AttentionShape result = whole;
  if (!whole.causal || turn == 0 || whole.sequence < 2) return result;
  result.causal = false;
  if (turn % 2 == 1) {
    result.keys = whole.sequence / 2;
  } else {
    result.sequence = whole.sequence / 2;
    result.keys = whole.sequence;
  }
  return result;
}

inline std::int64_t query_elements(const AttentionShape& s) { return s.batch * s.sequence * s.heads * s.head_dim; }
// The size of values, and of their weighted sums.
inline std::int64_t value_elements(const AttentionShape& s) {
  return s.batch * s.key_count() * s.kv_heads * (s.value_dim > 0 ? s.value_dim : s.head_dim);
}
inline std::int64_t result_elements(const AttentionShape& s) {
  return s.batch * s.sequence * s.heads * (s.value_dim > 0 ? s.value_dim : s.head_dim);
}
// The size of keys, or of values as wide as keys.
inline std::int64_t key_elements(const AttentionShape& s) { return s.batch * s.key_count() * s.kv_heads * s.head_dim; }

}  // namespace spillway::models
