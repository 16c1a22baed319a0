#include "validation/trainer/kernel_bodies.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <limits>
#include <set>
#include <vector>

#include "validation/trainer/cpu_kernels.h"
#include "validation/trainer/trainer.h"

namespace spillway::validation {
namespace {

// A group of one thread.
struct Alone {
  static std::int64_t rank() { return 0; }
  static std::int64_t size() { return 1; }
  static float sum(float value) { return value; }
  static float most(float value) { return value; }
};

// A step on the reference kernels, with a buffer for every tensor.
class Reference {
 public:
  Reference() : graph_(step_graph(model())) {
    for (const GraphTensor& tensor : graph_.tensors)
      memory_.emplace_back(static_cast<std::size_t>(tensor.bytes().count()));
    for (std::size_t p = 0; p < graph_.parameters.size(); ++p) {
      std::vector<float> weight = initial_weight(graph_, p);
      // Away from 0 and 1, so that each shows.
      for (std::size_t i = 0; i < weight.size(); ++i) weight[i] = weight[i] * 10 + 0.01F * static_cast<float>(i % 7);
      put(graph_.parameters[p].weight, weight);
    }
    std::vector<std::int32_t> tokens, targets;
    make_batch(graph_.model, 1, tokens, targets);
    put(graph_.tokens, tokens);
    put(graph_.targets, targets);
  }
  static TrainerModel model() {
    TrainerModel model;
    model.vocabulary = 24;
    model.hidden = 24;
    model.heads = 2;
    model.layers = 1;
    model.sequence = 8;
    return model;
  }
  void run(const KernelCall& call) {
    std::vector<const std::byte*> reads;
    std::vector<std::byte*> writes;
    for (const std::uint32_t t : call.reads) reads.push_back(memory_[t].data());
    for (const std::uint32_t t : call.writes) writes.push_back(memory_[t].data());
    run_on_cpu(graph_, call, {reads, writes, 1});
  }
  template <class T>
  void put(std::uint32_t tensor, const std::vector<T>& values) {
    ASSERT_EQ(values.size() * sizeof(T), memory_[tensor].size());
    std::memcpy(memory_[tensor].data(), values.data(), memory_[tensor].size());
  }
  const StepGraph& graph() const { return graph_; }
  const float* floats(std::uint32_t tensor) const { return reinterpret_cast<const float*>(memory_[tensor].data()); }
  const std::int32_t* integers(std::uint32_t tensor) const {
    return reinterpret_cast<const std::int32_t*>(memory_[tensor].data());
  }
  std::size_t elements(std::uint32_t tensor) const { return memory_[tensor].size() / 4; }

 private:
  StepGraph graph_;
  std::vector<std::vector<std::byte>> memory_;
};

// One call by the bodies, from the reference's operands into buffers of its own.
class BodyCall {
 public:
  BodyCall(const Reference& reference, const KernelCall& call) : reference_(reference), call_(call) {
    // What is changed in place begins as the reference has it.
    for (const std::uint32_t t : call.writes)
      outputs_.emplace_back(reference.floats(t), reference.floats(t) + reference.elements(t));
  }
  const std::vector<float>& output(std::size_t i) const { return outputs_[i]; }

  // False for kernels without a body of more than one element.
  bool run() {
    const std::int64_t rows = call_.m, columns = call_.n;
    switch (call_.kernel) {
      case TrainerKernel::layer_norm:
        for (std::int64_t r = 0; r < rows; ++r)
          bodies::layer_norm(Alone{}, in(0) + r * columns, in(1), in(2), out(0) + r * columns, out(1) + r, out(2) + r,
                             columns);
        return true;
      case TrainerKernel::layer_norm_backward:
        for (std::int64_t r = 0; r < rows; ++r)
          bodies::layer_norm_backward(Alone{}, in(0) + r * columns, in(1) + r * columns, in(2), in(3)[r], in(4)[r],
                                      out(0) + r * columns, columns);
        return true;
      case TrainerKernel::layer_norm_gradient:
      case TrainerKernel::bias_gradient:
        column_sums(rows, columns);
        return true;
      case TrainerKernel::attention:
      case TrainerKernel::attention_backward:
        for_each_row();
        return true;
      case TrainerKernel::cross_entropy:
        for (std::int64_t r = 0; r < rows; ++r)
          out(1)[r] = bodies::log_denominator(Alone{}, in(0) + r * columns, columns);
        bodies::mean_loss(Alone{}, in(0), reference_.integers(call_.reads[1]), out(1), out(0), rows, columns);
        return true;
      case TrainerKernel::gelu:
        for (std::int64_t i = 0; i < rows * columns; ++i) out(0)[i] = bodies::gelu(in(0)[i]);
        return true;
      case TrainerKernel::gelu_backward:
        for (std::int64_t i = 0; i < rows * columns; ++i) out(0)[i] = in(0)[i] * bodies::gelu_gradient(in(1)[i]);
        return true;
      case TrainerKernel::adamw:
        adam();
        return true;
      case TrainerKernel::embed:
      case TrainerKernel::embed_table_gradient:
      case TrainerKernel::embed_position_gradient:
      case TrainerKernel::gemm:
      case TrainerKernel::add:
      case TrainerKernel::cross_entropy_backward:
        return false;
    }
    return false;
  }

