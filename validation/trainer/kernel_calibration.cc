#include "validation/trainer/kernel_calibration.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <set>
#include <utility>

#include "base/byte_source.h"
#include "base/input_error.h"
#include "base/splitmix64.h"
#include "validation/trainer/trainer.h"

namespace spillway::validation {
namespace {

constexpr std::pair<KernelKind, TrainerKernel> kinds[] = {
    {KernelKind::elementwise, TrainerKernel::gelu},
    {KernelKind::norm_forward, TrainerKernel::layer_norm},
    {KernelKind::norm_backward, TrainerKernel::layer_norm_backward},
    {KernelKind::softmax, TrainerKernel::cross_entropy_backward},
    {KernelKind::cross_entropy, TrainerKernel::cross_entropy},
    {KernelKind::gather, TrainerKernel::embed},
    {KernelKind::optimizer, TrainerKernel::adamw},
    {KernelKind::attention_forward, TrainerKernel::attention},
    {KernelKind::attention_backward, TrainerKernel::attention_backward}};

bool is_attention(KernelKind kind) {
  return kind == KernelKind::attention_forward || kind == KernelKind::attention_backward;
}

std::set<std::uint32_t> operands_of(const KernelCall& call) {
  std::set<std::uint32_t> all(call.reads.begin(), call.reads.end());
  all.insert(call.writes.begin(), call.writes.end());
  return all;
}

// The largest call of a kernel; of AdamW the first one, that of the embedding table, which grows with the vocabulary.
const KernelCall& call_of_kernel(const StepGraph& graph, TrainerKernel kernel) {
  const KernelCall* found = nullptr;
  for (const KernelCall& call : graph.calls)
    if (call.kernel == kernel &&
        (found == nullptr || (kernel != TrainerKernel::adamw && call.m * call.n > found->m * found->n)))
      found = &call;
  SPILLWAY_ASSERT(found != nullptr);
  return *found;
}

// Operands of one call, with numbers between 0.5 and 2 in bf16 and in fp32, and with words that the vocabulary has.
class OperandSet {
 public:
  OperandSet(Backend& backend, const StepGraph& graph, const KernelCall& call)
      : backend_(backend), memory_(graph.tensors.size(), nullptr) {
    for (const std::uint32_t tensor : operands_of(call)) {
      const Bytes bytes = graph.tensors[tensor].bytes();
      memory_[tensor] = backend.take_segment(bytes);
      if (memory_[tensor] == nullptr) {
        give_back();
        throw InputError("GPU", "kernels", "no memory for their operands", "free memory of the device");
      }
      fill(graph, tensor, bytes);
    }
    for (const std::uint32_t tensor : call.reads) reads_.push_back(memory_[tensor]);
    for (const std::uint32_t tensor : call.writes) writes_.push_back(memory_[tensor]);
  }
  OperandSet(const OperandSet&) = delete;
  OperandSet& operator=(const OperandSet&) = delete;
  ~OperandSet() { give_back(); }

  [[nodiscard]] Operands operands() const { return {reads_, writes_, 1}; }

 private:
  void give_back() {
    for (std::byte*& memory : memory_)
      if (memory != nullptr) backend_.give_segment(std::exchange(memory, nullptr));
  }
  void fill(const StepGraph& graph, std::uint32_t tensor, Bytes bytes) {
    const Bytes piece = std::min(bytes, largest_piece);
    std::byte* host = backend_.take_host(piece);
    if (host == nullptr) {
      give_back();
      throw InputError("host", "kernels", "no memory for their operands", "free some");
    }
    std::vector<std::int32_t> tokens, targets;
    if (tensor == graph.tokens || tensor == graph.targets) {
      make_batch(graph.model, 1, tokens, targets);
      SPILLWAY_ASSERT(piece == bytes);
      std::memcpy(host, (tensor == graph.tokens ? tokens : targets).data(), static_cast<std::size_t>(bytes.count()));
    } else {
      fill_words(host, piece, tensor);
    }
    for (Bytes at; at < bytes; at += piece)
      backend_.wait(backend_.copy(Backend::CopyTo::device, memory_[tensor] + at.count(), host,
                                  std::min(piece, bytes - at), backend_.mark()));
    backend_.give_host(host);
  }
  static void fill_words(std::byte* memory, Bytes bytes, std::uint32_t seed) {
    SplitMix64 random(seed);
    for (std::int64_t at = 0; at + 4 <= bytes.count(); at += 4) {
      const std::uint32_t word = (static_cast<std::uint32_t>(random.next()) & 0x007f007fU) | 0x3f803f00U;
      std::memcpy(memory + at, &word, sizeof word);
    }
  }
  static constexpr Bytes largest_piece{16 << 20};  // larger operands repeat it

