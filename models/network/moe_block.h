// MoeBlock: a mixture-of-experts feed-forward block without dropped tokens (MegaBlocks, Gale et al. 2022,
// arXiv:2211.15841), as frameworks run it with grouped products:
//
//   router     logits [t, E], softmax in fp32 and the k largest
//   permute    each token's row copied to its k experts: [t k, h]; expert parallel: all-to-all, sorted by expert again
//   experts    gate, up, product, down (or up, activation, down) as one grouped product each over the local experts
//   unpermute  all-to-all back; the sum of a token's k rows, weighted: [t, h]
//   shared     a plain feed-forward block over all tokens, perhaps weighed by a gate, added
//
// If experts work in a latent width, one product leads there before they are permuted, another back from their sum.
//
// Tensor parallel: the experts' width is split. Ranks with whole sequences route and permute alike and sum the block's
// result. With sequence parallelism (Megatron-Core's all-to-all dispatcher) each rank permutes and exchanges its part;
// rows are gathered before the products and reduce-scattered after them. The router is whole on every rank.
//
// Experts that tensor ranks hold whole (TrainingSetup::has_whole_experts) take their rows from each rank's part of the
// sequence by the exchange alone. DeepEP and Hybrid-EP send a token once per rank, before it is copied to its experts'
// rows, and the sum of its results on a rank comes back.
//
// Tokens are taken to be spread evenly: every expert gets t k / E rows, every rank of an expert group as many as it
// sends. If a load is set (models/spec/expert_load.h), tensors have the rows of the rank shown. Exchanges, products and
// what moves rows between them then take as long as on the fullest rank, which the others wait for. Auxiliary
// losses are left out: they see t E numbers. Unless shapes are static, the host waits for the counts of rows before it
// launches what works on them (OpsOptions::waits_for_counts).
//
// Megatron-core on Transformer Engine (engine_run): the probability of a row takes part in the activation, so that no
// result of an expert is kept: 2 t k (h + 3 f) bytes, about 12 t E of the router, 8 t E of row numbers.
//
// Otherwise kept for the backward with 2-byte activations, f the experts' width: 2 t k (2 h + 4 f) bytes of rows, 4 t E
// of the router's softmax, 12 t k of chosen experts and their weights. Shared experts are as any feed-forward block.
// Expert parallel: 2 t k h more, rows as they were sent and as they came back.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "models/network/block_context.h"
#include "models/network/eager_ops.h"
#include "models/spec/expert_load.h"
#include "models/spec/model_spec.h"

namespace spillway::models {

class MoeBlock {
 public:
  MoeBlock(const ModelSpec& model, const BlockContext& context)
      : model_(model), setup_(context.rec.setup), options_(context.rec.options), context_(context) {}

  // Draws of each layer and pass; before the first run().
  void set_load(const ExpertLoad& load) { load_ = load; }
  // The micro-batch, or slice of one, that runs from here on.
  void set_pass(std::int64_t pass) { pass_ = pass; }

  // x [t, h], normalised, to the block's result [t, h]. `prefix`: "layers.3.".
  Tensor run(const std::string& prefix, const Tensor& x);

