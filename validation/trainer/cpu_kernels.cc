#include "validation/trainer/cpu_kernels.h"

#include <Eigen/Core>
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/input_error.h"

namespace spillway::validation {
namespace {

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using ConstMap = Eigen::Map<const Matrix>;
using Map = Eigen::Map<Matrix>;

// The operands of one call as fp32, whatever their type in memory.
class Values {
 public:
  Values(const StepGraph& graph, const KernelCall& call, const Operands& operands)
      : graph_(graph), call_(call), operands_(operands) {}
  Values(const Values&) = delete;
  Values& operator=(const Values&) = delete;

  const float* in(std::size_t i) { return widen(graph_.tensors[call_.reads[i]], operands_.reads[i]); }
  const std::int32_t* integers(std::size_t i) const {
    return reinterpret_cast<const std::int32_t*>(operands_.reads[i]);
  }

  // Written back by store(). Keeps what is there: AdamW changes in place.
  float* out(std::size_t i) {
    const GraphTensor& tensor = graph_.tensors[call_.writes[i]];
    if (tensor.type == ElementType::f32) return reinterpret_cast<float*>(operands_.writes[i]);
    widen(tensor, operands_.writes[i]);
    outputs_.push_back({i, wide_.size() - 1});
    return wide_.back().data();
  }
  void store() const {
    for (const auto& [write, wide] : outputs_) {
      std::uint16_t* to = reinterpret_cast<std::uint16_t*>(operands_.writes[write]);
      std::transform(wide_[wide].begin(), wide_[wide].end(), to, to_bf16);
    }
  }

 private:
  struct Output {
    std::size_t write = 0, wide = 0;
  };
  const float* widen(const GraphTensor& tensor, const std::byte* memory) {
    if (tensor.type == ElementType::f32) return reinterpret_cast<const float*>(memory);
    const auto* from = reinterpret_cast<const std::uint16_t*>(memory);
    wide_.emplace_back(static_cast<std::size_t>(tensor.elements));
    std::transform(from, from + tensor.elements, wide_.back().begin(), to_float);
    return wide_.back().data();
  }

