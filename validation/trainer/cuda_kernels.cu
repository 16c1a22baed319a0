#include "validation/trainer/cuda_kernels.cuh"

#include <cmath>

#include "validation/trainer/kernel_bodies.h"
#include "validation/trainer/state_bodies.h"

namespace spillway::validation {
namespace {

constexpr unsigned block_threads = 256;
constexpr unsigned warp_threads = 32;
constexpr unsigned full_warp = 0xffffffffU;

// Pairs of threads add the same two numbers, so that all threads end with the same bits.
struct Warp {
  __device__ std::int64_t rank() const { return threadIdx.x % warp_threads; }
  __device__ std::int64_t size() const { return warp_threads; }
  __device__ float sum(float value) const {
    for (unsigned step = warp_threads / 2; step > 0; step /= 2) value += __shfl_xor_sync(full_warp, value, step);
    return value;
  }
  __device__ float most(float value) const {
    for (unsigned step = warp_threads / 2; step > 0; step /= 2)
      value = fmaxf(value, __shfl_xor_sync(full_warp, value, step));
    return value;
  }
};

struct Block {
  float* scratch;  // of one number a warp, in shared memory

  __device__ std::int64_t rank() const { return threadIdx.x; }
  __device__ std::int64_t size() const { return block_threads; }
  __device__ float sum(float value) const {
    share(Warp{}.sum(value));
    float total = 0;
    for (unsigned w = 0; w < block_threads / warp_threads; ++w) total += scratch[w];
    __syncthreads();
    return total;
  }
  __device__ float most(float value) const {
    share(Warp{}.most(value));
    float total = scratch[0];
    for (unsigned w = 1; w < block_threads / warp_threads; ++w) total = fmaxf(total, scratch[w]);
    __syncthreads();
    return total;
  }