 private:
  // One expert after another (moe_loop.cc).
  [[nodiscard]] bool loops() const;
  Tensor loop_run(const std::string& prefix, const Tensor& x);
  struct Routing {
    Tensor weights;  // [t, k] fp32
    Tensor experts;  // [t, k] indices
  };
  Routing route(const std::string& name, const Tensor& logits, std::int64_t tokens);
  Tensor permute(const std::string& name, const Tensor& x, const Routing& routing);
  Tensor exchange(const std::string& name, const Tensor& rows, bool combines, std::int64_t elements);
  // Rows of a tensor that holds each token once per rank that it goes to, from one that holds each once.
  // The rows that reach this rank, where the mean rank gets as many as given.
  [[nodiscard]] std::int64_t loaded(std::int64_t elements) const;
  [[nodiscard]] std::int64_t busiest(std::int64_t elements) const;  // of those, to the fullest rank
  // The rows that this rank sends of a micro-batch of so many elements, and those that reach it.
  [[nodiscard]] std::int64_t sent_by(std::int64_t elements) const;
  // Of what an expert reads.
  [[nodiscard]] std::int64_t row_width() const {
    return model_.experts.latent_width > 0 ? model_.experts.latent_width : model_.hidden;
  }
  [[nodiscard]] std::int64_t arriving(std::int64_t sent) const;
  // The share of a kernel on this rank's rows over the fullest rank's.
  [[nodiscard]] double crowding() const;
  void draw_rows(const Tensor& x);
  [[nodiscard]] std::int64_t copies_of(std::int64_t elements) const;
  void wait_for_counts(OpId counted);
  [[nodiscard]] HostWork each_expert(double calls, std::int64_t experts) const;
  [[nodiscard]] const RowPass* quantising(std::int64_t experts);
  Tensor pass_rows(const std::string& name, std::string_view kernel, const Tensor& rows, const RowPass& there,
                   const RowPass& back);
  [[nodiscard]] bool pads(const std::string& name) const;
  // The name of an expert's first product: gate and up in one where it is gated.
  [[nodiscard]] std::string first_of(const std::string& name) const {
    return name + (model_.gated() ? ".gate_up" : ".up");
  }
  Tensor enter_latent(const std::string& prefix, const Tensor& x);
  Tensor leave_latent(const std::string& prefix, const Tensor& routed);
  Tensor sort(const std::string& name, const Tensor& rows);
  Tensor unpermute(const std::string& name, const Tensor& rows, const Routing& routing, std::int64_t elements);
  Tensor grouped_linear(const std::string& name, const Tensor& rows) {
    return grouped_linear(name, rows, context_.weight(name));
  }
  Tensor grouped_linear(const std::string& name, const Tensor& rows, TrainedParameter& weight, bool keeps_input = false,
                        bool is_last = false);
  Tensor add_expert_bias(const Tensor& rows, TrainedParameter& bias);
  Tensor add_engine_bias(const Tensor& rows, TrainedParameter& bias, bool is_last);
  Tensor take_rows(const std::string& name, const Tensor& x, const Routing& routing, std::int64_t elements);
  Tensor add_weighted(const std::string& name, const Tensor& sum, const Tensor& rows, const Routing& routing);
  Tensor add_bias_of(const std::string& name, std::int64_t expert, const Tensor& rows, TrainedParameter& bias);
  Tensor expert_linear(const std::string& name, const Tensor& rows, TrainedParameter& weight, std::int64_t expert,
                       const std::shared_ptr<Tensor>& sum);
  void grouped_product(std::string_view kernel, const GemmShape& shape, std::int64_t flops, std::vector<Tensor> reads,
                       const Tensor& write, const HostWork& host = {}, double flops_per_clock = 0);
  // Whether an expert's weight gradient sums its bias's too.
  [[nodiscard]] bool sums_bias(const std::string& name, DataType operand) const;
  [[nodiscard]] bool has_own_type(DataType type) const;
  Tensor shared(const std::string& prefix, const Tensor& x);
  [[nodiscard]] eager::Pointwise function() const;
  // Megatron-core's fused permutation, all-to-all dispatcher and grouped products of Transformer Engine.
  struct EngineRouting {
    Tensor probabilities;  // [t, E]
    Tensor rows;           // where each token's rows go
    OpId counted = OpId::none;
  };
  Tensor engine_run(const std::string& prefix, const Tensor& x);
  EngineRouting engine_route(const std::string& name, const Tensor& x);
  Tensor engine_permute(const std::string& name, const Tensor& x, const EngineRouting& routing, std::int64_t rows,
                        Tensor& probabilities);
  Tensor engine_experts(const std::string& name, Tensor rows, const Tensor& weights);
  Tensor engine_combine(const std::string& name, const Tensor& results, const EngineRouting& routing,
                        std::int64_t elements);
  void activate(const Tensor& gates, const Tensor& probabilities, const Tensor& out);
  Tensor engine_shared(const std::string& prefix, const Tensor& x);
  void map_arrived(const Tensor& sent);
  Tensor weighted_activation(const std::string& name, const Tensor& x, const Tensor& probabilities);
  Tensor without_activation(const std::string& name, const Tensor& inner, const Tensor& weights, const Tensor& result);
  Tensor engine_unpermute(const std::string& name, const Tensor& rows, const EngineRouting& routing,
                          std::int64_t elements);
  [[nodiscard]] bool is_clamped() const { return model_.experts.bias; }  // GPT-OSS, which has both
  [[nodiscard]] bool captures_permutation() const { return setup_.captures("moe_preprocess") && !permutes_late(); }
  // Sequence parallel: rows of the tensor group's parts come together for the products.
  [[nodiscard]] bool gathers() const {
    return setup_.sequence_parallel && context_.rec.tensor_ranks() > 1 && !setup_.has_whole_experts();
  }
  // Each tensor rank works on its own tokens, as on a single GPU.
  [[nodiscard]] bool is_apart() const { return setup_.has_whole_experts(); }
  // Tokens travel once per rank, and are copied to their experts' rows where they arrive.
  [[nodiscard]] bool permutes_late() const {
    return options_.merged_experts && expert_ranks() > 1 && setup_.expert_dispatcher != ExpertDispatcher::nccl;
  }
  [[nodiscard]] std::int64_t expert_ranks() const {
    return context_.communication == nullptr ? 1 : context_.communication->shape(CommGroup::expert).ranks;
  }

  const ModelSpec& model_;
  const TrainingSetup& setup_;
  const OpsOptions& options_;
  const BlockContext context_;
  std::optional<ExpertLoad> load_;
  ExpertRows rows_;  // with load_, of the block at hand
  std::int64_t pass_ = 0, mean_rows_ = 1;
  RowPass cast_;                                          // of the operand at hand
  Tensor gates_;                                          // gate and up of the rows at hand
  std::map<std::string, std::shared_ptr<Tensor>> sums_;   // of a loop's experts: gradients of each matrix
  std::map<std::string, std::shared_ptr<Tensor>> slots_;  // of the block at hand: its probabilities' gradient
};

}  // namespace spillway::models