  const StepGraph& graph_;
  const KernelCall& call_;
  const Operands& operands_;
  std::vector<std::vector<float>> wide_;
  std::vector<Output> outputs_;
};

struct Shape {
  std::int64_t rows, columns;
};

void embed(Values& v, const TrainerModel& model, Shape s) {
  const std::int32_t* tokens = v.integers(0);
  const float *table = v.in(1), *positions = v.in(2);
  float* x = v.out(0);
  for (std::int64_t r = 0; r < s.rows; ++r)
    for (std::int64_t c = 0; c < s.columns; ++c)
      x[r * s.columns + c] = table[tokens[r] * s.columns + c] + positions[r % model.sequence * s.columns + c];
}

void embed_table_gradient(Values& v, const TrainerModel& model, Shape s) {
  const std::int32_t* tokens = v.integers(0);
  const float* dx = v.in(1);
  float* d_table = v.out(0);
  std::fill_n(d_table, model.vocabulary * s.columns, 0.0F);
  for (std::int64_t r = 0; r < s.rows; ++r)
    for (std::int64_t c = 0; c < s.columns; ++c) d_table[tokens[r] * s.columns + c] += dx[r * s.columns + c];
}

void embed_position_gradient(Values& v, const TrainerModel& model, Shape s) {
  const float* dx = v.in(0);
  float* d_positions = v.out(0);
  std::fill_n(d_positions, model.sequence * s.columns, 0.0F);
  for (std::int64_t r = 0; r < s.rows; ++r)
    for (std::int64_t c = 0; c < s.columns; ++c)
      d_positions[r % model.sequence * s.columns + c] += dx[r * s.columns + c];
}

void gemm(Values& v, const KernelCall& call) {
  const ConstMap a(v.in(0), call.transpose_a ? call.k : call.m, call.transpose_a ? call.m : call.k);
  const ConstMap b(v.in(1), call.transpose_b ? call.n : call.k, call.transpose_b ? call.k : call.n);
  const float* bias = call.has_bias ? v.in(2) : nullptr;
  Map c(v.out(0), call.m, call.n);
  if (call.transpose_a)
    c.noalias() = a.transpose() * b;
  else if (call.transpose_b)
    c.noalias() = a * b.transpose();
  else
    c.noalias() = a * b;
  if (bias == nullptr) return;
  for (std::int64_t r = 0; r < call.m; ++r)
    for (std::int64_t j = 0; j < call.n; ++j) c(r, j) += bias[j];
}

void bias_gradient(Values& v, Shape s) {
  const float* dy = v.in(0);
  float* d_bias = v.out(0);
  std::fill_n(d_bias, s.columns, 0.0F);
  for (std::int64_t r = 0; r < s.rows; ++r)
    for (std::int64_t c = 0; c < s.columns; ++c) d_bias[c] += dy[r * s.columns + c];
}

constexpr float norm_epsilon = 1e-5F;

void layer_norm(Values& v, Shape s) {
  const float *x = v.in(0), *weight = v.in(1), *bias = v.in(2);
  float *y = v.out(0), *means = v.out(1), *inverses = v.out(2);
  for (std::int64_t r = 0; r < s.rows; ++r) {
    const float* row = x + r * s.columns;
    float mean = 0, variance = 0;
    for (std::int64_t c = 0; c < s.columns; ++c) mean += row[c];
    mean /= static_cast<float>(s.columns);
    for (std::int64_t c = 0; c < s.columns; ++c) variance += (row[c] - mean) * (row[c] - mean);
    const float inverse = 1 / std::sqrt(variance / static_cast<float>(s.columns) + norm_epsilon);
    for (std::int64_t c = 0; c < s.columns; ++c) y[r * s.columns + c] = (row[c] - mean) * inverse * weight[c] + bias[c];
    means[r] = mean;
    inverses[r] = inverse;
  }
}

void layer_norm_backward(Values& v, Shape s) {
  const float *dy = v.in(0), *x = v.in(1), *weight = v.in(2), *means = v.in(3), *inverses = v.in(4);
  float* dx = v.out(0);
  for (std::int64_t r = 0; r < s.rows; ++r) {
    float sum = 0, dot = 0;
    for (std::int64_t c = 0; c < s.columns; ++c) {
      const float scaled = dy[r * s.columns + c] * weight[c];
      sum += scaled;
      dot += scaled * (x[r * s.columns + c] - means[r]) * inverses[r];
    }
    sum /= static_cast<float>(s.columns);
    dot /= static_cast<float>(s.columns);
    for (std::int64_t c = 0; c < s.columns; ++c) {
      const float normalized = (x[r * s.columns + c] - means[r]) * inverses[r];
      dx[r * s.columns + c] = inverses[r] * (dy[r * s.columns + c] * weight[c] - sum - normalized * dot);
    }
  }
}

void layer_norm_gradient(Values& v, Shape s) {
  const float *dy = v.in(0), *x = v.in(1), *means = v.in(2), *inverses = v.in(3);
  float *d_weight = v.out(0), *d_bias = v.out(1);
  std::fill_n(d_weight, s.columns, 0.0F);
  std::fill_n(d_bias, s.columns, 0.0F);
  for (std::int64_t r = 0; r < s.rows; ++r)
    for (std::int64_t c = 0; c < s.columns; ++c) {
      const float gradient = dy[r * s.columns + c];
      d_weight[c] += gradient * (x[r * s.columns + c] - means[r]) * inverses[r];
      d_bias[c] += gradient;
    }
}

// One head of one sample within the interleaved rows q | k | v of each token.
struct Head {
  const float *q, *k, *v;
  std::int64_t stride, size;
  [[nodiscard]] float score(std::int64_t i, std::int64_t j) const {
    float sum = 0;
    for (std::int64_t c = 0; c < size; ++c) sum += q[i * stride + c] * k[j * stride + c];
    return sum / std::sqrt(static_cast<float>(size));
  }
};

template <class Work>
void for_each_head(const float* qkv, const TrainerModel& model, Work work) {
  const std::int64_t stride = 3 * model.hidden;
  for (std::int64_t b = 0; b < model.batch; ++b)
    for (std::int64_t h = 0; h < model.heads; ++h) {
      const std::int64_t row = b * model.sequence, column = h * model.head_size();
      const float* start = qkv + row * stride + column;
      work(Head{start, start + model.hidden, start + 2 * model.hidden, stride, model.head_size()}, row, h);
    }
}

void attention(Values& v, const TrainerModel& model) {
  const float* qkv = v.in(0);
  float *out = v.out(0), *log_denominators = v.out(1);
  std::vector<float> scores(static_cast<std::size_t>(model.sequence));
  for_each_head(qkv, model, [&](const Head& head, std::int64_t row, std::int64_t h) {
    for (std::int64_t i = 0; i < model.sequence; ++i) {
      float most = -INFINITY, denominator = 0;
      for (std::int64_t j = 0; j <= i; ++j)
        most = std::max(most, scores[static_cast<std::size_t>(j)] = head.score(i, j));
      for (std::int64_t j = 0; j <= i; ++j) denominator += std::exp(scores[static_cast<std::size_t>(j)] - most);
      float* to = out + (row + i) * model.hidden + h * head.size;
      std::fill_n(to, head.size, 0.0F);
      for (std::int64_t j = 0; j <= i; ++j) {
        const float share = std::exp(scores[static_cast<std::size_t>(j)] - most) / denominator;
        for (std::int64_t c = 0; c < head.size; ++c) to[c] += share * head.v[j * head.stride + c];
      }
      log_denominators[(row + i) * model.heads + h] = most + std::log(denominator);
    }
  });
}

// dS = P * (dP - rowsum(dO * O)), as in FlashAttention's backward (Dao et al., NeurIPS 2022, algorithm 4).
void attention_backward(Values& v, const TrainerModel& model) {
  const float *d_out = v.in(0), *qkv = v.in(1), *out = v.in(2), *log_denominators = v.in(3);
  float* d_qkv = v.out(0);
  std::fill_n(d_qkv, model.tokens() * 3 * model.hidden, 0.0F);
  for_each_head(qkv, model, [&](const Head& head, std::int64_t row, std::int64_t h) {
    const float scale = 1 / std::sqrt(static_cast<float>(head.size));
    float* d_q = d_qkv + (head.q - qkv);
    float* d_k = d_qkv + (head.k - qkv);
    float* d_v = d_qkv + (head.v - qkv);
    for (std::int64_t i = 0; i < model.sequence; ++i) {
      const std::int64_t at = (row + i) * model.hidden + h * head.size;
      float delta = 0;
      for (std::int64_t c = 0; c < head.size; ++c) delta += d_out[at + c] * out[at + c];
      for (std::int64_t j = 0; j <= i; ++j) {
        const float share = std::exp(head.score(i, j) - log_denominators[(row + i) * model.heads + h]);
        float d_share = 0;
        for (std::int64_t c = 0; c < head.size; ++c) d_share += d_out[at + c] * head.v[j * head.stride + c];
        const float d_score = share * (d_share - delta) * scale;
        for (std::int64_t c = 0; c < head.size; ++c) {
          d_q[i * head.stride + c] += d_score * head.k[j * head.stride + c];
          d_k[j * head.stride + c] += d_score * head.q[i * head.stride + c];
          d_v[j * head.stride + c] += share * d_out[at + c];
        }
      }
    }
  });
}

constexpr float gelu_root = 0.7978845608028654F;  // sqrt(2 / pi)
constexpr float gelu_cubic = 0.044715F;

void gelu(Values& v, Shape s) {
  const float* x = v.in(0);
  float* y = v.out(0);
  for (std::int64_t i = 0; i < s.rows * s.columns; ++i)
    y[i] = 0.5F * x[i] * (1 + std::tanh(gelu_root * (x[i] + gelu_cubic * x[i] * x[i] * x[i])));
}

void gelu_backward(Values& v, Shape s) {
  const float *dy = v.in(0), *x = v.in(1);
  float* dx = v.out(0);
  for (std::int64_t i = 0; i < s.rows * s.columns; ++i) {
    const float t = std::tanh(gelu_root * (x[i] + gelu_cubic * x[i] * x[i] * x[i]));
    const float inner = gelu_root * (1 + 3 * gelu_cubic * x[i] * x[i]);
    dx[i] = dy[i] * (0.5F * (1 + t) + 0.5F * x[i] * (1 - t * t) * inner);
  }
}

void add(Values& v, Shape s) {
  const float *a = v.in(0), *b = v.in(1);
  float* out = v.out(0);
  for (std::int64_t i = 0; i < s.rows * s.columns; ++i) out[i] = a[i] + b[i];
}

void cross_entropy(Values& v, Shape s) {
  const float* logits = v.in(0);
  const std::int32_t* targets = v.integers(1);
  float *loss = v.out(0), *log_denominators = v.out(1);
  float sum = 0;
  for (std::int64_t r = 0; r < s.rows; ++r) {
    const float* row = logits + r * s.columns;
    const float most = *std::max_element(row, row + s.columns);
    float denominator = 0;
    for (std::int64_t c = 0; c < s.columns; ++c) denominator += std::exp(row[c] - most);
    log_denominators[r] = most + std::log(denominator);
    sum += log_denominators[r] - row[targets[r]];
  }
  *loss = sum / static_cast<float>(s.rows);
}

void cross_entropy_backward(Values& v, Shape s) {
  const float *logits = v.in(0), *log_denominators = v.in(2);
  const std::int32_t* targets = v.integers(1);
  float* d_logits = v.out(0);
  const float share = 1 / static_cast<float>(s.rows);
  for (std::int64_t r = 0; r < s.rows; ++r)
    for (std::int64_t c = 0; c < s.columns; ++c) {
      const float p = std::exp(logits[r * s.columns + c] - log_denominators[r]);
      d_logits[r * s.columns + c] = share * (p - (c == targets[r] ? 1.0F : 0.0F));
    }
}

// writes: weight, [master,] first and second moment.
void adamw(Values& v, const TrainerModel& model, const KernelCall& call, std::int64_t step) {
  const float* gradient = v.in(0);
  const bool mixed = call.writes.size() == 4;
  float* weight = v.out(0);
  float* master = mixed ? v.out(1) : weight;
  float *first = v.out(mixed ? 2 : 1), *second = v.out(mixed ? 3 : 2);
  const float correction1 = 1 - std::pow(model.beta1, static_cast<float>(step));
  const float correction2 = 1 - std::pow(model.beta2, static_cast<float>(step));
  const float decay = call.decays ? model.learning_rate * model.weight_decay : 0;
  for (std::int64_t i = 0; i < call.n; ++i) {
    first[i] = model.beta1 * first[i] + (1 - model.beta1) * gradient[i];
    second[i] = model.beta2 * second[i] + (1 - model.beta2) * gradient[i] * gradient[i];
    const float step_size = first[i] / correction1 / (std::sqrt(second[i] / correction2) + model.epsilon);
    master[i] -= decay * master[i] + model.learning_rate * step_size;
    weight[i] = master[i];
  }
}

}  // namespace

float to_float(std::uint16_t bf16) { return std::bit_cast<float>(static_cast<std::uint32_t>(bf16) << 16U); }

std::uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) return static_cast<std::uint16_t>((bits >> 16U) | 0x40U);
  const std::uint32_t odd = (bits >> 16U) & 1U;
  return static_cast<std::uint16_t>((bits + 0x7fffU + odd) >> 16U);
}