 private:
  __device__ void share(float value) const {
    if (threadIdx.x % warp_threads == 0) scratch[threadIdx.x / warp_threads] = value;
    __syncthreads();
  }
};

#define SPILLWAY_BLOCK_GROUP(name)                               \
  __shared__ float name##_scratch[block_threads / warp_threads]; \
  const Block name { name##_scratch }

__device__ std::int64_t global_thread() { return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; }
__device__ std::int64_t all_threads() { return static_cast<std::int64_t>(gridDim.x) * blockDim.x; }

template <class T>
__global__ void embed_kernel(const std::int32_t* tokens, const T* table, const T* positions, T* x,
                             std::int64_t elements, std::int64_t columns, std::int64_t sequence) {
  for (std::int64_t i = global_thread(); i < elements; i += all_threads()) {
    const std::int64_t row = i / columns, column = i % columns;
    bodies::store(x + i, bodies::load(table + tokens[row] * columns + column) +
                             bodies::load(positions + row % sequence * columns + column));
  }
}

// A block for each word of the vocabulary looks through all tokens in order: no two threads add to one number.
template <class T>
__global__ void embed_table_gradient_kernel(const std::int32_t* tokens, const T* dx, T* d_table, std::int64_t rows,
                                            std::int64_t columns) {
  extern __shared__ float sums[];
  const auto word = static_cast<std::int32_t>(blockIdx.x);
  for (std::int64_t c = threadIdx.x; c < columns; c += blockDim.x) sums[c] = 0;
  for (std::int64_t r = 0; r < rows; ++r) {
    if (tokens[r] != word) continue;
    for (std::int64_t c = threadIdx.x; c < columns; c += blockDim.x) sums[c] += bodies::load(dx + r * columns + c);
  }
  for (std::int64_t c = threadIdx.x; c < columns; c += blockDim.x) bodies::store(d_table + word * columns + c, sums[c]);
}

template <class T>
__global__ void embed_position_gradient_kernel(const T* dx, T* d_positions, std::int64_t batch, std::int64_t elements) {
  for (std::int64_t i = global_thread(); i < elements; i += all_threads()) {
    float sum = 0;
    for (std::int64_t b = 0; b < batch; ++b) sum += bodies::load(dx + b * elements + i);
    bodies::store(d_positions + i, sum);
  }
}

// 32 columns a block; its 8 warps each sum a part of the rows, added in order at the end.
constexpr unsigned column_parts = block_threads / warp_threads;
template <class T>
__global__ void column_sums_kernel(const T* dy, const T* x, const float* means, const float* inverses, T* plain,
                                   T* weighted, std::int64_t rows, std::int64_t columns) {
  __shared__ bodies::ColumnSums parts[column_parts][warp_threads];
  const unsigned lane = threadIdx.x % warp_threads, part = threadIdx.x / warp_threads;
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * warp_threads + lane;
  if (column < columns)
    parts[part][lane] = bodies::column_sums(dy, x, means, inverses, column, columns, part, column_parts, rows);
  __syncthreads();
  if (part != 0 || column >= columns) return;
  bodies::ColumnSums all = parts[0][lane];
  for (unsigned p = 1; p < column_parts; ++p) {
    all.plain += parts[p][lane].plain;
    all.weighted += parts[p][lane].weighted;
  }
  bodies::store(plain + column, all.plain);
  if (weighted != nullptr) bodies::store(weighted + column, all.weighted);
}

template <class T>
__global__ void layer_norm_kernel(const T* x, const T* weight, const T* bias, T* y, float* means, float* inverses,
                                  std::int64_t columns) {
  SPILLWAY_BLOCK_GROUP(group);
  const std::int64_t row = blockIdx.x, at = row * columns;
  bodies::layer_norm(group, x + at, weight, bias, y + at, means + row, inverses + row, columns);
}

template <class T>
__global__ void layer_norm_backward_kernel(const T* dy, const T* x, const T* weight, const float* means,
                                           const float* inverses, T* dx, std::int64_t columns) {
  SPILLWAY_BLOCK_GROUP(group);
  const std::int64_t row = blockIdx.x, at = row * columns;
  bodies::layer_norm_backward(group, dy + at, x + at, weight, means[row], inverses[row], dx + at, columns);
}

// Which row of which head of which sample a warp works on.
struct AttentionPlace {
  std::int64_t row, head, i;
  bool inside;
};
__device__ AttentionPlace attention_place(const bodies::AttentionShape& shape, std::int64_t tokens) {
  const std::int64_t warp = global_thread() / warp_threads;
  const std::int64_t token = warp / shape.heads;
  return {token / shape.sequence * shape.sequence, warp % shape.heads, token % shape.sequence,
          warp < tokens * shape.heads};
}

template <int PerThread, class T>
__global__ void attention_kernel(const T* qkv, T* out, float* log_denominators, bodies::AttentionShape shape,
                                 std::int64_t tokens) {
  const AttentionPlace at = attention_place(shape, tokens);
  if (!at.inside) return;
  bodies::attention<PerThread>(Warp{}, qkv, out, log_denominators, shape, at.row, at.head, at.i);
}

template <int PerThread, class T>
__global__ void attention_backward_kernel(const T* d_out, const T* qkv, const T* out, const float* log_denominators,
                                          T* d_qkv, bodies::AttentionShape shape, std::int64_t tokens, bool of_keys) {
  const AttentionPlace at = attention_place(shape, tokens);
  if (!at.inside) return;
  if (of_keys)
    bodies::attention_d_key<PerThread>(Warp{}, d_out, qkv, out, log_denominators, d_qkv, shape, at.row, at.head, at.i);
  else
    bodies::attention_d_query<PerThread>(Warp{}, d_out, qkv, out, log_denominators, d_qkv, shape, at.row, at.head,
                                         at.i);
}

template <class T>
__global__ void gelu_kernel(const T* x, T* y, std::int64_t elements) {
  for (std::int64_t i = global_thread(); i < elements; i += all_threads())
    bodies::store(y + i, bodies::gelu(bodies::load(x + i)));
}

template <class T>
__global__ void gelu_backward_kernel(const T* dy, const T* x, T* dx, std::int64_t elements) {
  for (std::int64_t i = global_thread(); i < elements; i += all_threads())
    bodies::store(dx + i, bodies::load(dy + i) * bodies::gelu_gradient(bodies::load(x + i)));
}

template <class T>
__global__ void add_kernel(const T* a, const T* b, T* out, std::int64_t elements) {
  for (std::int64_t i = global_thread(); i < elements; i += all_threads())
    bodies::store(out + i, bodies::load(a + i) + bodies::load(b + i));
}

template <class T>
__global__ void log_denominator_kernel(const T* logits, float* log_denominators, std::int64_t columns) {
  SPILLWAY_BLOCK_GROUP(group);
  const float value = bodies::log_denominator(group, logits + blockIdx.x * columns, columns);
  if (threadIdx.x == 0) log_denominators[blockIdx.x] = value;
}

template <class T>
__global__ void mean_loss_kernel(const T* logits, const std::int32_t* targets, const float* log_denominators,
                                 float* loss, std::int64_t rows, std::int64_t columns) {
  SPILLWAY_BLOCK_GROUP(group);
  bodies::mean_loss(group, logits, targets, log_denominators, loss, rows, columns);
}

template <class T>
__global__ void cross_entropy_backward_kernel(const T* logits, const std::int32_t* targets,
                                              const float* log_denominators, T* d_logits, std::int64_t rows,
                                              std::int64_t columns) {
  const float share = 1 / static_cast<float>(rows);
  for (std::int64_t i = global_thread(); i < rows * columns; i += all_threads()) {
    const std::int64_t row = i / columns;
    const float p = expf(bodies::load(logits + i) - log_denominators[row]);
    bodies::store(d_logits + i, share * (p - (i % columns == targets[row] ? 1.0F : 0.0F)));
  }
}

template <class T>
__global__ void adam_kernel(const T* gradient, T* weight, float* master, float* first, float* second,
                            std::int64_t elements, bodies::AdamSettings settings) {
  for (std::int64_t i = global_thread(); i < elements; i += all_threads()) {
    const float moved = bodies::adam(bodies::load(gradient + i), master[i], first + i, second + i, settings);
    master[i] = moved;
    bodies::store(weight + i, moved);
  }
}

template <class T>
__global__ void fill_kernel(T* to, std::int64_t elements, Filling filling) {
  for (std::int64_t i = global_thread(); i < elements; i += all_threads())
    bodies::store(to + i, bodies::initial_element(filling, i));
}

// Whole numbers: whichever warp adds first, the sum is the same.
__global__ void digest_kernel(const std::byte* bytes, std::int64_t size, std::int64_t words,
                              unsigned long long* total) {
  unsigned long long sum = 0;
  for (std::int64_t i = global_thread(); i < words; i += all_threads()) sum += bodies::digest_word(bytes, size, i);
  for (unsigned step = warp_threads / 2; step > 0; step /= 2) sum += __shfl_xor_sync(full_warp, sum, step);
  if (threadIdx.x % warp_threads == 0) atomicAdd(total, sum);
}

unsigned blocks_for(std::int64_t threads) {
  constexpr std::int64_t most = 1 << 16;
  const std::int64_t blocks = (threads + block_threads - 1) / block_threads;
  return static_cast<unsigned>(blocks < most ? blocks : most);
}

// Launches one call with elements of type T.
template <class T>
class Launch {
 public:
  Launch(const StepGraph& graph, const KernelCall& call, const Operands& operands, cudaStream_t stream)
      : model_(graph.model), call_(call), operands_(operands), stream_(stream) {}

  void run() {
    switch (call_.kernel) {
      case TrainerKernel::embed:
        embed_kernel<<<blocks_for(elements()), block_threads, 0, stream_>>>(integers(0), in(1), in(2), out(0),
                                                                            elements(), call_.n, model_.sequence);
        break;
      case TrainerKernel::embed_table_gradient:
        embed_table_gradient_kernel<<<static_cast<unsigned>(model_.vocabulary), block_threads,
                                      static_cast<std::size_t>(call_.n) * sizeof(float), stream_>>>(
            integers(0), in(1), out(0), call_.m, call_.n);
        break;
      case TrainerKernel::embed_position_gradient: {
        const std::int64_t size = model_.sequence * call_.n;
        embed_position_gradient_kernel<<<blocks_for(size), block_threads, 0, stream_>>>(in(0), out(0), model_.batch,
                                                                                        size);
        break;
      }
      case TrainerKernel::bias_gradient:
        column_sums_kernel<T><<<columns_of_blocks(), block_threads, 0, stream_>>>(in(0), nullptr, nullptr, nullptr,
                                                                                  out(0), nullptr, call_.m, call_.n);
        break;
      case TrainerKernel::layer_norm:
        layer_norm_kernel<<<rows(), block_threads, 0, stream_>>>(in(0), in(1), in(2), out(0), floats_out(1),
                                                                 floats_out(2), call_.n);
        break;
      case TrainerKernel::layer_norm_backward:
        layer_norm_backward_kernel<<<rows(), block_threads, 0, stream_>>>(in(0), in(1), in(2), floats(3), floats(4),
                                                                          out(0), call_.n);
        break;
      case TrainerKernel::layer_norm_gradient:
        column_sums_kernel<<<columns_of_blocks(), block_threads, 0, stream_>>>(in(0), in(1), floats(2), floats(3),
                                                                               out(1), out(0), call_.m, call_.n);
        break;
      case TrainerKernel::attention:
      case TrainerKernel::attention_backward:
        attention_by_head_size();
        break;
      case TrainerKernel::gelu:
        gelu_kernel<<<blocks_for(elements()), block_threads, 0, stream_>>>(in(0), out(0), elements());
        break;
      case TrainerKernel::gelu_backward:
        gelu_backward_kernel<<<blocks_for(elements()), block_threads, 0, stream_>>>(in(0), in(1), out(0), elements());
        break;
      case TrainerKernel::add:
        add_kernel<<<blocks_for(elements()), block_threads, 0, stream_>>>(in(0), in(1), out(0), elements());
        break;
      case TrainerKernel::cross_entropy:
        log_denominator_kernel<<<rows(), block_threads, 0, stream_>>>(in(0), floats_out(1), call_.n);
        mean_loss_kernel<<<1, block_threads, 0, stream_>>>(in(0), integers(1), floats_out(1), floats_out(0), call_.m,
                                                           call_.n);
        break;
      case TrainerKernel::cross_entropy_backward:
        cross_entropy_backward_kernel<<<blocks_for(elements()), block_threads, 0, stream_>>>(
            in(0), integers(1), floats(2), out(0), call_.m, call_.n);
        break;
      case TrainerKernel::adamw:
        adam();
        break;
      case TrainerKernel::gemm:
        break;
    }
  }

 private:
  const T* in(std::size_t i) const { return reinterpret_cast<const T*>(operands_.reads[i]); }
  T* out(std::size_t i) const { return reinterpret_cast<T*>(operands_.writes[i]); }
  const float* floats(std::size_t i) const { return reinterpret_cast<const float*>(operands_.reads[i]); }
  float* floats_out(std::size_t i) const { return reinterpret_cast<float*>(operands_.writes[i]); }
  const std::int32_t* integers(std::size_t i) const {
    return reinterpret_cast<const std::int32_t*>(operands_.reads[i]);
  }
  std::int64_t elements() const { return call_.m * call_.n; }
  unsigned rows() const { return static_cast<unsigned>(call_.m); }
  unsigned columns_of_blocks() const { return static_cast<unsigned>((call_.n + warp_threads - 1) / warp_threads); }

  void attention_by_head_size() {
    const std::int64_t size = model_.head_size();
    if (size <= 32) return attention<1>();
    if (size <= 64) return attention<2>();
    if (size <= 128) return attention<4>();
    attention<8>();
  }
  template <int PerThread>
  void attention() {
    const bodies::AttentionShape shape{model_.sequence, model_.hidden, model_.heads, model_.head_size()};
    const std::int64_t tokens = model_.tokens();
    const auto blocks =
        static_cast<unsigned>((tokens * model_.heads * warp_threads + block_threads - 1) / block_threads);
    if (call_.kernel == TrainerKernel::attention) {
      attention_kernel<PerThread><<<blocks, block_threads, 0, stream_>>>(in(0), out(0), floats_out(1), shape, tokens);
      return;
    }
    for (const bool of_keys : {false, true})
      attention_backward_kernel<PerThread>
          <<<blocks, block_threads, 0, stream_>>>(in(0), in(1), in(2), floats(3), out(0), shape, tokens, of_keys);
  }

  void adam() {
    const bool mixed = call_.writes.size() == 4;
    const auto step = static_cast<float>(operands_.step);
    const bodies::AdamSettings settings{model_.learning_rate,
                                        model_.beta1,
                                        model_.beta2,
                                        model_.epsilon,
                                        call_.decays ? model_.learning_rate * model_.weight_decay : 0,
                                        1 - std::pow(model_.beta1, step),
                                        1 - std::pow(model_.beta2, step)};
    adam_kernel<<<blocks_for(call_.n), block_threads, 0, stream_>>>(in(0), out(0), floats_out(mixed ? 1 : 0),
                                                                    floats_out(mixed ? 2 : 1),
                                                                    floats_out(mixed ? 3 : 2), call_.n, settings);
  }

  const TrainerModel& model_;
  const KernelCall& call_;
  const Operands& operands_;
  cudaStream_t stream_;
};

}  // namespace

void launch_on_cuda(const StepGraph& graph, const KernelCall& call, const Operands& operands, cudaStream_t stream) {
  if (graph.model.type == ElementType::bf16)
    Launch<bodies::Bf16>(graph, call, operands, stream).run();
  else
    Launch<float>(graph, call, operands, stream).run();
}

void fill_on_cuda(std::byte* device, ElementType type, std::int64_t elements, const Filling& filling,
                  cudaStream_t stream) {
  if (type == ElementType::bf16)
    fill_kernel<<<blocks_for(elements), block_threads, 0, stream>>>(reinterpret_cast<bodies::Bf16*>(device), elements,
                                                                    filling);
  else
    fill_kernel<<<blocks_for(elements), block_threads, 0, stream>>>(reinterpret_cast<float*>(device), elements,
                                                                    filling);
}

void digest_on_cuda(const std::byte* device, Bytes bytes, std::uint64_t* sum, cudaStream_t stream) {
  const std::int64_t words = (bytes.count() + 7) / 8;
  cudaMemsetAsync(sum, 0, sizeof *sum, stream);
  digest_kernel<<<blocks_for(words), block_threads, 0, stream>>>(device, bytes.count(), words,
                                                                 reinterpret_cast<unsigned long long*>(sum));
}

}  // namespace spillway::validation
