// Weights, moments and digests made where a backend has them, against the host's reference.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "base/splitmix64.h"
#include "tests/virtual_gpu/virtual_gpu.h"
#include "validation/trainer/cpu_kernels.h"
#include "validation/trainer/cuda_backend.h"
#include "validation/trainer/trainer.h"

namespace spillway::validation {
namespace {

TrainerModel model(ElementType type) {
  TrainerModel model;
  model.vocabulary = 40;
  model.hidden = 24;
  model.layers = 2;
  model.seed = 7;
  model.type = type;
  return model;
}

// Both backends: the processor's, and the CUDA one over the virtual GPU.
class DeviceState : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (GetParam()) {
      setenv("SPILLWAY_CUDA_MODULE", SPILLWAY_VIRTUAL_GPU, 1);
      virtual_gpu::Constants constants;
      constants.computes = true;
      virtual_gpu::power_on(constants);
      backend_ = load_cuda_backend();
    } else {
      backend_ = make_cpu_backend();
    }
  }
  void TearDown() override {
    backend_.reset();
    unsetenv("SPILLWAY_CUDA_MODULE");
  }
  // What fill() leaves, read back over the link.
  std::vector<std::byte> filled(ElementType type, std::int64_t elements, const Filling& filling) const {
    const Bytes size(elements * bytes_of(type));
    std::byte* device = backend_->take_segment(size);
    std::byte* host = backend_->take_host(size);
    backend_->fill(device, type, elements, filling);
    backend_->wait(backend_->copy(Backend::CopyTo::host, device, host, size, backend_->mark()));
    std::vector<std::byte> bytes(host, host + size.count());
    backend_->give_host(host);
    backend_->give_segment(device);
    return bytes;
  }
  std::uint64_t digest_of(const std::vector<std::byte>& bytes) const {
    const Bytes size(static_cast<std::int64_t>(bytes.size()));
    std::byte* device = backend_->take_segment(size);
    std::byte* host = backend_->take_host(size);
    std::memcpy(host, bytes.data(), bytes.size());
    backend_->wait(backend_->copy(Backend::CopyTo::device, device, host, size, backend_->mark()));
    const std::uint64_t digest = backend_->digest(device, size);
    backend_->give_host(host);
    backend_->give_segment(device);
    return digest;
  }

  std::unique_ptr<Backend> backend_;
};

TEST_P(DeviceState, WeightsAreTheReferencesBitByBit) {
  for (const ElementType type : {ElementType::f32, ElementType::bf16}) {
    const StepGraph graph = step_graph(model(type));
    for (std::size_t p = 0; p < graph.parameters.size(); ++p) {
      const GraphTensor& weight = graph.tensors[graph.parameters[p].weight];
      const std::vector<float> reference = initial_weight(graph, p);
      const std::vector<std::byte> bytes = filled(type, weight.elements, initial_filling(graph, p));
      ASSERT_EQ(bytes.size(), reference.size() * static_cast<std::size_t>(bytes_of(type)));
      for (std::size_t i = 0; i < reference.size(); ++i) {
        if (type == ElementType::f32) {
          ASSERT_EQ(std::memcmp(bytes.data() + 4 * i, &reference[i], 4), 0) << weight.name << " " << i;
        } else {
          const std::uint16_t narrow = to_bf16(reference[i]);
          ASSERT_EQ(std::memcmp(bytes.data() + 2 * i, &narrow, 2), 0) << weight.name << " " << i;
        }
      }
    }
    EXPECT_EQ(filled(type, 5, {}), std::vector<std::byte>(static_cast<std::size_t>(5 * bytes_of(type))));
  }
}

// By its definition, word by word; the last of 8k + 3 bytes is filled up with zeros.
TEST_P(DeviceState, DigestsAreTheDefinitions) {
  SplitMix64 random(3);
  for (const std::size_t size : {1U, 7U, 8U, 9U, 1003U, 300'000U}) {
    std::vector<std::byte> bytes(size);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.next() & 0xffU);
    std::uint64_t expected = 0;
    for (std::size_t word = 0; 8 * word < size; ++word) {
      std::uint64_t value = 0;
      for (std::size_t b = 0; b < 8 && 8 * word + b < size; ++b)
        value |= static_cast<std::uint64_t>(bytes[8 * word + b]) << (8 * b);
      expected += scramble(value ^ scramble(word + 1));
    }
    EXPECT_EQ(digest_of(bytes), expected) << size;
  }
}

// A bit, two words that change places, a zero more: each is another digest.
TEST_P(DeviceState, DigestsTellContentsApart) {
  std::vector<std::byte> bytes(4096);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 31 % 251);
  const std::uint64_t before = digest_of(bytes);
  bytes[4095] ^= std::byte{1};
  EXPECT_NE(digest_of(bytes), before);
  bytes[4095] ^= std::byte{1};
  EXPECT_EQ(digest_of(bytes), before);
  std::swap_ranges(bytes.begin(), bytes.begin() + 8, bytes.begin() + 800);
  EXPECT_NE(digest_of(bytes), before);
  EXPECT_NE(digest_of(std::vector<std::byte>(8)), digest_of(std::vector<std::byte>(16)));
}

INSTANTIATE_TEST_SUITE_P(Backends, DeviceState, testing::Values(false, true),
                         [](const auto& which) { return which.param ? "cuda" : "cpu"; });

// Nothing of the state crosses the link when a run begins and ends: tokens, targets and losses alone do.
TEST(DeviceStateTraffic, StaysOnTheDevice) {
  setenv("SPILLWAY_CUDA_MODULE", SPILLWAY_VIRTUAL_GPU, 1);
  virtual_gpu::Constants constants;
  constants.computes = true;
  virtual_gpu::power_on(constants);
  {
    const std::unique_ptr<Backend> backend = load_cuda_backend();
    const StepGraph graph = step_graph(model(ElementType::bf16));
    const Trace trace = measured_trace(*backend, graph, 1);
    const std::uint64_t before = virtual_gpu::calls()["cudaMemcpyAsync"];
    constexpr int steps = 3;
    const TrainingRun run = train(*backend, graph, trace, {}, {}, steps);
    const std::uint64_t digests = 4 * graph.parameters.size();  // eight bytes each
    EXPECT_EQ(virtual_gpu::calls()["cudaMemcpyAsync"] - before, digests + 3 * steps);
    // The same numbers as on the processor, bit by bit, from the first weight to the last digest.
    const std::unique_ptr<Backend> cpu = make_cpu_backend();
    const TrainingRun reference = train(*cpu, graph, trace, {}, {}, 1);
    EXPECT_EQ(train(*backend, graph, trace, {}, {}, 1).steps[0].loss, reference.steps[0].loss);
  }
  unsetenv("SPILLWAY_CUDA_MODULE");
}

}  // namespace
}  // namespace spillway::validation