void run_on_cpu(const StepGraph& graph, const KernelCall& call, const Operands& operands) {
  Values v(graph, call, operands);
  const TrainerModel& model = graph.model;
  const Shape shape{call.m, call.n};
  switch (call.kernel) {
    case TrainerKernel::embed:
      embed(v, model, shape);
      break;
    case TrainerKernel::embed_table_gradient:
      embed_table_gradient(v, model, shape);
      break;
    case TrainerKernel::embed_position_gradient:
      embed_position_gradient(v, model, shape);
      break;
    case TrainerKernel::gemm:
      gemm(v, call);
      break;
    case TrainerKernel::bias_gradient:
      bias_gradient(v, shape);
      break;
    case TrainerKernel::layer_norm:
      layer_norm(v, shape);
      break;
    case TrainerKernel::layer_norm_backward:
      layer_norm_backward(v, shape);
      break;
    case TrainerKernel::layer_norm_gradient:
      layer_norm_gradient(v, shape);
      break;
    case TrainerKernel::attention:
      attention(v, model);
      break;
    case TrainerKernel::attention_backward:
      attention_backward(v, model);
      break;
    case TrainerKernel::gelu:
      gelu(v, shape);
      break;
    case TrainerKernel::gelu_backward:
      gelu_backward(v, shape);
      break;
    case TrainerKernel::add:
      add(v, shape);
      break;
    case TrainerKernel::cross_entropy:
      cross_entropy(v, shape);
      break;
    case TrainerKernel::cross_entropy_backward:
      cross_entropy_backward(v, shape);
      break;
    case TrainerKernel::adamw:
      adamw(v, model, call, operands.step);
      break;
  }
  v.store();
}

}  // namespace spillway::validation
