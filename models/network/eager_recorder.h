// EagerRecorder: the operators of eager_*.h are noted by it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "models/network/workspaces.h"
#include "models/session/autograd.h"
#include "models/session/communication.h"
#include "models/session/eager_session.h"
#include "models/spec/training_setup.h"

namespace spillway::models {

// Kernels of plain attention between its two products. With `fused` one kernel masks, scales and norms (Megatron-LM, a
// compiler). With `eager` they are as scripts write it: (q @ k^T) * scale, masked_fill, softmax. With `transformers`
// they are as in Hugging Face's modules, which add masks and take the softmax in fp32.
enum class ScoreKernels : std::uint8_t { fused, eager, transformers };

// Facts that follow from a model and a set-up together; all others are read from the set-up where they are asked.
struct OpsOptions {
  DataType type = DataType::bf16;     // of activations and weights; under torch.autocast of products and what they make
  DataType narrow = DataType::fp8;    // of operands of parameters in_fp8
  DataType product = DataType::bf16;  // of products: type, or tf32 on fp32 data; parameters in_fp8 have fp8 ones
  // Gradients are added into buffers that live all the time by the products that make them (Megatron-LM).
  bool fused_accumulation = false;
  // Biases of split layers are added, and contexts of plain attention moved behind each other, by kernels of their own
  // (Megatron-LM's layers, whether they are split or not).
  bool separate_passes = false;
  bool merged_experts = false;           // gate and up of experts are one matrix (models/spec/model_part.h)
  bool wide_adapters = false;            // adapters' products are done in fp32, with everything else in 16 bits
  bool casts_adapters = false;           // fp32 adapters under autocast: a cast of their input back and forth
  bool widens_logits = false;            // a model's result is cast to fp32 when its forward ends
  bool waits_for_counts = false;         // the host waits for the number of rows each expert gets
  bool overlaps_shared_experts = false;  // shared experts run beside the exchange (Megatron-core)
  bool overlap_tensor = false;           // collectives of the tensor group are cut up beside their products
  // Kernels wait for the keys and values of the context group, and for their gradients: functional collectives that
  // torch.compile traces are waited for where they are issued (_functional_collectives.py, _maybe_wrap_tensor).
  bool waits_for_context = false;
  bool before_cuda_12 = false;  // products are those of cuBLAS 11 (KernelCost::before_cuda_12)
  bool narrow_norms = false;    // autocast under a compiler: norms write their result in `type`
  ScoreKernels scores = ScoreKernels::fused;
};

// Tensors that a selectively recomputed block keeps of its forward, in the order in which they were made. They are
// taken again in that order when the block is run once more.
class KeptResults {
 public:
  void begin(bool replays) {
    replays_ = replays;
    next_ = products_ = 0;
  }
  [[nodiscard]] bool replays() const { return replays_; }
  // True of every second product; counts them.
  [[nodiscard]] bool is_kept_product() { return products_++ % 2 == 0; }
  void put(Tensor result) { results_.push_back(std::move(result)); }
  Tensor take() { return std::move(results_.at(next_++)); }

 private:
  std::vector<Tensor> results_;
  std::size_t next_ = 0, products_ = 0;
  bool replays_ = false;
};

// The session that kernels and tensors go to, what runs them backwards, the ranks to talk to, and how the framework
// does things. All must outlive what is noted.
struct EagerRecorder {
  EagerRecorder(const TrainingSetup& of, const OpsOptions& derived, EagerSession& to, Autograd& backwards,
                Communication* others)
      : setup(of), options(derived), session(to), autograd(backwards), communication(others) {}
  EagerRecorder(const EagerRecorder&) = delete;  // operators that run backwards refer to it
  EagerRecorder& operator=(const EagerRecorder&) = delete;

  [[nodiscard]] std::int64_t tensor_ranks() const {
    return communication == nullptr ? 1 : communication->shape(CommGroup::tensor).ranks;
  }
  // The result at hand from those kept; empty: it is to be made.
  Tensor kept_result() { return kept != nullptr && kept->replays() ? kept->take() : Tensor(); }
  void keep_result(const Tensor& result) {
    if (kept != nullptr && !kept->replays()) kept->put(result);
  }

  const TrainingSetup& setup;
  const OpsOptions options;
  EagerSession& session;
  Autograd& autograd;
  Communication* const communication;  // null on a single GPU
  Workspaces* workspaces = nullptr;    // of Megatron-core
  // Megatron-LM's global memory buffer (core/utils.py, GlobalMemoryBuffer). Inputs of split layers are gathered into
  // it, forwards and backwards, one after the other. An input of another size gets a tensor each time.
  Tensor gather_buffer;
  KeptResults* kept = nullptr;  // linear layers, attention and reduce-scatters keep results there, or take them
};

}  // namespace spillway::models