  Backend& backend_;
  std::vector<std::byte*> memory_;  // by tensor
  std::vector<const std::byte*> reads_;
  std::vector<std::byte*> writes_;
};

class KernelMeter {
 public:
  KernelMeter(Backend& backend, const KernelCalibrationOptions& options) : backend_(backend), options_(options) {}

  KernelPoint measure(KernelKind kind, const StepGraph& graph, const KernelCall& call) {
    std::vector<std::unique_ptr<OperandSet>> sets;
    Bytes size;
    for (const std::uint32_t tensor : operands_of(call)) size += graph.tensors[tensor].bytes();
    const std::int64_t wanted = std::clamp<std::int64_t>(2 * options_.cache.count() / size.count() + 1, 1, 64);
    for (std::int64_t s = 0; s < wanted; ++s) sets.push_back(std::make_unique<OperandSet>(backend_, graph, call));
    const double once = batch(graph, call, sets, 2) / 2;  // the first of them warms up
    const int calls = static_cast<int>(std::clamp(options_.batch_seconds / std::max(once, 1e-7), 2.0, 1000.0));
    std::vector<double> seconds;
    for (int b = 0; b < options_.batches; ++b) seconds.push_back(batch(graph, call, sets, calls) / calls);
    const double work =
        is_attention(kind) ? static_cast<double>(call.flops) : static_cast<double>(bytes_moved(graph, call).count());
    return {kind, work, spread_of(std::move(seconds))};
  }

 private:
  double batch(const StepGraph& graph, const KernelCall& call, const std::vector<std::unique_ptr<OperandSet>>& sets,
               int calls) {
    backend_.stamp();
    for (int i = 0; i < calls; ++i) backend_.run(graph, call, sets[next_++ % sets.size()]->operands());
    backend_.stamp();
    return backend_.take_stamps().back();
  }

  Backend& backend_;
  const KernelCalibrationOptions& options_;
  std::size_t next_ = 0;
};

}  // namespace

Bytes bytes_moved(const StepGraph& graph, const KernelCall& call) {
  Bytes moved;
  for (const std::uint32_t tensor : call.reads) moved += graph.tensors[tensor].bytes();
  for (const std::uint32_t tensor : call.writes) moved += graph.tensors[tensor].bytes();
  if (call.kernel != TrainerKernel::embed) return moved;
  const Bytes out = graph.tensors[call.writes.front()].bytes();
  return graph.tensors[graph.tokens].bytes() + out * 3;  // a row of words and one of positions for each row written
}

KernelCalibration measure_kernels(Backend& backend, const KernelCalibrationOptions& options,
                                  const std::function<bool(std::size_t, std::size_t)>& progress) {
  const auto start = std::chrono::steady_clock::now();
  KernelCalibration calibration;
  KernelMeter meter(backend, options);
  const std::size_t all = std::size(kinds) * options.tokens.size();
  std::size_t done = 0;
  for (const std::int64_t tokens : options.tokens) {
    TrainerModel model;
    model.layers = 1;
    model.hidden = options.hidden;
    model.heads = std::max<std::int64_t>(1, options.hidden / 64);
    model.sequence = std::min(options.sequence, tokens);
    model.batch = tokens / model.sequence;
    // AdamW's size is that of the table.
    model.vocabulary = std::max<std::int64_t>(64, options.vocabulary * tokens / options.tokens.back());
    model.type = ElementType::bf16;
    const StepGraph graph = step_graph(model);
    for (const auto& [kind, kernel] : kinds) {
      if (progress && !progress(done++, all)) throw Cancelled{};
      if (is_attention(kind) && tokens > options.most_attention_tokens) continue;
      const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
      if (options.seconds > 0 && passed.count() > options.seconds) {
        calibration.is_cut = true;
        continue;
      }
      calibration.points.push_back(meter.measure(kind, graph, call_of_kernel(graph, kernel)));
    }
  }
  std::stable_sort(calibration.points.begin(), calibration.points.end(),
                   [](const KernelPoint& a, const KernelPoint& b) { return a.kind < b.kind; });
  return calibration;
}

}  // namespace spillway::validation
