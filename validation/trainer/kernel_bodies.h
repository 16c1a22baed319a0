// Work of one group of threads in each kernel, for the GPU. It is compiled for the processor as well, where a group is
// one thread, so that tests compare every formula and every index with the reference (cpu_kernels.h).
//
// A Group has rank(), size(), and sum(x) and most(x) over its threads, the same in all of them. Their order of summing
// depends on the group's size alone, so each kernel gives the same bits for the same operands.
#pragma once

#include <cmath>
#include <cstdint>

#ifdef __CUDACC__
#define SPILLWAY_DEVICE __host__ __device__
#else
#define SPILLWAY_DEVICE
#endif

namespace spillway::validation::bodies {

// Elements as they lie in memory: float, or bf16, stored rounded to nearest even.
struct Bf16 {
  std::uint16_t bits = 0;
};
SPILLWAY_DEVICE inline float load(const float* from) { return *from; }
SPILLWAY_DEVICE inline void store(float* to, float value) { *to = value; }
SPILLWAY_DEVICE inline float load(const Bf16* from) {
  union {
    std::uint32_t bits;
    float value;
  } wide;
  wide.bits = static_cast<std::uint32_t>(from->bits) << 16U;
  return wide.value;
}
SPILLWAY_DEVICE inline void store(Bf16* to, float value) {
  union {
    float value;
    std::uint32_t bits;
  } wide;
  wide.value = value;
  const bool is_nan = value != value;
  to->bits = is_nan ? static_cast<std::uint16_t>((wide.bits >> 16U) | 0x40U)
                    : static_cast<std::uint16_t>((wide.bits + 0x7fffU + ((wide.bits >> 16U) & 1U)) >> 16U);
}

inline constexpr float norm_epsilon = 1e-5F;
inline constexpr float gelu_root = 0.7978845608028654F;  // sqrt(2 / pi)
inline constexpr float gelu_cubic = 0.044715F;

// One row of `columns`.
template <class T, class Group>
SPILLWAY_DEVICE void layer_norm(Group group, const T* x, const T* weight, const T* bias, T* y, float* mean_out,
                                float* inverse_out, std::int64_t columns) {
  float sum = 0;
  for (std::int64_t c = group.rank(); c < columns; c += group.size()) sum += load(x + c);
  const float mean = group.sum(sum) / static_cast<float>(columns);
  float square = 0;
  for (std::int64_t c = group.rank(); c < columns; c += group.size()) {
    const float off = load(x + c) - mean;
    square += off * off;
  }
  const float inverse = 1 / sqrtf(group.sum(square) / static_cast<float>(columns) + norm_epsilon);
  for (std::int64_t c = group.rank(); c < columns; c += group.size())
    store(y + c, (load(x + c) - mean) * inverse * load(weight + c) + load(bias + c));
  if (group.rank() == 0) {
    *mean_out = mean;
    *inverse_out = inverse;
  }
}

template <class T, class Group>
SPILLWAY_DEVICE void layer_norm_backward(Group group, const T* dy, const T* x, const T* weight, float mean,
                                         float inverse, T* dx, std::int64_t columns) {
  float sum = 0, dot = 0;
  for (std::int64_t c = group.rank(); c < columns; c += group.size()) {
    const float scaled = load(dy + c) * load(weight + c);
    sum += scaled;
    dot += scaled * (load(x + c) - mean) * inverse;
  }
  sum = group.sum(sum) / static_cast<float>(columns);
  dot = group.sum(dot) / static_cast<float>(columns);
  for (std::int64_t c = group.rank(); c < columns; c += group.size()) {
    const float normalized = (load(x + c) - mean) * inverse;
    store(dx + c, inverse * (load(dy + c) * load(weight + c) - sum - normalized * dot));
  }
}

// One column: sums over rows of dy, and of dy times the normalised x. A part of the rows each.
struct ColumnSums {
  float plain = 0, weighted = 0;
};
template <class T>
SPILLWAY_DEVICE ColumnSums column_sums(const T* dy, const T* x, const float* means, const float* inverses,
                                       std::int64_t column, std::int64_t columns, std::int64_t first_row,
                                       std::int64_t row_step, std::int64_t rows) {
  ColumnSums sums;
  for (std::int64_t r = first_row; r < rows; r += row_step) {
    const float gradient = load(dy + r * columns + column);
    sums.plain += gradient;
    if (x != nullptr) sums.weighted += gradient * (load(x + r * columns + column) - means[r]) * inverses[r];
  }
  return sums;
}

struct AttentionShape {
  std::int64_t sequence, hidden, heads, head_size;
};

// One query row i of one head of one sample: `row` is the sample's first token. PerThread >= head_size / group.size().
template <int PerThread, class T, class Group>
SPILLWAY_DEVICE void attention(Group group, const T* qkv, T* out, float* log_denominators, AttentionShape shape,
                               std::int64_t row, std::int64_t head, std::int64_t i) {
  const std::int64_t stride = 3 * shape.hidden, column = head * shape.head_size;
  const T* q = qkv + (row + i) * stride + column;
  float query[PerThread], sums[PerThread];
  for (int p = 0; p < PerThread; ++p) {
    const std::int64_t c = group.rank() + p * group.size();
    query[p] = c < shape.head_size ? load(q + c) : 0;
    sums[p] = 0;
  }
  const float scale = 1 / sqrtf(static_cast<float>(shape.head_size));
  float most = -INFINITY, denominator = 0;
  for (std::int64_t j = 0; j <= i; ++j) {
    const T* k = qkv + (row + j) * stride + column + shape.hidden;
    float dot = 0;
    for (int p = 0; p < PerThread; ++p) {
      const std::int64_t c = group.rank() + p * group.size();
      if (c < shape.head_size) dot += query[p] * load(k + c);
    }
    const float score = group.sum(dot) * scale;
    const float higher = most > score ? most : score;
    const float kept = expf(most - higher), share = expf(score - higher);
    denominator = denominator * kept + share;
    for (int p = 0; p < PerThread; ++p) {
      const std::int64_t c = group.rank() + p * group.size();
      if (c < shape.head_size) sums[p] = sums[p] * kept + share * load(k + shape.hidden + c);
    }
    most = higher;
  }
  for (int p = 0; p < PerThread; ++p) {
    const std::int64_t c = group.rank() + p * group.size();
    if (c < shape.head_size) store(out + (row + i) * shape.hidden + column + c, sums[p] / denominator);
  }
  if (group.rank() == 0) log_denominators[(row + i) * shape.heads + head] = most + logf(denominator);
}

// Sum over the head's columns of d out times out, of one token.
template <class T, class Group>
SPILLWAY_DEVICE float attention_delta(Group group, const T* d_out, const T* out, AttentionShape shape,
                                      std::int64_t token, std::int64_t column) {
  float delta = 0;
  for (std::int64_t c = group.rank(); c < shape.head_size; c += group.size())
    delta += load(d_out + token * shape.hidden + column + c) * load(out + token * shape.hidden + column + c);
  return group.sum(delta);
}

// d q of query row i. Backward of FlashAttention (Dao et al., NeurIPS 2022, algorithm 4), one row at a time.
template <int PerThread, class T, class Group>
SPILLWAY_DEVICE void attention_d_query(Group group, const T* d_out, const T* qkv, const T* out,
                                       const float* log_denominators, T* d_qkv, AttentionShape shape, std::int64_t row,
                                       std::int64_t head, std::int64_t i) {
  const std::int64_t stride = 3 * shape.hidden, column = head * shape.head_size, token = row + i;
  const float scale = 1 / sqrtf(static_cast<float>(shape.head_size));
  const float delta = attention_delta(group, d_out, out, shape, token, column);
  const float log_denominator = log_denominators[token * shape.heads + head];
  float sums[PerThread];
  for (int p = 0; p < PerThread; ++p) sums[p] = 0;
  for (std::int64_t j = 0; j <= i; ++j) {
    const T* k = qkv + (row + j) * stride + column + shape.hidden;
    float dot = 0, d_share = 0;
    for (std::int64_t c = group.rank(); c < shape.head_size; c += group.size()) {
      dot += load(qkv + token * stride + column + c) * load(k + c);
      d_share += load(d_out + token * shape.hidden + column + c) * load(k + shape.hidden + c);
    }
    const float share = expf(group.sum(dot) * scale - log_denominator);
    const float d_score = share * (group.sum(d_share) - delta) * scale;
    for (int p = 0; p < PerThread; ++p) {
      const std::int64_t c = group.rank() + p * group.size();
      if (c < shape.head_size) sums[p] += d_score * load(k + c);
    }
  }
  for (int p = 0; p < PerThread; ++p) {
    const std::int64_t c = group.rank() + p * group.size();
    if (c < shape.head_size) store(d_qkv + token * stride + column + c, sums[p]);
  }
}

// d k and d v of key row j.
template <int PerThread, class T, class Group>
SPILLWAY_DEVICE void attention_d_key(Group group, const T* d_out, const T* qkv, const T* out,
                                     const float* log_denominators, T* d_qkv, AttentionShape shape, std::int64_t row,
                                     std::int64_t head, std::int64_t j) {
  const std::int64_t stride = 3 * shape.hidden, column = head * shape.head_size;
  const float scale = 1 / sqrtf(static_cast<float>(shape.head_size));
  const T* k = qkv + (row + j) * stride + column + shape.hidden;
  float d_key[PerThread], d_value[PerThread];
  for (int p = 0; p < PerThread; ++p) d_key[p] = d_value[p] = 0;
  for (std::int64_t i = j; i < shape.sequence; ++i) {
    const std::int64_t token = row + i;
    const T* q = qkv + token * stride + column;
    const T* d = d_out + token * shape.hidden + column;
    float dot = 0, d_share = 0;
    for (std::int64_t c = group.rank(); c < shape.head_size; c += group.size()) {
      dot += load(q + c) * load(k + c);
      d_share += load(d + c) * load(k + shape.hidden + c);
    }
    const float delta = attention_delta(group, d_out, out, shape, token, column);
    const float share = expf(group.sum(dot) * scale - log_denominators[token * shape.heads + head]);
    const float d_score = share * (group.sum(d_share) - delta) * scale;
    for (int p = 0; p < PerThread; ++p) {
      const std::int64_t c = group.rank() + p * group.size();
      if (c >= shape.head_size) continue;
      d_key[p] += d_score * load(q + c);
      d_value[p] += share * load(d + c);
    }
  }
  for (int p = 0; p < PerThread; ++p) {
    const std::int64_t c = group.rank() + p * group.size();
    if (c >= shape.head_size) continue;
    T* to = d_qkv + (row + j) * stride + column + c;
    store(to + shape.hidden, d_key[p]);
    store(to + 2 * shape.hidden, d_value[p]);
  }
}

SPILLWAY_DEVICE inline float gelu(float x) { return 0.5F * x * (1 + tanhf(gelu_root * (x + gelu_cubic * x * x * x))); }
SPILLWAY_DEVICE inline float gelu_gradient(float x) {
  const float t = tanhf(gelu_root * (x + gelu_cubic * x * x * x));
  return 0.5F * (1 + t) + 0.5F * x * (1 - t * t) * gelu_root * (1 + 3 * gelu_cubic * x * x);
}

// Log of the softmax's denominator of one row of logits.
template <class T, class Group>
SPILLWAY_DEVICE float log_denominator(Group group, const T* logits, std::int64_t columns) {
  float most = -INFINITY;
  for (std::int64_t c = group.rank(); c < columns; c += group.size()) {
    const float value = load(logits + c);
    most = most > value ? most : value;
  }
  most = group.most(most);
  float sum = 0;
  for (std::int64_t c = group.rank(); c < columns; c += group.size()) sum += expf(load(logits + c) - most);
  return most + logf(group.sum(sum));
}

// The mean over rows of log denominator less the target's logit.
template <class T, class Group>
SPILLWAY_DEVICE void mean_loss(Group group, const T* logits, const std::int32_t* targets, const float* log_denominators,
                               float* loss, std::int64_t rows, std::int64_t columns) {
  float sum = 0;
  for (std::int64_t r = group.rank(); r < rows; r += group.size())
    sum += log_denominators[r] - load(logits + r * columns + targets[r]);
  sum = group.sum(sum);
  if (group.rank() == 0) *loss = sum / static_cast<float>(rows);
}

struct AdamSettings {
  float learning_rate, beta1, beta2, epsilon, decay;  // decay: per step, 0 for norms and biases
  float correction1, correction2;                     // 1 - beta^step
};
SPILLWAY_DEVICE inline float adam(float gradient, float master, float* first, float* second, AdamSettings s) {
  *first = s.beta1 * *first + (1 - s.beta1) * gradient;
  *second = s.beta2 * *second + (1 - s.beta2) * gradient * gradient;
  const float size = *first / s.correction1 / (sqrtf(*second / s.correction2) + s.epsilon);
  return master - (s.decay * master + s.learning_rate * size);
}

}  // namespace spillway::validation::bodies