 private:
  const float* in(std::size_t i) const { return reference_.floats(call_.reads[i]); }
  float* out(std::size_t i) { return outputs_[i].data(); }

  // In three parts of the rows, as the GPU has eight.
  void column_sums(std::int64_t rows, std::int64_t columns) {
    const bool norm = call_.kernel == TrainerKernel::layer_norm_gradient;
    for (std::int64_t c = 0; c < columns; ++c) {
      bodies::ColumnSums all;
      for (std::int64_t part = 0; part < 3; ++part) {
        const bodies::ColumnSums sums = bodies::column_sums(in(0), norm ? in(1) : nullptr, norm ? in(2) : nullptr,
                                                            norm ? in(3) : nullptr, c, columns, part, 3, rows);
        all.plain += sums.plain;
        all.weighted += sums.weighted;
      }
      out(norm ? 1 : 0)[c] = all.plain;
      if (norm) out(0)[c] = all.weighted;
    }
  }

  void for_each_row() {
    const TrainerModel& model = reference_.graph().model;
    const bodies::AttentionShape shape{model.sequence, model.hidden, model.heads, model.head_size()};
    constexpr int head_size = 12;
    ASSERT_EQ(model.head_size(), head_size);
    for (std::int64_t row = 0; row < model.tokens(); row += model.sequence)
      for (std::int64_t head = 0; head < model.heads; ++head)
        for (std::int64_t i = 0; i < model.sequence; ++i) {
          if (call_.kernel == TrainerKernel::attention) {
            bodies::attention<head_size>(Alone{}, in(0), out(0), out(1), shape, row, head, i);
            continue;
          }
          bodies::attention_d_query<head_size>(Alone{}, in(0), in(1), in(2), in(3), out(0), shape, row, head, i);
          bodies::attention_d_key<head_size>(Alone{}, in(0), in(1), in(2), in(3), out(0), shape, row, head, i);
        }
  }

  void adam() {
    const TrainerModel& model = reference_.graph().model;
    const bodies::AdamSettings settings{model.learning_rate,
                                        model.beta1,
                                        model.beta2,
                                        model.epsilon,
                                        call_.decays ? model.learning_rate * model.weight_decay : 0,
                                        1 - model.beta1,
                                        1 - model.beta2};
    for (std::int64_t i = 0; i < call_.n; ++i)
      out(0)[i] = bodies::adam(in(0)[i], out(0)[i], out(1) + i, out(2) + i, settings);
  }

  const Reference& reference_;
  const KernelCall& call_;
  std::vector<std::vector<float>> outputs_;
};

// Every body gives what the reference gives, up to the rounding of another order of sums.
TEST(KernelBodies, AgreeWithTheReference) {
  Reference reference;
  std::set<TrainerKernel> seen;
  for (const KernelCall& call : reference.graph().calls) {
    BodyCall body(reference, call);
    const bool has_body = body.run();
    reference.run(call);
    if (!has_body) continue;
    seen.insert(call.kernel);
    for (std::size_t w = 0; w < call.writes.size(); ++w) {
      const float* wanted = reference.floats(call.writes[w]);
      float largest = 0;
      for (std::size_t i = 0; i < body.output(w).size(); ++i) largest = std::max(largest, std::abs(wanted[i]));
      for (std::size_t i = 0; i < body.output(w).size(); ++i)
        ASSERT_NEAR(body.output(w)[i], wanted[i], 1e-4F * largest + 1e-9F)
            << call.name << ", output " << w << ", " << i;
    }
  }
  EXPECT_EQ(seen.size(), 10U);
}

// The bodies' bf16 rounds as the reference's does, over a sweep of bit patterns.
TEST(KernelBodies, Bf16IsTheReferences) {
  for (std::uint64_t bits = 0; bits < (std::uint64_t{1} << 32U); bits += 65'519) {
    const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    bodies::Bf16 stored;
    bodies::store(&stored, value);
    ASSERT_EQ(stored.bits, to_bf16(value)) << bits;
    if (!std::isnan(value)) {
      ASSERT_EQ(bodies::load(&stored), to_float(stored.bits));
    }
  }
}

}  // namespace
}  // namespace spillway::validation
